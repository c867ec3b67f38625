"""Writes the tables of TPC-H as Parquet and its queries in Spark's dialect as JSON into a folder.

Run as a script by the Python of an environment of its own, see `source`: nothing of Headwater is there, and DuckDB
is another one.
"""

from __future__ import annotations

import json
import sys
from importlib.util import find_spec
from pathlib import Path

import duckdb
import sqlglot  # type: ignore[import-not-found]
from sqlglot import exp


def export(folder: Path, scale: str) -> None:
    """Make the data and the queries at a scale factor."""
    connection = duckdb.connect()
    connection.execute(f"LOAD '{_extension()}'")
    connection.execute(f"CALL dbgen(sf={float(scale)})")
    for (name,) in connection.execute("SHOW TABLES").fetchall():
        path = folder / f"{name}.parquet"
        connection.execute(f"COPY (SELECT * FROM {name} ORDER BY ALL) TO '{path}' (FORMAT parquet)")
    texts = connection.execute("SELECT query_nr, query FROM tpch_queries() ORDER BY query_nr").fetchall()
    queries = {f"q{number}": for_spark(text) for number, text in texts}
    (folder / "queries.json").write_text(json.dumps(queries, indent=1))


def for_spark(text: str) -> str:
    """A query in Spark's dialect, with a plain name for every column."""
    query = sqlglot.parse_one(text, read="duckdb")
    for place, column in enumerate(query.selects):
        if not column.output_name:
            query.selects[place].replace(exp.alias_(column.copy(), f"column_{place + 1}"))
    return str(query.sql(dialect="spark", pretty=True))


def _extension() -> Path:
    package = find_spec("duckdb_extension_tpch")
    assert package is not None
    assert package.origin is not None
    return next(Path(package.origin).parent.rglob("tpch.duckdb_extension"))


if __name__ == "__main__":
    export(Path(sys.argv[1]), sys.argv[2])
