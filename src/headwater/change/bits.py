"""Columns rewritten so that comparing them compares bits: what makes two rows the same row.

Floats become their bits, so that -0.0 is not 0.0, and every NaN becomes the same one. Structs become their fields.
Lists and maps become the canonical encoding of `headwater.change.hash`, in which the order of a map's entries does
not matter. Everything else compares by bits as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as arrow_types

from headwater.change.hash import compact, encode

_INTEGERS = {8: pa.int8(), 16: pa.int16(), 32: pa.int32(), 64: pa.int64()}
_ODD = np.uint64(0x9E3779B97F4A7C15)
_HALF = np.uint64(32)


def bit_columns(columns: Iterable[pa.ChunkedArray]) -> list[pa.ChunkedArray]:
    """Columns that are the same in two rows (null counting as a value) exactly when the given ones are.

    A column of type null is the same in all rows, so there is none for it.
    """
    return [bits for column in columns for bits in _bit_columns(column)]


def fingerprints(columns: Iterable[pa.ChunkedArray], seed: npt.NDArray[np.int64]) -> npt.NDArray[np.uint64]:
    """A number for each row, from what is quick to look at: equal for equal rows, and seldom for others.

    Of texts and the like that is the length only. `columns` are those that `bit_columns` gave.
    """
    mixed = seed.view(np.uint64).copy()
    for column in columns:
        for numbers in _quick_numbers(column):
            mixed ^= numbers
            mixed *= _ODD
            mixed ^= mixed >> _HALF
    return mixed


def _quick_numbers(column: pa.ChunkedArray) -> list[npt.NDArray[np.uint64]]:
    given = column.type
    if arrow_types.is_boolean(given):
        found = [column]
    elif arrow_types.is_binary(given) or arrow_types.is_string(given) or arrow_types.is_large_binary(given):
        found = [pc.binary_length(column)]
    elif arrow_types.is_decimal128(given):
        found = [_by_chunk(column, _low_bits, pa.int64())]
    elif arrow_types.is_primitive(given) and given.bit_width in _INTEGERS:
        integer = _INTEGERS[given.bit_width]
        found = [_by_chunk(column, lambda chunk: chunk.view(integer), integer)]
    else:
        found = []
    if column.null_count:
        found.append(column.is_valid())
    return [_unsigned(each) for each in found]


def _low_bits(array: pa.Array) -> pa.Array:
    """The lower half of each decimal."""
    low, _ = decimal_halves(array)
    return pa.array(low, mask=array.is_null().to_numpy(zero_copy_only=False) if array.null_count else None)


def decimal_halves(array: pa.Array) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """The lower and upper 64 bits of each decimal, whatever they are where it is null."""
    both = np.frombuffer(array.buffers()[1], np.int64)[2 * array.offset : 2 * (array.offset + len(array))]
    return both[::2], both[1::2]


def _unsigned(column: pa.ChunkedArray) -> npt.NDArray[np.uint64]:
    filled = pc.fill_null(column, pa.scalar(0).cast(column.type)) if column.null_count else column
    return np.asarray(filled.to_numpy(), dtype=np.int64).view(np.uint64)


def _bit_columns(column: pa.ChunkedArray) -> list[pa.ChunkedArray]:
    given = column.type
    if arrow_types.is_null(given):
        return []
    if arrow_types.is_struct(given):
        return [column.is_valid(), *bit_columns(column.flatten())]
    if arrow_types.is_nested(given):
        return [_by_chunk(column, _encoded, pa.large_binary())]
    if arrow_types.is_floating(given):
        return [_by_chunk(column, _float_bits, _bits_type(given))]
    return [column]


def _by_chunk(
    column: pa.ChunkedArray, function: Callable[[pa.Array], pa.Array], kind: pa.DataType
) -> pa.ChunkedArray:
    return pa.chunked_array([function(chunk) for chunk in column.chunks], type=kind)


def _encoded(array: pa.Array) -> pa.Array:
    return pa.array(encode(_without_floats(array)), type=pa.large_binary())


def _bits_type(given: pa.DataType) -> pa.DataType:
    return _INTEGERS[given.bit_width]


def _float_bits(array: pa.Array) -> pa.Array:
    nan = pc.is_nan(array)
    if pc.any(nan).as_py():
        array = pc.if_else(nan, pa.scalar(np.nan, type=array.type), array)
    return array.view(_bits_type(array.type))


def _without_floats(array: pa.Array) -> pa.Array:
    """The same nested values with floats replaced by their bits."""
    given = array.type
    if arrow_types.is_floating(given):
        return _float_bits(array)
    if not _has_floats(given):
        return array
    array = compact(array)
    if arrow_types.is_struct(given):
        parts = [_without_floats(part) for part in array.flatten()]
        return pa.StructArray.from_arrays(parts, names=[field.name for field in given], mask=array.is_null())
    if arrow_types.is_map(given):
        items = _without_floats(array.items)
        return pa.MapArray.from_arrays(array.offsets, _without_floats(array.keys), items, mask=array.is_null())
    return pa.ListArray.from_arrays(array.offsets, _without_floats(array.values), mask=array.is_null())


def _has_floats(given: pa.DataType) -> bool:
    if arrow_types.is_nested(given):
        return any(_has_floats(given.field(index).type) for index in range(given.num_fields))
    return bool(arrow_types.is_floating(given))
