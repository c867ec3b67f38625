from __future__ import annotations

import ast
import json
from pathlib import Path

from .conftest import Headwater


def test_it_writes_a_program_and_says_what_to_do_with_it(headwater: Headwater, folder: Path) -> None:
    done = headwater("init")
    assert (done.returncode, done.stderr) == (0, "")
    program = (folder / "shop.py").read_text()
    ast.parse(program)
    assert "noqa" not in program
    assert 20 <= len(program.splitlines()) <= 40
    assert "run shop.py" in done.stdout
    assert "explain revenue" in done.stdout


def test_a_folder_may_be_named_and_is_made(headwater: Headwater, folder: Path) -> None:
    said = json.loads(headwater("init", "my shop", "--json").stdout)
    assert said["file"] == "my shop/shop.py"
    assert (folder / "my shop" / "shop.py").exists()
    assert all(step.startswith("cd 'my shop' && ") for step in said["next"])


def test_a_file_that_is_there_stays_as_it_is(headwater: Headwater, folder: Path) -> None:
    (folder / "shop.py").write_text("mine")
    done = headwater("init")
    assert done.returncode == 1
    assert done.stderr.startswith("error: shop.py: it is there already")
    assert (folder / "shop.py").read_text() == "mine"
