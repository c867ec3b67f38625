"""Operator stage: the second kind of stage in the large path, by workers.

A worker takes a range of hashes from all runs that were spooled, and does with it what the small path does with
everything; its additions to the state go into a file of its own. Everything here is sent to workers and comes back
as plain data.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

import numpy as np
import pyarrow as pa

from headwater.change import HASH, WEIGHT
from headwater.change.keys import hashed_schema
from headwater.plan.physical import Asks, Evaluate, Given, Made, Operation
from headwater.state.arrangement import Arrangement
from headwater.state.open_run import open_run
from headwater.state.run import Run
from headwater.tick.exchange import ExchangeStage, Report, StageFolders
from headwater.tick.output import Shown
from headwater.tick.small import never


@dataclass(frozen=True)
class StageInput:
    """A change in runs, and the runs of its arrangement before the tick.

    The change was spooled, rows or what they add to accumulators (`is_partial`); or it is `arranged`: its runs are
    part of the state already, from which columns are taken.
    """

    schema: pa.Schema
    change: tuple[Run, ...]
    held: tuple[Run, ...] = ()
    arranged: Taken | None = None
    is_partial: bool = False

    def given(self, folders: StageFolders, low: int, high: int) -> Given:
        """The rows of the change in a range of hashes, in as many parts as were spooled, and those before."""
        return Given(self._parts(folders, low, high), self.old(folders), is_partial=self.is_partial)

    def _parts(self, folders: StageFolders, low: int, high: int) -> list[pa.Table]:
        if self.arranged is not None:
            return list(self._of(folders, self.change).scan(low, high))
        opened = [open_run(folders.scratch, run, self.schema) for run in self.change]
        found = [each.slice(each.below(low), each.upto(high)) for each in opened]
        return [table for table in found if table.num_rows]

    def old(self, folders: StageFolders) -> Arrangement:
        """The rows before."""
        return self._of(folders, self.held)

    def _of(self, folders: StageFolders, runs: tuple[Run, ...]) -> Arrangement:
        if self.arranged is None:
            return Arrangement(folders.state, self.schema, runs)
        return Arrangement(folders.state, self.arranged.of, runs).select(self.arranged.columns, self.schema)


class RecordsInput(StageInput):
    """Records of a table, which are no rows yet: nothing like them was there before."""

    def old(self, folders: StageFolders) -> Arrangement:
        """Nothing."""
        return Arrangement(folders.state, hashed_schema(pa.schema([])), ())


@dataclass(frozen=True)
class Taken:
    """Some columns of an arrangement."""

    of: pa.Schema
    columns: tuple[str, ...]


@dataclass(frozen=True)
class OperatorStage:
    """One stateful operator over ranges of hashes; `states` is what it keeps beside the rows of its inputs.

    What `evaluate` does is done in this process. If the operator's own rows are those of a view, `shown` says how
    the view has them; if they only go on to the next operator, `then` says how, so that they need not be written
    before.
    """

    folders: StageFolders
    operator: Operation
    inputs: tuple[StageInput, ...]
    states: tuple[StageInput, ...] = ()
    filling: bool = False
    evaluate: Evaluate | None = None
    shown: Shown | None = None
    then: ExchangeStage | None = None

    def range(self, low: int, high: int) -> Report:
        """Operate on a range of hashes."""
        inputs, states = self._given(low, high)
        evaluate = self.evaluate or never
        return self._written(low, high, self.operator.operate(inputs, states, evaluate, filling=self.filling))

    def asked(self, bounds: tuple[int, int], place: int) -> pa.Table:
        """The rows of an input that executors are to evaluate for a range."""
        return cast("Asks", self.operator).asked(place, *self._given(*bounds), filling=self.filling)

    def answered(self, bounds: tuple[int, int], made: pa.Table) -> Report:
        """Take what they made of them."""
        operator = cast("Asks", self.operator)
        return self._written(*bounds, operator.answered(*self._given(*bounds), made, filling=self.filling))

    def _given(self, low: int, high: int) -> tuple[list[Given], list[Arrangement]]:
        inputs = [each.given(self.folders, low, high) for each in self.inputs]
        return inputs, [each.old(self.folders) for each in self.states]

    def _written(self, low: int, high: int, made: Made) -> Report:
        """Write what an operator made: what it keeps, and what the next one takes."""
        file = self.folders.state_file()
        runs = [
            file.add(rows, low=low, high=high).as_dict()
            if rows is not None and rows.num_rows and given.arranged is None
            else None
            for rows, given in zip(made.kept, (*self.inputs, *self.states), strict=True)
        ]
        shown = None
        if self.shown is not None and (rows := self.shown.rows(_together(made))).num_rows:
            shown = file.add(rows, low=low, high=high).as_dict()
        file.finish()
        spooled, then = None, None
        if self.then is not None:
            then = self.then.at_once(made.parts(), low, high)
        elif self.shown is None and made.result and (rows := _together(made)).num_rows:
            spooled = self.folders.spool(_with_no_hash(rows)).as_dict()
        return {"state": runs, "result": spooled, "shown": shown, "then": then, "read": made.read}


def _together(made: Made) -> pa.Table:
    """The result in one table, with hashes if it has them."""
    return pa.concat_tables([each if isinstance(each, pa.Table) else each.table() for each in made.result])


def _with_no_hash(table: pa.Table) -> pa.Table:
    """A result on its way to the next operator, which will hash it anew."""
    zeros, field = pa.array(np.zeros(table.num_rows, np.int64)), pa.field(HASH, pa.int64())
    if HASH in table.column_names:
        return table.set_column(table.schema.get_field_index(HASH), field, zeros)
    return table.add_column(table.schema.get_field_index(WEIGHT), field, zeros)
