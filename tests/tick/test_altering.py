"""A topic gets other columns, and every view stays what Spark says that it is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import headwater as hw
from headwater.testing import assert_same_as_batch
from tests.inside import driver_of, log_of

pytestmark = pytest.mark.spark

ORDERS = "id BIGINT, country STRING, cents INT, note STRING"
REVENUE = "SELECT country, sum(cents) AS cents, max(cents) AS most FROM orders GROUP BY country"


class Shop:
    """Orders and clicks, some views over them, and rows that keep coming."""

    def __init__(self, pipeline: hw.Pipeline) -> None:
        self.pipeline = pipeline
        self.orders: Any = pipeline.table("orders", ORDERS, key="id", partitions=2)
        self.clicks: Any = pipeline.stream("clicks", "id BIGINT, page STRING", partitions=2)
        self.at = 0
        pipeline.view("revenue", REVENUE, key="country")
        pipeline.view("countries", "SELECT DISTINCT country FROM orders")
        pipeline.view("whole", "SELECT * FROM orders")
        pipeline.view(
            "seen", "SELECT o.country, c.page, count(*) AS n FROM clicks c JOIN orders o USING (id) GROUP BY ALL"
        )
        pipeline.view("written", "SELECT _op, country, count(*) AS n FROM orders__log GROUP BY _op, country")
        self.tick(10)

    def rows(self, count: int, **more: Any) -> list[dict[str, Any]]:
        self.at += count
        ids = range(self.at - count, self.at)
        return [
            {"id": n % 17, "country": ["NO", "SE", "DK"][n % 3], "cents": n, "note": f"n{n}", **more} for n in ids
        ]

    def tick(self, count: int, **more: Any) -> None:
        names = self.orders.schema.names
        self.orders.upsert([{name: row.get(name) for name in names} for row in self.rows(count, **more)])
        self.orders.delete([self.at % 17])
        self.clicks.append([{"id": n % 17, "page": f"p{n % 2}"} for n in range(count)])
        assert self.pipeline.tick() is not None
        assert_same_as_batch(self.pipeline)

    def alter(self, schema: str, **how: Any) -> None:
        self.orders = self.pipeline.alter("orders", schema, **how)
        assert_same_as_batch(self.pipeline)

    def content(self, name: str, **how: Any) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = self.pipeline.read(name, **how).to_pylist()
        return sorted(rows, key=repr)


@pytest.fixture(params=["small", "large"])
def shop(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    with hw.Pipeline("shop", tmp_path / "shop") as pipeline:
        if request.param == "large":
            driver_of(pipeline).small_rows = 0
        yield Shop(pipeline)


def test_columns_that_come_are_null_or_their_default_in_the_rows_that_were_there(shop: Shop) -> None:
    before = {row["id"]: row for row in shop.content("orders")}
    shop.alter(f"{ORDERS}, tax INT, origin STRING NOT NULL DEFAULT 'web'")
    known = {row["id"]: row for row in shop.content("orders")}
    assert known == {key: {**row, "tax": None, "origin": "web"} for key, row in before.items()}
    shop.pipeline.view("taxes", "SELECT origin, sum(tax) AS tax, count(*) AS n FROM orders GROUP BY origin")
    for tax in (3, 4):
        shop.tick(5, tax=tax, origin="shop")
    assert {row["origin"] for row in shop.content("taxes")} == {"web", "shop"}
    assert "tax" not in shop.content("whole")[0]
    assert shop.pipeline.lookup("orders", shop.at % 17).num_rows == 0
    logged = shop.pipeline.read("orders__log").to_pylist()
    assert {row["origin"] for row in logged if row["_op"] == "delete"} == {None}


@pytest.mark.parametrize("shop", ["small"], indirect=True)
def test_a_view_over_everything_says_that_it_keeps_its_columns_until_it_is_replaced(shop: Shop) -> None:
    shop.alter(f"{ORDERS}, tax INT")
    said = "whole keeps its columns until it is replaced: it has not tax of orders, which came later"
    assert said in shop.pipeline.explain("whole")
    assert {view.name: dict(view.unseen) for view in shop.pipeline.status().views if view.unseen} == {
        "whole": {"orders": ("tax",)}
    }
    shop.tick(3, tax=1)
    shop.pipeline.view("whole", "SELECT * FROM orders", replace=True)
    shop.tick(3, tax=2)
    assert "tax" in shop.content("whole")[0]
    assert said not in shop.pipeline.explain("whole")


def test_views_of_which_a_column_is_wider_are_made_anew_and_others_are_untouched(shop: Shop) -> None:
    numbers = {view.name: view.number for view in shop.pipeline.status().views}
    shop.alter(ORDERS.replace("cents INT", "cents BIGINT"))
    shop.orders.upsert([{"id": 3, "country": "NO", "cents": 1 << 40, "note": ""}])
    shop.tick(4)
    made = {view.name for view in shop.pipeline.status().views if view.number != numbers[view.name]}
    assert made == {"revenue", "whole"}
    assert shop.pipeline.read("revenue").schema.field("most").type == "int64"
    shop.tick(4)


def test_columns_go_and_their_names_come_back_without_what_was_under_them(shop: Shop) -> None:
    with pytest.raises(hw.HeadwaterError, match="cents is read by revenue, whole"):
        shop.alter("id BIGINT, country STRING, note STRING")
    with pytest.raises(hw.HeadwaterError, match="note is read by whole"):
        shop.alter(ORDERS.replace("note", "remark"), rename={"note": "remark"})
    shop.pipeline.drop("whole")
    shop.alter("id BIGINT, country STRING, cents INT")
    shop.tick(5)
    shop.alter(ORDERS)
    assert {row["note"] for row in shop.content("orders")} == {None}
    shop.tick(2)
    assert len({row["note"] for row in shop.content("orders")}) == 3
    shop.pipeline.view("whole", "SELECT * FROM orders")
    shop.tick(2)


def test_a_renamed_column_keeps_its_values(shop: Shop) -> None:
    shop.pipeline.drop("whole")
    before = {row["id"]: row["note"] for row in shop.content("orders")}
    shop.alter("id BIGINT, note INT, country STRING, cents INT, remark STRING", rename={"note": "remark"})
    assert {row["id"]: row["remark"] for row in shop.content("orders")} == before
    assert {row["note"] for row in shop.content("orders")} == {None}
    shop.pipeline.view("remarks", "SELECT remark, note, count(*) AS n FROM orders GROUP BY remark, note")
    shop.tick(9, remark="again", note=7)


@pytest.mark.parametrize("shop", ["small"], indirect=True)
def test_old_versions_and_changes_have_the_columns_of_now(shop: Shop) -> None:
    follower: Any = shop.pipeline.changes("orders")
    held = {row["id"]: row for table in follower for row in table.to_pylist() if row["_weight"] > 0}
    shop.alter(f"{ORDERS}, tax BIGINT DEFAULT 5")
    shop.tick(3, tax=6)
    shop.alter("id BIGINT, country STRING, cents INT, note STRING, tax DECIMAL(22,1) DEFAULT 5.0")
    shop.tick(3, tax=7)
    assert {str(row["tax"]) for row in shop.content("orders", as_of=1)} == {"5.0"}
    assert {row["id"] for row in shop.content("orders", as_of=1)} == held.keys()
    summed: dict[str, int] = {}
    for table in shop.pipeline.changes("orders"):
        for row in table.to_pylist():
            weight = row.pop("_weight") + 0 * row.pop("_tick")
            summed[repr(row)] = summed.get(repr(row), 0) + weight
    assert sorted(row for row, weight in summed.items() if weight) == [repr(row) for row in shop.content("orders")]


@pytest.mark.parametrize("shop", ["small"], indirect=True)
def test_a_wider_column_is_refused_where_a_view_could_not_be_made_anew(shop: Shop) -> None:
    shop.pipeline.view("total", "SELECT sum(most) AS most FROM revenue")
    with pytest.raises(hw.ViewRefused, match="total reads it as"):
        shop.alter(ORDERS.replace("cents INT", "cents BIGINT"))
    shop.clicks = shop.pipeline.alter("clicks", "id BIGINT, page STRING, more INT")
    shop.clicks.append([{"id": n, "page": "p", "more": n} for n in range(4)])
    for partition in range(2):
        log_of(shop.pipeline).trim("clicks", partition, 1 << 40)
    with pytest.raises(
        hw.HeadwaterError, match="seen would have to be made anew, and the log has lost the beginning"
    ):
        shop.pipeline.alter("clicks", "id DOUBLE, page STRING, more INT")
    assert (
        shop.pipeline.alter("clicks", "id BIGINT, page STRING, more DOUBLE").schema.column("more").type.ddl
        == "DOUBLE"
    )
