"""Kept patches that each break one promise of a tick; see `patches.py`. None of their tests needs Spark."""

from __future__ import annotations

from tests.mutants.patches import Patch, patch

_TICKS = "tests/crash/test_hand_engine.py -k small"
_PINS = "tests/crash/test_reader_pins.py -k "
_STOPPED = "tests/crash/test_stopped_driver.py -k "
_DERIVED = "tests/crash/test_derived_state.py -k "

TICK_PATCHES: tuple[Patch, ...] = (
    patch(
        "a tick is committed after its files are on disk",
        "tick/driver.py",
        "        state.finish()\n",
        "",
        "tests/crash/test_tick_power_loss.py -k before_it_is_committed",
    ),
    patch(
        "the names of a tick's files are on disk before it is committed",
        "tick/state.py",
        "        self._files.sync_folder(self.folder)\n",
        "",
        "tests/crash/test_tick_power_loss.py -k before_it_is_committed",
    ),
    patch(
        "versions that a reader pins are kept",
        "tick/sweep.py",
        "{*pins.held(), *also, *inner} & ",
        "{*also, *inner} & ",
        f"{_PINS} killed_readers",
    ),
    patch(
        "drivers look for pins where readers put them",
        "tick/driver.py",
        "Pins(self._folder)",
        "Pins(folder)",
        f"{_PINS} killed_readers",
    ),
    patch(
        "nothing is swept while a reader holds what was just forgotten",
        "tick/driver.py",
        "        if not self._pins.held() - {kept for kept, _ in self._store.ticks()}:",
        "        if True:",
        f"{_PINS} between_forgetting",
    ),
    patch(
        "files that a tick names are not swept",
        "tick/sweep.py",
        "if made and name not in used and (",
        "if made and (",
        _TICKS,
    ),
    patch(
        "what was emitted of a group is taken back",
        "operators/accumulate.py",
        "    return consolidate(pa.concat_tables([negated(kept.rows), after]))",
        "    return consolidate(after)",
        _TICKS,
    ),
    patch(
        "a join's change meets the other side as it is after the tick",
        "operators/join.py",
        "pa.concat_tables([right_old, right.change.select(right.old.schema.names)])",
        "right_old",
        _TICKS,
    ),
    patch(
        "the weights of a pair are multiplied",
        "operators/join.py",
        "pa.array(one * other)",
        "pa.array(one)",
        _TICKS,
    ),
    patch(
        "the last write of a key wins",
        "operators/table.py",
        "    last[touched] = np.arange(len(touched))\n",
        "    last[touched[::-1]] = np.arange(len(touched))[::-1]\n",
        _TICKS,
    ),
    patch(
        "no row of a multiset is there less than never",
        "operators/table.py",
        "    lowest = np.minimum(np.minimum.reduceat(levels, starts), 0)\n",
        "    lowest = np.zeros(len(starts), np.int64)\n",
        _TICKS,
    ),
    patch(
        "a merge keeps the sum",
        "state/merge.py",
        "*step.remains(), *merged)",
        "*step.remains())",
        "tests/state/test_merge.py -k any_sequence",
    ),
    patch(
        "a view's key is unique",
        "tick/output.py",
        "    if relation.key and settled.num_rows:\n",
        "    if False:\n",
        "tests/tick/test_output.py",
    ),
    patch(
        "the changes of a tick are what it changed",
        "tick/state.py",
        "(runs := self.change(name))",
        "(runs := self._runs[name])",
        _TICKS,
    ),
    patch(
        "a rebuild forgets what was before it at the same instant",
        "tick/driver.py",
        "alone=work.anew, renamed",
        "alone=False, renamed",
        f"{_DERIVED} interrupted",
    ),
    patch(
        "a rebuild without the log's beginning is refused",
        "tick/driver.py",
        "        if gone:\n",
        "        if gone and not reason:\n",
        f"{_DERIVED} beginning_of_the_log",
    ),
    patch(
        "missing files are noticed when a driver begins",
        "tick/driver.py",
        "            if used - there:\n",
        "            if False:\n",
        f"{_DERIVED} one_deleted_file",
    ),
    patch(
        "a driver that was replaced is told so, whatever it misses",
        "tick/driver.py",
        "                self._check_current(epoch, error)\n",
        "                pass\n",
        f"{_STOPPED} misses_a_file",
    ),
    patch(
        "a driver that was replaced is told so, though it has nothing to do",
        "tick/driver.py",
        "            self._check_current(epoch)\n",
        "",
        f"{_STOPPED} nothing_to_do",
    ),
    patch(
        "in another time zone views are built again",
        "tick/driver.py",
        "            if other := self._other_meaning(last):\n",
        "            if other := '':\n",
        f"{_DERIVED} other_meaning",
    ),
    patch(
        "rows are the same whatever lies beneath a null",
        "state/bits.py",
        ", mask=array.is_null().to_numpy(zero_copy_only=False) if array.null_count else None)",
        ")",
        "tests/state/test_consolidate.py -k beneath",
    ),
    patch(
        "a driver that was replaced leaves its successor's scratch alone",
        "tick/sweep.py",
        "        if made and int(made[1]) < epoch:\n",
        "        if made:\n",
        f"{_STOPPED} before_it_looked",
    ),
    patch(
        "a query has the same columns in every session",
        "views/numbering.py",
        'f"c{len(names)}"',
        "each.name",
        "tests/views/test_numbering.py -k whatever_was",
    ),
    patch(
        "nothing is read from disk to be ready",
        "state/ready.py",
        "            if asked == 0 and (pages & 1).all():\n",
        "            if asked == 0:\n",
        "tests/state/test_ready.py -k not_read",
    ),
    patch(
        "what two threads find is found",
        "state/threads.py",
        "(one, *islice(theirs, 1))",
        "(one,)",
        "tests/state/test_arrangement.py -k probes_and_scans",
    ),
)
