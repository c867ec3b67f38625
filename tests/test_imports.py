"""Dependencies point one way, and Spark stays behind its door."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

SOURCE = Path(__file__).parent.parent / "src" / "headwater"
ORDER = (
    {"cli", "testing"},
    {"examples"},
    {"__init__"},
    {"pipeline"},
    {"serve", "tick", "capture", "follow", "broker", "oracle"},
    {"backends"},
    {"spark", "read"},
    {"operators"},
    {"evaluation"},
    {"plan"},
    {"catalog"},
    {"topics"},
    {"expressions"},
    {"state", "log"},
    {"store", "schema"},
    {"change"},
    {"liveness"},
    {"format"},
    {"attempt", "clock", "crashpoint", "files", "lock", "memory", "position", "process", "watch"},
    {"errors", "version"},
)
"""From those who use to those who are used; a part may import what stands below it, and its own folder.

That holds for imports within functions, for types alone and by `import_module` as well. What is no part is a name
of the package's own, which `__init__` has.
"""
ROOMS_OF_SPARK = (
    {"engine"},
    {"planner", "workers"},
    {"evaluator"},
    {"single_partition"},
    {"catalyst"},
    {"session"},
)
"""The same within `spark`."""
OPEN_TO_THE_ORACLE = ("headwater.spark.catalyst", "headwater.spark.session")
"""What the oracle may know of how Spark is used: not what plans, evaluates or keeps anything."""


def level(part: str, order: Sequence[set[str]] = ORDER) -> int:
    found = [number for number, parts in enumerate(order) if part in parts]
    assert found, f"{part} has no place in the order; give it one"
    return found[0]


def imports(path: Path) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: imports are absolute"
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.Call) and "import_module" in ast.unparse(node.func):
            names |= {str(argument.value) for argument in node.args if isinstance(argument, ast.Constant)}
    return names


def part_of(path: Path, folder: Path = SOURCE) -> str:
    return path.relative_to(folder).parts[0].removesuffix(".py")


def part_imported(name: str, folder: Path) -> str | None:
    """The part of a folder that a name which somebody imports is of; None if it is of none."""
    here = folder.relative_to(SOURCE.parent).parts
    there = tuple(name.split("."))
    if there[: len(here)] != here:
        return None
    part = there[len(here)] if len(there) > len(here) else "__init__"
    exists = (folder / part).is_dir() or (folder / f"{part}.py").exists()
    return part if exists else "__init__"


def imports_between_parts(folder: Path) -> Iterator[tuple[Path, str, str, str]]:
    """Every import of one part from another: where it stands, what it imports, and the two parts."""
    for path in sorted(folder.rglob("*.py")):
        own = part_of(path, folder)
        for name in sorted(imports(path)):
            other = part_imported(name, folder)
            if other not in {None, own}:
                yield path, name, own, str(other)


def imports_that_point_up(folder: Path, order: Sequence[set[str]]) -> list[str]:
    return [
        f"{path.relative_to(SOURCE)} imports {name}"
        for path, name, own, other in imports_between_parts(folder)
        if level(other, order) <= level(own, order)
    ]


def test_every_import_points_down() -> None:
    assert not (wrong := imports_that_point_up(SOURCE, ORDER)), "\n".join(wrong)


def test_planner_evaluator_and_workers_are_rooms_of_their_own() -> None:
    assert not (wrong := imports_that_point_up(SOURCE / "spark", ROOMS_OF_SPARK)), "\n".join(wrong)


def test_the_oracle_knows_nothing_of_plans_state_and_changes() -> None:
    strange = [f"headwater.{name}" for name in ("change", "plan", "state", "evaluation", "operators", "tick")]
    wrong = [
        f"{path.name} imports {name}"
        for path in (SOURCE / "oracle").glob("*.py")
        for name in imports(path)
        if name.startswith((*strange, "headwater.spark")) and not name.startswith(OPEN_TO_THE_ORACLE)
    ]
    assert not wrong


def test_only_spark_and_the_oracle_import_pyspark() -> None:
    wrong = [
        str(path.relative_to(SOURCE))
        for path in SOURCE.rglob("*.py")
        if part_of(path) not in {"spark", "oracle"}
        and any(name.split(".")[0] == "pyspark" for name in imports(path))
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
            f"{path.name} imports {name}"
            for name in imports(path)
            if name.split(".")[0] in {"pickle", "marshal", "shelve"}
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


CONCRETE = {
    "EmbeddedLog": "log",
    "SqliteStore": "store",
    "LocalStateFiles": "state",
    "LockedFiles": "liveness",
    "SparkEngine": "spark",
}
"""The implementations of parts, each with where it is at home."""


def test_only_backends_names_what_a_part_is_made_of() -> None:
    wrong = [
        f"{path.relative_to(SOURCE)} names {node.id}"
        for path in SOURCE.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Name)
        and node.id in CONCRETE
        and part_of(path) not in {"backends", CONCRETE[node.id]}
    ]
    assert not wrong


_PRIVATE = re.compile(r"(?<!\bself)(?<!\bcls)(?<!\bos)(?<!\bsys)(?<=[\w\])])\._[a-z]")
_SPARKS = re.compile(r"\._(jvm|jdf|jsc|jsparkSession|gateway|active_spark_context)\b")


def test_names_of_state_and_what_is_stored_of_views_are_known_to_the_catalog_alone() -> None:
    spelled = re.compile(r"""f["'][vt]\{|\bspec\[|\bspec\.get\(|"@next"|/letters""")
    wrong = [
        f"{path.relative_to(SOURCE)}: {line.strip()}"
        for path in SOURCE.rglob("*.py")
        if part_of(path) not in {"catalog", "store"}
        for line in path.read_text().splitlines()
        if spelled.search(line)
    ]
    assert not wrong, "\n".join(wrong)


def test_tests_reach_for_what_is_private_in_one_place() -> None:
    """`tests/inside.py`; what is left elsewhere tests one module from within, and is not to become more."""
    tests = Path(__file__).parent
    found = [
        f"{path.relative_to(tests)}: {line.strip()}"
        for path in sorted(tests.rglob("*.py"))
        if path.name != "inside.py" and path.parent.name != "mutants"
        for line in path.read_text().splitlines()
        if _PRIVATE.search(line) and not _SPARKS.search(line)
    ]
    assert len(found) <= 76, "\n".join(found)
