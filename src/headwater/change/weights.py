"""Rows as changes, and changes taken back."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from headwater.change import WEIGHT


def appended(rows: pa.Table) -> pa.Table:
    """Rows of a stream as a change."""
    weights = pa.array(np.ones(rows.num_rows, np.int64))
    return rows.append_column(pa.field(WEIGHT, pa.int64()), weights)


def negated(change: pa.Table) -> pa.Table:
    """The change that takes it back."""
    place = change.schema.get_field_index(WEIGHT)
    weights = -change.column(WEIGHT).to_numpy()
    return change.set_column(place, change.schema.field(place), pa.array(weights))
