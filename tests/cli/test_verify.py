"""`headwater verify` reads every byte, `headwater doctor` as much as is quickly read; both say what is damaged."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

import pytest

from headwater.cli import checks
from headwater.state.damage import noted
from headwater.state.files import LocalStateFiles
from tests.crash import shop
from tests.crash.hand_engine import drive

from .conftest import Headwater


@pytest.fixture
def driven(folder: Path) -> Path:
    """A pipeline with state, the only one below ./.headwater; nobody drives it."""
    path = folder / ".headwater" / shop.NAME
    with shop.opened(str(path), views=False) as pipeline:
        drive(pipeline)
        shop.declare_views(pipeline)
        traffic = shop.Traffic(pipeline, 1)
        for _ in range(3):
            for _ in range(6):
                traffic.step()
            pipeline.tick()
    return path


def a_file(path: Path) -> Path:
    return max((path / "state").glob("*.runs"), key=lambda each: each.stat().st_size)


def test_a_pipeline_that_is_whole_is_told_so_part_by_part(headwater: Headwater, driven: Path) -> None:
    done = headwater("verify")
    assert (done.returncode, done.stderr) == (0, "")
    lines = [line.split() for line in done.stdout.splitlines()]
    assert [line[1] for line in lines[:-1]] == [*sorted(shop.TOPICS), "store", "state"]
    assert done.stdout.endswith("nothing is damaged\n")
    assert json.loads(headwater("verify", "--json").stdout)["ok"]


def test_one_flipped_bit_of_the_state_is_found_by_verify_and_noted_for_who_drives(
    headwater: Headwater, driven: Path
) -> None:
    path = a_file(driven)
    data = bytearray(path.read_bytes())
    data[100] ^= 1
    path.write_bytes(data)
    assert f"{path.name}: these " in headwater("doctor").stdout
    done = headwater("verify", "--json")
    assert done.returncode == 1
    said = [check for check in json.loads(done.stdout)["checks"] if not check["ok"]]
    assert [check["name"] for check in said] == ["state"]
    assert f"{path.name}: these " in said[0]["said"]
    assert "at byte 0 (of " in said[0]["said"]
    assert "the next tick builds it again" in said[0]["hint"]
    assert noted(LocalStateFiles(str(driven / "state"))) == [path.name]
    with shop.opened(str(driven), views=False) as pipeline:
        drive(pipeline)
        pipeline.tick()
    assert headwater("verify").returncode == 0


@pytest.mark.parametrize("harm", ["missing", "cut short"])
def test_a_file_that_is_missing_or_cut_short_is_found_by_doctor_too(
    headwater: Headwater, driven: Path, harm: str
) -> None:
    path = a_file(driven)
    if harm == "missing":
        path.unlink()
    else:
        path.write_bytes(path.read_bytes()[:-1])
    for command in ("doctor", "verify"):
        done = headwater(command)
        assert done.returncode == 1
        assert path.name in done.stdout


def test_of_a_large_state_doctor_reads_the_ends_of_files_and_says_so(
    driven: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = a_file(driven)
    path.write_bytes(b"\1" + path.read_bytes()[1:])
    monkeypatch.setattr(checks, "_READ", 0)
    found = {each.name: each for each in checks.pipeline(str(driven))}
    assert found["state"].ok
    assert "none is missing or cut short; `headwater verify` reads all of it" in found["state"].said
    path.write_bytes(path.read_bytes()[:-1])
    found = {each.name: each for each in checks.pipeline(str(driven))}
    assert path.name in found["state"].said


@pytest.mark.parametrize("written", ["rowz", '{"rows"'])
def test_a_store_that_cannot_be_read_hides_no_other_damage(
    headwater: Headwater, driven: Path, written: str
) -> None:
    with sqlite3.connect(driven / "headwater.db") as store:
        store.execute(f"UPDATE runs SET detail = replace(detail, '\"rows\"', '{written}')")
    store.close()
    segment = max((driven / "log").glob("orders.*/0/*.segment"), key=lambda each: each.stat().st_size)
    segment.write_bytes(segment.read_bytes()[:200] + b"\1" + segment.read_bytes()[201:])
    for command in ("doctor", "verify"):
        lines = headwater(command).stdout.splitlines()
        assert [line.split()[1] for line in lines if line.startswith("FAULT")] == ["orders", "store", "state"]


def test_a_damaged_segment_of_the_log_is_found(headwater: Headwater, driven: Path) -> None:
    segment = max((driven / "log").glob("orders.*/0/*.segment"), key=lambda each: each.stat().st_size)
    data = bytearray(segment.read_bytes())
    data[200] ^= 1
    segment.write_bytes(data)
    done = headwater("verify")
    assert done.returncode == 1
    assert "FAULT  orders" in done.stdout
    assert done.stdout.endswith("1 fault found\n")
