"""A view's state is of a plan; a plan made again is the same, or is seen to be another, and the view made anew."""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import headwater as hw
from headwater.catalog.names import candidate_of
from headwater.plan.fingerprint import Fingerprint
from headwater.spark.engine import SparkEngine
from headwater.spark.planner.kept_plan import KeptPlan
from headwater.testing import assert_same_as_batch
from tests.inside import driver_of, planning_of, store_of, topic_of

pytestmark = pytest.mark.spark

COUNTS = "SELECT k, count(DISTINCT a) AS x, count(DISTINCT b) AS y, count(DISTINCT c) AS z FROM t GROUP BY k"
VIEWS = {
    "counts": COUNTS,
    "sums": "SELECT k, sum(x) AS x, max(y) AS y FROM counts GROUP BY k",
    "pairs": "SELECT l.id, r.id AS other, l.b FROM t l JOIN t r ON l.a = r.a",
    "paired": "SELECT l.id, r.k FROM t l JOIN t r ON l.a = r.a WHERE r.b > 1",
    "best": "SELECT max(cents) AS cents FROM (SELECT cents FROM sold WHERE cents > 1)",
    "dear": "SELECT cents FROM sold WHERE cents > 2",
    "dearest": "SELECT max(cents) AS cents FROM dear",
    "last": "SELECT k, a FROM "
    "(SELECT *, row_number() OVER (PARTITION BY k ORDER BY id DESC) AS n FROM t) WHERE n < 3",
}


class Shop:
    """A pipeline that is opened again and again, as if by other processes."""

    def __init__(self, folder: Path, *, large: bool) -> None:
        self.folder, self.large, self.round = folder, large, 0
        self.declare: Callable[[hw.Pipeline], None] = lambda pipeline: None

    def opened(self) -> hw.Pipeline:
        pipeline = hw.Pipeline("shop", self.folder)
        pipeline.table("t", "id BIGINT, k STRING, a STRING, b BIGINT, c DATE", key="id")
        pipeline.stream("sold", "cents BIGINT")
        self.declare(pipeline)
        if self.large:
            driver_of(pipeline).small_rows = 0
        return pipeline

    def changed(self, pipeline: hw.Pipeline) -> None:
        """Some rows come, one changes and one goes."""
        self.round += 1
        ids = range(4 * self.round, 4 * self.round + 4)
        rows = [{"id": n, "k": "xy"[n % 2], "a": f"a{n % 3}", "b": n % 5, "c": None} for n in ids]
        table: Any = topic_of(pipeline, "t")
        table.upsert([*rows, {**rows[0], "id": 4, "b": None}])
        table.delete([ids[0] - 3])
        stream: Any = topic_of(pipeline, "sold")
        stream.append([{"cents": n % 7} for n in ids])

    def ticked(self, pipeline: hw.Pipeline) -> hw.Tick:
        """A tick after which every view is right."""
        self.changed(pipeline)
        tick = pipeline.tick()
        assert tick is not None
        assert_same_as_batch(pipeline)
        return tick


def numbers(pipeline: hw.Pipeline) -> dict[str, int]:
    return {n: each.number for n, each in store_of(pipeline).declarations().items() if each.kind == "view"}


@pytest.fixture
def shop(request: pytest.FixtureRequest, tmp_path: Path) -> Shop:
    return Shop(tmp_path / "shop", large=getattr(request, "param", "small") == "large")


both = pytest.mark.parametrize("shop", ["small", "large"], indirect=True)


@pytest.fixture
def told(caplog: pytest.LogCaptureFixture) -> Iterator[list[str]]:
    """What is told of views that are made anew."""
    caplog.set_level(logging.WARNING, "headwater.tick")
    found: list[str] = []
    handler = logging.Handler()
    handler.emit = lambda record: found.append(record.getMessage())  # type: ignore[method-assign]
    logger = logging.getLogger("headwater.tick")
    logger.addHandler(handler)
    yield found
    logger.removeHandler(handler)


def test_a_process_that_declares_other_views_first_goes_on_with_the_state(shop: Shop, told: list[str]) -> None:
    before: dict[str, int] = {}
    for opening in range(4):
        with shop.opened() as pipeline:
            for number in range(opening):
                pipeline.view(f"w{number}", f"SELECT id, CAST(b AS STRING) || '{number}' AS b FROM t")
            for name, sql in VIEWS.items():
                pipeline.view(name, sql)
            shop.ticked(pipeline)
            assert numbers(pipeline).items() >= before.items()
            before = numbers(pipeline)
    assert told == []


def other_plan(monkeypatch: pytest.MonkeyPatch, of: Callable[[str], bool]) -> None:
    """From now on, some views are planned otherwise than before, as far as can be seen."""
    seen = SparkEngine.fingerprints

    def other(self: SparkEngine, split: Any) -> Any:
        own, shared = seen(self, split)
        return Fingerprint("other") if of(own.operators) else own, shared

    monkeypatch.setattr(SparkEngine, "fingerprints", other)
    for read in ("read", "marks"):
        monkeypatch.setattr(KeptPlan, read, lambda self, key: None)


def test_a_view_whose_plan_has_become_another_is_made_anew_alone(
    shop: Shop, told: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with shop.opened() as pipeline:
        for name, sql in VIEWS.items():
            pipeline.view(name, sql)
        shop.ticked(pipeline)
        first = shop.ticked(pipeline)
        before, kept = numbers(pipeline), pipeline.read("dear").to_pylist()
        parts = planning_of(pipeline)
        catalog = parts.catalog()
        plans = {name: str(parts.planning.planned(view, catalog).own) for name, view in catalog.views.items()}
    chosen = {plans["counts"], plans["dear"], plans["pairs"]}
    other_plan(monkeypatch, lambda operators: operators in chosen)
    with shop.opened() as pipeline:
        shop.ticked(pipeline)
        after = numbers(pipeline)
        # what counts on that no row of `dear` disappears is made anew with it; what only reads `counts` is not
        assert {name for name in after if after[name] != before[name]} == {"counts", "dear", "dearest", "pairs"}
        assert "the view counts is made anew: its plan has become another" in told
        assert "the view dearest is made anew: it counts on the rows of dear, which is made anew" in told
        assert len(told) == 4
        assert "made anew at tick 3: its plan has become another" in pipeline.explain("counts")
        assert pipeline.read("dear", as_of=first.number).to_pylist() == kept
        changes = list(pipeline.changes("sums", since=first.number))
        assert sum(each.num_rows for each in changes) <= 4  # no more than what came changed
        shop.ticked(pipeline)
    with shop.opened() as pipeline:
        shop.ticked(pipeline)
        assert numbers(pipeline) == after
    assert len(told) == 4


def test_another_number_of_plans_makes_anew_only_what_has_become_another(
    shop: Shop, told: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with shop.opened() as pipeline:
        for name, sql in VIEWS.items():
            pipeline.view(name, sql)
        shop.ticked(pipeline)
        before = numbers(pipeline)
        parts = planning_of(pipeline)
        catalog = parts.catalog()
        counts = str(parts.planning.planned(catalog.views["counts"], catalog).own)
    monkeypatch.setattr("headwater.spark.engine._PLANS", "another")
    with shop.opened() as pipeline:
        shop.ticked(pipeline)
        assert (numbers(pipeline), told) == (before, [])
    seen = SparkEngine.fingerprints

    def other(self: SparkEngine, split: Any) -> Any:
        own, shared = seen(self, split)
        return Fingerprint("other") if own.operators == counts else own, shared

    monkeypatch.setattr(SparkEngine, "fingerprints", other)
    monkeypatch.setattr("headwater.spark.engine._PLANS", "one more")
    with shop.opened() as pipeline:
        shop.ticked(pipeline)
        after = numbers(pipeline)
    assert {name for name in after if after[name] != before[name]} == {"counts"}
    assert told == ["the view counts is made anew: its plan has become another"]


def test_what_views_share_is_made_anew_where_its_plan_has_become_another(
    shop: Shop, told: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with shop.opened() as pipeline:
        for name, sql in VIEWS.items():
            pipeline.view(name, sql)
        shop.ticked(pipeline)
        before = numbers(pipeline)
    seen = SparkEngine.fingerprints

    def other(self: SparkEngine, split: Any) -> Any:
        own, shared = seen(self, split)
        return own, dict.fromkeys(shared, Fingerprint("other"))

    monkeypatch.setattr(SparkEngine, "fingerprints", other)
    for read in ("read", "marks"):
        monkeypatch.setattr(KeptPlan, read, lambda self, key: None)
    with shop.opened() as pipeline:
        shop.ticked(pipeline)
        after = numbers(pipeline)
        assert {"pairs", "paired"} <= {name for name in after if after[name] != before[name]}
        pairs, paired = (
            store_of(pipeline).declarations()[name].spec["shared"].keys() for name in ("pairs", "paired")
        )
        assert pairs & paired
        shop.ticked(pipeline)


def test_state_of_a_store_without_fingerprints_is_made_anew(shop: Shop, told: list[str]) -> None:
    with shop.opened() as pipeline:
        pipeline.view("counts", COUNTS)
        pipeline.view("pairs", VIEWS["pairs"])
        shop.ticked(pipeline)
    with sqlite3.connect(shop.folder / "headwater.db") as database:
        database.execute("UPDATE runs SET detail = json_remove(substr(detail, 18), '$.plan')")
    with shop.opened() as pipeline:
        shop.ticked(pipeline)
        shop.ticked(pipeline)
    assert len(told) == 2


def test_a_view_that_cannot_be_made_anew_stands_still_and_says_why(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    with shop.opened() as pipeline:
        pipeline.view("dear", VIEWS["dear"])
        pipeline.view("counts", COUNTS)
        shop.ticked(pipeline)
    monkeypatch.setattr("headwater.tick.history.is_complete", lambda relation, log, cut: relation.name != "sold")
    other_plan(monkeypatch, lambda operators: True)
    with shop.opened() as pipeline:
        shop.changed(pipeline)
        pipeline.tick()
        assert_same_as_batch(pipeline, ["counts"])
        with pytest.raises(hw.ViewSuspended, match="cannot be made anew: the log has lost its beginning"):
            pipeline.read("dear", as_of=2)


@both
def test_a_function_that_does_something_else_than_before_counts(shop: Shop, told: list[str]) -> None:
    by = {"value": 2}

    def declare(pipeline: hw.Pipeline) -> None:
        factor = by["value"]
        pipeline.udf("times", lambda cents: (cents or 0) * factor, "BIGINT")
        pipeline.view("made", "SELECT id, k, times(b) AS b FROM t")
        pipeline.view("totals", "SELECT k, sum(b) AS b FROM made GROUP BY k")
        pipeline.view("most", "SELECT max(times(cents)) AS cents FROM sold")
        pipeline.view("more", "SELECT times(cents) AS cents FROM sold")
        pipeline.view("highest", "SELECT max(cents) AS cents FROM more")
        pipeline.view("counts", COUNTS)

    shop.declare = declare
    for factor, again in ((5, 0), (5, 0), (2, 4), (2, 4)):
        by["value"] = factor
        with shop.opened() as pipeline:
            shop.ticked(pipeline)
            shop.ticked(pipeline)
        assert len(told) == again
    assert "the view made is made anew: the function times has changed" in told


def test_a_function_that_returns_another_type_gives_its_views_other_columns_unless_they_are_read(
    shop: Shop, told: list[str]
) -> None:
    given: dict[str, Any] = {"returns": "STRING", "does": lambda b: f"{b} b"}

    def declare(pipeline: hw.Pipeline) -> None:
        pipeline.udf("told", given["does"], given["returns"])
        pipeline.view("alone", "SELECT id, told(b) AS t FROM t")
        pipeline.view("below", "SELECT id, told(b) AS t FROM t WHERE id > 0")
        pipeline.view("above", "SELECT max(t) AS t FROM below")

    shop.declare = declare
    with shop.opened() as pipeline:
        shop.ticked(pipeline)
    given |= {"returns": "DOUBLE", "does": lambda b: (b or 0) * 1.5}
    with shop.opened() as pipeline:
        pipeline.tick()
        assert pipeline.read("alone").schema.field("t").type == pa.float64()
        assert_same_as_batch(pipeline, ["alone"])
        suspended = {view.name: view for view in pipeline.status().views if view.suspended is not None}
        assert suspended.keys() == {"below", "above"}
        assert "above reads it as" in str(suspended["below"].suspended)


def test_a_view_whose_function_is_not_declared_stands_still_until_it_is(shop: Shop) -> None:
    def udf(pipeline: hw.Pipeline) -> None:
        pipeline.udf("twice", lambda cents: (cents or 0) * 2, "BIGINT")

    shop.declare = udf
    with shop.opened() as pipeline:
        pipeline.view("doubled", "SELECT id, twice(b) AS b FROM t")
        pipeline.view("above", "SELECT count(*) AS n FROM doubled")
        pipeline.view("joined", "SELECT l.id, twice(r.b) AS b FROM t l JOIN t r ON l.a = r.a")
        pipeline.view("counts", COUNTS)
        last = shop.ticked(pipeline)
    shop.declare = lambda pipeline: None
    with shop.opened() as pipeline:
        shop.changed(pipeline)
        assert pipeline.tick() is not None
        shop.changed(pipeline)
        tick = pipeline.tick()
        assert tick is not None
        assert_same_as_batch(pipeline, ["counts"])
        assert pipeline.tick() is None
        for name in ("doubled", "above", "joined"):
            with pytest.raises(hw.ViewSuspended, match="twice"):
                pipeline.read(name, as_of=tick.number)
            assert "suspended since tick 1" in pipeline.explain(name)
            assert pipeline.read(name, as_of=last.number).num_rows
        udf(pipeline)
        assert pipeline.tick() is not None
        assert_same_as_batch(pipeline)
        shop.ticked(pipeline)


def test_what_is_to_be_made_anew_but_cannot_be_planned_leaves_the_others_alone(shop: Shop) -> None:
    by = {"value": 2}

    def declare(pipeline: hw.Pipeline) -> None:
        factor = by["value"]
        pipeline.udf("times", lambda cents: cents * factor, "BIGINT")
        if factor == 2:
            pipeline.udf("less", lambda cents: cents - 1, "BIGINT")
        pipeline.view("more", "SELECT times(cents) AS cents FROM sold")

    shop.declare = declare
    with shop.opened() as pipeline:
        pipeline.view("highest", "SELECT max(less(cents)) AS cents FROM more")  # counts on all rows of it
        shop.ticked(pipeline)
    by["value"] = 3
    with shop.opened() as pipeline:
        shop.changed(pipeline)
        tick = pipeline.tick()
        assert tick is not None
        assert_same_as_batch(pipeline, ["more"])
        with pytest.raises(hw.ViewSuspended, match="less"):
            pipeline.read("highest", as_of=tick.number)
        pipeline.udf("less", lambda cents: cents - 1, "BIGINT")
        for _ in range(3):
            shop.changed(pipeline)
            pipeline.tick()
        assert_same_as_batch(pipeline)


def test_replacing_a_view_by_itself_makes_it_anew(shop: Shop) -> None:
    with shop.opened() as pipeline:
        for name, sql in VIEWS.items():
            pipeline.view(name, sql)
        shop.ticked(pipeline)
        before = numbers(pipeline)
        made = pipeline.view("dear", VIEWS["dear"] + "  -- the same", replace=True)
        assert pipeline.view("dear", VIEWS["dear"], replace=True) == made
        assert store_of(pipeline).find(candidate_of("dear")) is not None
        assert pipeline.tick() is not None
        assert_same_as_batch(pipeline)
        shop.ticked(pipeline)
        after = numbers(pipeline)
        assert {name for name in after if after[name] != before[name]} == {"dear", "dearest"}


@both
def test_a_row_that_is_in_less_than_no_times_is_told_and_its_view_made_anew(shop: Shop, told: list[str]) -> None:
    by = {"value": 2}

    def declare(pipeline: hw.Pipeline) -> None:
        factor = by["value"]
        pipeline.udf("times", lambda cents: (cents or 0) * factor, "BIGINT", version="always the same")

    shop.declare = declare
    with shop.opened() as pipeline:
        pipeline.view("made", "SELECT id, times(b) AS b FROM t")
        pipeline.view("copied", "SELECT b FROM made")
        pipeline.view("ranked", "SELECT id, rank() OVER (ORDER BY b) AS n FROM made")
        shop.ticked(pipeline)
    by["value"] = 3  # which the version denies
    with shop.opened() as pipeline:
        table: Any = topic_of(pipeline, "t")
        table.delete([5, 6, 7])
        pipeline.tick()
        with pytest.raises(hw.HeadwaterError, match="fault of Headwater") as error:
            pipeline.read("made")
        assert error.value.where == "made"
        with pytest.raises(hw.HeadwaterError):
            pipeline.read("copied")
        for _ in range(3):
            if pipeline.tick() is None:
                break
        assert_same_as_batch(pipeline)
        shop.ticked(pipeline)


def test_white_space_and_comments_are_no_other_sql(shop: Shop) -> None:
    with shop.opened() as pipeline:
        first = pipeline.view("counts", COUNTS)
        assert pipeline.view("counts", COUNTS.replace(", ", ",\n    ") + " -- by k") == first
        with pytest.raises(hw.DeclarationChanged):
            pipeline.view("counts", COUNTS.replace("count(DISTINCT b)", "count(b)"))
