"""A row for which an expression has no value stops the views that need it, and nothing else."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import headwater as hw
from headwater.testing import assert_same_as_batch
from tests.inside import driver_of, engine_of

pytestmark = pytest.mark.spark

GOOD = [{"id": 1, "text": "10"}, {"id": 2, "text": "20"}, {"id": 3, "text": "30"}]
BAD = [{"id": 4, "text": "forty"}]


def _fails_for_forty(text: str) -> int:
    return int(text)


OPERATORS = {
    "projection": "SELECT id, CAST(text AS BIGINT) AS number FROM words",
    "filter": "SELECT id FROM words WHERE CAST(text AS BIGINT) > 15",
    "generator": "SELECT id, explode(sequence(1, CAST(text AS BIGINT) DIV 10)) AS part FROM words",
    "aggregate": "SELECT id % 2 AS odd, sum(CAST(text AS BIGINT)) AS total FROM words GROUP BY id % 2",
    "residual": "SELECT a.id FROM words a JOIN words b ON a.id = b.id WHERE CAST(a.text AS INT) + b.id > 0",
    "outer join": "SELECT a.id, b.id AS other FROM words a LEFT JOIN words b ON a.id = b.id AND a.text / b.id > 1",
    "window": "SELECT id, sum(CAST(text AS BIGINT)) OVER (PARTITION BY id % 2 ORDER BY id) AS so_far FROM words",
    "minimum": "SELECT id % 2 AS odd, min(CAST(text AS INT)) AS least FROM words GROUP BY id % 2",
    "limit": "SELECT CAST(text AS INT) AS number FROM words ORDER BY number DESC LIMIT 2",
    "subquery": "SELECT id FROM words WHERE id > (SELECT min(CAST(text AS INT)) / 10 FROM words)",
    "union": "SELECT id FROM words UNION SELECT CAST(text AS BIGINT) FROM words",
    "function": "SELECT id, parsed(text) AS number FROM words",
}


@pytest.fixture(params=["small", "large"])
def words(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[hw.Pipeline, Any]]:
    """A pipeline with three good rows, and a view of each kind over them."""
    with hw.Pipeline("words", tmp_path / "words") as pipeline:
        table = pipeline.table("words", "id BIGINT, text STRING", key="id")
        pipeline.udf("parsed", _fails_for_forty, "INT")
        for number, sql in enumerate(OPERATORS.values()):
            pipeline.view(f"v{number}", sql)
        pipeline.view("above", "SELECT count(*) AS n FROM v0")
        pipeline.view("good", "SELECT count(*) AS n, max(id) AS last FROM words")
        if request.param == "large":
            driver_of(pipeline).small_rows = 0
        table.upsert(GOOD)
        pipeline.tick()
        yield pipeline, table


def test_only_views_that_need_the_row_stop_and_all_come_back(words: tuple[hw.Pipeline, Any]) -> None:
    pipeline, table = words
    before = {name: pipeline.read(f"v{number}") for number, name in enumerate(OPERATORS)}
    position = table.upsert(BAD)
    bad = pipeline.tick()
    assert bad is not None
    assert_same_as_batch(pipeline, ["good"])
    assert pipeline.read("good").to_pylist() == [{"n": 4, "last": 4}]
    for number, name in enumerate(OPERATORS):
        with pytest.raises(hw.ViewSuspended, match="forty") as caught:
            pipeline.read(f"v{number}", after=position)
        assert "tick 1" in caught.value.hint, name
        assert pipeline.read(f"v{number}").equals(before[name])
        assert pipeline.read(f"v{number}", as_of=1).equals(before[name])
        with pytest.raises(hw.ViewSuspended):
            pipeline.read(f"v{number}", as_of=bad.number)
        said = pipeline.explain(f"v{number}").splitlines()[0]
        assert said.startswith("suspended since tick 1: "), said
        assert said.endswith("correct the row or replace the view, and it catches up by itself"), said
        assert "forty" in said
    assert pipeline.explain("above").startswith("suspended since tick 1: it reads v0, which is suspended: ")
    assert pipeline.explain("good").startswith("view good (")
    with pytest.raises(hw.ViewSuspended, match="it reads v0"):
        pipeline.read("above", after=position)
    with pytest.raises(hw.ViewSuspended):
        pipeline.query("SELECT * FROM good, v0")
    assert pipeline.query("SELECT count(*) AS n FROM v0").to_pylist() == [{"n": 3}]

    table.upsert([{"id": 5, "text": "50"}])  # the others go on, and more is missed
    table.delete([2])
    pipeline.tick()
    assert pipeline.read("good").to_pylist() == [{"n": 4, "last": 5}]
    assert pipeline.read("v0").num_rows == 3

    position = table.upsert([{"id": 4, "text": "40"}])
    pipeline.tick()
    assert pipeline.read("v0", after=position).num_rows == 4
    assert pipeline.read("above", after=position).to_pylist() == [{"n": 4}]
    assert_same_as_batch(pipeline)
    ticks = [table["_tick"][0].as_py() for table in pipeline.changes("v0")]
    assert ticks == [1, 4]  # one delta from the last good tick to the one at which it caught up
    table.upsert([{"id": 1, "text": "11"}])
    pipeline.tick()
    assert_same_as_batch(pipeline)


@pytest.mark.parametrize("small", [20_000, 0], ids=["small", "large"])
def test_rows_that_fail_are_set_aside_and_come_back_when_corrected(tmp_path: Path, small: int) -> None:
    with hw.Pipeline("words", tmp_path / "words") as pipeline:
        table = pipeline.table("words", "id BIGINT, text STRING", key="id")
        pipeline.view("numbers", OPERATORS["projection"], key="id", on_error="dead_letter")
        pipeline.view("large_ones", OPERATORS["filter"], on_error="dead_letter")
        pipeline.view("total", "SELECT sum(number) AS total FROM numbers")
        driver_of(pipeline).small_rows = small
        table.upsert([*GOOD, *BAD, {"id": 5, "text": "fifty"}])
        position = table.delete([1])
        pipeline.tick()
        assert sorted(row["id"] for row in pipeline.read("numbers", after=position).to_pylist()) == [2, 3]
        assert pipeline.read("total").to_pylist() == [{"total": 50}]
        letters = sorted(pipeline.read("numbers__dead_letters").to_pylist(), key=lambda row: row["raw"])
        assert [row["raw"] for row in letters] == ['{"id":4,"text":"forty"}', '{"id":5,"text":"fifty"}']
        assert "CAST_INVALID_INPUT" in letters[0]["reason"]
        assert letters[0]["column"] == "CAST(text AS BIGINT)"
        assert letters[0]["origin"] == "view numbers"
        assert pipeline.read("large_ones__dead_letters").num_rows == 2
        table.upsert([{"id": 4, "text": "40"}])
        table.delete([5])
        pipeline.tick()
        assert pipeline.read("numbers__dead_letters").num_rows == 0
        weights = [row["_weight"] for each in pipeline.changes("numbers__dead_letters") for row in each.to_pylist()]
        assert weights == [1, 1, -1, -1]
        assert_same_as_batch(pipeline)
        table.upsert(BAD)
        pipeline.tick()
        assert pipeline.read("total").to_pylist() == [{"total": 50}]
        pipeline.view("numbers", OPERATORS["projection"].replace("CAST", "try_cast"), key="id", replace=True)
        pipeline.tick()
        assert_same_as_batch(pipeline, ["numbers", "total"])
        assert pipeline.read("numbers").num_rows == 3


WORDS_OF_OTHERS = (
    "java.io.IOException: No space left on device",
    "Cannot call methods on a stopped SparkContext",
    'Traceback (most recent call last):\n  File "headwater/spark/workers/x.py"\nOSError: headwater/state/x',
)


def _says_what_we_say(text: str) -> int:
    if text.isdigit():
        return int(text)
    raise hw.Unavailable(text)


def _meets_a_full_disk(text: str) -> int:
    if text.isdigit():
        return int(text)
    raise OSError(errno.ENOSPC, text)


@pytest.mark.parametrize("small", [20_000, 0], ids=["small", "large"])
def test_what_a_row_or_a_function_says_of_disks_and_spark_is_no_fault_of_those(tmp_path: Path, small: int) -> None:
    with hw.Pipeline("words", tmp_path / "words") as pipeline:
        table = pipeline.table("words", "id BIGINT, text STRING", key="id")
        pipeline.udf("says", _says_what_we_say, "INT")
        pipeline.udf("meets", _meets_a_full_disk, "INT")
        for place in range(len(WORDS_OF_OTHERS)):
            pipeline.view(f"cast{place}", f"{OPERATORS['projection']} WHERE id <= 3 OR id = {10 + place}")
        pipeline.view("raised", "SELECT IF(text > 'A', raise_error(text), 1) AS x FROM words")
        pipeline.view("said", "SELECT id, says(text) AS x FROM words")
        pipeline.view("met", "SELECT id, meets(text) AS x FROM words")
        pipeline.view("aside", OPERATORS["projection"], key="id", on_error="dead_letter")
        pipeline.view("good", "SELECT count(*) AS n FROM words")
        driver_of(pipeline).small_rows = small
        table.upsert(GOOD)
        pipeline.tick()
        table.upsert([{"id": place, "text": text} for place, text in enumerate(WORDS_OF_OTHERS, start=10)])
        assert pipeline.tick() is not None
        assert pipeline.read("good", as_of=2).to_pylist() == [{"n": 6}]
        for name in ("cast0", "cast1", "cast2", "raised", "said", "met"):
            with pytest.raises(hw.ViewSuspended, match=f"^{name}: .*suspended: "):
                pipeline.read(name, as_of=2)
        assert pipeline.read("aside", as_of=2).num_rows == 3
        assert pipeline.read("aside__dead_letters", as_of=2).num_rows == 3
        table.delete([10, 11, 12])
        pipeline.tick()
        assert_same_as_batch(pipeline, ["raised", "said", "aside"])


def test_a_row_of_which_too_many_come_is_named_or_set_aside(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with hw.Pipeline("words", tmp_path / "words") as pipeline:
        table = pipeline.table("words", "id BIGINT, text STRING", key="id")
        pipeline.view("parts", OPERATORS["generator"])
        pipeline.view("aside", OPERATORS["generator"], on_error="dead_letter")
        pipeline.view("good", "SELECT count(*) AS n FROM words")
        monkeypatch.setattr(engine_of(pipeline)._evaluator, "_most", lambda _: 500)
        table.upsert(GOOD)
        pipeline.tick()
        large = [{"id": 4, "text": "6000"}, {"id": 5, "text": "50"}, {"id": 6, "text": "7000"}]
        table.upsert(large)
        assert pipeline.tick() is not None
        assert pipeline.read("good", as_of=2).to_pylist() == [{"n": 6}]
        with pytest.raises(hw.ViewSuspended, match=r"500 rows or more come of it.*000"):
            pipeline.read("parts", as_of=2)
        assert pipeline.read("aside", as_of=2).num_rows == 6 + 5
        letters = sorted(row["raw"] for row in pipeline.read("aside__dead_letters", as_of=2).to_pylist())
        assert letters == ['{"id":4,"text":"6000"}', '{"id":6,"text":"7000"}']
        table.delete([4, 6])
        pipeline.tick()
        assert_same_as_batch(pipeline)


def test_what_on_error_may_be_is_said(pipeline: hw.Pipeline) -> None:
    with pytest.raises(hw.HeadwaterError, match="on_error is 'ignore'") as caught:
        pipeline.view("v", "SELECT 1 AS one", on_error="ignore")
    assert caught.value.hint == "it is one of suspend, dead_letter"
    pipeline.view("v", "SELECT 1 AS one")
    with pytest.raises(hw.DeclarationChanged, match="on_error"):
        pipeline.view("v", "SELECT 1 AS one", on_error="dead_letter")
    with pytest.raises(hw.HeadwaterError, match="there is no view"):
        pipeline.read("v__dead_letters")


def test_a_letter_goes_with_its_row_though_the_function_is_another(tmp_path: Path) -> None:
    with hw.Pipeline("words", tmp_path / "words") as pipeline:
        table = pipeline.table("words", "id BIGINT, text STRING", key="id")
        pipeline.udf("parsed", _fails_for_forty, "INT", version="1")
        pipeline.view("numbers", "SELECT id, parsed(text) AS number FROM words", key="id", on_error="dead_letter")
        table.upsert([*GOOD, *BAD])
        pipeline.tick()
        assert pipeline.read("numbers__dead_letters").num_rows == 1
        pipeline.udf("parsed", len, "INT", version="1")
        table.delete([4])
        table.upsert([{"id": 5, "text": "fifty"}])
        pipeline.tick()
        assert pipeline.read("numbers__dead_letters").num_rows == 0
        assert sorted(row["id"] for row in pipeline.read("numbers").to_pylist()) == [1, 2, 3, 5]


def test_many_rows_that_fail_suspend_the_view_and_so_do_its_letters(tmp_path: Path) -> None:
    with hw.Pipeline("words", tmp_path / "words") as pipeline:
        table = pipeline.table("words", "id BIGINT, text STRING", key="id")
        pipeline.view("numbers", OPERATORS["projection"], key="id", on_error="dead_letter")
        table.upsert(GOOD)
        pipeline.tick()
        position = table.upsert([{"id": 100 + n, "text": "x"} for n in range(300)])
        pipeline.tick()
        for name in ("numbers", "numbers__dead_letters"):
            with pytest.raises(hw.ViewSuspended, match="CAST_INVALID_INPUT"):
                pipeline.read(name, after=position)
        table.delete([100 + n for n in range(250)])
        pipeline.tick()
        assert pipeline.read("numbers__dead_letters").num_rows == 50
        assert pipeline.read("numbers").num_rows == 3


def test_what_is_no_fault_of_a_row_stops_the_tick(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with hw.Pipeline("words", tmp_path / "words") as pipeline:
        table = pipeline.table("words", "id BIGINT, text STRING", key="id")
        pipeline.view("numbers", OPERATORS["projection"], on_error="dead_letter")
        table.upsert(GOOD)
        pipeline.tick()
        table.upsert([{"id": 7, "text": "70"}])

        def broken(*_: object) -> None:
            raise OSError(errno.ENOSPC, "No space left on device")

        with monkeypatch.context() as patched:
            patched.setattr(engine_of(pipeline)._evaluator, "evaluate", broken)
            with pytest.raises(hw.Unavailable, match="No space left"):
                pipeline.tick()
        pipeline.tick()
        assert_same_as_batch(pipeline)
        assert pipeline.read("numbers").num_rows == 4
