"""Lookup: a key as users give it, and the rows that have it."""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as arrow_types

from headwater.catalog.relation import Relation
from headwater.change.hash import hash_rows
from headwater.errors import HeadwaterError, SchemaError
from headwater.read.contents import Contents, repeated
from headwater.read.version import Version
from headwater.schema import Schema, check


class Key:
    """The values of a relation's key columns. Equality is that of SQL keys: -0.0 is 0.0, NaN is NaN, null is null.

    `given` is a plain value if the key is one column, a tuple in the order of the key, or a dict with exactly its
    columns. `HeadwaterError` if the relation has no key or the number of values is wrong; `SchemaError` for a
    value or name that does not fit.
    """

    def __init__(self, relation: Relation, given: object, timezone: str) -> None:
        if not relation.key:
            msg = "it has no key to look up by"
            hint = "declare it with key=…, or use read() or query()"
            raise HeadwaterError(msg, where=relation.name, hint=hint)
        schema = Schema(tuple(relation.schema.column(name) for name in relation.key))
        required = relation.key if relation.kind == "table" else ()
        checked = check(schema, [_row(relation, given)], timezone=timezone, required=required)
        if checked.bad:
            bad = checked.bad[0]
            hint = f"the key is {schema.ddl}"
            raise SchemaError(bad.reason, column=bad.column, where=relation.name, hint=hint)
        self._values = checked.batch

    def rows(self, contents: Contents, relation: Relation, version: Version) -> pa.Table:
        """The rows with this key at a version; the cost does not depend on how many others there are."""
        candidates = contents.probed(relation, version, hash_rows(self._values.columns))
        if not candidates.num_rows:
            return relation.columns.empty_table()
        same = [
            _same(candidates.column(name), value[0]) for name, value in zip(relation.key, self._values, strict=True)
        ]
        return repeated(candidates.filter(reduce(pc.and_, same)), relation)


def _row(relation: Relation, given: object) -> Mapping[str, object]:
    if isinstance(given, Mapping):
        return given
    values = given if isinstance(given, tuple) else (given,)
    if len(values) != len(relation.key):
        names = ", ".join(relation.key)
        msg = f"the key has {len(relation.key)} columns ({names}), and {len(values)} values were given"
        raise HeadwaterError(msg, where=relation.name, hint="give a tuple in this order, or a dict")
    return dict(zip(relation.key, values, strict=True))


def _same(column: pa.ChunkedArray, value: pa.Scalar) -> pa.ChunkedArray:
    """Where the column has the value, never null."""
    if not value.is_valid:
        return column.is_null()
    if arrow_types.is_floating(value.type) and pc.is_nan(value).as_py():
        return pc.fill_null(pc.is_nan(column), False)
    return pc.fill_null(pc.equal(column, value), False)
