"""A shop on each path, whose state is packed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import headwater as hw
from headwater.state import packed
from tests.equivalence.cases import PATHS
from tests.equivalence.shop import Shop


@pytest.fixture(scope="module", autouse=True)
def _packed_from_the_first_row() -> Iterator[None]:
    """What this process writes is packed, however few rows it has; what workers write is not."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(packed, "_ROWS", 1)
        yield


@pytest.fixture(params=PATHS)
def shop(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Shop]:
    made = Shop(tmp_path, request.param)
    yield made
    made.pipeline.close()


@pytest.fixture
def orders_and_customers(shop: Shop) -> tuple[hw.Table, hw.Table]:
    return (
        shop.table("orders", "id INT, customer INT, cents INT", key="id"),
        shop.table("customers", "id BIGINT, country STRING", key="id", partitions=2),
    )
