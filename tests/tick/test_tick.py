"""The tick, through the public names."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

import headwater as hw
from headwater.pipeline.reopen import reopen
from headwater.spark.session.start import start
from headwater.testing import ManualClock, assert_same_as_batch
from tests.inside import driver_of, topic_of

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("spark")]

REVENUE = (
    "SELECT c.country, sum(o.cents) AS cents FROM orders o JOIN customers c ON o.customer = c.id GROUP BY c.country"
)


def rows(pipeline: hw.Pipeline, name: str, **more: Any) -> Counter[tuple[Any, ...]]:
    return Counter(tuple(row.values()) for row in pipeline.read(name, **more).to_pylist())


def shop(path: Path, **more: Any) -> tuple[hw.Pipeline, hw.Table, hw.Table]:
    pipeline = hw.Pipeline("shop", path, **more)
    orders = pipeline.table("orders", "id BIGINT, customer BIGINT, cents BIGINT", key="id")
    customers = pipeline.table("customers", "id BIGINT, country STRING", key="id")
    return pipeline, orders, customers


def test_the_tick_that_the_design_works_through(tmp_path: Path) -> None:
    pipeline, orders, customers = shop(tmp_path)
    with pipeline:
        pipeline.view("revenue", REVENUE)
        customers.upsert([{"id": 1, "country": "NO"}, {"id": 2, "country": "SE"}])
        orders.upsert([{"id": 10, "customer": 1, "cents": 500}])
        first = pipeline.tick()
        assert first is not None
        assert (first.number, first.rows_in, first.rows_out, first.paths) == (
            1,
            3,
            {"revenue": 1},
            {"revenue": "small"},
        )
        assert first.watermark is None
        customers.upsert([{"id": 1, "country": "DK"}])
        orders.upsert([{"id": 11, "customer": 2, "cents": 300}])
        orders.delete([10])
        second = pipeline.tick()
        assert second is not None
        assert second.number == 2
        assert rows(pipeline, "revenue") == Counter({("SE", 300): 1})
        assert rows(pipeline, "revenue", as_of=1) == Counter({("NO", 500): 1})
        assert pipeline.tick() is None
        assert_same_as_batch(pipeline)


def test_nothing_new_and_nothing_to_fill_is_no_tick(tmp_path: Path) -> None:
    pipeline, _, _ = shop(tmp_path)
    with pipeline:
        assert pipeline.tick() is None
        pipeline.view("revenue", REVENUE)
        filled = pipeline.tick()
        assert filled is not None
        assert rows(pipeline, "revenue") == Counter()
        assert pipeline.tick() is None


@pytest.mark.parametrize("small", [20_000, 0], ids=["small", "large"])
def test_a_view_that_is_declared_late_is_filled_in_bulk(tmp_path: Path, small: int) -> None:
    pipeline, orders, customers = shop(tmp_path)
    with pipeline:
        driver_of(pipeline).small_rows = small
        customers.upsert([{"id": n, "country": "NO" if n % 2 else "SE"} for n in range(10)])
        orders.upsert([{"id": n, "customer": n % 10, "cents": n} for n in range(100)])
        pipeline.tick()
        orders.delete([3, 4])
        pipeline.view("revenue", REVENUE)
        pipeline.view("doubled", "SELECT country, cents * 2 AS twice FROM revenue")
        tick = pipeline.tick()
        assert tick is not None
        assert tick.paths == dict.fromkeys(("revenue", "doubled"), "large" if small == 0 else "small")
        assert_same_as_batch(pipeline)
        with pytest.raises(hw.VersionExpired) as expired:
            pipeline.read("revenue", as_of=1)
        assert expired.value.oldest == 2


def test_results_do_not_depend_on_where_ticks_begin_and_end(tmp_path: Path) -> None:
    ends = []
    for number, most in enumerate((1, 1_000, 2_000_000)):
        pipeline, orders, customers = shop(tmp_path / str(number), max_rows=most)
        with pipeline:
            pipeline.view("revenue", REVENUE)
            for step in range(6):
                customers.upsert([{"id": step % 3, "country": ("NO", "SE", "DK")[step % 3 - 1]}])
                orders.upsert([{"id": step, "customer": step % 3, "cents": 10 * step}])
                if step % 2:
                    orders.delete([step - 1])
            ticks = 0
            while pipeline.tick() is not None:
                ticks += 1
            assert ticks == {1: 15, 1_000: 1, 2_000_000: 1}[most]
            ends.append(rows(pipeline, "revenue"))
    assert ends[0] == ends[1] == ends[2] != Counter()


def test_a_view_that_cannot_be_evaluated_stands_still_and_the_others_go_on(tmp_path: Path) -> None:
    with hw.Pipeline("p", tmp_path) as pipeline:
        texts = pipeline.table("texts", "id BIGINT, text STRING", key="id")
        pipeline.view("numbers", "SELECT id, CAST(text AS INT) AS number FROM texts")
        pipeline.view("copies", "SELECT id, text FROM texts")
        texts.upsert([{"id": 1, "text": "7"}])
        pipeline.tick()
        seven = texts.upsert([{"id": 2, "text": "seven"}])
        assert pipeline.tick() is not None
        assert pipeline.tick() is None
        with pytest.raises(hw.ViewSuspended) as failed:
            pipeline.read("numbers", after=seven)
        assert failed.value.where == "numbers"
        assert "CAST_INVALID_INPUT" in failed.value.what
        assert "in CAST(text AS INT)" in failed.value.what
        assert 'for the row {"id":2,"text":"seven"}' in failed.value.what
        assert rows(pipeline, "numbers") == Counter({(1, 7): 1})
        assert rows(pipeline, "copies") == Counter({(1, "7"): 1, (2, "seven"): 1})
        texts.upsert([{"id": 2, "text": "70"}])
        assert pipeline.tick() is not None
        assert rows(pipeline, "numbers") == Counter({(1, 7): 1, (2, 70): 1})


@pytest.mark.parametrize("small", [20_000, 0], ids=["small", "large"])
def test_python_functions_work_in_views(tmp_path: Path, small: int) -> None:
    with hw.Pipeline("p", tmp_path) as pipeline:
        pipeline.udf("initial", lambda text: text[:1] if text else None, "STRING")
        driver_of(pipeline).small_rows = small
        words = pipeline.table("words", "id BIGINT, word STRING", key="id")
        pipeline.view("initials", "SELECT initial(word) AS letter, count(*) AS n FROM words GROUP BY initial(word)")
        words.upsert([{"id": 1, "word": "ant"}, {"id": 2, "word": "ape"}, {"id": 3, "word": None}])
        pipeline.tick()
        words.delete([2])
        pipeline.tick()
        assert rows(pipeline, "initials") == Counter({("a", 1): 1, (None, 1): 1})
        assert_same_as_batch(pipeline)


def test_a_key_that_is_not_unique_is_found_and_the_view_stands_still(tmp_path: Path) -> None:
    pipeline, orders, _ = shop(tmp_path)
    with pipeline:
        pipeline.view("by_customer", "SELECT customer, cents FROM orders", key="customer")
        orders.upsert([{"id": 1, "customer": 7, "cents": 5}])
        pipeline.tick()
        twice = orders.upsert([{"id": 2, "customer": 7, "cents": 6}])
        pipeline.tick()
        with pytest.raises(hw.ViewSuspended, match="2 rows have the key customer = 7"):
            pipeline.read("by_customer", after=twice)
        assert rows(pipeline, "by_customer") == Counter({(7, 5): 1})
        orders.delete([1])
        pipeline.tick()
        assert pipeline.lookup("by_customer", 7).to_pylist() == [{"customer": 7, "cents": 6}]


def test_old_versions_are_kept_as_long_as_promised(tmp_path: Path) -> None:
    clock = ManualClock()
    pipeline, orders, _ = shop(tmp_path, retain_ticks=3, retain_for="0 seconds", clock=clock)
    with pipeline:
        pipeline.view("all_orders", "SELECT id, cents FROM orders")
        for number in range(1, 31):
            orders.upsert([{"id": number, "customer": 1, "cents": number}])
            pipeline.tick()
            clock.advance(120)
        assert sum(rows(pipeline, "all_orders", as_of=29).values()) == 29
        with pytest.raises(hw.VersionExpired) as expired:
            pipeline.read("all_orders", as_of=5)
        assert expired.value.oldest == 28
        files = list((tmp_path / "state").iterdir())
        assert len(files) < 15
        total: Counter[tuple[Any, ...]] = Counter()
        for change in pipeline.changes("all_orders"):
            for row in change.to_pylist():
                total[(row["id"], row["cents"])] += row["_weight"]
        assert total == rows(pipeline, "all_orders")


def test_run_ticks_when_data_arrives_until_told_to_stop(tmp_path: Path) -> None:
    pipeline, orders, _ = shop(tmp_path)
    with pipeline:
        pipeline.view("all_orders", "SELECT id FROM orders")
        seen: list[int] = []

        def enough(tick: hw.Tick) -> bool:
            seen.append(tick.number)
            if len(seen) < 3:
                orders.upsert([{"id": len(seen), "customer": 1, "cents": 1}])
            return len(seen) == 3

        pipeline.run(until=enough)
        assert seen == [1, 2, 3]
        pipeline.run(seconds=0.2)
        assert rows(pipeline, "all_orders") == Counter({(1,): 1, (2,): 1})


def test_explain_tells_operators_state_and_work(tmp_path: Path) -> None:
    pipeline, orders, customers = shop(tmp_path)
    with pipeline:
        pipeline.view("revenue", REVENUE, key="country")
        customers.upsert([{"id": 1, "country": "NO"}])
        orders.upsert([{"id": 1, "customer": 1, "cents": 5}])
        pipeline.tick()
        text = pipeline.explain("revenue")
        for part in (
            "bilinear: join on customer = id",
            "accumulating: group by country",
            "join1.left by customer: 1 rows",
        ):
            assert part in text
        assert "#" not in text
        with pytest.raises(hw.HeadwaterError, match="only views"):
            pipeline.explain("orders")


def test_a_topic_that_another_process_declared_anew_is_seen_as_it_is_now(tmp_path: Path) -> None:
    with hw.Pipeline("p", tmp_path) as one, hw.Pipeline("p", tmp_path) as other:
        one.stream("s", "k INT, v INT")
        one.view("before", "SELECT max(v) AS m FROM s")
        one.tick()
        other.drop("before")
        other.drop("s")
        table = other.table("s", "k INT, v DOUBLE", key="k")
        one.view("after", "SELECT max(v) AS m FROM s")
        assert "tree: aggregate everything: max(v)" in one.explain("after")
        one.view("hundredfold", "SELECT k, v * 100 AS w FROM s")
        table.upsert([{"k": 1, "v": 1.5}])
        one.tick()
        assert rows(one, "hundredfold") == Counter({(1, 150.0): 1})


def test_texts_of_a_length_are_texts_in_views(tmp_path: Path) -> None:
    with hw.Pipeline("p", tmp_path) as pipeline:
        table = pipeline.table("t", "id INT, c CHAR(3), v VARCHAR(4)", key="id")
        pipeline.view("lengths", "SELECT c, upper(v) AS v, count(*) AS n FROM t GROUP BY ALL")
        table.upsert([{"id": 1, "c": "abc", "v": "x"}])
        pipeline.tick()
        assert rows(pipeline, "lengths") == Counter({("abc", "X", 1): 1})


def test_what_a_python_function_raises_is_told(tmp_path: Path) -> None:
    with hw.Pipeline("p", tmp_path) as pipeline:

        def unlucky(number: int) -> int:
            raise ValueError("unlucky")

        pipeline.udf("unlucky", unlucky, "INT")
        stream = pipeline.stream("s", "x INT")
        pipeline.view("v", "SELECT unlucky(x) AS y FROM s")
        stream.append([{"x": 13}])
        pipeline.tick()
        with pytest.raises(hw.ViewSuspended, match=r'ValueError: unlucky, for the row {"x":13}') as failed:
            pipeline.read("v")
        assert "never filled" in failed.value.hint
        assert pipeline.tick() is None
        pipeline.udf("unlucky", lambda number: -number, "INT")
        pipeline.tick()
        assert rows(pipeline, "v") == Counter({(-13,): 1})


def test_the_rows_that_a_query_itself_holds_are_there_once(tmp_path: Path) -> None:
    with hw.Pipeline("p", tmp_path) as pipeline:
        pipeline.view("few", "SELECT id FROM range(3) UNION ALL SELECT * FROM VALUES (7L), (7L)")
        pipeline.tick()
        assert rows(pipeline, "few") == Counter({(0,): 1, (1,): 1, (2,): 1, (7,): 2})


HOURS = "SELECT hour(at) AS hour, count(*) AS events FROM events GROUP BY hour(at)"


def test_a_pipeline_stays_in_its_time_zone(tmp_path: Path) -> None:
    with hw.Pipeline("zones", tmp_path, timezone="Asia/Tokyo") as pipeline:
        events = pipeline.stream("events", "at TIMESTAMP")
        pipeline.view("hours", HOURS)
        events.append([{"at": datetime(2026, 11, 15, 10, tzinfo=UTC)}])
        pipeline.tick()
        assert rows(pipeline, "hours") == Counter({(19, 1): 1})
    for other in ("UTC", "Europe/Oslo"):
        message = f"time zone of this pipeline is Asia/Tokyo, not {other}"
        with pytest.raises(hw.DeclarationChanged, match=message):
            hw.Pipeline("zones", tmp_path, timezone=other)
    for given in (None, "Asia/Tokyo"):
        with hw.Pipeline("zones", tmp_path, timezone=given) as pipeline:
            assert pipeline.timezone == "Asia/Tokyo"
            topic_of(pipeline, "events").append([{"at": datetime(2026, 11, 15, 20)}])  # noqa: DTZ001
            pipeline.tick()
            assert_same_as_batch(pipeline)
    with reopen(str(tmp_path)) as pipeline:
        assert rows(pipeline, "hours") == Counter({(19, 1): 1, (20, 2): 1})


def test_a_time_zone_that_java_does_not_know_is_told() -> None:
    with pytest.raises(hw.HeadwaterError, match="does not know the time zone Atlantis/North") as raised:
        start("zones", timezone="Atlantis/North")
    assert "newer Java" in raised.value.hint


def test_what_a_view_names_but_does_not_need_cannot_be_dropped(tmp_path: Path) -> None:
    pipeline, orders, _ = shop(tmp_path)
    with pipeline:
        pipeline.view("none", "SELECT id FROM orders WHERE 1 = 0 AND id IN (SELECT id FROM Customers)")
        orders.upsert([{"id": 1, "customer": 7, "cents": 5}])
        pipeline.tick()
        with pytest.raises(hw.HeadwaterError, match="customers is read by none"):
            pipeline.drop("customers")
        assert_same_as_batch(pipeline, ["none"])
