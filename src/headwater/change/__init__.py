"""The algebra of changes: rows with weights, their hashes and keys. Pure functions over Arrow tables.

These are the two columns that turn rows into changes.
"""

from __future__ import annotations

WEIGHT = "_weight"
"""How often a row appears (positive) or disappears (negative); int64, never null, never 0 once consolidated."""

HASH = "_hash"
"""The xxhash64 of a row's key columns (`headwater.change.hash.hash_rows`); int64, never null."""
