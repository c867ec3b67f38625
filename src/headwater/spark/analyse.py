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
from headwater.schema import Schema, parse
from headwater.spark.build import Builder, Relation
from headwater.spark.catalyst import Catalyst, Java, label
from headwater.spark.evaluate import evaluation_failed
from headwater.spark.quiet import quiet
from headwater.spark.refusals import Refusals
from headwater.spark.rewrite import rewritten
from headwater.topics.record_view import LOG_COLUMNS
from headwater.views.plan import Field, Fragment, Node, Plan

_FOR_ONE_EXECUTION = (
    "org.apache.spark.sql.execution.planmerging.MergeSubplans,"
    "org.apache.spark.sql.catalyst.optimizer.InjectRuntimeFilter"
)
"""Rules that only serve a single execution: joining equal aggregates into one subquery, filters at run time."""
_OURS = {column.name for column in LOG_COLUMNS}


class Analyser:
    """Plans views in a session of its own. `relation` finds what a name stands for. Not for several threads."""

    def __init__(self, spark: SparkSession, relation: Callable[[str], Relation | None]) -> None:
        spark.conf.set("spark.sql.optimizer.excludedRules", _FOR_ONE_EXECUTION)
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
        except ViewRefused as refused:
            refused.where = refused.where or name
            raise
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
        optimised = rewritten(self.catalyst, self.catalyst.optimise(analysed))
        builder = Builder(self.catalyst, self._by_rdd, refusals)
        root = builder.node(optimised)
        outputs = [label(attribute) for attribute in self.catalyst.items(optimised.output())]
        shown = {each.name: each for each in root.output}
        root = _select(root, [shown[each] for each in outputs])
        mentions = [name for name in self.catalyst.views(analysed) if name in self._registered]
        return Plan(root, schema.names, not builder.retracts(root), tuple(mentions)), schema

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

    def knows(self, names: Iterable[str]) -> bool:
        """Whether relations are still what they were when something that reads them was planned."""
        return all(self._registered.get(name) == self._relation(name) for name in names)

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
