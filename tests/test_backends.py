"""Parts of a pipeline are chosen by URL, and others can be added: here a log in one file."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import headwater as hw
from headwater.backends import ENGINES, LOGS, STATE_FILES, STORES
from headwater.cli.stored import findings
from headwater.errors import DeclarationChanged, HeadwaterError, Unavailable
from headwater.pipeline.reopen import declared, reopen
from headwater.store import SqliteStore
from headwater.testing import ManualClock
from tests.crash import expected, shop
from tests.crash.hand_engine import HandEngine, drive
from tests.inside import log_of, topic_of
from tests.one_file_log import OneFileLog, open_one_file_log
from tests.one_file_state import OneFileState, open_one_file_state

_EMBEDDED: shop.Parts = {}


@pytest.fixture
def one_file(tmp_path: Path) -> Iterator[str]:
    """The URL of a log of another kind."""
    LOGS.add("one-file", open_one_file_log)
    yield f"one-file://{tmp_path}/log.db"
    LOGS.remove("one-file")


def ticked(path: Path | str, *, large: bool, parts: shop.Parts = _EMBEDDED) -> list[dict[str, Any]]:
    """What a shop has in its topics and views after each of some ticks, with its log here or there."""
    seen = []
    with shop.opened(str(path), views=False, parts=parts) as pipeline:
        drive(pipeline, large=large)
        shop.declare_views(pipeline)
        traffic = shop.Traffic(pipeline, "the same")
        for _ in range(5):
            for _ in range(6):
                traffic.step()
            made = pipeline.tick()
            assert made is not None
            assert "large" in made.paths.values() or not large
            expected.check(pipeline)
            tails = {name: table_of(topic_of(pipeline, name).tail()) for name in shop.TOPICS}
            logs = {name: table_of([pipeline.read(f"{name}__log")]) for name in shop.TOPICS}
            assert logs == tails
            seen.append({"ends": made.number, **tails, **expected.read(pipeline, made.number)})
    return seen


def table_of(tables: Any) -> list[tuple[Any, ...]]:
    """The records of tables, all but when they came and, as for some that is chance, in which partition."""
    return sorted((row["_op"], repr([*row.values()][4:])) for table in tables for row in table.to_pylist())


@pytest.mark.parametrize("large", [False, True])
def test_a_pipeline_is_the_same_on_another_log(tmp_path: Path, one_file: str, large: bool) -> None:
    ours = ticked(tmp_path / "embedded", large=large)
    assert ticked(tmp_path / "shop", large=large, parts={"log": one_file}) == ours
    assert (tmp_path / "log.db").stat().st_size > 0
    assert not (tmp_path / "shop" / "log").exists()


def test_another_log_keeps_transactions_producers_and_dead_letters(tmp_path: Path, one_file: str) -> None:
    with hw.Pipeline("shop", tmp_path / "shop", log=one_file) as pipeline:
        events = pipeline.stream("events", "n INT", on_error="dead_letter")
        first = events.append([{"n": 1}, {"n": "x"}], producer="p", sequence=1)
        assert events.append([{"n": 1}, {"n": "x"}], producer="p", sequence=1) == first
        with pipeline.transaction() as transaction:
            transaction.append("events", [{"n": 2}])
            transaction.append("events", [{"n": 3}])
        assert [row["n"] for table in events.tail() for row in table.to_pylist()] == [1, 2, 3]
        letters = topic_of(pipeline, "events__dead_letters")
        assert [row["column"] for table in letters.tail() for row in table.to_pylist()] == ["n"]


def test_a_folder_knows_its_log_when_it_is_opened_again(tmp_path: Path, one_file: str) -> None:
    with hw.Pipeline("shop", tmp_path / "shop", log=one_file) as pipeline:
        pipeline.stream("clicks", "n INT").append([{"n": 1}])
    with reopen(str(tmp_path / "shop")) as again:
        assert isinstance(log_of(again), OneFileLog)
        assert [row["n"] for table in declared(again)["clicks"].tail() for row in table.to_pylist()] == [1]
    for other in ("embedded:", one_file + ".other"):
        with pytest.raises(DeclarationChanged, match="the log of this pipeline is one-file://"):
            hw.Pipeline("shop", tmp_path / "shop", log=other)


def test_a_folder_from_before_logs_were_chosen_has_the_embedded_one(tmp_path: Path, one_file: str) -> None:
    with hw.Pipeline("shop", tmp_path) as pipeline:
        pipeline.stream("clicks", "n INT").append([{"n": 1}])
    with sqlite3.connect(tmp_path / "headwater.db") as database:  # as it was then
        database.execute("DELETE FROM kept WHERE name = 'pipeline.log'")
    hw.Pipeline("shop", tmp_path, log="embedded:").close()
    with pytest.raises(DeclarationChanged, match="the log of this pipeline is embedded:"):
        hw.Pipeline("shop", tmp_path, log=one_file)


def test_driving_is_taken_over_where_the_log_has_no_locks(tmp_path: Path, one_file: str) -> None:
    with shop.opened(str(tmp_path / "shop"), views=False, parts={"log": one_file}) as first:
        drive(first)
        first.tick()
        with shop.opened(str(tmp_path / "shop"), views=False, parts={"log": one_file}) as second:
            second.take_over()
            drive(second)
            shop.Traffic(second, 1).step()
            assert second.tick() is not None
            shop.Traffic(first, 2).step()
            with pytest.raises(hw.Fenced):
                drive(first).tick()


def test_an_engine_is_chosen_by_the_master(tmp_path: Path) -> None:
    made = []

    def by_hand(*given: Any) -> Any:
        made.append(given[:2])
        return HandEngine()

    ENGINES.add("by-hand", by_hand)
    try:
        with hw.Pipeline("shop", tmp_path, master="by-hand:") as pipeline:
            shop.declare_topics(pipeline)
            shop.declare_views(pipeline)
            shop.Traffic(pipeline, 1).step()
            assert pipeline.tick() is not None
            expected.check(pipeline)
        assert made == [("by-hand:", "shop")]
    finally:
        ENGINES.remove("by-hand")
    with pytest.raises(HeadwaterError, match="master is 'by-hand:'"):
        hw.Pipeline("shop", tmp_path, master="by-hand:")


@pytest.mark.parametrize("url", ["kafka://localhost", "one_file", "", "C:/log", "://x"])
def test_a_url_that_means_nothing_is_told_with_what_there_is(tmp_path: Path, url: str) -> None:
    with pytest.raises(Unavailable, match="there is no log for such a URL") as refused:
        hw.Pipeline("shop", tmp_path / "shop", log=url)
    assert "embedded:" in refused.value.hint
    with pytest.raises(Unavailable, match="there is no store for such a URL") as refused:
        hw.Pipeline("shop", tmp_path / "shop", store=url)
    assert "sqlite:" in refused.value.hint
    assert not (tmp_path / "shop").exists()


def test_a_scheme_means_one_implementation(one_file: str) -> None:
    LOGS.add("one-file", open_one_file_log)
    with pytest.raises(HeadwaterError, match="one-file: is the scheme of another log"):
        LOGS.add("one-file", lambda url, folder, store, clock: OneFileLog(url, store, clock=clock))
    with pytest.raises(HeadwaterError, match="sqlite: is the scheme of another store"):
        STORES.add("sqlite", lambda url, folder: SqliteStore(folder))


def test_another_log_is_given_the_pipelines_clock(tmp_path: Path, one_file: str) -> None:
    clock = ManualClock()
    with hw.Pipeline("shop", tmp_path / "shop", log=one_file, clock=clock) as pipeline:
        clicks = pipeline.stream("clicks", "n INT")
        clicks.append([{"n": 1}])
        (table,) = clicks.tail()
        assert table.column("_received_at").cast("int64").to_pylist() == [clock.now()]


@pytest.mark.parametrize("large", [False, True])
def test_a_pipeline_is_the_same_on_other_state_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, large: bool
) -> None:
    monkeypatch.chdir(tmp_path)
    ours = ticked(tmp_path / "embedded", large=large)
    STATE_FILES.add("one-file", open_one_file_state)
    try:
        place = f"one-file://{tmp_path}/state.db"
        assert ticked(place, large=large) == ours
        folder = tmp_path / ".headwater" / shop.NAME
        assert not (folder / "state").is_dir() or not list((folder / "state").glob("*.runs"))
        assert (folder / "log").is_dir()
        with reopen(str(folder)) as again:
            assert again.state_files == OneFileState(f"{tmp_path}/state.db", "state/")
            assert again.read("revenue").num_rows
            assert [finding.ok for finding in findings(again)] == [True, True]
    finally:
        STATE_FILES.remove("one-file")
    with pytest.raises(Unavailable, match="there is no place of state files for such a URL"):
        hw.Pipeline(shop.NAME, place)
