"""Runs stay open without keeping descriptors: a process may have more of them open than it may open files."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ALLOWED, FILES = 64, 300
_CHILD = """
import os, resource, sys
import numpy as np, pyarrow as pa
resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
from headwater.change import HASH, WEIGHT
from headwater.state import Arrangement, RunFile
from headwater.state.files import LocalStateFiles

files, runs = LocalStateFiles(sys.argv[1]), []
table = pa.table({"n": [7], HASH: [5], WEIGHT: [1]})
for number in range(int(sys.argv[2])):
    writer = RunFile(files, f"1-{number}-1.runs")
    runs.append(writer.add(table))
    writer.finish()
arrangement = Arrangement(files, table.schema, runs)
assert arrangement.probe(np.array([5]))[WEIGHT].to_pylist() == [len(runs)]
assert sum(each.num_rows for each in arrangement.scan()) == 1
again = Arrangement(files, table.schema, runs)
assert again.probe(np.array([5]))[WEIGHT].to_pylist() == [len(runs)]
print(len(os.listdir("/proc/self/fd")), open("/proc/self/maps").read().count(".runs"))
"""


def test_runs_that_are_open_leave_more_than_half_of_the_allowed_descriptors(tmp_path: Path) -> None:
    command = [sys.executable, "-c", _CHILD, str(tmp_path), str(FILES)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    descriptors, maps = map(int, done.stdout.split())
    assert descriptors < ALLOWED // 2
    assert maps == FILES
