"""README and docs are run: every Python block, and every line of a shell block that starts one of our commands."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import headwater as hw
from headwater.cli.main import COMMANDS

ROOT = Path(__file__).parent.parent.parent
PAGES = ["README.md", "docs/guide.md"]
_BLOCK = re.compile(r"^```(python|sh)\n(.*?)^```", re.MULTILINE | re.DOTALL)


def blocks(page: str) -> list[tuple[str, str]]:
    return _BLOCK.findall((ROOT / page).read_text())


@pytest.mark.parametrize("page", PAGES)
def test_every_snippet_runs(page: str, tmp_path: Path) -> None:
    program = "\n".join(code for language, code in blocks(page) if language == "python")
    assert program
    commands = [line for language, code in blocks(page) if language == "sh" for line in code.splitlines()]
    ours = [line for line in commands if "headwater " in line and " -f" not in line and not line.startswith("make")]
    assert ours
    environment = os.environ | {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    subprocess.run([sys.executable, "-c", program], cwd=tmp_path, check=True, timeout=60)
    for line in ours:
        command = line.replace(".venv/bin/headwater", "headwater")
        done = subprocess.run(
            ["bash", "-o", "pipefail", "-c", command],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == 0, f"{line}\n{done.stdout}{done.stderr}"


def test_every_target_of_make_that_the_docs_name_exists() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    for page in [
        "README.md",
        "CONTRIBUTING.md",
        "CHANGELOG.md",
        *(f"docs/{p.name}" for p in (ROOT / "docs").glob("*.md")),
    ]:
        named = set(re.findall(r"`make ([a-z-]+)`|^make ([a-z-]+)", (ROOT / page).read_text(), re.MULTILINE))
        assert {name for pair in named for name in pair if name} <= targets, page


def test_every_link_between_pages_leads_somewhere() -> None:
    for page in [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")]:
        for target in re.findall(r"\]\(([^)#]+)\)", page.read_text()):
            assert (page.parent / target).exists(), f"{page}: {target}"


def test_every_test_that_the_guarantees_name_exists() -> None:
    for named in re.findall(r"`(tests/[\w/.]+)`", (ROOT / "docs" / "guarantees.md").read_text()):
        assert (ROOT / named).exists(), named


def test_every_public_name_and_command_is_documented() -> None:
    text = "".join((ROOT / page).read_text() for page in [*PAGES, "docs/guarantees.md"])
    missing = [name for name in COMMANDS if f"headwater {name}" not in text and f"make {name}" not in text]
    later = {"NotReached", "VersionExpired", "ViewRefused", "ViewSuspended", "LeaseHeld", "Stream", "Table"}
    missing += [name for name in hw.__all__ if name not in text and name not in later and name != "__version__"]
    assert not missing
