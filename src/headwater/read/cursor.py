"""Cursor: a reader's place in the changes of a relation, which outlives its process."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from headwater.catalog.relation import Relation
from headwater.errors import Fenced, HeadwaterError, VersionExpired
from headwater.store import CursorRecord, Cursors

_LONGEST = 200


class Cursor:
    """A cursor in the store, as one reader has opened it. Used by one thread at a time.

    Opening takes it: whoever read by it before gets `Fenced` when acknowledging, and what that reader has not
    acknowledged comes to this one. It is made when it begins, so one that never did leaves nothing behind.
    """

    def __init__(self, cursors: Cursors, name: str, relation: Relation, now: Callable[[], int]) -> None:
        self.name = name
        self._cursors = cursors
        self._relation = relation
        self._now = now
        self.record = self._taken()
        """What the store has of it; None until it begins."""

    def _taken(self) -> CursorRecord | None:
        while (found := self._cursors.find(self.name)) is not None:
            if found.relation != self._relation.name:
                msg = f"the cursor {self.name!r} is on {found.relation}"
                raise HeadwaterError(msg, where=self._relation.name, hint="give each relation a cursor of its own")
            if found.given_up:
                return found
            if (taken := self._cursors.change(found, found)) is not None:
                return taken
        return None

    @property
    def tick(self) -> int:
        """Up to which tick everything is acknowledged, or with whose version it is to be filled; 0: it begins."""
        return self.record.tick if self.record is not None else 0

    @property
    def is_filling(self) -> bool:
        """Whether the rows of a version are not acknowledged yet."""
        return self.record is not None and self.record.filling

    @property
    def is_lost(self) -> bool:
        """Whether it was given up, removed, or taken by another reader."""
        found, known = self._cursors.find(self.name), self.record
        if found is None or known is None:
            return found is not known
        return found.revision != known.revision or bool(found.given_up)

    def begin(
        self,
        relation: Relation,
        tick: int,
        *,
        filling: bool,
        changes: Sequence[str],
        ends: Mapping[str, int] | None,
    ) -> bool:
        """Have kept what changes after a tick, and, to fill with it, its version; False if it is not kept."""
        now = self._now()
        needed = tuple(changes)
        made = CursorRecord(self.name, relation.name, relation.number, now, tick, filling, needed, ends, moved=now)
        self.record = self._cursors.change(None, made)
        return self.record is not None

    def acknowledge(self, tick: int, ends: Mapping[str, int] | None) -> bool:
        """Note that everything up to and with a tick, or up to these offsets, was taken in.

        False if somebody else has it, or nobody. A power cut may take the note back: then some of it comes again.
        """
        assert self.record is not None
        becomes = replace(self.record, tick=tick, filling=False, ends=ends, moved=self._now())
        acknowledged = self._cursors.change(self.record, becomes, durable=False)
        if acknowledged is not None:
            self.record = acknowledged
        return acknowledged is not None

    def lost(self, oldest: int) -> HeadwaterError:
        """Why it cannot go on."""
        found = self._cursors.find(self.name)
        if found is None:
            msg = f"the cursor {self.name!r} was removed, or {self._relation.name} was dropped"
            return HeadwaterError(msg, where=self._relation.name, hint="begin again if that is meant")
        if found.given_up:
            msg = f"the cursor {self.name!r} was given up at tick {found.tick}: {found.given_up}"
            hint = "begin anew with another cursor and since=0, into an empty target"
            if oldest:
                hint = f"the oldest version is {oldest}; {hint}"
            return VersionExpired(msg, oldest=oldest, where=self._relation.name, hint=hint)
        msg = f"another reader has taken the cursor {self.name!r}"
        hint = "let one reader at a time use it; what this one has not acknowledged comes to the other"
        return Fenced(msg, where=self._relation.name, hint=hint)


def checked_cursor(name: object) -> str | None:
    """The name of a cursor, or None; an error if it cannot be one."""
    if name is None or (isinstance(name, str) and 0 < len(name) <= _LONGEST and name.isprintable()):
        return name
    msg = f"cursor is {name!r}"
    raise HeadwaterError(msg, hint=f"it is a name of 1 to {_LONGEST} printable characters")
