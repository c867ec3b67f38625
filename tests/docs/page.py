"""A page of the docs as a program: its blocks are run in order, and what they print is compared with what is shown.

`python page.py PAGE` runs in the current folder, as does `run`. A `text` block shows what the block before it
prints, with `…` for anything. Of a shell block, the lines that call one of our commands are run, but for those
that never end.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import headwater as hw

_BLOCK = re.compile(r"^```(python|sh|text)\n(.*?)^```", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Block:
    language: str
    code: str
    line: int


def blocks(page: Path) -> list[Block]:
    text = page.read_text()
    return [Block(found[1], found[2], text.count("\n", 0, found.start()) + 2) for found in _BLOCK.finditer(text)]


def commands(block: Block) -> list[str]:
    return [
        line.replace(".venv/bin/headwater", "headwater")
        for line in block.code.splitlines()
        if "headwater " in line and " -f" not in line and " run " not in line and not line.startswith("make")
    ]


def run(page: Path) -> None:
    """AssertionError where a block prints something else than is shown. What pipelines it opened are closed."""
    namespace: dict[str, object] = {"__name__": "__main__"}
    opened: list[hw.Pipeline] = []
    printed = ""
    try:
        for block in blocks(page):
            if block.language == "text":
                compare(page, block, printed)
            elif block.language == "python":
                printed = run_python(page, block, namespace)
                opened += [value for value in namespace.values() if isinstance(value, hw.Pipeline)]
            else:
                printed = "".join(run_shell(line) for line in commands(block))
    finally:
        for pipeline in opened:
            pipeline.close()


def run_python(page: Path, block: Block, namespace: dict[str, object]) -> str:
    with contextlib.redirect_stdout(io.StringIO()) as out:
        exec(compile("\n" * (block.line - 1) + block.code, str(page), "exec"), namespace)
    return out.getvalue()


def run_shell(line: str) -> str:
    environment = os.environ | {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    command = ["bash", "-o", "pipefail", "-c", line]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, f"{line}\n{done.stdout}{done.stderr}"
    return done.stdout


def compare(page: Path, block: Block, printed: str) -> None:
    """White space within a line does not count."""
    shown = "\n".join(map(_pattern, block.code.strip("\n").splitlines()))
    given = "\n".join(" ".join(line.split()) for line in printed.strip("\n").splitlines())
    told = f"{page}, line {block.line} shows\n{block.code}\nbut what was printed is\n{printed}"
    assert re.fullmatch(shown, given), told


def _pattern(line: str) -> str:
    return "(?s:.*)" if line == "…" else " *".join(map(re.escape, line.split())).replace("…", ".*")


if __name__ == "__main__":
    run(Path(sys.argv[1]).resolve())
