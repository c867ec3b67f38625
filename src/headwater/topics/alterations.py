"""Alterations: what has become of a topic's columns since it was declared."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from headwater.schema import Column, Schema


@dataclass(frozen=True, slots=True)
class Alterations:
    """How often a topic was altered, and what of its columns follows from that. Names are those that they have now.

    `ids` are by what columns are known where rows lie, if not by their names; `used` are those of columns that are
    gone, which are never given again. `added` says by which alteration a column came, if it was not there from the
    beginning. `from_dict` and `as_dict` are inverse.
    """

    number: int = 0
    ids: Mapping[str, str] = field(default_factory=dict)
    used: tuple[str, ...] = ()
    added: Mapping[str, int] = field(default_factory=dict)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Alterations:
        """Read what `as_dict` gave."""
        return cls(data["number"], data["ids"], tuple(data["used"]), data["added"])

    def as_dict(self) -> dict[str, Any]:
        """As the store keeps it with the declaration."""
        return {"number": self.number, "ids": dict(self.ids), "used": list(self.used), "added": dict(self.added)}

    def identity(self, column: str) -> str:
        """By what a column is known where rows lie."""
        return self.ids.get(column, column)

    def new_identity(self, column: str, taken: set[str]) -> str:
        """What a new column is to be known by: its name, or, if that was used before, with a number."""
        known = {each.lower() for each in (*taken, *self.used)}
        names = (column if number == 1 else f"{column}#{number}" for number in range(1, len(known) + 2))
        return next(name for name in names if name.lower() not in known)

    def seen(self, schema: Schema, number: int) -> tuple[Column, ...]:
        """The columns that were there when the topic had been altered so often, as they are now."""
        return tuple(column for column in schema if self.added.get(column.name, 0) <= number)


NEVER_ALTERED = Alterations()
