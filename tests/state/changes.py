"""Random changes, and the slow and obvious way to add them up."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

import numpy as np
import pyarrow as pa

from headwater.change import HASH, WEIGHT

SCHEMA = pa.schema(
    [
        pa.field("key", pa.int64()),
        pa.field("name", pa.string()),
        pa.field("price", pa.float64()),
        pa.field(HASH, pa.int64(), nullable=False),
        pa.field(WEIGHT, pa.int64(), nullable=False),
    ]
)

Total = Counter[tuple[Any, ...]]


def table(rows: Iterable[tuple[Any, ...]], schema: pa.Schema = SCHEMA) -> pa.Table:
    columns = list(zip(*rows, strict=True)) or [()] * len(schema)
    return pa.Table.from_arrays(
        [pa.array(list(c), type=f.type) for c, f in zip(columns, schema, strict=True)], schema=schema
    )


def changes(random: np.random.Generator, rows: int, keys: int, hashes: int = 1 << 62) -> pa.Table:
    """Rows of few values, so that many are the same; few `hashes` make different keys collide."""
    key = random.integers(0, keys, rows)
    values = [
        (
            int(k),
            (None, "a", "b", "")[random.integers(0, 4)],
            (None, 0.5, 2.0)[random.integers(0, 3)],
            hash_of(int(k), hashes),
            int(random.integers(-2, 3)),
        )
        for k in key
    ]
    return table(values)


def hash_of(key: int, hashes: int = 1 << 62) -> int:
    return (key * 0x9E3779B97F4A7C15 + 0x1234567) % (1 << 64) % hashes - hashes // 2


def total(*tables: pa.Table) -> Total:
    """The sum of all changes; rows that cancel are not in it."""
    sums: Total = Counter()
    for one in tables:
        place = one.schema.names.index(WEIGHT)
        for row in zip(*(column.to_pylist() for column in one.columns), strict=True):
            sums[row[:place] + row[place + 1 :]] += row[place]
    return Counter({row: weight for row, weight in sums.items() if weight})
