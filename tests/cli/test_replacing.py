"""A view is replaced from the command line while a program runs."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

import headwater as hw

from .conftest import Headwater, Started

pytestmark = pytest.mark.own_spark

PROGRAM = """
import headwater as hw
shop = hw.Pipeline("shop")
sales = shop.table("sales", "id BIGINT, cents BIGINT", key="id")
shop.view("dear", "SELECT id, cents FROM sales WHERE cents > 2")
"""


@pytest.fixture
def running(folder: Path) -> Iterator[Started]:
    """A program that runs; its first tick is done."""
    (folder / "shop.py").write_text(PROGRAM)
    path = folder / ".headwater" / "shop"
    with hw.Pipeline("shop", path) as pipeline:
        pipeline.table("sales", "id BIGINT, cents BIGINT", key="id").upsert(
            [{"id": n, "cents": n} for n in range(6)]
        )
    started = Started("run", "shop.py", "--json", cwd=folder)
    assert json.loads(started.line())["number"] == 1
    yield started
    started.process.send_signal(signal.SIGINT)
    started.process.communicate(timeout=60)


def test_a_view_is_held_compared_switched_and_abandoned(running: Started, folder: Path, shell: Headwater) -> None:
    path = folder / ".headwater" / "shop"
    (folder / "dear.sql").write_text("SELECT id, cents FROM sales WHERE cents > 3;\n")
    done = shell("views", "replace", "dear", "dear.sql", "--hold")
    assert (done.returncode, done.stdout) == (
        0,
        "dear: built; compare it with `headwater views diff dear`\n",
    ), done.stderr
    done = shell("views", "diff", "dear")
    assert done.stdout == "dear at tick 2: 3 rows now, 2 rows then\n- 3  3\n"
    assert json.loads(shell("views", "diff", "dear", "--json").stdout)["gone"] == [{"id": 3, "cents": 3}]
    assert "dear is being replaced: the new version is built" in shell("views").stdout
    with hw.Pipeline("shop", path) as reader:
        assert reader.read("dear").num_rows == 3
        done = shell("views", "switch", "dear")
        assert (done.returncode, done.stdout) == (0, "dear: replaced\n"), done.stderr
        assert reader.read("dear").num_rows == 2
    assert "is being replaced" not in shell("views").stdout

    (folder / "dear.sql").write_text("SELECT count(*) AS n FROM sales")
    assert shell("views", "replace", "dear", "dear.sql", "--hold").returncode == 0
    done = shell("views", "diff", "dear")
    assert done.stdout == ("dear would have other columns:\n- id int64, cents int64: 2 rows\n+ n int64: 1 row\n")
    assert shell("views", "abandon", "dear").stdout == "dear stays as it was\n"
    done = shell("views", "diff", "dear")
    assert (done.returncode, done.stderr) == (
        1,
        "error: dear: nothing is to replace it\nhint:  begin with `headwater views replace`\n",
    )
    (folder / "dear.sql").write_text("SELECT 1 DIV (cents - 4) AS n FROM sales")
    done = shell("views", "replace", "dear", "dear.sql")
    assert done.returncode == 1
    assert "DIVIDE_BY_ZERO" in done.stderr
    assert "the old version is still served" in done.stderr
    assert "dear, the new version: [DIVIDE_BY_ZERO]" in shell("views").stdout
    (folder / "dear.sql").write_text("SELECT id, cents FROM sales WHERE cents > 4")
    assert shell("views", "replace", "dear", "dear.sql").stdout == "dear: replaced\n"


def test_what_cannot_replace_a_view_is_said(folder: Path, headwater: Headwater, shop: Path) -> None:
    done = headwater("views", "replace", "nothing", "x.sql")
    assert done.returncode == 2
    assert "there is no file x.sql" in done.stderr
    (folder / "x.sql").write_text("SELECT 1 AS one")
    done = headwater("views", "replace", "nothing", "x.sql")
    assert (done.returncode, done.stderr) == (
        1,
        "error: there is no view called 'nothing'\nhint:  `headwater views` lists them\n",
    )
    assert os.path.isdir(shop)
