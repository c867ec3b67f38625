"""Places: where rows of a key lie in the order of their ranges, as the one number by which state is sorted.

A row is a stretch from a `first` to a `last` value, which may be the same column, and either may be open. Its place
has, from the highest bit on,

    24 bits of the hash of its key      if there is a key
     5 bits of how long it is           if it has two ends: n where the length is below 4^n, from 0 to 31
    the other bits of where it begins   where its last value is, if the first is open

so that what lies within a range is a stretch of places: one, or one for each length. Of all that are shorter than
4^n, those that reach a value begin less than that before it. The bits that do not fit are dropped, as is what tells
keys and texts apart that begin alike: a stretch of places has all rows that are looked for, and maybe some others.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa

from headwater.change import HASH
from headwater.change.consolidate import numbers
from headwater.change.gather import each_once
from headwater.change.keys import Codes
from headwater.change.ordinals import GREATEST, LEAST, Ordinals, bit_lengths, compressed, ordinals

_KEY_BITS, _LENGTH_BITS = 24, 5
_LENGTHS = 1 << _LENGTH_BITS
_TOP = np.uint64(1 << 63)


class Span(NamedTuple):
    """The columns where the stretches of a side begin and end; an end that is open has none."""

    first: str
    last: str

    @property
    def columns(self) -> tuple[str, ...]:
        """Its columns, each once."""
        return tuple(dict.fromkeys(each for each in self if each))

    @property
    def has_length(self) -> bool:
        """Whether it is more than a value."""
        return bool(self.first and self.last and self.first != self.last)


class Ranges(NamedTuple):
    """For each of some `rows`, of which one may be there several times, from which place to which it looks."""

    rows: Codes
    lows: Codes
    highs: Codes


class Placing(NamedTuple):
    """How the rows of a side are placed; `keyed` if they have a key, whose hash is their `_hash` before."""

    span: Span
    keyed: bool

    @property
    def _bits(self) -> int:
        """So many are left for the order."""
        return 64 - _KEY_BITS * self.keyed - _LENGTH_BITS * self.span.has_length

    def placed(self, rows: pa.Table) -> pa.Table:
        """Rows without nulls in the columns of the span, with places for hashes; those of a key stay together."""
        begins = ordinals(rows.column(self.span.columns[0]))
        lengths = np.zeros(len(begins), np.int64)
        if self.span.has_length:
            lengths = _length_classes(begins, ordinals(rows.column(self.span.last)))
        places = self._places(numbers(rows, HASH), lengths, begins)
        place = rows.schema.get_field_index(HASH)
        return rows.set_column(place, rows.schema.field(place), pa.array(places))

    def _places(self, hashes: Codes, lengths: Ordinals | int, values: Ordinals) -> Codes:
        made = compressed(values, self._bits)
        if self.span.has_length:
            made = made | (np.asarray(lengths).astype(np.uint64) << np.uint64(self._bits))
        if not self.keyed:
            return (made ^ _TOP).view(np.int64)
        return (_key_bits(hashes).view(np.uint64) | made).view(np.int64)

    def lengths(self, placed: pa.Table) -> list[int]:
        """The classes of lengths that placed rows have."""
        if not self.span.has_length:
            return [0]
        places = numbers(placed, HASH).view(np.uint64)
        places = places if self.keyed else places ^ _TOP
        classes = np.unique((places >> np.uint64(self._bits)) & np.uint64(_LENGTHS - 1))
        return [int(each) for each in classes]

    @property
    def all_lengths(self) -> list[int]:
        """The classes of lengths that rows may have."""
        return list(range(_LENGTHS)) if self.span.has_length else [0]

    def ranges(self, rows: pa.Table, span: Span, lengths: list[int]) -> Ranges:
        """Where those are that overlap rows of the other side, which have that `span`, of some classes of lengths.

        The hashes of these rows begin with the bits of their keys, whatever follows.
        """
        hashes, count = numbers(rows, HASH), rows.num_rows
        highest = ordinals(rows.column(span.last)) if self.span.first else np.full(count, GREATEST)
        lowest = ordinals(rows.column(span.first)) if self.span.last else np.full(count, LEAST)
        found = []
        for length in lengths or [0]:
            lows = self._places(hashes, length, _before(lowest, length))
            highs = self._places(hashes, length, highest)
            mine = np.flatnonzero(lows <= highs)
            found.append(Ranges(mine, lows[mine], highs[mine]))
        return Ranges(*(np.concatenate(each) for each in zip(*found, strict=True)))

    def whole_keys(self, rows: pa.Table) -> Ranges:
        """Where all rows are that have the keys of some rows, or maybe others whose hash begins alike."""
        if not self.keyed:
            return Ranges(np.zeros(1, np.int64), np.array([LEAST]), np.array([GREATEST]))
        lows = each_once(_key_bits(numbers(rows, HASH)))
        return Ranges(np.arange(len(lows)), lows, lows | ((1 << (64 - _KEY_BITS)) - 1))


def _key_bits(hashes: Codes) -> Codes:
    return hashes & -(1 << (64 - _KEY_BITS))


def _length_classes(begins: Ordinals, ends: Ordinals) -> Ordinals:
    """For each stretch the least n with a length below 4^n; 0 for those that end before they begin."""
    with np.errstate(over="ignore"):
        lengths = np.where(ends > begins, ends.view(np.uint64) - begins.view(np.uint64), np.uint64(0))
    return np.minimum((bit_lengths(lengths) + 1) // 2, _LENGTHS - 1)


def _before(values: Ordinals, length: int) -> Ordinals:
    """Where the first of such a length begin that reach a value."""
    if length == _LENGTHS - 1:
        return np.full(len(values), LEAST)
    reach = (1 << (2 * length)) - 1
    return np.where(values < LEAST + reach, LEAST, values - reach)
