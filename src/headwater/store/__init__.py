"""The metadata store: declarations, decisions of transactions, ticks, runs and leases."""

from headwater.store.faults import Faults, LessThanNone
from headwater.store.lease import Lease, driving
from headwater.store.records import CursorRecord, Declaration, LeaseRecord, RunRecord, TickRecord
from headwater.store.seal import EntryDamaged
from headwater.store.sqlite import SqliteStore
from headwater.store.store import Cursors, Store

__all__ = [
    "CursorRecord",
    "Cursors",
    "Declaration",
    "EntryDamaged",
    "Faults",
    "Lease",
    "LeaseRecord",
    "LessThanNone",
    "RunRecord",
    "SqliteStore",
    "Store",
    "TickRecord",
    "driving",
]
