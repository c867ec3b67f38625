"""The embedded metadata store: one SQLite file in WAL mode with full synchronisation."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Collection, Mapping
from functools import partial
from typing import Any

from headwater import crashpoint
from headwater.errors import DeclarationChanged, Fenced, Unavailable
from headwater.store.cursors import (
    KEEP_FILLING,
    NOT_NEEDED,
    SqliteCursors,
    forget_of,
    give_up,
    go_on_with,
    keep_cuts,
    note_behind,
)
from headwater.store.database import Database
from headwater.store.news import TickNews
from headwater.store.opened import Opened
from headwater.store.records import DRIVER, Declaration, LeaseRecord, RunRecord, TickRecord
from headwater.store.seal import opened, sealed, unchecked
from headwater.store.tables import is_current, make_tables
from headwater.store.transactions import SqliteTransactions
from headwater.watch import Watch

_EXPIRE_RUNS = f"""
DELETE FROM runs WHERE CASE WHEN arrangement LIKE '%/changes' THEN tick <= ? AND {NOT_NEEDED} ELSE NOT EXISTS (
    SELECT 1 FROM ticks WHERE ticks.number >= runs.tick AND NOT EXISTS (
        SELECT 1 FROM runs AS later
        WHERE later.arrangement = runs.arrangement AND later.tick > runs.tick AND later.tick <= ticks.number)) END
"""  # noqa: S608  all of it is ours
"""Details of changes go by age; others go when every kept tick at or after them has a newer one."""
_ARRANGEMENTS = """
WITH RECURSIVE known (arranged) AS (
    SELECT min(arrangement) FROM runs UNION ALL
    SELECT (SELECT min(arrangement) FROM runs WHERE arrangement > arranged) FROM known WHERE arranged IS NOT NULL)
SELECT arrangement, tick, detail FROM known JOIN runs ON arrangement = arranged AND tick = (
    SELECT max(each.tick) FROM runs AS each WHERE each.arrangement = arranged AND each.tick <= ?)
"""
"""From name to name by the index: of changes that a cursor needs there may be very many."""
_DROP = "DELETE FROM runs WHERE (arrangement = ? OR substr(arrangement, 1, ?) = ?)"


def _below(name: str) -> tuple[str, int, str]:
    """What an arrangement, and those below it, are recognised by."""
    return name, len(name) + 1, name + "/"


def _difference(old: Mapping[str, Any], new: Mapping[str, Any]) -> str:
    parts = [
        f"{field} is {old.get(field)!r} and would become {new.get(field)!r}"
        for field in sorted({*old, *new})
        if old.get(field) != new.get(field)
    ]
    return "it is already declared differently: " + "; ".join(parts)


def _declaration(name: str, kind: str, number: int, text: str) -> Declaration:
    return Declaration(name, kind, number, opened(text, f"the declaration of {name}", name, kind))


def _is_as_seen(connection: sqlite3.Connection, seen: Declaration) -> bool:
    """Whether a declaration is what somebody has read of it."""
    query = "SELECT name, kind, number, spec FROM declarations WHERE number = ?"
    row = connection.execute(query, (seen.number,)).fetchone()
    return row is not None and _declaration(*row) == seen


def _detail(arrangement: str, tick: int, text: str) -> Mapping[str, Any]:
    return opened(text, f"{arrangement} at tick {tick}", tick, arrangement)


def _rename(connection: sqlite3.Connection, made: Declaration) -> None:
    """Give a declaration the name of another, which goes; the transaction is undone if one of both is gone."""
    before = made.spec["before"]["number"]
    gone = connection.execute(
        "DELETE FROM declarations WHERE number = ? AND name = ?", (before, made.name)
    ).rowcount
    renamed = connection.execute(
        "UPDATE declarations SET name = ?, spec = ? WHERE number = ?",
        (made.name, sealed(made.spec, made.name, made.kind), made.number),
    ).rowcount
    if not gone or not renamed:
        msg = "it, or what was to replace it, was dropped in the meantime"
        raise DeclarationChanged(msg, where=made.name, retry=True)
    go_on_with(connection, before, made.number)


def _forget_before(
    connection: sqlite3.Connection, tick: int, *, alone: bool, anew: Mapping[str, Mapping[str, Any] | None]
) -> None:
    """Forget what is built again at a tick: everything, or some arrangements."""
    built = f"what it reads was built again at tick {tick}"
    if alone:
        give_up(connection, None, built)
        keep_cuts(connection)
        connection.execute("DELETE FROM ticks")
        connection.execute("DELETE FROM runs")
    for name, beginning in anew.items():
        give_up(connection, name, built)
        connection.execute(_DROP, _below(name))
        if beginning is not None:
            row = (f"{name}@0", 0, name, sealed(beginning, 0, name))
            connection.execute("INSERT INTO runs VALUES (?, ?, ?, ?)", row)


class SqliteStore(SqliteTransactions):
    """A store in one file that many processes share; see `Store` for the contract."""

    def __init__(self, path: str, *, database: Database | None = None) -> None:
        self.path = path
        super().__init__(database or Database(path))
        self._declared, self._detailed = Opened[Declaration](), Opened[Mapping[str, Any]]()
        self._declarations: tuple[str, dict[str, Declaration]] = ("", {})
        if not self._has_tables():
            self._database.become_wal()
            with self._database.write() as connection:
                make_tables(connection)
        self._cursors = SqliteCursors(self._database)
        self._news = TickNews(f"{path}.ticks")

    def _has_tables(self) -> bool:
        if not self._database.one("SELECT name FROM sqlite_master WHERE name = 'meta'"):
            return False
        found = dict(self._database.all("SELECT name, value FROM meta"))
        return "format" in found and is_current(found["format"], self.path) and "declared" in found

    @property
    def cursors(self) -> SqliteCursors:
        """See `Store.cursors`."""
        return self._cursors

    # -- declarations

    def declare(self, name: str, kind: str, spec: Mapping[str, Any]) -> Declaration:
        """See `Store.declare`."""
        text = json.dumps(spec, sort_keys=True)
        found = self.find(name)
        if found is None:
            with self._database.write() as connection:
                connection.execute(
                    "INSERT OR IGNORE INTO declarations (name, kind, spec) VALUES (?, ?, ?)",
                    (name, kind, sealed(spec, name, kind)),
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
        return _declaration(*row) if row else None

    def declarations(self) -> dict[str, Declaration]:
        """See `Store.declarations`."""
        ((revision,),) = self._database.all("SELECT value FROM meta WHERE name = 'declared'")
        known, found = self._declarations
        if revision != known:  # read before the rows, so that what changes meanwhile is seen the next time
            rows = self._database.all("SELECT name, kind, number, spec FROM declarations ORDER BY number")
            made = self._declared.all({row: partial(_declaration, *row) for row in rows})
            found = {each.name: each for each in made}
            self._declarations = revision, found
        return found

    def forget(self, declaration: Declaration) -> bool:
        """See `Store.forget`."""
        known = (declaration.number, declaration.name)
        with self._database.write() as connection:
            found = connection.execute("DELETE FROM declarations WHERE number = ? AND name = ?", known)
            if found.rowcount:
                forget_of(connection, declaration.number)
        return found.rowcount > 0

    def amend(self, declaration: Declaration, *, seen: Declaration | None = None) -> bool:
        """See `Store.amend`."""
        text = sealed(declaration.spec, declaration.name, declaration.kind)
        known = (text, declaration.number, declaration.name)
        with self._database.write() as connection:
            if seen is not None and not _is_as_seen(connection, seen):
                return False
            found = connection.execute("UPDATE declarations SET spec = ? WHERE number = ? AND name = ?", known)
        return found.rowcount > 0

    # -- the lease and ticks

    def lease(self, name: str = DRIVER) -> LeaseRecord:
        """See `Store.lease`."""
        row = self._database.one("SELECT epoch, holder FROM leases WHERE name = ?", (name,))
        return LeaseRecord(row[0], json.loads(row[1])) if row else LeaseRecord(0, {})

    def raise_epoch(
        self, holder: Mapping[str, Any], *, seen: int, timeout: float | None = None, name: str = DRIVER
    ) -> int:
        """See `Store.raise_epoch`."""
        with self._database.write(timeout=timeout) as connection:
            if self.lease(name).epoch != seen:
                msg = f"another process became the {name} in the meantime"
                raise Fenced(msg, where=self.path)
            connection.execute(
                "INSERT OR REPLACE INTO leases VALUES (?, ?, ?)", (name, seen + 1, json.dumps(dict(holder)))
            )
        return seen + 1

    def commit(
        self,
        tick: TickRecord,
        *,
        epoch: int,
        alone: bool = False,
        renamed: Collection[Declaration] = (),
        anew: Mapping[str, Mapping[str, Any] | None] | None = None,
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
            _forget_before(connection, tick.number, alone=alone, anew=anew or {})
            cut = json.dumps(dict(tick.cut))
            sealed_detail = sealed(tick.detail, tick.number, tick.at, cut)
            connection.execute(
                "INSERT INTO ticks VALUES (?, ?, ?, ?, ?)", (tick.number, epoch, tick.at, cut, sealed_detail)
            )
            connection.executemany(
                "INSERT INTO runs VALUES (?, ?, ?, ?)",
                [
                    (run.name, tick.number, run.arrangement, sealed(run.detail, tick.number, run.arrangement))
                    for run in tick.runs
                ],
            )
        crashpoint.reach("tick.stored")
        self._news.announce(tick.number)

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
        detail = opened(row[3], f"tick {number}", *row[:3])
        return TickRecord(row[0], row[1], json.loads(row[2]), self._runs(number), detail)

    def _runs(self, number: int) -> tuple[RunRecord, ...]:
        """What a tick added; not checked, since who needs the state asks for `arrangements`."""
        rows = self._database.all(
            "SELECT name, arrangement, detail FROM runs WHERE tick = ? ORDER BY name", (number,)
        )
        return tuple(
            RunRecord(name, arrangement, unchecked(text, f"{arrangement} at tick {number}"))
            for name, arrangement, text in rows
        )

    def arrangements(self, tick: int) -> dict[str, Mapping[str, Any]]:
        """See `Store.arrangements`."""
        rows = self._database.all(_ARRANGEMENTS, (tick,))
        return {arrangement: _detail(arrangement, since, detail) for arrangement, since, detail in rows}

    def details(self, arrangement: str, *, after: int, until: int) -> list[tuple[int, Mapping[str, Any]]]:
        """See `Store.details`."""
        rows = self._database.all(
            "SELECT tick, detail FROM runs WHERE arrangement = ? AND tick > ? AND tick <= ? ORDER BY tick",
            (arrangement, after, until),
        )
        return [(tick, _detail(arrangement, tick, detail)) for tick, detail in rows]

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
            note_behind(connection)
            keep_cuts(connection)
            connection.execute(KEEP_FILLING)
            connection.execute(
                "DELETE FROM ticks WHERE number NOT IN keeping AND number < (SELECT max(number) FROM ticks)"
            )
            connection.execute(_EXPIRE_RUNS, (changes_after,))

    def drop_arrangements(self, prefix: str) -> None:
        """See `Store.drop_arrangements`."""
        with self._database.write() as connection:
            connection.execute(f"{_DROP} AND (arrangement NOT LIKE '%/changes' OR {NOT_NEEDED})", _below(prefix))

    def files(self) -> list[Mapping[str, Any]]:
        """See `Store.files`."""
        rows = self._database.all("SELECT arrangement, tick, detail FROM runs")
        return self._detailed.all({row: partial(_detail, *row) for row in rows})

    def check(self) -> None:
        """See `Store.check`."""
        ((said,),) = self._database.all("PRAGMA quick_check(1)")
        if said != "ok":
            raise Unavailable(
                f"the metadata store is damaged: {said}", where=self.path, hint="restore headwater.db from a backup"
            )

    def faults(self) -> list[str]:
        """See `Store.faults`."""
        found = [str(said) for (said,) in self._database.all("PRAGMA integrity_check") if said != "ok"]
        names = [name for (name,) in self._database.all("SELECT name FROM kept ORDER BY name")]
        ticks = [number for number, _ in self.ticks()]
        reads: list[Callable[[], object]] = [self.declarations, self.files, self._cursors.all]
        reads += [*(partial(self.kept, name) for name in names), *(partial(self.tick, number) for number in ticks)]
        for read in reads:
            try:
                read()
            except Unavailable as error:
                found.append(error.what)
        return found

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

    def watch(self) -> Watch:
        """See `Store.watch`."""
        return self._news.watch()

    def writer(self) -> int | None:
        """See `Store.writer`."""
        return self._database.writer()

    def close(self) -> None:
        """See `Store.close`."""
        self._database.close()
