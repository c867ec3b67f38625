"""What every metadata store must do. A backend's test module subclasses this and says how to open one."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from functools import partial

import pytest

from headwater.errors import DeclarationChanged, Fenced
from headwater.store import Declaration, RunRecord, Store, TickRecord
from tests.contracts.cursors import CursorContract

Open = Callable[[], Store]


class StoreContract(CursorContract):
    @pytest.fixture
    def open_store(self) -> Open:
        """A function that opens the same store anew, as another process would."""
        raise NotImplementedError

    @pytest.fixture
    def store(self, open_store: Open) -> Iterator[Store]:
        opened = open_store()
        yield opened
        opened.close()

    def test_the_same_declaration_again_is_fine(self, store: Store, open_store: Open) -> None:
        first = store.declare("orders", "stream", {"schema": "id BIGINT", "key": ["id"]})
        again = open_store().declare("orders", "stream", {"key": ["id"], "schema": "id BIGINT"})
        assert again == first == store.find("orders")
        assert store.find("nothing") is None

    def test_another_declaration_of_a_name_is_refused_with_the_difference(self, store: Store) -> None:
        store.declare("orders", "stream", {"partitions": 1, "key": ["id"]})
        with pytest.raises(DeclarationChanged, match=r"partitions is 1 and would become 2") as refused:
            store.declare("orders", "stream", {"partitions": 2, "key": ["id"]})
        assert "key" not in refused.value.what
        with pytest.raises(DeclarationChanged, match=r"declared as a stream, not a table"):
            store.declare("orders", "table", {"partitions": 1, "key": ["id"]})
        assert store.declarations()["orders"].spec == {"partitions": 1, "key": ["id"]}

    def test_a_name_declared_again_after_it_was_forgotten_has_another_number(self, store: Store) -> None:
        first = store.declare("orders", "stream", {})
        store.forget(first)
        store.forget(first)
        assert "orders" not in store.declarations()
        again = store.declare("orders", "stream", {"new": True})
        assert again.number > first.number
        store.forget(first)
        assert store.declarations()["orders"] == again

    def test_what_another_process_declares_amends_or_forgets_is_seen(self, store: Store, open_store: Open) -> None:
        other = open_store()
        assert store.declarations() == {}
        first = other.declare("orders", "view", {"n": 1})
        assert store.declarations() == {"orders": first}
        amended = replace(first, spec={"n": 2})
        assert other.amend(amended)
        assert store.declarations() == {"orders": amended}
        assert other.forget(amended)
        assert store.declarations() == {}

    def test_of_many_who_declare_differently_at_once_exactly_one_wins(self, open_store: Open) -> None:
        outcomes: list[str] = []

        def declare(number: int) -> None:
            try:
                open_store().declare("orders", "stream", {"partitions": number})
                outcomes.append("won")
            except DeclarationChanged:
                outcomes.append("refused")

        _at_once([partial(declare, number) for number in range(6)])
        assert sorted(outcomes) == ["refused"] * 5 + ["won"]

    def test_the_first_decision_of_a_transaction_holds(self, store: Store, open_store: Open) -> None:
        assert store.decide(b"a" * 16, committed=True, at=1, kept={"source": "12"}) is True
        assert open_store().decide(b"a" * 16, committed=False, at=2, kept={"source": "13"}) is True
        assert store.decide(b"b" * 16, committed=False, at=3, kept={"source": "14"}) is False
        assert store.decide(b"b" * 16, committed=True, at=4, kept={"source": "15"}) is False
        assert [store.decision(name * 16) for name in (b"a", b"b", b"c")] == [True, False, None]
        assert store.kept("source") == "12"
        assert store.kept("unknown") is None

    def test_decisions_with_a_sequence_can_be_listed_and_forgotten(self, store: Store, open_store: Open) -> None:
        for name, number in ((b"b", 9), (b"a", 3), (b"c", 12)):
            store.decide(name * 16, committed=True, at=1, sequence=number, places=["4/1", "4/0"])
        store.decide(b"d" * 16, committed=True, at=1)
        store.decide(b"e" * 16, committed=False, at=1, sequence=4)
        found = open_store().decisions(until=9)
        assert [(each.transaction[:1], each.sequence, each.places) for each in found] == [
            (b"a", 3, ("4/0", "4/1")),
            (b"b", 9, ("4/0", "4/1")),
        ]
        store.forget_decisions([each.transaction for each in found])
        assert open_store().decisions(until=99) == store.decisions(until=99)
        assert [store.decision(name * 16) for name in (b"a", b"b", b"c", b"d", b"e")] == [
            *(None, None, True, True, False)
        ]

    def test_of_a_commit_and_an_abort_at_once_all_are_told_the_same(self, open_store: Open) -> None:
        told: list[bool] = []

        def decide(committed: bool) -> None:
            told.append(open_store().decide(b"t" * 16, committed=committed, at=1))

        _at_once([partial(decide, committed) for committed in (True, False) * 4])
        assert len(told) == 8
        assert len(set(told)) == 1

    def test_a_decision_that_need_not_survive_a_power_cut_is_seen_by_others(
        self, store: Store, open_store: Open
    ) -> None:
        store.decide(b"a" * 16, committed=True, at=1, durable=False)
        assert open_store().decision(b"a" * 16) is True

    def test_what_is_kept_first_stays(self, store: Store, open_store: Open) -> None:
        assert store.keep_first({"x": "1"}) == {"x": "1"}
        assert open_store().keep_first({"x": "2", "y": "3"}) == {"x": "1", "y": "3"}
        assert (store.kept("x"), store.kept("y")) == ("1", "3")

    def test_kept_values_are_replaced(self, store: Store, open_store: Open) -> None:
        store.keep({"x": "1", "y": "2"})
        store.keep({"x": "3"})
        assert (open_store().kept("x"), open_store().kept("y")) == ("3", "2")

    def test_a_kept_value_is_replaced_only_if_it_is_as_expected(self, store: Store, open_store: Open) -> None:
        assert not store.keep_if("x", "0", "1")
        assert store.keep_if("x", None, "1")
        assert not open_store().keep_if("x", None, "2")
        assert not store.keep_if("x", "0", "2")
        assert store.kept("x") == "1"
        assert store.keep_if("x", "1", "2")
        assert open_store().kept("x") == "2"

    def test_of_many_who_replace_a_kept_value_at_once_exactly_one_does(self, open_store: Open) -> None:
        done: list[bool] = []
        _at_once([partial(lambda n: done.append(open_store().keep_if("x", None, str(n))), n) for n in range(6)])
        assert sorted(done) == [False] * 5 + [True]

    def test_leases_have_names_and_epochs_of_their_own(self, store: Store, open_store: Open) -> None:
        assert store.raise_epoch({"pid": 1}, seen=0, name="follower of v") == 1
        assert store.raise_epoch({"pid": 2}, seen=1, name="follower of v") == 2
        assert store.lease().epoch == 0
        assert open_store().raise_epoch({"pid": 3}, seen=0) == 1
        found = [open_store().lease(name) for name in ("follower of v", "driver", "nobody")]
        assert [(lease.epoch, lease.holder) for lease in found] == [(2, {"pid": 2}), (1, {"pid": 3}), (0, {})]
        with pytest.raises(Fenced, match="follower of v"):
            store.raise_epoch({}, seen=1, name="follower of v")
        store.commit(TickRecord(1, 0, {}), epoch=1)  # only the driver's counts

    def test_each_new_driver_raises_the_epoch(self, store: Store, open_store: Open) -> None:
        assert store.lease().epoch == 0
        assert store.raise_epoch({"pid": 1}, seen=0) == 1
        assert open_store().raise_epoch({"pid": 2}, seen=1) == 2
        assert (store.lease().epoch, store.lease().holder) == (2, {"pid": 2})

    def test_an_epoch_seen_too_long_ago_cannot_be_raised(self, store: Store) -> None:
        store.raise_epoch({}, seen=0)
        with pytest.raises(Fenced):
            store.raise_epoch({}, seen=0)
        assert store.lease().epoch == 1

    def test_a_committed_tick_is_there_for_all(self, store: Store, open_store: Open) -> None:
        store.raise_epoch({}, seen=0)
        runs = (RunRecord("t1@1", "t1", {"runs": [3]}), RunRecord("v2@1", "v2", {}))
        tick = TickRecord(1, 99, {"sequence": 7, "ends": {"orders": {"0": 5}}}, runs, {"rows": 5})
        store.commit(tick, epoch=1)
        other = open_store()
        assert other.last_tick() == tick
        assert other.tick(1) == tick
        assert other.tick(2) is None
        assert other.arrangements(1) == {"t1": {"runs": [3]}, "v2": {}}

    def test_a_commit_with_an_old_epoch_is_fenced_and_changes_nothing(self, store: Store) -> None:
        store.raise_epoch({}, seen=0)
        store.raise_epoch({}, seen=1)
        with pytest.raises(Fenced):
            store.commit(TickRecord(1, 0, {}, (RunRecord("x", "y", {}),)), epoch=1)
        assert store.last_tick() is None
        assert store.arrangements(1) == {}
        store.commit(TickRecord(1, 0, {}), epoch=2)

    def _ticks(self, store: Store) -> None:
        store.raise_epoch({}, seen=0)
        for number in range(1, 6):
            runs = [RunRecord(f"v1/changes@{number}", "v1/changes", {"tick": number})]
            if number in {1, 2, 4}:
                runs.append(RunRecord(f"v1@{number}", "v1", {"tick": number}))
            store.commit(TickRecord(number, number * 10, {}, tuple(runs)), epoch=1)

    def test_an_arrangement_is_what_the_newest_detail_up_to_a_tick_says(self, store: Store) -> None:
        self._ticks(store)
        assert [store.arrangements(n).get("v1") for n in (0, 1, 2, 3, 4, 5)] == [
            None,
            *({"tick": n} for n in (1, 2, 2, 4, 4)),
        ]
        assert store.details("v1", after=1, until=4) == [(2, {"tick": 2}), (4, {"tick": 4})]
        assert store.ticks() == [(n, 10 * n) for n in range(1, 6)]

    def test_expiring_keeps_what_a_kept_tick_needs_and_the_newest_tick(self, store: Store) -> None:
        self._ticks(store)
        store.expire({3}, changes_after=3, epoch=1)
        assert [number for number, _ in store.ticks()] == [3, 5]
        assert store.arrangements(3)["v1"] == {"tick": 2}
        assert store.arrangements(5)["v1"] == {"tick": 4}
        assert store.details("v1", after=0, until=9) == [(2, {"tick": 2}), (4, {"tick": 4})]
        assert [number for number, _ in store.details("v1/changes", after=0, until=9)] == [4, 5]
        assert sorted(detail["tick"] for detail in store.files()) == [2, 4, 4, 5]

    def test_whoever_was_replaced_expires_nothing(self, store: Store) -> None:
        self._ticks(store)
        store.raise_epoch({}, seen=1)
        with pytest.raises(Fenced):
            store.expire({5}, changes_after=4, epoch=1)
        assert len(store.ticks()) == 5

    def test_a_tick_that_is_committed_alone_replaces_all_before_it_at_once(self, store: Store) -> None:
        self._ticks(store)
        alone = TickRecord(6, 60, {}, (RunRecord("v2@6", "v2", {"tick": 6}),))
        with pytest.raises(Fenced):
            store.commit(alone, epoch=2, alone=True)
        assert len(store.ticks()) == 5
        store.commit(alone, epoch=1, alone=True)
        assert store.ticks() == [(6, 60)]
        assert store.files() == [{"tick": 6}]
        assert store.last_tick() == alone

    def test_a_tick_that_renames_replaces_a_declaration_at_the_same_instant(
        self, store: Store, open_store: Open
    ) -> None:
        store.raise_epoch({}, seen=0)
        old, new = store.declare("v", "view", {"sql": "1"}), store.declare("v@next", "view", {"sql": "2"})
        spec = {"sql": "2", "before": {"number": old.number}}
        made = Declaration("v", "view", new.number, spec)
        with pytest.raises(Fenced):
            store.commit(TickRecord(1, 10, {}), epoch=7, renamed=[made])
        assert store.find("v") == old
        store.commit(TickRecord(1, 10, {}), epoch=1, renamed=[made])
        assert open_store().find("v") == made
        assert store.find("v@next") is None

    @pytest.mark.parametrize("gone", ["v", "v@next"])
    def test_a_tick_whose_renaming_is_out_of_date_changes_nothing(self, store: Store, gone: str) -> None:
        store.raise_epoch({}, seen=0)
        both = {name: store.declare(name, "view", {}) for name in ("v", "v@next")}
        store.forget(both.pop(gone))
        made = Declaration("v", "view", 2, {"before": {"number": 1}})
        with pytest.raises(DeclarationChanged) as refused:
            store.commit(TickRecord(1, 10, {}), epoch=1, renamed=[made])
        assert refused.value.retry
        assert store.last_tick() is None
        assert store.declarations() == both

    def test_an_amended_declaration_keeps_its_number(self, store: Store, open_store: Open) -> None:
        first = store.declare("v", "view", {"hold": True})
        amended = Declaration("v", "view", first.number, {"hold": False})
        assert store.amend(amended)
        assert open_store().find("v") == amended
        assert not store.forget(Declaration("w", "view", first.number, {}))
        assert not store.amend(Declaration("w", "view", first.number, {}))
        assert store.find("v") == amended
        assert store.forget(first)
        assert not store.amend(amended)
        assert store.find("v") is None

    def test_a_declaration_is_amended_only_as_it_was_seen(self, store: Store, open_store: Open) -> None:
        seen = store.declare("t", "table", {"n": 1})
        assert open_store().amend(Declaration("t", "table", seen.number, {"n": 2}), seen=seen)
        assert not store.amend(Declaration("t", "table", seen.number, {"n": 3}), seen=seen)
        now = store.find("t")
        assert now is not None
        assert now.spec == {"n": 2}
        assert store.amend(Declaration("t", "table", seen.number, {"n": 3}), seen=now)

    def test_the_details_below_a_dropped_name_go_and_no_others(self, store: Store) -> None:
        self._ticks(store)
        store.commit(TickRecord(6, 60, {}, (RunRecord("v12@6", "v12", {}),)), epoch=1)
        store.drop_arrangements("v1")
        assert store.arrangements(6) == {"v12": {}}

    def test_ticks_follow_each_other_without_gap_or_repeat(self, store: Store) -> None:
        store.raise_epoch({}, seen=0)
        for wrong in (2, 0):
            with pytest.raises(Fenced):
                store.commit(TickRecord(wrong, 0, {}), epoch=1)
        store.commit(TickRecord(1, 0, {}), epoch=1)
        with pytest.raises(Fenced):
            store.commit(TickRecord(1, 0, {}), epoch=1)
        store.commit(TickRecord(2, 0, {}), epoch=1)
        last = store.last_tick()
        assert last is not None
        assert last.number == 2

    def test_of_many_who_commit_the_same_tick_at_once_one_does(self, store: Store, open_store: Open) -> None:
        store.raise_epoch({}, seen=0)
        done: list[int] = []

        def commit(number: int) -> None:
            try:
                open_store().commit(TickRecord(1, number, {}), epoch=1)
                done.append(number)
            except Fenced:
                pass

        _at_once([partial(commit, number) for number in range(6)])
        assert len(done) == 1

    def test_who_waits_for_a_tick_is_woken_by_its_commit(self, store: Store, open_store: Open) -> None:
        store.raise_epoch({}, seen=0)
        with closing(open_store().watch()) as news:
            assert news.wait(0.0) is False
            store.keep({"x": "1"})
            assert news.wait(0.01) is False
            for number in (1, 2):
                store.commit(TickRecord(number, 0, {}), epoch=1)
                assert news.wait(10) is True
            assert news.wait(0.01) is False
            timer = threading.Timer(0.05, news.wake)
            timer.start()
            started = time.monotonic()
            assert news.wait(20) is True
            assert time.monotonic() - started < 10
            timer.join()

    def test_a_partitions_beginning_never_goes_back(self, store: Store, open_store: Open) -> None:
        store.set_start(3, 0, 0)
        store.set_start(3, 1, 50)
        store.set_start(3, 1, 20)
        store.set_start(4, 1, 9)
        assert open_store().starts(3) == {0: 0, 1: 50}


def _at_once(actions: list[Callable[[], object]]) -> None:
    barrier = threading.Barrier(len(actions))

    def act(action: Callable[[], object]) -> None:
        barrier.wait()
        action()

    threads = [threading.Thread(target=act, args=(action,)) for action in actions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
