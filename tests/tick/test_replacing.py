"""Another version of a view is built beside the old one, and takes its place at one tick."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import headwater as hw
from headwater.catalog.names import candidate_of
from headwater.pipeline import candidates
from headwater.testing import assert_same_as_batch
from tests.inside import driver_of, store_of

pytestmark = pytest.mark.spark

OLD = "SELECT country, sum(cents) AS cents FROM sales GROUP BY country"
NEW = "SELECT country, sum(cents * 2) AS cents FROM sales WHERE country <> 'SE' GROUP BY country"


@pytest.fixture(params=["small", "large"])
def shop(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[hw.Pipeline, Any]]:
    with hw.Pipeline("shop", tmp_path / "shop") as pipeline:
        sales = pipeline.table("sales", "id BIGINT, country STRING, cents BIGINT", key="id")
        pipeline.view("revenue", OLD, key="country")
        pipeline.view("total", "SELECT sum(cents) AS cents FROM revenue")
        if request.param == "large":
            driver_of(pipeline).small_rows = 0
        sales.upsert(rows(0))
        pipeline.tick()
        yield pipeline, sales


def rows(first: int) -> list[dict[str, Any]]:
    return [{"id": n, "country": ("NO", "SE", "DK")[n % 3], "cents": n} for n in range(first, first + 9)]


def content(pipeline: hw.Pipeline, name: str, **how: Any) -> list[tuple[Any, ...]]:
    return sorted(tuple(row.values()) for row in pipeline.read(name, **how).to_pylist())


def test_the_old_version_is_served_until_the_tick_that_switches(shop: tuple[hw.Pipeline, Any]) -> None:
    pipeline, sales = shop
    old, total = content(pipeline, "revenue"), content(pipeline, "total")
    follower = pipeline.changes("revenue", follow=True)
    held: dict[str, int] = {}
    _take(held, next(follower))
    pipeline.view("revenue", NEW, key="country", replace=True)
    assert content(pipeline, "revenue") == old
    sales.upsert(rows(9))
    switched = pipeline.tick()
    assert switched is not None
    assert_same_as_batch(pipeline)
    assert [each[0] for each in content(pipeline, "revenue")] == ["DK", "NO"]
    assert content(pipeline, "total") == [(2 * sum(n for n in range(18) if n % 3 != 1),)]
    assert content(pipeline, "revenue", as_of=1) == old
    assert content(pipeline, "total", as_of=1) == total
    assert pipeline.lookup("revenue", "SE", as_of=1).num_rows == 1
    assert pipeline.lookup("revenue", "SE").num_rows == 0
    _take(held, next(follower))
    assert held == dict(content(pipeline, "revenue"))
    sales.delete([0, 3])
    pipeline.tick()
    assert_same_as_batch(pipeline)
    _take(held, next(follower))
    assert held == dict(content(pipeline, "revenue"))
    follower.close()  # type: ignore[attr-defined]


def _take(held: dict[str, int], change: Any) -> None:
    """Apply a change as a follower would."""
    for row in sorted(change.to_pylist(), key=lambda row: row["_weight"]):
        if row["_weight"] < 0:
            assert held.pop(row["country"]) == row["cents"]
        else:
            assert row["country"] not in held
            held[row["country"]] = row["cents"]


def test_without_replace_an_old_program_cannot_turn_a_view_back(shop: tuple[hw.Pipeline, Any]) -> None:
    pipeline, _ = shop
    pipeline.view("revenue", NEW, key="country", replace=True)
    pipeline.tick()
    with pytest.raises(hw.DeclarationChanged, match="replace=True"):
        pipeline.view("revenue", OLD, key="country")
    assert pipeline.view("revenue", NEW, key="country").sql == NEW
    assert pipeline.tick() is None


def test_a_view_that_replaces_itself_is_made_anew_once(shop: tuple[hw.Pipeline, Any]) -> None:
    pipeline, _ = shop
    old = content(pipeline, "revenue")
    assert pipeline.view("revenue", OLD, key="country", replace=True).sql == OLD
    assert pipeline.tick() is not None
    assert content(pipeline, "revenue") == old
    assert pipeline.tick() is None


def test_a_replacement_that_others_could_not_read_is_refused_and_nothing_changes(
    shop: tuple[hw.Pipeline, Any],
) -> None:
    pipeline, _ = shop
    old = content(pipeline, "revenue")
    other = "SELECT country, sum(cents) AS cents, count(*) AS n FROM sales GROUP BY country"
    with pytest.raises(hw.HeadwaterError, match="total reads it, and its columns would change"):
        pipeline.view("revenue", other, key="country", replace=True)
    with pytest.raises(hw.ViewRefused, match="it would read total, which reads it"):
        pipeline.view("revenue", "SELECT 'x' AS country, cents FROM total", key="country", replace=True)
    with pytest.raises(hw.ViewRefused, match="it would read itself"):
        pipeline.view("revenue", "SELECT * FROM revenue", key="country", replace=True)
    with pytest.raises(hw.ViewRefused):
        pipeline.view("revenue", "SELECT nothing FROM sales", key="country", replace=True)
    assert pipeline.tick() is None
    assert content(pipeline, "revenue") == old


def test_other_columns_are_fine_when_nobody_reads_the_view(shop: tuple[hw.Pipeline, Any]) -> None:
    pipeline, sales = shop
    pipeline.drop("total")
    old = content(pipeline, "revenue")
    follower = pipeline.changes("revenue", follow=True)
    next(follower)
    pipeline.view("revenue", "SELECT count(*) AS n FROM sales", replace=True)
    pipeline.tick()
    assert content(pipeline, "revenue") == [(9,)]
    assert content(pipeline, "revenue", as_of=1) == old
    with pytest.raises(hw.HeadwaterError, match="replaced at tick 2 by a query with other columns"):
        next(follower)
    assert [table.to_pylist() for table in pipeline.changes("revenue")] == [[{"_tick": 2, "_weight": 1, "n": 9}]]
    sales.upsert(rows(9))
    pipeline.tick()
    assert_same_as_batch(pipeline)


def test_readers_that_count_on_rows_staying_are_named(tmp_path: Path) -> None:
    with hw.Pipeline("shop", tmp_path / "shop") as pipeline:
        clicks = pipeline.stream("clicks", "id BIGINT, cents BIGINT")
        pipeline.view("dear", "SELECT id, cents FROM clicks WHERE cents > 10")
        pipeline.view("counted", "SELECT count(*) AS n, sum(cents) AS cents FROM dear")
        clicks.append([{"id": n, "cents": n} for n in range(30)])
        pipeline.tick()
        pipeline.view("dear", "SELECT id, cents FROM clicks WHERE cents > 20", replace=True)
        pipeline.tick()
        assert_same_as_batch(pipeline)
        assert content(pipeline, "counted") == [(9, sum(range(21, 30)))]
    with hw.Pipeline("shop", tmp_path / "shop") as pipeline:  # planned anew, against what is kept
        pipeline.stream("clicks", "id BIGINT, cents BIGINT").append([{"id": 30, "cents": 30}])
        pipeline.tick()
        assert_same_as_batch(pipeline)
        pipeline.view("late", "SELECT id, cents FROM clicks")
        pipeline.view("largest", "SELECT max(cents) AS cents FROM late")
        with pytest.raises(hw.HeadwaterError, match="largest counts on that no row of it ever disappears"):
            pipeline.view("late", "SELECT id, cents FROM clicks WHERE cents < 5", replace=True)


def test_readers_under_load_never_see_it_missing_or_half_built(tmp_path: Path) -> None:
    with hw.Pipeline("shop", tmp_path / "shop") as pipeline:
        sales = pipeline.table("sales", "id BIGINT, country STRING, cents BIGINT", key="id")
        queries = ["SELECT 1 AS version, count(*) AS n FROM sales", "SELECT 2 AS version, count(*) AS n FROM sales"]
        pipeline.view("counted", queries[0])
        sales.upsert(rows(0))
        pipeline.tick()
        seen: list[tuple[int, int]] = []
        stop = threading.Event()

        def reading() -> None:
            with hw.Pipeline("shop", tmp_path / "shop") as reader:
                while not stop.is_set():
                    ((version, count),) = content(reader, "counted")
                    seen.append((version, count))

        thread = threading.Thread(target=reading)
        thread.start()
        for step in range(1, 9):
            sales.upsert(rows(9 * step))
            if step % 2 == 0:
                pipeline.view("counted", queries[step // 2 % 2], replace=True)
            pipeline.tick()
        stop.set()
        thread.join()
        assert_same_as_batch(pipeline)
        assert {version for version, _ in seen} == {1, 2}
        counts = [count for _, count in seen]
        assert counts == sorted(counts)
        assert set(counts) <= {9 * step for step in range(1, 10)}


KILLED = """
import sys
import headwater as hw
pipeline = hw.Pipeline("shop", sys.argv[1])
pipeline.view("revenue", sys.argv[2], key="country", replace=True)
sales = pipeline.table("sales", "id BIGINT, country STRING, cents BIGINT", key="id")
sales.upsert([{"id": 100, "country": "NO", "cents": 1}])
pipeline.tick()
"""


@pytest.mark.parametrize("point", ["tick.computed", "tick.synced", "tick.committed"])
def test_a_kill_in_the_middle_of_the_rebuild_loses_nothing(tmp_path: Path, point: str) -> None:
    path = tmp_path / "shop"
    with hw.Pipeline("shop", path) as pipeline:
        sales = pipeline.table("sales", "id BIGINT, country STRING, cents BIGINT", key="id")
        pipeline.view("revenue", OLD, key="country")
        sales.upsert(rows(0))
        pipeline.tick()
        old = content(pipeline, "revenue")
    command = [sys.executable, "-c", KILLED, str(path), NEW]
    done = subprocess.run(command, env={"HEADWATER_CRASH_AT": point}, capture_output=True, text=True, check=False)
    assert done.returncode == -9, done.stderr
    with hw.Pipeline("shop", path) as pipeline:
        if point != "tick.committed":
            assert content(pipeline, "revenue") == old
            assert pipeline.tick() is not None
        assert pipeline.read("revenue").num_rows == 2
        assert pipeline.view("revenue", NEW, key="country").sql == NEW
        assert_same_as_batch(pipeline)


def test_a_suspended_view_comes_back_when_it_is_replaced(shop: tuple[hw.Pipeline, Any]) -> None:
    pipeline, sales = shop
    pipeline.drop("total")
    pipeline.view("ratio", "SELECT id, 100 DIV cents AS part FROM sales WHERE id > 0")
    pipeline.view("sum_of_ratios", "SELECT sum(part) AS part FROM ratio")
    pipeline.tick()
    position = sales.upsert([{"id": 50, "country": "NO", "cents": 0}])
    pipeline.tick()
    with pytest.raises(hw.ViewSuspended, match="DIVIDE_BY_ZERO"):
        pipeline.read("sum_of_ratios", after=position)
    pipeline.view("ratio", "SELECT id, 100 DIV cents AS part FROM sales WHERE cents > 0", replace=True)
    pipeline.tick()
    assert pipeline.read("sum_of_ratios", after=position).num_rows == 1
    assert_same_as_batch(pipeline)


def test_a_view_that_missed_more_than_is_kept_is_made_anew(tmp_path: Path) -> None:
    with hw.Pipeline("shop", tmp_path / "shop", retain_ticks=1, retain_for="0 seconds") as pipeline:
        sales = pipeline.table("sales", "id BIGINT, country STRING, cents BIGINT", key="id")
        pipeline.view("ratio", "SELECT id, 100 DIV cents AS part FROM sales")
        pipeline.view("above", "SELECT sum(part) AS part FROM ratio")
        sales.upsert([{"id": 1, "country": "NO", "cents": 1}])
        pipeline.tick()
        sales.upsert([{"id": 2, "country": "NO", "cents": 0}])
        pipeline.tick()
        for number in range(3, 22):
            sales.upsert([{"id": number, "country": "NO", "cents": number}])
            pipeline.tick()
        assert pipeline.read("ratio").num_rows == 1
        assert store_of(pipeline).ticks()[0][0] > 1
        position = sales.upsert([{"id": 2, "country": "NO", "cents": 2}])
        pipeline.tick()
        assert pipeline.read("above", after=position).num_rows == 1
        assert_same_as_batch(pipeline)


def test_a_view_declared_while_another_waits_to_be_replaced_goes_on_through_the_switch(tmp_path: Path) -> None:
    with hw.Pipeline("shop", tmp_path / "shop") as pipeline:
        clicks = pipeline.stream("clicks", "id BIGINT, cents BIGINT")
        pipeline.view("dear", "SELECT id, cents FROM clicks WHERE cents > 10")
        clicks.append([{"id": n, "cents": n} for n in range(30)])
        pipeline.tick()
        pipeline.view("dear", "SELECT id, cents FROM clicks WHERE cents < 20", replace=True)
        pipeline.view("largest", "SELECT max(cents) AS cents FROM dear")
        pipeline.tick()
        assert content(pipeline, "largest") == [(19,)]
        pipeline.view("dear", "SELECT id, cents FROM clicks WHERE cents < 5", replace=True)
        pipeline.tick()
        assert content(pipeline, "largest") == [(4,)]
        pipeline.view("dear", "SELECT id, cents FROM clicks WHERE cents < 7", replace=True)
    with hw.Pipeline("shop", tmp_path / "shop") as pipeline:  # planned on what was assumed when it was declared
        pipeline.tick()
        assert_same_as_batch(pipeline)
        pipeline.drop("largest")
        pipeline.view("dear", "SELECT id FROM clicks WHERE cents < 7", replace=True)
        with pytest.raises(hw.HeadwaterError, match="about to be replaced by a query with other columns"):
            pipeline.view("largest", "SELECT max(cents) AS cents FROM dear")
        pipeline.tick()
        pipeline.view("largest", "SELECT max(id) AS id FROM dear")
        pipeline.tick()
        assert_same_as_batch(pipeline)


def test_a_view_can_be_replaced_again_and_again_and_nothing_piles_up(tmp_path: Path) -> None:
    with hw.Pipeline("shop", tmp_path / "shop", retain_ticks=2, retain_for="0 seconds") as pipeline:
        sales = pipeline.table("sales", "id BIGINT, country STRING, cents BIGINT", key="id")
        pipeline.view("counted", "SELECT 0 AS version, count(*) AS n FROM sales")
        for number in range(1, 41):
            sales.upsert(rows(number))
            pipeline.view("counted", f"SELECT {number} AS version, count(*) AS n FROM sales", replace=True)
            pipeline.tick()
        assert content(pipeline, "counted") == [(40, 48)]
        arrangements = {name for name in store_of(pipeline).arrangements(40) if not name.startswith("t")}
        assert len(arrangements) < 60
        chain, view = 0, pipeline._relations.get("counted")
        while view.before is not None:
            chain, view = chain + 1, view.before
        assert chain < 25


def test_replacements_that_would_read_each_other_are_refused(tmp_path: Path) -> None:
    with hw.Pipeline("shop", tmp_path / "shop") as pipeline:
        pipeline.table("t", "id BIGINT", key="id").upsert([{"id": 1}])
        for name in "xy":
            pipeline.view(name, "SELECT id FROM t")
        pipeline.tick()
        pipeline.view("x", "SELECT id + 1 AS id FROM y", replace=True)
        with pytest.raises(hw.ViewRefused, match="it would read x, which reads it"):
            pipeline.view("y", "SELECT id FROM x", replace=True)
        pipeline.tick()
        assert content(pipeline, "x") == [(2,)]


def test_what_is_declared_last_holds(shop: tuple[hw.Pipeline, Any]) -> None:
    pipeline, _ = shop
    old = content(pipeline, "revenue")
    assert pipeline.view("revenue", NEW, key="country", replace=True).name == "revenue"
    assert pipeline.view("revenue", NEW, key="country").sql == NEW  # a new program may drive the switch
    assert pipeline.view("revenue", OLD, key="country", replace=True).sql == OLD
    assert pipeline.tick() is None
    assert content(pipeline, "revenue") == old
    with pytest.raises(hw.HeadwaterError, match="cannot be found"):
        pipeline.view("strange", "SELECT * FROM `revenue@next`")


def test_whoever_abandons_too_late_takes_nothing_away(shop: tuple[hw.Pipeline, Any]) -> None:
    pipeline, _ = shop
    pipeline.view("revenue", NEW, key="country", replace=True)
    seen = store_of(pipeline).find(candidate_of("revenue"))
    assert seen is not None
    pipeline.tick()
    assert not store_of(pipeline).forget(seen)
    assert not store_of(pipeline).amend(seen)
    with pytest.raises(hw.HeadwaterError, match="nothing is to replace it"):
        candidates.abandon(pipeline, "revenue")
    assert_same_as_batch(pipeline)


def test_what_was_dropped_or_abandoned_leaves_nothing_behind(tmp_path: Path) -> None:
    with hw.Pipeline("shop", tmp_path / "shop", retain_ticks=2, retain_for="0 seconds") as pipeline:
        sales = pipeline.table("sales", "id BIGINT, country STRING, cents BIGINT", key="id")
        pipeline.view("revenue", OLD, key="country")
        sales.upsert(rows(0))
        pipeline.tick()
        pipeline.view("revenue", NEW, key="country", replace=True)
        pipeline.tick()
        pipeline.drop("revenue")
        for number in range(20):
            sales.upsert(rows(number))
            pipeline.tick()
        last = store_of(pipeline).last_tick()
        assert last is not None
        assert {name.partition("/")[0][0] for name in store_of(pipeline).arrangements(last.number)} == {"t"}


def test_a_candidate_that_missed_too_much_is_begun_again(tmp_path: Path) -> None:
    with hw.Pipeline("shop", tmp_path / "shop", retain_ticks=1, retain_for="0 seconds") as pipeline:
        sales = pipeline.table("sales", "id BIGINT, country STRING, cents BIGINT", key="id")
        pipeline.view("ratio", "SELECT id, cents AS part FROM sales")
        sales.upsert([{"id": 1, "country": "NO", "cents": 1}])
        pipeline.tick()
        sql = "SELECT id, 100 DIV cents AS part FROM sales"
        candidates.begin(pipeline, "ratio", sql, hold=True)
        pipeline.tick()
        sales.upsert([{"id": 2, "country": "NO", "cents": 0}])
        for number in range(3, 23):
            sales.upsert([{"id": number, "country": "NO", "cents": number}])
            pipeline.tick()
        assert [name for name in store_of(pipeline).declarations() if "@" in name] == ["ratio@next"]
        sales.upsert([{"id": 2, "country": "NO", "cents": 2}])
        pipeline.tick()
        assert pipeline.read("ratio@next").num_rows == 22
        candidates.switch(pipeline, "ratio")
        pipeline.tick()
        assert_same_as_batch(pipeline)


@pytest.mark.parametrize(
    ("kind", "small", "keys"),
    [
        ("stream", 0, [(), ("id",), ("id",)]),
        ("stream", 0, [(), ()]),
        ("table", 20_000, [(), ("id",)]),
        ("table", 0, [("id",), ()]),
    ],
)
def test_a_view_catches_up_in_the_tick_in_which_its_input_is_arranged_otherwise(
    tmp_path: Path, kind: str, small: int, keys: list[tuple[str, ...]]
) -> None:
    with hw.Pipeline("shop", tmp_path / "shop") as pipeline:
        schema = "id BIGINT, country STRING, cents BIGINT"
        sales: Any = (
            pipeline.stream("sales", schema) if kind == "stream" else pipeline.table("sales", schema, key="id")
        )
        put = sales.append if kind == "stream" else sales.upsert
        pipeline.view("plain", "SELECT id, cents FROM sales", key=keys[0])
        pipeline.view("above", "SELECT id, 100 DIV cents AS part FROM plain")
        driver_of(pipeline).small_rows = small
        put(rows(1))
        pipeline.tick()
        put([{"id": each, "country": "NO", "cents": 0} for each in (50, 51)])
        pipeline.tick()
        assert "above" in _still(pipeline)
        for number, key in enumerate(keys[1:], 1):
            first = "cents > 0" if number == len(keys) - 1 else "id <> 50"
            pipeline.view("plain", f"SELECT id, cents FROM sales WHERE {first}", key=key, replace=True)
            put([{"id": 60 + number, "country": "NO", "cents": number}])
            pipeline.tick()
        assert not _still(pipeline)
        assert_same_as_batch(pipeline)
        assert pipeline.read("above").num_rows == len(rows(1)) + len(keys) - 1


def _still(pipeline: hw.Pipeline) -> set[str]:
    last = store_of(pipeline).last_tick()
    assert last is not None
    return set(last.detail["suspended"])
