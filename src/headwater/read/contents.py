"""Contents: the rows of relations, from the arrangements and the log."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from headwater.catalog.relation import Relation
from headwater.change import WEIGHT
from headwater.change.gather import Indices, gather
from headwater.change.keys import hashed_schema
from headwater.log import Cut, Log, Records
from headwater.read.batches import bounded, grouped, rows_of_a_batch
from headwater.read.version import Version
from headwater.state.arrangement import Arrangement
from headwater.state.files import StateFiles
from headwater.state.manifest import Manifest
from headwater.store import LessThanNone
from headwater.topics.record_view import as_log_rows

_WEIGHT = pa.field(WEIGHT, pa.int64(), nullable=False)
_NOTHING: Mapping[str, Any] = {"runs": []}


class Contents:
    """Rows with the columns that readers get; in weighted tables `_weight` follows them. Safe for threads.

    The files of the version must be held while a method runs; the tables it returned stay valid for ever.
    """

    def __init__(self, log: Log, files: StateFiles) -> None:
        self._log = log
        self._files = files

    def rows(self, relation: Relation, version: Version) -> pa.Table:
        """All rows at a version, each as often as it is in."""
        if relation.arrangement is None:
            return self.records(relation, Cut(), version.cut)
        return repeated(self.weighted(relation, version), relation)

    def weighted(self, relation: Relation, version: Version) -> pa.Table:
        """All rows at a version, with their weights."""
        if relation.arrangement is None:
            return once(self.records(relation, Cut(), version.cut))
        return self.change(relation, version.arrangements.get(relation.arrangement, _NOTHING))

    def probed(self, relation: Relation, version: Version, hashes: Indices) -> pa.Table:
        """The rows at a version whose keys have these hashes, with their weights."""
        detail = version.arrangements.get(relation.arrangement or "", _NOTHING)
        return _weighted(relation, self._arrangement(relation, detail).probe(hashes))

    def change(self, relation: Relation, detail: Mapping[str, Any]) -> pa.Table:
        """All rows of the runs that a detail names, with their weights."""
        tables = [_weighted(relation, table) for table in self._arrangement(relation, detail).scan()]
        return pa.concat_tables(tables) if tables else _weighted_columns(relation).empty_table()

    def records(self, relation: Relation, after: Cut, until: Cut) -> pa.Table:
        """The records of a topic between two cuts, or from where its log begins, in the order of each partition."""
        found = list(self._recorded(relation, after, until))
        return as_log_rows(found, relation.columns) if found else relation.columns.empty_table()

    def batches(self, relation: Relation, detail: Mapping[str, Any]) -> Iterator[pa.Table]:
        """The same as `change`, in tables of bounded size, none of them empty."""
        arrangement = self._arrangement(relation, detail)
        for table in arrangement.scan(rows=rows_of_a_batch(arrangement.rows, arrangement.bytes)):
            yield from bounded(_weighted(relation, table))

    def all_batches(self, relation: Relation, version: Version) -> Iterator[pa.Table]:
        """The same as `weighted`, in tables of bounded size, none of them empty."""
        if relation.arrangement is None:
            return self.record_batches(relation, Cut(), version.cut)
        return self.batches(relation, version.arrangements.get(relation.arrangement, _NOTHING))

    def record_batches(self, relation: Relation, after: Cut, until: Cut) -> Iterator[pa.Table]:
        """The same as `records`, with weights, in tables of bounded size, none of them empty."""
        for group in grouped(self._recorded(relation, after, until)):
            yield from bounded(once(as_log_rows(group, relation.columns)))

    def _recorded(self, relation: Relation, after: Cut, until: Cut) -> Iterator[Records]:
        if relation.topic is not None:
            name = relation.topic.name
            for partition in range(relation.topic.partitions):
                start, end = after.end(name, partition), until.end(name, partition)
                if start < end:
                    yield from self._log.read(name, partition, start, end, columns=relation.records)

    def lost_behind(self, relation: Relation, cut: Cut) -> bool:
        """Whether records that came after a cut are gone: the topic's log begins later."""
        topic = relation.topic
        return topic is not None and any(
            self._log.start(topic.name, partition) > cut.end(topic.name, partition)
            for partition in range(topic.partitions)
        )

    def _arrangement(self, relation: Relation, detail: Mapping[str, Any]) -> Arrangement:
        return Arrangement(self._files, hashed_schema(relation.stored), Manifest.from_dict(detail).runs)


def repeated(weighted: pa.Table, relation: Relation) -> pa.Table:
    """Each row as often as its weight says, without the weight; `LessThanNone` if that cannot be."""
    weights = weighted.column(WEIGHT).to_numpy()
    if (weights < 0).any():
        raise LessThanNone(relation.name)
    rows = weighted.drop_columns([WEIGHT])
    return rows if (weights == 1).all() else gather(rows, np.repeat(np.arange(len(weights)), weights))


def once(rows: pa.Table) -> pa.Table:
    """Each row with weight 1."""
    return rows.append_column(_WEIGHT, pa.array(np.ones(rows.num_rows, np.int64)))


def _weighted_columns(relation: Relation) -> pa.Schema:
    return pa.schema([*relation.columns, _WEIGHT])


def _weighted(relation: Relation, rows: pa.Table) -> pa.Table:
    """Rows of an arrangement without their hash; what is declared NOT NULL is said to be so again."""
    columns = [*rows.columns[: len(relation.columns)], rows.column(WEIGHT)]
    return pa.Table.from_arrays(columns, schema=_weighted_columns(relation))
