"""The large path: the same operators, over files, by Spark's executors."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from headwater.change import HASH, WEIGHT
from headwater.operators.accumulate import state_schema
from headwater.operators.failing import EvaluationFailed
from headwater.operators.keys import hashed_schema
from headwater.operators.recompute import output_schema
from headwater.read.relation import Relation
from headwater.state.run import HIGHEST, LOWEST, Run
from headwater.tick.aside import Aside
from headwater.tick.inputs import FromState
from headwater.tick.inputs import Input as Given
from headwater.tick.pieces import PIECE_ROWS, Piece, Renamed, Spooled
from headwater.tick.relations import arranged, arrangement_of, hashed
from headwater.tick.small import Evaluator, applied
from headwater.tick.state import TickState
from headwater.tick.tasks import (
    Input,
    Operating,
    Operator,
    Places,
    RecordSpooling,
    Report,
    Spooling,
    Taken,
    portable,
    records_schema,
    run_of,
    shares,
    spooled,
)
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

State = tuple[str, pa.Schema] | None
"""The name and the columns of what is kept of an input for the next tick; None if others keep it."""
RECOMPUTED_ROWS = 100_000
"""So many rows at most are evaluated anew at a time, unless one key has more."""


class Stages(Protocol):
    """Whoever runs functions on executors."""

    @property
    def workers(self) -> int:
        """How many tasks run at once."""
        ...

    def each(self, function: Callable[[Any], Any], items: list[Any]) -> list[Any]:
        """The function's result for every item."""
        ...

    def compute(
        self,
        computing: Any,
        inputs: Callable[[Any], Iterator[pa.RecordBatch]],
        results: Callable[[Any], Any],
        items: list[Any],
    ) -> list[Any]:
        """Evaluate a fragment between loading rows and taking results."""
        ...


class Large:
    """Computes one relation's change in one tick by stages of tasks."""

    def __init__(
        self,
        name: str,
        state: TickState,
        stages: Stages,
        evaluator: Evaluator,
        places: Places,
        inputs: Mapping[str, Given],
        *,
        filling: bool,
        small_rows: int,
        aside: Aside | None = None,
    ) -> None:
        self._aside = aside
        self._name = name
        self._state = state
        self._stages = stages
        self._evaluator = evaluator
        self._small_rows = small_rows
        self._places = places
        self._inputs = inputs
        self._filling = filling
        self.rows_read = 0

    # -- whole relations

    def view(self, relation: Relation, root: Node) -> None:
        """Compute a view's change and add it to its rows."""
        runs = self._spool(root, tuple(_named(root, relation, hashed(relation))), consolidated=True)
        given = Input(hashed_schema(root.schema), runs, self._held(self._name, arranged(relation)))
        self._operate(portable(relation), [given], [(self._name, arranged(relation))])

    def shared(self, keyed: Keyed) -> None:
        """Compute the change of what views share, and add it to its rows.

        If each worker has a few pieces, what it spools is a run of the state already.
        """
        schema = hashed_schema(keyed.node.schema)
        pieces, fragment = self._pieces(keyed.node)
        lasting = _needed(pieces) <= self._stages.workers
        spooling = Spooling(
            self._places,
            pieces,
            fragment,
            keyed.key,
            keyed.drops,
            keyed.matches,
            consolidated=True,
            lasting=lasting,
        )
        runs = self._spooled(spooling)
        if lasting:
            self._state.add_runs(self._name, schema, runs)
        else:
            self._operate(portable(keyed), [Input(schema, runs)], [(self._name, schema)])

    def table(self, relation: Relation, extents: Sequence[Any]) -> None:
        """Take records into a table."""
        spooling = RecordSpooling(self._places, portable(relation), tuple(extents))
        reports = self._stages.each(spooling.share, shares(len(extents), self._stages.workers))
        name, schema = arrangement_of(relation), arranged(relation)
        given = Input(records_schema(relation), spooled(reports), self._held(name, schema))
        self._operate(portable(relation), [given], [(name, schema)])

    # -- operators

    def _run(self, node: Node) -> list[Piece]:  # noqa: PLR0911  one for each operator
        """The change of an operator, as pieces with its columns."""
        if isinstance(node, Source):
            return [Renamed(piece, node.columns, node.schema) for piece in self._inputs[node.relation].pieces()]
        if isinstance(node, Constant):
            return self._constant(node)
        if isinstance(node, Fragment):
            return self._spooled_pieces(self._spool(node, ()), node.schema)
        if isinstance(node, Union):
            return [
                Renamed(piece, tuple(each.name for each in child.output), node.schema)
                for child in node.inputs
                for piece in self._run(child)
            ]
        if isinstance(node, Join):
            return self._join(node)
        if isinstance(node, Recompute):
            return self._recompute(node)
        assert isinstance(node, Aggregate)
        return self._aggregate(node)

    def _constant(self, node: Constant) -> list[Piece]:
        rows = node.rows
        if rows is None or not rows.num_rows or not self._filling:
            return []
        ones, zeros = (pa.array(np.full(rows.num_rows, value, np.int64)) for value in (1, 0))
        table = rows.append_column(HASH, zeros).append_column(WEIGHT, ones)
        return self._spooled_pieces((self._places.spool(table),), rows.schema)

    def _spooled_pieces(self, runs: Sequence[Run], columns: pa.Schema) -> list[Piece]:
        return [Spooled(self._places.scratch, hashed_schema(columns), run) for run in runs]

    def _held(self, name: str, schema: pa.Schema) -> tuple[Run, ...]:
        return self._state.before(name, schema).runs

    def _by_key(self, keyed: Keyed) -> tuple[Run, ...]:
        return self._spool(keyed.node, keyed.key, drop_nulls=keyed.drops, matches=keyed.matches)

    def _arranged(self, place: str, keyed: Keyed) -> tuple[Input, State]:
        """The change of an input by its key with its rows before, and where it is kept for the next tick."""
        node, schema = keyed.node, hashed_schema(keyed.node.schema)
        if isinstance(node, Arranged):
            given = self._inputs[node.relation]
            assert isinstance(given, FromState)
            taken = Taken(given.held.schema, node.columns)
            return Input(schema, given.runs, given.held.runs, taken), None
        name = f"{self._name}/{place}"
        return Input(schema, self._by_key(keyed), self._held(name, schema)), (name, schema)

    def _join(self, node: Join) -> list[Piece]:
        inputs, states = zip(*(self._arranged(*each) for each in node.keyed.items()), strict=True)
        reports = self._operate(portable(node), inputs, states)
        return self._spooled_pieces(_results(reports), node.schema)

    def _aggregate(self, node: Aggregate) -> list[Piece]:
        name, schema = f"{self._name}/{node.name}", state_schema(node)
        change = self._spool(node.child, node.keys)
        given = Input(hashed_schema(node.child.schema), change, self._held(name, schema))
        reports = self._operate(portable(node), [given], [(name, schema)], whole=not node.keys)
        return self._spooled_pieces(_results(reports), node.schema)

    def _recompute(self, node: Recompute) -> list[Piece]:
        name, schema = f"{self._name}/{node.name}.result", output_schema(node)
        inputs, states = zip(*(self._arranged(*each) for each in node.keyed.items()), strict=True)
        inputs, states = (*inputs, Input(schema, (), self._held(name, schema))), (*states, (name, schema))
        reports = self._operate(node, inputs, states, whole=node.is_whole)
        return self._spooled_pieces(_results(reports), node.schema)

    # -- stages

    def _spool(
        self,
        node: Node,
        key: tuple[str, ...],
        *,
        drop_nulls: bool = False,
        matches: bool = False,
        consolidated: bool = False,
    ) -> tuple[Run, ...]:
        """An operator's change as runs sorted by the hash of a key."""
        pieces, fragment = self._pieces(node)
        return self._spooled(Spooling(self._places, pieces, fragment, key, drop_nulls, matches, consolidated))

    def _pieces(self, node: Node) -> tuple[tuple[Piece, ...], Fragment | None]:
        """An operator's change as pieces, and a fragment that is still to be applied to them."""
        fragment = node if isinstance(node, Fragment) else None
        return tuple(self._run(fragment.child if fragment is not None else node)), fragment

    def _spooled(self, spooling: Spooling) -> tuple[Run, ...]:
        """What is spooled, here or by executors."""
        pieces, fragment = spooling.pieces, spooling.fragment
        if not pieces:
            return ()
        if sum(piece.rows for piece in pieces) <= self._small_rows:
            return spooled([spooling.finished([self._here(fragment, piece.load()) for piece in pieces])])
        shipped = replace(spooling, fragment=portable(fragment)) if fragment is not None else spooling
        dealt = shares(len(pieces), max(self._stages.workers, _needed(pieces)))
        if fragment is None or fragment.computing is None:
            return spooled(self._stages.each(shipped.share, dealt))
        if self._aside is None or self._aside.is_empty:
            try:
                return spooled(self._stages.compute(fragment.computing, shipped.inputs, shipped.results, dealt))
            except EvaluationFailed:
                pass  # so it does here, where the row can be told, or set aside
        return spooled([spooling.finished([self._here(fragment, piece.load())]) for piece in pieces])

    def _here(self, fragment: Fragment | None, table: pa.Table) -> pa.Table:
        """A little in between is not worth a stage."""
        return table if fragment is None else applied(fragment, table, self._evaluator.evaluate, self._aside)

    def _operate(
        self,
        node: Operator,
        inputs: Sequence[Input],
        states: Sequence[State],
        *,
        whole: bool = False,
    ) -> list[Report]:
        """Run a stateful operator over ranges of hashes, and add what it made to the state."""
        given = tuple(inputs)
        if not whole and not any(each.change for each in given):
            return []
        rows = sum(run.rows for each in given for run in each.change)
        reports: list[Report]
        if isinstance(node, Recompute):
            reports = self._recomputed(node, given, rows)
        elif rows <= self._small_rows:
            reports = [Operating(self._places, given, node).range(LOWEST, HIGHEST)]
        else:
            operating = Operating(self._places, given, node)
            ranges = [(LOWEST, HIGHEST)] if whole else _ranges(max(self._stages.workers, rows // PIECE_ROWS))
            reports = self._stages.each(lambda bounds: operating.range(*bounds), ranges)
        for number, kept in enumerate(states):
            runs = [Run.from_dict(made) for report in reports if (made := report["state"][number]) is not None]
            if runs and kept is not None:
                self._state.add_runs(*kept, runs)
        self.rows_read += sum(report["read"] for report in reports)
        return reports

    def _recomputed(self, node: Recompute, given: tuple[Input, ...], rows: int) -> list[Report]:
        """Spark evaluates what this process gives it, some ranges at a time."""
        evaluate = partial(self._evaluator.recompute, node.computing)
        operating = Operating(self._places, given, node, self._filling, evaluate)
        held = sum(run.rows for each in given for run in each.held)
        ranges = [(LOWEST, HIGHEST)]
        if not node.is_whole and rows > self._small_rows:
            ranges = _ranges(max(self._stages.workers, (rows + held) // RECOMPUTED_ROWS))
        with ThreadPoolExecutor(self._stages.workers) as threads:
            return list(threads.map(lambda bounds: operating.range(*bounds), ranges))


def _results(reports: Sequence[Report]) -> list[Run]:
    return [run for report in reports if (run := run_of(report, "result")) is not None]


def _named(root: Node, relation: Relation, key: Sequence[str]) -> Iterator[str]:
    """The columns of a plan that become these columns of the view."""
    places = {name: place for place, name in enumerate(relation.columns.names)}
    for name in key:
        yield root.output[places[name]].name


def _needed(pieces: Sequence[Piece]) -> int:
    return sum(piece.rows for piece in pieces) // PIECE_ROWS


def _ranges(count: int) -> list[tuple[int, int]]:
    """The space of hashes in about so many ranges of the same size."""
    bits = max(1, (count - 1).bit_length())
    step = 1 << (64 - bits)
    return [(LOWEST + number * step, LOWEST + (number + 1) * step - 1) for number in range(1 << bits)]
