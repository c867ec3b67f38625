"""Kept patches that each break one promise of maintained SQL; see `patches.py`. Their tests start Spark."""

from __future__ import annotations

from tests.mutants.patches import Patch, patch

_RECOMPUTE = "tests/equivalence/test_recompute.py -k "
_SUSPEND = "tests/tick/test_suspension.py -k "
_REPLACE = "tests/tick/test_replacing.py -k "
_SHARE = "tests/tick/test_sharing.py -k "
_BY_HAND = "tests/tick/test_shared_by_hand.py -k "
_FAST = "tests/equivalence/test_fast_ways.py -k "
_FIRST = "tests/operators/test_first.py"

SQL_PATCHES: tuple[Patch, ...] = (
    patch(
        "what a recompute takes back is what it gave",
        "operators/recompute.py",
        "    return consolidate(pa.concat_tables([negated(emitted), new]))\n",
        "    return consolidate(new)\n",
        f"{_RECOMPUTE} unmatched_rows",
    ),
    patch(
        "a recompute sees a row as often as it is there",
        "operators/recompute.py",
        "        order = np.repeat(order, weights[order])\n",
        "        pass\n",
        f"{_RECOMPUTE} weights_above_one",
    ),
    patch(
        "a recompute sees the rows that were there before",
        "operators/recompute.py",
        "    held = part.old.probe(touched)\n",
        "    held = part.old.probe(touched[:0])\n",
        f"{_RECOMPUTE} greatest_leaves",
    ),
    patch(
        "first rows that leave make room for others",
        "operators/recompute.py",
        "    stale = _shared(shown, leaving)\n",
        "    stale = _shared(shown, leaving)[:0]\n",
        f"{_RECOMPUTE} first_rows_while",
    ),
    patch(
        "rows that compare equal come in an order of their own",
        "operators/recompute.py",
        "    found: Codes = pc.sort_indices(table, sort_keys=keys).to_numpy()\n",
        "    found: Codes = np.arange(rows)\n",
        f"{_RECOMPUTE} order_of_arrival",
    ),
    patch(
        "a view that fails leaves nothing behind",
        "tick/views.py",
        "            computation.discard(name)\n",
        "",
        f"{_SUSPEND} only_views",
    ),
    patch(
        "a view that comes back takes in all that it missed",
        "tick/views.py",
        "since=_since(known))",
        "since=None)",
        f"{_SUSPEND} only_views",
    ),
    patch(
        "views above one that stands still stand still too",
        "tick/views.py",
        "        if inputs := [each for each in stopped if each != name + NEXT]:\n",
        "        if inputs := [each for each in stopped if each == name]:\n",
        f"{_SUSPEND} only_views",
    ),
    patch(
        "what is no longer kept is not taken for all that was missed",
        "tick/views.py",
        "        if known is not None and name in self._stale:\n",
        "        if known is not None and name in ():\n",
        f"{_REPLACE} made_anew",
    ),
    patch(
        "a letter goes with its row, whatever its function gives now",
        "tick/small.py",
        "        table = aside.left(table, node.child.output)\n",
        "        pass\n",
        f"{_SUSPEND} function_is_another",
    ),
    patch(
        "whoever reads a view that is replaced gets the difference",
        "tick/computation.py",
        "            self._difference(old, new)\n",
        "            pass\n",
        f"{_REPLACE} switches",
    ),
    patch(
        "an old version is what the name meant then",
        "read/relation.py",
        "        return self.before.at(tick) if self.before is not None and tick < self.since else self\n",
        "        return self\n",
        f"{_REPLACE} switches",
    ),
    patch(
        "plans that count on rows staying are found",
        "pipeline/replacing.py",
        '        if specification(name, view.spec["sql"]',
        '        if not name and specification(name, view.spec["sql"]',
        f"{_REPLACE} count_on_rows",
    ),
    patch(
        "views share only what Spark takes for the same",
        "views/sharing.py",
        "    return all(same(*pair) for pair in zip(",
        "    return all(True or same(*pair) for pair in zip(",
        f"{_SHARE} looks_alike",
    ),
    patch(
        "what is shared and was not kept up is made anew",
        "tick/past.py",
        "            if not name.startswith(SHARED) or name.partition",
        "            if True or name.partition",
        f"{_SHARE} nobody_kept_up",
    ),
    patch(
        "a view that stood still looks up the rows of its last good tick",
        "tick/computation.py",
        "old=lambda: self._past.rows(arrangement, since.tick))",
        "old=lambda: self._state.before(arrangement, schema).runs)",
        f"{_SHARE} one_view_stands_still",
    ),
    patch(
        "what views share is consolidated before it is evaluated",
        "tick/operating.py",
        "            return list(self._of(places, self.change).scan(low, high))\n",
        "            return [t for r in self.change for t in self._of(places, (r,)).scan(low, high)]\n",
        f"{_SHARE} one_view_stands_still",
    ),
    patch(
        "a merge takes the place of those runs alone that it was made of",
        "tick/state.py",
        "            if merged <= set(self.after(done.arrangement, done.schema).runs):",
        "            if True:",
        "tests/tick/test_merging.py -k dropped_meanwhile",
    ),
    patch(
        "the tick from which a suspended view goes on is kept",
        "tick/sweep.py",
        "    inner = {number for number in between if number > min(keep)}\n",
        "    inner = set()\n",
        f"{_BY_HAND} last_good_tick",
    ),
    patch(
        "what is shared is judged by what it reads itself",
        "tick/past.py",
        "            names = self.shared[name].reads\n",
        '            names = [n for v in self.shared[name].views for n in self.views[v].spec["inputs"]]\n',
        f"{_BY_HAND} another_view_reads",
    ),
    patch(
        "what is made anew begins with nothing",
        "tick/state.py",
        "                    self._of(each, pa.schema([]))\n",
        "                    pass\n",
        f"{_BY_HAND} nothing_of_what_it_had",
    ),
    patch(
        "a driver forgets what it merged before another one drove",
        "tick/driver.py",
        "            self._merging.drive(epoch)\n",
        "",
        f"{_BY_HAND} before_another_driver",
    ),
    patch(
        "plans that have become others share by what they are",
        "tick/driver.py",
        "            self._planning.share_anew()\n",
        "            pass\n",
        f"{_BY_HAND} becomes_another",
    ),
    patch(
        "the first rows of a key are in the order that was asked for",
        "operators/first.py",
        "        return found if order.ascending else ~found\n",
        "        return found\n",
        _FIRST,
    ),
    patch(
        "keys with the same hash are told apart",
        "operators/first.py",
        "    if not _have_one_key(keys, table, rows, groups[rows]):",
        "    if False:",
        _FIRST,
    ),
    patch(
        "a row that comes to the place of its like changes nothing",
        "operators/first.py",
        "    return consolidate(made) if tied and first.limit > 1 else made",
        "    return made",
        _FIRST,
    ),
    patch(
        "only a row that is alone stands for its group",
        "spark/alone.py",
        "    return len(chosen) <= 1 and all(",
        "    return True or all(",
        "tests/spark/test_alone.py",
    ),
    patch(
        "a view grows only if nothing it reads can disappear",
        "tick/computation.py",
        '            self._relations[name].kind in {"stream", "log"} for name in read\n',
        "            True for name in read\n",
        f"{_FAST} need_more_rows",
    ),
    patch(
        "parts of a change that are added up apart come together",
        "operators/accumulate.py",
        "        for part, mine in zip(partials, numbers, strict=True):\n",
        "        for part, mine in list(zip(partials, numbers, strict=True))[:1]:\n",
        f"{_FAST} apart_and_together",
    ),
    patch(
        "changes since a tick are summed however the input was arranged in between",
        "tick/computation.py",
        "        if relation is not None and relation.since > since.tick:",
        "        if False:",
        f"{_REPLACE} arranged_otherwise",
    ),
    patch(
        "floats that are all the same have no deviation",
        "operators/moments.py",
        "        base[groups[::-1]] = values[::-1]",
        "        pass",
        "tests/equivalence/test_aggregates.py -k do_not_deviate",
    ),
)
