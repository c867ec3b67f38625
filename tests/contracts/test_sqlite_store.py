from __future__ import annotations

import sqlite3
import threading
from pathlib import Path

import pytest

from headwater.errors import HeadwaterError, Unavailable
from headwater.store import Declaration, SqliteStore
from tests.contracts.store import Open, StoreContract

FIRST_FORMAT = """
CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE declarations (
    number INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL UNIQUE, kind TEXT NOT NULL, spec TEXT NOT NULL);
CREATE TABLE transactions (
    id BLOB PRIMARY KEY, committed INTEGER NOT NULL, at INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE kept (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE ticks (
    number INTEGER PRIMARY KEY, epoch INTEGER NOT NULL, at INTEGER NOT NULL, cut TEXT NOT NULL,
    detail TEXT NOT NULL);
CREATE TABLE runs (
    name TEXT PRIMARY KEY, tick INTEGER NOT NULL, arrangement TEXT NOT NULL, detail TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE lease (one INTEGER PRIMARY KEY CHECK (one = 1), epoch INTEGER NOT NULL, holder TEXT NOT NULL);
CREATE TABLE starts (
    topic INTEGER NOT NULL, partition INTEGER NOT NULL, first INTEGER NOT NULL,
    PRIMARY KEY (topic, partition)) WITHOUT ROWID;
INSERT INTO meta VALUES ('format', '1');
INSERT INTO lease VALUES (1, 7, '{"pid": 4}');
INSERT INTO transactions VALUES (x'61', 1, 1);
INSERT INTO kept VALUES ('zone', 'UTC');
INSERT INTO starts VALUES (1, 0, 5);
"""


class TestSqliteStore(StoreContract):
    @pytest.fixture
    def open_store(self, tmp_path: Path) -> Open:
        return lambda: SqliteStore(str(tmp_path / "headwater.db"))

    def test_commits_are_fully_synchronised(self, tmp_path: Path) -> None:
        store = SqliteStore(str(tmp_path / "headwater.db"))
        store.decide(b"x" * 16, committed=True, at=1, durable=False)
        connection = store._database._writing.open()
        assert connection.execute("PRAGMA synchronous").fetchone() == (2,)
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)

    def test_no_read_waits_for_a_write_that_the_disk_keeps(self, tmp_path: Path) -> None:
        store = SqliteStore(str(tmp_path / "headwater.db"))
        store.keep({"x": "1"})
        begun, may_end = threading.Event(), threading.Event()

        def held(statement: str) -> None:
            if statement == "COMMIT":
                begun.set()
                assert may_end.wait(20)

        store._database._writing.open().set_trace_callback(held)
        writing = threading.Thread(target=store.keep, args=({"x": "2"},))
        writing.start()
        assert begun.wait(20)
        found: list[str | None] = []
        reading = [threading.Thread(target=lambda: found.append(store.kept("x"))) for _ in range(10)]
        for thread in reading:
            thread.start()
        for thread in reading:
            thread.join(10)
        assert found == ["1"] * 10
        may_end.set()
        writing.join()
        assert store.kept("x") == "2"

    def test_a_folder_of_a_newer_format_is_refused(self, tmp_path: Path) -> None:
        path = str(tmp_path / "headwater.db")
        SqliteStore(path).close()
        with sqlite3.connect(path) as connection:
            connection.execute("UPDATE meta SET value = '99' WHERE name = 'format'")
        with pytest.raises(HeadwaterError, match="format 99"):
            SqliteStore(path)

    def test_a_store_of_the_first_format_is_brought_up_when_it_is_opened(self, tmp_path: Path) -> None:
        path = str(tmp_path / "headwater.db")
        with sqlite3.connect(path, isolation_level=None) as connection:
            connection.executescript(FIRST_FORMAT)
        for _ in range(2):
            store = SqliteStore(path)
            assert (store.lease().epoch, store.lease().holder) == (7, {"pid": 4})
            assert (store.decision(b"a"), store.kept("zone"), store.starts(1)) == (True, "UTC", {0: 5})
            assert store.cursors.all() == []
            store.decide(b"b" * 16, committed=True, at=2)
            assert not store.faults()
            store.close()
        with sqlite3.connect(path) as connection:
            assert connection.execute("SELECT value FROM meta WHERE name = 'format'").fetchone() == ("2",)

    def test_a_file_that_is_no_database_is_an_error_with_advice(self, tmp_path: Path) -> None:
        path = tmp_path / "headwater.db"
        path.write_bytes(b"this is not a database, whatever its name may say" * 100)
        with pytest.raises(Unavailable, match="metadata store") as refused:
            SqliteStore(str(path))
        assert refused.value.hint

    @pytest.mark.parametrize("how", ["changed", "gone"])
    def test_what_is_declared_and_kept_is_what_was_written_or_told(self, tmp_path: Path, how: str) -> None:
        path = str(tmp_path / "headwater.db")
        store = SqliteStore(path)
        store.declare("v", "view", {"sql": "SELECT 1"})
        store.keep({"zone": "Etc/GMT+1"})
        amended = store.declare("w", "view", {"sql": "SELECT 1"})
        store.amend(Declaration("w", "view", amended.number, {"sql": "SELECT 1"}))
        store.close()
        new = "replace({0}, '1', '3')" if how == "changed" else "x'00'"
        with sqlite3.connect(path) as connection:
            connection.execute(f"UPDATE declarations SET spec = {new.format('spec')}")
            connection.execute(f"UPDATE kept SET value = {new.format('value')}")
        store = SqliteStore(path)
        asks = (store.declarations, lambda: store.find("w"), lambda: store.kept("zone"))
        for ask in (*asks, lambda: store.keep_first({"zone": "UTC"})):
            with pytest.raises(Unavailable, match="in the metadata store is damaged"):
                ask()
        assert len(store.faults()) == 2

    def test_what_older_versions_declared_and_kept_is_read_as_it_is(self, tmp_path: Path) -> None:
        path = str(tmp_path / "headwater.db")
        SqliteStore(path).close()
        with sqlite3.connect(path) as connection:
            connection.execute("INSERT INTO declarations VALUES (1, 'v', 'view', '{\"sql\": \"SELECT 1\"}')")
            connection.execute("INSERT INTO kept VALUES ('zone', 'UTC')")
        store = SqliteStore(path)
        assert store.declare("v", "view", {"sql": "SELECT 1"}).number == 1
        assert store.kept("zone") == "UTC"
        assert not store.faults()
