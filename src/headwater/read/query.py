"""Query: one read-only statement of DuckDB's SQL over tables that are handed to it, and nothing else."""

from __future__ import annotations

import json
import os
import re
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.types as arrow_types

from headwater.errors import HeadwaterError
from headwater.lock import forget_in_child

if TYPE_CHECKING:
    import duckdb

_ALLOWED = (
    "allowed is one statement that reads: SELECT, WITH, FROM, VALUES, DESCRIBE, SUMMARIZE, or EXPLAIN of these"
)
_CLOSED_DOORS = {
    "enable_external_access": "false",
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "allow_community_extensions": "false",
    "python_enable_replacements": "false",
    "temp_directory": "",
}
_THREADS = 4
_SHARE_OF_MEMORY = 4
_EXPLAIN = re.compile(
    r"(?:\s|--[^\n]*\n|/\*.*?\*/)*EXPLAIN\s+(?:ANALYZE\s+)?(?:\(\s*(?:ANALYZE|FORMAT)\b[^)]*\)\s*)?",
    re.IGNORECASE | re.DOTALL,
)
_NO_TABLE = re.compile(r"Catalog Error: Table with name (.+) does not exist!")
_ADVICE = re.compile(r"Did you mean|Candidate bindings|LINE \d+:")
_INTERRUPTED = "Query interrupted"
_INTERRUPTED_INPUT = re.compile(
    r"Invalid Input Error: [a-z ]+ the object registered as '.*' failed: KeyboardInterrupt:\s*", re.DOTALL
)
_of_the_parent: list[duckdb.DuckDBPyConnection | None] = []


@dataclass(frozen=True)
class Statement:
    """A statement that only reads, and the names, in lower case, under which it may mean a relation."""

    sql: str
    names: frozenset[str]


class QueryEngine:
    """DuckDB in memory, without files, network or extensions, in the pipeline's time zone. Safe for threads.

    It is started with the first query. Every query has a connection of its own and sees no other's tables. An
    interrupt (Ctrl-C) is a `KeyboardInterrupt`.
    """

    def __init__(self, timezone: str) -> None:
        self._timezone = timezone
        self._lock = threading.Lock()
        self._database: duckdb.DuckDBPyConnection | None = None
        forget_in_child(self)

    def after_fork(self) -> None:
        """Leave the parent's database alone: ending it would wait for threads that are not in the child."""
        self._lock = threading.Lock()
        _of_the_parent.append(self._database)
        self._database = None

    def parse(self, sql: str) -> Statement:
        """The statement, if it is one and only reads; else `HeadwaterError`."""
        if not isinstance(sql, str):
            msg = f"{sql!r} is not SQL"
            raise HeadwaterError(msg, hint=_ALLOWED)
        connection = self._connect()
        try:
            with _interrupts():
                if not _is_one(connection, sql, {"SELECT", "EXPLAIN"}):
                    raise HeadwaterError("this is not a statement that only reads", hint=_ALLOWED)
                explained = _EXPLAIN.match(sql)
                inner = sql[explained.end() :] if explained else sql
                if not _is_one(connection, inner, {"SELECT"}):
                    raise HeadwaterError("only a statement that reads can be explained", hint=_ALLOWED)
                tree = connection.execute("SELECT json_serialize_sql(?)", [inner]).fetchall()[0][0]
        except _errors() as error:
            raise _told(error) from None
        finally:
            connection.close()
        names = frozenset(name.lower() for name in _table_names(json.loads(tree)))
        if any(name.startswith('"') for name in names):  # SHOW TABLES and its like, which know no relation of ours
            raise HeadwaterError("SHOW has nothing to list here", hint=_ALLOWED)
        return Statement(sql, names)

    def answer(
        self, statement: Statement, tables: Mapping[str, pa.Table], unknown: Callable[[str], HeadwaterError]
    ) -> pa.Table:
        """What the statement gives over the tables; `unknown` makes the error for a name that is not among them.

        Instants come back in UTC, as they went in.
        """
        connection = self._connect()
        try:
            with _interrupts():
                for name, table in tables.items():
                    connection.register(name, table)
                return _in_utc(connection.sql(statement.sql).to_arrow_table())
        except _errors() as error:
            missing = _NO_TABLE.match(str(error))
            raise (unknown(missing[1]) if missing else _told(error)) from None
        finally:
            connection.close()

    def _connect(self) -> duckdb.DuckDBPyConnection:
        """A connection of its own to the one database."""
        with self._lock:
            self._database = self._database or self._start()
            return self._database.cursor()

    def _start(self) -> duckdb.DuckDBPyConnection:
        import duckdb  # noqa: PLC0415  it takes a moment, and only queries need it

        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // _SHARE_OF_MEMORY
        limits = {"threads": str(min(_THREADS, os.cpu_count() or 1)), "memory_limit": f"{memory >> 20}MB"}
        database = duckdb.connect(":memory:", config={**_CLOSED_DOORS, **limits})
        database.execute(f"SET GLOBAL TimeZone = '{self._timezone}'")
        database.execute("SET GLOBAL lock_configuration = true")
        return database


def _errors() -> type[duckdb.Error]:
    import duckdb  # noqa: PLC0415  see above

    return duckdb.Error


@contextmanager
def _interrupts() -> Iterator[None]:
    """DuckDB swallows a `KeyboardInterrupt` that comes while it works, and raises an error of its own instead."""
    try:
        yield
    except RuntimeError as error:
        if str(error) != _INTERRUPTED:
            raise
        raise KeyboardInterrupt from None
    except _errors() as error:
        if _INTERRUPTED_INPUT.fullmatch(str(error)) is None:
            raise
        raise KeyboardInterrupt from None


def _is_one(connection: duckdb.DuckDBPyConnection, sql: str, kinds: set[str]) -> bool:
    found = connection.extract_statements(sql)
    return len(found) == 1 and found[0].type.name in kinds


def _table_names(tree: Any) -> Iterator[str]:
    """Every name in the syntax tree that may be a table's; also those of common table expressions."""
    if isinstance(tree, dict):
        if tree.get("type") in {"BASE_TABLE", "SHOW_REF"}:
            yield str(tree.get("table_name", ""))
        for value in tree.values():
            yield from _table_names(value)
    elif isinstance(tree, list):
        for value in tree:
            yield from _table_names(value)


def _told(error: Exception) -> HeadwaterError:
    """DuckDB's message as an error of ours: what is wrong first, then its advice and the place."""
    lines = [line.strip() for line in str(error).splitlines()]
    return HeadwaterError(
        lines[0], where="query", hint="; ".join(line for line in lines[1:] if _ADVICE.match(line))
    )


def _in_utc(table: pa.Table) -> pa.Table:
    """The same instants in UTC: DuckDB gives them in the connection's zone."""
    schema = pa.schema([field.with_type(_type_in_utc(field.type)) for field in table.schema])
    return table if schema.equals(table.schema) else table.cast(schema)


def _type_in_utc(given: pa.DataType) -> pa.DataType:
    if arrow_types.is_timestamp(given) and given.tz is not None:
        return pa.timestamp(given.unit, "UTC")
    if arrow_types.is_map(given):
        return pa.map_(_field_in_utc(given.key_field), _field_in_utc(given.item_field))
    if arrow_types.is_struct(given):
        return pa.struct([_field_in_utc(given.field(number)) for number in range(given.num_fields)])
    if arrow_types.is_fixed_size_list(given):
        return pa.list_(_field_in_utc(given.value_field), given.list_size)
    if arrow_types.is_list(given):
        return pa.list_(_field_in_utc(given.value_field))
    return given


def _field_in_utc(field: pa.Field) -> pa.Field:
    return field.with_type(_type_in_utc(field.type))
