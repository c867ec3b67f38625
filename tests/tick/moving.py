"""The shop of the crash tests, moved on row by row."""

from __future__ import annotations

import headwater as hw
from tests.inside import store_of


def move(pipeline: hw.Pipeline, number: int) -> None:
    with pipeline.transaction() as transaction:
        transaction.upsert("customers", [{"id": number, "country": "NO"}])
        transaction.upsert("orders", [{"id": number, "customer": number, "cents": 600 + number}])
        transaction.append("clicks", [{"who": number % 3, "n": number}])


def number_of(pipeline: hw.Pipeline, name: str) -> str:
    stored = store_of(pipeline).find(name)
    assert stored is not None
    return f"v{stored.number}"
