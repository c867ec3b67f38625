"""What a view can read in a tick: topics, their logs, and other views, as changes."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from headwater.catalog.relation import Relation
from headwater.change.keys import hashes
from headwater.change.weights import appended
from headwater.log import Cut, Log, Records
from headwater.operators.table import keyed_changes, multiset_changes, record_schema
from headwater.state.arrangement import Arrangement
from headwater.tick.state import TickState
from headwater.topics.record_view import as_log_rows


def columns_of(relation: Relation) -> pa.Schema:
    """The columns of a relation's rows in a tick, all of them nullable."""
    return relation.stored


def arranged(relation: Relation) -> pa.Schema:
    """The columns of the arrangement of a table or view."""
    return relation.arranged


def arrangement_of(relation: Relation) -> str:
    """The name under which the rows of a table or view are kept."""
    assert relation.arrangement is not None
    return relation.arrangement


def hashed(relation: Relation) -> tuple[str, ...]:
    """The columns by which a table or view is arranged."""
    return relation.key or relation.by or tuple(relation.columns.names)


def table_change(relation: Relation, log: Log, state: TickState, after: Cut, until: Cut) -> pa.Table:
    """What the records between two cuts change in a table; added to its arrangement."""
    records = table_records(relation, _between(relation, log, after, until))
    change = changed(relation, records, state.before(arrangement_of(relation), arranged(relation)))
    if change.num_rows:
        state.add(arrangement_of(relation), change)
    return change


def changed(relation: Relation, records: pa.Table, old: Arrangement) -> pa.Table:
    """What records change in a table."""
    change = keyed_changes(records, relation.key, old) if relation.key else multiset_changes(records, old)
    return pa.Table.from_arrays(change.columns, schema=arranged(relation))  # with its marks


def table_records(relation: Relation, records: Iterator[Records]) -> pa.Table:
    """Records of a table with their operation and the hash of their key."""
    schema = record_schema(columns_of(relation))
    names = [*relation.columns.names, "_op"]
    batches = [pa.RecordBatch.from_arrays([r.batch.column(n) for n in names], names) for r in records]
    if not batches:
        return schema.empty_table()
    table = pa.Table.from_batches(batches)
    return pa.Table.from_arrays([*table.columns, pa.array(hashes(table, hashed(relation)))], schema=schema)


def stream_rows(relation: Relation, log: Log, after: Cut, until: Cut) -> pa.Table:
    """The records between two cuts as rows of a stream or a log."""
    return as_rows(relation.kind, columns_of(relation), list(_between(relation, log, after, until)))


def as_rows(kind: str, schema: pa.Schema, records: list[Records]) -> pa.Table:
    """Records as rows of a stream or a log, each once."""
    if not records:
        rows = schema.empty_table()
    elif kind == "log":
        rows = as_log_rows(records, schema)
    else:
        columns = [pa.chunked_array([r.batch.column(name) for r in records]) for name in schema.names]
        rows = pa.Table.from_arrays(columns, schema=schema)
    return appended(rows)


def _between(relation: Relation, log: Log, after: Cut, until: Cut) -> Iterator[Records]:
    topic = relation.topic
    assert topic is not None
    for partition in range(topic.partitions):
        start, end = after.end(topic.name, partition), until.end(topic.name, partition)
        if start < end:
            yield from log.read(topic.name, partition, start, end, columns=relation.records)
