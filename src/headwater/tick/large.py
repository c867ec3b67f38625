"""The large path: the same operators, over files, by Spark's executors."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from headwater.change import HASH, WEIGHT
from headwater.operators.accumulate import adds_up, partial_schema, state_schema
from headwater.operators.failing import EvaluationFailed
from headwater.operators.keys import hashed_schema
from headwater.operators.recompute import output_schema
from headwater.read.relation import Relation
from headwater.state.run import HIGHEST, LOWEST, Run
from headwater.tick.aside import Aside
from headwater.tick.inputs import FromState
from headwater.tick.inputs import Input as Given
from headwater.tick.operating import Input, Operating, Operator, Taken, portable, records_schema
from headwater.tick.output import Shown, last_operator
from headwater.tick.pieces import PIECE_ROWS, Piece, Renamed, Spooled
from headwater.tick.relations import arranged, arrangement_of, hashed
from headwater.tick.small import Evaluator, applied
from headwater.tick.spooling import (
    LEFT,
    Places,
    RecordSpooling,
    Report,
    Spooling,
    run_of,
    share_of_hashes,
    shares,
    spooled,
)
from headwater.tick.state import TickState
from headwater.views.plan import (
    Aggregate,
    Arranged,
    Constant,
    First,
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
Flow = Spooling | tuple[Run, ...]
"""A change that is to be spooled, or is already."""
_AGGREGATED_PIECES = 4
"""So many pieces at a time are accumulated by a task: fewer parts have fewer groups in common."""
_STATEFUL = (Join, Aggregate, Recompute)
_RANGES, _RANGE_ROWS = 32, 2_000_000
"""So many ranges of hashes are enough, unless one has more rows than this: every tick looks into each of them."""
RECOMPUTED_ROWS = 100_000
"""So many rows at most are evaluated anew at a time in this process, unless one key has more."""
_RECOMPUTED_OF = 1_000_000
"""Of so many rows that are kept an executor looks at those of touched keys, at a time."""


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

    def recompute(
        self,
        computing: Any,
        inputs: Callable[[Any, int], pa.Table],
        results: Callable[[Any, pa.Table], Any],
        items: list[Any],
    ) -> list[Any]:
        """Evaluate an operator for every item: `inputs` loads the rows of each of its inputs, told by place."""
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
        self._spools_at_once, self._spooled_at_once = aside is None, False
        self.rows_read = 0

    # -- whole relations

    def growing_view(self, relation: Relation, root: Node) -> None:
        """Compute the new rows of a view of which none ever disappears, and add them as they come."""
        self._at_once(arranged(relation), lambda: self._growing_view(relation, root))

    def _growing_view(self, relation: Relation, root: Node) -> None:
        spooling = Spooling(self._places, (), grows=arranged(relation))
        self._state.add_runs(self._name, arranged(relation), self._spooled(self._flow(root, spooling)))

    def view(self, relation: Relation, root: Node) -> None:
        """Compute a view's change and add it to its rows."""
        self._at_once(arranged(relation), lambda: self._view(relation, root))

    def _at_once(self, schema: pa.Schema, compute: Callable[[], None]) -> None:
        """Compute with operators that spool for the next one; if that fails, without, so that a row can be told."""
        try:
            compute()
        except EvaluationFailed:
            if not self._spooled_at_once:
                raise
            self._spools_at_once = self._spooled_at_once = False
            self._state.discard(self._name)
            if self._filling:
                self._state.touch(self._name, schema)
            compute()

    def _view(self, relation: Relation, root: Node) -> None:
        found = last_operator(root, relation)
        if found is not None:
            operator, shown = found
            if isinstance(operator, Aggregate):
                reports = self._aggregated(operator, shown)
            else:
                reports = self._recomputing(operator, shown)
            self._state.add_runs(self._name, shown.schema, _runs(reports, "shown"))
            return
        key = tuple(_named(root, relation, hashed(relation)))
        runs = self._spooled(self._flow(root, Spooling(self._places, key, consolidated=True)))
        given = Input(hashed_schema(root.schema), runs, self._held(self._name, arranged(relation)))
        self._operate(portable(relation), [given], [(self._name, arranged(relation))])

    def shared(self, keyed: Keyed) -> None:
        """Compute the change of what views share, and add it to its rows.

        If each worker has a few pieces, what it spools is a run of the state already.
        """
        self._at_once(hashed_schema(keyed.node.schema), lambda: self._shared(keyed))

    def _shared(self, keyed: Keyed) -> None:
        node, schema = keyed.node, hashed_schema(keyed.node.schema)
        if isinstance(node, Aggregate) and node.keys == keyed.key and not keyed.drops and not keyed.matches:
            reports = self._aggregated(node, Shown(tuple(node.schema.names), schema))
            self._state.add_runs(self._name, schema, _runs(reports, "shown"))
            return
        pieces, fragment = self._pieces(node)
        lasting = _needed(pieces) <= self._stages.workers
        spooling = replace(self._by(keyed), consolidated=True, lasting=lasting, pieces=pieces, fragment=fragment)
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

    def _run(self, node: Node) -> list[Piece]:
        """The change of an operator, as pieces with its columns."""
        if isinstance(node, Source):
            return [Renamed(piece, node.columns, node.schema) for piece in self._inputs[node.relation].pieces()]
        if isinstance(node, Constant):
            return self._constant(node)
        if isinstance(node, Fragment):
            made = self._spooled(self._flow(node, Spooling(self._places, ())))
            return self._spooled_pieces(made, node.schema)
        if isinstance(node, Union):
            return [
                Renamed(piece, tuple(each.name for each in child.output), node.schema)
                for child in node.inputs
                for piece in self._run(child)
            ]
        return self._spooled_pieces(_runs(self._operated(node), "result"), node.schema)

    def _operated(self, node: Node, then: Spooling | None = None) -> list[Report]:
        """What an operator with a state makes of its change; spooled for the next at once, if that is possible."""
        if isinstance(node, Join):
            return self._joined(node, then)
        if isinstance(node, Recompute):
            return self._recomputing(node, then=then)
        assert isinstance(node, Aggregate)
        return self._aggregated(node, then=then)

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

    def _by(self, keyed: Keyed) -> Spooling:
        return Spooling(self._places, keyed.key, keyed.drops, keyed.matches)

    def _arranged(self, place: str, keyed: Keyed, first: First | None = None) -> tuple[Input, State]:
        """The change of an input by its key with its rows before, and where it is kept for the next tick."""
        node, schema = keyed.node, hashed_schema(keyed.node.schema)
        if isinstance(node, Arranged):
            given = self._inputs[node.relation]
            assert isinstance(given, FromState)
            taken = Taken(given.held.schema, node.columns)
            return Input(schema, given.runs, given.held.runs, taken), None
        name = f"{self._name}/{place}"
        change = self._spooled(self._flow(keyed.node, replace(self._by(keyed), first=first)))
        return Input(schema, change, self._held(name, schema)), (name, schema)

    def _joined(self, node: Join, then: Spooling | None) -> list[Report]:
        inputs, states = zip(*(self._arranged(*each) for each in node.keyed.items()), strict=True)
        return self._operate(portable(node), inputs, states, then=then)

    def _aggregated(
        self, node: Aggregate, shown: Shown | None = None, then: Spooling | None = None
    ) -> list[Report]:
        """Add the change to the groups: what it adds to the accumulators, or else row by row."""
        name, schema = f"{self._name}/{node.name}", state_schema(node)
        aggregate = portable(node) if adds_up(node) else None
        flow = self._flow(node.child, Spooling(self._places, node.keys, aggregate=aggregate))

        def operated(given: Input) -> list[Report]:
            held = replace(given, held=self._held(name, schema))
            kept = [(name, schema)]
            return self._operate(portable(node), [held], kept, whole=not node.keys, shown=shown, then=then)

        if aggregate is not None:
            try:
                return operated(Input(partial_schema(node), self._spooled(flow), is_partial=True))
            except EvaluationFailed:  # so it does with the rows themselves, and one of them can be told
                if not isinstance(flow, Spooling):
                    raise
                flow = replace(flow, aggregate=None)
        return operated(Input(hashed_schema(node.child.schema), self._spooled(flow)))

    def _recomputing(
        self, node: Recompute, shown: Shown | None = None, then: Spooling | None = None
    ) -> list[Report]:
        result, kept = self._emitted(node, shown)
        first = node.first if node.forgets else None  # then rows only come
        inputs, states = zip(*(self._arranged(*each, first) for each in node.keyed.items()), strict=True)
        inputs, states = (*inputs, result), (*states, kept)
        operator = node if node.first is None else portable(node)
        return self._operate(operator, inputs, states, whole=node.is_whole, shown=shown, then=then)

    def _emitted(self, node: Recompute, shown: Shown | None) -> tuple[Input, State]:
        """What an operator has emitted, and where that is kept: nowhere, if the view itself shows it."""
        if shown is not None and (emitted := shown.emitted(node)) is not None:
            schema, columns = emitted
            return Input(schema, (), self._held(self._name, shown.schema), Taken(shown.schema, columns)), None
        name, schema = f"{self._name}/{node.name}.result", output_schema(node)
        return Input(schema, (), self._held(name, schema)), (name, schema)

    # -- stages

    def _flow(self, node: Node, spooling: Spooling) -> Flow:
        """An operator's change on its way to be spooled; it is already, if the one that makes it could do so."""
        fragment = node if isinstance(node, Fragment) else None
        child = fragment.child if fragment is not None else node
        direct = fragment is None or not fragment.computes or fragment.direct is not None
        if isinstance(child, _STATEFUL) and direct and self._spools_at_once:
            then = spooling if fragment is None else replace(spooling, fragment=portable(fragment))
            reports = self._operated(child, then)
            made = _runs(reports, "result")
            if not made:
                self._spooled_at_once = True
                return spooled([report["then"] for report in reports if report["then"] is not None])
            pieces = tuple(self._spooled_pieces(made, child.schema))
        else:
            pieces = tuple(self._run(child))
        return replace(spooling, pieces=pieces, fragment=fragment)

    def _pieces(self, node: Node) -> tuple[tuple[Piece, ...], Fragment | None]:
        """An operator's change as pieces, and a fragment that is still to be applied to them."""
        fragment = node if isinstance(node, Fragment) else None
        return tuple(self._run(fragment.child if fragment is not None else node)), fragment

    def _spooled(self, flow: Flow) -> tuple[Run, ...]:
        """What is spooled, here or by executors."""
        if not isinstance(flow, Spooling):
            return flow
        spooling, pieces, fragment = flow, flow.pieces, flow.fragment
        if not pieces:
            return ()
        if sum(piece.rows for piece in pieces) <= self._small_rows:
            return spooled([spooling.finished([self._here(fragment, piece.load()) for piece in pieces])])
        dealt = shares(len(pieces), max(self._stages.workers, _needed_to_spool(spooling)))
        shipped = replace(spooling, tasks=len(dealt))
        if fragment is not None:
            shipped = replace(shipped, fragment=portable(fragment))
        if fragment is None or not fragment.computes:
            return spooled(self._stages.each(shipped.share, dealt))
        if self._aside is None or self._aside.is_empty:
            with suppress(EvaluationFailed):  # so it does here, where the row can be told, or set aside
                return spooled(self._computed(fragment, shipped, dealt))
        apart = replace(spooling, tasks=len(pieces))
        parts = enumerate(pieces)
        return spooled([apart.finished([self._here(fragment, piece.load())], number) for number, piece in parts])

    def _computed(self, fragment: Fragment, shipped: Spooling, dealt: list[list[int]]) -> list[Report]:
        """Shares whose expressions need no Spark, and then the others."""
        reports = [LEFT] * len(dealt)
        if fragment.direct is not None:
            reports = self._stages.each(shipped.share, dealt)
        left = [share for share, report in zip(dealt, reports, strict=True) if report == LEFT]
        if left:
            reports += self._stages.compute(fragment.computing, shipped.inputs, shipped.results, left)
        return reports

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
        shown: Shown | None = None,
        then: Spooling | None = None,
    ) -> list[Report]:
        """Run a stateful operator over ranges of hashes, and add what it made to the state."""
        given = tuple(inputs)
        if not whole and not any(each.change for each in given):
            return []
        operating = Operating(self._places, given, node, self._filling, shown=shown, then=then)
        reports = self._ranges(operating, whole=whole)
        if any(report["then"] == LEFT for report in reports):
            reports = self._ranges(replace(operating, then=None), whole=whole)
        for number, kept in enumerate(states):
            runs = [Run.from_dict(made) for report in reports if (made := report["state"][number]) is not None]
            if runs and kept is not None:
                self._state.add_runs(*kept, runs)
        self.rows_read += sum(report["read"] for report in reports)
        return reports

    def _ranges(self, operating: Operating, *, whole: bool) -> list[Report]:
        node, rows = operating.node, sum(run.rows for each in operating.inputs for run in each.change)
        if isinstance(node, Recompute) and node.first is None:
            return self._recomputed(node, operating, rows)
        if rows <= self._small_rows:
            return [operating.range(LOWEST, HIGHEST)]
        needed = max(min(rows // PIECE_ROWS, _RANGES), rows // _RANGE_ROWS)
        ranges = [(LOWEST, HIGHEST)] if whole else _ranges(max(self._stages.workers, needed))
        return self._stages.each(lambda bounds: operating.range(*bounds), ranges)

    def _recomputed(self, node: Recompute, operating: Operating, rows: int) -> list[Report]:
        """Spark evaluates ranges by executors; what fails, and little, is given to it by this process."""
        held = sum(run.rows for each in operating.inputs for run in each.held)
        ranges = [(LOWEST, HIGHEST)]
        if not node.is_whole and rows > self._small_rows:
            many = _ranges(max(self._stages.workers, rows // PIECE_ROWS, (rows + held) // _RECOMPUTED_OF))
            shipped = replace(operating, node=portable(node))
            with suppress(EvaluationFailed):  # so it does here, where the row can be told
                return self._stages.recompute(node.computing, shipped.given, shipped.evaluated, many)
            ranges = _ranges(max(self._stages.workers, (rows + held) // RECOMPUTED_ROWS))
        here = replace(operating, evaluate=partial(self._evaluator.recompute, node.computing))
        with ThreadPoolExecutor(self._stages.workers) as threads:
            return list(threads.map(lambda bounds: here.range(*bounds), ranges))


def _runs(reports: Sequence[Report], what: str) -> list[Run]:
    return [run for report in reports if (run := run_of(report, what)) is not None]


def _named(root: Node, relation: Relation, key: Sequence[str]) -> Iterator[str]:
    """The columns of a plan that become these columns of the view."""
    places = {name: place for place, name in enumerate(relation.columns.names)}
    for name in key:
        yield root.output[places[name]].name


def _needed(pieces: Sequence[Piece]) -> int:
    return sum(piece.rows for piece in pieces) // PIECE_ROWS


def _needed_to_spool(spooling: Spooling) -> int:
    needed, fragment = _needed(spooling.pieces), spooling.fragment
    if spooling.aggregate is None:
        return needed
    direct = fragment.direct if fragment is not None else None
    times = 1 if direct is None or direct.slicing is not None else direct.times
    return needed * times // _AGGREGATED_PIECES


def _ranges(count: int) -> list[tuple[int, int]]:
    """The space of hashes in about so many ranges of the same size."""
    ranges = 1 << max(1, (count - 1).bit_length())
    return [share_of_hashes(number, ranges) for number in range(ranges)]
