from __future__ import annotations

import json
from pathlib import Path

import pytest

import headwater as hw
from tests.crash import shop
from tests.crash.hand_engine import drive
from tests.inside import store_of
from tests.tick.moving import move

from .conftest import Headwater


@pytest.fixture
def path(tmp_path: Path) -> str:
    """The shop of the crash tests after two ticks, with a view that is suspended and one that is to be filled."""
    with hw.Pipeline("shop", tmp_path / "shop") as pipeline:
        shop.declare_topics(pipeline)
        drive(pipeline)
        shop.declare_views(pipeline)
        for number in (1, 2):
            move(pipeline, number)
            pipeline.tick()
        pipeline.table("waiting", "id BIGINT", key="id").upsert([{"id": 1}])
        stored = store_of(pipeline).find("words")
        assert stored is not None
        store_of(pipeline).declare("late", "view", stored.spec)
    return str(tmp_path / "shop")


def test_everything_is_told_on_lines_of_eighty_columns(headwater: Headwater, path: str) -> None:
    done = headwater("status", "--pipeline", path)
    assert (done.returncode, done.stderr) == (0, "")
    told, topics, views = done.stdout.split("\n\n")
    assert "no process drives this pipeline now" in told
    assert "tick 2 at " in told
    assert "ticks 1 to 2 are kept" in " ".join(told.split())
    heading, *lines = topics.splitlines()
    assert heading.split() == ["topic", "kind", "records", "bytes", "a", "second", "waiting", "set", "aside"]
    assert lines[-1].split()[:3] == ["waiting", "table", "1"]
    assert lines[-1].split()[-2:] == ["1", "0"]
    heading, *lines = views.splitlines()
    assert heading.split() == ["view", "state", "rows", "bytes", "tick", "changed", "seconds"]
    assert lines[0].split()[:3] == ["revenue", "fresh", "1"]
    assert lines[-1].split()[:4] == ["late", "waiting", "not", "filled"]
    assert max(len(line) for line in done.stdout.splitlines() if path not in line) <= 80


def test_as_json_it_is_what_status_gives(headwater: Headwater, path: str) -> None:
    told = json.loads(headwater("status", "--pipeline", path, "--json").stdout)
    assert [view["name"] for view in told["views"]] == [*shop.VIEWS, "late"]
    assert {view["name"]: view["rows"] for view in told["views"]}["dear"] == 2
    with hw.Pipeline("shop", path) as pipeline:
        again = pipeline.status().as_dict()
    for each in (told, again):
        for topic in each["topics"]:
            topic.pop("rate")
    assert {**told, "at": ""} == {**again, "at": ""}
