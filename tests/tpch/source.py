"""TPC-H from DuckDB's extension: eight tables as Arrow and 22 queries in Spark's dialect.

The extension is built for another DuckDB than the product's, so it lives in an environment of its own, which is
made on demand and kept together with the data under `.venv/tpch`.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

_HOME = Path(__file__).parents[2] / ".venv" / "tpch"
_PYTHON = _HOME / "bin" / "python"
_EXPORT = Path(__file__).with_name("export.py")
_PACKAGES = ("duckdb==1.5.5", "duckdb-extension-tpch==1.5.5", "sqlglot==30.30.0")


class Unobtainable(Exception):
    """The environment or the data cannot be made here, with what the failing command said."""


@dataclass(frozen=True)
class Declared:
    """A table as Headwater is told of it."""

    schema: str
    key: tuple[str, ...]


TABLES = {
    "region": Declared("r_regionkey INT, r_name STRING, r_comment STRING", ("r_regionkey",)),
    "nation": Declared("n_nationkey INT, n_name STRING, n_regionkey INT, n_comment STRING", ("n_nationkey",)),
    "supplier": Declared(
        "s_suppkey BIGINT, s_name STRING, s_address STRING, s_nationkey INT, s_phone STRING, "
        "s_acctbal DECIMAL(15,2), s_comment STRING",
        ("s_suppkey",),
    ),
    "part": Declared(
        "p_partkey BIGINT, p_name STRING, p_mfgr STRING, p_brand STRING, p_type STRING, p_size INT, "
        "p_container STRING, p_retailprice DECIMAL(15,2), p_comment STRING",
        ("p_partkey",),
    ),
    "partsupp": Declared(
        "ps_partkey BIGINT, ps_suppkey BIGINT, ps_availqty BIGINT, ps_supplycost DECIMAL(15,2), ps_comment STRING",
        ("ps_partkey", "ps_suppkey"),
    ),
    "customer": Declared(
        "c_custkey BIGINT, c_name STRING, c_address STRING, c_nationkey INT, c_phone STRING, "
        "c_acctbal DECIMAL(15,2), c_mktsegment STRING, c_comment STRING",
        ("c_custkey",),
    ),
    "orders": Declared(
        "o_orderkey BIGINT, o_custkey BIGINT, o_orderstatus STRING, o_totalprice DECIMAL(15,2), "
        "o_orderdate DATE, o_orderpriority STRING, o_clerk STRING, o_shippriority INT, o_comment STRING",
        ("o_orderkey",),
    ),
    "lineitem": Declared(
        "l_orderkey BIGINT, l_partkey BIGINT, l_suppkey BIGINT, l_linenumber BIGINT, l_quantity DECIMAL(15,2), "
        "l_extendedprice DECIMAL(15,2), l_discount DECIMAL(15,2), l_tax DECIMAL(15,2), l_returnflag STRING, "
        "l_linestatus STRING, l_shipdate DATE, l_commitdate DATE, l_receiptdate DATE, l_shipinstruct STRING, "
        "l_shipmode STRING, l_comment STRING",
        ("l_orderkey", "l_linenumber"),
    ),
}


@dataclass(frozen=True)
class Source:
    """The data at one scale factor, and the queries q1 to q22."""

    tables: dict[str, pa.Table]
    queries: dict[str, str]


def source(scale: float = 0.01) -> Source:
    """The data and the queries, from the last run if they were made then. `Unobtainable` if they cannot be made."""
    folder = _HOME / f"data-sf{scale:g}" / _recipe()
    if not folder.exists():
        _environment()
        _fill(folder, scale)
    tables = {name: pq.read_table(folder / f"{name}.parquet") for name in TABLES}
    return Source(tables, json.loads((folder / "queries.json").read_text()))


def _recipe() -> str:
    """Changes with whatever would make other data or queries."""
    recipe = _EXPORT.read_bytes() + repr(_PACKAGES).encode()
    return hashlib.sha256(recipe).hexdigest()[:8]


def _environment() -> None:
    uv = shutil.which("uv", path=str(Path(sys.executable).parent)) or shutil.which("uv")
    if uv is None:
        msg = "there is no uv; run make setup"
        raise Unobtainable(msg)
    if not _PYTHON.exists():
        _run(uv, "venv", "--quiet", "--allow-existing", "--python", sys.executable, str(_HOME))
    _run(uv, "pip", "install", "--quiet", "--python", str(_PYTHON), *_PACKAGES)


def _fill(folder: Path, scale: float) -> None:
    """All of the folder or nothing: another run may be looking at it, or filling it as well."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="making-", dir=folder.parent) as temporary:
        made = Path(temporary, "made")
        made.mkdir()
        _run(str(_PYTHON), str(_EXPORT), str(made), str(scale))
        try:
            made.rename(folder)
        except OSError:
            if not folder.exists():
                raise


def _run(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        msg = f"{Path(command[0]).name} failed with {done.returncode}: {done.stderr.strip()[-1000:]}"
        raise Unobtainable(msg)
