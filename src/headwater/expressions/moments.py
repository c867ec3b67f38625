"""Variances and standard deviations from accumulators."""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]


def exact_moment(function: str, total: Decimal, squares: Decimal, count: int) -> float | None:
    """A moment of exact numbers, rounded once."""
    if count == 0:
        return None
    deviations = Fraction(squares) - Fraction(total) ** 2 / count
    return _finished(function, float(count), deviations)


def float_moment(function: str, count: float, _mean: float, deviations: float) -> float | None:
    """A moment of floats."""
    return None if count == 0 else _finished(function, count, deviations)


def _finished(function: str, count: float, deviations: Fraction | float) -> float | None:
    sample = function.endswith("Samp")
    if sample and count == 1:
        return None
    divisor = count - 1 if sample else count
    variance = float(deviations / Fraction(divisor) if isinstance(deviations, Fraction) else deviations / divisor)
    return math.sqrt(variance) if function.startswith("Stddev") and variance >= 0 else variance


def moments_of(values: Floats, counts: Floats, groups: npt.NDArray[np.int64], size: int) -> list[Floats]:
    """Number, mean and sum of squared deviations by group; exactly none if all values of a group are the same."""
    used = counts != 0
    values, counts, groups = values[used], counts[used], groups[used]
    with np.errstate(invalid="ignore", over="ignore"):
        number = _sums(groups, counts, size)
        base = np.zeros(size)
        base[groups[::-1]] = values[::-1]  # the first of each
        mean = base + _sums(groups, (values - base[groups]) * (counts / number[groups]), size)
        apart = values - mean[groups]
        return [number, mean, _sums(groups, apart * apart * counts, size)]


def _sums(groups: npt.NDArray[np.int64], values: Floats, size: int) -> Floats:
    return np.bincount(groups, values, size).astype(np.float64, copy=False)


def merged_moments(one: Sequence[Floats], other: Sequence[Floats]) -> list[Floats]:
    """The moments of two groups together."""
    (n1, mean1, dev1), (n2, mean2, dev2) = one, other
    number = n1 + n2
    with np.errstate(invalid="ignore", over="ignore"):
        apart = mean2 - mean1
        share = np.divide(n2, number, out=np.zeros(len(number)), where=number != 0)
        mean = np.where(n1 == 0, mean2, np.where(n2 == 0, mean1, mean1 + apart * share))
        both = (n1 != 0) & (n2 != 0)
        return [number, mean, dev1 + dev2 + np.where(both, apart * apart * n1 * share, 0.0)]
