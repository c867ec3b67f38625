"""Ranking: the first rows of each key in an order, found without Spark.

Rows are told apart by one column of the order after the other, and only those that are still tied, and may be among
the first, are looked at again. Where the query leaves the order open, the rows themselves decide.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as arrow_types

from headwater.change import HASH, WEIGHT
from headwater.change.bits import bit_columns
from headwater.change.canonical import canonical_order
from headwater.change.gather import gather
from headwater.change.keys import Codes, codes
from headwater.change.weights import appended
from headwater.plan.operators import Names
from headwater.plan.registry import register

_Key = Callable[[Codes], Codes]
"""Gives the rows at some positions numbers that are in the order of a column."""


@register()
@dataclass(frozen=True)
class Order:
    """A column that rows are ordered by."""

    column: str
    ascending: bool
    nulls_first: bool


@register("First")
@dataclass(frozen=True)
class Ranking:
    """So many rows of each key, the first in an order; `place` is the column that numbers them."""

    limit: int
    order: tuple[Order, ...]
    place: str

    def renamed(self, names: Names) -> Ranking:
        """The same of columns with other names."""
        order = tuple(replace(each, column=names[each.column]) for each in self.order)
        return replace(self, order=order, place=names[self.place])


def repeated(rows: pa.Table, most: int) -> pa.Table:
    """Each row as often as its weight says, or as often as it can be among the first."""
    weights = rows.column(WEIGHT).to_numpy()
    if not (weights > 1).any():
        return rows
    return gather(rows, np.repeat(np.arange(len(weights)), np.minimum(weights, most)))


def numbered(ranking: Ranking, rows: pa.Table, numbers: Codes, schema: pa.Schema) -> pa.Table:
    """Rows as a change with these columns, of which one may be their numbers."""
    table = appended(rows)
    if ranking.place in schema.names:
        table = table.append_column(ranking.place, pa.array(numbers, schema.field(ranking.place).type))
    return pa.Table.from_arrays([table.column(name) for name in schema.names], schema=schema)


def ranked(ranking: Ranking, keys: Sequence[str], table: pa.Table) -> tuple[Codes, Codes, bool]:
    """The positions of the first rows of each key, the place of each in its key, from 1, and if some were tied.

    Rows that are the same stay as they stand.
    """
    ties = _Ties(*_grouped(keys, table), ranking.limit)
    for order in ranking.order:
        for key in _sort_keys(table.column(order.column).combine_chunks(), order):
            ties.split(key)
    tied = ties.split(lambda rows: _inverse(canonical_order(gather(table, rows).drop_columns([HASH]))))
    return ties.rows, ties.places + 1, tied


def _grouped(keys: Sequence[str], table: pa.Table) -> tuple[Codes, Codes]:
    """The positions with rows of one key side by side, and the number of each one's key."""
    groups = table.column(HASH).to_numpy()
    rows = np.argsort(groups, kind="stable")
    if not _have_one_key(keys, table, rows, groups[rows]):  # other keys have the same hash
        (groups,) = codes([[table.column(name) for name in keys]])
        rows = np.argsort(groups, kind="stable")
    return rows, _stretches(groups[rows])


def _have_one_key(keys: Sequence[str], table: pa.Table, rows: Codes, hashes: Codes) -> bool:
    """Whether rows with the same hash, which stand side by side, surely have the same key."""
    tied = np.flatnonzero(hashes[1:] == hashes[:-1])
    for column in bit_columns([table.column(name) for name in keys]):
        whole = column.combine_chunks()
        one, other = (whole.take(pa.array(rows[tied + step])) for step in (0, 1))
        if not pc.all(pc.fill_null(pc.equal(one, other), fill_value=False), min_count=0).as_py():
            return False
    return True


def _stretches(values: Codes) -> Codes:
    """A number for each stretch of equal values."""
    return np.cumsum(_begins(values)) - 1


def _begins(values: Codes) -> npt.NDArray[np.bool_]:
    """Where a value is another than the one before."""
    begins = np.ones(len(values), np.bool_)
    begins[1:] = values[1:] != values[:-1]
    return begins


class _Ties:
    """Rows side by side by group, in blocks of rows that are tied so far; those beyond the limit are left out."""

    def __init__(self, rows: Codes, groups: Codes, limit: int) -> None:
        self.rows = rows
        self._groups = groups
        self._blocks = groups
        self._limit = limit

    @property
    def places(self) -> Codes:
        """The place of each row in its group, from 0."""
        begins = np.flatnonzero(_begins(self._groups))
        return np.arange(len(self.rows)) - np.repeat(begins, np.diff(np.append(begins, len(self.rows))))

    def split(self, key: _Key) -> bool:
        """Order the tied rows by a key, and leave out what comes too late; False if none are tied."""
        tied = self._tied()
        if not len(tied):
            return False
        values, blocks = key(self.rows[tied]), self._blocks[tied]
        order = np.lexsort((values, blocks))
        self.rows[tied] = self.rows[tied][order]
        begins = _begins(self._blocks)
        begins[tied] |= _begins(values[order])  # beginnings of blocks are among them
        firsts = np.flatnonzero(begins)
        early = np.repeat(self.places[firsts], np.diff(np.append(firsts, len(begins)))) < self._limit
        self.rows, self._groups = self.rows[early], self._groups[early]
        self._blocks = np.cumsum(begins, dtype=np.int64)[early]
        return True

    def _tied(self) -> Codes:
        """The positions of rows that are not alone in their block."""
        begins = _begins(self._blocks)
        return np.flatnonzero(~(begins & np.append(begins[1:], True)[: len(begins)]))


def _sort_keys(column: pa.Array, order: Order) -> Iterator[_Key]:
    """Numbers that are in an order, first of what is null, then of the values."""
    if column.null_count:
        present = column.is_valid().to_numpy(zero_copy_only=False).astype(np.int64)
        yield lambda rows: present[rows] if order.nulls_first else -present[rows]
    numbers = _numbers(column)

    def key(rows: Codes) -> Codes:
        found = _ranks(column.take(pa.array(rows))) if numbers is None else numbers[rows]
        return found if order.ascending else ~found

    yield key


def _numbers(column: pa.Array) -> Codes | None:
    """Numbers in the order of the values, any for nulls; None if it takes more than a look at each to tell them."""
    given = column.type
    if arrow_types.is_floating(given):
        return _of_floats(column)
    if arrow_types.is_boolean(given) or arrow_types.is_signed_integer(given):
        whole = column.cast(pa.int64())
    elif arrow_types.is_date32(given):
        whole = column.view(pa.int32()).cast(pa.int64())
    elif arrow_types.is_timestamp(given):
        whole = column.view(pa.int64())
    else:
        return None
    found: Codes = (whole.fill_null(0) if whole.null_count else whole).to_numpy(zero_copy_only=False)
    return found


def _of_floats(column: pa.Array) -> Codes:
    """As Spark orders them: -0.0 is 0.0, and NaN is greater than all others."""
    values = column.cast(pa.float64()).fill_null(0.0).to_numpy(zero_copy_only=False) + 0.0
    bits = np.where(np.isnan(values), np.nan, values).view(np.int64)
    return np.where(bits < 0, bits ^ np.iinfo(np.int64).max, bits)


def _ranks(values: pa.Array) -> Codes:
    """The rank of each value among them."""
    encoded = values.dictionary_encode()
    ranks = _inverse(pc.sort_indices(encoded.dictionary).to_numpy().astype(np.int64))
    places = encoded.indices.fill_null(0).to_numpy(zero_copy_only=False)
    return ranks[places] if len(ranks) else np.zeros(len(values), np.int64)


def _inverse(order: Codes) -> Codes:
    """The place of each position in an order."""
    places = np.empty_like(order)
    places[order] = np.arange(len(order))
    return places
