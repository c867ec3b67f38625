"""SQL to plan: Spark resolves and optimises the query, and its operators become ours.

Spark's optimiser pushes predicates down, prunes columns, puts comma joins in a connected order and inlines CTEs, so
what arrives here is a tree of few kinds of operators over attributes with unique numbers. What cannot be maintained
is refused with its position in the text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from py4j.protocol import Py4JJavaError
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import SparkSession

from headwater.errors import SchemaError, ViewRefused
from headwater.operators.stateless import Fragment
from headwater.plan.operators import Field, Node, Plan
from headwater.schema import Schema, parse
from headwater.schema.types import Void
from headwater.spark.catalyst import Catalyst, Java, label
from headwater.spark.evaluator.failure import evaluation_failed
from headwater.spark.planner.build import Builder, KnownRelation
from headwater.spark.planner.columns_read import columns_read
from headwater.spark.planner.expression_ids import ExpressionIds
from headwater.spark.planner.refusals import Refusals
from headwater.spark.planner.rewrite import rewritten
from headwater.spark.planner.rewrite.correlated import keep_equalities
from headwater.spark.session.quiet import quiet
from headwater.topics.record_view import LOG_COLUMNS

_FOR_ONE_EXECUTION = (
    "org.apache.spark.sql.execution.planmerging.MergeSubplans,"
    "org.apache.spark.sql.catalyst.optimizer.InjectRuntimeFilter"
)
"""Rules that only serve a single execution: joining equal aggregates into one subquery, filters at run time."""
_FIELDS_SHOWN, _ALL_FIELDS = "spark.sql.debug.maxToStringFields", 1 << 30
_OURS = {column.name for column in LOG_COLUMNS}
Resolve = Callable[[str], KnownRelation | None]
"""Finds what a name stands for; None if a query may not read it."""


class Analyser:
    """Plans views in a session of its own. Not for several threads."""

    def __init__(self, spark: SparkSession) -> None:
        spark.conf.set("spark.sql.optimizer.excludedRules", _FOR_ONE_EXECUTION)
        self.catalyst = Catalyst(spark)
        self._spark = spark
        self._registered: dict[str, KnownRelation] = {}
        self._by_rdd: dict[int, KnownRelation] = {}
        self._sources: dict[str, Java] = {}
        self._ids = ExpressionIds(self.catalyst)

    def plan(self, name: str, sql: str, relation: Resolve) -> tuple[Plan, Schema]:
        """The plan of a query and the columns it gives; `ViewRefused` if it cannot be maintained.

        `relation` finds what a name stands for.
        """
        self.catalyst.activate()
        try:
            with quiet():
                return self._plan(name, sql, relation)
        except ViewRefused as refused:
            refused.where = refused.where or name
            raise
        except (Py4JJavaError, PySparkException) as error:  # as an expression of constants that has no value
            what = evaluation_failed(error).what
            raise ViewRefused(what, where=name, hint="Spark does not accept this query") from error

    def _plan(self, name: str, sql: str, relation: Resolve) -> tuple[Plan, Schema]:
        self._forget_changed(relation)
        analysed = self._analysed(name, sql, relation)
        refusals = Refusals(self.catalyst, name)
        refusals.check(analysed)
        refusals.check_text(sql)
        refusals.check_clock(analysed)
        schema = self._schema(name, analysed, refusals)
        optimised = rewritten(self.catalyst, self.catalyst.optimise(keep_equalities(self.catalyst, analysed)))
        refusals.check_plan(optimised)
        refusals.check_clock(optimised)
        builder = Builder(self.catalyst, self._by_rdd, refusals)
        root = builder.node(optimised)
        outputs = [label(attribute) for attribute in self.catalyst.items(optimised.output())]
        shown = {each.name: each for each in root.output}
        root = _select(root, [shown[each] for each in outputs])
        mentions = [name for name in self.catalyst.views(analysed) if name in self._registered]
        reads = columns_read(sql, _printed(self.catalyst, analysed), self._columns)
        return Plan(root, schema.names, not builder.retracts(root), tuple(mentions), reads), schema

    @property
    def _columns(self) -> dict[str, tuple[str, ...]]:
        """Those of the relations that are known to Spark."""
        return {name: known.schema.names for name, known in self._registered.items()}

    def _analysed(self, name: str, sql: str, relation: Resolve) -> Java:
        named: dict[str, None] = {}
        while True:
            try:
                parsed = self.catalyst.parse(sql)
                self._check_query(name, parsed)
                named = dict.fromkeys([*self.catalyst.names(parsed), *named])
                self._begin(named, relation)
                return self.catalyst.analyse(self.catalyst.parse(sql))
            except AnalysisException as error:
                missing = _missing_relation(error)
                if missing is None or not self._register(missing, relation):
                    raise _refused_by_spark(name, sql, error) from None
                named[missing] = None

    def _begin(self, named: Iterable[str], relation: Resolve) -> None:
        """Begin a plan, the same whatever was planned before: its inputs get new columns, in this order."""
        for each in named:
            self._register(each, relation)
        self._ids.begin()
        for each in named:
            if each in self._registered:
                source = self._with_nulls(self._sources[each].newInstance(), self._registered[each].schema)
                self.catalyst.frame(source).createOrReplaceTempView(each)

    def _with_nulls(self, source: Java, schema: Schema) -> Java:
        """An input with NULL itself as its columns of NULL: to Spark such a column is never the same as another."""
        if not any(isinstance(column.type, Void) for column in schema):
            return source
        columns = [
            self.catalyst.alias(self.catalyst.expression("NULL"), column.name)
            if isinstance(column.type, Void)
            else attribute
            for column, attribute in zip(schema, self.catalyst.items(source.output()), strict=True)
        ]
        return self.catalyst.project(columns, source)

    def _check_query(self, name: str, parsed: Java) -> None:
        for kind in ("Command", "ParsedStatement"):
            if self.catalyst.is_a(parsed, f"org.apache.spark.sql.catalyst.plans.logical.{kind}"):
                what = "this is not a query"
                raise ViewRefused(what, position=(1, 1), where=name, hint="write a SELECT")

    def _register(self, name: str, relation: Resolve) -> bool:
        """Make a relation known to Spark; False if there is none or it is known already."""
        found = relation(name)
        if found is None or self._registered.get(name) == found:
            return False
        frame = self._spark.createDataFrame(self._spark.sparkContext.emptyRDD(), found.schema.ddl)
        frame.createOrReplaceTempView(name)
        self._registered[name] = found
        source = self._sources[name] = frame._jdf.queryExecution().analyzed()
        self._by_rdd[source.rdd().id()] = found
        return True

    def _forget_changed(self, relation: Resolve) -> None:
        """Another process may have dropped a relation, and declared another under its name."""
        for name, known in list(self._registered.items()):
            if relation(name) != known:
                self.forget(name)

    def knows(self, names: Iterable[str], relation: Resolve) -> bool:
        """Whether relations are still what they were when something that reads them was planned."""
        return all(self._registered.get(name) == relation(name) for name in names)

    def forget(self, name: str) -> None:
        """Forget a relation that was dropped or changed."""
        if self._registered.pop(name, None) is not None:
            self._spark.catalog.dropTempView(name)

    def _schema(self, name: str, analysed: Java, refusals: Refusals) -> Schema:
        """The columns of a query; refused if they cannot be columns of ours."""
        columns = analysed.schema().toDDL()
        try:
            schema = parse(columns)
        except SchemaError as error:
            raise ViewRefused(error.what, where=name, hint=error.hint or "cast it to another type") from None
        refusals.check_columns(analysed, schema)
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


def _select(node: Node, fields: list[Field]) -> Node:
    """The operator with its columns in this order."""
    if list(node.output) == fields:
        return node
    return Fragment(tuple(fields), child=node, passed=tuple((each.name, each.name) for each in fields))


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


def _printed(catalyst: Catalyst, analysed: Java) -> str:
    """A resolved plan as Spark prints it, with its subqueries and all columns of each operator."""
    settings = catalyst.spark.conf
    before = settings.get(_FIELDS_SHOWN)
    settings.set(_FIELDS_SHOWN, str(_ALL_FIELDS))
    try:
        return str(analysed.treeString())
    finally:
        settings.set(_FIELDS_SHOWN, str(before))
