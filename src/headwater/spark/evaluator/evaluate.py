"""Fragments evaluated by Spark on a table in memory.

Projections and filters are evaluated by Spark's own optimiser rule for local data: no job, no analysis, no
planning. Generators and user functions run as a job over the same local data.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from headwater.attempt import go_on
from headwater.change import HASH
from headwater.change.gather import batches_of
from headwater.change.shape import shaped
from headwater.evaluation import PLACE, ROW
from headwater.evaluation.errors import TooMuchOfOne
from headwater.memory import TooLarge, check_fits
from headwater.plan.operators import Fields
from headwater.spark.catalyst import Catalyst, Java, module, number
from headwater.spark.evaluator.computing import Computing, Leaf, Recomputing, filled
from headwater.spark.evaluator.failure import SPARKS, evaluation_failed, interruptible
from headwater.spark.session.quiet import quiet
from headwater.spark.single_partition import SinglePartition

_BATCH_ROWS = 100_000
_PART, _ROW_BYTES, _COLUMN_BYTES = 4, 32, 8
"""This part of Java's memory may be filled by rows that a query gives, which take about so much."""


class SparkEvaluator:
    """Evaluates in one session. Safe for threads."""

    def __init__(self, catalyst: Catalyst, single: SinglePartition, *, folder: str | None = None) -> None:
        self._catalyst = catalyst
        self._single = single
        self._folder = tempfile.mkdtemp(prefix="headwater-", dir=folder)
        self.queries = 0

    def evaluate(self, computing: Computing, table: pa.Table) -> pa.Table:
        """The computed columns and `_row` for a table of the fragment's inputs and `_row`."""
        go_on()
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
        except SPARKS as error:
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
        interruptible(self._catalyst.spark)
        self.queries += 1
        self._single.activate()
        try:
            with quiet():
                leaves = {
                    number(leaf.place): self._leaf(leaf, table)
                    for leaf, table in zip(computing.leaves, tables, strict=True)
                }
                plan = filled(self._catalyst, computing.operator, leaves)
                return self._recomputed(plan, computing)
        except SPARKS as error:
            raise evaluation_failed(error) from error

    def _recomputed(self, plan: Java, computing: Recomputing) -> pa.Table:
        wanted = pa.schema([*(each.arrow for each in computing.outputs), pa.field(HASH, pa.int64())])
        most = self._most(wanted)
        executed = self._single.executable(self._catalyst.at_most(most, plan))
        rows = executed.executeToIterator()
        made = to_arrow(self._catalyst, rows, executed.schema(), wanted, self._temporary())
        return _not_more(made, most)

    def _most(self, columns: pa.Schema) -> int:
        """How many rows may come of a query at once: before they are rows of ours, they are in Java's memory."""
        return self._catalyst.heap // _PART // (_ROW_BYTES + _COLUMN_BYTES * len(columns))

    def check(self, computing: Recomputing) -> None:
        """An error if Spark cannot run an operator, whatever its rows."""
        self._single.activate()
        try:
            self._single.executable(computing.operator)
        except SPARKS as error:
            raise evaluation_failed(error) from error

    def _leaf(self, leaf: Leaf, table: pa.Table) -> Java:
        catalyst = self._catalyst
        columns = [*(each.name for each in leaf.columns), HASH, PLACE]
        given = self._frame(table.select(columns), leaf.types).queryExecution().analyzed()
        if given.nodeName() == "LocalRelation":
            return self._single.gathered(catalyst.local(catalyst.sequence(leaf.attributes), given.data()))
        return self._single.gathered(catalyst.renamed(given, leaf.attributes))

    def _relation(self, computing: Computing, table: pa.Table) -> Java:
        rows = self._frame(table, computing.types).queryExecution().analyzed().data()
        return self._catalyst.local(self._catalyst.sequence(computing.attributes), rows)

    def _frame(self, table: pa.Table, types: str) -> Java:
        """An Arrow table as a frame of Spark's."""
        path = self._temporary()
        with pa.OSFile(path, "wb") as file, pa.ipc.new_stream(file, table.schema) as stream:
            # Spark takes an empty batch for the end of the data, so there must be none among the others.
            for batch in batches_of(table, _BATCH_ROWS):
                stream.write_batch(batch)
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
        if computing.plain:
            return to_arrow(self._catalyst, plan.data().iterator(), plan.schema(), fields, self._temporary())
        interruptible(self._catalyst.spark)
        most = self._most(fields)
        rows = _collect(self._catalyst, self._catalyst.at_most(most, plan))
        return _not_more(to_arrow(self._catalyst, rows, plan.schema(), fields, self._temporary()), most)

    def close(self) -> None:
        """Remove what is left of its files."""
        shutil.rmtree(self._folder, ignore_errors=True)


def _not_more(rows: pa.Table, most: int) -> pa.Table:
    if rows.num_rows < most:
        return rows
    if ROW in rows.column_names:
        counts = np.bincount(rows.column(ROW).to_numpy())
        if 2 * counts.max() >= most:
            msg = f"{counts.max():,} rows or more come of it, and so many do not fit into memory together"
            raise TooMuchOfOne(msg, place=int(counts.argmax()))
    msg = f"{most:,} rows or more come of few at once, and so many do not fit into memory together"
    raise TooLarge(msg, hint="replace the view by one that makes fewer rows of each")


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
        check_fits(os.path.getsize(path), "rows that Spark gave")
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
