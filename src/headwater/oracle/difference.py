"""The difference between two tables as multisets of rows, in words."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Hashable, Iterable, Iterator, Sequence

import pyarrow as pa
import pyarrow.types as arrow_types

from headwater.oracle.naive import plain

_TOLERANCE = 1e-9
_SHOWN = 10

Row = tuple[Hashable, ...]


def difference(wanted: pa.Table, found: pa.Table, unordered: Collection[str] = ()) -> str:
    """What `found` lacks and has too much, with counts; empty if there is nothing to say.

    Names and types of the columns count too, nullability does not. Floats, also nested ones, are the same within
    1e-9 of the larger; NaN is NaN. The lists in `unordered` columns are compared as multisets, everything else
    exactly.
    """
    columns = _columns(wanted.schema, found.schema)
    if columns:
        return columns
    wanted_rows, found_rows = _rows(wanted, unordered), _rows(found, unordered)
    counts, others = Counter(wanted_rows), Counter(found_rows)
    missing, surplus = _without_near(counts - others, others - counts)
    return "\n".join(
        [*_listed("missing", missing, wanted, wanted_rows), *_listed("surplus", surplus, found, found_rows)]
    )


def _columns(wanted: pa.Schema, found: pa.Schema) -> str:
    shapes = [[(field.name, _shape(field.type)) for field in schema] for schema in (wanted, found)]
    if shapes[0] == shapes[1]:
        return ""
    return f"  columns should be {_described(wanted)}\n  columns are       {_described(found)}"


def _described(schema: pa.Schema) -> str:
    return ", ".join(f"{field.name} {field.type}" for field in schema)


def _shape(given: pa.DataType) -> str:
    """A type without what does not count: nullability, the zone of an instant, the size of offsets."""
    if arrow_types.is_struct(given):
        fields = [given.field(place) for place in range(given.num_fields)]
        return f"struct<{', '.join(f'{field.name}: {_shape(field.type)}' for field in fields)}>"
    if arrow_types.is_map(given):
        return f"map<{_shape(given.key_type)}, {_shape(given.item_type)}>"
    if arrow_types.is_list(given) or arrow_types.is_large_list(given):
        return f"list<{_shape(given.value_type)}>"
    if arrow_types.is_timestamp(given) and given.tz is not None:
        return f"instant[{given.unit}]"
    return str(given).removeprefix("large_")


def _rows(table: pa.Table, unordered: Collection[str]) -> list[Row]:
    if not table.num_columns:
        return [()] * table.num_rows
    columns = [plain(column, _floating) for column in table.columns]
    for place, name in enumerate(table.column_names):
        if name in unordered:
            columns[place] = [tuple(sorted(v, key=repr)) if isinstance(v, tuple) else v for v in columns[place]]
    return list(zip(*columns, strict=True))


def _floating(number: float) -> Hashable:
    return "NaN" if number != number else number  # noqa: PLR0124


def _without_near(missing: Counter[Row], surplus: Counter[Row]) -> tuple[Counter[Row], Counter[Row]]:
    """What is left when rows that differ only in the last digits of floats have found each other."""
    candidates: defaultdict[Hashable, list[Row]] = defaultdict(list)
    for row in _sorted(missing.elements()):
        candidates[_skeleton(row)].append(row)
    alone: Counter[Row] = Counter()
    for row in _sorted(surplus.elements()):
        same = candidates[_skeleton(row)]
        partner = next((place for place, other in enumerate(same) if _near(row, other)), None)
        if partner is None:
            alone[row] += 1
        else:
            del same[partner]
    return Counter(row for same in candidates.values() for row in same), alone


def _sorted(rows: Iterable[Row]) -> list[Row]:
    """So that near rows come in about the same order, and looking for partners is quick."""
    return sorted(rows, key=lambda row: list(_floats(row)))


def _floats(value: Hashable) -> Iterator[float]:
    if isinstance(value, tuple):
        for part in value:
            yield from _floats(part)
    elif isinstance(value, float):
        yield value


def _skeleton(value: Hashable) -> Hashable:
    """The value with all floats alike."""
    if isinstance(value, tuple):
        return tuple(map(_skeleton, value))
    return float if isinstance(value, float) else value


def _near(one: Hashable, other: Hashable) -> bool:
    if isinstance(one, tuple) and isinstance(other, tuple):
        return len(one) == len(other) and all(map(_near, one, other))
    if isinstance(one, float) and isinstance(other, float):
        return one == other or abs(one - other) <= _TOLERANCE * max(abs(one), abs(other)) < float("inf")
    return one == other


def _listed(word: str, rows: Counter[Row], table: pa.Table, places: Sequence[Row]) -> Iterator[str]:
    if not rows:
        return
    yield f"  {word}: {rows.total()} rows"
    for row, count in list(rows.items())[:_SHOWN]:
        yield f"    {count} x {_shown(table, places.index(row), row)}"
    if len(rows) > _SHOWN:
        yield f"    and {len(rows) - _SHOWN} more kinds of row"


def _shown(table: pa.Table, place: int, row: Row) -> str:
    try:
        return str(table.slice(place, 1).to_pylist()[0])
    except (ValueError, OverflowError):
        return str(dict(zip(table.column_names, row, strict=True)))  # a date or a text that Python does not have
