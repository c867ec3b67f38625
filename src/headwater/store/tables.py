"""The tables of the embedded store, and how those of older formats become them."""

from __future__ import annotations

import sqlite3

from headwater.errors import HeadwaterError

FORMAT = 2
_TABLES = """
CREATE TABLE IF NOT EXISTS meta (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS declarations (
    number INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL UNIQUE, kind TEXT NOT NULL, spec TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS transactions (
    id BLOB PRIMARY KEY, committed INTEGER NOT NULL, at INTEGER NOT NULL, sequence INTEGER, places TEXT NOT NULL
    DEFAULT '[]') WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS kept (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS ticks (
    number INTEGER PRIMARY KEY, epoch INTEGER NOT NULL, at INTEGER NOT NULL, cut TEXT NOT NULL,
    detail TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS runs (
    name TEXT PRIMARY KEY, tick INTEGER NOT NULL, arrangement TEXT NOT NULL, detail TEXT NOT NULL) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS runs_by_arrangement ON runs (arrangement, tick);
CREATE INDEX IF NOT EXISTS runs_by_tick ON runs (tick);
CREATE TABLE IF NOT EXISTS leases (
    name TEXT PRIMARY KEY, epoch INTEGER NOT NULL, holder TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS starts (
    topic INTEGER NOT NULL, partition INTEGER NOT NULL, first INTEGER NOT NULL,
    PRIMARY KEY (topic, partition)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS cursors (
    name TEXT PRIMARY KEY, relation TEXT NOT NULL, declared INTEGER NOT NULL, tick INTEGER NOT NULL,
    filling INTEGER NOT NULL, behind INTEGER, given_up TEXT NOT NULL, revision INTEGER NOT NULL,
    detail TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS cursor_changes (
    arrangement TEXT NOT NULL, cursor TEXT NOT NULL, PRIMARY KEY (arrangement, cursor)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS cuts (number INTEGER PRIMARY KEY, cut TEXT NOT NULL);
CREATE INDEX IF NOT EXISTS cursor_changes_by_cursor ON cursor_changes (cursor);
"""
_DECLARED = """
CREATE TRIGGER IF NOT EXISTS declarations_{how} AFTER {how} ON declarations
BEGIN UPDATE meta SET value = value + 1 WHERE name = 'declared'; END
"""
"""So whoever knows the declarations need not read them again until there are others, whatever has changed them."""


def make_tables(connection: sqlite3.Connection) -> None:
    """Make the tables that are not there yet; those of an older format become those of this one."""
    for statement in filter(str.strip, _TABLES.split(";")):
        connection.execute(statement)
    columns = [name for _, name, *_ in connection.execute("PRAGMA table_info(transactions)")]
    if "sequence" not in columns:  # of format 1
        connection.execute("ALTER TABLE transactions ADD COLUMN sequence INTEGER")
        connection.execute("ALTER TABLE transactions ADD COLUMN places TEXT NOT NULL DEFAULT '[]'")
    connection.execute("CREATE INDEX IF NOT EXISTS transactions_by_sequence ON transactions (sequence)")
    if connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'lease'").fetchone():  # of format 1
        connection.execute("INSERT OR IGNORE INTO leases SELECT 'driver', epoch, holder FROM lease")
        connection.execute("DROP TABLE lease")
    connection.execute("INSERT OR IGNORE INTO meta VALUES ('revision', '0')")
    connection.execute("INSERT OR IGNORE INTO meta VALUES ('declared', '0')")
    for how in ("INSERT", "UPDATE", "DELETE"):
        connection.execute(_DECLARED.format(how=how))
    connection.execute("INSERT OR REPLACE INTO meta VALUES ('format', ?)", (str(FORMAT),))


def is_current(found: str, where: str) -> bool:
    """Whether a store of this format is as it should be; False if it is older, an error if it is newer."""
    if not found.isdecimal() or int(found) > FORMAT:
        msg = f"this folder was written in format {found}, and this version reads format {FORMAT}"
        raise HeadwaterError(msg, where=where, hint="use the version of headwater that wrote it, or a newer one")
    return int(found) == FORMAT
