"""Every argument of the public face: a value that it cannot mean is refused at once, in words."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import headwater as hw
from headwater.testing import ManualClock
from tests.inside import store_of, topic_of

NAN = float("nan")


class Telling:
    """A clock that tells anything."""

    def __init__(self, told: object) -> None:
        self._told = told

    def now(self) -> object:
        return self._told

    def __repr__(self) -> str:
        return f"Telling({self._told!r})"


OPENING: list[tuple[dict[str, Any], str]] = [
    *(({"max_rows": value}, "max_rows is") for value in (0, -1, True, "5", 1.5, None)),
    *(({"retain_ticks": value}, "retain_ticks is") for value in (0, -1, True, "5", None)),
    *(
        ({"retain_for": value}, "is not a duration")
        for value in ("soon", 5, None, "-1 hour", "nan hours", "inf hours", "1", "1e400 hours")
    ),
    ({"retain_for": "soon" * 20}, r"^'(soon)+\.\.\.\w*' is not a duration"),
    *(({"master": value}, "master is") for value in ("nonsense", "", 5, "local[x]", "local[0]")),
    *(({"clock": value}, "clock is") for value in (5, "now", ManualClock, Telling("noon"), Telling(1.5))),
    *(
        ({"timezone": value}, "is not a time zone")
        for value in (5, "", "utc", "localtime", "Factory", "posixrules", "right/UTC", "posix/UTC")
    ),
    *(({"log": value}, "there is no log") for value in (5, "", "kafka://localhost")),
    *(({"store": value}, "there is no store") for value in (5, "", "postgresql://localhost")),
]


@pytest.mark.parametrize(("arguments", "said"), OPENING, ids=str)
def test_a_pipeline_is_opened_with_sense_or_not_at_all(
    tmp_path: Path, arguments: dict[str, Any], said: str
) -> None:
    with pytest.raises(hw.HeadwaterError, match=said) as refused:
        hw.Pipeline("shop", tmp_path / "shop", **arguments)
    assert refused.value.hint
    assert not (tmp_path / "shop").exists()


@pytest.mark.parametrize(
    "master", ["local", "local[2]", "local[*]", "spark://host:7077", "yarn", "k8s://https://x"]
)
def test_spark_may_run_where_it_can(tmp_path: Path, master: str) -> None:
    hw.Pipeline("shop", tmp_path, master=master).close()


Call = Callable[[hw.Pipeline], object]
LOCK = threading.Lock()
ROW = [{"id": 1, "at": None}]


def declare(**arguments: Any) -> Call:
    return lambda pipeline: pipeline.stream("made", **{"schema": "id BIGINT, at TIMESTAMP", **arguments})


def view(**arguments: Any) -> Call:
    return lambda pipeline: pipeline.view(**{"name": "v", "sql": "SELECT 1 AS n", **arguments})


def udf(**arguments: Any) -> Call:
    given = {"name": "twice", "function": abs, "returns": "INT", **arguments}
    return lambda pipeline: pipeline.udf(**given)


def read(**arguments: Any) -> Call:
    return lambda pipeline: pipeline.read(**{"name": "t", **arguments})


def changes(**arguments: Any) -> Call:
    return lambda pipeline: list(pipeline.changes(**{"name": "t", **arguments}))


def tail(**arguments: Any) -> Call:
    return lambda pipeline: list(topic_of(pipeline, "t").tail(**arguments))


def as_producer(**arguments: Any) -> Call:
    return lambda pipeline: topic_of(pipeline, "t").append(ROW, **{"producer": "p", "sequence": 1, **arguments})


def run(**arguments: Any) -> Call:
    return lambda pipeline: pipeline.run(**arguments)


CALLS: list[tuple[str, Call, str]] = [
    ("schema=5", declare(schema=5), ""),
    ("key=5", declare(key=5), "key is 5"),
    ("key=[5]", declare(key=[5]), ""),
    ("partitions=True", declare(partitions=True), "partitions is True"),
    ("partitions='2'", declare(partitions="2"), "partitions is '2'"),
    ("on_error=None", declare(on_error=None), "on_error is None"),
    ("on_error=[]", declare(on_error=[]), "on_error is"),
    ("durability=True", declare(durability=True), "durability is True"),
    ("event_time", declare(event_time="at"), "comes with event time"),
    ("event_time=5", declare(event_time=5), "comes with event time"),
    ("lateness", declare(lateness="10 seconds"), "comes with event time"),
    ("both", declare(event_time="at", lateness="10 seconds"), "come with event time"),
    ("view name=5", view(name=5), "is not a name"),
    ("sql=5", view(sql=5), "is a text"),
    ("view key=5", view(key=5), "key is 5"),
    ("view key=[5]", view(key=[5]), "key is"),
    ("view replace='no'", view(replace="no"), "replace is 'no'"),
    ("view on_error=[]", view(on_error=[]), "on_error is"),
    ("udf name=5", udf(name=5), "is not a name"),
    ("udf name=upper", udf(name="upper"), "SQL has a function or word upper already"),
    ("udf name=Median", udf(name="Median"), "SQL has a function or word median already"),
    ("udf name=not", udf(name="not"), "SQL has a function or word not already"),
    ("udf function=5", udf(function=5), "cannot be called"),
    ("udf returns=5", udf(returns=5), "returns is 5"),
    ("udf returns=None", udf(returns=None), "returns is None"),
    ("udf returns two", udf(returns="INT, y INT"), "returns is 'INT, y INT'"),
    ("udf returns nothing", udf(returns=""), ""),
    ("udf returns not null", udf(returns="INT NOT NULL"), "returns is 'INT NOT NULL'"),
    *(
        (f"udf returns {returns}", udf(returns=returns), f"returns is {returns!r}")
        for returns in ("BIGNT", "y INT", " ", "INT COMMENT 'n'", "VOID", "INTERVAL", "ARRAY<INTERVAL YEAR>")
    ),
    ("pandas returns CHAR", udf(kind="pandas", returns="MAP<STRING, CHAR(5)>"), "has no length"),
    ("aggregate returns STRUCT", udf(kind="aggregate", returns="STRUCT<a: INT>"), "cannot return a struct"),
    ("udf holds a lock", udf(function=lambda x: LOCK and x), "cannot be sent to Spark's workers"),
    ("pandas of nothing", udf(kind="pandas", function=lambda: 1), "takes nothing"),
    ("udf kind=[]", udf(kind=[]), "kind is"),
    ("read name=5", read(name=5), "called 5"),
    ("as_of=0", read(as_of=0), "there is no tick 0"),
    ("as_of=True", read(as_of=True), "there is no tick True"),
    ("as_of='1'", read(as_of="1"), "there is no tick '1'"),
    ("after=5", read(after=5), "5 is not a position"),
    ("after=abc", read(after="abc"), "is not a position"),
    ("timeout=x", read(timeout="x"), "timeout is 'x'"),
    ("timeout=-1", read(timeout=-1), "timeout is -1"),
    ("timeout=nan", read(timeout=NAN), "timeout is nan"),
    ("timeout=True", read(timeout=True), "timeout is True"),
    ("timeout=None", read(timeout=None), "timeout is None"),
    ("lookup timeout", lambda pipeline: pipeline.lookup("t", 1, timeout=-1), "timeout is -1"),
    ("since=abc", changes(since="abc"), "there is no tick 'abc'"),
    ("since=-1", changes(since=-1), "there is no tick -1"),
    ("since=True", changes(since=True), "there is no tick True"),
    ("since=None", changes(since=None), "there is no tick None"),
    ("follow='no'", changes(follow="no"), "follow is 'no'"),
    ("query 5", lambda pipeline: pipeline.query(5), "is not SQL"),  # type: ignore[arg-type]
    ("query as_of", lambda pipeline: pipeline.query("FROM t", as_of="1"), "no tick '1'"),  # type: ignore[arg-type]
    ("tail since=abc", tail(since="abc"), "is not a position"),
    ("tail since=5", tail(since=5), "since is 5"),
    ("tail since=True", tail(since=True), "since is True"),
    ("tail since another", tail(since="x@0:5"), "says nothing about this topic"),
    ("tail since partition", tail(since="t@7:5"), "no partition 7"),
    ("tail follow='no'", tail(follow="no"), "follow is 'no'"),
    ("seconds='5'", run(seconds="5"), "seconds is '5'"),
    ("seconds=-1", run(seconds=-1), "seconds is -1"),
    ("seconds=nan", run(seconds=NAN), "seconds is nan"),
    ("seconds=True", run(seconds=True), "seconds is True"),
    ("until=5", run(until=5), "until is 5"),
    *((f"producer={value!r}", as_producer(producer=value), "producer is") for value in (5, True, b"p", "", "a\n")),
    *((f"sequence={value!r}", as_producer(sequence=value), "sequence is") for value in ("1", 1.5, True, 1 << 63)),
    ("producer alone", as_producer(sequence=None), "needs a producer and a sequence"),
    ("sequence alone", as_producer(producer=None), "needs a producer and a sequence"),
    ("drop a log", lambda pipeline: pipeline.drop("T__log"), "t__log belongs to t, and goes with it"),
    ("drop 5", lambda pipeline: pipeline.drop(5), "called 5"),  # type: ignore[arg-type]
    ("explain 5", lambda pipeline: pipeline.explain(5), "called 5"),  # type: ignore[arg-type]
    ("rows=5", lambda pipeline: topic_of(pipeline, "t").append(5), ""),
    ("rows=abc", lambda pipeline: topic_of(pipeline, "t").append("abc"), ""),
]


@pytest.mark.parametrize(("call", "said"), [each[1:] for each in CALLS], ids=[each[0] for each in CALLS])
def test_an_argument_that_means_nothing_is_refused_at_once(pipeline: hw.Pipeline, call: Call, said: str) -> None:
    pipeline.stream("t", "id BIGINT, at TIMESTAMP", partitions=2)
    with pytest.raises(hw.HeadwaterError) as refused:
        call(pipeline)
    assert said in refused.value.what, refused.value
    assert pipeline._parts is None, "it started Spark to find out"
    assert list(store_of(pipeline).declarations()) == ["t"]
    assert not pipeline._udfs


def test_a_position_may_be_given_as_text(pipeline: hw.Pipeline) -> None:
    events = pipeline.stream("t", "n BIGINT")
    position = events.append([{"n": 1}])
    events.append([{"n": 2}])
    for since in (position, str(position), "T@0:1"):
        assert [row["n"] for table in events.tail(since=since) for row in table.to_pylist()] == [2]
    assert sum(table.num_rows for table in events.tail(since="")) == 2
