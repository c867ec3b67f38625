"""Random numbers by position: what event 17 draws depends on the seed and on 17, not on who was asked before.

A 64-bit counter goes through the finaliser of splitmix64. That is what makes a generator resumable anywhere and
lets it draw whole columns at once.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Integers = NDArray[np.int64]
Reals = NDArray[np.float64]

_STEP = 0x9E3779B97F4A7C15
_ROUNDS = ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB))
_LAST = 31
_WORD = (1 << 64) - 1


class Draws:
    """The draws of some events. Each name is a sequence of its own."""

    def __init__(self, seed: int, numbers: Integers) -> None:
        self._seed = _mixed(seed & _WORD)
        self._counters = numbers.astype(np.uint64) * np.uint64(_STEP)

    def real(self, name: str) -> Reals:
        """Evenly from 0 up to and without 1, one for each event."""
        words = self._counters + np.uint64(_named(self._seed, name))
        for shift, factor in _ROUNDS:
            words ^= words >> np.uint64(shift)
            words *= np.uint64(factor)
        words ^= words >> np.uint64(_LAST)
        words >>= np.uint64(11)
        return words.astype(np.float64) * 2.0**-53

    def below(self, name: str, limit: int | Integers) -> Integers:
        """Evenly from 0 up to and without the limit, one for each event."""
        return (self.real(name) * limit).astype(np.int64)

    def all_but_one_in(self, name: str, count: int) -> NDArray[np.bool_]:
        """True for all but one in so many events."""
        return self.real(name) * count >= 1


def _named(seed: int, name: str) -> int:
    word = seed
    for byte in name.encode():
        word = _mixed(word + byte)
    return word


def _mixed(word: int) -> int:
    word = (word + _STEP) & _WORD
    for shift, factor in _ROUNDS:
        word = (word ^ (word >> shift)) * factor & _WORD
    return word ^ (word >> _LAST)
