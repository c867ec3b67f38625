"""SQL to plan: Spark resolves and optimises the query, and its operators become ours.

Spark's optimiser pushes predicates down, prunes columns, puts comma joins in a connected order and inlines CTEs, so
what arrives here is a tree of few kinds of operators over attributes with unique numbers. Stateless stretches
become fragments that hold Spark's own expressions; each stateful operator becomes one of ours. What cannot be
maintained is refused with its position in the text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import pyarrow as pa
from py4j.protocol import Py4JJavaError
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import SparkSession

from headwater.errors import SchemaError, ViewRefused
from headwater.schema import Schema, parse
from headwater.spark.calls import Calls
from headwater.spark.catalyst import Catalyst, Java, label, number
from headwater.spark.evaluate import evaluation_failed, rows_of
from headwater.spark.fields import field_of
from headwater.spark.fragment import Chain, compile_fragment
from headwater.spark.quiet import quiet
from headwater.spark.refusals import Refusals
from headwater.topics.record_view import LOG_COLUMNS
from headwater.views.plan import Aggregate, Constant, Field, Fields, Fragment, Join, Node, Plan, Source, Union

_OURS = {column.name for column in LOG_COLUMNS}
_LONGEST_RANGE = 1_000_000
_PASSING = {"SubqueryAlias", "View", "ResolvedHint", "Sort", "RebalancePartitions", "RepartitionByExpression"}
_LINEAR = {"Project", "Filter", "Generate", "BatchEvalPython", "ArrowEvalPython"}


@dataclass(frozen=True)
class Relation:
    """What a query may read: its columns, and whether its rows never disappear."""

    name: str
    schema: Schema
    appends_only: bool


class Analyser:
    """Plans views in a session of its own. `relation` finds what a name stands for. Not for several threads."""

    def __init__(self, spark: SparkSession, relation: Callable[[str], Relation | None]) -> None:
        self.catalyst = Catalyst(spark)
        self._spark = spark
        self._relation = relation
        self._registered: dict[str, Relation] = {}
        self._by_rdd: dict[int, Relation] = {}

    def plan(self, name: str, sql: str) -> tuple[Plan, Schema]:
        """The plan of a query and the columns it gives; `ViewRefused` if it cannot be maintained."""
        self.catalyst.activate()
        try:
            with quiet():
                return self._plan(name, sql)
        except (Py4JJavaError, PySparkException) as error:  # as an expression of constants that has no value
            what = evaluation_failed(error).what
            raise ViewRefused(what, where=name, hint="Spark does not accept this query") from error

    def _plan(self, name: str, sql: str) -> tuple[Plan, Schema]:
        self._forget_changed()
        analysed = self._analysed(name, sql)
        refusals = Refusals(self.catalyst, name)
        refusals.check(analysed)
        refusals.check_text(sql, analysed)
        schema = self._schema(name, analysed)
        builder = _Builder(self.catalyst, self._by_rdd, refusals)
        optimised = self.catalyst.optimise(analysed)
        if "ScalarSubquery" in self.catalyst.kinds(optimised):
            raise ViewRefused(
                "subqueries in expressions are not maintained yet", where=name, hint="write it as a join"
            )
        root = builder.node(optimised)
        outputs = [label(attribute) for attribute in self.catalyst.items(optimised.output())]
        shown = {each.name: each for each in root.output}
        root = _select(root, [shown[each] for each in outputs])
        return Plan(root, schema.names, not builder.retracts(root)), schema

    def _analysed(self, name: str, sql: str) -> Java:
        while True:
            try:
                parsed = self.catalyst.parse(sql)
                self._check_query(name, parsed)
                return self.catalyst.analyse(parsed)
            except AnalysisException as error:
                missing = _missing_relation(error)
                if missing is None or not self._register(missing):
                    raise _refused_by_spark(name, sql, error) from None

    def _check_query(self, name: str, parsed: Java) -> None:
        for kind in ("Command", "ParsedStatement"):
            if self.catalyst.is_a(parsed, f"org.apache.spark.sql.catalyst.plans.logical.{kind}"):
                what = "this is not a query"
                raise ViewRefused(what, position=(1, 1), where=name, hint="write a SELECT")

    def _register(self, name: str) -> bool:
        """Make a relation known to Spark; False if there is none or it is known already."""
        relation = self._relation(name)
        if relation is None or self._registered.get(name) == relation:
            return False
        frame = self._spark.createDataFrame(self._spark.sparkContext.emptyRDD(), relation.schema.ddl)
        frame.createOrReplaceTempView(name)
        self._registered[name] = relation
        self._by_rdd[frame._jdf.queryExecution().analyzed().rdd().id()] = relation
        return True

    def _forget_changed(self) -> None:
        """Another process may have dropped a relation, and declared another under its name."""
        for name, known in list(self._registered.items()):
            if self._relation(name) != known:
                self.forget(name)

    def forget(self, name: str) -> None:
        """Forget a relation that was dropped or changed."""
        if self._registered.pop(name, None) is not None:
            self._spark.catalog.dropTempView(name)

    def _schema(self, name: str, analysed: Java) -> Schema:
        """The columns of a query; refused if they cannot be columns of ours."""
        columns = analysed.schema().toDDL()
        try:
            schema = parse(columns)
            for column in schema:
                column.arrow  # noqa: B018  raises for what cannot be stored
        except SchemaError as error:
            hint = error.hint or "cast it to another type"
            raise ViewRefused(error.what, where=name, hint=hint) from None
        seen: set[str] = set()
        for column in schema:
            if column.name.lower() in seen:
                what = f"two columns are called {column.name}"
                raise ViewRefused(what, where=name, hint="give each its own name with AS")
            if column.name.startswith("_") and column.name not in _OURS:
                what = f"names of columns that begin with _, like {column.name}, are ours"
                raise ViewRefused(what, where=name, hint="give it another name with AS")
            seen.add(column.name.lower())
        return schema


class _Builder:
    """Turns one optimised plan into ours."""

    def __init__(self, catalyst: Catalyst, relations: dict[int, Relation], refusals: Refusals) -> None:
        self._catalyst = catalyst
        self._relations = relations
        self._refusals = refusals
        self._calls = Calls(catalyst, refusals)
        self._streams: set[str] = set()
        self._counts = {"join": 0, "aggregate": 0}

    def node(self, plan: Java, wanted: Sequence[Java] | None = None) -> Node:
        """Our operator for Spark's; `wanted` are the expressions that are needed of it, all columns if None."""
        steps: list[Java] = []
        while (kind := plan.nodeName()) in _LINEAR or kind in _PASSING:
            if kind in _LINEAR:
                steps.append(plan)
            plan = self._catalyst.children(plan)[0]
        base, attributes, below = self._base(plan)
        steps += below
        if wanted is not None:
            steps.insert(0, self._catalyst.project(wanted, plan))
        if not steps:
            return base
        return compile_fragment(self._catalyst, base, Chain(steps, attributes))

    def _base(self, plan: Java) -> tuple[Node, list[Java], list[Java]]:
        """A leaf or a stateful operator, its attributes, and the stateless steps that belong to it."""
        kind = plan.nodeName()
        attributes = self._catalyst.items(plan.output())
        if kind in {"LogicalRDD", "ExternalRDD"}:
            relation = self._relations[plan.rdd().id()]
            fields = self._fields(attributes)
            if relation.appends_only:
                self._streams.add(relation.name)
            return Source(fields, relation.name, tuple(a.name() for a in attributes)), attributes, []
        if kind in {"LocalRelation", "OneRowRelation"} or self._is_short_range(plan):
            return self._constant(plan, attributes), attributes, []
        if kind == "Union":
            children = tuple(self.node(child) for child in self._catalyst.children(plan))
            return Union(self._fields(attributes), children), attributes, []
        if kind == "Join":
            return self._join(plan)
        if kind == "Aggregate":
            return self._aggregate(plan)
        raise self._refusals.operator(plan)

    def _is_short_range(self, plan: Java) -> bool:
        """`range(…)`: rows that the query itself holds, if they are not too many."""
        return plan.nodeName() == "Range" and int(str(plan.numElements())) <= _LONGEST_RANGE

    def _fields(self, attributes: Sequence[Java]) -> Fields:
        return tuple(field_of(attribute) for attribute in attributes)

    def _constant(self, plan: Java, attributes: list[Java]) -> Constant:
        fields = self._fields(attributes)
        if not attributes:
            count = plan.data().size() if plan.nodeName() == "LocalRelation" else 1
            return Constant((), pa.table({"_": pa.nulls(count, pa.int8())}))
        return Constant(fields, rows_of(self._catalyst, plan, fields))

    # -- joins

    def _join(self, plan: Java) -> tuple[Node, list[Java], list[Java]]:
        found = self._catalyst.equi_join(plan)
        if plan.joinType().sql() not in {"INNER", "CROSS"} or found is None:
            raise self._refusals.join(plan)
        left, left_keys = self._side(plan.left(), found._2())
        right, right_keys = self._side(plan.right(), found._3())
        self._counts["join"] += 1
        attributes = self._catalyst.items(plan.left().output()) + self._catalyst.items(plan.right().output())
        kept = {label(attribute) for attribute in attributes}
        output = tuple(each for each in left.output + right.output if each.name in kept)
        join = Join(
            output,
            left=left,
            right=right,
            left_keys=left_keys,
            right_keys=right_keys,
            name=f"join{self._counts['join']}",
        )
        condition = self._catalyst.option(found._4())
        return join, attributes, [] if condition is None else [self._catalyst.filter(condition, plan)]

    def _side(self, plan: Java, keys: Java) -> tuple[Node, tuple[str, ...]]:
        """One side with its key columns, and their names."""
        wanted = self._catalyst.items(plan.output())
        names = []
        for key in self._catalyst.items(keys):
            self._refusals.key(key)
            column = key
            if key.nodeName() != "AttributeReference":
                column = self._catalyst.alias(key, "key")
                wanted.append(column)
            names.append(label(column))
        return self.node(plan, wanted), tuple(names)

    # -- aggregates

    def _aggregate(self, plan: Java) -> tuple[Node, list[Java], list[Java]]:
        catalyst = self._catalyst
        replaced: list[tuple[Java, Java]] = []
        wanted: list[Java] = []
        keys: list[Java] = []
        for expression in catalyst.items(plan.groupingExpressions()):
            self._refusals.key(expression)
            key = catalyst.normalised(expression)
            if key.nodeName() != "AttributeReference":
                key = catalyst.alias(key, "key")
                replaced.append((expression, key.toAttribute()))
            wanted.append(key)
            keys.append(key if key.nodeName() == "AttributeReference" else key.toAttribute())
        results = catalyst.items(plan.aggregateExpressions())
        retracts = self._may_retract(plan.child())
        calls, found = self._calls.of(results, wanted, retracts=retracts)
        child = self.node(plan.child(), _once(wanted))
        by_name = {each.name: each for each in child.output}
        names = tuple(dict.fromkeys(label(key) for key in keys))
        self._counts["aggregate"] += 1
        fields = tuple(by_name[name] for name in names) + tuple(call.result for call in calls)
        made = Aggregate(fields, child=child, keys=names, calls=calls, name=f"aggregate{self._counts['aggregate']}")
        attributes = list({label(key): key for key in keys}.values()) + [attribute for _, attribute in found]
        replaced += found
        rewritten = [catalyst.rewrite(result, lambda part: _replacement(part, replaced)) for result in results]
        named = [_named(catalyst, new, old) for new, old in zip(rewritten, results, strict=True)]
        return made, attributes, [catalyst.project(named, catalyst.local(catalyst.sequence(attributes)))]

    # -- what may disappear

    def _may_retract(self, plan: Java) -> bool:
        """The same as `retracts`, told from Spark's plan."""
        kind = plan.nodeName()
        if kind in {"LogicalRDD", "ExternalRDD"}:
            return not self._relations[plan.rdd().id()].appends_only
        if kind == "Aggregate" and "AggregateExpression" in self._catalyst.kinds(plan):
            return True
        return any(self._may_retract(child) for child in self._catalyst.children(plan))

    def retracts(self, node: Node) -> bool:
        """Whether rows of an operator may ever disappear."""
        if isinstance(node, Source):
            return node.relation not in self._streams
        if isinstance(node, Aggregate) and node.calls:
            return True
        return any(self.retracts(child) for child in node.children)


def _select(node: Node, fields: list[Field]) -> Node:
    """The operator with its columns in this order."""
    if list(node.output) == fields:
        return node
    return Fragment(tuple(fields), child=node, passed=tuple((each.name, each.name) for each in fields))


def _once(expressions: list[Java]) -> list[Java]:
    """The named expressions, each attribute once."""
    return list({number(each): each for each in expressions}.values())


def _replacement(part: Java, replaced: list[tuple[Java, Java]]) -> Java | None:
    for old, new in replaced:
        if part.semanticEquals(old):
            return new
    return None


def _named(catalyst: Catalyst, new: Java, old: Java) -> Java:
    """A result that keeps its number although an attribute took its place."""
    if number(new) == number(old):
        return new
    return catalyst.alias_as(new, old.name(), old.exprId())


def _missing_relation(error: AnalysisException) -> str | None:
    if error.getCondition() != "TABLE_OR_VIEW_NOT_FOUND":
        return None
    name = (error.getMessageParameters() or {}).get("relationName", "")
    return name.replace("`", "").lower() or None


def _refused_by_spark(name: str, sql: str, error: AnalysisException) -> ViewRefused:
    """Spark's own reason, with the position it gives."""
    what = str(error).strip().split("\n", 1)[0].split(" SQLSTATE")[0].strip()
    position = _position(sql, error)
    where = name if position is None else f"{name}, line {position[0]}, column {position[1]}"
    return ViewRefused(what, position=position, where=where, hint=_hint(error))


def _position(sql: str, error: AnalysisException) -> tuple[int, int] | None:
    """Line and column, both from 1."""
    for context in error.getQueryContext() or []:
        start = context.startIndex()
        if 0 <= start <= len(sql):
            before = sql[:start]
            return before.count("\n") + 1, start - (before.rfind("\n") + 1) + 1
    found = re.search(r"line (\d+), pos (\d+)", str(error))
    return (int(found[1]), int(found[2]) + 1) if found else None


def _hint(error: AnalysisException) -> str:
    parameters = error.getMessageParameters() or {}
    if error.getCondition() == "UNRESOLVED_ROUTINE":
        return "a Python function is declared with udf() in every process that declares views or ticks"
    if (error.getCondition() or "").startswith("PARSE"):
        return "correct the SQL there"
    for key in ("proposal", "suggestion", "hint"):
        if parameters.get(key):
            return f"did you mean {parameters[key]}?"
    if error.getCondition() == "TABLE_OR_VIEW_NOT_FOUND":
        return "declare the topic or view first"
    return "Spark does not accept this query"
