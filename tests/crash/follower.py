"""A reader process without Spark: follows changes, compares versions with each other, and asks queries.

    python -m tests.crash.follower PATH

Ends when its input does, with a line of JSON that counts what it saw; with code 1 and a traceback if anything was
not as promised.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
import traceback
from collections import Counter
from typing import Any

import headwater as hw
from tests.crash import shop
from tests.read.hand import Rows, rows_of, summed

FOLLOWED = ("revenue", "total", "dear", "words", "orders", "clicks")
CONSISTENT = f"""
SELECT (SELECT sum(cents) FROM revenue) IS NOT DISTINCT FROM (SELECT cents FROM total) AS money,
       (SELECT sum(sales) FROM revenue) IS NOT DISTINCT FROM (SELECT sales FROM total) AS sales,
       (SELECT count(*) FROM orders WHERE cents > 500) = (SELECT count(*) FROM dear) AS dear,
       (SELECT count(DISTINCT word) FROM bag) = (SELECT count(word) FROM words) AS words,
       (SELECT count(*) FROM clicks) = (SELECT coalesce(sum(times), 0) FROM clicked) AS clicks,
       (SELECT coalesce(sum(cents), {shop.TOTAL}) FROM orders WHERE id >= {shop.PAIR[0]}) = {shop.TOTAL} AS pair,
       (SELECT coalesce(sum(n), 0) FROM clicked WHERE who = {shop.PAIR[0]}) = 0 AS torn
"""
_PATIENCE = 20.0


class Follower:
    """Adds up the changes of one relation, and compares the sum with what is read at the same tick."""

    def __init__(self, pipeline: hw.Pipeline, name: str) -> None:
        self.name = name
        self.total: Rows = Counter()
        self.tick = 0
        self.compared = 0
        self._pipeline = pipeline
        self._changes: Any = pipeline.changes(name, follow=True)

    def run(self) -> None:
        for table in self._changes:
            (tick,) = set(table["_tick"].to_pylist())
            assert tick > self.tick, f"{self.name}: tick {tick} came after {self.tick}"
            self.total = plus(self.total, table)
            self.tick = tick
            try:
                found = rows_of(self._pipeline.read(self.name, as_of=tick))
            except hw.VersionExpired:
                continue  # it waited for this table, the version did not wait for it
            assert found == self.total, f"{self.name} at tick {tick}: {found - self.total}, {self.total - found}"
            self.compared += 1

    def is_at_the_end(self) -> bool:
        """Whether it has everything that the newest tick has."""
        return rows_of(self._pipeline.read(self.name)) == self.total

    def stop(self) -> None:
        self._changes.close()


def plus(total: Rows, table: Any) -> Rows:
    """A sum with one more change, which may take away nothing that is not there."""
    made = Counter(total)
    for _, weight, *values in (row.values() for row in table.to_pylist()):
        made[tuple(values)] += weight
    assert all(weight >= 0 for weight in made.values()), f"taken away without being there: {-made}"
    return +made


def ask(pipeline: hw.Pipeline, number: int) -> bool:
    """One instant: all views of a version fit each other. True if there was a version to ask."""
    try:
        (row,) = pipeline.query(CONSISTENT).to_pylist()
    except hw.NotReached:
        return False  # no tick has filled the views yet
    assert all(row.values()), f"views of one version differ: {row}"
    name = FOLLOWED[number % len(FOLLOWED)]
    try:
        changes = list(pipeline.changes(name))
        for tick in {int(table["_tick"][0].as_py()) for table in changes[-2:]}:
            found = rows_of(pipeline.read(name, as_of=tick))
            assert summed(changes, tick) == found, f"the changes of {name} up to {tick} are not its rows"
    except hw.VersionExpired:
        pass  # by the time it was read
    return True


def main() -> int:
    ended = threading.Event()

    def wait_for_the_end() -> None:
        sys.stdin.read()
        ended.set()

    threading.Thread(target=wait_for_the_end, daemon=True).start()
    with shop.opened(sys.argv[1]) as pipeline:
        followers = [Follower(pipeline, name) for name in FOLLOWED]
        for follower in followers:
            threading.Thread(target=guarded, args=(follower.run,), daemon=True).start()
        asked = 0
        while not ended.wait(0.02):
            asked += ask(pipeline, asked)
        deadline = time.monotonic() + _PATIENCE
        while not all(follower.is_at_the_end() for follower in followers):
            assert time.monotonic() < deadline, "a follower did not come to the end"
            time.sleep(0.05)
        for follower in followers:
            follower.stop()
        compared = sum(follower.compared for follower in followers)
        assert "pyspark" not in sys.modules
        print(
            json.dumps({"asked": asked, "compared": compared, "followed": max(f.tick for f in followers)}),
            flush=True,
        )
    return 0


def guarded(action: Any) -> None:
    """A thread that fails ends the process."""
    try:
        action()
    except BaseException:
        traceback.print_exc()
        sys.stderr.flush()
        os._exit(1)


if __name__ == "__main__":
    guarded(lambda: os._exit(main()))
