"""The shop's topics: three tables and a stream of clicks."""

from __future__ import annotations

from typing import NamedTuple

import headwater as hw
from headwater.examples.shop.traffic import Batch


class Shop(NamedTuple):
    """The topics, by the names they have in the log."""

    customers: hw.Table
    products: hw.Table
    orders: hw.Table
    clicks: hw.Stream

    def apply(self, batch: Batch) -> hw.Position:
        """Let happen what the batch says."""
        topic = getattr(self, batch.topic)
        position: hw.Position = getattr(topic, batch.operation)(batch.rows)
        return position


def declare(pipeline: hw.Pipeline) -> Shop:
    """Declare them in a pipeline. To declare them again changes nothing."""
    return Shop(
        customers=pipeline.table("customers", "id BIGINT, name STRING, country STRING", key="id"),
        products=pipeline.table("products", "sku STRING, title STRING, cents BIGINT", key="sku"),
        orders=pipeline.table(
            "orders",
            "id BIGINT, customer_id BIGINT, sku STRING, quantity INT, cents BIGINT, status STRING, at TIMESTAMP",
            key="id",
        ),
        clicks=pipeline.stream(
            "clicks",
            "session STRING, customer_id BIGINT, url STRING, at TIMESTAMP",
        ),
    )
