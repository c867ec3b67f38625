"""Where the benchmark keeps files: artifacts for good, data of one measurement only while it runs.

Everything lives below `bench/.cache`, so ours and the peer's logs are on the same disk and file system.
"""

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

BENCH = Path(__file__).resolve().parent
CACHE = BENCH / ".cache"

BATCH = {"spark.sql.shuffle.partitions": "32"}
"""For Spark's own answers: more partitions than cores, as large joins need; Spark merges small ones by itself."""


class CannotMeasure(Exception):
    """Something outside this project is missing; the benchmark says so and goes on with the rest."""


@contextmanager
def scratch(name: str) -> Iterator[Path]:
    """Give an empty directory that is removed afterwards.

    What earlier measurements left dirty in the page cache is written out first, so that nobody pays for the
    writes of the one before.
    """
    runs = CACHE / "runs"
    runs.mkdir(parents=True, exist_ok=True)
    path = Path(tempfile.mkdtemp(prefix=f"{name}-", dir=runs))
    os.sync()
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)


def size(folder: Path) -> int:
    """The bytes of the files in a folder, if it is there."""
    return sum(file.stat().st_size for file in folder.iterdir() if file.is_file()) if folder.exists() else 0
