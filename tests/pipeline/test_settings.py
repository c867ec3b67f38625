"""Whatever a user's Spark is set to, views mean what they meant; another meaning is given with the pipeline."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from pyspark import SparkContext
from pyspark.sql import SparkSession

import headwater as hw
from headwater.pipeline import reopen
from headwater.spark.session.settings import MACHINE, PINNED
from headwater.testing import assert_same_as_batch
from tests.inside import driver_of, engine_of, log_of, planning_of, store_of, topic_of
from tests.pipeline.flipping import PROBES, flipped

TABLE = "id INT, k STRING, a STRING, at TIMESTAMP"
AT = datetime(2026, 11, 15, 10, tzinfo=UTC)
NULLS = "SELECT to_json(struct(a)) AS j, count(*) AS n FROM t GROUP BY 1"

OTHER_PROCESS = """
import json, sys
import headwater as hw
from tests.pipeline.test_settings import change, contents, functions
with hw.Pipeline("probes", sys.argv[1]) as pipeline:
    functions(pipeline)
    change(pipeline, 2)
    print(json.dumps(contents(pipeline)))
"""


def row(number: int, **values: object) -> dict[str, object]:
    return {"id": number, "k": "x", "a": "y", "at": AT, **values}


def made_here() -> Callable[[datetime], int]:
    """A function that workers need not import."""

    def hour(at: datetime) -> int:
        return at.hour

    return hour


hour = made_here()


def functions(pipeline: hw.Pipeline) -> None:
    pipeline.udf("hour_of", hour, "INT")
    pipeline.udf("hash_of", hash, "BIGINT")


def declare(pipeline: hw.Pipeline) -> None:
    functions(pipeline)
    pipeline.table("t", TABLE, key="id")
    pipeline.view("functions", "SELECT hour_of(at) AS x FROM t")
    pipeline.view("hashes", "SELECT k, hash_of(k) AS x FROM t")
    for number, (_, sql) in enumerate(PROBES.values()):
        pipeline.view(f"v{number}", sql)
    pipeline.view("jobs", "SELECT to_json(struct(a)) AS x, explode(array(id)) AS y FROM t")
    pipeline.view("windows", "SELECT to_json(struct(lag(a) OVER (PARTITION BY k ORDER BY id))) AS x FROM t")


def change(pipeline: hw.Pipeline, number: int) -> None:
    """Rows come, change and go: on the small path, then on the large one."""
    t: Any = topic_of(pipeline, "t")
    small = driver_of(pipeline).small_rows
    for rows in (small, 0):
        driver_of(pipeline).small_rows = rows
        number *= 10
        t.upsert([row(1, a=None), row(number, k="z"), row(number + 1), row(number + 2, a=None)])
        pipeline.tick()
        t.delete([number + 1, number // 10 + 1])
        pipeline.tick()
    driver_of(pipeline).small_rows = small


def contents(pipeline: hw.Pipeline) -> dict[str, list[str]]:
    names = [name for name, each in store_of(pipeline).declarations().items() if each.kind == "view"]
    return {name: sorted(map(repr, pipeline.read(name).to_pylist())) for name in names}


@pytest.fixture
def theirs(spark: SparkSession) -> Iterator[SparkSession]:
    """The session that a user's program has, in a thread to which no test gave settings."""
    session = SparkSession.builder.getOrCreate()
    session.sparkContext._jsc.sc().setLocalProperties(session._jvm.java.util.Properties())  # type: ignore[union-attr]
    session._jvm.org.apache.spark.sql.classic.SparkSession.setActiveSession(session._jsparkSession)  # type: ignore[union-attr]
    yield session
    session._jvm.org.apache.spark.sql.classic.SparkSession.clearActiveSession()  # type: ignore[union-attr]


@contextmanager
def set_otherwise(theirs: SparkSession) -> Iterator[dict[str, str]]:
    """Everything is set otherwise: in the user's session, and in what new sessions begin with."""
    made = flipped(theirs)
    conf: Any = theirs.sparkContext._jsc.sc().conf()
    before = {key: conf.get(key) for key in made if conf.contains(key)}
    modifiable = [key for key in made if theirs.conf.isModifiable(key)]
    for key, value in made.items():
        conf.set(key, value)
    properties: Any = theirs._jvm.java.util.Properties()  # type: ignore[union-attr]
    for key in modifiable:
        properties.setProperty(key, made[key])
    theirs._jsparkSession.sessionState().conf().setConf(properties)
    try:
        yield made
    finally:
        for key in made:
            conf.set(key, before[key]) if key in before else conf.remove(key)
        theirs._jsparkSession.sessionState().conf().clear()


@pytest.mark.spark
def test_every_probe_notices_its_setting(theirs: SparkSession) -> None:
    session = theirs.newSession()
    session.conf.set("spark.sql.session.timeZone", "UTC")
    values = "VALUES (1, 'x', CAST(NULL AS STRING), TIMESTAMP '2026-11-15 10:00:00')"
    session.sql(f"SELECT * FROM {values} AS t(id, k, a, at)").createOrReplaceTempView("t")
    conf: Any = session._jsparkSession.sessionState().conf()

    def answer(sql: str) -> str:
        try:
            return repr(session.sql(sql).collect())
        except Exception as error:
            return type(error).__name__

    missed = []
    for key, (value, sql) in PROBES.items():
        before = answer(sql)
        conf.setConfString(key, value)
        if answer(sql) == before:
            missed.append((key, before))
        conf.unsetConf(key)
        session.conf.set("spark.sql.session.timeZone", "UTC")
    assert not missed


@pytest.mark.spark
def test_no_setting_of_the_users_reaches_a_session_of_ours(theirs: SparkSession, tmp_path: Path) -> None:
    with set_otherwise(theirs) as made, hw.Pipeline("p", tmp_path) as pipeline:
        assert len(made) > 700
        session: Any = engine_of(pipeline).spark._jsparkSession
        ours = dict(session.sessionState().conf().settings())
        apart = dict(engine_of(pipeline).single.session.sessionState().conf().settings())
    pinned = {key: value for key, (value, _) in PINNED.items()}
    ours = {key: value for key, value in ours.items() if key.startswith("spark.sql.") and key not in MACHINE}
    excluded = ours.pop("spark.sql.optimizer.excludedRules")
    assert ours == {**pinned, "spark.sql.ansi.enabled": "true", "spark.sql.session.timeZone": "UTC"}
    changed = {key for key in apart if key.startswith("spark.sql.") and key not in MACHINE} - set(ours)
    assert changed == {
        "spark.sql.optimizer.excludedRules",
        "spark.sql.adaptive.enabled",
        "spark.sql.autoBroadcastJoinThreshold",
    }
    assert "MergeSubplans" in excluded


@pytest.mark.spark
def test_a_plan_has_the_same_fingerprint_whatever_the_users_session_is_set_to(
    theirs: SparkSession, tmp_path: Path
) -> None:
    with hw.Pipeline("p", tmp_path) as pipeline:
        pipeline.table("t", TABLE, key="id")
        sql = "SELECT k, min(CASE WHEN at > TIMESTAMP '2026-01-01 00:00:00' THEN a END) AS x FROM t GROUP BY k"
        pipeline.view("v", sql)
        parts = planning_of(pipeline)
        catalog = parts.catalog()
        split = parts.planning.planned(catalog.views["v"], catalog).split
        before = parts.engine.fingerprints(split)
        with set_otherwise(theirs):
            assert parts.engine.fingerprints(split) == before


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.timeout(900)
def test_processes_with_all_settings_otherwise_give_the_same_answers(theirs: SparkSession, tmp_path: Path) -> None:
    folder, conf = tmp_path / "p", tmp_path / "conf"
    conf.mkdir()
    lines = [f"{key} {value}\n" for key, value in flipped(theirs).items()]
    (conf / "spark-defaults.conf").write_text("".join(lines))
    with hw.Pipeline("probes", folder) as pipeline:
        declare(pipeline)
        change(pipeline, 1)
        before = store_of(pipeline).last_tick()
    others = {"TZ": "Asia/Tokyo", "SPARK_ANSI_SQL_MODE": "false", "PYTHONHASHSEED": "7"}
    environ = {**os.environ, "SPARK_CONF_DIR": str(conf), **others}
    command = [sys.executable, "-c", OTHER_PROCESS, str(folder)]
    done = subprocess.run(command, env=environ, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stderr
    with hw.Pipeline("probes", folder) as pipeline:
        functions(pipeline)
        assert json.loads(done.stdout) == contents(pipeline)
        assert_same_as_batch(pipeline)
    with set_otherwise(theirs), hw.Pipeline("probes", folder) as pipeline:
        functions(pipeline)
        change(pipeline, 3)
        assert_same_as_batch(pipeline)
        last = store_of(pipeline).last_tick()
        assert before is not None
        assert last is not None
        assert last.detail["meaning"] == before.detail["meaning"]
        assert store_of(pipeline).tick(before.number) is not None, "all was built again"
        x = {f"v{number}": key for number, key in enumerate(PROBES)}
        found = {x[name]: rows for name, rows in contents(pipeline).items() if name in x}
        hours = pipeline.read("functions")["x"].to_pylist()
    assert "built again" not in done.stderr
    assert set(hours) == {10}
    nulls = found["spark.sql.jsonGenerator.ignoreNullFields"]
    assert [each.split(", 'n'")[0] for each in nulls] == ["""{'x': '{"a":"y"}'""", "{'x': '{}'"]
    assert set(found["spark.sql.session.timeZone"]) == {"{'x': 10}"}
    assert set(found["spark.sql.ansi.doubleQuotedIdentifiers"]) == {"{'x': 'a'}"}
    assert set(found["spark.sql.ansi.enabled"]) == {"{'x': 'bigint'}"}


@pytest.mark.spark
def test_names_in_sql_are_those_of_the_pipeline_alone(
    theirs: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    theirs.sql("CREATE OR REPLACE TEMPORARY VIEW orders AS VALUES (99)")
    theirs.sql("CREATE OR REPLACE GLOBAL TEMPORARY VIEW shared AS VALUES (99) AS t(x)")
    theirs.sql("CREATE FUNCTION plus_one(x INT) RETURNS INT RETURN x + 1")
    theirs.sql(f"CREATE TABLE known(x INT) USING parquet LOCATION '{tmp_path / 'known'}'")
    theirs.range(3).write.parquet(str(tmp_path / "files"))
    try:
        with hw.Pipeline("p", tmp_path / "p") as pipeline:
            pipeline.stream("orders", "id INT").append([{"id": n} for n in range(3)])
            pipeline.stream("known", "id INT").append([{"id": n} for n in range(4)])
            pipeline.view("few", "SELECT count(*) AS n FROM orders")
            pipeline.view("many", "SELECT count(*) AS n FROM known")
            theirs.sql("CREATE OR REPLACE TEMPORARY VIEW orders AS VALUES (98)")
            pipeline.view("again", "SELECT count(*) AS n FROM orders")
            pipeline.view("home", "SELECT '${env:HOME}' AS x")
            for sql in (
                "SELECT * FROM global_temp.shared",
                "SELECT * FROM default.known",
                "SELECT * FROM spark_catalog.default.known",
                f"SELECT * FROM parquet.`{tmp_path / 'files'}`",
                "SELECT plus_one(id) AS x FROM orders",
                "SELECT default.plus_one(id) AS x FROM orders",
            ):
                with pytest.raises(hw.ViewRefused):
                    pipeline.view("theirs", sql)
            pipeline.tick()
            assert_same_as_batch(pipeline)
            found = {name: pipeline.read(name).to_pylist() for name in ("few", "many", "again", "home")}
        assert found == {
            "few": [{"n": 3}],
            "many": [{"n": 4}],
            "again": [{"n": 3}],
            "home": [{"x": "${env:HOME}"}],
        }
        assert theirs.sql("SELECT * FROM orders").collect()[0][0] == 98
        assert not theirs.catalog.tableExists("few")
        assert SparkSession.builder.getOrCreate()._jsparkSession.equals(theirs._jsparkSession)
        properties: Any = theirs.sparkContext._jsc.sc().getLocalProperties()
        assert not [key for key in properties.keySet().toArray() if key.startswith("spark.sql.")]
    finally:
        theirs.sql("DROP FUNCTION plus_one")
        theirs.sql("DROP TABLE known")
        theirs.sql("DROP VIEW global_temp.shared")
        theirs.sql("DROP VIEW orders")


GIVEN: dict[str, object] = {
    "spark.sql.jsonGenerator.ignoreNullFields": False,
    "spark.sql.ansi.enabled": False,
    "spark.sql.caseSensitive": True,
    "spark.sql.mapKeyDedupPolicy": "LAST_WIN",
    "spark.sql.shuffle.partitions": 3,
    "spark.driver.memory": "1g",
}


@pytest.mark.spark
def test_settings_that_are_given_are_kept_and_mean_the_same_everywhere(
    theirs: SparkSession, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    views = {
        "nulls": NULLS,
        "jobs": "SELECT to_json(struct(a)) AS x, explode(array(id)) AS y FROM t",
        "windows": "SELECT to_json(struct(lag(a) OVER (PARTITION BY k ORDER BY id))) AS x FROM t",
        "maps": "SELECT map(a, 1, a, id) AS m FROM t WHERE a IS NOT NULL",
        "numbers": "SELECT id, CAST(k AS INT) AS x, id + 2147483647 AS y, id / 0 AS z FROM t",
        "sums": "SELECT k, sum(CAST(id AS BIGINT) + 9223372036854775000) AS s, "
        "sum(CAST(9e37 AS DECIMAL(38, 0)) + id) AS d, avg(id) AS a FROM t GROUP BY k",
    }
    with hw.Pipeline("p", tmp_path, spark=GIVEN) as pipeline:
        pipeline.table("t", TABLE, key="id")
        for name, sql in views.items():
            pipeline.view(name, sql)
        with pytest.raises(hw.ViewRefused):
            pipeline.view("cases", "SELECT ID FROM t")
        change(pipeline, 1)
        assert_same_as_batch(pipeline)
        assert {each["j"] for each in pipeline.read("nulls").to_pylist()} == {'{"a":null}', '{"a":"y"}'}
    with reopen(str(tmp_path)) as pipeline:
        change(pipeline, 2)
        assert_same_as_batch(pipeline)
        first = store_of(pipeline).ticks()[0][0]
        assert "built again" not in caplog.text
        with (
            hw.Pipeline("p", tmp_path, spark={}) as other,
            pytest.raises(hw.LeaseHeld, match="with other settings of Spark"),
        ):
            other.view("more", "SELECT id FROM t")
    late = reopen(str(tmp_path))
    late.view("early", "SELECT id FROM t")
    without = {key: value for key, value in GIVEN.items() if not key.endswith("ignoreNullFields")}
    with hw.Pipeline("p", tmp_path, spark=without) as pipeline, caplog.at_level(logging.WARNING):
        assert pipeline.tick() is not None
        assert "spark.sql.jsonGenerator.ignoreNullFields was false and is the default" in caplog.text
        assert {each["j"] for each in pipeline.read("nulls").to_pylist()} == {"{}", '{"a":"y"}'}
        assert_same_as_batch(pipeline)
        with pytest.raises(hw.VersionExpired):
            pipeline.read("nulls", as_of=first)
    with late, pytest.raises(hw.DeclarationChanged, match="other settings of Spark"):
        late.tick()


@pytest.mark.spark
def test_what_cannot_be_built_again_with_other_settings_stays_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = {"spark.sql.jsonGenerator.ignoreNullFields": False}
    with hw.Pipeline("p", tmp_path) as pipeline:
        pipeline.stream("t", TABLE).append([row(1, a=None)])
        pipeline.view("nulls", NULLS)
        pipeline.tick()
    with hw.Pipeline("p", tmp_path, spark=given) as pipeline:
        monkeypatch.setattr(log_of(pipeline), "start", lambda _topic, _partition: 1)
        with pytest.raises(hw.HeadwaterError, match=r"ignoreNullFields was another and is false.*offsets 0 to 0"):
            pipeline.tick()
        assert pipeline.read("nulls").to_pylist() == [{"j": "{}", "n": 1}]
    with hw.Pipeline("p", tmp_path, spark={}) as pipeline:
        assert pipeline.tick() is None


@pytest.mark.spark
@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("spark.sql.jsonGenerator.ignoreNullField", "false", "has no setting"),
        ("spark.sql.jsonGenerator.ignoreNullFields", "maybe", "cannot be 'maybe'"),
        ("spark.sql.mapKeyDedupPolicy", "SOMETIMES", "cannot be 'SOMETIMES'"),
        ("spark.sql.warehouse.dir", "/tmp", "belongs to the whole of Spark"),
    ],
)
def test_a_setting_that_spark_does_not_take_is_refused(tmp_path: Path, key: str, value: str, message: str) -> None:
    with hw.Pipeline("p", tmp_path, spark={key: value}) as pipeline:
        pipeline.stream("t", TABLE)
        with pytest.raises(hw.HeadwaterError, match=message):
            pipeline.view("v", "SELECT id FROM t")
    with hw.Pipeline("p", tmp_path) as pipeline:
        assert store_of(pipeline).kept("pipeline.spark") is None


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["spark.driver.memory"], "spark is a dict"),
        ({"driver.memory": "1g"}, "not a setting of Spark's"),
        ({"spark.sql.session.timeZone": "UTC"}, "Pipeline\\(timezone="),
        ({"spark.sql.execution.arrow.pyspark.enabled": False}, "rows go to Spark and back as Arrow"),
        ({"spark.sql.optimizer.excludedRules": "x"}, "operators of views are made from"),
        ({"spark.sql.catalog.mine.password": "hush"}, "names in SQL are those of the pipeline's"),
        ({"spark.sql.timestampType": "TIMESTAMP_NTZ"}, "TIMESTAMP in a schema is a moment"),
        ({"spark.sql.variable.substitute": True}, "another text in each process"),
        ({"spark.master": "local"}, "master="),
        ({"spark.hadoop.fs.s3a.secret.key": ["hush"]}, "is given as list"),
    ],
)
def test_a_setting_that_no_pipeline_may_have_is_refused_with_the_reason(
    tmp_path: Path, given: Any, message: str
) -> None:
    with pytest.raises(hw.HeadwaterError, match=message) as refused:
        hw.Pipeline("p", tmp_path / "p", spark=given)
    assert "hush" not in str(refused.value)
    assert not (tmp_path / "p").exists()


@pytest.mark.spark
def test_secrets_and_what_starts_spark_are_not_kept(tmp_path: Path) -> None:
    given = {"spark.hadoop.fs.s3a.secret.key": "hush", "spark.sql.groupByOrdinal": True}
    with hw.Pipeline("p", tmp_path, spark=given) as pipeline:
        pipeline.stream("t", TABLE)
        pipeline.view("v", "SELECT id FROM t")
        pipeline.tick()
        tick = store_of(pipeline).last_tick()
        assert tick is not None
        assert json.loads(store_of(pipeline).kept("pipeline.spark") or "") == {"spark.sql.groupByOrdinal": "true"}
        assert "hush" not in json.dumps(tick.detail)
    assert SparkContext._active_spark_context is not None
