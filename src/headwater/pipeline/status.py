"""What there is in a pipeline, and how it does: gathered from the store and the log, without Spark."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any

from headwater.catalog.catalog import Catalog
from headwater.catalog.names import LOG, owner_of
from headwater.catalog.status import (
    DriverStatus,
    ReplacementStatus,
    Status,
    SuspensionStatus,
    TicksStatus,
    TopicStatus,
    ViewStatus,
)
from headwater.catalog.suspension import Suspension, suspensions_of
from headwater.catalog.view import VIEW, ViewDeclaration
from headwater.clock import as_datetime
from headwater.errors import HeadwaterError
from headwater.log import Cut
from headwater.operators.join import PAIRS
from headwater.state.manifest import BEGINS, CHANGES, Manifest
from headwater.store import TickRecord, driving
from headwater.topics import Topic

if TYPE_CHECKING:
    from headwater.pipeline.pipeline import Pipeline

_LATELY = 60
_NEWEST = (1, 10, 100)


def status(pipeline: Pipeline) -> Status:
    """One picture of a pipeline; from any process, at the cost of reading what the store has of the newest tick."""
    return _Picture(pipeline).status()


class _Picture:
    """A pipeline as its newest tick left it."""

    def __init__(self, pipeline: Pipeline) -> None:
        self._pipeline = pipeline
        self._store = pipeline._store
        self._now = pipeline.clock.now()
        self._last = self._store.last_tick()
        self._detail: Mapping[str, Any] = self._last.detail if self._last is not None else {}
        self._kept = self._store.arrangements(self._last.number) if self._last is not None else {}
        self._suspensions = suspensions_of(self._detail)
        self._declared = pipeline._relations.views()
        self._catalog = Catalog.of({}, self._declared)
        parts = pipeline._parts
        self._filling = parts.driver.filling if parts is not None else {}

    def status(self) -> Status:
        topics = tuple(self._topics)
        views = [self._view(view) for view in self._declared if not view.is_candidate]
        return Status(
            self._pipeline.name,
            self._pipeline.path,
            as_datetime(self._now),
            topics,
            tuple(views),
            self._ticks(),
            self._driver(),
        )

    # -- topics

    @cached_property
    def _topics(self) -> list[TopicStatus]:
        declarations = sorted(self._store.declarations().values(), key=lambda each: each.name)
        return [self._topic(each.name, each.kind) for each in declarations if each.kind != VIEW]

    def _topic(self, name: str, kind: str) -> TopicStatus:
        try:
            topic = self._pipeline._topic(name)
            return self._measured(topic)
        except (HeadwaterError, OSError) as error:
            return TopicStatus(name, kind, fault=str(error))

    def _measured(self, topic: Topic) -> TopicStatus:
        size, log, places = topic.size(), topic.log, range(topic.partitions)
        starts = {place: log.start(topic.name, place) for place in places}
        end = size.records + sum(starts.values())
        lately = end - sum(log.offset_at(topic.name, place, self._now - _LATELY * 1_000_000) for place in places)
        cut = self._cut if self._detail.get("topics", {}).get(topic.name) == topic.number else Cut()
        taken = sum(max(cut.end(topic.name, place), start) for place, start in starts.items())
        return TopicStatus(
            topic.name,
            topic.kind,
            topic.key,
            topic.schema.ddl,
            topic.partitions,
            topic.durability,
            size.records,
            size.bytes,
            round(lately / _LATELY, 3),
            end - taken,
            self._dead_letters(topic),
        )

    @cached_property
    def _cut(self) -> Cut:
        return Cut.from_dict(self._last.cut) if self._last is not None else Cut()

    def _dead_letters(self, topic: Topic) -> int:
        letters = topic.declaration.dead_letters().name
        return self._pipeline._topic(letters).size().records if self._store.find(letters) is not None else 0

    # -- views

    def _view(self, view: ViewDeclaration) -> ViewStatus:
        detail = self._kept.get(view.state)
        suspension = self._suspension(view)
        behind = self._behind(view.name) if detail is not None else None
        changed = self._changed(view) if detail is not None else None
        computed = self._detail.get("views", {}).get(view.name, {})
        return ViewStatus(
            view.name,
            view.number,
            view.key,
            view.schema.ddl,
            "suspended" if suspension else "filling" if detail is None else "behind" if behind else "fresh",
            tick=self._at(detail, suspension),
            changed=changed.number if changed is not None else None,
            changed_at=as_datetime(changed.at) if changed is not None else None,
            rows=_rows(detail),
            bytes=self._bytes(view),
            behind=behind,
            filling=self._filling.get(view.name),
            seconds=computed.get("seconds"),
            path=computed.get("path"),
            suspended=_told(suspension),
            replacement=self._replacement(view),
            begins=dict(self._begins(view)),
            unseen=self._pipeline._relations.catalog().unseen(view),
            pairs_all=any(line.work == PAIRS for line in view.plan),
        )

    def _suspension(self, view: ViewDeclaration) -> Suspension | None:
        found = self._suspensions.get(view.name)
        return found if found is not None and found.number == view.number else None

    def _at(self, detail: Mapping[str, Any] | None, suspension: Suspension | None) -> int | None:
        if detail is None or self._last is None:
            return None
        return self._last.number if suspension is None else suspension.since or None

    def _behind(self, name: str) -> int:
        """How many records that a view reads, also through others, no tick has taken in."""
        return sum(each.waiting or 0 for each in self._topics if each.name in self._read_by(name))

    def _read_by(self, name: str) -> set[str]:
        """The topics that a view reads, also through others."""
        found: set[str] = set()
        for each in self._catalog.views[name].inputs:
            found |= self._read_by(each) if each in self._catalog.views else {each.removesuffix(LOG)}
        return found

    def _changed(self, view: ViewDeclaration) -> TickRecord | None:
        """The tick that last changed a row of it, as far as ticks are kept; most often that is not long ago."""
        assert self._last is not None
        until = self._last.number
        for many in (*_NEWEST, until):
            if found := self._store.details(view.state + CHANGES, after=until - many, until=until):
                return self._store.tick(found[-1][0])
        return None

    def _bytes(self, view: ViewDeclaration) -> int | None:
        own = [
            detail
            for name, detail in self._kept.items()
            if owner_of(name) == view.state and not name.endswith(CHANGES)
        ]
        return sum(run["bytes"] for detail in own for run in detail["runs"]) if own else None

    def _replacement(self, view: ViewDeclaration) -> ReplacementStatus | None:
        candidate = self._catalog.candidate(view.name)
        if candidate is None:
            return None
        suspension = self._suspension(candidate)
        if suspension is not None:
            return ReplacementStatus(candidate.number, "suspended", candidate.renewed, _told(suspension))
        if candidate.state not in self._kept:
            return ReplacementStatus(candidate.number, "building", candidate.renewed)
        able = view.name in self._catalog.switching
        return ReplacementStatus(
            candidate.number, "held" if candidate.hold else "ready" if able else "waiting", candidate.renewed
        )

    def _begins(self, view: ViewDeclaration) -> Iterator[tuple[str, Mapping[str, int]]]:
        """From where it, or a view that it reads, has read topics that had lost their beginning."""
        for each in view.inputs:
            if each in self._catalog.views:
                yield from self._begins(self._catalog.views[each])
        yield from self._kept.get(view.state, {}).get(BEGINS, {}).items()

    # -- ticks

    def _ticks(self) -> TicksStatus | None:
        last, kept = self._last, self._store.ticks()
        if last is None or not kept:
            return None
        return TicksStatus(
            last.number,
            as_datetime(last.at),
            last.detail.get("seconds", 0.0),
            last.detail.get("rows_in", 0),
            sum(each["changed"] for each in last.detail.get("views", {}).values()),
            last.detail.get("rows_read", 0),
            kept[0][0],
            len(kept),
        )

    def _driver(self) -> DriverStatus:
        lease = self._store.lease()
        if not lease.holder:
            return DriverStatus(running=False)
        path = os.path.join(self._pipeline.path, f"lease.{lease.epoch}")
        since = datetime.fromtimestamp(os.path.getmtime(path), tz=UTC) if os.path.exists(path) else None
        running = driving(self._store, self._pipeline._liveness) is not None
        return DriverStatus(running, lease.epoch, lease.holder.get("pid"), lease.holder.get("host"), since)


def _rows(detail: Mapping[str, Any] | None) -> int | None:
    """How many rows a view has, if all of its runs tell."""
    if detail is None:
        return None
    weights = [run.weight for run in Manifest.from_dict(detail).runs]
    known = [weight for weight in weights if weight is not None]
    return sum(known) if len(known) == len(weights) else None


def _told(suspension: Suspension | None) -> SuspensionStatus | None:
    if suspension is None:
        return None
    return SuspensionStatus(suspension.since, suspension.reason, suspension.hint, suspension.cause)
