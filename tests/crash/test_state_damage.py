"""Damaged state: never another answer, a crash or a hang; what is damaged alone is built again, told."""

from __future__ import annotations

import json
import logging
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import headwater as hw
from headwater.state.damage import note, noted
from headwater.state.files import LocalStateFiles
from headwater.state.manifest import Manifest
from headwater.state.run import Run
from tests.crash import expected, shop
from tests.crash.hand_engine import drive
from tests.crash.state_damage import campaign
from tests.inside import log_of, store_of, topic_of
from tests.read.hand import rows_of, summed
from tests.seed import SEED


@contextmanager
def driven(path: Path, *, large: bool = False) -> Iterator[hw.Pipeline]:
    with shop.opened(str(path), views=False, retain_ticks=100) as pipeline:
        drive(pipeline, large=large)
        shop.declare_views(pipeline)
        yield pipeline


def some_ticks(pipeline: hw.Pipeline, ticks: int, seed: object = 0) -> int:
    """Ticks with something in each; the number of the last."""
    traffic = shop.Traffic(pipeline, seed)
    for _ in range(ticks):
        for _ in range(5):
            traffic.step()
        pipeline.tick()
    return store_of(pipeline).ticks()[-1][0]


def runs_of(pipeline: hw.Pipeline, name: str, below: str = "") -> list[Run]:
    """The runs that a view or table has now, or something that it keeps."""
    stored = store_of(pipeline).find(name)
    assert stored is not None
    arrangements = store_of(pipeline).arrangements(store_of(pipeline).ticks()[-1][0])
    return list(Manifest.from_dict(arrangements[f"{stored.kind[0]}{stored.number}{below}"]).runs)


def flip(pipeline: hw.Pipeline, run: Run, at: int = 0) -> Path:
    """Flip a bit of a run; the file becomes another one, as after an error of the disk and a restart."""
    path = Path(pipeline.path, "state", run.file)
    data = bytearray(path.read_bytes())
    data[run.offset + (at or run.length // 2)] ^= 4
    fresh = path.with_suffix(".fresh")
    fresh.write_bytes(data)
    fresh.replace(path)
    return path


def rebuilt(pipeline: hw.Pipeline) -> str:
    """Why the last tick built something again."""
    last = store_of(pipeline).last_tick()
    assert last is not None
    return str(last.detail.get("rebuilt", ""))


def test_bits_flipped_anywhere_and_files_cut_short_give_the_right_answer_or_are_told() -> None:
    total = campaign(150, SEED, say=lambda text: None)
    assert total["harms"] == 150
    assert total["answers told"] > 0
    assert total["built again"] > 0


@pytest.mark.parametrize("large", [False, True], ids=["small", "large"])
def test_a_damaged_view_alone_is_built_again_with_what_reads_it(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, large: bool
) -> None:
    with driven(tmp_path, large=large) as pipeline:
        last = some_ticks(pipeline, 5)
        before = pipeline.read("dear", as_of=last)
        path = flip(pipeline, runs_of(pipeline, "revenue", "/n1")[-1])
        note(LocalStateFiles(str(path.parent)), path.name)
        with caplog.at_level(logging.WARNING, "headwater.tick"):
            assert some_ticks(pipeline, 1, "again") == last + 1
        assert "built again from the log: revenue, total, since the state is damaged" in caplog.text
        assert path.name in rebuilt(pipeline)
        expected.check(pipeline)
    with driven(tmp_path, large=large) as pipeline:
        assert rows_of(pipeline.read("dear", as_of=last)) == rows_of(before)
        with pytest.raises(hw.VersionExpired):
            pipeline.read("revenue", as_of=last)
        assert pipeline.tick() is None
        assert some_ticks(pipeline, 2, "more") == last + 3
        assert rebuilt(pipeline) == ""
        expected.check(pipeline)


def test_a_damaged_table_is_read_again_from_its_log_and_so_is_what_reads_it(tmp_path: Path) -> None:
    with driven(tmp_path) as pipeline:
        last = some_ticks(pipeline, 5)
        clicked = pipeline.read("clicked", as_of=last)
        path = flip(pipeline, runs_of(pipeline, "customers")[0])
        note(LocalStateFiles(str(path.parent)), path.name)
        assert some_ticks(pipeline, 2, "again") == last + 2
        expected.check(pipeline)
    with driven(tmp_path) as pipeline:
        assert rows_of(pipeline.read("clicked", as_of=last)) == rows_of(clicked)
        for name in ("customers", "revenue", "total"):
            with pytest.raises(hw.VersionExpired):
                pipeline.read(name, as_of=last)


def test_what_only_a_reader_has_found_is_healed_by_the_next_tick_though_nothing_came(tmp_path: Path) -> None:
    with driven(tmp_path) as pipeline:
        last = some_ticks(pipeline, 5)
        flip(pipeline, runs_of(pipeline, "dear")[0])
        with pytest.raises(hw.Unavailable, match="not what was written, at byte") as caught:
            pipeline.read("dear")
        assert "rebuilt from the log by the next tick" in caught.value.hint
        tick = pipeline.tick()
        assert tick is not None
        assert (tick.number, tick.rows_in) == (last + 1, 0)
        expected.check(pipeline)
        assert pipeline.tick() is None
        assert noted(LocalStateFiles(f"{pipeline.path}/state")) == []


def test_a_note_about_a_file_that_is_well_changes_nothing(tmp_path: Path) -> None:
    with driven(tmp_path) as pipeline:
        some_ticks(pipeline, 3)
        run = runs_of(pipeline, "dear")[0]
        path = flip(pipeline, run)
        with pytest.raises(hw.Unavailable):
            pipeline.read("dear")
        flip(pipeline, run)
        assert path.exists()
        assert pipeline.tick() is None
        expected.check(pipeline)
        assert noted(LocalStateFiles(f"{pipeline.path}/state")) == []


def test_who_follows_a_view_that_was_built_again_is_told_to_begin_again_and_then_gets_all(tmp_path: Path) -> None:
    with driven(tmp_path) as pipeline:
        last = some_ticks(pipeline, 4)
        follower = pipeline.changes("dear", since=last, follow=True)
        flip(pipeline, runs_of(pipeline, "dear")[0])
        with pytest.raises(hw.Unavailable):
            pipeline.read("dear")
        some_ticks(pipeline, 1, "again")
        with pytest.raises(hw.VersionExpired):
            next(follower)
        with pytest.raises(hw.VersionExpired):
            pipeline.changes("dear", since=last)
        assert summed(pipeline.changes("dear")) == rows_of(pipeline.read("dear"))
        some_ticks(pipeline, 2, "more")
        assert summed(pipeline.changes("dear")) == rows_of(pipeline.read("dear"))


def test_without_the_beginning_of_the_log_damage_is_told_by_every_tick_and_nothing_moves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HEADWATER_SEGMENT_BYTES", "2000")
    with driven(tmp_path) as pipeline:
        last = some_ticks(pipeline, 5)
        start = log_of(pipeline).trim("orders", 0, 1 << 40)
        flip(pipeline, runs_of(pipeline, "orders")[0])
        with pytest.raises(hw.Unavailable):
            pipeline.read("orders")
        for _ in range(2):
            with pytest.raises(hw.HeadwaterError, match=f"orders, partition 0, offsets 0 to {start - 1}"):
                pipeline.tick()
        assert store_of(pipeline).ticks()[-1][0] == last
        assert rows_of(pipeline.read("clicked"))


def test_state_of_a_version_without_checksums_is_told_and_built_again(tmp_path: Path) -> None:
    with driven(tmp_path) as pipeline:
        last = some_ticks(pipeline, 3)
        with store_of(pipeline)._database.write() as connection:
            rows = connection.execute("SELECT name, detail FROM runs").fetchall()
            for name, detail in rows:
                connection.execute("UPDATE runs SET detail = ? WHERE name = ?", (without_checksums(detail), name))
    with driven(tmp_path) as pipeline:
        with pytest.raises(hw.Unavailable, match="without checksums, by an older version"):
            pipeline.read("dear")
        assert some_ticks(pipeline, 1, "again") == last + 1
        assert "older version" in rebuilt(pipeline)
        expected.check(pipeline)


def without_checksums(detail: str) -> str:
    """An entry of the store as versions without checksums wrote it."""
    runs = json.loads(detail[17:])
    for run in runs["runs"]:
        del run["checksum"]
    return json.dumps(runs)


@pytest.mark.parametrize("what", ["runs", "ticks"])
def test_a_flipped_bit_in_an_entry_of_the_store_is_healed_or_told(tmp_path: Path, what: str) -> None:
    with driven(tmp_path) as pipeline:
        last = some_ticks(pipeline, 3)
        with store_of(pipeline)._database.write() as connection:
            old, new = ('"rows":1', '"rows":3') if what == "runs" else ('"seconds"', '"secondz"')
            connection.execute(f"UPDATE {what} SET detail = replace(detail, ?, ?)", (old, new))
    with driven(tmp_path) as pipeline:
        with pytest.raises(hw.Unavailable, match="in the metadata store is damaged"):
            pipeline.read("dear")
        if what == "ticks":  # nobody knows what was taken in
            with pytest.raises(hw.Unavailable, match=f"tick {last}"):
                pipeline.tick()
            return
        assert some_ticks(pipeline, 1, "again") == last + 1
        expected.check(pipeline)


def test_nobody_drives_by_a_store_that_has_lost_rows(tmp_path: Path) -> None:
    """SQLite does not notice by itself: what was decided of transactions is gone, and they would be aborted."""
    with driven(tmp_path) as pipeline:
        last = some_ticks(pipeline, 3)
    with sqlite3.connect(tmp_path / "headwater.db") as store:
        ((page,),) = store.execute("SELECT rootpage FROM sqlite_master WHERE name = 'transactions'")
        ((size,),) = store.execute("PRAGMA page_size")
        store.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    store.close()
    with (tmp_path / "headwater.db").open("r+b") as file:
        file.seek(page * size - 200)
        file.write(bytes(200))
    with driven(tmp_path) as pipeline:
        with pytest.raises(hw.Unavailable, match=r"metadata store .*(damaged|malformed)"):
            pipeline.tick()
        assert store_of(pipeline).ticks()[-1][0] == last


def test_damage_found_in_the_middle_of_a_tick_is_healed_by_the_same_tick(tmp_path: Path) -> None:
    """The driver has looked at names and lengths when it began; the bits flip later, in what the tick looks up."""
    with driven(tmp_path) as pipeline:
        last = some_ticks(pipeline, 5)
        for run in runs_of(pipeline, "orders"):
            flip(pipeline, run)
        orders = topic_of(pipeline, "orders")
        assert isinstance(orders, hw.Table)
        orders.upsert([{"id": number, "customer": 1, "cents": 7} for number in range(60)])
        tick = pipeline.tick()
        assert tick is not None
        assert tick.number == last + 1
        assert "not what was written" in rebuilt(pipeline)
        expected.check(pipeline)
        assert pipeline.tick() is None
