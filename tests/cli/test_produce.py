from __future__ import annotations

import json
import os
import resource
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

import headwater as hw
from headwater.cli.rows import RowInput

from .conftest import COMMAND, Headwater, Started, click

CLICK = click("s") + "\n"
ORDER = dict.fromkeys(("customer_id", "sku", "quantity", "cents", "status", "at"))


def order(number: int | None, **values: object) -> str:
    return json.dumps({"id": number, **ORDER, **values})


def rows(headwater: Headwater, topic: str) -> list[dict[str, object]]:
    done = headwater("tail", topic, "--json")
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.mark.usefixtures("shop")
def test_lines_are_stored_and_the_position_is_printed_alone(headwater: Headwater) -> None:
    done = headwater("produce", "clicks", given=CLICK * 3)
    assert (done.returncode, done.stdout, done.stderr) == (0, "clicks@0:3\n", "3 rows stored\n")
    assert [row["url"] for row in rows(headwater, "clicks")] == ["/", "/", "/"]


@pytest.mark.usefixtures("shop")
def test_json_gives_rows_and_position(headwater: Headwater) -> None:
    done = headwater("produce", "clicks", "--json", given=CLICK)
    assert json.loads(done.stdout) == {"rows": 1, "set_aside": 0, "position": "clicks@0:1"}
    assert done.stderr == ""


@pytest.mark.usefixtures("shop")
def test_a_file_with_an_array_or_with_lines_of_another_system_is_read_too(
    headwater: Headwater, folder: Path
) -> None:
    (folder / "array.json").write_text(f"\n [{click('a')},\n {click('b')}]\n")
    (folder / "lines.json").write_text(f"\ufeff{click('c')}\r\n\r\n{click('d')}", newline="")
    assert headwater("produce", "clicks", "array.json").returncode == 0
    assert headwater("produce", "clicks", "lines.json").returncode == 0
    assert [row["session"] for row in rows(headwater, "clicks")] == ["a", "b", "c", "d"]


@pytest.mark.usefixtures("shop")
def test_keys_are_deleted_as_objects_or_plainly(headwater: Headwater) -> None:
    people = '{"id": 1, "name": "Ada", "country": "NO"}\n{"id": 2, "name": "Eva", "country": "SE"}\n'
    assert headwater("produce", "customers", given=people).returncode == 0
    assert headwater("produce", "customers", "--delete", given='{"id": 1}\n2\n').returncode == 0
    assert [(row["_op"], row["id"]) for row in rows(headwater, "customers")] == [
        ("upsert", 1),
        ("upsert", 2),
        ("delete", 1),
        ("delete", 2),
    ]


@pytest.mark.usefixtures("shop")
def test_from_a_stream_nothing_can_be_deleted(headwater: Headwater) -> None:
    done = headwater("produce", "clicks", "--delete", given="1\n")
    assert done.returncode == 2
    assert done.stderr.startswith("error: clicks: it is a stream, and only rows of a table can be deleted\n")


@pytest.mark.usefixtures("shop")
def test_a_bad_line_is_named_and_nothing_of_its_batch_is_stored(headwater: Headwater) -> None:
    done = headwater("produce", "orders", given=f"{order(1, cents=5)}\n\n{order(2, cents='many')}\n")
    assert done.returncode == 1
    lines = done.stderr.splitlines()
    assert lines[0].startswith("error: standard input, line 3, column cents: ")
    assert lines[1] == "       nothing was stored"
    assert rows(headwater, "orders") == []


@pytest.mark.usefixtures("shop")
def test_what_was_stored_before_a_bad_batch_is_said_exactly(headwater: Headwater, folder: Path) -> None:
    lines = [order(number) for number in range(1, 51)]
    lines[34] = order(None)
    (folder / "orders.json").write_text("\n".join(lines))
    done = headwater("produce", "orders", "orders.json", "--batch", "10")
    assert done.returncode == 1
    assert done.stderr.startswith("error: orders.json, line 35, column id: ")
    assert "\n       stored: 30 rows, up to line 30, at orders@0:30; nothing from line 31 on\n" in done.stderr
    assert "\nhint:  correct line 35, then send again from line 31 on\n" in done.stderr
    assert len(rows(headwater, "orders")) == 30

    said = json.loads(headwater("produce", "orders", "orders.json", "--batch", "10", "--json").stderr)
    assert said["error"] == "SchemaError"
    assert (said["line"], said["stored"], said["position"], said["resume"]) == (35, 30, "orders@0:60", 31)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (b"{oops}\n", "line 1"),
        (b"[1, 2\n", "standard input"),
        (b"7\n", "line 1: expected a row"),
        (b'"text"\n', "line 1: expected a row"),
        (b'{"session": "s"}\n', "line 1, column customer_id"),
        (b'{"session": "\xff"}\n', "line 1: the bytes are not UTF-8 (byte 14 is 0xff)"),
        (CLICK.replace("session", "sesion").encode(), "line 1, column session: is missing"),
        (CLICK.replace("2026-11-15T10:00:00Z", "yesterday").encode(), "line 1, column at"),
    ],
)
@pytest.mark.usefixtures("shop")
def test_whatever_is_wrong_with_a_line_it_is_said_without_a_traceback(
    headwater: Headwater, line: bytes, words: str
) -> None:
    done = headwater("produce", "clicks", given=line)
    assert done.returncode == 1
    assert words in done.stderr.splitlines()[0]
    assert "nothing was stored" in done.stderr


@pytest.mark.usefixtures("shop")
def test_the_same_producer_and_sequence_store_once(headwater: Headwater) -> None:
    words = ("produce", "clicks", "--batch", "2", "--producer", "p", "--sequence", "7")
    first, second = headwater(*words, given=CLICK * 5), headwater(*words, given=CLICK * 5)
    assert (first.returncode, second.returncode) == (0, 0), second.stderr
    assert first.stdout == second.stdout == "clicks@0:5\n"
    assert len(rows(headwater, "clicks")) == 5


@pytest.mark.usefixtures("shop")
def test_a_gap_in_the_sequence_is_refused(headwater: Headwater) -> None:
    headwater("produce", "clicks", "--producer", "p", "--sequence", "7", given=CLICK)
    done = headwater("produce", "clicks", "--producer", "p", "--sequence", "9", given=CLICK)
    assert done.returncode == 1
    assert "nothing was stored" in done.stderr


@pytest.mark.usefixtures("shop")
@pytest.mark.parametrize("half", [("--producer", "p"), ("--sequence", "1")])
def test_producer_and_sequence_go_together(headwater: Headwater, half: tuple[str, str]) -> None:
    done = headwater("produce", "clicks", *half, given=CLICK)
    assert done.returncode == 2
    assert "only work together" in done.stderr


@pytest.mark.usefixtures("shop")
def test_nothing_to_send_is_no_error(headwater: Headwater) -> None:
    done = headwater("produce", "clicks", given="\n")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "0 rows stored\n")


@pytest.mark.usefixtures("shop")
def test_an_unknown_topic_is_answered_with_those_that_exist(headwater: Headwater) -> None:
    done = headwater("produce", "order", given="{}")
    assert done.returncode == 1
    assert done.stderr.splitlines() == [
        "error: shop: there is no topic called 'order'",
        "hint:  declared are: customers, products, orders, clicks",
    ]


@pytest.mark.usefixtures("shop")
def test_a_missing_file_is_named(headwater: Headwater) -> None:
    done = headwater("produce", "clicks", "gone.json")
    assert (done.returncode, done.stderr) == (1, "error: gone.json: No such file or directory\n")


@pytest.mark.usefixtures("shop")
@pytest.mark.slow
def test_a_row_is_seen_in_another_shell_while_the_pipe_stays_open(started: Callable[..., Started]) -> None:
    """`tail -f` in one process, `produce` in the other, which is given rows one at a time."""
    watching, producing = started("tail", "clicks", "-f", "--json"), started("produce", "clicks")
    for number in range(3):
        producing.give(click(f"visit {number}") + "\n")
        seen = json.loads(watching.line())
        assert (seen["_offset"], seen["session"]) == (number, f"visit {number}")


def test_closed_standard_input_does_not_matter_to_a_file_and_is_told_otherwise(shop: Path, folder: Path) -> None:
    (folder / "rows.json").write_text(CLICK)
    outcomes = []
    for words in ("clicks rows.json", "clicks"):
        command = f"{' '.join(COMMAND)} produce {words} --pipeline {shop} <&-"
        done = subprocess.run(["bash", "-c", command], cwd=folder, capture_output=True, text=True, check=False)
        outcomes.append((done.returncode, done.stderr.splitlines()[0]))
    assert outcomes == [(0, "1 row stored"), (2, "error: standard input is closed")]


def test_a_descriptor_above_1024_can_be_waited_for() -> None:
    reading, writing = os.pipe()
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < 1200:
        pytest.skip("so many files cannot be opened here")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 1200), hard))
    try:
        os.dup2(reading, 1100)
        os.write(writing, b"{}\n")
        batches = RowInput(1100).batches(10, 0.01)
        assert [entry.value() for entry in next(batches)] == [{}]
    finally:
        for handle in (reading, writing, 1100):
            os.close(handle)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_a_bad_row_is_set_aside_if_the_topic_was_declared_so(headwater: Headwater, folder: Path) -> None:
    with hw.Pipeline("shop", folder / ".headwater" / "shop") as shop:
        shop.stream("s", "id BIGINT", on_error="dead_letter")
    done = headwater("produce", "s", given='{"id": "bad"}\n{"id": 1}\n')
    assert (done.returncode, done.stdout) == (0, "s@0:1\n")
    assert done.stderr == "1 row stored, 1 set aside in s__dead_letters\n"
    assert [row["raw"] for row in rows(headwater, "s__dead_letters")] == ['{"id":"bad"}']
    assert [row["id"] for row in rows(headwater, "s")] == [1]
    done = headwater("produce", "S", "--json", given='{"id": "bad"}\n{"id": 2}\n7\n')
    assert json.loads(done.stdout) == {"rows": 1, "set_aside": 2, "position": "s@0:2"}


def test_what_was_only_set_aside_before_a_bad_batch_is_not_sent_again(headwater: Headwater, folder: Path) -> None:
    with hw.Pipeline("shop", folder / ".headwater" / "shop") as shop:
        shop.stream("s", "id BIGINT", on_error="dead_letter")
    done = headwater("produce", "s", "--batch", "1", given='{"id": "bad"}\n{oops}\n')
    assert done.returncode == 1
    assert done.stderr.startswith("error: standard input, line 2: ")
    assert "\n       stored: 0 rows (1 more set aside), up to line 1; nothing from line 2 on\n" in done.stderr
    assert "correct line 2, then send again from line 2 on\n" in done.stderr
