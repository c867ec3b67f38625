"""New orders with their lines, made so that the queries of TPC-H notice them.

Most queries look at a few months, parts or suppliers only, so dates are drawn from those months, and the caller
says which customers and parts to prefer. Prices, flags and states follow from the rest as in the original data.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tests.tpch.money import Numbers, cents, decimals

_MONTHS = (
    ("1992-01-01", 2300),
    ("1993-07-01", 90),
    ("1993-10-01", 90),
    ("1994-01-01", 330),
    ("1995-02-20", 22),
    ("1995-02-20", 22),
    ("1995-03-15", 600),
    ("1995-08-10", 40),
    ("1995-12-25", 60),
)
"""First days and numbers of days in which orders are placed: any time, then q4, q10, q5, q3 twice, q7, q14, q15."""

_FIRST_DAYS = np.array([day for day, _ in _MONTHS], "datetime64[D]")
_DAYS = np.array([days for _, days in _MONTHS])
_TODAY = np.datetime64("1995-06-17")
"""What was shipped by then has arrived or was sent back; the rest is still open."""

_QUARTER = (np.datetime64("1996-01-01"), np.datetime64("1996-04-01"))
"""In which q15 looks for the supplier with the highest revenue."""

_MOST_LINES = 7


@dataclass(frozen=True)
class Preferred:
    """Whom half of the orders are about."""

    customers: Numbers
    parts: Numbers


class NewOrders:
    """Some orders to be and their lines; the rows they are modelled on are those of the tables."""

    def __init__(
        self, tables: dict[str, pa.Table], keys: Numbers, preferred: Preferred, chance: np.random.Generator
    ) -> None:
        self._tables = tables
        self._keys = keys
        self._preferred = preferred
        self._chance = chance
        self._big = chance.random(len(keys)) < 0.2
        """Large enough for q18, and to be among the first of q3 and q10."""
        sizes = np.where(self._big, _MOST_LINES, chance.integers(1, _MOST_LINES + 1, len(keys)))
        self._order = np.repeat(np.arange(len(keys)), sizes)
        """Of each line: the place of its order."""
        self._line = np.arange(len(self._order)) - np.repeat(np.cumsum(sizes) - sizes, sizes) + 1

    def made(self) -> tuple[pa.Table, pa.Table]:
        """Rows for `orders` and for `lineitem`."""
        months = self._chance.integers(0, len(_MONTHS), len(self._keys))
        ordered = _FIRST_DAYS[months] + (self._chance.random(len(months)) * _DAYS[months]).astype(int)
        dates = self._dates(ordered[self._order])
        amounts = self._amounts(dates["l_shipdate"])
        lines = self._lines(dates, amounts)
        return self._orders(ordered, dates["l_shipdate"], amounts), lines

    def _dates(self, ordered: Any) -> dict[str, Any]:
        """Of the lines of an order the first one is always late and the others seldom, for q21."""
        count = len(ordered)
        shipped = ordered + self._chance.integers(1, 60, count)
        received = shipped + self._chance.integers(2, 31, count)
        late = (self._line == 1) | (self._chance.random(count) < 0.15)
        promised = np.where(late, received - 1, received + self._chance.integers(1, 20, count))
        return {"l_shipdate": shipped, "l_commitdate": promised, "l_receiptdate": received}

    def _amounts(self, shipped: Any) -> dict[str, Numbers]:
        """Numbers of each line, money in cents."""
        count = len(shipped)
        quantity = np.where(
            self._chance.random(count) < 0.3,
            self._chance.integers(1, 5, count),
            self._chance.integers(5, 51, count),
        )
        quantity = np.where(self._big[self._order], self._chance.integers(44, 51, count), quantity)
        pairs = self._pairs(shipped)
        part = self._tables["part"]
        places = pc.index_in(pairs["ps_partkey"], part["p_partkey"]).to_numpy()
        return {
            "part": pairs["ps_partkey"].to_numpy(),
            "supplier": pairs["ps_suppkey"].to_numpy(),
            "quantity": quantity,
            "price": quantity * cents(part["p_retailprice"])[places],
            "discount": self._chance.integers(0, 11, count),
            "tax": self._chance.integers(0, 9, count),
        }

    def _pairs(self, shipped: Any) -> pa.Table:
        """A part and who supplies it: half of them preferred; all by one supplier in the quarter of q15."""
        partsupp = self._tables["partsupp"]
        preferred = np.flatnonzero(pc.is_in(partsupp["ps_partkey"], pa.array(self._preferred.parts)).to_numpy())
        places = _half(preferred, np.arange(partsupp.num_rows), len(shipped), self._chance)
        of_leader = np.flatnonzero(partsupp["ps_suppkey"].to_numpy() == self._leader())
        in_quarter = (shipped >= _QUARTER[0]) & (shipped < _QUARTER[1])
        places = np.where(in_quarter, self._chance.choice(of_leader, len(shipped)), places)
        return partsupp.take(pa.array(places))

    def _leader(self) -> int:
        """The first or the second by lines shipped in the quarter of q15, so that they overtake each other."""
        shipped = self._tables["lineitem"]["l_shipdate"].to_numpy()
        lines = self._tables["lineitem"].filter(pa.array((shipped >= _QUARTER[0]) & (shipped < _QUARTER[1])))
        revenue = lines.group_by("l_suppkey").aggregate([("l_extendedprice", "sum")])
        order = [("l_extendedprice_sum", "descending"), ("l_suppkey", "ascending")]
        return int(revenue.sort_by(order)["l_suppkey"][int(self._chance.integers(2))].as_py())

    def _lines(self, dates: dict[str, Any], amounts: dict[str, Numbers]) -> pa.Table:
        count = len(self._line)
        flags = np.where(self._chance.random(count) < 0.7, "R", "A")
        in_person = self._chance.random(count) < 0.5
        model = _some(self._tables["lineitem"], count, self._chance)
        mode = np.where(in_person, "AIR", np.where(self._line == 1, "MAIL", model["l_shipmode"].to_numpy()))
        instruct = np.where(in_person, "DELIVER IN PERSON", model["l_shipinstruct"].to_numpy())
        return replaced(
            model,
            {
                "l_orderkey": self._keys[self._order],
                "l_linenumber": self._line,
                "l_partkey": amounts["part"],
                "l_suppkey": amounts["supplier"],
                "l_quantity": decimals(amounts["quantity"] * 100),
                "l_extendedprice": decimals(amounts["price"]),
                "l_discount": decimals(amounts["discount"]),
                "l_tax": decimals(amounts["tax"]),
                "l_returnflag": np.where(dates["l_receiptdate"] <= _TODAY, flags, "N"),
                "l_linestatus": np.where(dates["l_shipdate"] <= _TODAY, "F", "O"),
                "l_shipinstruct": instruct,
                "l_shipmode": mode,
                **dates,
            },
        )

    def _orders(self, ordered: Any, shipped: Any, amounts: dict[str, Numbers]) -> pa.Table:
        count = len(self._keys)
        everyone = self._tables["customer"]["c_custkey"].to_numpy()
        charged = amounts["price"] * (100 + amounts["tax"]) * (100 - amounts["discount"]) // 10_000
        totals = np.zeros(count, np.int64)
        np.add.at(totals, self._order, charged)
        closed = np.bincount(self._order, shipped <= _TODAY, count) / np.bincount(self._order, minlength=count)
        return replaced(
            _some(self._tables["orders"], count, self._chance),
            {
                "o_orderkey": self._keys,
                "o_custkey": _half(self._preferred.customers, everyone, count, self._chance),
                "o_orderstatus": np.where(closed == 1, "F", np.where(closed == 0, "O", "P")),
                "o_totalprice": decimals(totals),
                "o_orderdate": ordered,
            },
        )


def replaced(table: pa.Table, columns: dict[str, Any]) -> pa.Table:
    """The table with other values in some of its columns."""
    for name, values in columns.items():
        place = table.column_names.index(name)
        field = table.field(place)
        column = values if isinstance(values, pa.Array | pa.ChunkedArray) else pa.array(values)
        table = table.set_column(place, field, column.cast(field.type))
    return table


def _some(table: pa.Table, count: int, chance: np.random.Generator) -> pa.Table:
    return table.take(pa.array(chance.integers(0, table.num_rows, count)))


def _half(these: Numbers, those: Numbers, count: int, chance: np.random.Generator) -> Numbers:
    """Each drawn from these or those; from those if there are none of these."""
    drawn = chance.choice(those, count)
    return np.where(chance.random(count) < 0.5, chance.choice(these, count), drawn) if len(these) else drawn
