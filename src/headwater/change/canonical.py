"""An order of rows that only depends on what the rows are."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as arrow_types

from headwater.change.bits import bit_columns
from headwater.change.keys import Codes


def canonical_order(rows: pa.Table) -> Codes:
    """By the columns from left to right, nulls first; at last by bits, where values cannot be told apart.

    Rows that are the same stay in their order.
    """
    columns = [column for column in rows.columns if _is_ordered(column.type)]
    columns += bit_columns([column for column in rows.columns if _has_more_bits(column.type)])
    if not columns or rows.num_rows <= 1:
        return np.arange(rows.num_rows)
    table = pa.table(columns, names=[str(number) for number in range(len(columns))])
    keys = [(name, "ascending", "at_start") for name in table.column_names]
    found: Codes = pc.sort_indices(table, sort_keys=keys).to_numpy()
    return found.astype(np.int64)


def _is_ordered(given: pa.DataType) -> bool:
    return not arrow_types.is_nested(given) and not arrow_types.is_null(given)


def _has_more_bits(given: pa.DataType) -> bool:
    return bool(arrow_types.is_nested(given) or arrow_types.is_floating(given))
