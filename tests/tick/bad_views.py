"""A campaign of bad views: ways to fail, some at a time beside five good views, which go on and equal batch.

    python -m tests.tick.bad_views --ways 200 --seed 7

Each way is an expression or a function that fails for one row, somewhere in a query; or a fault that is put into
the computation itself. Every bad view must be suspended by name and come back when the row is gone.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

import pandas as pd
import pyarrow as pa
import pytest

import headwater as hw
from headwater import crashpoint
from headwater.testing import assert_same_as_batch
from headwater.tick import attempts
from headwater.tick.driver import Driver
from headwater.tick.large import Large
from headwater.tick.small import Small
from tests.inside import attempts_of, driver_of, store_of
from tests.seed import SEED

GOOD_ROW = {"text": "10", "doc": '{"a":1}', "xml": "<a><b>1</b></a>", "long": "ab", "zero": 1, "big": 5}
BAD_ROW = {"text": "boom", "doc": "{boom", "xml": "<a><b", "long": "ab" * 20_000, "zero": 0, "big": 1_000_000_000}
_COLUMNS = "id BIGINT, text STRING, doc STRING, xml STRING, long STRING, zero BIGINT, big BIGINT"
_BAD = 100

GOOD = {
    "counted": "SELECT count(*) AS n, max(id) AS last FROM t",
    "upper": "SELECT id, upper(text) AS shouted FROM t",
    "by_parity": "SELECT id % 2 AS odd, sum(zero) AS total FROM t GROUP BY id % 2",
    "paired": "SELECT a.id, b.zero FROM t a JOIN t b ON a.id = b.id + 1",
    "ranked": "SELECT id, row_number() OVER (PARTITION BY id % 2 ORDER BY id) AS place FROM t",
}

EXPRESSIONS = {
    "cast to whole": "CAST(text AS BIGINT)",
    "cast to date": "CAST(concat('2020-01-', text) AS DATE)",
    "cast to decimal": "CAST(text AS DECIMAL(5, 2))",
    "cast to boolean": "CAST(replace(text, '10', 'true') AS BOOLEAN)",
    "division": "100 / zero",
    "remainder": "100 % zero",
    "overflow": "big * 9000000000",
    "narrow": "CAST(big AS SMALLINT)",
    "element": "element_at(array(1, 2), CAST(zero AS INT))",
    "index": "array(1, 2)[2 * (1 - CAST(zero AS INT))]",
    "JSON": "from_json(doc, 'a INT', map('mode', 'FAILFAST')).a",
    "variant": "CAST(parse_json(doc) AS STRING)",
    "XML": "from_xml(xml, 'b INT', map('mode', 'FAILFAST')).b",
    "path in XML": "xpath_string(xml, 'a/b')",
    "stack": "regexp_replace(long, '(?<!z)^(.|b)*$', '')",
    "sequence": "size(sequence(1, big))",
    "repeated": "size(array_repeat(id, CAST(big AS INT)))",
    "padded": "length(lpad(text, CAST(big AS INT) * 2, 'xy'))",
    "raised": "IF(zero = 0, raise_error('no such thing'), 'x')",
    "asserted": "assert_true(zero = 1)",
    "number": "to_number(text, '99')",
    "format": "to_timestamp(concat('2020-01-', text), 'yyyy-MM-dd')",
    "hexadecimal": "to_binary(text, 'hex')",
    "date": "make_date(2020, CAST(12 / zero AS INT), 1)",
    "zone": "from_utc_timestamp(TIMESTAMP '2020-01-01', replace(text, '10', 'UTC'))",
    "twice a key": "map('10', 1, IF(text = 'boom', '10', 'b'), 2)",
    "URL": "url_decode(replace(text, 'boom', '%zz'))",
    "bucket": "conv(text, CAST(zero AS INT) * 10, 2) || 100 / zero",
    "function that raises": "raises(text)",
    "function that raises what is no text": "garbles(text)",
    "function that exits": "exits(text)",
    "function that leaves": "leaves(text)",
    "function that kills": "kills(text)",
    "function that recurses": "recurses(text)",
    "function that gives too much": "too_much(text)",
    "function of pandas that raises": "series_raises(text)",
    "function of pandas of another length": "series_short(text)",
}
HANGS = "function that hangs"
HUNGRY = "function that takes memory"
DEADLY = "function that ends Java"
SLOW = {HANGS: "hangs(text)", HUNGRY: "eats(text)", DEADLY: "deadly(text)"}
PLACES = {
    "projection": "SELECT id, {} AS x FROM t",
    "filter": "SELECT id FROM t WHERE coalesce(CAST({} AS STRING), '') <> 'no'",
    "aggregate": "SELECT id % 2 AS odd, max(length(CAST({} AS STRING))) AS most FROM t GROUP BY id % 2",
    "group": "SELECT CAST({} AS STRING) AS x, count(*) AS n FROM t GROUP BY 1",
    "join": "SELECT id, b FROM (SELECT id, CAST({} AS STRING) AS x FROM t) JOIN (SELECT id AS i, zero AS b FROM t)"
    " ON i = id AND coalesce(length(x), 0) + b >= 0",
    "window": "SELECT id, count(CAST({} AS STRING)) OVER (PARTITION BY id % 2 ORDER BY id) AS so_far FROM t",
    "limit": "SELECT id, CAST({} AS STRING) AS x FROM t ORDER BY x, id LIMIT 3",
    "union": "SELECT CAST({} AS STRING) AS x FROM t UNION SELECT text FROM t",
    "above": "SELECT count(x) AS n FROM (SELECT DISTINCT CAST({} AS STRING) AS x FROM t)",
}
FAULTS: Mapping[str, Callable[[], BaseException]] = {
    "KeyError": lambda: KeyError("c1"),
    "AssertionError": lambda: AssertionError("it cannot be"),
    "MemoryError": lambda: MemoryError("Unable to allocate 168. GiB"),
    "RecursionError": lambda: RecursionError("maximum recursion depth exceeded"),
    "ArrowInvalid": lambda: pa.ArrowInvalid("offset overflow while concatenating arrays"),
    "ArrowCapacityError": lambda: pa.ArrowCapacityError("array cannot contain more than 2147483646 bytes"),
    "TypeError": lambda: TypeError("zip() argument 2 is shorter than argument 1"),
    "StopIteration": StopIteration,
    "HeadwaterError": lambda: hw.HeadwaterError("more rows disappeared than there were"),
}


def _function(name: str) -> tuple[Callable[..., Any], str]:
    """A Python function that fails for the bad row, and its kind; it travels without this module."""

    def raises(text: str) -> int:
        return {"10": 1}[text]

    def garbles(text: str) -> int:
        if text == "boom":
            raise ValueError("\udc80" * 1_000_000)
        return 1

    def exits(text: str) -> int:
        return sys.exit(3) if text == "boom" else 1

    def leaves(text: str) -> int:
        return os._exit(3) if text == "boom" else 1

    def kills(text: str) -> int:
        if text == "boom":
            os.kill(os.getpid(), 9)
        return 1

    def recurses(text: str) -> int:
        def deeper(n: int) -> int:
            return deeper(n + 1) + 1

        return deeper(0) if text == "boom" else 1

    def too_much(text: str) -> int:
        return 1 << 80 if text == "boom" else 1

    def series_raises(texts: pd.Series) -> pd.Series:
        return texts.map({"10": 1}.__getitem__)

    def series_short(texts: pd.Series) -> pd.Series:
        return texts[texts != "boom"].str.len()

    def hangs(text: str) -> int:
        while text == "boom":
            pass
        return 1

    def eats(text: str) -> int:
        kept = []
        while text == "boom":
            kept.append(bytearray(100_000_000))
        return 1

    def deadly(text: str) -> int:
        if text == "boom":
            with open(f"/proc/{os.getppid()}/stat", encoding="ascii") as file:  # of the daemon
                os.kill(int(file.read().rpartition(")")[2].split()[1]), 9)
        return 1

    return locals()[name], "pandas" if name.startswith("series") else "scalar"


FUNCTIONS = (
    "raises",
    "garbles",
    "exits",
    "leaves",
    "kills",
    "recurses",
    "too_much",
    "series_raises",
    "series_short",
    "hangs",
    "eats",
    "deadly",
)


@dataclass(frozen=True)
class Way:
    """A way for a view to fail: its query, or what is raised within its computation; and how long it may take."""

    name: str
    sql: str
    fault: str = ""
    late: bool = False
    sets_aside: bool = False


def of_rows(expression: str, place: str, *, sets_aside: bool = False) -> Way:
    """A row for which an expression has no value, in some place of a query."""
    sql = PLACES[place].format({**EXPRESSIONS, **SLOW}[expression])
    return Way(f"{expression} in {place}", sql, sets_aside=sets_aside)


def of_ours(fault: str, place: str, *, late: bool) -> Way:
    """A fault within the computation, before anything is kept or after."""
    sql = PLACES[place].format("upper(text)")
    return Way(f"{fault} {'late' if late else 'early'} in {place}", sql, fault=fault, late=late)


def every() -> list[Way]:
    """All ways that are quick."""
    ways = [of_rows(expression, place) for expression in EXPRESSIONS for place in PLACES]
    ways += [of_rows(each, place, sets_aside=True) for each in EXPRESSIONS for place in ("projection", "filter")]
    return ways + [of_ours(each, place, late=late) for each in FAULTS for place in PLACES for late in (True, False)]


@contextmanager
def _faulty(arrangements: Mapping[str, Way]) -> Iterator[None]:
    """Have views fail within their computation; what is computed late has added to the state by then."""
    small, large = Small.run, Large._view

    def failing(way: Way | None, compute: Callable[[], Any]) -> Any:
        if way is not None and not way.late:
            raise FAULTS[way.fault]()
        made = compute()
        if way is not None:
            raise FAULTS[way.fault]()
        return made

    def run(self: Any, node: Any) -> Any:
        return failing(arrangements.get(self._view), lambda: small(self, node))

    def view(self: Any, relation: Any, root: Any) -> Any:
        return failing(arrangements.get(self._name), lambda: large(self, relation, root))

    with mock.patch.object(Small, "run", run), mock.patch.object(Large, "_view", view):
        yield


def check(folder: Path, ways: Sequence[Way], *, small_rows: int, seconds: float, dropped: bool = False) -> None:
    """Have some views fail in one tick, and see that all others go on, and that they come back."""
    with hw.Pipeline("bad", folder) as pipeline:
        table = pipeline.table("t", _COLUMNS, key="id")
        for name in FUNCTIONS:
            function, kind = _function(name)
            pipeline.udf(name, function, "INT", kind=kind)
        for name, sql in GOOD.items():
            pipeline.view(name, sql)
        views = {f"bad{number}": way for number, way in enumerate(ways)}
        for name, way in views.items():
            pipeline.view(name, way.sql, on_error="dead_letter" if way.sets_aside else "suspend")
        if dropped:
            pipeline.view("dropped", "SELECT id, text || 'x' AS x FROM t")
        driver = driver_of(pipeline)
        driver.small_rows = small_rows
        table.upsert([{"id": number, **GOOD_ROW} for number in range(1, 7)])
        _tick(pipeline)
        for name in views:
            pipeline.read(name, as_of=1)
        assert_same_as_batch(pipeline)

        driver.view_seconds = seconds
        table.upsert([{"id": _BAD, **BAD_ROW}, {"id": 7, **GOOD_ROW}])
        numbers = {name: store_of(pipeline).find(name) for name in views}
        arrangements = {
            f"v{each.number}": views[name] for name, each in numbers.items() if each and views[name].fault
        }
        if dropped:
            crashpoint.arm("tick.tables", action=lambda: pipeline.drop("dropped"))
        try:
            with _faulty(arrangements):
                driver = _ticked(pipeline, driver, 2 if any(DEADLY in way.name for way in ways) else 0)
        finally:
            crashpoint.arm(None)
        driver.view_seconds = 600
        assert_same_as_batch(pipeline, list(GOOD))
        for name, way in views.items():
            _check_fails(pipeline, name, way)

        table.upsert([{"id": 8, **GOOD_ROW}])
        with _faulty(arrangements):
            _tick(pipeline)
        assert_same_as_batch(pipeline, list(GOOD))
        table.delete([_BAD])
        with mock.patch.object(attempts, "_REST_OF_JAVA", 0.0):
            attempts_of(driver).forget()
        _tick(pipeline)
        assert_same_as_batch(pipeline)
        for name in views:
            pipeline.read(name, as_of=4)


def _tick(pipeline: hw.Pipeline) -> None:
    assert pipeline.tick() is not None


def _ticked(pipeline: hw.Pipeline, driver: Driver, ends: int) -> Driver:
    """Tick, after so many ticks in which Java ends; whoever drives then."""
    for _ in range(ends):
        with pytest.raises(hw.Unavailable, match="Java ended"):
            pipeline.tick()
        before, driver = driver, driver_of(pipeline)
        driver.small_rows, driver.view_seconds = before.small_rows, before.view_seconds
    _tick(pipeline)
    return driver


def _check_fails(pipeline: hw.Pipeline, name: str, way: Way) -> None:
    if way.sets_aside:
        assert pipeline.read(f"{name}__dead_letters", as_of=2).num_rows == 1, (name, way)
        assert pipeline.read(name, as_of=2).num_rows == 7, (name, way)
        return
    with pytest.raises(hw.ViewSuspended, match="^" + name) as caught:
        pipeline.read(name, as_of=2)
    assert caught.value.what.startswith("the view is suspended: "), way
    assert not way.fault or str(FAULTS[way.fault]()).strip("'") in caught.value.what, (way, caught.value)


def main() -> int:
    """Go through so many ways, ten at a time, with one that hangs or takes memory in each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ways", type=int, default=200)
    parser.add_argument("--seed", type=int, default=SEED)
    options = parser.parse_args()
    chance, left, failed = random.Random(options.seed), options.ways, 0
    deck = every()
    chance.shuffle(deck)
    while left > 0:
        chosen = [deck.pop() for _ in range(min(9, left, len(deck)))]
        slow = of_rows(chance.choice(list(SLOW)), chance.choice(["projection", "filter", "aggregate"]))
        chosen, small_rows = [*chosen, slow][: max(left, 1)], chance.choice([20_000, 0])
        left -= len(chosen)
        names = [way.name + (" aside" if way.sets_aside else "") for way in chosen]
        with tempfile.TemporaryDirectory() as folder:
            try:
                dropped = chance.random() < 0.5 and DEADLY not in slow.name
                check(Path(folder) / "bad", chosen, small_rows=small_rows, seconds=30, dropped=dropped)
            except Exception as error:  # the next ones are tried all the same
                failed += 1
                sys.stdout.write(f"FAILED with small_rows={small_rows}: {names}: {type(error).__name__}: {error}\n")
            else:
                sys.stdout.write(f"{options.ways - left} ways, small_rows={small_rows}: {', '.join(names)}\n")
            sys.stdout.flush()
    sys.stdout.write(f"{options.ways} ways with seed {options.seed}: {failed} rounds failed\n")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
