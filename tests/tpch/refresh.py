"""A seeded stream of changes to TPC-H, each tick a set of them that is whole: no line without its order.

Parts, suppliers and customers move in and out of what the queries look for, so that nearly every result changes
with every tick.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tests.tpch.money import Numbers, decimals
from tests.tpch.new_orders import NewOrders, Preferred, replaced
from tests.tpch.source import TABLES

_LOOKS = pa.table(
    {
        "p_name": [
            "forest green linen",
            "navy green snow",
            "forest azure khaki",
            "peru plum rose",
            "green misty puff",
        ],
        "p_brand": ["Brand#12", "Brand#32", "Brand#14", "Brand#23", "Brand#34"],
        "p_type": [
            "LARGE PLATED BRASS",
            "ECONOMY ANODIZED STEEL",
            "PROMO PLATED BRASS",
            "SMALL BRUSHED COPPER",
            "ECONOMY ANODIZED STEEL",
        ],
        "p_size": pa.array([3, 15, 15, 9, 14], pa.int32()),
        "p_container": ["SM CASE", "JUMBO PKG", "WRAP BAG", "MED BOX", "LG BOX"],
    }
)
"""What parts look like that q2, q8, q9, q14, q16, q17, q19 and q20 are about."""

_NATIONS = ("BRAZIL", "CANADA", "CHINA", "FRANCE", "GERMANY", "SAUDI ARABIA")
"""Which q2, q5, q7, q8, q11, q20 and q21 are about."""

_COMPLAINT = "slyly Customer even Complaints"
_SEGMENT = "BUILDING"


@dataclass(frozen=True)
class Change:
    """Rows of one table that are new or replaced, then the keys of rows that are gone; no key is in both."""

    table: str
    upserts: pa.Table
    deletes: pa.Table


class Refresh:
    """The stream. The same tables and the same seed give the same changes."""

    def __init__(self, tables: dict[str, pa.Table], *, seed: int) -> None:
        self.tables = dict(tables)
        """What the tables hold after the changes given so far."""
        self._chance = np.random.default_rng(seed)
        self._dressed = np.array([], np.int64)
        """Parts that were given a look."""
        self._fresh = int(pc.max(tables["orders"]["o_orderkey"]).as_py()) + 1
        self._free = np.array([], np.int64)
        """Keys of orders that are gone, to be used again."""
        named = pc.index_in(pa.array(_NATIONS), tables["nation"]["n_name"])
        self._nations = tables["nation"]["n_nationkey"].take(named).to_numpy()

    def ticks(self) -> Iterator[list[Change]]:
        """Changes without end, tick by tick."""
        while True:
            yield [
                self._parts(20),
                self._suppliers(4),
                self._supplies(60),
                self._customers(25),
                *self._orders(gone=40, new=60),
            ]

    def _parts(self, count: int) -> Change:
        """Half of them are given a look, the others take after some other part."""
        places = self._places("part", count)
        part = self.tables["part"]
        looks = _LOOKS.take(pa.array(self._chance.integers(0, _LOOKS.num_rows, count // 2)))
        others = part.take(pa.array(self._places("part", count - count // 2))).select(_LOOKS.column_names)
        rows = part.take(pa.array(places))
        keys = rows["p_partkey"].to_numpy()
        self._dressed = np.concatenate([np.setdiff1d(self._dressed, keys), keys[: count // 2]])
        values = pa.concat_tables([looks, others]).combine_chunks()
        return self._updated("part", places, replaced(rows, dict(zip(values.column_names, values, strict=True))))

    def _suppliers(self, count: int) -> Change:
        places = self._places("supplier", count)
        rows = self.tables["supplier"].take(pa.array(places))
        nations = self._chance.choice(self._nations, count)
        comments = self._chance.permutation(self.tables["supplier"]["s_comment"].to_numpy())[:count]
        changed = {
            "s_nationkey": nations,
            "s_phone": _phones(rows["s_phone"], nations),
            "s_acctbal": self._balances(count),
            "s_comment": np.where(self._chance.random(count) < 0.3, _COMPLAINT, comments),
        }
        return self._updated("supplier", places, replaced(rows, changed))

    def _supplies(self, count: int) -> Change:
        """Half of them of parts with a look; some get very few or very many, cheap or dear."""
        parts = self.tables["partsupp"]["ps_partkey"].to_numpy()
        dressed = self._chance.permutation(np.flatnonzero(np.isin(parts, self._dressed)))[: count // 2]
        places = np.union1d(dressed, self._places("partsupp", count - len(dressed)))
        rows = self.tables["partsupp"].take(pa.array(places))
        few = self._chance.random(len(places)) < 0.5
        many = self._chance.integers(5_000, 10_000, len(places))
        changed = {
            "ps_availqty": np.where(few, self._chance.integers(1, 40, len(places)), many),
            "ps_supplycost": decimals(self._chance.integers(100, 100_001, len(places))),
        }
        return self._updated("partsupp", places, replaced(rows, changed))

    def _customers(self, count: int) -> Change:
        places = self._places("customer", count)
        rows = self.tables["customer"].take(pa.array(places))
        nations = self._chance.choice(self._nations, count)
        segments = self._chance.permutation(self.tables["customer"]["c_mktsegment"].to_numpy())[:count]
        changed = {
            "c_nationkey": nations,
            "c_phone": _phones(rows["c_phone"], nations),
            "c_acctbal": self._balances(count),
            "c_mktsegment": np.where(self._chance.random(count) < 0.5, _SEGMENT, segments),
        }
        return self._updated("customer", places, replaced(rows, changed))

    def _orders(self, *, gone: int, new: int) -> tuple[Change, Change]:
        """Orders go, the newest ones more often, and others come, some under keys that were free since before."""
        keys = self.tables["orders"]["o_orderkey"].to_numpy()
        newest = self._chance.choice(keys[-10 * gone :], gone // 2, replace=False)
        leaving = np.union1d(newest, self._chance.choice(keys, gone - gone // 2, replace=False))
        reused = self._free[: new // 4]
        fresh = np.arange(self._fresh, self._fresh + new - len(reused))
        self._fresh += len(fresh)
        self._free = np.concatenate([self._free[len(reused) :], leaving])
        customer = self.tables["customer"]
        preferred = customer.filter(pc.equal(customer["c_mktsegment"], _SEGMENT))["c_custkey"].to_numpy()
        made = NewOrders(
            self.tables, np.concatenate([reused, fresh]), Preferred(preferred, self._dressed), self._chance
        )
        orders, lines = made.made()
        return (
            self._exchanged("orders", "o_orderkey", leaving, orders),
            self._exchanged("lineitem", "l_orderkey", leaving, lines),
        )

    def _exchanged(self, name: str, column: str, leaving: Numbers, coming: pa.Table) -> Change:
        table = self.tables[name]
        leave = pc.is_in(table[column], pa.array(leaving))
        self.tables[name] = pa.concat_tables([table.filter(pc.invert(leave)), coming])
        return Change(name, coming, table.filter(leave).select(TABLES[name].key))

    def _updated(self, name: str, places: Numbers, rows: pa.Table) -> Change:
        table = self.tables[name]
        rest = np.setdiff1d(np.arange(table.num_rows), places)
        self.tables[name] = pa.concat_tables([table.take(pa.array(rest)), rows])
        return Change(name, rows, table.schema.empty_table().select(TABLES[name].key))

    def _places(self, name: str, count: int) -> Numbers:
        return self._chance.choice(self.tables[name].num_rows, count, replace=False)

    def _balances(self, count: int) -> pa.Array:
        return decimals(self._chance.integers(-99_999, 1_000_000, count))


def _phones(phones: pa.ChunkedArray, nations: Numbers) -> pa.ChunkedArray:
    """A phone number begins with ten more than the nation's key."""
    codes = pa.array(nations + 10).cast(pa.string())
    return pc.binary_join_element_wise(codes, pc.utf8_slice_codeunits(phones, 2), "")
