"""Where hashes are among sorted ones that lie in a mapped file."""

from __future__ import annotations

import numpy as np

from headwater.change.gather import Indices
from headwater.state.checked import FEW, CheckedBatch
from headwater.state.run import HIGHEST

_BLOCK = 64
_MANY = 32
_LARGE = 1 << 16
_WORTH = 8192
"""Going through so many hashes touches as many pages, sixteen, as one or two binary searches would."""


class Hashes:
    """The hashes of a batch, which ascend and never change. Safe for threads.

    A binary search among a million touches a dozen places all over the file, and each may be a page that the
    processor has to look for. So once so many are searched for that it is worth going through all, the last of
    every block of 64 is kept apart, in memory that stays close: what is left is a search within one block, which
    is on one page, or two.

    `checked` is told which of the hashes were used before they are believed.
    """

    def __init__(self, hashes: Indices, checked: CheckedBatch | None = None) -> None:
        self.all = hashes
        self._checked = checked
        self._last_of_blocks: Indices | None = None

    def __len__(self) -> int:
        return len(self.all)

    def positions(self, wanted: Indices) -> Indices:
        """Of all that are among those wanted; these ascend without repeating, and none is behind the last."""
        left: Indices = self.below(wanted)
        hit = self.all[left] == wanted
        left, wanted = left[hit], wanted[hit]
        behind = np.minimum(left + 1, len(self.all) - 1)
        if self._checked is not None and not self._checked.is_whole:
            self._checked.hashes(np.concatenate([left, behind]))
        again = (self.all[behind] == wanted) & (behind != left)
        if not again.any():
            return left
        counts = np.ones(len(left), dtype=np.int64)
        counts[again] = self._upto(wanted[again]) - left[again]
        return _positions(left, counts)

    def within(self, lows: Indices, highs: Indices) -> Indices:
        """The positions of all that are in any of these ranges, which ascend and are apart."""
        left = np.minimum(self.below(lows), len(self.all))
        return _positions(left, self._upto(highs) - left)

    def _upto(self, wanted: Indices) -> Indices:
        """How many are as small as each of those wanted, or smaller."""
        larger = np.minimum(self.below(wanted + 1), len(self.all))
        return np.where(wanted == HIGHEST, len(self.all), larger)  # there is none that is larger

    def rank(self, wanted: int, *, upto: bool = False) -> int:
        """How many are smaller than this one; with `upto`, as small or smaller.

        Nobody has checked what is searched. But of all that a binary search looked at, it rests on the two between
        which it ended: if they are what was written, whatever else it saw cannot have led it astray.
        """
        found = int(np.searchsorted(self.all, wanted, side="right" if upto else "left"))
        if self._checked is not None:
            self._checked.hashes((found - 1, found))
        return found

    def below(self, wanted: Indices) -> Indices:
        """How many are smaller than each of those wanted; all or more, if one is behind the last."""
        if self._checked is not None and not self._checked.is_whole:
            if len(wanted) <= FEW:
                return np.array([self.rank(each) for each in wanted.tolist()], np.int64)
            self._checked.hashes(range(len(self)))
        return self._below(wanted)

    def _below(self, wanted: Indices) -> Indices:
        enough = len(wanted) >= _MANY and len(self.all) >= _LARGE
        if enough and self._last_of_blocks is None and len(wanted) * _WORTH >= len(self.all):
            self._last_of_blocks = self.all[_BLOCK - 1 :: _BLOCK].copy()
        if not enough or self._last_of_blocks is None:
            below: Indices = np.searchsorted(self.all, wanted)
            return below
        # the last that is known to be smaller
        found: Indices = np.searchsorted(self._last_of_blocks, wanted) * _BLOCK - 1
        step = _BLOCK // 2
        while step:
            further = found + step
            found = np.where(self.all.take(further, mode="clip") < wanted, further, found)
            step //= 2
        return found + 1


def _positions(begins: Indices, counts: Indices) -> Indices:
    """So many positions from each of these on."""
    before = np.cumsum(counts) - counts
    positions: Indices = np.repeat(begins - before, counts) + np.arange(int(counts.sum()))
    return positions
