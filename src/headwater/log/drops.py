"""Drops: topics that go while other processes append to them or read them.

A topic's folder is there or not, at one instant: dropping it is a rename, and removing what is in it comes after.
So whoever finds a part of it missing looks whether the folder is there, and knows that it was dropped, or damaged.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Collection, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress

from headwater.errors import HeadwaterError
from headwater.files import Files
from headwater.log.log import TopicDropped
from headwater.log.partition import Partition

_DROPPED = ".dropped"


@contextmanager
def drops_told(files: Files, folders: Mapping[str, str]) -> Iterator[None]:
    """What fails since a topic was dropped, by whichever process, is `TopicDropped`. Folders by topics' names."""
    _check_there(files, folders)
    try:
        yield
    except (OSError, HeadwaterError):
        _check_there(files, folders)
        raise


def _check_there(files: Files, folders: Mapping[str, str]) -> None:
    for topic, folder in folders.items():
        if not files.exists(folder):
            raise TopicDropped(topic)


def drop_folder(files: Files, folder: str, partitions: Collection[Partition]) -> None:
    """Remove a topic's folder with its partitions. Nobody appends meanwhile; another process may drop it, too."""
    with ExitStack() as held:
        for partition in sorted(partitions, key=lambda each: each.folder):  # as whoever appends does
            if files.exists(partition.folder):
                held.enter_context(partition.lock)
        with suppress(FileNotFoundError):
            files.rename(folder, folder + _DROPPED)
        shutil.rmtree(folder + _DROPPED, ignore_errors=True)  # who waits for a lock sees that it is gone


def sweep(files: Files, folder: str) -> None:
    """Remove what is left below a log's folder by whoever was killed while dropping."""
    for name in files.list(folder):
        if name.endswith(_DROPPED):
            shutil.rmtree(os.path.join(folder, name), ignore_errors=True)
