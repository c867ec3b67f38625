"""Dependencies point one way, and Spark stays behind its door."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

SOURCE = Path(__file__).parent.parent / "src" / "headwater"
ORDER = (
    {"cli", "testing"},
    {"examples"},
    {"__init__"},
    {"pipeline"},
    {"serve", "tick", "capture", "follow", "broker"},
    {"spark", "read"},
    {"operators"},
    {"views", "topics"},
    {"state", "log"},
    {"store", "schema"},
    {"change", "position", "clock", "errors", "crashpoint", "files", "lock", "process"},
)
"""From those who use to those who are used; a part may import what stands below it, and its own folder."""


def level(part: str) -> int:
    found = [number for number, parts in enumerate(ORDER) if part in parts]
    assert found, f"{part} has no place in the order; give it one"
    return found[0]


def imports(path: Path) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: imports are absolute"
            names.add(str(node.module))
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
    return names


def part_of(path: Path) -> str:
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


def test_every_import_points_down() -> None:
    wrong = []
    for path in SOURCE.rglob("*.py"):
        own = part_of(path)
        for name in imports(path):
            if not name.startswith("headwater."):
                continue
            other = name.split(".")[1]
            exists = (SOURCE / other).is_dir() or (SOURCE / f"{other}.py").exists()
            small_words = level(own) == len(ORDER) - 1
            if (
                exists
                and other != own
                and (level(other) < level(own) or (level(other) == level(own) and not small_words))
            ):
                wrong.append(f"{path.relative_to(SOURCE)} imports {name}")
    assert not wrong, "\n".join(sorted(wrong))


def test_only_the_spark_folder_imports_pyspark() -> None:
    wrong = [
        str(path.relative_to(SOURCE))
        for path in SOURCE.rglob("*.py")
        if part_of(path) != "spark" and any(name.split(".")[0] == "pyspark" for name in imports(path))
    ]
    assert not wrong


def test_importing_headwater_imports_neither_spark_nor_pandas() -> None:
    program = (
        "import sys, headwater; headwater.Pipeline; "
        "print([m for m in ('pyspark', 'pandas', 'polars') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_nothing_of_ours_pickles_or_evaluates_data() -> None:
    wrong = []
    for path in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in {"eval", "exec"}:
                wrong.append(f"{path.name}:{node.lineno} calls {node.func.id}")
        wrong += [
            f"{path.name} imports {name}" for name in imports(path) if name in {"pickle", "marshal", "shelve"}
        ]
    assert not wrong


def test_only_files_and_locks_touch_the_disk_below_the_log() -> None:
    """Everything that must survive a power cut goes through `Files`, so that tests can record and break it."""
    allowed = {
        "path",
        "environ",
        "getpid",
        "fsencode",
        "stat",
        "listdir",
        "unlink",
        "rmdir",
        "close",
        "read",
        "fstat",
    }
    wrong = []
    for path in (SOURCE / "log").glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if (
                isinstance(node, ast.Attribute)
                and isinstance(node.value, ast.Name)
                and node.value.id == "os"
                and node.attr not in allowed
            ):
                wrong.append(f"{path.name}:{node.lineno} uses os.{node.attr}")
    assert not wrong
