"""A reader that is killed again and again misses nothing, and what it has not taken in is kept while it is away."""

from __future__ import annotations

import random
from collections import Counter
from contextlib import suppress
from multiprocessing.connection import Connection
from pathlib import Path

import pyarrow as pa
import pytest

import headwater as hw
from headwater.testing import ManualClock
from tests.crash import shop
from tests.crash.children import child, told
from tests.crash.follower import plus
from tests.crash.hand_engine import drive
from tests.crash.test_reader_pins import RETAINED, driven, files, kept, named, tick
from tests.inside import store_of
from tests.read.hand import Rows, rows_of, summed
from tests.seed import SEED

KILLS = 5
READ = ("orders", "clicks")


def take(pipe: Connection, path: str, name: str) -> None:
    """Take tables by a cursor until killed; each is told before the next one is asked for."""
    with shop.opened(path) as pipeline:
        for table in pipeline.changes(name, cursor=f"of {name}", follow=True):
            pipe.send(table)


class Taken:
    """What a consumer has that keeps each tick once: one that comes again takes the place of what it had of it."""

    def __init__(self) -> None:
        self.ticks: dict[int, list[pa.Table]] = {}
        self._last = 0

    def begin(self) -> None:
        self._last = 0

    def add(self, table: pa.Table) -> int:
        (number,) = set(table["_tick"].to_pylist())
        if number != self._last:
            assert not self.ticks or number >= max(self.ticks), f"tick {number} comes after {max(self.ticks)}"
            self.ticks[number] = []
        self._last = number
        self.ticks[number].append(table)
        return int(number)

    def rows(self) -> Rows:
        total: Rows = Counter()
        for tables in self.ticks.values():
            total = plus(total, pa.concat_tables(tables))
        return total


@pytest.mark.slow
@pytest.mark.parametrize("name", READ)
def test_a_reader_that_is_killed_again_and_again_misses_nothing(tmp_path: Path, name: str) -> None:
    dice = random.Random(f"{SEED}/{name}")
    taken = Taken()
    with shop.opened(str(tmp_path), views=False, retain_ticks=RETAINED) as pipeline:
        traffic = driven(pipeline)
        for _ in range(KILLS):
            taken.begin()
            with child(take, str(tmp_path), name) as (process, pipe):
                taken.add(told(pipe))
                for _ in range(dice.randrange(4)):
                    tick(pipeline, traffic, 1)
                    while pipe.poll(dice.choice([0, 0.01, 0.2])):
                        taken.add(pipe.recv())
                process.kill()
                process.join()
                with suppress(EOFError, OSError):  # what it was just saying does not count
                    while True:
                        taken.add(pipe.recv())
            tick(pipeline, traffic, dice.randrange(25))
        taken.begin()
        for table in pipeline.changes(name, cursor=f"of {name}"):
            taken.add(table)
        assert taken.rows() == rows_of(pipeline.read(name))


def test_what_a_reader_has_not_taken_in_is_kept_while_it_is_away_and_nothing_else(tmp_path: Path) -> None:
    with shop.opened(str(tmp_path), views=False, retain_ticks=RETAINED) as pipeline:
        traffic = driven(pipeline)
        with child(take, str(tmp_path), "orders") as (process, pipe):
            told(pipe)
            tick(pipeline, traffic, 1)
            last = told(pipe)["_tick"][0].as_py()
            process.kill()
            process.join()
        tick(pipeline, traffic, 60)
        assert kept(pipeline)[0] > last + 40  # versions go, the changes stay
        assert named(pipeline) == files(pipeline)
        changes = list(pipeline.changes("orders", cursor="of orders"))
        assert changes[0]["_tick"][0].as_py() in {last, last + 1}
        assert len(changes) > 50
        held = len(files(pipeline))
        tick(pipeline, traffic, 10)
        assert len(files(pipeline)) < held - 30
        store_of(pipeline).cursors.remove("of orders")


def test_a_reader_that_was_given_up_while_away_is_told(tmp_path: Path) -> None:
    with shop.opened(str(tmp_path), views=False, retain_ticks=RETAINED) as pipeline:
        traffic = driven(pipeline)
        list(pipeline.changes("orders", cursor="mine"))
        (tmp_path / "state" / "pins").mkdir(exist_ok=True)
        tick(pipeline, traffic, 10)
        [cursor] = store_of(pipeline).cursors.all()
        assert cursor.behind is not None
        assert not cursor.given_up
        week_ago = cursor.behind - 8 * 86_400 * 1_000_000
        with store_of(pipeline)._database.write() as connection:
            connection.execute("UPDATE cursors SET behind = ?", (week_ago,))
        tick(pipeline, traffic, 20)
        with pytest.raises(hw.VersionExpired, match="given up at tick") as expired:
            pipeline.changes("orders", cursor="mine")
        assert expired.value.oldest == kept(pipeline)[0]


def test_a_reader_that_is_away_for_days_misses_nothing_and_is_told_before_and_after_it_is_given_up(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """With the driver as it is, which keeps three versions, and for an hour."""
    clock = ManualClock()
    with hw.Pipeline("away", tmp_path, clock=clock, retain_ticks=3, retain_for="1 hour") as pipeline:
        orders = pipeline.table("orders", "id BIGINT, cents BIGINT", key="id")
        drive(pipeline)

        def away(days: float) -> list[str]:
            """A tick every two hours, and what the driver says of cursors meanwhile."""
            caplog.clear()
            for number in range(round(days * 12)):
                orders.upsert([{"id": number % 7, "cents": number}])
                clock.advance(2 * 3600)
                pipeline.tick()
            return [said for record in caplog.records if "cursor" in (said := record.getMessage())]

        away(0.5)
        taken = list(pipeline.changes("orders", cursor="mine"))
        last = taken[-1]["_tick"][0].as_py()
        assert away(3) == []
        assert kept(pipeline)[0] > last + 30
        taken += pipeline.changes("orders", cursor="mine")
        assert summed(taken) == rows_of(pipeline.read("orders"))
        assert away(5) == []
        [before] = away(1.5)
        assert "given up behind 7 days or 10 GB" in before
        held = len(files(pipeline))
        [after] = away(2)
        assert "was given up: it was 7." in after
        assert len(files(pipeline)) < held - 30
        with pytest.raises(hw.VersionExpired, match=r"given up at tick \d+: it was 7\.") as expired:
            pipeline.changes("orders", cursor="mine")
        assert summed(pipeline.changes("orders", cursor="again")) == rows_of(pipeline.read("orders"))
        assert expired.value.oldest == kept(pipeline)[0]
