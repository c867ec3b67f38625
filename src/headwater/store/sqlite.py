"""The embedded metadata store: one SQLite file in WAL mode with full synchronisation."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Collection, Mapping
from typing import Any

from headwater import crashpoint
from headwater.errors import DeclarationChanged, Fenced, HeadwaterError
from headwater.store.database import Database
from headwater.store.records import Declaration, LeaseRecord, RunRecord, TickRecord

FORMAT = 1
_TABLES = """
CREATE TABLE IF NOT EXISTS meta (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS declarations (
    number INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL UNIQUE, kind TEXT NOT NULL, spec TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS transactions (
    id BLOB PRIMARY KEY, committed INTEGER NOT NULL, at INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS kept (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS ticks (
    number INTEGER PRIMARY KEY, epoch INTEGER NOT NULL, at INTEGER NOT NULL, cut TEXT NOT NULL,
    detail TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS runs (
    name TEXT PRIMARY KEY, tick INTEGER NOT NULL, arrangement TEXT NOT NULL, detail TEXT NOT NULL) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS runs_by_arrangement ON runs (arrangement, tick);
CREATE INDEX IF NOT EXISTS runs_by_tick ON runs (tick);
CREATE TABLE IF NOT EXISTS lease (
    one INTEGER PRIMARY KEY CHECK (one = 1), epoch INTEGER NOT NULL, holder TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS starts (
    topic INTEGER NOT NULL, partition INTEGER NOT NULL, first INTEGER NOT NULL,
    PRIMARY KEY (topic, partition)) WITHOUT ROWID;
"""

_EXPIRE_RUNS = """
DELETE FROM runs WHERE CASE WHEN arrangement LIKE '%/changes' THEN tick <= ? ELSE NOT EXISTS (
    SELECT 1 FROM ticks WHERE ticks.number >= runs.tick AND NOT EXISTS (
        SELECT 1 FROM runs AS later
        WHERE later.arrangement = runs.arrangement AND later.tick > runs.tick AND later.tick <= ticks.number)) END
"""
"""Details of changes go by age; others go when every kept tick at or after them has a newer one."""


def _difference(old: Mapping[str, Any], new: Mapping[str, Any]) -> str:
    parts = [
        f"{field} is {old.get(field)!r} and would become {new.get(field)!r}"
        for field in sorted({*old, *new})
        if old.get(field) != new.get(field)
    ]
    return "it is already declared differently: " + "; ".join(parts)


def _make_tables(connection: sqlite3.Connection) -> None:
    for statement in filter(str.strip, _TABLES.split(";")):
        connection.execute(statement)
    connection.execute("INSERT OR IGNORE INTO meta VALUES ('format', ?)", (str(FORMAT),))


def _rename(connection: sqlite3.Connection, made: Declaration) -> None:
    """Give a declaration the name of another, which goes; the transaction is undone if one of both is gone."""
    before = made.spec["before"]["number"]
    gone = connection.execute(
        "DELETE FROM declarations WHERE number = ? AND name = ?", (before, made.name)
    ).rowcount
    renamed = connection.execute(
        "UPDATE declarations SET name = ?, spec = ? WHERE number = ?",
        (made.name, json.dumps(made.spec, sort_keys=True), made.number),
    ).rowcount
    if not gone or not renamed:
        msg = "it, or what was to replace it, was dropped in the meantime"
        raise DeclarationChanged(msg, where=made.name, retry=True)


class SqliteStore:
    """A store in one file that many processes share; see `Store` for the contract."""

    def __init__(self, path: str, *, database: Database | None = None) -> None:
        self.path = path
        self._database = database or Database(path)
        if not self._has_tables():
            self._database.become_wal()
            with self._database.write() as connection:
                _make_tables(connection)

    def _has_tables(self) -> bool:
        if not self._database.one("SELECT name FROM sqlite_master WHERE name = 'meta'"):
            return False
        found = self._database.one("SELECT value FROM meta WHERE name = 'format'")
        if found and int(found[0]) != FORMAT:
            msg = f"this folder was written in format {found[0]}, and this version reads format {FORMAT}"
            raise HeadwaterError(msg, where=self.path, hint="use the version of headwater that wrote it")
        return found is not None

    # -- declarations

    def declare(self, name: str, kind: str, spec: Mapping[str, Any]) -> Declaration:
        """See `Store.declare`."""
        text = json.dumps(spec, sort_keys=True)
        found = self.find(name)
        if found is None:
            with self._database.write() as connection:
                connection.execute(
                    "INSERT OR IGNORE INTO declarations (name, kind, spec) VALUES (?, ?, ?)",
                    (name, kind, text),
                )
            crashpoint.reach("declare.stored")
            found = self.find(name)
        if found is None:
            raise DeclarationChanged("it was dropped while it was being declared", where=name, retry=True)
        hint = "choose another name, or drop the old one first"
        if found.kind != kind:
            msg = f"it is already declared as a {found.kind}, not a {kind}"
            raise DeclarationChanged(msg, where=name, hint=hint)
        if json.dumps(found.spec, sort_keys=True) != text:
            raise DeclarationChanged(_difference(found.spec, json.loads(text)), where=name, hint=hint)
        return found

    def find(self, name: str) -> Declaration | None:
        """See `Store.find`."""
        row = self._database.one("SELECT name, kind, number, spec FROM declarations WHERE name = ?", (name,))
        return Declaration(row[0], row[1], row[2], json.loads(row[3])) if row else None

    def declarations(self) -> dict[str, Declaration]:
        """See `Store.declarations`."""
        rows = self._database.all("SELECT name, kind, number, spec FROM declarations ORDER BY number")
        return {name: Declaration(name, kind, number, json.loads(spec)) for name, kind, number, spec in rows}

    def forget(self, declaration: Declaration) -> bool:
        """See `Store.forget`."""
        known = (declaration.number, declaration.name)
        with self._database.write() as connection:
            found = connection.execute("DELETE FROM declarations WHERE number = ? AND name = ?", known)
        return found.rowcount > 0

    def amend(self, declaration: Declaration) -> bool:
        """See `Store.amend`."""
        known = (json.dumps(declaration.spec, sort_keys=True), declaration.number, declaration.name)
        with self._database.write() as connection:
            found = connection.execute("UPDATE declarations SET spec = ? WHERE number = ? AND name = ?", known)
        return found.rowcount > 0

    # -- transactions

    def decide(
        self,
        transaction: bytes,
        *,
        committed: bool,
        at: int,
        kept: Mapping[str, str] | None = None,
        durable: bool = True,
    ) -> bool:
        """See `Store.decide`."""
        with self._database.write(durable=durable) as connection:
            added = connection.execute(
                "INSERT OR IGNORE INTO transactions VALUES (?, ?, ?)", (transaction, int(committed), at)
            ).rowcount
            if not added:
                found = connection.execute(
                    "SELECT committed FROM transactions WHERE id = ?", (transaction,)
                ).fetchone()
                return bool(found[0])
            if committed and kept:
                connection.executemany("INSERT OR REPLACE INTO kept VALUES (?, ?)", list(kept.items()))
        return committed

    def decision(self, transaction: bytes) -> bool | None:
        """See `Store.decision`."""
        row = self._database.one("SELECT committed FROM transactions WHERE id = ?", (transaction,))
        return bool(row[0]) if row else None

    def kept(self, name: str) -> str | None:
        """See `Store.kept`."""
        row = self._database.one("SELECT value FROM kept WHERE name = ?", (name,))
        return str(row[0]) if row else None

    def keep(self, values: Mapping[str, str]) -> None:
        """See `Store.keep`."""
        with self._database.write() as connection:
            connection.executemany("INSERT OR REPLACE INTO kept VALUES (?, ?)", list(values.items()))

    # -- the lease and ticks

    def lease(self) -> LeaseRecord:
        """See `Store.lease`."""
        row = self._database.one("SELECT epoch, holder FROM lease")
        return LeaseRecord(row[0], json.loads(row[1])) if row else LeaseRecord(0, {})

    def raise_epoch(self, holder: Mapping[str, Any], *, seen: int, timeout: float | None = None) -> int:
        """See `Store.raise_epoch`."""
        with self._database.write(timeout=timeout) as connection:
            if self.lease().epoch != seen:
                msg = "another process became the driver in the meantime"
                raise Fenced(msg, where=self.path)
            connection.execute(
                "INSERT OR REPLACE INTO lease VALUES (1, ?, ?)", (seen + 1, json.dumps(dict(holder)))
            )
        return seen + 1

    def commit(
        self, tick: TickRecord, *, epoch: int, alone: bool = False, renamed: Collection[Declaration] = ()
    ) -> None:
        """See `Store.commit`."""
        with self._database.write() as connection:
            self._check_epoch(epoch, f"tick {tick.number} is not committed")
            last = connection.execute("SELECT max(number) FROM ticks").fetchone()[0] or 0
            if tick.number != last + 1:
                msg = f"tick {tick.number} cannot follow tick {last}"
                raise Fenced(msg, where=self.path)
            for each in renamed:
                _rename(connection, each)
            if alone:
                connection.execute("DELETE FROM ticks")
                connection.execute("DELETE FROM runs")
            connection.execute(
                "INSERT INTO ticks VALUES (?, ?, ?, ?, ?)",
                (tick.number, epoch, tick.at, json.dumps(dict(tick.cut)), json.dumps(dict(tick.detail))),
            )
            connection.executemany(
                "INSERT INTO runs VALUES (?, ?, ?, ?)",
                [(run.name, tick.number, run.arrangement, json.dumps(dict(run.detail))) for run in tick.runs],
            )

    def _check_epoch(self, epoch: int, consequence: str) -> None:
        current = self.lease().epoch
        if current != epoch:
            msg = f"this driver's epoch {epoch} was replaced by {current}; {consequence}"
            raise Fenced(msg, where=self.path, hint="stop this process, or take over again")

    def last_tick(self) -> TickRecord | None:
        """See `Store.last_tick`."""
        row = self._database.one("SELECT max(number) FROM ticks")
        return self.tick(row[0]) if row and row[0] else None

    def tick(self, number: int) -> TickRecord | None:
        """See `Store.tick`."""
        row = self._database.one("SELECT number, at, cut, detail FROM ticks WHERE number = ?", (number,))
        if row is None:
            return None
        runs = self._database.all(
            "SELECT name, arrangement, detail FROM runs WHERE tick = ? ORDER BY name", (number,)
        )
        return TickRecord(
            row[0],
            row[1],
            json.loads(row[2]),
            tuple(RunRecord(name, arrangement, json.loads(detail)) for name, arrangement, detail in runs),
            json.loads(row[3]),
        )

    def arrangements(self, tick: int) -> dict[str, Mapping[str, Any]]:
        """See `Store.arrangements`."""
        rows = self._database.all(
            "SELECT arrangement, detail FROM runs JOIN (SELECT arrangement, max(tick) AS tick FROM runs "
            "WHERE tick <= ? GROUP BY arrangement) USING (arrangement, tick)",
            (tick,),
        )
        return {arrangement: json.loads(detail) for arrangement, detail in rows}

    def details(self, arrangement: str, *, after: int, until: int) -> list[tuple[int, Mapping[str, Any]]]:
        """See `Store.details`."""
        rows = self._database.all(
            "SELECT tick, detail FROM runs WHERE arrangement = ? AND tick > ? AND tick <= ? ORDER BY tick",
            (arrangement, after, until),
        )
        return [(tick, json.loads(detail)) for tick, detail in rows]

    def ticks(self) -> list[tuple[int, int]]:
        """See `Store.ticks`."""
        return self._database.all("SELECT number, at FROM ticks ORDER BY number")

    def expire(self, keep: Collection[int], *, changes_after: int, epoch: int) -> None:
        """See `Store.expire`."""
        with self._database.write() as connection:
            self._check_epoch(epoch, "nothing is forgotten")
            connection.execute("CREATE TEMP TABLE IF NOT EXISTS keeping (number INTEGER PRIMARY KEY)")
            connection.execute("DELETE FROM keeping")
            connection.executemany("INSERT OR IGNORE INTO keeping VALUES (?)", [(number,) for number in keep])
            connection.execute(
                "DELETE FROM ticks WHERE number NOT IN keeping AND number < (SELECT max(number) FROM ticks)"
            )
            connection.execute(_EXPIRE_RUNS, (changes_after,))

    def drop_arrangements(self, prefix: str) -> None:
        """See `Store.drop_arrangements`."""
        with self._database.write() as connection:
            connection.execute(
                "DELETE FROM runs WHERE arrangement = ? OR substr(arrangement, 1, ?) = ?",
                (prefix, len(prefix) + 1, prefix + "/"),
            )

    def files(self) -> list[Mapping[str, Any]]:
        """See `Store.files`."""
        return [json.loads(detail) for (detail,) in self._database.all("SELECT detail FROM runs")]

    # -- the log's beginnings

    def set_start(self, topic: int, partition: int, offset: int) -> None:
        """See `Store.set_start`."""
        with self._database.write() as connection:
            connection.execute(
                "INSERT INTO starts VALUES (?, ?, ?) ON CONFLICT (topic, partition) "
                "DO UPDATE SET first = max(first, excluded.first)",
                (topic, partition, offset),
            )

    def starts(self, topic: int) -> dict[int, int]:
        """See `Store.starts`."""
        return dict(self._database.all("SELECT partition, first FROM starts WHERE topic = ?", (topic,)))

    def writer(self) -> int | None:
        """See `Store.writer`."""
        return self._database.writer()

    def close(self) -> None:
        """See `Store.close`."""
        self._database.close()
