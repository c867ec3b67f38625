"""Values as whole numbers in the same order: 64 bits of them, or fewer that keep their order of magnitude.

    whole numbers, dates, moments, times,      what they are stored as; decimals up to 18 digits, which have one
      durations, decimals                        type where they are compared, by their digits
    floats                                     their bits; -0.0 as 0.0, NaN above all others, as in Spark
    text, binary                               their first 8 bytes

Of two values the greater never has the smaller number, but it may have the same.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.types as arrow_types

Ordinals = npt.NDArray[np.int64]
Places = npt.NDArray[np.uint64]
LEAST, GREATEST = -(1 << 63), (1 << 63) - 1
_LONG_DECIMAL = 18
_FIRST_BYTES = "S8"
_TOP = np.uint64(1 << 63)
_EXPONENT = 6
"""So many bits tell where the highest bit of a number is that is written with fewer than it has."""


def has_ordinals(kind: pa.DataType) -> bool:
    """Whether values of a type have such numbers."""
    if arrow_types.is_decimal128(kind):
        return bool(kind.precision <= _LONG_DECIMAL)
    is_time = arrow_types.is_temporal(kind) and not arrow_types.is_interval(kind)
    is_number = arrow_types.is_signed_integer(kind) or arrow_types.is_float32(kind) or arrow_types.is_float64(kind)
    return bool(is_number or is_time or arrow_types.is_string(kind) or arrow_types.is_binary(kind))


def ordinals(column: pa.ChunkedArray) -> Ordinals:
    """The numbers of a column without nulls."""
    return np.concatenate([_ordinals(chunk) for chunk in column.chunks] or [np.zeros(0, np.int64)])


def _ordinals(array: pa.Array) -> Ordinals:
    kind = array.type
    if arrow_types.is_decimal128(kind):
        words = np.frombuffer(array.buffers()[1], dtype=np.int64)
        return words[2 * array.offset : 2 * (array.offset + len(array)) : 2].copy()
    if arrow_types.is_floating(kind):
        values = array.to_numpy(zero_copy_only=False).astype(np.float64)
        bits: Ordinals = np.where(np.isnan(values), np.nan, values + 0.0).view(np.int64)
        return np.where(bits < 0, bits ^ GREATEST, bits)
    if arrow_types.is_string(kind) or arrow_types.is_binary(kind):
        first = np.array(array.cast(pa.binary()).to_pylist(), dtype=_FIRST_BYTES)
        return (first.view(">u8").astype(np.uint64) ^ _TOP).view(np.int64)
    if arrow_types.is_temporal(kind):
        array = array.view(pa.int32() if kind.bit_width == 32 else pa.int64())
    return np.asarray(array.to_numpy(zero_copy_only=False), np.int64)


def bit_lengths(numbers: Places) -> Ordinals:
    """How many bits each number has without leading zeros."""
    high, low = numbers >> np.uint64(32), numbers & np.uint64((1 << 32) - 1)
    lengths = (np.frexp(each.astype(np.float64))[1] for each in (high, low))
    of_high, of_low = lengths
    return np.where(high > 0, of_high + 32, of_low).astype(np.int64)


def compressed(numbers: Ordinals, bits: int) -> Places:
    """Numbers of so many bits in the same order: sign, where the highest bit is, and as many behind it as fit.

    >>> compressed(np.array([-3, 0, 5, 1 << 40]), 24).tolist()
    [8388605, 8388608, 8388613, 11534336]
    """
    if bits == 64:
        return numbers.view(np.uint64) ^ _TOP
    kept = np.uint64(bits - 1 - _EXPONENT)
    negative = numbers < 0
    sizes = np.where(negative, ~numbers, numbers).view(np.uint64)
    dropped = np.maximum(bit_lengths(sizes) - int(kept) - 1, 0).astype(np.uint64)
    made = (dropped << kept) + (sizes >> dropped)
    half = np.uint64(1 << (bits - 1))
    return np.where(negative, half - np.uint64(1) - made, half + made)
