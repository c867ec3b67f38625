"""The examples do what they say."""

from __future__ import annotations

import importlib.util
from collections import defaultdict
from itertools import islice
from pathlib import Path
from random import Random
from typing import Any

import pytest
from pyspark.sql import SparkSession

import headwater as hw
from headwater.testing import assert_same_as_batch
from tests.inside import driver_of

FOLDER = Path(__file__).parent.parent / "examples"


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.parametrize("small_rows", [20_000, 0], ids=["small", "large"])
def test_home_timelines(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, small_rows: int
) -> None:
    monkeypatch.chdir(tmp_path)
    timeline = loaded("timeline")
    with timeline.network as network:
        life = timeline.tables.live(Random(5), 12)
        for _ in range(4):
            happened = set(islice(life, 150))
            driver_of(network).small_rows = small_rows
            assert network.tick() is not None
            assert_same_as_batch(network)
            assert timelines(network) == expected(network, timeline.LENGTH)
        assert happened == {"post", "follow", "unfollow", "rename", "delete"}
        assert max(len(each) for each in timelines(network).values()) == timeline.LENGTH
        first = network.lookup("timelines", (1, 1)).to_pylist()
        assert [row["id"] for row in first] == [timelines(network)[1][0][0]]


def loaded(name: str) -> Any:
    specification = importlib.util.spec_from_file_location(name, FOLDER / name / f"{name}.py")
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


def timelines(network: hw.Pipeline) -> dict[int, list[tuple[int, str]]]:
    rows = sorted(network.read("timelines").to_pylist(), key=lambda row: row["place"])
    found: dict[int, list[tuple[int, str]]] = defaultdict(list)
    for row in rows:
        found[row["follower"]].append((row["id"], row["name"]))
    return dict(found)


def expected(network: hw.Pipeline, length: int) -> dict[int, list[tuple[int, str]]]:
    """The timelines as one would write them down by hand."""
    names = {row["id"]: row["name"] for row in network.read("users").to_pylist()}
    posts = sorted(network.read("tweets").to_pylist(), key=lambda row: (row["at"], row["id"]), reverse=True)
    found: dict[int, list[tuple[int, str]]] = {}
    for row in network.read("follows").to_pylist():
        found.setdefault(row["follower"], [])
    for follower in found:
        followed = {row["followee"] for row in network.read("follows").to_pylist() if row["follower"] == follower}
        mine = [(post["id"], names[post["sender"]]) for post in posts if post["sender"] in followed]
        found[follower] = mine[:length]
    return {follower: mine for follower, mine in found.items() if mine}
