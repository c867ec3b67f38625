"""What is decided of the log's transactions, and the values that they keep, in the embedded store."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping

from headwater.store.database import Database
from headwater.store.records import DecisionRecord
from headwater.store.seal import opened_text, sealed_text


class SqliteTransactions:
    """The part of `SqliteStore` that the log needs most; see `Store` for the contract."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def decide(
        self,
        transaction: bytes,
        *,
        committed: bool,
        at: int,
        kept: Mapping[str, str] | None = None,
        durable: bool = True,
        sequence: int | None = None,
        places: Collection[str] = (),
    ) -> bool:
        """See `Store.decide`."""
        with self._database.write(durable=durable) as connection:
            added = connection.execute(
                "INSERT OR IGNORE INTO transactions VALUES (?, ?, ?, ?, ?)",
                (transaction, int(committed), at, sequence, json.dumps(sorted(places))),
            ).rowcount
            if not added:
                found = connection.execute(
                    "SELECT committed FROM transactions WHERE id = ?", (transaction,)
                ).fetchone()
                return bool(found[0])
            if committed and kept:
                connection.executemany("INSERT OR REPLACE INTO kept VALUES (?, ?)", _rows(kept))
        return committed

    def decision(self, transaction: bytes) -> bool | None:
        """See `Store.decision`."""
        row = self._database.one("SELECT committed FROM transactions WHERE id = ?", (transaction,))
        return bool(row[0]) if row else None

    def decisions(self, *, until: int) -> list[DecisionRecord]:
        """See `Store.decisions`."""
        rows = self._database.all(
            "SELECT id, sequence, places FROM transactions WHERE committed AND sequence <= ? ORDER BY sequence",
            (until,),
        )
        return [DecisionRecord(identity, number, tuple(json.loads(places))) for identity, number, places in rows]

    def forget_decisions(self, transactions: Collection[bytes]) -> None:
        """See `Store.forget_decisions`."""
        with self._database.write() as connection:
            rows = [(transaction,) for transaction in transactions]
            connection.executemany("DELETE FROM transactions WHERE id = ?", rows)

    def kept(self, name: str) -> str | None:
        """See `Store.kept`."""
        row = self._database.one("SELECT value FROM kept WHERE name = ?", (name,))
        return _kept(name, row[0]) if row else None

    def keep(self, values: Mapping[str, str]) -> None:
        """See `Store.keep`."""
        with self._database.write() as connection:
            connection.executemany("INSERT OR REPLACE INTO kept VALUES (?, ?)", _rows(values))

    def keep_first(self, values: Mapping[str, str]) -> dict[str, str]:
        """See `Store.keep_first`."""
        with self._database.write() as connection:
            connection.executemany("INSERT OR IGNORE INTO kept VALUES (?, ?)", _rows(values))
            read = "SELECT value FROM kept WHERE name = ?"
            return {name: _kept(name, connection.execute(read, (name,)).fetchone()[0]) for name in values}

    def keep_if(self, name: str, expected: str | None, value: str) -> bool:
        """See `Store.keep_if`."""
        with self._database.write() as connection:
            row = connection.execute("SELECT value FROM kept WHERE name = ?", (name,)).fetchone()
            if (_kept(name, row[0]) if row else None) != expected:
                return False
            connection.executemany("INSERT OR REPLACE INTO kept VALUES (?, ?)", _rows({name: value}))
        return True


def _rows(values: Mapping[str, str]) -> list[tuple[str, str]]:
    """What is kept, as rows of the table."""
    return [(name, sealed_text(text, name)) for name, text in values.items()]


def _kept(name: str, stored: str) -> str:
    return opened_text(stored, name, name)
