from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.own_spark, pytest.mark.slow]

NAMES = ["JAVA_HOME", "PATH", "PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON", "SPARK_HOME", "SPARK_LOCAL_IP"]
PROGRAM = """
import json, os, sys
before = dict(os.environ)
from headwater.spark.session.start import start
oslo = start("test", timezone="Europe/Oslo", settings={"spark.sql.shuffle.partitions": "3"})

def through_python(batches):
    os.write(2, b"heard\\n")
    yield from batches

rows = oslo.range(10).repartition(2).mapInArrow(through_python, "id long").toArrow()
utc = start("test")
read = lambda session, name: session.conf.get(name)
print(json.dumps({
    "rows": rows.num_rows,
    "java": oslo._jvm.System.getProperty("java.version"),
    "zones": [oslo.sql("SELECT current_timezone()").first()[0], utc.sql("SELECT current_timezone()").first()[0]],
    "partitions": [read(oslo, "spark.sql.shuffle.partitions"), read(utc, "spark.sql.shuffle.partitions")],
    "ansi": read(utc, "spark.sql.ansi.enabled"),
    "parallelism": str(utc.sparkContext.defaultParallelism),
    "host": utc.sparkContext.getConf().get("spark.driver.host"),
    "changed": [name for name in NAMES if os.environ.get(name) != before.get(name)],
    "left": os.listdir("."),
}))
utc.stop()
again = start("test")
assert again.range(3).count() == 3
again.stop()
""".replace("NAMES", repr(NAMES))


def path_without_java(folder: Path) -> str:
    """A PATH with what Spark's scripts call, and no java."""
    folder.mkdir()
    for name in ("bash", "sh", "env", "dirname", "cat", "ps", "nice", "uname", "mkdir", "rm"):
        if found := shutil.which(name):
            (folder / name).symlink_to(found)
    return str(folder)


Run = tuple[dict[str, object], str]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """What the program says in a shell that has neither java nor JAVA_HOME."""
    folder = tmp_path_factory.mktemp("session")
    work = folder / "work"
    work.mkdir()
    environ = {k: v for k, v in os.environ.items() if k not in NAMES}
    environ["PATH"] = path_without_java(folder / "bin")
    environ["XDG_CACHE_HOME"] = str(folder / "cache")
    command = [sys.executable, "-c", PROGRAM]
    done = subprocess.run(command, env=environ, cwd=work, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout), done.stderr


def test_spark_starts_with_no_java_on_the_machine(run: Run) -> None:
    said, _ = run
    assert said["rows"] == 10
    assert str(said["java"]).startswith("25")


def test_starting_is_quiet_but_what_a_function_prints_is_heard(run: Run) -> None:
    _, errors = run
    assert set(errors.splitlines()) == {"heard"}


def test_each_session_has_a_time_zone_and_settings_of_its_own(run: Run) -> None:
    said, _ = run
    assert said["zones"] == ["Europe/Oslo", "UTC"]
    assert said["partitions"] == ["3", said["parallelism"]]
    assert said["ansi"] == "true"


def test_spark_keeps_to_the_loopback(run: Run) -> None:
    said, _ = run
    assert said["host"] == "127.0.0.1"


def test_neither_the_environment_nor_the_folder_is_changed(run: Run) -> None:
    said, _ = run
    assert said["changed"] == []
    assert said["left"] == []


def test_a_java_that_fails_to_start_spark_is_quoted(tmp_path: Path) -> None:
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.write_text(
        "#!/bin/sh\n"
        'case "$*" in *-XshowSettings*)\n'
        f"  printf '  java.home = {tmp_path}\\n  java.specification.version = 21\\n' >&2; exit;;\n"
        "esac\n"
        "echo 'Error: out of pixie dust' >&2; exit 1\n"
    )
    java.chmod(0o755)
    program = "from headwater.spark.session.start import start\ntry: start()\nexcept Exception as e: print(repr(e))"
    environ = {**os.environ, "JAVA_HOME": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", program], env=environ, capture_output=True, text=True, check=False)
    assert done.stdout.startswith("Unavailable(")
    assert "Java 21 from JAVA_HOME" in done.stdout
    assert "Error: out of pixie dust" in done.stdout
    assert done.stderr == ""
