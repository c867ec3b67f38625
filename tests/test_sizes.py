"""Files and functions of a size to be read at once: what outgrows it has another noun in it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

SOURCE = Path(__file__).parent.parent / "src" / "headwater"
FILE_LINES = 400
FUNCTION_LINES = 40
"""From `def` to the last line, with what it takes and its docstring."""


def long_files(folder: Path) -> Iterator[str]:
    for path in sorted(folder.rglob("*.py")):
        lines = len(path.read_text().splitlines())
        if lines > FILE_LINES:
            yield f"{path.relative_to(folder)} has {lines} lines"


def long_functions(folder: Path, most: int = FUNCTION_LINES) -> Iterator[str]:
    for path in sorted(folder.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                lines = (node.end_lineno or node.lineno) - node.lineno + 1
                if lines > most:
                    yield f"{path.relative_to(folder)}:{node.lineno} {node.name} has {lines} lines"


def test_no_file_is_longer_than_400_lines() -> None:
    assert not (found := list(long_files(SOURCE))), "\n".join(found)


def test_no_function_is_longer_than_40_lines() -> None:
    assert not (found := list(long_functions(SOURCE))), "\n".join(found)


def test_one_line_more_is_too_long(tmp_path: Path) -> None:
    def write(lines: int) -> None:
        (tmp_path / "some.py").write_text("\n".join(["def some() -> None:", *["    ..."] * (lines - 1)]))

    write(FUNCTION_LINES)
    assert not list(long_functions(tmp_path))
    write(FUNCTION_LINES + 1)
    assert list(long_functions(tmp_path)) == ["some.py:1 some has 41 lines"]
    write(FILE_LINES)
    assert not list(long_files(tmp_path))
    write(FILE_LINES + 1)
    assert list(long_files(tmp_path)) == ["some.py has 401 lines"]
