"""The large path: the same operators, over files, by Spark's executors."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from headwater.catalog.relation import Relation
from headwater.change import HASH, WEIGHT
from headwater.change.keys import hashed_schema
from headwater.evaluation.ways import fast_then_slow
from headwater.log import LogSlice
from headwater.plan.engine import Stages
from headwater.plan.operators import Keyed, Node
from headwater.plan.physical import (
    Applies,
    Apply,
    Exchange,
    Load,
    Operate,
    Operation,
    Partial,
    Rows,
    State,
    Step,
    Together,
)
from headwater.state.run import Run
from headwater.tick.dead_letters import DeadLetters
from headwater.tick.exchange import (
    ExchangeStage,
    RecordExchange,
    Report,
    StageFolders,
    dealt_out,
    run_of,
    spooled,
)
from headwater.tick.inputs import FromState, Input
from headwater.tick.last_stage import Recording, Settling, Showing, records_schema
from headwater.tick.operator_stage import OperatorStage, RecordsInput, StageInput, Taken
from headwater.tick.output import Shown, last_operator
from headwater.tick.relations import arranged, hashed
from headwater.tick.slices import RenamedSlice, Slice, SpooledSlice
from headwater.tick.small import Evaluator
from headwater.tick.stages import Flow, StageRunning, needed
from headwater.tick.state import TickState

Kept = tuple[str, pa.Schema] | None
"""The name and the columns of what is kept of an input for the next tick; None if others keep it."""


class Large:
    """Computes one relation's change in one tick by stages of tasks."""

    def __init__(
        self,
        name: str,
        state: TickState,
        stages: Stages,
        evaluator: Evaluator,
        folders: StageFolders,
        inputs: Mapping[str, Input],
        *,
        filling: bool,
        small_rows: int,
        dead_letters: DeadLetters | None = None,
    ) -> None:
        self._name = name
        self._state = state
        self._stages = stages
        self._running = StageRunning(stages, evaluator, small_rows, dead_letters)
        self._folders = folders
        self._inputs = inputs
        self._filling = filling
        self._spools_at_once, self._spooled_at_once = dead_letters is None, False
        self.rows_read = 0

    # -- whole relations

    def growing_view(self, relation: Relation, root: Node) -> None:
        """Compute the new rows of a view of which none ever disappears, and add them as they come."""
        self._at_once(arranged(relation), lambda: self._growing_view(relation, root))

    def _growing_view(self, relation: Relation, root: Node) -> None:
        exchange = ExchangeStage(self._folders, (), grows=arranged(relation))
        self._state.add_runs(
            self._name, arranged(relation), self._running.spooled(self._flow(root.physical(), exchange))
        )

    def view(self, relation: Relation, root: Node) -> None:
        """Compute a view's change and add it to its rows."""
        self._at_once(arranged(relation), lambda: self._view(relation, root))

    def _at_once(self, schema: pa.Schema, compute: Callable[[], None]) -> None:
        """Compute with operators that spool for the next one; or else without, so that a row can be told."""

        def one_by_one() -> None:
            self._spools_at_once = self._spooled_at_once = False
            self._state.discard(self._name)
            if self._filling:
                self._state.touch(self._name, schema)
            compute()

        fast_then_slow(compute, one_by_one, is_other=lambda: self._spooled_at_once)

    def _view(self, relation: Relation, root: Node) -> None:
        last = last_operator(root, relation)
        if last is not None:
            self._add_shown(last.shown, self._operated(last.step, last.shown))
            return
        key = tuple(_named(root, relation, hashed(relation)))
        exchange = ExchangeStage(self._folders, key, consolidated=True)
        given = StageInput(hashed_schema(root.schema), self._running.spooled(self._flow(root.physical(), exchange)))
        self._last(Showing(replace(relation, topic=None)), given, relation)

    def _add_shown(self, shown: Shown, reports: list[Report]) -> None:
        self._state.add_runs(self._name, shown.schema, _runs(reports, "shown"))

    def _last(self, operation: Operation, given: StageInput, relation: Relation) -> None:
        """Take the last stage of a relation; what it changes is added under the name that this is computed for."""
        name, schema = self._name, arranged(relation)
        self._operate(
            OperatorStage(self._folders, operation, (given,), (self._held(name, schema),)), (None, (name, schema))
        )

    def shared(self, keyed: Keyed) -> None:
        """Compute the change of what views share, and add it to its rows.

        If each worker has a few slices, what it spools is a run of the state already.
        """
        self._at_once(hashed_schema(keyed.node.schema), lambda: self._shared(keyed.physical()))

    def _shared(self, exchange: Exchange) -> None:
        step, schema = exchange.of, exchange.schema
        is_plain = not exchange.drops and not exchange.matches
        if isinstance(step, Operate) and is_plain and step.operator.is_hashed_by(exchange.key):
            shown = Shown(tuple(step.schema.names), schema)
            self._add_shown(shown, self._operated(step, shown))
            return
        slices, fragment = self._slices(step)
        lasting = needed(slices) <= self._stages.workers
        stage = replace(self._by(exchange), consolidated=True, lasting=lasting, slices=slices, fragment=fragment)
        runs = self._running.spooled(stage)
        if lasting:
            self._state.add_runs(self._name, schema, runs)
        else:
            settling = OperatorStage(self._folders, Settling(), (StageInput(schema, runs),))
            self._operate(settling, ((self._name, schema),))

    def table(self, relation: Relation, recorded: Sequence[LogSlice]) -> None:
        """Take records into a table."""
        portable = replace(relation, topic=None)
        exchange = RecordExchange(self._folders, portable, tuple(recorded))
        reports = self._stages.each(exchange.task, dealt_out(len(recorded), self._stages.workers))
        self._last(Recording(portable), RecordsInput(records_schema(relation), spooled(reports)), relation)

    # -- operators

    def _run(self, step: Step) -> list[Slice]:
        """The change that a step gives, as slices with its columns."""
        if isinstance(step, Load):
            return [RenamedSlice(each, step.columns, step.schema) for each in self._inputs[step.relation].slices()]
        if isinstance(step, Rows):
            return self._rows(step.rows)
        if isinstance(step, Apply):
            made = self._running.spooled(self._flow(step, ExchangeStage(self._folders, ())))
            return self._spooled_slices(made, step.schema)
        if isinstance(step, Together):
            return [
                RenamedSlice(slice_, tuple(part.schema.names), step.schema)
                for part in step.parts
                for slice_ in self._run(part)
            ]
        return self._spooled_slices(_runs(self._operated(step), "result"), step.schema)

    def _rows(self, rows: pa.Table) -> list[Slice]:
        if not rows.num_rows or not self._filling:
            return []
        ones, zeros = (pa.array(np.full(rows.num_rows, value, np.int64)) for value in (1, 0))
        table = rows.append_column(HASH, zeros).append_column(WEIGHT, ones)
        return self._spooled_slices((self._folders.spool(table),), rows.schema)

    def _spooled_slices(self, runs: Sequence[Run], columns: pa.Schema) -> list[Slice]:
        return [SpooledSlice(self._folders.scratch, hashed_schema(columns), run) for run in runs]

    def _held(self, name: str, schema: pa.Schema) -> StageInput:
        return StageInput(schema, (), self._state.before(name, schema).runs)

    def _by(self, exchange: Exchange) -> ExchangeStage:
        return ExchangeStage(self._folders, exchange.key, exchange.drops, exchange.matches)

    def _operated(
        self, step: Operate, shown: Shown | None = None, then: ExchangeStage | None = None
    ) -> list[Report]:
        """What an operator makes of its change; spooled for the next at once, if that is possible.

        Where it can, it is given what was made of parts of its change, or else all rows, so that one can be told.
        """
        operator = step.operator
        states = [self._own(each, shown) for each in operator.states]
        flows = [self._came(each, operator.partial) for each in step.inputs]

        def operated(partial: Partial | None) -> list[Report]:
            inputs = [self._input(*each, partial) for each in zip(step.inputs, flows, strict=True)]
            given, held = (tuple(each for each, _ in several) for several in (inputs, states))
            stage = OperatorStage(
                self._folders, operator.portable(), given, held, self._filling, shown=shown, then=then
            )
            kept = [each for several in (inputs, states) for _, each in several]
            return self._operate(stage, kept, whole=operator.is_whole, computing=step.computing)

        if operator.partial is None:
            return operated(None)
        came = [isinstance(each, tuple) for each in flows]
        return fast_then_slow(
            lambda: operated(operator.partial), lambda: operated(None), is_other=lambda: not any(came)
        )

    def _came(self, exchange: Exchange, partial: Partial | None) -> Flow | None:
        """A change on its way to an operator; None if it is there by its key already."""
        if isinstance(exchange.of, Load) and exchange.of.is_arranged:
            return None
        return self._flow(exchange.of, replace(self._by(exchange), partial=partial))

    def _input(self, exchange: Exchange, flow: Flow | None, partial: Partial | None) -> tuple[StageInput, Kept]:
        """The change of an input by its key with its rows before, and where it is kept for the next tick."""
        schema = exchange.schema
        if isinstance(exchange.of, Load) and flow is None:
            given = self._inputs[exchange.of.relation]
            assert isinstance(given, FromState)
            taken = Taken(given.held.schema, exchange.of.columns)
            return StageInput(schema, given.runs, given.held.runs, taken), None
        assert flow is not None
        change = self._running.spooled(replace(flow, partial=partial) if isinstance(flow, ExchangeStage) else flow)
        if partial is not None:
            return StageInput(partial.schema, change, is_partial=True), None
        if not exchange.state:
            return StageInput(schema, change), None
        name = f"{self._name}/{exchange.state}"
        return StageInput(schema, change, self._state.before(name, schema).runs), (name, schema)

    def _own(self, state: State, shown: Shown | None) -> tuple[StageInput, Kept]:
        """What an operator has kept of its own, and where: nowhere, if the view itself shows it."""
        if shown is not None and (emitted := shown.emitted(state)) is not None:
            schema, columns = emitted
            runs = self._state.before(self._name, shown.schema).runs
            return StageInput(schema, (), runs, Taken(shown.schema, columns)), None
        name = f"{self._name}/{state.name}"
        return self._held(name, state.schema), (name, state.schema)

    # -- stages

    def _flow(self, step: Step, exchange: ExchangeStage) -> Flow:
        """A change on its way to be spooled; it is already, if the operator that makes it could do so."""
        fragment, below = (step.fragment, step.of) if isinstance(step, Apply) else (None, step)
        if isinstance(below, Operate) and self._spools_at_once:
            reports = self._operated(below, then=replace(exchange, fragment=fragment))
            made = _runs(reports, "result")
            if not made:
                self._spooled_at_once = True
                return spooled([report["then"] for report in reports if report["then"] is not None])
            slices = tuple(self._spooled_slices(made, below.schema))
        else:
            slices = tuple(self._run(below))
        return replace(exchange, slices=slices, fragment=fragment)

    def _slices(self, step: Step) -> tuple[tuple[Slice, ...], Applies | None]:
        """A change as slices, and a fragment that is still to be applied to them."""
        if isinstance(step, Apply):
            return tuple(self._run(step.of)), step.fragment
        return tuple(self._run(step)), None

    def _operate(
        self, stage: OperatorStage, kept: Sequence[Kept], *, whole: bool = False, computing: Any = None
    ) -> list[Report]:
        """Run an operator over ranges of hashes, and add what it made to the state, each where it is kept."""
        reports = self._running.operate(stage, whole=whole, computing=computing)
        for number, place in enumerate(kept):
            runs = [Run.from_dict(made) for report in reports if (made := report["state"][number]) is not None]
            if runs and place is not None:
                self._state.add_runs(*place, runs)
        self.rows_read += sum(report["read"] for report in reports)
        return reports


def _runs(reports: Sequence[Report], what: str) -> list[Run]:
    return [run for report in reports if (run := run_of(report, what)) is not None]


def _named(root: Node, relation: Relation, key: Sequence[str]) -> Iterator[str]:
    """The columns of a plan that become these columns of the view."""
    places = {name: place for place, name in enumerate(relation.columns.names)}
    for name in key:
        yield root.output[places[name]].name
