"""What may become of a topic's columns, who is told, and what other processes and old programs see of it."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import headwater as hw
from headwater.cli.main import main
from tests.inside import log_of, store_of

ORDERS = "id BIGINT, cents INT, note STRING"


@pytest.fixture
def pipeline(tmp_path: Path) -> Iterator[hw.Pipeline]:
    with hw.Pipeline("shop", tmp_path) as pipeline:
        yield pipeline


@pytest.fixture
def orders(pipeline: hw.Pipeline) -> Any:
    table: Any = pipeline.table("orders", ORDERS, key="id")
    table.upsert(rows(1, 2))
    return table


def rows(*ids: int, **more: Any) -> list[dict[str, Any]]:
    return [{"id": n, "cents": n, "note": f"n{n}", **more} for n in ids]


def tailed(topic: Any) -> list[dict[str, Any]]:
    return [row for table in topic.tail() for row in table.to_pylist()]


def elsewhere(pipeline: hw.Pipeline) -> hw.Pipeline:
    return hw.Pipeline("shop", pipeline.path)


@pytest.mark.parametrize(
    ("schema", "why"),
    [
        ("id INT, cents INT, note STRING", "of the key"),
        ("cents INT, note STRING", "no column id"),
        (ORDERS.replace(" INT", " SMALLINT"), "INT cannot become SMALLINT"),
        (ORDERS.replace(" INT", " FLOAT NOT NULL"), "may be null"),
        (f"{ORDERS}, tax INT NOT NULL", "needs a DEFAULT"),
        (f"{ORDERS}, tax INT DEFAULT 'many'", "is no INT"),
        (f"{ORDERS}, code VARCHAR(2) DEFAULT 'abc'", "abc"),
        (f"{ORDERS}, tax INT DEFAULT now()", "expected a constant"),
        (f"{ORDERS}, _tax INT", "Headwater's own"),
        (f"{ORDERS}, other STRUCT<a: INT DEFAULT 1>", "expected >"),
    ],
)
def test_what_cannot_be_is_refused_and_nothing_has_changed(
    pipeline: hw.Pipeline, orders: Any, schema: str, why: str
) -> None:
    known = store_of(pipeline).find("orders")
    with pytest.raises(hw.SchemaError, match=why):
        pipeline.alter("orders", schema)
    assert store_of(pipeline).find("orders") == known


def test_only_topics_are_altered_and_not_their_dead_letters(pipeline: hw.Pipeline, orders: Any) -> None:
    for name in ("nothing", "orders__dead_letters", "orders__log"):
        with pytest.raises(hw.HeadwaterError, match=r"no topic|a name of ours"):
            pipeline.alter(name, ORDERS)


@pytest.mark.parametrize(
    "schema", ["a BIGINT, b STRING", "b STRING, a INT", "a INT", "a INT, b STRING, c INT DEFAULT 1"]
)
def test_rows_without_a_key_stay_where_they_are_found(pipeline: hw.Pipeline, schema: str) -> None:
    pipeline.table("bag", "a INT, b STRING")
    with pytest.raises(hw.SchemaError, match="found by all columns"):
        pipeline.alter("bag", schema)


def test_a_table_without_a_key_gets_columns_and_rows_go_by_all_of_them(pipeline: hw.Pipeline) -> None:
    bag: Any = pipeline.table("bag", "a INT, b STRING", partitions=3)
    bag.append([{"a": n, "b": "x"} for n in range(9)])
    altered: Any = pipeline.alter("bag", "a INT, name STRING, c DOUBLE", rename={"b": "name"})
    altered.delete([{"a": n, "name": "x", "c": None} for n in range(9)])
    places: dict[int, set[int]] = {}
    for row in tailed(altered):
        places.setdefault(row["a"], set()).add(row["_partition"])
    assert {len(each) for each in places.values()} == {1}


def test_the_same_schema_alters_nothing_whatever_its_case_and_comments(pipeline: hw.Pipeline, orders: Any) -> None:
    assert pipeline.alter("orders", "ID bigint, Cents int COMMENT 'net', note string") is orders
    altered = pipeline.alter("orders", "ID BIGINT, CENTS BIGINT, NOTE STRING")
    assert altered.schema.ddl == "id BIGINT, cents BIGINT, note STRING"
    assert pipeline.alter("orders", "ID BIGINT, CENTS BIGINT, NOTE STRING") is altered


def test_an_old_program_is_told_of_altering_and_a_new_one_is_fine(pipeline: hw.Pipeline, orders: Any) -> None:
    new = f"{ORDERS}, tax INT DEFAULT 3"
    with pytest.raises(hw.DeclarationChanged, match="alter"):
        pipeline.table("orders", new, key="id")
    pipeline.alter("orders", new)
    for declared in (new, f"{ORDERS}, tax INT"):
        assert pipeline.table("orders", declared, key="id").schema.names == ("id", "cents", "note", "tax")
    with pytest.raises(hw.DeclarationChanged, match=r"altered 1 time since: .* tax INT' and would become"):
        pipeline.table("orders", ORDERS, key="id")
    with pytest.raises(hw.DeclarationChanged, match="defaults"):
        pipeline.table("orders", f"{ORDERS}, tax INT DEFAULT 4", key="id")


def test_whoever_has_it_open_goes_on_with_the_old_columns(pipeline: hw.Pipeline, orders: Any) -> None:
    with elsewhere(pipeline) as other:
        old: Any = other.table("orders", ORDERS, key="id")
        new: Any = pipeline.alter("orders", "id BIGINT, cents BIGINT, tax INT DEFAULT 7")
        old.upsert(rows(3))
        new.upsert([{"id": 4, "cents": 1 << 40, "tax": 1}])
        old.upsert(rows(5), producer="p", sequence=1)
        old.upsert(rows(5), producer="p", sequence=1)
        with other.transaction() as transaction:
            transaction.upsert(old, rows(6))
            transaction.upsert("orders", [{"id": 7, "cents": 7, "tax": 7}])
        for topic in (new, old, orders):
            found = [(row["id"], row["cents"], row["tax"]) for row in tailed(topic)]
            assert found == [(1, 1, 7), (2, 2, 7), (3, 3, 7), (4, 1 << 40, 1), (5, 5, 7), (6, 6, 7), (7, 7, 7)]
        assert pipeline.table("orders", "id BIGINT, cents BIGINT, tax INT", key="id").size().segments == 2


def test_a_transaction_that_is_under_way_is_stored_whole(pipeline: hw.Pipeline, orders: Any) -> None:
    count = 400_000
    ones, notes = pa.array([1] * count, pa.int32()), pa.array(["x" * 99] * count)
    with pipeline.transaction() as transaction:
        transaction.upsert(orders, pa.table({"id": range(count), "cents": ones, "note": notes}))
        altered: Any = pipeline.alter("orders", "id BIGINT, note STRING, cents BIGINT, tax INT")
        transaction.upsert("orders", [{"id": count, "note": None, "cents": 1 << 40, "tax": 2}])
        transaction.upsert(orders, rows(count + 1))
    found = pa.concat_tables(altered.tail())
    assert found.column("id").to_pylist() == [1, 2, *range(count + 2)]
    last = [tuple(row.values())[4:] for row in found.slice(count + 1).to_pylist()]
    assert last == [
        (count - 1, "x" * 99, 1, None),
        (count, None, 1 << 40, 2),
        (count + 1, f"n{count + 1}", count + 1, None),
    ]


def test_an_empty_topic_is_altered_before_its_first_record(pipeline: hw.Pipeline) -> None:
    clicks: Any = pipeline.stream("clicks", "id BIGINT")
    with elsewhere(pipeline) as other:
        old: Any = other.stream("clicks", "id BIGINT")
        assert old.size().records == 0  # it has the first segment open
        for schema in ("id BIGINT, page STRING", "id BIGINT, page STRING, at INT", "id BIGINT, at BIGINT"):
            clicks = pipeline.alter("clicks", schema)
        clicks.append([{"id": 1, "at": 2}])
        old.append([{"id": 3}])
        for topic in (clicks, old):
            assert [(row["id"], row["at"]) for row in tailed(topic)] == [(1, 2), (3, None)]
    log_of(pipeline).verify("clicks")


def test_bad_rows_of_an_altered_topic_are_set_aside(pipeline: hw.Pipeline) -> None:
    pipeline.stream("clicks", "id BIGINT", on_error="dead_letter")
    clicks: Any = pipeline.alter("clicks", "id BIGINT, page STRING NOT NULL DEFAULT 'home'")
    clicks.append([{"id": 1, "page": "a"}, {"id": 2, "page": None}])
    assert [row["id"] for row in tailed(clicks)] == [1]
    assert pipeline.status().topics[0].dead_letters == 1


def test_two_who_alter_at_once_do_not_undo_each_other(
    pipeline: hw.Pipeline, orders: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    with elsewhere(pipeline) as other:
        amend, calls = store_of(pipeline).amend, list[Any]()

        def late(*given: Any, **named: Any) -> bool:
            if not calls:
                calls.append(other.alter("orders", f"{ORDERS}, first INT"))
            return amend(*given, **named)

        monkeypatch.setattr(store_of(pipeline), "amend", late)
        pipeline.alter("orders", f"{ORDERS}, first INT, second INT")
    stored = store_of(pipeline).find("orders")
    assert stored is not None
    assert stored.spec["altered"] == {"number": 2, "ids": {}, "used": [], "added": {"first": 1, "second": 2}}


def test_the_command_line_alters_and_renames(pipeline: hw.Pipeline, orders: Any, capsys: Any) -> None:
    where = ["--pipeline", str(pipeline.path)]
    assert (
        main(
            ["topics", "alter", "orders", "id BIGINT, cents INT, remark STRING", "--rename", "note=remark", *where]
        )
        == 0
    )
    assert "remark STRING" in capsys.readouterr().out
    assert main(["topics", "--json", *where]) == 0
    assert json.loads(capsys.readouterr().out)[0]["schema"] == "id BIGINT, cents INT, remark STRING"
    assert main(["topics", "alter", "orders", "id INT", *where]) == 1
    assert "of the key" in capsys.readouterr().err


_OLD = """
import sys, headwater as hw
with hw.Pipeline("shop", sys.argv[1]) as pipeline:
    orders = pipeline.table("orders", "id BIGINT, cents INT, note STRING", key="id")
    print("open", flush=True)
    for line in sys.stdin:
        orders.upsert([{"id": int(line), "cents": 1, "note": line.strip()}])
        print("stored", flush=True)
"""


def test_another_process_that_knows_nothing_of_it_loses_nothing(pipeline: hw.Pipeline, orders: Any) -> None:
    command = [sys.executable, "-c", _OLD, str(pipeline.path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stdout.readline() == "open\n"
        new: Any = pipeline.alter("orders", "id BIGINT, cents BIGINT, tax INT, note STRING")
        for number in range(10, 14):
            process.stdin.write(f"{number}\n")
            process.stdin.flush()
            assert process.stdout.readline() == "stored\n"
            new.upsert([{"id": number + 100, "cents": 1 << 33, "tax": 1, "note": ""}])
        process.stdin.close()
        assert process.wait(timeout=30) == 0
    found = {row["id"]: (row["note"], row["tax"]) for row in tailed(new)}
    assert found == {1: ("n1", None), 2: ("n2", None)} | {n: (str(n), None) for n in range(10, 14)} | {
        n + 100: ("", 1) for n in range(10, 14)
    }


def test_two_alterations_with_the_same_name_are_of_two_columns(pipeline: hw.Pipeline, orders: Any) -> None:
    pipeline.alter("orders", "id BIGINT, cents INT")
    table: Any = pipeline.alter("orders", ORDERS)
    assert {row["note"] for row in tailed(table)} == {None}
    table.upsert(rows(3))
    pipeline.alter("orders", "id BIGINT, cents INT")
    assert {row["note"] for row in tailed(pipeline.alter("orders", ORDERS))} == {None}
    stored = store_of(pipeline).find("orders")
    assert stored is not None
    assert stored.spec["altered"]["ids"] == {"note": "note#3"}
