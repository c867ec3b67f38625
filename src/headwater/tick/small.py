"""The small path: a physical plan run in this process, on tables in memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Protocol

import pyarrow as pa

from headwater.attempt import go_on
from headwater.change import WEIGHT
from headwater.change.consolidate import consolidate
from headwater.change.keys import with_hash, without_nulls
from headwater.change.shape import shaped
from headwater.change.weights import appended
from headwater.memory import all_fitting
from headwater.plan.physical import (
    Apply,
    Evaluate,
    Exchange,
    Given,
    Load,
    Made,
    Operate,
    Rows,
    State,
    Step,
    Together,
)
from headwater.state.arrangement import Arrangement
from headwater.tick.dead_letters import DeadLetters
from headwater.tick.exchange import PASSED
from headwater.tick.inputs import FromState, Input
from headwater.tick.output import Last
from headwater.tick.state import TickState

_WEIGHT_FIELD = pa.field(WEIGHT, pa.int64())


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
        dead_letters: DeadLetters | None = None,
        last: Last | None = None,
    ) -> None:
        self._dead_letters = dead_letters
        self._last = last
        self._view = view
        self._state = state
        self._evaluator = evaluator
        self._inputs = inputs
        self._filling = filling
        self.rows_read = 0

    def run(self, step: Step) -> pa.Table:
        """The change that a step gives: its columns and `_weight`, not consolidated."""
        if isinstance(step, Load):
            table = self._inputs[step.relation].table()
            return shaped(table.select([*step.columns, WEIGHT]), step.schema.append(_WEIGHT_FIELD))
        if isinstance(step, Rows):
            return appended(step.rows if self._filling else step.rows.slice(0, 0))
        if isinstance(step, Apply):
            return pa.concat_tables(all_fitting(self._applied(step), PASSED))
        if isinstance(step, Together):
            schema = step.schema.append(_WEIGHT_FIELD)
            return pa.concat_tables([shaped(self.run(part), schema) for part in step.parts])
        return self._operate(step).table()

    def _applied(self, step: Apply) -> Iterator[pa.Table]:
        """What becomes of the rows of a step: all at once, unless an operator gives more pairs than one block."""
        made = self._operate(step.of) if isinstance(step.of, Operate) else None
        if made is not None and made.is_large:
            parts = made.parts()
        else:
            parts = iter([self.run(step.of) if made is None else made.table()])
        for part in parts:
            go_on()
            yield step.fragment.apply(part, self._evaluator.evaluate, self._dead_letters)

    def by_key(self, exchange: Exchange) -> pa.Table:
        """A change by its key, consolidated if it is to be."""
        change = self.run(exchange.of)
        present = without_nulls(change, exchange.key) if exchange.drops else change
        hashed = with_hash(present, exchange.key, matches=exchange.matches)
        return consolidate(hashed) if exchange.settles else hashed

    def _operate(self, step: Operate) -> Made:
        operator = step.operator
        inputs = [self._input(each) for each in step.inputs]
        states = [self._own(step, each) for each in operator.states]
        made = operator.operate(
            [given for given, _ in inputs],
            [held for held, _ in states],
            self._evaluate(step.computing),
            filling=self._filling,
        )
        self.rows_read += made.read
        names = [*(name for _, name in inputs), *(name for _, name in states)]
        for name, rows in zip(names, made.kept, strict=True):
            if name is not None and rows is not None and rows.num_rows:
                self._state.add(name, rows)
        return made

    def _input(self, exchange: Exchange) -> tuple[Given, str | None]:
        """The change of an input with its rows before, and where they are kept: nowhere, if somebody else does."""
        if isinstance(exchange.of, Load) and exchange.of.is_arranged:
            given = self._inputs[exchange.of.relation]
            assert isinstance(given, FromState)
            change, old = given.arranged(exchange.of)
            return Given([change], old, is_settled=True), None
        change = self.by_key(exchange)
        if not exchange.state:
            return Given([change], Arrangement(self._state.files, exchange.schema, ()), exchange.settles), None
        name = f"{self._view}/{exchange.state}"
        return Given([change], self._state.before(name, exchange.schema), exchange.settles), name

    def _own(self, step: Operate, state: State) -> tuple[Arrangement, str | None]:
        """What an operator has kept of its own, and where: nowhere, if the view itself shows it."""
        if self._last is not None and self._last.step.operator is step.operator:
            emitted = self._last.shown.emitted(state)
            if emitted is not None:
                schema, columns = emitted
                return self._state.before(self._view, self._last.shown.schema).select(columns, schema), None
        name = f"{self._view}/{state.name}"
        return self._state.before(name, state.schema), name

    def _evaluate(self, computing: Any) -> Evaluate:
        return never if computing is None else partial(self._evaluator.recompute, computing)


def never(*given: object) -> pa.Table:
    """What is called if nothing is to be evaluated."""
    raise AssertionError(given)
