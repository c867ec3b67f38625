"""The last stage of a relation in the large path: its own rows, as a worker makes them of a range of hashes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from headwater.catalog.relation import Relation
from headwater.change import HASH
from headwater.operators.table import record_schema
from headwater.plan.physical import Evaluate, Given, Made
from headwater.state.arrangement import Arrangement
from headwater.tick.exchange import ORDER
from headwater.tick.output import view_change
from headwater.tick.relations import changed, columns_of


@dataclass(frozen=True)
class Settling:
    """What is shared is kept consolidated, as it came."""

    def operate(
        self, inputs: Sequence[Given], states: Sequence[Arrangement], evaluate: Evaluate, *, filling: bool
    ) -> Made:
        """Consolidate it."""
        return Made([each.settled().change for each in inputs], [], 0)


@dataclass(frozen=True)
class Showing:
    """The rows of a view, named and checked; its state has them."""

    relation: Relation

    def operate(
        self, inputs: Sequence[Given], states: Sequence[Arrangement], evaluate: Evaluate, *, filling: bool
    ) -> Made:
        """Name and check them."""
        change = inputs[0].change.drop_columns([HASH])
        return Made([None, view_change(self.relation, change, states[0])], [], 0)


@dataclass(frozen=True)
class Recording:
    """The rows of a table, from records with their places in the log; its state has them."""

    relation: Relation

    def operate(
        self, inputs: Sequence[Given], states: Sequence[Arrangement], evaluate: Evaluate, *, filling: bool
    ) -> Made:
        """Take the records in, in the order of the log."""
        parts = inputs[0].parts
        table = pa.concat_tables(parts) if parts else records_schema(self.relation).empty_table()
        order = pa.array(np.argsort(table.column(ORDER).to_numpy(), kind="stable"))
        return Made([None, changed(self.relation, table.take(order).drop_columns([ORDER]), states[0])], [], 0)


def records_schema(relation: Relation) -> pa.Schema:
    """The columns of spooled records of a table."""
    return record_schema(columns_of(relation)).append(pa.field(ORDER, pa.int64()))
