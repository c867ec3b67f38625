"""The history checker notices each kind of broken promise, and finds nothing in a good history."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import pytest

from tests.crash.history import History, Operation, Place, Record, Step, Tag, check

ORDERS: Place = ("orders", 0)
ITEMS: Place = ("items", 1)


def record(offset: int, text: str) -> Record:
    return Record(offset, Tag.parse(text))


# Writer 1 appends one row, then two rows in a transaction over both topics; writer 2 appends after that; then
# it takes a transaction back, and dies in the middle of an append of which nothing was stored.
OPERATIONS = (
    Operation(1, 1, ("orders",), started=10, acknowledged=20, ends=({ORDERS: 1},)),
    Operation(1, 2, ("orders", "items"), started=30, acknowledged=40, keeps=True, ends=({ORDERS: 2, ITEMS: 1},)),
    Operation(2, 1, ("items",), started=50, acknowledged=60, ends=({ITEMS: 8},)),
    Operation(2, 2, ("orders",), started=70, withdrawn=True),
    Operation(2, 3, ("orders",), started=80),
)
FINAL = {
    ORDERS: (record(0, "1.1.0.1"), record(1, "1.2.0.2")),
    ITEMS: (record(0, "1.2.1.2"), record(7, "2.1.0.1")),
}
CHAIN = (
    Step(1, {ORDERS: FINAL[ORDERS][:1]}),
    Step(2, {ORDERS: FINAL[ORDERS][1:], ITEMS: FINAL[ITEMS][:1]}),
    Step(1, {ITEMS: FINAL[ITEMS][1:]}),
)
GOOD = History(OPERATIONS, FINAL, tails=(FINAL,), chains=(CHAIN,), kept={1: 2})


def kinds(history: History) -> set[str]:
    return {violation.kind for violation in check(history)}


def with_final(orders: Sequence[Record] | None = None, items: Sequence[Record] | None = None) -> History:
    """The good history with other records at the end, and no readers to disagree with them."""
    final = {ORDERS: orders or FINAL[ORDERS], ITEMS: items or FINAL[ITEMS]}
    return dataclasses.replace(GOOD, final=final, tails=(), chains=())


def test_nothing_is_wrong_with_a_good_history() -> None:
    assert check(GOOD) == []


def test_an_unacknowledged_operation_may_be_there() -> None:
    orders = (*FINAL[ORDERS], record(2, "2.3.0.1"))
    assert check(with_final(orders=orders)) == []


def test_an_acknowledged_operation_that_is_missing_is_lost() -> None:
    assert kinds(with_final(items=FINAL[ITEMS][:1])) == {"lost"}


def test_a_row_that_is_there_twice_is_a_duplicate() -> None:
    assert "duplicate" in kinds(with_final(items=(*FINAL[ITEMS], record(8, "2.1.0.1"))))


def test_rows_of_a_withdrawn_transaction_are_an_aborted_read() -> None:
    assert kinds(with_final(orders=(*FINAL[ORDERS], record(2, "2.2.0.1")))) == {"aborted read"}


def test_rows_whose_commit_was_never_asked_for_are_an_aborted_read() -> None:
    operations = (*OPERATIONS[:4], dataclasses.replace(OPERATIONS[4], asked=False))
    history = dataclasses.replace(with_final(orders=(*FINAL[ORDERS], record(2, "2.3.0.1"))), operations=operations)
    assert kinds(history) == {"aborted read"}


def test_a_writers_rows_in_another_order_are_reordered() -> None:
    swapped = (record(0, "1.2.0.2"), record(1, "1.1.0.1"))
    assert "reordered" in kinds(with_final(orders=swapped))


def test_half_a_transaction_is_torn() -> None:
    torn = with_final(items=FINAL[ITEMS][1:])
    assert kinds(torn) == {"torn"}


def test_a_row_that_nobody_wrote_is_invented() -> None:
    assert kinds(with_final(items=(*FINAL[ITEMS], record(9, "3.1.0.1")))) == {"invented"}


def test_a_row_in_another_topic_is_invented() -> None:
    assert "invented" in kinds(with_final(orders=(*FINAL[ORDERS], record(2, "2.1.0.1")), items=FINAL[ITEMS][:1]))


def test_an_offset_that_is_used_twice_is_noticed() -> None:
    assert "offsets" in kinds(with_final(items=(record(7, "1.2.1.2"), record(7, "2.1.0.1"))))


def test_a_position_that_is_not_where_the_rows_are_is_noticed() -> None:
    assert "position" in kinds(with_final(items=(FINAL[ITEMS][0], record(8, "2.1.0.1"))))


@pytest.mark.parametrize("kept", [{}, {1: 1}, {1: 2, 2: 2}])
def test_a_kept_value_without_its_rows_is_noticed(kept: dict[int, int]) -> None:
    assert kinds(dataclasses.replace(GOOD, kept=kept)) == {"kept"}


@pytest.mark.parametrize(
    ("seen", "kind"),
    [
        (FINAL[ITEMS][1:], "skipped"),
        (FINAL[ITEMS][:1], "skipped"),
        ((FINAL[ITEMS][0], *FINAL[ITEMS]), "read twice"),
        ((*FINAL[ITEMS], record(8, "2.3.0.1")), "vanished"),
        (tuple(reversed(FINAL[ITEMS])), "reordered"),
    ],
)
def test_a_reader_that_saw_anything_else_is_noticed(seen: Sequence[Record], kind: str) -> None:
    history = dataclasses.replace(GOOD, tails=({**FINAL, ITEMS: seen},))
    assert kinds(history) == {kind}


def chained(*steps: Step) -> History:
    return dataclasses.replace(GOOD, chains=(steps,))


def test_a_cut_that_splits_a_transaction_is_torn() -> None:
    history = chained(
        Step(2, {ORDERS: FINAL[ORDERS]}), Step(1, {ITEMS: FINAL[ITEMS][:1]}), Step(1, {ITEMS: FINAL[ITEMS][1:]})
    )
    assert kinds(history) == {"torn"}


def test_a_cut_with_a_consequence_without_its_cause_is_not_causal() -> None:
    first, rest = FINAL[ORDERS][:1], FINAL[ORDERS][1:]
    assert "not causal" in kinds(chained(Step(3, {ORDERS: rest, ITEMS: FINAL[ITEMS]}), Step(1, {ORDERS: first})))


def test_a_cut_without_a_cause_that_never_comes_is_not_causal() -> None:
    assert "not causal" in kinds(chained(Step(3, {ORDERS: FINAL[ORDERS][1:], ITEMS: FINAL[ITEMS]})))


def test_operations_that_overlapped_may_be_cut_apart_either_way() -> None:
    first, second, *rest = OPERATIONS
    overlapping = (dataclasses.replace(first, acknowledged=35), second, *rest)
    chain = (Step(2, {ORDERS: FINAL[ORDERS], ITEMS: ()}), Step(2, {ITEMS: FINAL[ITEMS]}))
    history = dataclasses.replace(GOOD, operations=overlapping, chains=(chain,))
    assert "not causal" not in kinds(history)


def test_a_cut_that_counts_its_rows_wrongly_is_noticed() -> None:
    assert kinds(chained(dataclasses.replace(CHAIN[0], rows=2), *CHAIN[1:])) == {"count"}
