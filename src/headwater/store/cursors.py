"""The cursors of the embedded store."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

from headwater.store.database import Database
from headwater.store.records import CursorRecord
from headwater.store.seal import opened, sealed

_READ = """
SELECT name, relation, declared, tick, filling, behind, given_up, revision, detail, (
    SELECT json_group_array(arrangement) FROM cursor_changes WHERE cursor = name) FROM cursors"""
_NEEDED = """EXISTS (
    SELECT 1 FROM cursor_changes JOIN cursors ON cursors.name = cursor_changes.cursor
    WHERE cursor_changes.arrangement = runs.arrangement AND cursors.given_up = '' AND cursors.tick < runs.tick)"""
NOT_NEEDED = f"NOT {_NEEDED}"
"""Of a row of `runs`: it has no changes that a cursor has still to take in."""
_ARRANGED = "EXISTS (SELECT 1 FROM cursor_changes WHERE cursor = cursors.name)"
_FILLING = f"SELECT tick FROM cursors WHERE filling AND given_up = '' AND {_ARRANGED}"  # noqa: S608  ours
KEEP_FILLING = f"INSERT OR IGNORE INTO keeping {_FILLING}"
"""The versions with which cursors are filled."""
_MOST_CUTS = 100_000
"""So many ticks are told apart in records; before, they belong to the next tick that is kept."""
_OLDEST_CUT = "SELECT min(tick - filling) FROM cursors WHERE given_up = '' AND NOT " + _ARRANGED  # noqa: S608  ours
_NOTE_BEHIND = """
UPDATE cursors SET behind = (
    SELECT min(ticks.at) FROM ticks WHERE ticks.number >= CASE WHEN cursors.filling THEN cursors.tick ELSE (
        SELECT min(runs.tick) FROM runs JOIN cursor_changes ON cursor_changes.arrangement = runs.arrangement
        WHERE cursor_changes.cursor = cursors.name AND runs.tick > cursors.tick) END)
WHERE behind IS NULL AND given_up = '' AND EXISTS (SELECT 1 FROM cursor_changes WHERE cursor = cursors.name)
"""


class SqliteCursors:
    """See `Cursors` for the contract."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def find(self, name: str) -> CursorRecord | None:
        """See `Cursors.find`."""
        row = self._database.one(f"{_READ} WHERE name = ?", (name,))
        return _record(row) if row else None

    def all(self) -> list[CursorRecord]:
        """See `Cursors.all`."""
        return [_record(row) for row in self._database.all(f"{_READ} ORDER BY name")]

    def change(
        self, seen: CursorRecord | None, becomes: CursorRecord, *, durable: bool = True
    ) -> CursorRecord | None:
        """See `Cursors.change`."""
        with self._database.write(durable=durable) as connection:
            row = connection.execute(f"{_READ} WHERE name = ?", (becomes.name,)).fetchone()
            found = _record(row) if row else None
            if (found and found.revision) != (seen and seen.revision):
                return None
            revision = _next_revision(connection)
            if found is None:
                if not _may_begin(connection, becomes):
                    return None
                made = replace(becomes, revision=revision)
                needed = [(arrangement, made.name) for arrangement in made.changes]
                connection.executemany("INSERT INTO cursor_changes VALUES (?, ?)", needed)
            else:
                moved = (found.tick, found.filling) != (becomes.tick, becomes.filling)
                behind = None if moved else found.behind
                made = replace(
                    becomes, declared=found.declared, changes=found.changes, behind=behind, revision=revision
                )
            _write(connection, made)
        return made

    def remove(self, name: str) -> bool:
        """See `Cursors.remove`."""
        with self._database.write() as connection:
            return _remove(connection, [name]) > 0

    def cuts(self, *, after: int, limit: int) -> list[tuple[int, Mapping[str, Any]]]:
        """See `Cursors.cuts`."""
        both = (
            "SELECT number, cut, 0 FROM ticks WHERE number > ?1 UNION ALL SELECT number, cut, 1 FROM cuts "
            "WHERE number > ?1 AND number NOT IN (SELECT number FROM ticks) ORDER BY number LIMIT ?2"
        )
        rows = self._database.all(both, (after, limit))
        return [
            (number, opened(text, f"the cut of tick {number}", number) if is_sealed else json.loads(text))
            for number, text, is_sealed in rows
        ]


def _may_begin(connection: sqlite3.Connection, cursor: CursorRecord) -> bool:
    """Whether what a cursor begins with is there: its declaration, and, of an arrangement, all that it needs."""
    if not connection.execute("SELECT 1 FROM declarations WHERE number = ?", (cursor.declared,)).fetchone():
        return False
    if cursor.filling or not cursor.changes:
        return bool(connection.execute("SELECT 1 FROM ticks WHERE number = ?", (cursor.tick,)).fetchone())
    oldest = connection.execute("SELECT min(number) FROM ticks").fetchone()[0]
    return oldest is not None and oldest <= cursor.tick


def forget_of(connection: sqlite3.Connection, declared: int) -> None:
    """Forget the cursors on a declaration, which is forgotten."""
    found = connection.execute("SELECT name FROM cursors WHERE declared = ?", (declared,))
    _remove(connection, [name for (name,) in found])


def go_on_with(connection: sqlite3.Connection, before: int, declared: int) -> None:
    """Let the cursors on a view be on what replaces it, the changes of which they need from then on."""
    connection.execute(
        "INSERT OR IGNORE INTO cursor_changes SELECT replace(arrangement, ?, ?), cursor FROM cursor_changes "
        "WHERE substr(arrangement, 1, ?) = ?",
        (old := f"v{before}/", f"v{declared}/", len(old), old),
    )
    connection.execute("UPDATE cursors SET declared = ? WHERE declared = ?", (declared, before))


def give_up(connection: sqlite3.Connection, name: str | None, why: str) -> None:
    """Keep nothing any more for the cursors that need changes of an arrangement or those below it; None: of any."""
    of = "SELECT cursor FROM cursor_changes WHERE ? IS NULL OR substr(arrangement, 1, ?) = ?"
    below = (name, len(name or "") + 1, f"{name}/")
    found = connection.execute(f"{_READ} WHERE given_up = '' AND name IN ({of})", below).fetchall()
    for row in found:
        given_up = replace(_record(row), given_up=why, revision=_next_revision(connection))
        _write(connection, given_up)


def keep_cuts(connection: sqlite3.Connection) -> None:
    """Keep the cuts of all ticks behind the cursors on records, whatever becomes of the ticks; and no others."""
    oldest = connection.execute(_OLDEST_CUT).fetchone()[0]
    newest = connection.execute("SELECT max(number) FROM ticks").fetchone()[0] or 0
    after = newest if oldest is None else max(oldest, newest - _MOST_CUTS)
    connection.execute("DELETE FROM cuts WHERE number <= ?", (after,))
    found = connection.execute("SELECT number, cut FROM ticks WHERE number > ?", (after,)).fetchall()
    rows = [(number, sealed(json.loads(cut), number)) for number, cut in found]
    connection.executemany("INSERT OR IGNORE INTO cuts VALUES (?, ?)", rows)


def note_behind(connection: sqlite3.Connection) -> None:
    """Note of each cursor since when it has something to take in, before ticks are forgotten that tell."""
    connection.execute(_NOTE_BEHIND)


def _record(row: tuple[Any, ...]) -> CursorRecord:
    name, relation, declared, tick, filling, behind, given_up, revision, text, changes = row
    detail = opened(text, f"the cursor {name}", name, relation, tick, filling, given_up)
    return CursorRecord(
        name=name,
        relation=relation,
        declared=declared,
        tick=tick,
        filling=bool(filling),
        behind=behind,
        given_up=given_up,
        revision=revision,
        changes=tuple(json.loads(changes)),
        **detail,
    )


def _write(connection: sqlite3.Connection, cursor: CursorRecord) -> None:
    filling = int(cursor.filling)
    ends = None if cursor.ends is None else dict(cursor.ends)
    detail = {"made": cursor.made, "moved": cursor.moved, "ends": ends}
    text = sealed(detail, cursor.name, cursor.relation, cursor.tick, filling, cursor.given_up)
    connection.execute(
        "INSERT OR REPLACE INTO cursors VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            cursor.name,
            cursor.relation,
            cursor.declared,
            cursor.tick,
            filling,
            cursor.behind,
            cursor.given_up,
            cursor.revision,
            text,
        ),
    )


def _next_revision(connection: sqlite3.Connection) -> int:
    """A number that no cursor has had: one that was removed and made again is never taken for the one before."""
    connection.execute("UPDATE meta SET value = value + 1 WHERE name = 'revision'")
    return int(connection.execute("SELECT value FROM meta WHERE name = 'revision'").fetchone()[0])


def _remove(connection: sqlite3.Connection, names: Collection[str]) -> int:
    rows = [(name,) for name in names]
    connection.executemany("DELETE FROM cursor_changes WHERE cursor = ?", rows)
    return connection.executemany("DELETE FROM cursors WHERE name = ?", rows).rowcount
