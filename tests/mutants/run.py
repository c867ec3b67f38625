"""Break one promise at a time in a copy of the source, and demand that a test turns red: `make mutants`.

python -m tests.mutants.run [words of a promise …]
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.mutants.join_patches import JOIN_PATCHES
from tests.mutants.patches import PATCHES, Patch
from tests.mutants.sql_patches import SQL_PATCHES
from tests.mutants.tick_patches import TICK_PATCHES
from tests.mutants.tree_patches import TREE_PATCHES

ROOT = Path(__file__).resolve().parents[2]
RED = 1
_TIMEOUT = 180
_PYTEST = ("-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", f"--timeout={_TIMEOUT}")


class CannotApply(Exception):
    """The source has changed so that a patch must be written anew."""


def applied(patch: Patch, copy: Path) -> None:
    """Apply a patch to a copy of `src`."""
    path = copy / "headwater" / patch.file
    text = path.read_text()
    for old, new in patch.edits:
        if text.count(old) != 1:
            msg = f"{patch.promise}: {patch.file} has this {text.count(old)} times, not once:\n{old}"
            raise CannotApply(msg)
        text = text.replace(old, new)
    path.write_text(text)


def tested(tests: str, source: Path) -> tuple[int, str]:
    """Run some tests against a source folder; returns pytest's exit code and the end of what it said."""
    environment = {**os.environ, "PYTHONPATH": str(source), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-c", "import headwater; print(headwater.__file__)"]
    found = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    if found.returncode == 0 and not found.stdout.startswith(str(source)):
        msg = f"the tests would run against {found.stdout.strip()}"
        raise RuntimeError(msg)
    done = subprocess.run(
        [sys.executable, *_PYTEST, *shlex.split(tests)],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        errors="replace",  # what a test says of broken bytes
        check=False,
    )
    return done.returncode, "\n".join((done.stdout + done.stderr).splitlines()[-12:])


def is_red(patch: Patch) -> bool:
    """Whether the patch's test fails with it; says how that went."""
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="headwater-mutant-") as folder:
        source = Path(folder, "src")
        shutil.copytree(ROOT / "src", source, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
        try:
            applied(patch, source)
        except CannotApply as error:
            print(f"CANNOT BE APPLIED: {error}", flush=True)
            return False
        code, said = tested(patch.test, source)
    verdict = "red" if code == RED else f"NOT RED (pytest's exit code {code})"
    print(f"{verdict:5} {time.monotonic() - started:5.1f} s  {patch.promise}", flush=True)
    if code != RED:
        print(said, flush=True)
    return code == RED


def main() -> int:
    """Exit code 0 if every patch turned its test red, and all tests are green without them."""
    words = sys.argv[1:]
    every = (*PATCHES, *TICK_PATCHES, *JOIN_PATCHES, *SQL_PATCHES, *TREE_PATCHES)
    chosen = [patch for patch in every if all(word in patch.promise for word in words)]
    with ThreadPoolExecutor(os.cpu_count()) as threads:
        green = {test: threads.submit(tested, test, ROOT / "src") for test in {patch.test for patch in chosen}}
        red = list(threads.map(is_red, chosen))
    broken = {test: future.result()[1] for test, future in green.items() if future.result()[0] != 0}
    for test, said in broken.items():
        print(f"NOT GREEN without any patch: {test}\n{said}")
    print(f"{sum(red)} of {len(red)} mutants are red")
    return 0 if all(red) and not broken else 1


if __name__ == "__main__":
    sys.exit(main())
