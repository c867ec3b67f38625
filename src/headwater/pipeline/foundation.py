"""Foundation: the parts that a pipeline stands on, and with which of them it was made."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from headwater import backends
from headwater.clock import Clock
from headwater.errors import DeclarationChanged, HeadwaterError
from headwater.files import Files
from headwater.liveness import Liveness
from headwater.log import Log
from headwater.read import Reader
from headwater.state.files import StateFiles
from headwater.store import Store
from headwater.topics import Stream, Table

NAME, ZONE, LOG, STATE = "pipeline.name", "pipeline.timezone", "pipeline.log", "pipeline.state"


@dataclass(frozen=True)
class Foundation:
    """What is open of a pipeline as soon as it is: all but Spark. `scratch` is for files that no tick names."""

    path: str
    timezone: str
    clock: Clock
    store: Store
    log: Log
    state_files: StateFiles
    scratch: StateFiles
    liveness: Liveness

    def reader(self, topic: Callable[[str], Stream | Table]) -> Reader:
        """What reads views and topics without Spark, given how to open a topic by its name."""
        return Reader(
            self.store,
            self.log,
            self.state_files,
            self.liveness,
            self.path,
            topic,
            timezone=self.timezone,
            clock=self.clock,
        )


@dataclass(frozen=True)
class Asked:
    """What a pipeline is opened with; None where it was left out. A store is not kept, and named each time."""

    name: str
    timezone: str | None
    log: str | None
    store: str | None
    state: str | None


def open_foundation(path: str, asked: Asked, clock: Clock) -> Foundation:
    """Open the parts in a folder that is there, which become the pipeline's if it is new.

    `DeclarationChanged` if it was made with others or in another time zone, `HeadwaterError` under another name.
    """
    store = backends.open_store(asked.store, path)
    known = _made_with(store, path, asked)
    return Foundation(
        path,
        known[ZONE],
        clock,
        store,
        backends.open_log(known[LOG], path, store, clock),
        backends.open_state_files(known[STATE], path),
        backends.open_state_files(known[STATE], path, "scratch"),
        backends.open_liveness(asked.store, path),
    )


def _made_with(store: Store, path: str, asked: Asked) -> Mapping[str, str]:
    """The time zone and the parts that it was made with; an error if others were given, or another name."""
    parts = {LOG: (asked.log, backends.EMBEDDED), STATE: (asked.state, backends.LOCAL)}
    known = {each: store.kept(each) or "" for each in (NAME, ZONE)}
    if not all(known.values()):
        Files().sync_folder(path)
        first = {each: url or usual for each, (url, usual) in parts.items()}
        store.keep_first({NAME: asked.name, ZONE: asked.timezone or "UTC", **first})
    known = {each: store.kept(each) or "" for each in (NAME, ZONE)}
    if known[NAME] != asked.name:
        msg = f"this folder holds the pipeline {known[NAME]!r}, not {asked.name!r}"
        raise HeadwaterError(msg, where=path, hint="choose another path")
    if asked.timezone not in {None, known[ZONE]}:
        msg = f"the time zone of this pipeline is {known[ZONE]}, not {asked.timezone}"
        hint = "leave timezone out, or make another pipeline: what its views hold is in its zone"
        raise DeclarationChanged(msg, where=path, hint=hint)
    for each, (url, usual) in parts.items():
        known[each] = store.kept(each) or usual
        if url not in {None, known[each]}:
            msg = f"the {each.removeprefix('pipeline.')} of this pipeline is {known[each]}, not {url}"
            raise DeclarationChanged(msg, where=path, hint="leave it out, or make another pipeline")
    return known
