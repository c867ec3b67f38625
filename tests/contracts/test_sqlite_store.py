from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from headwater.errors import HeadwaterError, Unavailable
from headwater.store import SqliteStore
from tests.contracts.store import Open, StoreContract


class TestSqliteStore(StoreContract):
    @pytest.fixture
    def open_store(self, tmp_path: Path) -> Open:
        return lambda: SqliteStore(str(tmp_path / "headwater.db"))

    def test_commits_are_fully_synchronised(self, tmp_path: Path) -> None:
        store = SqliteStore(str(tmp_path / "headwater.db"))
        store.decide(b"x" * 16, committed=True, at=1, durable=False)
        assert store._database._open().execute("PRAGMA synchronous").fetchone() == (2,)
        assert store._database._open().execute("PRAGMA journal_mode").fetchone() == ("wal",)

    def test_a_folder_of_a_newer_format_is_refused(self, tmp_path: Path) -> None:
        path = str(tmp_path / "headwater.db")
        SqliteStore(path).close()
        with sqlite3.connect(path) as connection:
            connection.execute("UPDATE meta SET value = '99' WHERE name = 'format'")
        with pytest.raises(HeadwaterError, match="format 99"):
            SqliteStore(path)

    def test_a_file_that_is_no_database_is_an_error_with_advice(self, tmp_path: Path) -> None:
        path = tmp_path / "headwater.db"
        path.write_bytes(b"this is not a database, whatever its name may say" * 100)
        with pytest.raises(Unavailable, match="metadata store") as refused:
            SqliteStore(str(path))
        assert refused.value.hint
