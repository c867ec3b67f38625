"""What the cursors of every metadata store must do; a part of the contract in `store.py`."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection
from dataclasses import replace

import pytest

from headwater.store import CursorRecord, Declaration, RunRecord, Store, TickRecord

Open = Callable[[], Store]


def declared(store: Store, ticks: int = 5) -> CursorRecord:
    """A view that changes in all ticks but the third, and a cursor that may begin at tick 2."""
    view = store.declare("v", "view", {})
    store.raise_epoch({}, seen=0)
    for number in range(1, ticks + 1):
        commit(store, number, {} if number == 3 else {f"v{view.number}": number})
    return CursorRecord("mine", "v", view.number, made=7, tick=2, changes=(f"v{view.number}/changes",), moved=7)


def commit(store: Store, number: int, changed: dict[str, int]) -> None:
    runs = [
        RunRecord(f"{name}/changes@{number}", f"{name}/changes", {"tick": tick}) for name, tick in changed.items()
    ]
    runs += [RunRecord(f"{name}@{number}", name, {"tick": tick}) for name, tick in changed.items()]
    store.commit(TickRecord(number, number * 10, {"tick": number}, tuple(runs)), epoch=1)


def begun(store: Store, cursor: CursorRecord) -> CursorRecord:
    made = store.cursors.change(None, cursor)
    assert made is not None
    return made


def kept(store: Store, name: str = "v1/changes") -> list[int]:
    return [number for number, _ in store.details(name, after=0, until=99)]


def expire(store: Store, keep: Collection[int] = ()) -> None:
    newest = store.ticks()[-1][0]
    store.expire({newest, *keep}, changes_after=min({newest, *keep}), epoch=1)


class CursorContract:
    def test_a_cursor_is_there_for_all_as_it_was_put(self, store: Store, open_store: Open) -> None:
        cursor = declared(store)
        assert store.cursors.find("mine") is None
        made = begun(store, cursor)
        other = begun(store, replace(cursor, name="another", relation="v__log", changes=(), ends={"0": 4}))
        assert made == replace(cursor, revision=made.revision)
        assert open_store().cursors.find("mine") == made
        assert open_store().cursors.all() == [other, made]

    def test_a_cursor_moves_only_from_where_it_was_seen(self, store: Store, open_store: Open) -> None:
        first = begun(store, declared(store))
        second = store.cursors.change(first, replace(first, tick=4, moved=9))
        assert second == replace(first, tick=4, moved=9, revision=second.revision if second else 0)
        for seen in (first, None):
            assert open_store().cursors.change(seen, replace(first, tick=3)) is None
        assert store.cursors.find("mine") == second

    def test_of_many_who_move_a_cursor_at_once_exactly_one_does(self, store: Store, open_store: Open) -> None:
        seen = begun(store, declared(store))
        barrier, moved = threading.Barrier(6), []

        def move(tick: int) -> None:
            cursors = open_store().cursors
            barrier.wait()
            moved.append(cursors.change(seen, replace(seen, tick=tick)))

        threads = [threading.Thread(target=move, args=(tick,)) for tick in (3, 4, 5) * 2]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert [each for each in moved if each is not None] == [store.cursors.find("mine")]

    def test_a_cursor_that_was_removed_and_made_again_is_another(self, store: Store) -> None:
        cursor = declared(store)
        first = begun(store, cursor)
        assert store.cursors.remove("mine")
        assert not store.cursors.remove("mine")
        assert store.cursors.change(first, replace(first, tick=4)) is None
        again = begun(store, cursor)
        assert store.cursors.change(first, replace(first, tick=4)) is None
        assert store.cursors.find("mine") == again

    def test_what_a_cursor_has_not_taken_in_is_kept(self, store: Store) -> None:
        cursor = begun(store, declared(store))
        commit(store, 6, {"v1": 6, "v2": 6})
        commit(store, 7, {"v2": 7})
        expire(store)
        assert [number for number, _ in store.ticks()] == [7]
        assert kept(store) == [4, 5, 6]
        assert kept(store, "v2/changes") == []
        moved = store.cursors.change(cursor, replace(cursor, tick=5))
        expire(store)
        assert kept(store) == [6]
        assert moved is not None
        store.cursors.change(moved, replace(moved, given_up="too slow"))
        expire(store)
        assert kept(store) == []

    def test_the_version_with_which_a_cursor_is_filled_is_kept(self, store: Store) -> None:
        filling = begun(store, replace(declared(store), tick=3, filling=True))
        expire(store)
        assert [number for number, _ in store.ticks()] == [3, 5]
        assert store.arrangements(3)["v1"] == {"tick": 2}
        store.cursors.change(filling, replace(filling, filling=False))
        expire(store)
        assert [number for number, _ in store.ticks()] == [5]
        assert kept(store) == [4, 5]

    def test_a_cursor_cannot_begin_with_what_is_gone(self, store: Store) -> None:
        cursor = declared(store)
        expire(store, {3})
        assert store.cursors.change(None, cursor) is None
        assert store.cursors.change(None, replace(cursor, tick=4, filling=True)) is None
        assert store.cursors.change(None, replace(cursor, declared=99, tick=3)) is None
        assert store.cursors.all() == []
        assert begun(store, replace(cursor, tick=4)).tick == 4
        assert store.cursors.change(None, replace(cursor, name="records", changes=(), ends={})) is None
        assert begun(store, replace(cursor, name="records", tick=3, changes=(), ends={})).ends == {}

    def test_the_cuts_behind_a_cursor_on_records_are_kept_though_their_ticks_are_not(self, store: Store) -> None:
        cursor = replace(declared(store), tick=2, changes=(), ends={"0": 3})
        filling = begun(store, replace(cursor, filling=True, ends={}))
        expire(store, {4})
        assert [number for number, _ in store.ticks()] == [4, 5]
        assert store.cursors.cuts(after=0, limit=9) == [(number, {"tick": number}) for number in (2, 3, 4, 5)]
        moved = store.cursors.change(filling, replace(cursor, tick=2))
        assert moved is not None
        expire(store)
        assert store.cursors.cuts(after=1, limit=2) == [(3, {"tick": 3}), (4, {"tick": 4})]
        store.commit(TickRecord(6, 60, {"tick": 6}), epoch=1, alone=True)
        assert [number for number, _ in store.cursors.cuts(after=2, limit=9)] == [3, 4, 5, 6]
        assert store.cursors.find("mine") == moved
        store.cursors.remove("mine")
        expire(store)
        assert [number for number, _ in store.cursors.cuts(after=0, limit=9)] == [6]

    def test_it_is_known_since_when_a_cursor_has_something_to_take_in(self, store: Store) -> None:
        cursor = begun(store, declared(store))
        waiting = begun(store, replace(cursor, name="waiting", tick=5))
        filling = begun(store, replace(cursor, name="filling", tick=3, filling=True))

        def behind() -> dict[str, int | None]:
            return {each.name: each.behind for each in store.cursors.all()}

        expire(store, {2, 3, 4})
        assert behind() == {"mine": 40, "filling": 30, "waiting": None}
        commit(store, 6, {"v2": 6})
        expire(store)
        assert behind() == {"mine": 40, "filling": 30, "waiting": None}
        assert store.cursors.change(cursor, replace(cursor, moved=8)) is not None
        assert store.cursors.change(filling, replace(filling, filling=False)) is not None
        assert behind() == {"mine": 40, "filling": None, "waiting": None}
        assert store.cursors.change(waiting, replace(waiting, tick=6)) is not None

    def test_cursors_go_with_their_declaration(self, store: Store) -> None:
        cursor = declared(store)
        other = store.declare("w", "view", {})
        begun(store, cursor)
        stays = begun(store, replace(cursor, name="other", declared=other.number, changes=("v2/changes",)))
        view = store.find("v")
        assert view is not None
        store.forget(view)
        assert store.cursors.all() == [stays]
        expire(store)
        assert kept(store) == []

    def test_cursors_go_on_with_what_replaces_a_view(self, store: Store) -> None:
        begun(store, declared(store))
        new = store.declare("v@next", "view", {})
        made = Declaration("v", "view", new.number, {"before": {"number": 1}})
        runs = (RunRecord("v2/changes@6", "v2/changes", {"tick": 6}),)
        store.commit(TickRecord(6, 60, {}, runs), epoch=1, renamed=[made])
        commit(store, 7, {"v2": 7})
        expire(store)
        store.drop_arrangements("v1")
        assert (kept(store), kept(store, "v2/changes")) == ([4, 5], [6, 7])
        assert "v1" not in store.arrangements(7)
        [cursor] = store.cursors.all()
        assert cursor.declared == new.number
        assert set(cursor.changes) == {"v1/changes", "v2/changes"}
        store.forget(made)
        assert store.cursors.all() == []

    @pytest.mark.parametrize("how", ["alone", "anew", "another"])
    def test_cursors_on_what_is_built_again_are_given_up(self, store: Store, how: str) -> None:
        cursor = begun(store, declared(store))
        records = begun(store, replace(cursor, name="records", changes=(), ends={"0": 3}))
        anew = {} if how == "alone" else {"v1": None} if how == "anew" else {"v12": None}
        store.commit(TickRecord(6, 60, {}), epoch=1, alone=how == "alone", anew=anew)
        found = store.cursors.find("mine")
        assert found is not None
        assert bool(found.given_up) == (how != "another")
        assert (store.cursors.change(cursor, replace(cursor, tick=5)) is None) == (how != "another")
        assert store.cursors.find("records") == records
