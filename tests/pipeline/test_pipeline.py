from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import headwater as hw
from headwater.pipeline import declared, reopen
from headwater.testing import ManualClock
from headwater.topics import TopicDeclaration
from tests.inside import store_of, topic_of


def all_rows(topic: hw.Stream | hw.Table) -> list[dict[str, Any]]:
    return [row for table in topic.tail() for row in table.to_pylist()]


def values(topic: hw.Stream | hw.Table, column: str) -> list[Any]:
    return [row[column] for row in all_rows(topic)]


# -- declaring


def test_a_pipeline_lives_in_its_folder_and_can_be_opened_again(tmp_path: Path) -> None:
    with hw.Pipeline("shop", tmp_path / "shop", timezone="Europe/Oslo") as shop:
        shop.stream("clicks", "url STRING").append([{"url": "/"}])
    with reopen(str(tmp_path / "shop")) as again:
        assert (again.name, again.timezone) == ("shop", "Europe/Oslo")
        assert values(declared(again)["clicks"], "url") == ["/"]


def test_without_a_path_it_is_below_the_working_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with hw.Pipeline("shop"):
        assert (tmp_path / ".headwater" / "shop" / "headwater.db").exists()


def test_a_folder_holds_one_pipeline(tmp_path: Path) -> None:
    hw.Pipeline("shop", tmp_path).close()
    with pytest.raises(hw.HeadwaterError, match="holds the pipeline 'shop'"):
        hw.Pipeline("other", tmp_path)


@pytest.mark.parametrize("lost", ["missing", "empty"])
def test_a_folder_whose_database_is_lost_is_not_taken_for_a_new_one(tmp_path: Path, lost: str) -> None:
    with hw.Pipeline("shop", tmp_path) as shop:
        shop.stream("clicks", "n INT").append([{"n": 1}])
    for name in ("headwater.db", "headwater.db-wal", "headwater.db-shm"):
        (tmp_path / name).replace(tmp_path / f"kept-{name}") if (tmp_path / name).exists() else None
    if lost == "empty":
        (tmp_path / "headwater.db").touch()
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}
    with pytest.raises(hw.HeadwaterError, match=r"headwater\.db is missing.* clicks\.1") as refused:
        hw.Pipeline("shop", tmp_path)
    assert "restore headwater.db" in refused.value.hint
    with pytest.raises(hw.HeadwaterError, match=r"headwater\.db is missing"):  # as commands open it
        reopen(str(tmp_path))
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")} == before
    (tmp_path / "kept-headwater.db").replace(tmp_path / "headwater.db")
    with hw.Pipeline("shop", tmp_path) as shop:
        assert values(shop.stream("clicks", "n INT"), "n") == [1]


def test_a_topic_that_was_declared_with_an_event_time_is_the_same_without(tmp_path: Path) -> None:
    with hw.Pipeline("shop", tmp_path) as shop:
        shop.stream("clicks", "at TIMESTAMP").append([{"at": None}])
        stored = store_of(shop).find("clicks")
        assert stored is not None
        store_of(shop).amend(replace(stored, spec={**stored.spec, "event_time": "at", "lateness": "10 seconds"}))
    with hw.Pipeline("shop", tmp_path) as shop:
        assert values(shop.stream("clicks", "at TIMESTAMP"), "at") == [None]


def test_the_same_declaration_again_is_the_same_topic(pipeline: hw.Pipeline) -> None:
    first = pipeline.table("orders", "id BIGINT, name STRING", key="id", partitions=2)
    assert pipeline.table("ORDERS", "ID bigint, Name string", key=["ID"], partitions=2) is not None
    first.upsert([{"id": 1, "name": "a"}])


def test_comments_in_a_schema_are_no_other_declaration(pipeline: hw.Pipeline) -> None:
    nested = "id BIGINT, m MAP<STRING, ARRAY<STRUCT<a: INT>>>"
    remarked = "id BIGINT COMMENT 'ours', m MAP<STRING, ARRAY<STRUCT<a: INT COMMENT 'theirs'>>> COMMENT 'Both'"
    first = pipeline.table("orders", nested, key="id")
    assert pipeline.table("orders", remarked, key="id") is first
    assert pipeline.table("items", remarked, key="id") is pipeline.table("items", nested, key="id")
    with pytest.raises(hw.DeclarationChanged, match="schema is"):
        pipeline.table("orders", nested.replace("INT>>>", "BIGINT>>>"), key="id")


def test_another_declaration_is_refused_with_the_difference(pipeline: hw.Pipeline) -> None:
    pipeline.table("orders", "id BIGINT", key="id")
    with pytest.raises(hw.DeclarationChanged, match="partitions is 1 and would become 4"):
        pipeline.table("orders", "id BIGINT", key="id", partitions=4)
    with pytest.raises(hw.DeclarationChanged, match="as a table, not a stream"):
        pipeline.stream("orders", "id BIGINT")
    with pytest.raises(hw.DeclarationChanged, match="schema is 'id BIGINT' and would become 'id INT'"):
        pipeline.table("orders", "id INT", key="id")


@pytest.mark.parametrize("name", ["_mine", "orders__log", "orders__dead_letters", "1st", "a b", "", "a.b", "é"])
def test_names_of_ours_and_odd_names_are_refused(pipeline: hw.Pipeline, name: str) -> None:
    with pytest.raises(hw.HeadwaterError) as refused:
        pipeline.stream(name, "id BIGINT")
    assert refused.value.hint


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"schema": "id BIGNT"}, "BIGNT"),
        ({"schema": "_id BIGINT"}, "_"),
        ({"schema": "id BIGINT, ID INT"}, "id"),
        ({"schema": "a INTERVAL YEAR TO MONTH"}, "INTERVAL"),
        ({"key": "nothing"}, "nothing"),
        ({"partitions": 0}, "partitions is 0"),
        ({"on_error": "ignore"}, "on_error is 'ignore'"),
        ({"durability": "maybe"}, "durability is 'maybe'"),
    ],
)
def test_a_bad_declaration_says_what_is_wrong(
    pipeline: hw.Pipeline, arguments: dict[str, Any], message: str
) -> None:
    with pytest.raises(hw.HeadwaterError, match=message):
        pipeline.stream("events", **{"schema": "id BIGINT", **arguments})
    assert declared(pipeline) == {}


def test_parts_that_are_not_there_yet_are_said_to_be_unavailable(tmp_path: Path) -> None:
    with pytest.raises(hw.Unavailable, match="there is no log for such a URL") as refused:
        hw.Pipeline("shop", tmp_path, log="kafka://localhost")
    assert refused.value.hint == "there are embedded:; or leave log out"
    with pytest.raises(hw.HeadwaterError, match="not a time zone"):
        hw.Pipeline("shop", tmp_path, timezone="Middle/Earth")


@pytest.mark.parametrize("path", ["a\0b", 7])
def test_what_cannot_be_a_path_is_refused(path: Any) -> None:
    with pytest.raises(hw.HeadwaterError, match="is not a path"):
        hw.Pipeline("shop", path)


def test_a_dropped_topic_can_be_declared_anew_and_is_empty(pipeline: hw.Pipeline) -> None:
    pipeline.stream("clicks", "url STRING").append([{"url": "/"}])
    pipeline.drop("clicks")
    again = pipeline.stream("clicks", "n INT")
    assert all_rows(again) == []
    again.append([{"n": 1}])
    assert values(again, "n") == [1]


# -- appending


def test_rows_come_as_dicts_arrow_pandas_or_polars(pipeline: hw.Pipeline) -> None:
    clicks = pipeline.stream("clicks", "url STRING, n BIGINT")
    data = {"url": ["/a", None], "n": [1, 2]}
    for rows in (
        [{"url": "/a", "n": 1}, {"url": None, "n": 2}],
        pa.table(data),
        pa.RecordBatch.from_pydict(data),
        pd.DataFrame(data),
        pl.DataFrame(data),
    ):
        clicks.append(rows)
    assert values(clicks, "n") == [1, 2] * 5
    assert values(clicks, "url") == ["/a", None] * 5


def test_the_stored_schema_is_not_made_anew_for_each_append(
    pipeline: hw.Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    clicks = pipeline.stream("clicks", "n INT")
    monkeypatch.setattr(TopicDeclaration, "stored_schema", None)
    clicks.append([{"n": 1}])
    assert values(clicks, "n") == [1]


def test_a_tail_has_the_columns_of_the_topics_log(pipeline: hw.Pipeline) -> None:
    prices = pipeline.table("prices", "sku STRING, cents BIGINT", key="sku")
    before = datetime.now(UTC)
    prices.upsert([{"sku": "a", "cents": 5}])
    prices.delete(["a"])
    first, second = all_rows(prices)
    assert list(first) == ["_op", "_partition", "_offset", "_received_at", "sku", "cents"]
    assert (first["_op"], first["_partition"], first["_offset"], first["cents"]) == ("upsert", 0, 0, 5)
    assert (second["_op"], second["_offset"], second["sku"], second["cents"]) == ("delete", 1, "a", None)
    assert before <= first["_received_at"] <= second["_received_at"] <= datetime.now(UTC)


def test_the_time_of_receipt_comes_from_the_clock_and_never_goes_back(tmp_path: Path) -> None:
    clock = ManualClock(datetime(2026, 5, 1, tzinfo=UTC))
    with hw.Pipeline("shop", tmp_path, clock=clock) as shop:
        clicks = shop.stream("clicks", "n INT")
        clicks.append([{"n": 1}])
        clock.advance(seconds=90)
        clicks.append([{"n": 2}])
        clock.advance(seconds=-30)
        clicks.append([{"n": 3}])
        assert [when.isoformat() for when in values(clicks, "_received_at")] == [
            "2026-05-01T00:00:00+00:00",
            "2026-05-01T00:01:30+00:00",
            "2026-05-01T00:01:30+00:00",
        ]


def test_a_time_without_zone_is_in_the_pipelines_zone(tmp_path: Path) -> None:
    with hw.Pipeline("shop", tmp_path, timezone="Europe/Oslo") as shop:
        clicks = shop.stream("clicks", "at TIMESTAMP")
        clicks.append([{"at": datetime(2026, 7, 1, 12)}])  # noqa: DTZ001
        assert values(clicks, "at") == [datetime(2026, 7, 1, 10, tzinfo=UTC)]


def test_a_key_is_always_in_the_same_partition_and_in_order(pipeline: hw.Pipeline) -> None:
    events = pipeline.stream("events", "who STRING, n BIGINT", key="who", partitions=4)
    for n in range(0, 400, 20):
        events.append([{"who": f"w{i % 7}", "n": i} for i in range(n, n + 20)])
    rows = all_rows(events)
    assert len({row["_partition"] for row in rows}) > 1
    for who in range(7):
        mine = [row for row in rows if row["who"] == f"w{who}"]
        assert len({row["_partition"] for row in mine}) == 1
        assert [row["n"] for row in mine] == sorted(row["n"] for row in mine)


def test_batches_without_a_key_spread_over_partitions_and_a_retry_goes_to_the_same(pipeline: hw.Pipeline) -> None:
    events = pipeline.stream("events", "n BIGINT", partitions=3)
    for n in range(9):
        first = events.append([{"n": n}], producer="p", sequence=n)
        assert events.append([{"n": n}], producer="p", sequence=n) == first
    for n in range(6):
        events.append([{"n": n}])
    assert sorted(values(events, "n")) == sorted([*range(9), *range(6)])
    assert {row["_partition"] for row in all_rows(events)} == {0, 1, 2}


def test_rows_of_a_table_without_a_key_meet_their_deletes_in_one_partition(pipeline: hw.Pipeline) -> None:
    bag = pipeline.table("bag", "a INT, b ARRAY<STRING>", partitions=5)
    rows = [{"a": n, "b": [str(n), None]} for n in range(30)]
    bag.append(rows)
    bag.delete(rows)
    where = {"append": {}, "delete": {}}  # type: dict[str, dict[int, int]]
    for row in all_rows(bag):
        where[row["_op"]][row["a"]] = row["_partition"]
    assert where["append"] == where["delete"]
    assert len(set(where["append"].values())) > 1
    with pytest.raises(hw.HeadwaterError, match="without a key"):
        bag.upsert(rows)


def test_rows_of_a_table_with_a_key_are_upserted_not_appended(pipeline: hw.Pipeline) -> None:
    prices = pipeline.table("prices", "sku STRING, cents BIGINT", key="sku")
    with pytest.raises(hw.HeadwaterError, match="use upsert"):
        prices.append([{"sku": "a", "cents": 1}])


# -- bad rows


@pytest.fixture
def bad_batch() -> list[dict[str, Any]]:
    return [{"id": 1, "n": 1}, {"id": None, "n": 2}, {"id": 3, "n": 2**40}, {"id": 4, "n": 4}, {"id": 5}]


def test_a_bad_row_refuses_the_batch_and_stores_nothing(
    pipeline: hw.Pipeline, bad_batch: list[dict[str, Any]]
) -> None:
    orders = pipeline.table("orders", "id BIGINT, n INT", key="id")
    with pytest.raises(hw.SchemaError) as refused:
        orders.upsert(bad_batch)
    assert (refused.value.row, refused.value.column, refused.value.where) == (1, "id", "orders")
    assert "2 more rows are bad" in refused.value.what
    assert "nothing of this batch was stored" in refused.value.hint
    assert all_rows(orders) == []


def test_exactly_the_bad_rows_become_dead_letters(pipeline: hw.Pipeline, bad_batch: list[dict[str, Any]]) -> None:
    orders = pipeline.table("orders", "id BIGINT, n INT", key="id", on_error="dead_letter")
    for _ in range(2):
        orders.upsert(bad_batch, producer="web", sequence=8)
    assert values(orders, "id") == [1, 4]
    letters = all_rows(declared(pipeline)["orders__dead_letters"])
    assert [letter["column"] for letter in letters] == ["id", "n", "n"]
    assert letters[0]["raw"] == '{"id":null,"n":2}'
    assert all(letter["reason"] for letter in letters)
    assert letters[0]["origin"] == "upsert by web, sequence 8"


def test_a_batch_of_bad_rows_only_is_set_aside_once(pipeline: hw.Pipeline) -> None:
    orders = pipeline.stream("orders", "id BIGINT", on_error="dead_letter")
    for _ in range(3):
        orders.append([{"id": "x"}], producer="web", sequence=1)
    assert all_rows(orders) == []
    assert len(all_rows(declared(pipeline)["orders__dead_letters"])) == 1
    orders.append([{"id": 2}], producer="web", sequence=2)


def test_another_process_that_only_opens_the_pipeline_sets_bad_rows_aside_too(tmp_path: Path) -> None:
    with hw.Pipeline("shop", tmp_path) as shop:
        shop.table("orders", "id BIGINT", key="id", on_error="dead_letter")
        shop.stream("clicks", "n INT", on_error="dead_letter")
    for number, write in enumerate((opened_by_name, in_a_transaction, a_bad_key), 1):
        with reopen(str(tmp_path)) as shop:
            write(shop)
            assert len(all_rows(topic_of(shop, "orders__dead_letters"))) == number
            assert shop.query("SELECT count(*) AS n FROM orders__dead_letters").num_rows == 1
    with reopen(str(tmp_path)) as shop:
        assert [row["origin"] for row in all_rows(declared(shop)["orders__dead_letters"])] == [
            "upsert by p, sequence 1",
            "upsert in a transaction",
            "delete",
        ]


def opened_by_name(shop: hw.Pipeline) -> None:
    orders = topic_of(shop, "orders")
    assert isinstance(orders, hw.Table)
    orders.upsert([{"id": "bad"}], producer="p", sequence=1)
    orders.upsert([{"id": "bad"}], producer="p", sequence=1)


def in_a_transaction(shop: hw.Pipeline) -> None:
    with shop.transaction() as tx:
        tx.upsert("orders", [{"id": 1}, {"id": "bad"}])
        tx.append("clicks", [{"n": "bad"}])


def a_bad_key(shop: hw.Pipeline) -> None:
    orders = topic_of(shop, "orders")
    assert isinstance(orders, hw.Table)
    orders.delete(["bad"])


def test_letters_that_a_killed_process_did_not_come_to_declare_are_declared(tmp_path: Path) -> None:
    with hw.Pipeline("shop", tmp_path) as shop:
        shop.stream("clicks", "n INT", on_error="dead_letter")
        letters = store_of(shop).find("clicks__dead_letters")
        assert letters is not None
        store_of(shop).forget(letters)
    with reopen(str(tmp_path)) as shop:
        clicks = topic_of(shop, "clicks")
        assert isinstance(clicks, hw.Stream)
        clicks.append([{"n": "bad"}])
        assert len(all_rows(topic_of(shop, "clicks__dead_letters"))) == 1


# -- transactions


def test_a_transaction_commits_at_the_end_of_its_block(pipeline: hw.Pipeline) -> None:
    clicks = pipeline.stream("clicks", "n INT")
    prices = pipeline.table("prices", "sku STRING, cents BIGINT", key="sku", partitions=2)
    with pipeline.transaction() as tx:
        tx.append(clicks, [{"n": 1}])
        tx.upsert("prices", [{"sku": "a", "cents": 1}, {"sku": "b", "cents": 2}])
        tx.delete(prices, ["a"])
        with pytest.raises(hw.HeadwaterError, match="not committed"):
            _ = tx.position
        assert all_rows(clicks) == []
    assert set(tx.position.topics) == {"clicks", "prices"}
    assert len(all_rows(prices)) == 3


def test_a_transaction_whose_block_raises_leaves_nothing(pipeline: hw.Pipeline) -> None:
    clicks = pipeline.stream("clicks", "n INT")
    with pytest.raises(hw.SchemaError), pipeline.transaction() as tx:  # noqa: PT012
        tx.append(clicks, [{"n": 1}])
        tx.append(clicks, [{"n": "two"}])
    assert all_rows(clicks) == []


def test_events_cannot_be_changed_in_a_transaction(pipeline: hw.Pipeline) -> None:
    clicks = pipeline.stream("clicks", "n INT")
    with pytest.raises(hw.HeadwaterError, match="events are never changed"), pipeline.transaction() as tx:
        tx.upsert(clicks, [{"n": 1}])  # type: ignore[arg-type]
    with pytest.raises(hw.HeadwaterError, match="no topic called 'nothing'"), pipeline.transaction() as tx:
        tx.append("nothing", [{"n": 1}])


def test_bad_rows_in_a_transaction_are_set_aside_with_it(pipeline: hw.Pipeline) -> None:
    clicks = pipeline.stream("clicks", "n INT", on_error="dead_letter")
    with pipeline.transaction() as tx:
        tx.append(clicks, [{"n": 1}, {"n": "two"}])
    assert values(clicks, "n") == [1]
    assert values(declared(pipeline)["clicks__dead_letters"], "origin") == ["append in a transaction"]


# -- tailing


def test_a_tail_goes_on_from_a_position(pipeline: hw.Pipeline) -> None:
    events = pipeline.stream("events", "who STRING, n INT", key="who", partitions=3)
    position = events.append([{"who": f"w{n}", "n": n} for n in range(20)])
    events.append([{"who": f"w{n}", "n": n + 100} for n in range(20)])
    later = [row["n"] for table in events.tail(since=hw.Position.parse(str(position))) for row in table.to_pylist()]
    assert sorted(later) == list(range(100, 120))


def test_a_following_tail_gets_what_comes_later(pipeline: hw.Pipeline) -> None:
    clicks = pipeline.stream("clicks", "n INT")
    clicks.append([{"n": 0}])

    def produce() -> None:
        for n in range(1, 6):
            clicks.append([{"n": n}])

    following: Iterator[pa.Table] = clicks.tail(follow=True)
    seen = next(following).column("n").to_pylist()
    thread = threading.Thread(target=produce)
    thread.start()
    seen += [table.column("n").to_pylist()[0] for table in islice(following, 5)]
    thread.join()
    assert seen == [0, 1, 2, 3, 4, 5]


def test_a_closed_pipeline_can_be_closed_again(tmp_path: Path) -> None:
    shop = hw.Pipeline("shop", tmp_path)
    shop.stream("clicks", "n INT").append([{"n": 1}])
    shop.close()
    shop.close()
