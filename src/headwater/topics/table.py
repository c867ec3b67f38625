"""Table: a topic whose records change rows."""

from __future__ import annotations

from headwater.errors import HeadwaterError
from headwater.position import Position
from headwater.schema import Checked, check, check_keys
from headwater.topics.topic import Topic


class Table(Topic):
    """A keyed changelog, in which the last write of a key wins; or, without a key, a multiset of rows."""

    def upsert(self, rows: object, *, producer: str | None = None, sequence: int | None = None) -> Position:
        """Insert rows, or replace those that have the same key."""
        return self.store(self.checked(rows, "upsert"), "upsert", producer=producer, sequence=sequence)

    def append(self, rows: object, *, producer: str | None = None, sequence: int | None = None) -> Position:
        """Add rows to a table without a key."""
        return self.store(self.checked(rows, "append"), "append", producer=producer, sequence=sequence)

    def delete(self, keys: object, *, producer: str | None = None, sequence: int | None = None) -> Position:
        """Delete by key (dicts with its columns, or scalars if it is one column); whole rows if there is no key."""
        return self.store(self.checked(keys, "delete"), "delete", producer=producer, sequence=sequence)

    def checked(self, rows: object, operation: str) -> Checked:
        """The rows or keys that fit this operation, and those that do not."""
        if operation == "upsert" and not self.key:
            msg = "a table without a key has no rows to replace"
            raise HeadwaterError(msg, where=self.name, hint="use append, or declare the table with key=…")
        if operation == "append" and self.key:
            msg = "rows of a table with a key are not appended"
            raise HeadwaterError(msg, where=self.name, hint="use upsert")
        if operation == "delete" and self.key:
            return check_keys(self.schema, self.key, rows, timezone=self._timezone)
        return check(self.schema, rows, timezone=self._timezone, required=self.key)
