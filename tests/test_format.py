"""The log and the state say in which format they are; the store does so by itself (`tests/contracts`)."""

from __future__ import annotations

import shutil
import threading
from pathlib import Path

import pytest

import headwater as hw
from headwater.files import Files
from headwater.format import LOG, STATE, Format
from tests.crash import shop
from tests.crash.hand_engine import drive
from tests.inside import topic_of


def ticked(path: Path) -> None:
    with shop.opened(str(path), views=False) as pipeline:
        drive(pipeline)
        shop.declare_views(pipeline)
        shop.Traffic(pipeline, "format").step()
        pipeline.tick()


def test_the_log_and_the_state_say_their_formats(tmp_path: Path) -> None:
    ticked(tmp_path)
    assert (tmp_path / "log" / "format").read_text() == "headwater log 1\n"
    assert (tmp_path / "state" / "format").read_text() == "headwater state 2\n"


@pytest.mark.parametrize("what", ["log", "state"])
@pytest.mark.parametrize("version", ["0", "1", "2", "99"])
def test_another_format_is_refused_with_what_to_do(tmp_path: Path, what: str, version: str) -> None:
    ticked(tmp_path)
    current = {"log": LOG, "state": STATE}[what].version
    (tmp_path / what / "format").write_text(f"headwater {what} {version}\n")
    if version == str(current):
        ticked(tmp_path)
        return
    with pytest.raises(
        hw.HeadwaterError, match=f"'headwater {what} {version}', and .* {what} {current}'"
    ) as refused:
        hw.Pipeline(shop.NAME, tmp_path)
    assert "use the version of headwater that wrote it" in refused.value.hint
    assert ("delete this folder" in refused.value.hint) == (what == "state")
    assert refused.value.where == str(tmp_path / what)


def test_what_says_no_format_is_of_the_one_before_there_were_any(tmp_path: Path) -> None:
    ticked(tmp_path)
    for what in ("log", "state"):
        (tmp_path / what / "format").unlink()
    ticked(tmp_path)
    assert (tmp_path / "log" / "format").exists()
    with shop.opened(str(tmp_path), views=False) as pipeline:
        assert sum(table.num_rows for table in topic_of(pipeline, "orders").tail()) >= 1


def test_state_of_another_format_can_be_deleted(tmp_path: Path) -> None:
    ticked(tmp_path)
    (tmp_path / "state" / "format").write_text("headwater state 99\n")
    shutil.rmtree(tmp_path / "state")
    ticked(tmp_path)
    assert STATE.check(str(tmp_path / "state"))


def test_many_may_mark_a_folder_at_once(tmp_path: Path) -> None:
    made, barrier = Format("log", 1), threading.Barrier(8)
    seen: list[bool] = []

    def mark() -> None:
        barrier.wait()
        made.mark(Files(), str(tmp_path))
        seen.append(made.check(str(tmp_path)))

    threads = [threading.Thread(target=mark) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seen == [True] * 8
    assert [path.name for path in tmp_path.iterdir()] == ["format"]
