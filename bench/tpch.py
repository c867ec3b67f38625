"""TPC-H for benchmarks: only the columns that the queries read, made in parts so that memory stays small.

DuckDB's generator comes with an extension for another DuckDB than the product's, so this file is also run as a
script, by the Python of the environment that `tests.tpch.source` makes.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

COLUMNS = {
    "region": ["r_regionkey", "r_name"],
    "nation": ["n_nationkey", "n_name", "n_regionkey"],
    "supplier": ["s_suppkey", "s_name", "s_nationkey"],
    "part": ["p_partkey", "p_name"],
    "partsupp": ["ps_partkey", "ps_suppkey", "ps_supplycost"],
    "customer": ["c_custkey", "c_name", "c_nationkey", "c_mktsegment"],
    "orders": [
        "o_orderkey",
        "o_custkey",
        "o_orderstatus",
        "o_totalprice",
        "o_orderdate",
        "o_shippriority",
        "o_comment",
    ],
    "lineitem": [
        *("l_orderkey", "l_partkey", "l_suppkey", "l_linenumber", "l_quantity", "l_extendedprice", "l_discount"),
        *("l_tax", "l_returnflag", "l_linestatus", "l_shipdate", "l_commitdate", "l_receiptdate"),
    ],
}
_PARTS = 10


def made(folder: Path, scale: float) -> dict[str, str]:
    """Make the tables as Parquet files in a folder, unless they are there; the queries in Spark's dialect."""
    from tests.tpch import source  # noqa: PLC0415  not there when this is run as a script

    if not (folder / "queries.json").exists():
        folder.mkdir(parents=True, exist_ok=True)
        source._environment()
        done = subprocess.run([str(source._PYTHON), __file__, str(folder), str(scale)], check=False)
        if done.returncode:
            sys.exit("TPC-H's data cannot be made")
    queries: dict[str, str] = json.loads((folder / "queries.json").read_text())
    return queries


def _make(folder: Path, scale: float) -> None:
    sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "tpch"))
    import duckdb  # noqa: PLC0415  of the other environment
    from export import _extension, for_spark  # type: ignore[import-not-found]  # noqa: PLC0415

    parts = _PARTS if scale > 1 else 1
    for part in range(parts):
        connection = duckdb.connect()
        connection.execute(f"LOAD '{_extension()}'")
        how = f", children={parts}, step={part}" if parts > 1 else ""
        connection.execute(f"CALL dbgen(sf={scale:g}{how})")
        for table, columns in COLUMNS.items():
            path = folder / f"{table}-{part}.parquet"
            query = f"SELECT {', '.join(columns)} FROM {table}"
            connection.execute(f"COPY ({query}) TO '{path}' (FORMAT parquet)")
        texts = connection.execute("SELECT query_nr, query FROM tpch_queries() ORDER BY query_nr").fetchall()
        connection.close()
        print(f"  TPC-H at {scale:g}: part {part + 1} of {parts} made", flush=True)
    queries = {f"q{number}": for_spark(text) for number, text in texts}
    (folder / "queries.json").write_text(json.dumps(queries, indent=1))


if __name__ == "__main__":
    _make(Path(sys.argv[1]), float(sys.argv[2]))
