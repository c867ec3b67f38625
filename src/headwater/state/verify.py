"""Verifying: whether the files of the state are what the store says, without interpreting any of it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

from xxhash import xxh3_64_intdigest

from headwater.state.checksums import Blocks, table_length
from headwater.state.files import StateFiles
from headwater.state.run import Run
from headwater.state.run_file import LISTED, MAGIC, TRAILER

_OLDER = b"HWR1"


@dataclass(frozen=True, slots=True)
class Fault:
    """What is wrong with a file, at which byte if that is known, and the arrangements that need it."""

    file: str
    what: str
    byte: int | None
    arrangements: tuple[str, ...]


class _Damaged(Exception):
    def __init__(self, what: str, byte: int | None = None) -> None:
        self.what, self.byte = what, byte
        super().__init__(what)


Check = Callable[[StateFiles, Run], None]


def check_length(files: StateFiles, run: Run) -> None:
    """See that the file is there and has all bytes of the run."""
    try:
        size = files.size(run.file)
    except FileNotFoundError:
        raise _Damaged("the file is missing") from None
    if run.checksum is None:
        raise _Damaged("it was written without checksums, by an older version")
    if size < run.offset + run.length + table_length(run.length):
        msg = f"the file ends after {size} bytes"
        raise _Damaged(msg, size)


def check_directory(files: StateFiles, run: Run) -> None:
    """See also that the end of the file is whole and has the run, as the store has it."""
    check_length(files, run)
    file = files.open(run.file)
    end = file.size - TRAILER.size
    checksum, length, magic = TRAILER.unpack(file.read(max(0, end), TRAILER.size))
    if magic == _OLDER:
        raise _Damaged("it was written without checksums, by an older version")
    directory = file.read(max(0, end - length), length).to_pybytes()
    if magic != MAGIC or xxh3_64_intdigest(directory) != checksum:
        raise _Damaged("the directory at its end is not what was written", max(0, end - length))
    if {name: getattr(run, name) for name in LISTED if name != "rows"} not in [
        {name: each[name] for name in LISTED if name != "rows"} for each in json.loads(directory)["runs"]
    ]:
        raise _Damaged("its directory does not have the run that the store names", run.offset)


def check_all(files: StateFiles, run: Run) -> None:
    """See also that every byte of the run is what was written."""
    check_directory(files, run)
    assert run.checksum is not None
    file = files.open(run.file)
    data = memoryview(file.read(run.offset, run.length))
    table = memoryview(file.read(run.offset + run.length, table_length(run.length)))
    blocks = Blocks(data, table, run.checksum, lambda what, byte: _Damaged(what, run.offset + byte))
    blocks.check(0, run.length)


def faults(
    files: StateFiles,
    runs: Mapping[str, Iterable[Run]],
    check: Check,
    seen: Callable[[Run], None] = lambda run: None,
) -> Iterator[Fault]:
    """What is wrong with the files that arrangements need, file by file; `seen` gets each run once checked."""
    needed: dict[Run, list[str]] = {}
    for arrangement, each in runs.items():
        for run in each:
            part = Run(run.file, run.offset, run.length, 0, 0, checksum=run.checksum)
            needed.setdefault(part, []).append(arrangement)
    for run in sorted(needed, key=lambda run: (run.file, run.offset)):
        try:
            check(files, run)
        except _Damaged as error:
            yield Fault(run.file, error.what, error.byte, tuple(sorted(set(needed[run]))))
        seen(run)
