"""Whole numbers in the order of values: the greater value never has the smaller one."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from headwater.change.ordinals import GREATEST, LEAST, bit_lengths, compressed, has_ordinals, ordinals

NAN, INFINITE = float("nan"), float("inf")
IN_ORDER: dict[str, list[pa.Array]] = {
    "long": [pa.array([LEAST, -7, -1, 0, 1, 300, GREATEST])],
    "short": [pa.array([-(1 << 15), -1, 0, 5], pa.int16())],
    "double": [pa.array([-INFINITE, -1e300, -1.0, -5e-324, 0.0, 5e-324, 1.0, 1e300, INFINITE, NAN])],
    "float": [pa.array([-INFINITE, -1.5, 0.0, 1.5, INFINITE, NAN], pa.float32())],
    "decimal": [
        pa.array([Decimal("-5.01"), Decimal("-5.00"), Decimal("0.01"), Decimal("9.99")], pa.decimal128(10, 2))
    ],
    "date": [pa.array([date(1, 1, 1), date(1970, 1, 1), date(2026, 1, 1), date(9999, 12, 31)])],
    "moment": [pa.array([datetime(1900, 1, 1, tzinfo=UTC), datetime(2026, 1, 1, 12, 0, 0, 1, tzinfo=UTC)])],
    "text": [pa.array(["", "a", "a b", "ab", "abcdefgh", "b", "é"])],
    "binary, in parts": [pa.array([b"", b"\x00"]), pa.array([b"a", b"\xff\xff"])],
}


@pytest.mark.parametrize("parts", IN_ORDER.values(), ids=IN_ORDER)
def test_numbers_are_in_the_order_of_values(parts: list[pa.Array]) -> None:
    column = pa.chunked_array(parts)
    assert has_ordinals(column.type)
    found = ordinals(column)
    assert bool(np.all(found[1:] >= found[:-1]))
    assert len(np.unique(found)) == len(column) - (column.type == pa.binary())  # a zero byte is as none
    for bits in (32, 40, 59, 64):
        fewer = compressed(found, bits)
        assert bool(np.all(fewer[1:] >= fewer[:-1]))
    assert ordinals(column.slice(1)).tolist() == found[1:].tolist()


def test_values_that_are_equal_have_the_same_number() -> None:
    floats = pa.chunked_array(
        [pa.array([0.0, -0.0, NAN, np.float64(np.uint64(0x7FF8000000000001).view(np.float64))])]
    )
    zero, negative, one, other = ordinals(floats).tolist()
    assert zero == negative == 0
    assert one == other


def test_what_has_no_order_or_too_many_digits_has_no_numbers() -> None:
    kinds: list[Any] = [
        pa.bool_(),
        pa.decimal128(19, 2),
        pa.list_(pa.int64()),
        pa.struct([("a", pa.int64())]),
        pa.null(),
    ]
    assert not [kind for kind in kinds if has_ordinals(kind)]


@pytest.mark.parametrize("bits", [24, 35, 40, 59, 64])
@pytest.mark.parametrize("seed", range(3))
def test_fewer_bits_keep_the_order_and_small_numbers_apart(bits: int, seed: int) -> None:
    random = Random(seed)
    some = [random.choice([-1, 1]) * random.getrandbits(random.randint(0, 63)) for _ in range(3000)]
    given = np.array(sorted({*some, LEAST, GREATEST, -1, 0, 1}), np.int64)
    made = compressed(given, bits)
    assert bool(np.all(made[1:] >= made[:-1]))
    assert bits == 64 or int(made.max()) < 1 << bits
    small = np.abs(given) < 1 << (bits - 8)
    assert len(np.unique(made[small & (given != LEAST)])) == np.count_nonzero(small & (given != LEAST))


def test_the_length_of_a_number_is_exact_at_powers_of_two() -> None:
    numbers = [0, 1, 2, 3, 4, (1 << 53) - 1, 1 << 53, (1 << 63) - 1, 1 << 63, (1 << 64) - 1]
    assert bit_lengths(np.array(numbers, np.uint64)).tolist() == [each.bit_length() for each in numbers]
