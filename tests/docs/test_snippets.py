"""README and docs are run, and hold together."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

import headwater as hw
from headwater.cli.main import COMMANDS

from .page import blocks, commands, run

ROOT = Path(__file__).parent.parent.parent
README, GUIDE = "README.md", "docs/guide.md"
PAGES = [README, "docs/tutorial.md", GUIDE, "docs/reading.md", "docs/sql.md", "docs/views.md"]


@pytest.mark.own_spark
def test_the_readme_runs_in_a_process_of_its_own_and_prints_what_is_shown(tmp_path: Path) -> None:
    command = [sys.executable, str(Path(__file__).parent / "page.py"), str(ROOT / README)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.spark
@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize("page", [page for page in PAGES if page not in {README, GUIDE}])
def test_every_block_runs_and_prints_what_is_shown(
    page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    run(ROOT / page)


def test_the_guide_needs_no_spark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run(ROOT / GUIDE)


@pytest.mark.parametrize("page", PAGES)
def test_no_page_leaves_its_blocks_out(page: str) -> None:
    found = blocks(ROOT / page)
    assert any(block.language == "python" for block in found)
    assert any(commands(block) for block in found if block.language == "sh")


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
    later = {"NotReached", "VersionExpired", "ViewSuspended", "LeaseHeld", "Stream", "Table", "View", "Tick"}
    missing += [name for name in hw.__all__ if name not in text and name not in later and name != "__version__"]
    assert not missing
