"""What `headwater doctor` and `headwater verify` look at in a pipeline: its store, and the files of its state."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from headwater.catalog.names import is_shared, owner_of
from headwater.cli.findings import Finding, fault
from headwater.cli.text import count, size
from headwater.errors import HeadwaterError
from headwater.pipeline.checking import OLDER, is_needed, owners, runs, store_faults, versions
from headwater.state.damage import note
from headwater.state.run import Run
from headwater.state.verify import Fault, check_all, check_directory, faults

if TYPE_CHECKING:
    from headwater import Pipeline

_HINT = "the next tick builds it again from the log, if the log still has its beginning"


Tell = Callable[[int, int], None]


def findings(
    opened: Pipeline, tell: Tell = lambda done, all_: None, *, most: int | None = None
) -> Iterator[Finding]:
    """Of the store, and of the state; what cannot be looked at hides nothing else."""
    try:
        yield store(opened)
    except (HeadwaterError, OSError) as error:
        yield fault("store", error)
    try:
        yield from state(opened, tell, most=most)
    except (HeadwaterError, OSError) as error:
        yield fault("state", error)


def store(opened: Pipeline) -> Finding:
    """Whether the metadata store is whole."""
    wrong = store_faults(opened)
    if wrong:
        return Finding("store", False, "; ".join(wrong), "restore headwater.db from a backup")
    return Finding("store", True, f"{count(versions(opened), 'version')} kept")


def state(opened: Pipeline, tell: Tell, *, most: int | None) -> Iterator[Finding]:
    """What is wrong with the files of the state, noted for whoever drives. `tell` gets how many bytes were read.

    If there are more than `most` bytes, only the ends of the files are looked at.
    """
    needed, files = runs(opened), opened.state_files
    total = sum(run.length for each in needed.values() for run in each)
    is_whole = most is None or total <= most
    check = check_all if is_whole else check_directory
    done = 0

    def seen(run: Run) -> None:
        nonlocal done
        done += run.length
        tell(done, total)

    found = 0
    for damage in faults(files, needed, check, seen):
        if is_needed(opened, damage.file):
            found += 1
            note(files, damage.file)
            yield _told(opened, damage)
    if not found:
        named = {run.file for each in needed.values() for run in each}
        said = "undamaged" if is_whole else "none is missing or cut short; `headwater verify` reads all of it"
        yield Finding("state", True, f"{count(len(named), 'file')}, {size(total)}, {said}")


def _told(opened: Pipeline, fault: Fault) -> Finding:
    names = owners(opened)
    found = {name if name == OLDER else owner_of(name) for name in fault.arrangements}
    known = sorted({names.get(each, "what views share" if is_shared(each) else each) for each in found})
    place = "" if fault.byte is None else f", at byte {fault.byte}"
    hint = f"{OLDER} cannot be read any more; newer ones can" if known == [OLDER] else _HINT
    where = opened.state_files.place(fault.file)
    return Finding("state", False, f"{where}: {fault.what}{place} (of {', '.join(known)})", hint)
