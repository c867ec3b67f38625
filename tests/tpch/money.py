"""Amounts in cents as decimals of two places, and back."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Numbers = npt.NDArray[np.int64]


def decimals(cents: npt.NDArray[Any]) -> pa.Array:
    """DECIMAL(15,2) from whole cents."""
    whole = pa.array(cents, pa.int64()).cast(pa.decimal128(19, 0))
    return pc.multiply(whole, pa.scalar(Decimal("0.01"))).cast(pa.decimal128(15, 2))


def cents(amounts: pa.ChunkedArray) -> Numbers:
    """Whole cents from DECIMAL(15,2)."""
    found: Numbers = pc.multiply(amounts, pa.scalar(Decimal(100))).cast(pa.int64()).to_numpy()
    return found
