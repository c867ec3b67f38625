from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]


@pytest.mark.own_spark
@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_spark_that_ends_is_shared_or_is_inherited_harms_nothing(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tests.spark.session.java_ends", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, "Traceback" in done.stderr) == (0, False), done.stdout + done.stderr
    assert done.stdout.splitlines() == [
        "the_users_own_is_not_started_again",
        "a_child_leaves_the_parents_spark_alone",
        "the_first_of_two_stops_nothing",
        "an_interrupt_is_one_and_nothing_else",
        "in_the_middle_of_a_tick",
        "when_it_is_told_to_end",
        "while_workers_run",
        "time_and_again_by_the_same_view",
        "while_a_view_is_declared",
        "while_it_is_closed",
    ]
