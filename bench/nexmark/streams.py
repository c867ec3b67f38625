"""The relations that the queries read: three streams and a table of settings, as Spark DDL."""

from __future__ import annotations

import pyarrow as pa

STREAMS = {
    "person": "id BIGINT, name STRING, email_address STRING, credit_card STRING, city STRING, state STRING, "
    "date_time TIMESTAMP, extra STRING",
    "auction": "id BIGINT, item_name STRING, description STRING, initial_bid BIGINT, reserve BIGINT, "
    "date_time TIMESTAMP, expires TIMESTAMP, seller BIGINT, category BIGINT, extra STRING",
    "bid": "auction BIGINT, bidder BIGINT, price BIGINT, channel STRING, url STRING, date_time TIMESTAMP, "
    "extra STRING",
}

SIDE_INPUT = "side_input"
SIDE_INPUT_SCHEMA = "key BIGINT, value STRING"
SIDE_INPUT_KEY = "key"
SIDE_INPUT_ROWS = 10_000
"""Query 13 looks up `auction % 10000`."""


def side_input(first: int = 0, rows: int = SIDE_INPUT_ROWS) -> pa.Table:
    """Rows of the side input: consecutive keys, each with a value of its own."""
    keys = range(first, first + rows)
    return pa.table(
        {"key": pa.array(keys, pa.int64()), "value": pa.array([f"value-{key}" for key in keys], pa.string())}
    )
