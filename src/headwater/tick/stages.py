"""Stages of the large path, run: a little in this process, much by executors, and here again if it fails there."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import replace
from functools import partial
from typing import Any

import pyarrow as pa

from headwater.evaluation.ways import fast_then_slow
from headwater.memory import TooLarge
from headwater.plan.engine import Stages
from headwater.plan.physical import Applies
from headwater.state.run import HIGHEST, LOWEST, Run
from headwater.tick.dead_letters import DeadLetters
from headwater.tick.exchange import LEFT, ExchangeStage, Report, dealt_out, hash_range, spooled
from headwater.tick.operator_stage import OperatorStage
from headwater.tick.slices import SLICE_ROWS, Slice, counted
from headwater.tick.small import Evaluator

Flow = ExchangeStage | tuple[Run, ...]
"""A change that is to be spooled, or is already."""
_RANGES, _RANGE_ROWS = 32, 2_000_000
"""So many ranges of hashes are enough, unless one has more rows than this: every tick looks into each of them."""
RECOMPUTED_ROWS = 100_000
"""So many rows at most are evaluated anew at a time in this process, unless one key has more."""
_RECOMPUTED_OF = 1_000_000
"""Of so many rows that are kept an executor looks at those of touched keys, at a time."""


class StageRunning:
    """Runs stages of what is computed for one relation; up to `small_rows` rows here."""

    def __init__(
        self, stages: Stages, evaluator: Evaluator, small_rows: int, dead_letters: DeadLetters | None
    ) -> None:
        self._stages = stages
        self._evaluator = evaluator
        self._small_rows = small_rows
        self._dead_letters = dead_letters

    def spooled(self, flow: Flow) -> tuple[Run, ...]:
        """What is spooled, here or by executors."""
        if not isinstance(flow, ExchangeStage):
            return flow
        exchange, slices, fragment = flow, flow.slices, flow.fragment
        if not slices:
            return ()
        if sum(each.rows for each in slices) <= self._small_rows:
            return spooled([exchange.finished([self._here(fragment, each.load()) for each in slices])])
        dealt = dealt_out(len(slices), max(self._stages.workers, _needed_to_spool(exchange)))
        shipped = replace(exchange, tasks=len(dealt)).portable()
        if fragment is None or not fragment.computes:
            return spooled(self._stages.each(shipped.task, dealt))

        def slice_by_slice() -> list[Report]:
            apart = replace(exchange, tasks=len(slices))
            return [
                apart.finished([self._here(fragment, each.load())], number) for number, each in enumerate(slices)
            ]

        if self._dead_letters is not None and not self._dead_letters.is_empty:
            return spooled(slice_by_slice())
        return spooled(fast_then_slow(lambda: self._computed(fragment, shipped, dealt), slice_by_slice))

    def _computed(self, fragment: Applies, shipped: ExchangeStage, dealt: list[list[int]]) -> list[Report]:
        """Shares whose expressions need no Spark, and then the others."""
        reports = [LEFT] * len(dealt)
        if fragment.direct is not None:
            reports = self._stages.each(shipped.task, dealt)
        left = [numbers for numbers, report in zip(dealt, reports, strict=True) if report == LEFT]
        if left:
            reports += self._stages.compute(fragment.computing, shipped.inputs, shipped.results, left)
        return reports

    def _here(self, fragment: Applies | None, table: pa.Table) -> pa.Table:
        """A little in between is not worth a stage."""
        return table if fragment is None else fragment.apply(table, self._evaluator.evaluate, self._dead_letters)

    def operate(self, stage: OperatorStage, *, whole: bool, computing: Any) -> list[Report]:
        """What an operator makes of its change, range by range; nothing if nothing came, unless all is one key.

        Pairs that are more than there is memory for go through expressions that need Spark here, block by block.
        """
        if not whole and not any(each.change for each in stage.inputs):
            return []
        then = stage.then
        if then is not None and then.is_direct:
            shipped = replace(stage, then=then.portable())
            reports = self._ranges(shipped, whole=whole, computing=computing)
            if all(report["then"] != LEFT for report in reports):
                return reports
        try:
            return self._ranges(replace(stage, then=None), whole=whole, computing=computing)
        except TooLarge:
            if then is None or then.fragment is None or computing is not None:
                raise
        here = replace(stage, then=replace(then, evaluate=self._evaluator.evaluate))
        return [here.range(*bounds) for bounds in self._bounds(stage, whole=whole)]

    def _ranges(self, stage: OperatorStage, *, whole: bool, computing: Any) -> list[Report]:
        rows = counted(run for each in stage.inputs for run in each.change)
        if computing is not None:
            return self._evaluated(stage, computing, rows, whole=whole)
        if rows <= self._small_rows:
            return [stage.range(LOWEST, HIGHEST)]
        return self._stages.each(lambda bounds: stage.range(*bounds), self._bounds(stage, whole=whole))

    def _bounds(self, stage: OperatorStage, *, whole: bool) -> list[tuple[int, int]]:
        """The ranges of hashes that an operator's change is worth."""
        rows = counted(run for each in stage.inputs for run in each.change)
        needed = max(min(rows // SLICE_ROWS, _RANGES), rows // _RANGE_ROWS)
        return [(LOWEST, HIGHEST)] if whole else _ranges(max(self._stages.workers, needed))

    def _evaluated(self, stage: OperatorStage, computing: Any, rows: int, *, whole: bool) -> list[Report]:
        """Spark evaluates ranges by executors; what fails, and little, is given to it by this process."""
        held = counted(run for each in (*stage.inputs, *stage.states) for run in each.held)
        here = replace(stage, evaluate=partial(self._evaluator.recompute, computing))

        def range_by_range(ranges: Sequence[tuple[int, int]]) -> list[Report]:
            with ThreadPoolExecutor(self._stages.workers) as threads:
                made = [threads.submit(copy_context().run, partial(here.range, *bounds)) for bounds in ranges]
                return [each.result() for each in made]

        if whole or rows <= self._small_rows:
            return range_by_range([(LOWEST, HIGHEST)])
        workers = self._stages.workers
        many = _ranges(max(workers, rows // SLICE_ROWS, (rows + held) // _RECOMPUTED_OF))
        few = _ranges(max(workers, (rows + held) // RECOMPUTED_ROWS))
        return fast_then_slow(
            lambda: self._stages.recompute(computing, stage.asked, stage.answered, many),
            lambda: range_by_range(few),
        )


def needed(slices: Sequence[Slice]) -> int:
    """How many tasks are worth while for some slices."""
    return sum(each.rows for each in slices) // SLICE_ROWS


def _needed_to_spool(exchange: ExchangeStage) -> int:
    tasks, fragment = needed(exchange.slices), exchange.fragment
    if exchange.partial is None or exchange.partial.slices == 1:
        return tasks
    direct = fragment.direct if fragment is not None else None
    times = 1 if direct is None or direct.panes is not None else direct.times
    return tasks * times // exchange.partial.slices


def _ranges(count: int) -> list[tuple[int, int]]:
    """The space of hashes in about so many ranges of the same size."""
    ranges = 1 << max(1, (count - 1).bit_length())
    return [hash_range(number, ranges) for number in range(ranges)]
