"""Pairs of rows of two tables, whose columns are put together when they are asked for."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from headwater.change import WEIGHT
from headwater.change.gather import gather
from headwater.change.keys import Codes


class Pairs:
    """Rows of two tables, pair by pair; a column is put together when it is asked for.

    They have the columns of `schema`, the last of which is `_weight`, the product of both.
    """

    def __init__(
        self, left: pa.Table, left_rows: Codes, right: pa.Table, right_rows: Codes, schema: pa.Schema
    ) -> None:
        self.schema = schema
        self._sides = (left, left_rows), (right, right_rows)

    @property
    def num_rows(self) -> int:
        """How many pairs there are."""
        return len(self._sides[0][1])

    def column(self, name: str) -> pa.ChunkedArray:
        """A column of either side."""
        if name == WEIGHT:
            one, other = (table.column(WEIGHT).to_numpy()[rows] for table, rows in self._sides)
            return pa.chunked_array([pa.array(one * other)])
        table, rows = self._sides[0] if name in self._sides[0][0].column_names else self._sides[1]
        return gather(table.select([name]), rows).column(0)

    def select(self, names: Sequence[str]) -> pa.Table:
        """Some columns as a table."""
        fields = [self.schema.field(name) for name in names]
        return pa.Table.from_arrays([self.column(name) for name in names], schema=pa.schema(fields))

    def table(self) -> pa.Table:
        """All columns as a table."""
        return self.select(self.schema.names)

    def take(self, places: pa.Array | pa.ChunkedArray) -> Pairs:
        """The pairs at some places."""
        (left, left_rows), (right, right_rows) = self._sides
        chosen = places.to_numpy()
        return Pairs(left, left_rows[chosen], right, right_rows[chosen], self.schema)

    def filter(self, mask: pa.ChunkedArray) -> Pairs:
        """The pairs for which something is true."""
        return self.take(pa.array(np.flatnonzero(mask.to_numpy())))
