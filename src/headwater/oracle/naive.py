"""What topics hold, by the slowest and most obvious way: all their records from the beginning, one after another.

For the oracle. Nothing here is shared with the engine, not even the hash of a row.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Hashable, Iterable, Iterator
from itertools import pairwise

import pyarrow as pa
import pyarrow.types as arrow_types

from headwater.log import Cut, Records
from headwater.topics import Topic
from headwater.topics.record_view import OPERATIONS, as_log_rows

_DELETE = OPERATIONS.index("delete")


def content(topic: Topic, cut: Cut) -> pa.Table:
    """The rows of a stream or table at a cut."""
    several = list(_records(topic, cut))
    columns = pa.Table.from_batches([records.batch for records in several], topic.declaration.stored_schema)
    operations = columns.column(0).to_pylist()
    stored = columns.select(list(topic.schema.names)).combine_chunks()
    if topic.kind == "stream":
        kept: Iterable[int] = range(stored.num_rows)
    elif topic.key:
        places = [records.partition for records in several for _ in range(records.batch.num_rows)]
        kept = _last_writes(operations, _keys(stored.select(list(topic.key)), places))
    else:
        kept = _remaining(operations, _rows(stored))
    rows = stored.take(pa.array(sorted(kept), pa.int64()))
    return pa.Table.from_arrays(rows.columns, schema=topic.schema.arrow)


def recorded(topic: Topic, cut: Cut) -> pa.Table:
    """The rows of `<topic>__log` at a cut."""
    several = list(_records(topic, cut))
    return as_log_rows(several, topic.log_schema()) if several else topic.log_schema().empty_table()


def _records(topic: Topic, cut: Cut) -> Iterator[Records]:
    for partition in range(topic.partitions):
        start, end = topic.log.start(topic.name, partition), cut.end(topic.name, partition)
        if start < end:
            yield from topic.log.read(topic.name, partition, start, end, columns=topic.declaration.stored_schema)


def _last_writes(operations: list[int], keys: list[Hashable]) -> Iterable[int]:
    """The number of the last write of every key that was not deleted after it."""
    alive: dict[Hashable, int] = {}
    for number, (operation, key) in enumerate(zip(operations, keys, strict=True)):
        if operation == _DELETE:
            alive.pop(key, None)
        else:
            alive[key] = number
    return alive.values()


def _remaining(operations: list[int], rows: list[Hashable]) -> Iterable[int]:
    """The numbers of the rows that no later delete took away; each takes one."""
    alive: dict[Hashable, list[int]] = {}
    for number, (operation, row) in enumerate(zip(operations, rows, strict=True)):
        same = alive.setdefault(row, [])
        if operation != _DELETE:
            same.append(number)
        elif same:
            same.pop()
    return [number for same in alive.values() for number in same]


def _keys(columns: pa.Table, places: list[int]) -> list[Hashable]:
    """Keys as SQL compares them: 0.0 is -0.0, and NaN is NaN. A key lives in its partition."""
    return list(zip(places, *(plain(column, _as_sql_compares) for column in columns.columns), strict=True))


def _rows(table: pa.Table) -> list[Hashable]:
    """Whole rows bit by bit."""
    return list(zip(*(plain(column, bits) for column in table.columns), strict=True))


def _as_sql_compares(number: float) -> Hashable:
    return "NaN" if number != number else number + 0.0  # noqa: PLR0124


def bits(number: float) -> Hashable:
    """A float as its bits; all NaN alike."""
    return "NaN" if number != number else struct.pack(">d", number)  # noqa: PLR0124


def plain(column: pa.Array | pa.ChunkedArray, floating: Callable[[float], Hashable]) -> list[Hashable]:
    """Values that Python can compare: times as integers, nested values as tuples, the entries of maps sorted.

    `floating` says what becomes of a float.
    """
    array = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    given = array.type
    if arrow_types.is_nested(given):
        bodies = _nested(array, floating)
    elif arrow_types.is_floating(given):
        return [None if value is None else floating(value) for value in array.to_pylist()]
    elif arrow_types.is_date32(given):
        bodies = array.view(pa.int32()).to_pylist()
    elif arrow_types.is_temporal(given):
        bodies = array.view(pa.int64()).to_pylist()
    elif arrow_types.is_string(given):
        bodies = array.cast(pa.binary()).to_pylist()  # Spark's strings may hold bytes that are no text
    else:
        bodies = array.to_pylist()
    return [body if valid else None for body, valid in zip(bodies, array.is_valid().to_pylist(), strict=True)]


def _nested(array: pa.Array, floating: Callable[[float], Hashable]) -> list[Hashable]:
    if arrow_types.is_struct(array.type):
        fields = [plain(field, floating) for field in array.flatten()]
        return list(zip(*fields, strict=True)) if fields else [()] * len(array)
    offsets = array.offsets.to_pylist()
    if arrow_types.is_map(array.type):
        entries = list(zip(plain(array.keys, floating), plain(array.items, floating), strict=True))
        return [tuple(sorted(entries[a:b], key=_by_key)) for a, b in pairwise(offsets)]
    elements = plain(array.values, floating)
    return [tuple(elements[a:b]) for a, b in pairwise(offsets)]


def _by_key(entry: tuple[Hashable, Hashable]) -> str:
    return repr(entry[0])
