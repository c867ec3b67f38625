"""The small path: a view's change computed in this process, on tables in memory."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Protocol

import numpy as np
import pyarrow as pa

from headwater.change import HASH, WEIGHT
from headwater.operators.accumulate import accumulate, state_schema
from headwater.operators.direct import Unsure
from headwater.operators.direct import evaluate as directly
from headwater.operators.failing import EvaluationFailed, explained, failing, narrowed, set_aside
from headwater.operators.join import Pairs, Side, join
from headwater.operators.keys import hashed_schema, with_hash, without_nulls
from headwater.operators.recompute import Part, output_schema, recompute
from headwater.operators.table import appended
from headwater.state.arrangement import Arrangement
from headwater.state.consolidate import consolidate
from headwater.state.shape import shaped
from headwater.tick.aside import Aside
from headwater.tick.inputs import FromState, Input
from headwater.tick.output import Shown
from headwater.tick.state import TickState
from headwater.views.plan import (
    Aggregate,
    Arranged,
    Constant,
    Fragment,
    Join,
    Keyed,
    Node,
    Recompute,
    Source,
    Union,
)

ROW = "_row"
WEIGHT_FIELD = pa.field(WEIGHT, pa.int64())


class Evaluator(Protocol):
    """Whoever evaluates expressions."""

    def evaluate(self, computing: object, table: pa.Table) -> pa.Table:
        """The computed columns and `_row`, for a table of the inputs and `_row`."""
        ...

    def recompute(self, computing: object, tables: Sequence[pa.Table]) -> pa.Table:
        """What an operator gives for the rows of its inputs: its columns and `_hash`."""
        ...


class Small:
    """Computes one view's change in one tick.

    `inputs` are the changes of relations; on the tick that fills the view those are all of their rows. `last` is
    its last operator, and how the view shows it, if it keeps the rows as that does.
    """

    def __init__(
        self,
        view: str,
        state: TickState,
        evaluator: Evaluator,
        inputs: Mapping[str, Input],
        *,
        filling: bool,
        aside: Aside | None = None,
        last: tuple[Node, Shown] | None = None,
    ) -> None:
        self._aside = aside
        self._last = last
        self._view = view
        self._state = state
        self._evaluator = evaluator
        self._inputs = inputs
        self._filling = filling
        self.rows_read = 0

    def run(self, node: Node) -> pa.Table:  # noqa: PLR0911  one for each operator
        """The change of an operator: its columns and `_weight`, not consolidated."""
        if isinstance(node, Source):
            return self._source(node)
        if isinstance(node, Constant):
            return self._constant(node)
        if isinstance(node, Fragment):
            return applied(node, self.run(node.child), self._evaluator.evaluate, self._aside)
        if isinstance(node, Union):
            return self._union(node)
        if isinstance(node, Join):
            return self._join(node)
        if isinstance(node, Aggregate):
            return self._aggregate(node)
        if isinstance(node, Recompute):
            return self._recompute(node)
        raise TypeError(node)

    def _source(self, node: Source) -> pa.Table:
        table = self._inputs[node.relation].table()
        return shaped(table.select([*node.columns, WEIGHT]), node.schema.append(WEIGHT_FIELD))

    def _constant(self, node: Constant) -> pa.Table:
        rows = node.rows if node.rows is not None else node.schema.empty_table()
        return appended(rows if self._filling else rows.slice(0, 0))

    def _union(self, node: Union) -> pa.Table:
        schema = node.schema.append(WEIGHT_FIELD)
        return pa.concat_tables([shaped(self.run(child), schema) for child in node.inputs])

    def by_key(self, keyed: Keyed) -> pa.Table:
        """The change of a subplan by its key, consolidated."""
        change = self.run(keyed.node)
        present = without_nulls(change, keyed.key) if keyed.drops else change
        return consolidate(with_hash(present, keyed.key, matches=keyed.matches))

    def _arranged(self, place: str, keyed: Keyed, *, kept: bool = True) -> tuple[pa.Table, Arrangement]:
        """The change of an input by its key, and its rows before; kept for the next tick, if nobody else does."""
        if isinstance(keyed.node, Arranged):
            given = self._inputs[keyed.node.relation]
            assert isinstance(given, FromState)
            return given.arranged(keyed.node)
        change, arrangement = self.by_key(keyed), f"{self._view}/{place}"
        old = self._state.before(arrangement, hashed_schema(keyed.node.schema))
        if change.num_rows and kept:
            self._state.add(arrangement, change)
        return change, old

    def _join(self, node: Join) -> pa.Table:
        sides = []
        for place, keyed in node.keyed.items():
            change, old = self._arranged(place, keyed)
            sides.append(Side(without_nulls(change, keyed.key), old, keyed.key))
        parts, read = join(sides[0], sides[1], node.schema)
        self.rows_read += read
        return pa.concat_tables([part.table() for part in parts])

    def _aggregate(self, node: Aggregate) -> pa.Table:
        arrangement = f"{self._view}/{node.name}"
        change = with_hash(self.run(node.child), node.keys)
        state, result, read = accumulate(node, change, self._state.before(arrangement, state_schema(node)))
        self.rows_read += read
        if state.num_rows:
            self._state.add(arrangement, state)
        return result.drop_columns([HASH])

    def _recompute(self, node: Recompute) -> pa.Table:
        kept = not node.forgets
        parts = [Part(*self._arranged(place, keyed, kept=kept)) for place, keyed in node.keyed.items()]
        old, arrangement = self._emitted(node)
        evaluate = partial(self._evaluator.recompute, node.computing)
        result, read = recompute(node, parts, old, evaluate, filling=self._filling)
        self.rows_read += read
        if result.num_rows and arrangement is not None:
            self._state.add(arrangement, result)
        return result.drop_columns([HASH])

    def _emitted(self, node: Recompute) -> tuple[Arrangement, str | None]:
        """What an operator has emitted, and where that is kept: nowhere, if the view itself shows it."""
        if self._last is not None and self._last[0] is node:
            shown = self._last[1]
            if (emitted := shown.emitted(node)) is not None:
                schema, columns = emitted
                return self._state.before(self._view, shown.schema).select(columns, schema), None
        arrangement = f"{self._view}/{node.name}.result"
        return self._state.before(arrangement, output_schema(node)), arrangement


def applied(
    node: Fragment,
    table: pa.Table | Pairs,
    evaluate: Callable[[object, pa.Table], pa.Table],
    aside: Aside | None = None,
) -> pa.Table:
    """A fragment over a table with `_weight`: computed columns by `evaluate`, the others passed on.

    Rows for which an expression has no value go `aside`, if that is given; else the error names one of them.
    """
    table = without_nulls(table, node.present)
    if aside is not None and node.computes:
        table = aside.left(table, node.child.output)
    schema = node.schema.append(WEIGHT_FIELD)
    if not table.num_rows:
        return schema.empty_table()

    def computed(rows: pa.Table) -> pa.Table:
        numbers = pa.array(np.arange(rows.num_rows))
        columns = [*(rows.column(name) for name in node.inputs), numbers]
        given = pa.table(columns, names=[*node.inputs, ROW])
        if node.direct is not None:
            with suppress(Unsure):
                return directly(node.direct, given)
        return evaluate(node.computing, given)

    made = None
    if node.computes:
        try:
            made = computed(table)
        except EvaluationFailed as error:
            if aside is None:
                raise explained(error, narrowed(table, failing(computed)), node.child.output) from error
            good, letters = set_aside(table, computed, node.child.output)
            aside.put(letters)
            return applied(node, good, evaluate)
    columns = {}
    if made is not None:
        columns = {name: made.column(name) for name in made.column_names if name != ROW}
        if not _all_rows(made.column(ROW), table.num_rows):
            if isinstance(table, pa.Table):
                table = table.select(list({old: 0 for _, old in node.passed} | {WEIGHT: 0}))
            table = table.take(made.column(ROW))
    columns |= {new: table.column(old) for new, old in node.passed} | {WEIGHT: table.column(WEIGHT)}
    return pa.Table.from_arrays([columns[name] for name in schema.names], schema=schema)


def _all_rows(taken: pa.ChunkedArray, count: int) -> bool:
    return len(taken) == count and bool(np.array_equal(taken.to_numpy(), np.arange(count)))
