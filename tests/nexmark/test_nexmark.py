"""Every query of Nexmark as a view, on both paths, and every tick of all of them held against batch.

`-s` shows how many rows each has in the end.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from bench.nexmark.generator import Events, Generator
from bench.nexmark.queries import QUERIES
from bench.nexmark.streams import SIDE_INPUT, SIDE_INPUT_KEY, SIDE_INPUT_SCHEMA, STREAMS, side_input
from pyspark.sql import SparkSession

import headwater as hw
from headwater.testing import ManualClock, assert_same_as_batch
from tests.equivalence.changes import changes_add_up
from tests.inside import driver_of

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(3_600)]

SEED = 13
STEP = timedelta(seconds=3)
DISORDER = 3
START = datetime(2026, 3, 1, 18, 30, tzinfo=UTC)
"""With this step the events go from one day, by all of query 14's times of day, into the next, and a window of 10
seconds has several bids but not all of a session; little disorder lets query 8 find a few people, here 5."""

FIRST_SIZE = 2_000
SIZES = (0, 1, 30, 400, 1_500, 3_100)
"""Events of the first tick and, in some order, of the others."""


class AuctionHouse:
    """A pipeline with the streams, the side input and as many of the 23 views as are accepted."""

    def __init__(self, folder: Path, path: str) -> None:
        self.path = path
        self.refused: dict[str, str] = {}
        self._clock = ManualClock()
        self._random = random.Random(SEED)
        self._generator = Generator(SEED, step=STEP, start=START, disorder=DISORDER)
        self.pipeline = hw.Pipeline("nexmark", folder, clock=self._clock)
        self._streams = {
            name: self.pipeline.stream(name, ddl, partitions=2, durability="none") for name, ddl in STREAMS.items()
        }
        self._side_input = self.pipeline.table(SIDE_INPUT, SIDE_INPUT_SCHEMA, key=SIDE_INPUT_KEY, durability="none")
        for name, sql in QUERIES.items():
            try:
                self.pipeline.view(name, sql)
            except hw.ViewRefused as refused:
                self.refused[name] = str(refused)
        self.accepted = [name for name in QUERIES if name not in self.refused]

    def happens(self, events: int) -> None:
        """So many events arrive, in two parts with some seconds between them."""
        part = self._random.randint(0, events)
        for size in (part, events - part):
            self._append(self._generator.take(size))
            self._clock.advance(self._random.choice([0.001, 2.5, 10, 60]))

    def tick(self) -> None:
        """A tick on the chosen path, after which every view equals batch."""
        if self.path == "large":
            driver_of(self.pipeline).small_rows = 0
        tick = self.pipeline.tick()
        if tick is not None and tick.rows_in:
            assert set(tick.paths.values()) <= {self.path}, tick.paths
        assert_same_as_batch(self.pipeline)

    def settings_change(self) -> None:
        """Some rows of the side input are new, some have another value, some are gone."""
        first = 1_000 + self._random.randrange(400)
        rows = side_input(first, 50).to_pylist()
        value = self._random.choice(["old", "new", "borrowed", "blue", None])
        self._side_input.upsert([{**row, "value": value} for row in rows])
        self._side_input.delete([first + self._random.randrange(-50, 50) for _ in range(20)])

    def settings_begin(self) -> None:
        """The side input knows about half of the auctions."""
        self._side_input.upsert(side_input(1_000, 250))

    def rows(self) -> dict[str, int]:
        """How many rows every accepted view has."""
        return {name: self.pipeline.read(name).num_rows for name in self.accepted}

    def _append(self, events: Events) -> None:
        for name, table in events.tables().items():
            if table.num_rows:
                self._streams[name].append(table)


@pytest.fixture(scope="module", autouse=True)
def _running(spark: SparkSession) -> None:
    """Pipelines find Spark running."""


@pytest.fixture(params=("small", "large"))
def house(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[AuctionHouse]:
    made = AuctionHouse(tmp_path, request.param)
    yield made
    made.pipeline.close()


def test_all_queries_are_views_that_equal_batch_after_every_tick(house: AuctionHouse) -> None:
    sizes = random.Random(SEED).sample(SIZES, len(SIZES))
    house.settings_begin()
    house.happens(FIRST_SIZE)
    house.tick()
    for number, size in enumerate(sizes):
        house.happens(size)
        if number % 3 == 0:
            house.settings_change()
        house.tick()
    for name in house.accepted:
        changes_add_up(house.pipeline, name, since=1)
    rows = house.rows()
    print(f"\nNexmark {len(rows)}/{len(QUERIES)}: " + " ".join(f"{name} {count:,}" for name, count in rows.items()))
    assert [name for name, count in rows.items() if not count] == []
    assert not house.refused, "\n".join(f"{name} was refused: {why}" for name, why in house.refused.items())
