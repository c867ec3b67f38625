"""Fragments evaluated by Spark on a table in memory.

Projections and filters are evaluated by Spark's own optimiser rule for local data: no job, no analysis, no
planning. Generators and user functions run as a job over the same local data.
"""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any

import pyarrow as pa
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from headwater.change import HASH
from headwater.errors import HeadwaterError
from headwater.operators.failing import EvaluationFailed
from headwater.operators.recompute import PLACE
from headwater.spark.catalyst import Catalyst, Java, module, number
from headwater.spark.fragment import ROW, Computing
from headwater.spark.quiet import quiet
from headwater.spark.recomputing import Leaf, Recomputing, filled
from headwater.state.shape import shaped
from headwater.views.plan import Fields

_BATCH_ROWS = 100_000
_OURS = re.compile(r"headwater\.[\w.]*?(\w+): ")
_OUR_CODE = re.compile(r"headwater/(tick|state|log|operators)/")
_WITH_CLASS = re.compile(r"\[(?!INTERNAL_ERROR)[A-Z_0-9.]+\]")
_OF_DATA = re.compile(
    r"(Arithmetic|NumberFormat|DateTime\w*|IllegalArgument|\w*IndexOutOfBounds|NoSuchElement|UnsupportedOperation|"
    r"PatternSyntax|SparkRuntime|Python)Exception$"
)
"""What goes wrong because of the rows, rather than with a disk, a worker or the memory."""


class Evaluator:
    """Evaluates in one session. Safe for threads."""

    def __init__(self, catalyst: Catalyst, *, folder: str | None = None) -> None:
        self._catalyst = catalyst
        self._folder = tempfile.mkdtemp(prefix="headwater-", dir=folder)
        self.queries = 0

    def evaluate(self, computing: Computing, table: pa.Table) -> pa.Table:
        """The computed columns and `_row` for a table of the fragment's inputs and `_row`."""
        catalyst = self._catalyst
        catalyst.activate()
        self.queries += 1
        try:
            with quiet():
                plan = self._relation(computing, table)
                for step in computing.steps:
                    plan = catalyst.with_child(step, plan)
                    if computing.plain:
                        plan = catalyst.evaluated(plan)
                return self._collected(plan, computing)
        except (Py4JJavaError, PySparkException) as error:
            raise evaluation_failed(error) from error

    def query(self, computing: Computing | Recomputing) -> Java:
        """What is evaluated, as a plan over no rows."""
        if isinstance(computing, Recomputing):
            return computing.operator
        plan = self._catalyst.local(self._catalyst.sequence(computing.attributes))
        for step in computing.steps:
            plan = self._catalyst.with_child(step, plan)
        return plan

    def recompute(self, computing: Recomputing, tables: Sequence[pa.Table]) -> pa.Table:
        """What an operator gives for the rows of its inputs: its columns and `_hash`."""
        self.queries += 1
        self._catalyst.activate(self._catalyst.apart)
        try:
            with quiet():
                leaves = {
                    number(leaf.place): self._leaf(leaf, table)
                    for leaf, table in zip(computing.leaves, tables, strict=True)
                }
                plan = filled(self._catalyst, computing.operator, leaves)
                return self._recomputed(plan, computing)
        except (Py4JJavaError, PySparkException) as error:
            raise evaluation_failed(error) from error

    def _recomputed(self, plan: Java, computing: Recomputing) -> pa.Table:
        executed = self._catalyst.executable(plan, self._catalyst.apart)
        wanted = pa.schema([*(each.arrow for each in computing.outputs), pa.field(HASH, pa.int64())])
        rows = executed.executeToIterator()
        return to_arrow(self._catalyst, rows, executed.schema(), wanted, self._temporary())

    def check(self, computing: Recomputing) -> None:
        """An error if Spark cannot run an operator, whatever its rows."""
        self._catalyst.activate(self._catalyst.apart)
        try:
            self._catalyst.executable(computing.operator, self._catalyst.apart)
        except (Py4JJavaError, PySparkException) as error:
            raise evaluation_failed(error) from error

    def _leaf(self, leaf: Leaf, table: pa.Table) -> Java:
        catalyst = self._catalyst
        columns = [*(each.name for each in leaf.columns), HASH, PLACE]
        given = self._frame(table.select(columns), leaf.types).queryExecution().analyzed()
        if given.nodeName() == "LocalRelation":
            return catalyst.together(catalyst.local(catalyst.sequence(leaf.attributes), given.data()))
        return catalyst.together(catalyst.renamed(given, leaf.attributes))

    def _relation(self, computing: Computing, table: pa.Table) -> Java:
        rows = self._frame(table, computing.types).queryExecution().analyzed().data()
        return self._catalyst.local(self._catalyst.sequence(computing.attributes), rows)

    def _frame(self, table: pa.Table, types: str) -> Java:
        """An Arrow table as a frame of Spark's."""
        path = self._temporary()
        with pa.OSFile(path, "wb") as file, pa.ipc.new_stream(file, table.schema) as stream:
            # Spark takes an empty batch for the end of the data, so there must be none among the others.
            stream.write_table(table.combine_chunks(), max_chunksize=_BATCH_ROWS)
        try:
            tools = self._catalyst.jvm.org.apache.spark.sql.api.python.PythonSQLUtils
            return tools.toDataFrame(tools.readArrowStreamFromFile(path), types, self._catalyst.session)
        finally:
            os.unlink(path)

    def _temporary(self) -> str:
        handle, path = tempfile.mkstemp(dir=self._folder)
        os.close(handle)
        return path

    def _collected(self, plan: Java, computing: Computing) -> pa.Table:
        fields = pa.schema([*(each.arrow for each in computing.outputs), pa.field(ROW, pa.int64())])
        rows = plan.data().iterator() if computing.plain else _collect(self._catalyst, plan)
        return to_arrow(self._catalyst, rows, plan.schema(), fields, self._temporary())

    def close(self) -> None:
        """Remove what is left of its files."""
        for name in os.listdir(self._folder):
            os.unlink(os.path.join(self._folder, name))
        os.rmdir(self._folder)


def _collect(catalyst: Catalyst, plan: Java) -> Java:
    """The rows of a plan, by a job."""
    return catalyst.frame(plan).queryExecution().executedPlan().executeToIterator()


def to_arrow(catalyst: Catalyst, rows: Java, schema: Java, wanted: pa.Schema, path: str) -> pa.Table:
    """Spark's rows as an Arrow table, through a file: much faster than through the gateway."""
    jvm = catalyst.jvm
    converters = module(jvm.org.apache.spark.sql.execution.arrow, "ArrowConverters")
    batches = converters.toBatchIterator(rows, schema, _BATCH_ROWS, "UTC", False, False, None)
    stream = jvm.java.io.BufferedOutputStream(jvm.java.io.FileOutputStream(path))
    writer = jvm.org.apache.spark.sql.execution.arrow.ArrowBatchStreamWriter(schema, stream, "UTC", False, False)
    try:
        writer.writeBatches(batches)
        writer.end()
        stream.close()
        with pa.OSFile(path) as file:
            table = pa.ipc.open_stream(file).read_all()
    finally:
        os.unlink(path)
    return shaped(table, wanted)


def rows_of(catalyst: Catalyst, plan: Java, fields: Fields) -> pa.Table:
    """The rows that a query itself holds."""
    schema = pa.schema([each.arrow for each in fields])
    handle, path = tempfile.mkstemp(prefix="headwater-")
    os.close(handle)
    return to_arrow(catalyst, _collect(catalyst, plan), plan.schema(), schema, path)


def evaluation_failed(error: Any) -> HeadwaterError:
    """Spark's own reason why an expression has no value: `EvaluationFailed`, unless something else went wrong."""
    lines = [line for line in _cause(error).splitlines() if line.strip()]
    if any(line.startswith("Traceback ") for line in lines):  # of a Python worker
        said = [line for line in lines if not line.startswith((" ", "Traceback "))][-1].strip()
        if found := _OURS.match(said):
            what, _, row = said[found.end() :].partition(", for the row ")
            return EvaluationFailed(what, row=row) if found[1] == "EvaluationFailed" else HeadwaterError(what)
        return HeadwaterError(said) if any(map(_OUR_CODE.search, lines)) else EvaluationFailed(said)
    what = _first(lines) or "evaluation failed"
    kind = EvaluationFailed if _WITH_CLASS.match(what) or _OF_DATA.search(_class(error)) else HeadwaterError
    return kind(what, where=_expression(lines))


def _class(error: Any) -> str:
    return str(_root(error).getClass().getName()) if isinstance(error, Py4JJavaError) else type(error).__name__


def _root(error: Py4JJavaError) -> Any:
    cause = error.java_exception
    while cause.getCause() is not None:
        cause = cause.getCause()
    return cause


def _cause(error: Any) -> str:
    if isinstance(error, Py4JJavaError):
        cause = _root(error)
        return str(cause.getMessage() or cause.toString())
    return str(error)


def _first(lines: Iterable[str]) -> str:
    return next((line.split(" SQLSTATE")[0].strip() for line in lines), "")


def _expression(lines: list[str]) -> str:
    """The line of the query above Spark's `^^^` marks."""
    for before, line in pairwise(lines):
        if line.strip() and set(line.strip()) == {"^"}:
            start = line.index("^")
            return before[start : start + line.count("^")]
    return ""
