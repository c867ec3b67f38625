"""The outcome of turning one column's values into Arrow: the array, and what is wrong with which row."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headwater.schema.types import Binary, Column, DataType, Struct, Variant

_LONGEST_SHOWN = 60

VARIANT_FIELDS = (Column("value", Binary(), nullable=False), Column("metadata", Binary(), nullable=False))


@dataclass(frozen=True)
class Failure:
    """Why a row is refused; `path` leads from the column to the value inside of it, as in `("tags", "[2]")`."""

    path: tuple[str, ...]
    reason: str

    def inside(self, *outer: str) -> Failure:
        """The same failure seen from a value that contains this one."""
        return Failure((*outer, *self.path), self.reason)


@dataclass(frozen=True)
class Converted:
    """An array of the target type with one entry per row, null where `failures` has the row."""

    array: pa.Array
    failures: dict[int, Failure]


def shorten(text: str) -> str:
    """The text, or its beginning if it is long."""
    return text if len(text) <= _LONGEST_SHOWN else text[: _LONGEST_SHOWN - 1] + "…"


def text_of(value: object) -> str:
    """The value for people; never fails, whatever the value's own methods do."""
    try:
        return repr(value)
    except Exception:  # Python refuses to print huge numbers, and strangers' objects may raise anything
        return f"a number of {value.bit_length()} bits" if isinstance(value, int) else "(not printable)"


def show(array: pa.Array, row: int) -> str:
    """The value for people, also one that Python's own types cannot hold."""
    try:
        value = array[row].as_py()
    except (ValueError, OverflowError):
        return _show_as_text(array.slice(row, 1))
    return repr(value) if isinstance(value, str | bytes) else str(value)


def _show_as_text(single: pa.Array) -> str:
    for kind in (pa.large_binary(), pa.large_string()):
        try:
            value = single.cast(kind)[0].as_py()
        except (ValueError, pa.ArrowException):
            continue
        return repr(value) if isinstance(value, bytes) else str(value)
    return "(not printable)"


def unfit(data_type: DataType, shown: str) -> str:
    """The reason for a value of the right kind that is too large or too precise."""
    return f"{shorten(shown)} does not fit {shorten(data_type.ddl)}"


def wrong_type(data_type: DataType, kind: str, shown: str) -> str:
    """The reason for a value of another kind."""
    return f"expected {shorten(data_type.ddl)}, got {kind} {shorten(shown)}"


def fields_of(data_type: Struct | Variant) -> tuple[Column, ...]:
    """The fields by which a struct travels; a variant is a struct of two binaries."""
    return data_type.fields if isinstance(data_type, Struct) else VARIANT_FIELDS


def null_rows(array: pa.Array) -> Iterable[int]:
    """The rows that are null."""
    return np.flatnonzero(array.is_null()).tolist() if array.null_count else ()


def merge_fields(
    names: Sequence[str],
    refusals: Sequence[str | None],
    columns: Sequence[Converted],
    absent: frozenset[int] = frozenset(),
) -> dict[int, Failure]:
    """The first failure of each row over its fields in order.

    `refusals` says for each field why it cannot be null, or None if it can; `absent` are rows that do not exist
    (null structs), whose fields are null without fault.
    """
    failures: dict[int, Failure] = {}
    for name, refusal, column in zip(names, refusals, columns, strict=True):
        for row, failure in column.failures.items():
            failures.setdefault(row, failure.inside(name))
        if refusal is None or not column.array.null_count:
            continue
        for row in null_rows(column.array):
            if row not in column.failures and row not in absent:
                failures.setdefault(row, Failure((name,), refusal))
    return failures


def nullness(fields: Sequence[Column]) -> list[str | None]:
    """For each nested field why it cannot be null, or None if it can."""
    return [None if field.nullable else "cannot be null" for field in fields]


def build_struct(data_type: DataType, arrays: Sequence[pa.Array], absent: Sequence[bool]) -> pa.Array:
    """A struct array, null where `absent`."""
    if not arrays:
        return pa.array([None if gone else {} for gone in absent], type=data_type.arrow)
    mask = pa.array(absent, type=pa.bool_())
    return pa.StructArray.from_arrays(arrays, fields=list(data_type.arrow), mask=mask)


class Nesting:
    """Which row each element of flattened lists belongs to."""

    def __init__(self, lengths: Sequence[int] | npt.NDArray[Any]) -> None:
        self._lengths = np.asarray(lengths, dtype=np.int64)
        self._ends = np.cumsum(self._lengths)

    @property
    def offsets(self) -> pa.Array:
        """The offsets of an Arrow list array."""
        return pa.array(np.concatenate(([0], self._ends)).astype(np.int32))

    def filtered(self, kept: pa.Array) -> Nesting:
        """The nesting of only those elements that are kept."""
        rows = np.repeat(np.arange(len(self._lengths)), self._lengths)[np.asarray(kept)]
        return Nesting(np.bincount(rows, minlength=len(self._lengths)))

    def place(self, element: int) -> tuple[int, int]:
        """The row of a flattened element, and its position in that row's list."""
        row = int(np.searchsorted(self._ends, element, side="right"))
        return row, element - int(self._ends[row] - self._lengths[row])

    def outward(self, failures: dict[int, Failure]) -> dict[int, Failure]:
        """The elements' failures as failures of their rows, the first of each."""
        result: dict[int, Failure] = {}
        for element in sorted(failures):
            row, position = self.place(element)
            result.setdefault(row, failures[element].inside(f"[{position}]"))
        return result


def list_failures(nesting: Nesting, column: Converted, refusal: str | None) -> dict[int, Failure]:
    """The failures of rows that hold lists, from those of the elements and from nulls that are refused."""
    failures = dict(column.failures)
    if refusal is not None:
        for element in null_rows(column.array):
            failures.setdefault(element, Failure((), refusal))
    return nesting.outward(failures) if failures else {}


def build_list(data_type: DataType, nesting: Nesting, element: pa.Array, absent: Sequence[bool]) -> pa.Array:
    """A list array, null where `absent`."""
    mask = pa.array(absent, type=pa.bool_())
    return pa.ListArray.from_arrays(nesting.offsets, element, type=data_type.arrow, mask=mask)


def build_map(
    data_type: DataType, nesting: Nesting, keys: pa.Array, values: pa.Array, absent: Sequence[bool]
) -> pa.Array:
    """A map array, null where `absent`. Entries without a key, whose rows are refused anyway, are left out."""
    if keys.null_count:
        valid = keys.is_valid()
        nesting, keys, values = nesting.filtered(valid), keys.filter(valid), values.filter(valid)
    mask = pa.array(absent, type=pa.bool_())
    return pa.MapArray.from_arrays(nesting.offsets, keys, values, type=data_type.arrow, mask=mask)
