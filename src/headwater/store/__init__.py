"""The metadata store: declarations, decisions of transactions, ticks, runs and leases."""

from headwater.store.lease import Lease
from headwater.store.records import NEXT, Declaration, LeaseRecord, RunRecord, TickRecord
from headwater.store.sqlite import SqliteStore
from headwater.store.store import Store

__all__ = ["NEXT", "Declaration", "Lease", "LeaseRecord", "RunRecord", "SqliteStore", "Store", "TickRecord"]
