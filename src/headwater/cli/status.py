"""`headwater status`: what there is, how fresh it is, and who drives."""

from __future__ import annotations

import argparse
import json
import textwrap
from collections.abc import Iterator
from typing import TYPE_CHECKING

from headwater.catalog.status import begun, unseen_columns
from headwater.cli.text import Columns, count, size
from headwater.cli.where import add_where, opened

if TYPE_CHECKING:
    from headwater import Status
    from headwater.catalog.status import DriverStatus, TopicStatus, ViewStatus

_WIDTH = 80
_TOPICS = ["topic", "kind", "records", "bytes", "a second", "waiting", "set aside"]
_VIEWS = ["view", "state", "rows", "bytes", "tick", "changed", "seconds"]
_REPLACEMENT = {
    "building": "the next tick builds the new version",
    "held": "the new version is built, and waits for `headwater views switch`",
    "waiting": "the new version is built, and waits until no view needs the old columns",
    "ready": "the next tick puts the new version in its place",
    "suspended": "the new version is suspended",
}


def arguments(parser: argparse.ArgumentParser) -> None:
    """Nothing of its own."""
    add_where(parser)


def run(arguments: argparse.Namespace) -> int:
    """Print one picture of the pipeline."""
    with opened(arguments) as pipeline:
        status = pipeline.status()
    if arguments.json:
        print(json.dumps(status.as_dict(), indent=2))
    else:
        print("\n".join(lines(status)))
    return 0


def lines(status: Status) -> Iterator[str]:
    """The picture, 80 columns wide as far as names allow."""
    yield from _wrapped(f"{status.name} in {status.path}")
    yield from _wrapped(driving(status.driver))
    yield from _wrapped(_ticks(status))
    yield from _table(_TOPICS, [_topic(topic) for topic in status.topics])
    yield from _table(_VIEWS, [_view(view) for view in status.views])
    notes = [note for view in status.views for note in notes_of(view)]
    notes += [f"{topic.name} cannot be opened: {topic.fault}" for topic in status.topics if topic.fault]
    if notes:
        yield ""
    for note in notes:
        yield from _wrapped(note)


def driving(driver: DriverStatus) -> str:
    """Whether anything makes ticks at this moment."""
    if not driver.running:
        return "no process drives this pipeline now: call tick() or run()"
    since = f" since {driver.since:%Y-%m-%d %H:%M:%S} UTC" if driver.since is not None else ""
    return f"process {driver.pid} on {driver.host} drives this pipeline{since}, epoch {driver.epoch}"


def _ticks(status: Status) -> str:
    ticks = status.ticks
    if ticks is None:
        return "no tick yet"
    took = f"{count(ticks.rows_in, 'row')} in, {ticks.rows_out:,} out, {ticks.rows_read:,} of state read"
    kept = f"ticks {ticks.oldest:,} to {ticks.number:,} are kept"
    return f"tick {ticks.number:,} at {ticks.at:%Y-%m-%d %H:%M:%S} UTC, {ticks.seconds:.3f} s: {took}; {kept}"


def _table(headings: list[str], rows: list[list[str]]) -> Iterator[str]:
    """The rows below their headings, two columns of words and then numbers; nothing if there are none."""
    if rows:
        columns = Columns(headings, right=headings[2:])
        made = columns.lines(rows)
        yield from ("", columns.heading(), *made)


def _topic(topic: TopicStatus) -> list[str]:
    used = "?" if topic.bytes is None else size(topic.bytes)
    rate = "?" if topic.rate is None else f"{topic.rate:,.1f}"
    counts = [_number(topic.records), used, rate, _number(topic.waiting), _number(topic.dead_letters)]
    return [topic.name, topic.kind, *counts]


def _view(view: ViewStatus) -> list[str]:
    used = "-" if view.bytes is None else size(view.bytes)
    seconds = "-" if view.seconds is None else f"{view.seconds:.3f}"
    ticks = [_number(view.tick, "-"), _number(view.changed, "-")]
    return [view.name, _state(view), rows_of(view), used, *ticks, seconds]


def rows_of(view: ViewStatus) -> str:
    """How many rows a view has, in words where that is not known."""
    if view.bytes is None:
        return "not filled"
    return "many" if view.rows is None else f"{view.rows:,}"


def _state(view: ViewStatus) -> str:
    if view.state == "behind":
        return f"{view.behind:,} behind"
    if view.state == "filling" and view.filling is not None:
        return f"filling from {view.filling:,}"
    return "waiting" if view.state == "filling" else view.state


def notes_of(view: ViewStatus) -> Iterator[str]:
    """What there is to say of a view in words: why it stands still, what is to replace it, where it begins."""
    if view.suspended is not None:
        since = f"since tick {view.suspended.since}" if view.suspended.since else "before it was filled"
        yield f"{view.name} is suspended {since}: {view.suspended.reason}"
    if view.replacement is not None:
        why = f" ({view.replacement.reason})" if view.replacement.reason else ""
        yield f"{view.name} is being replaced{why}: {_REPLACEMENT[view.replacement.state]}"
        if view.replacement.suspended is not None:
            yield f"{view.name}, the new version: {view.replacement.suspended.reason}"
    for topic, places in view.begins.items():
        yield f"{view.name} begins with {begun(places)} of {topic}: what came before was gone when it was filled"
    for topic, columns in view.unseen.items():
        yield unseen_columns(view.name, topic, columns)


def _number(value: int | None, missing: str = "?") -> str:
    return missing if value is None else f"{value:,}"


def _wrapped(text: str) -> list[str]:
    return textwrap.wrap(text, _WIDTH, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)
