from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from headwater import HeadwaterError, Pipeline

MANY = """
import resource, sys
import headwater as hw
soft, hard, path = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
with hw.Pipeline("p", path) as pipeline:  # whatever is imported late is there now
    pipeline.stream("few", "n INT").append([{"n": 1}])
resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
try:
    with hw.Pipeline("p", path) as pipeline:
        topic = pipeline.stream("many", "n INT", partitions=60, durability="none")
        topic.append([{"n": n} for n in range(600)])
        print("stored", sum(table.num_rows for table in topic.tail()))
except hw.Unavailable as error:
    print(error)
"""


def said(soft: int, hard: int, path: Path) -> str:
    command = [sys.executable, "-c", MANY, str(soft), str(hard), str(path)]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=100).stdout


def test_many_partitions_fit_under_a_low_soft_limit_of_open_files(tmp_path: Path) -> None:
    assert said(64, 4096, tmp_path) == "stored 600\n"


@pytest.mark.parametrize("limit", [64, 90, 150])
def test_too_many_open_files_is_told_as_that(tmp_path: Path, limit: int) -> None:
    error = said(limit, limit, tmp_path)
    assert "Too many open files" in error
    assert "ulimit -n" in error


@pytest.mark.parametrize("text", ["x", "", "-1", "0", "1.5"])
def test_a_bad_segment_size_in_the_environment_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    monkeypatch.setenv("HEADWATER_SEGMENT_BYTES", text)
    with pytest.raises(HeadwaterError, match="HEADWATER_SEGMENT_BYTES"):
        Pipeline("p", tmp_path)
