"""Decimal division as Spark does it for averages."""

from __future__ import annotations

from decimal import ROUND_HALF_UP, Context, Decimal

import pyarrow as pa

from headwater.errors import HeadwaterError

_EXACT = Context(prec=120, rounding=ROUND_HALF_UP)


def divided(totals: pa.Array, counts: pa.Array, wanted: pa.DataType) -> pa.Array:
    """Each total by its count, rounded half up to the wanted scale; null where the total is."""
    step = Decimal(1).scaleb(-wanted.scale)
    quotients = [
        None if total is None else _EXACT.divide(total, Decimal(count)).quantize(step, context=_EXACT)
        for total, count in zip(totals.to_pylist(), counts.to_pylist(), strict=True)
    ]
    try:
        return pa.array(quotients, wanted)
    except pa.ArrowInvalid as error:
        msg = f"an average does not fit {wanted}"
        raise HeadwaterError(msg, hint="cast the argument to a type with fewer digits") from error
