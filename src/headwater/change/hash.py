"""Spark's `xxhash64` over rows, without Spark.

The hash of a row is XXH64 with seed 42, each column's hash being the seed of the next; a null leaves it as it is:

    bool, 8 to 32-bit integers, dates          4 bytes
    64-bit integers, timestamps, times,
      durations, decimals up to 18 digits      8 bytes
    floats                                     their bits; -0.0 as 0.0, all NaN as one
    wider decimals                             the shortest big-endian two's complement of the unscaled value
    text, binary                               the bytes
    structs                                    their fields, one after the other

Spark itself hashes lists and maps piece by piece. Ours only have to agree with themselves, so they are hashed over
one encoding of the whole value: 0 for null, else 1 followed by the value: fixed-width values as above in
little-endian, 8 bytes of length before bytes, lists and maps, the fields of structs in order, and the entries of
maps in the order of their encoded keys.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.types as arrow_types
import xxhash

from headwater.errors import SchemaError

_SEED = 42
_LONG_DECIMAL = 18
_MANY = 1_000
_FEW = 64
_STRIPE = 32
_P1 = np.uint64(0x9E3779B185EBCA87)
_P2 = np.uint64(0xC2B2AE3D27D4EB4F)
_P3 = np.uint64(0x165667B19E3779F9)
_P4 = np.uint64(0x85EBCA77C2B2AE63)
_P5 = np.uint64(0x27D4EB2F165667C5)

Hashes = npt.NDArray[np.uint64]
Numbers = npt.NDArray[Any]


def hash_rows(arrays: Sequence[pa.Array]) -> npt.NDArray[np.int64]:
    """The hash of each row over the arrays in order, as Spark's `xxhash64(…)` gives it for atomic types.

    The arrays have equal length and the Arrow types that a schema stores.
    """
    if not arrays:
        what = "a hash needs at least one column"
        raise SchemaError(what)
    seeds = np.full(len(arrays[0]), _SEED, dtype=np.uint64)
    with np.errstate(over="ignore"):
        return _hash_columns(arrays, seeds).view(np.int64)


def _hash_columns(arrays: Sequence[pa.Array], hashes: Hashes) -> Hashes:
    for array in arrays:
        hashed = _hash_column(array, hashes)
        hashes = np.where(np.asarray(array.is_null()), hashes, hashed) if array.null_count else hashed
    return hashes


def _hash_column(array: pa.Array, seeds: Hashes) -> Hashes:
    if arrow_types.is_struct(array.type):
        return _hash_columns(array.flatten(), seeds)
    numbers = _numbers(array)
    if numbers is None:
        return _hash_repeated(array, seeds)
    return _hash_ints(numbers, seeds) if numbers.dtype.itemsize == 4 else _hash_longs(numbers, seeds)


def _numbers(array: pa.Array) -> Numbers | None:
    """The values as 4 or 8-byte integers, zero for null, as Spark sees them; None if they are bytes to Spark."""
    given = array.type
    if arrow_types.is_boolean(given) or (arrow_types.is_signed_integer(given) and given.bit_width < 32):
        return _filled(array.cast(pa.int32()))
    if arrow_types.is_floating(given) and given.bit_width >= 32:
        return _float_bits(_filled(array))
    if arrow_types.is_decimal128(given) and given.precision <= _LONG_DECIMAL:
        return _low_words(array)
    if arrow_types.is_signed_integer(given) or arrow_types.is_date32(given) or _counts_time(given):
        return _filled(array.view(pa.int32() if given.bit_width == 32 else pa.int64()))
    return None


def _counts_time(given: pa.DataType) -> bool:
    return bool(arrow_types.is_timestamp(given) or arrow_types.is_time64(given) or arrow_types.is_duration(given))


def _filled(array: pa.Array) -> Numbers:
    filled: Numbers = (array.fill_null(0) if array.null_count else array).to_numpy(zero_copy_only=False)
    return filled


def _float_bits(values: Numbers) -> Numbers:
    canonical = np.where(np.isnan(values), np.nan, values + 0.0).astype(values.dtype)
    return canonical.view(np.int32 if values.dtype.itemsize == 4 else np.int64)


def _low_words(array: pa.Array) -> Numbers:
    """The unscaled values of decimals that fit 64 bits: the low half of each 128."""
    words = np.frombuffer(array.buffers()[1], dtype=np.int64)
    return words[2 * array.offset : 2 * (array.offset + len(array)) : 2]


def _bytes(array: pa.Array) -> list[bytes]:
    """The values as bytes, empty for null."""
    given = array.type
    if arrow_types.is_nested(given):
        return encode(array)
    if arrow_types.is_decimal128(given):
        return [_shortest(number) for number in _unscaled(array)]
    binary = array.cast(pa.large_binary() if arrow_types.is_large_string(given) else pa.binary())
    values: list[bytes] = (binary.fill_null(b"") if binary.null_count else binary).to_pylist()
    return values


def _unscaled(array: pa.Array) -> list[int]:
    raw = array.buffers()[1].to_pybytes()
    starts = range(16 * array.offset, 16 * (array.offset + len(array)), 16)
    return [int.from_bytes(raw[start : start + 16], "little", signed=True) for start in starts]


def _shortest(number: int) -> bytes:
    """The bytes of Java's `BigInteger.toByteArray`."""
    bits = (number if number >= 0 else ~number).bit_length()
    return number.to_bytes(bits // 8 + 1, "big", signed=True)


def _hash_repeated(array: pa.Array, seeds: Hashes) -> Hashes:
    """Hash each different value once, if they are atomic and few: with the one seed that all have, or with all."""
    if len(array) < _MANY or arrow_types.is_nested(array.type):
        return _hash_bytes(_bytes(array), seeds)
    one_seed = bool((seeds == seeds[0]).all())
    encoded = array.dictionary_encode(null_encoding="encode")
    if len(encoded.dictionary) > (len(array) // 2 if one_seed else _FEW):
        return _hash_bytes(_bytes(array), seeds)
    values, places = _bytes(encoded.dictionary), encoded.indices.to_numpy(zero_copy_only=False)
    if one_seed:
        spread: Hashes = np.take(_hash_bytes(values, seeds[: len(values)]), places)
        return spread
    hashed = np.empty(len(array), np.uint64)
    order = np.argsort(places, kind="stable")
    ends = np.cumsum(np.bincount(places, minlength=len(values)))
    for value, rows in zip(values, np.split(order, ends[:-1]), strict=True):
        hashed[rows] = _hash_one(value, seeds[rows])
    return hashed


def _hash_one(value: bytes, seeds: Hashes) -> Hashes:
    """One value with many seeds."""
    mixed, rest = seeds + _P5, value
    if len(value) >= _STRIPE:
        mixed, rest = _hash_stripes(value, seeds)
    mixed = mixed + np.uint64(len(value))
    while len(rest) >= 8:
        mixed = _rotated(mixed ^ (_rotated(_word(rest, 8) * _P2, 31) * _P1), 27) * _P1 + _P4
        rest = rest[8:]
    if len(rest) >= 4:
        mixed = _rotated(mixed ^ (_word(rest, 4) * _P1), 23) * _P2 + _P3
        rest = rest[4:]
    for byte in rest:
        mixed = _rotated(mixed ^ (np.uint64(byte) * _P5), 11) * _P1
    return _finish(mixed)


def _hash_stripes(value: bytes, seeds: Hashes) -> tuple[Hashes, bytes]:
    """What long values begin with, 32 bytes at a time, and the rest."""
    lanes = [seeds + _P1 + _P2, seeds + _P2, seeds + np.uint64(0), seeds - _P1]
    while len(value) >= _STRIPE:
        for number in range(4):
            lanes[number] = _round(lanes[number], _word(value[8 * number :], 8))
        value = value[_STRIPE:]
    mixed: Hashes = _rotated(lanes[0], 1) + _rotated(lanes[1], 7) + _rotated(lanes[2], 12) + _rotated(lanes[3], 18)
    for lane in lanes:
        mixed = (mixed ^ _round(np.zeros_like(lane), lane)) * _P1 + _P4
    return mixed, value


def _round(lane: Hashes, word: Hashes | np.uint64) -> Hashes:
    made: Hashes = _rotated(lane + word * _P2, 31) * _P1
    return made


def _word(value: bytes, size: int) -> np.uint64:
    return np.uint64(int.from_bytes(value[:size], "little"))


def _hash_bytes(values: list[bytes], seeds: Hashes) -> Hashes:
    digest = xxhash.xxh64_intdigest
    hashed = [digest(value, seed) for value, seed in zip(values, seeds.tolist(), strict=True)]
    return np.array(hashed, dtype=np.uint64)


def _hash_ints(numbers: Numbers, seeds: Hashes) -> Hashes:
    words = np.ascontiguousarray(numbers).view(np.uint32).astype(np.uint64)
    mixed = (seeds + _P5 + np.uint64(4)) ^ (words * _P1)
    return _finish(_rotated(mixed, 23) * _P2 + _P3)


def _hash_longs(numbers: Numbers, seeds: Hashes) -> Hashes:
    words = np.ascontiguousarray(numbers).view(np.uint64)
    mixed = (seeds + _P5 + np.uint64(8)) ^ (_rotated(words * _P2, 31) * _P1)
    return _finish(_rotated(mixed, 27) * _P1 + _P4)


def _rotated(words: Any, bits: int) -> Any:
    return (words << np.uint64(bits)) | (words >> np.uint64(64 - bits))


def _finish(mixed: Hashes) -> Hashes:
    mixed = (mixed ^ (mixed >> np.uint64(33))) * _P2
    mixed = (mixed ^ (mixed >> np.uint64(29))) * _P3
    return mixed ^ (mixed >> np.uint64(32))


def encode(array: pa.Array) -> list[bytes]:
    """Each value in the encoding of this module: equal values have equal bytes, different ones different bytes."""
    bodies = _bodies(array)
    if not array.null_count:
        return [b"\1" + body for body in bodies]
    return [
        b"\1" + body if valid else b"\0" for body, valid in zip(bodies, array.is_valid().to_pylist(), strict=True)
    ]


def compact(array: pa.Array) -> pa.Array:
    """The same values without a slice around them: what lists and maps consist of ignores slices and nulls."""
    return array.take(pa.array(np.arange(len(array))))


def _bodies(array: pa.Array) -> list[bytes]:
    given = array.type
    if arrow_types.is_struct(given):
        if not given.num_fields:
            return [b""] * len(array)
        return [b"".join(parts) for parts in zip(*map(encode, array.flatten()), strict=True)]
    if arrow_types.is_map(given):
        maps = compact(array)
        entries = [key + item for key, item in zip(encode(maps.keys), encode(maps.items), strict=True)]
        offsets = maps.offsets.to_pylist()
        return [_counted(sorted(entries[a:b])) for a, b in pairwise(offsets)]
    if arrow_types.is_list(given):
        elements = encode(array.flatten())
        ends = np.cumsum(array.value_lengths().fill_null(0).to_numpy(zero_copy_only=False)).tolist()
        return [_counted(elements[a:b]) for a, b in pairwise([0, *ends])]
    numbers = _numbers(array)
    if numbers is not None:
        return [number.tobytes() for number in numbers]
    return [len(value).to_bytes(8, "little") + value for value in _bytes(array)]


def _counted(parts: list[bytes]) -> bytes:
    return len(parts).to_bytes(8, "little") + b"".join(parts)
