"""What is looked at when a pipeline is checked: its metadata store, and all runs that its state needs."""

from __future__ import annotations

from headwater.catalog.names import state_of
from headwater.pipeline.pipeline import Pipeline
from headwater.state.manifest import Manifest, files_of
from headwater.state.run import Run

OLDER = "older versions"
"""Under this name, among arrangements: runs that only older versions need."""


def store_faults(pipeline: Pipeline) -> list[str]:
    """What is wrong with the metadata store, which is read whole."""
    return pipeline._store.faults()


def versions(pipeline: Pipeline) -> int:
    """How many versions are kept."""
    return len(pipeline._store.ticks())


def runs(pipeline: Pipeline) -> dict[str, set[Run]]:
    """The runs of the newest version by arrangement, and those of older ones."""
    store = pipeline._store
    last = store.last_tick()
    details = store.arrangements(last.number) if last is not None else {}
    newest = {name: set(Manifest.from_dict(detail).runs) for name, detail in details.items()}
    kept = {run for detail in store.files() for run in Manifest.from_dict(detail).runs}
    return {**newest, OLDER: kept.difference(*newest.values())}


def is_needed(pipeline: Pipeline, file: str) -> bool:
    """Whether a file is still one of a kept version: whoever drives may have removed it meanwhile."""
    return any(file in files_of(detail) for detail in pipeline._store.files())


def owners(pipeline: Pipeline) -> dict[str, str]:
    """The names of tables and views by what owns their state."""
    return {state_of(each.kind, each.number): each.name for each in pipeline._store.declarations().values()}
