"""What the shop's tables and views hold at a cut, worked out row by row from the log: slow and obvious."""

from __future__ import annotations

from collections import Counter
from typing import Any

import headwater as hw
from headwater.log import Cut
from tests.inside import store_of, topic_of
from tests.read.hand import Rows, rows_of

Contents = dict[str, Rows]


def contents(pipeline: hw.Pipeline, cut: Cut) -> Contents:
    """The rows of every table and view when everything below the cut is in."""
    orders = {row["id"]: row for row in _replayed(pipeline, "orders", cut)}
    customers = {row["id"]: row for row in _replayed(pipeline, "customers", cut)}
    bag = _replayed(pipeline, "bag", cut)
    clicks = _records(pipeline, "clicks", cut)
    countries = {row["id"]: row["country"] for row in customers.values()}
    sold = [(countries[o["customer"]], o["cents"]) for o in orders.values() if o["customer"] in countries]
    revenue = [(a, sum(c for b, c in sold if b == a), sum(b == a for b, _ in sold)) for a in {a for a, _ in sold}]
    return {
        "orders": Counter(tuple(row.values()) for row in orders.values()),
        "customers": Counter(tuple(row.values()) for row in customers.values()),
        "bag": Counter(tuple(row.values()) for row in bag),
        "revenue": Counter(revenue),
        "total": Counter([(_sum(cents for _, cents, _ in revenue), _sum(sales for *_, sales in revenue))]),
        "dear": Counter((o["id"], o["cents"], 2 * o["cents"]) for o in orders.values() if o["cents"] > 500),
        "words": Counter({(row["word"],) for row in bag}),
        "clicked": Counter(
            (who, len(of), sum(of)) for who in {c["who"] for c in clicks} if (of := _of(clicks, who)) is not None
        ),
    }


def _of(clicks: list[dict[str, Any]], who: int) -> list[int]:
    return [click["n"] for click in clicks if click["who"] == who]


def _sum(values: Any) -> int | None:
    """As SQL has it: the sum of nothing is nothing."""
    found = list(values)
    return sum(found) if found else None


def _records(pipeline: hw.Pipeline, name: str, cut: Cut) -> list[dict[str, Any]]:
    """The records below a cut, each partition's in order."""
    found = []
    for table in topic_of(pipeline, name).tail():
        for row in table.to_pylist():
            if row["_offset"] < cut.end(name, row["_partition"]):
                found.append({key: value for key, value in row.items() if not key.startswith("_")} | _op(row))
    return found


def _op(row: dict[str, Any]) -> dict[str, Any]:
    return {"_op": row["_op"]}


def _replayed(pipeline: hw.Pipeline, name: str, cut: Cut) -> list[dict[str, Any]]:
    key = topic_of(pipeline, name).key
    by_key: dict[Any, dict[str, Any]] = {}
    bag: list[dict[str, Any]] = []
    for record in _records(pipeline, name, cut):
        operation = record.pop("_op")
        if key:
            by_key.pop(record[key[0]], None)
            if operation == "upsert":
                by_key[record[key[0]]] = record
        elif operation == "delete":
            if record in bag:
                bag.remove(record)
        else:
            bag.append(record)
    return list(by_key.values()) if key else bag


def read(pipeline: hw.Pipeline, tick: int) -> Contents:
    """What can be read of every table and view at a tick."""
    declared = store_of(pipeline).declarations()
    names = [name for name, each in declared.items() if each.kind != "stream"]
    return {name: rows_of(pipeline.read(name, as_of=tick)) for name in names}


def check(pipeline: hw.Pipeline) -> int:
    """Compare the newest tick with the log; returns its number."""
    last = store_of(pipeline).last_tick()
    assert last is not None
    found, wanted = read(pipeline, last.number), contents(pipeline, Cut.from_dict(last.cut))
    wrong = {name: (found[name] - wanted[name], wanted[name] - found[name]) for name in wanted}
    bad = {name: pair for name, pair in wrong.items() if any(pair)}
    assert not bad, f"at tick {last.number} (too many, missing): {bad}"
    return last.number
