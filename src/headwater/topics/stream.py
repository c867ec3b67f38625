"""Stream: a topic of events that are only ever appended."""

from __future__ import annotations

from headwater.position import Position
from headwater.schema import Checked, check
from headwater.topics.topic import Topic


class Stream(Topic):
    """An append-only topic."""

    def append(self, rows: object, *, producer: str | None = None, sequence: int | None = None) -> Position:
        """Append rows (dicts, pyarrow, pandas or Polars); returns when they are as lasting as was declared.

        With `producer` and `sequence`, sending the same again stores nothing and returns the same position.
        """
        return self.store(self.checked(rows), "append", producer=producer, sequence=sequence)

    def checked(self, rows: object) -> Checked:
        """The rows that fit, and those that do not."""
        return check(self.schema, rows, timezone=self._timezone, required=self.key)
