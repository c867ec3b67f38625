"""The metadata store: declarations, decisions of transactions, ticks, runs and leases."""

from headwater.store.lease import Lease
from headwater.store.records import NEXT, SHARED, Declaration, LeaseRecord, RunRecord, TickRecord
from headwater.store.sqlite import SqliteStore
from headwater.store.store import Store

__all__ = [
    "NEXT",
    "SHARED",
    "Declaration",
    "Lease",
    "LeaseRecord",
    "RunRecord",
    "SqliteStore",
    "Store",
    "TickRecord",
]
