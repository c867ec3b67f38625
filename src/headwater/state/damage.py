"""Damage: what is said of a file of the state that is not what was written, and noted for whoever drives.

Who meets damage leaves an empty file of the same name in `<state>/damaged`. Whoever drives looks there before each
tick, reads the file itself, and builds again what it was needed for.
"""

from __future__ import annotations

from contextlib import suppress

from headwater.errors import Unavailable
from headwater.state.files import StateFiles

_FOLDER = "damaged"
_HINT = (
    "it is rebuilt from the log by the next tick, and `headwater verify` shows what else is damaged; all derived "
    "state (the folder `state`) can be deleted, too, while nobody drives"
)


def damaged(files: StateFiles, file: str, what: str, *, byte: int | None = None) -> Unavailable:
    """The error for a file of the state that is missing or not what was written; it is noted."""
    note(files, file)
    place = "" if byte is None else f", at byte {byte}"
    return Unavailable(what + place, where=files.place(file), hint=_HINT)


def note(files: StateFiles, file: str) -> None:
    """Tell whoever drives that a file may be damaged."""
    with suppress(OSError):  # a reader may have no right to write here
        files.apart(_FOLDER).create(file).close()


def noted(files: StateFiles) -> list[str]:
    """The files that somebody noted."""
    return sorted(files.apart(_FOLDER).list())


def settle(files: StateFiles, file: str) -> None:
    """Take a note away."""
    with suppress(OSError):
        files.apart(_FOLDER).remove(file)
