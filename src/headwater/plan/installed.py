"""Where the modules come from that a function uses: from a library, with its version, or from the user, as text."""

from __future__ import annotations

import ast
import functools
import hashlib
import importlib.machinery
import importlib.metadata
import importlib.util
import os
import site
import sys
import sysconfig
from collections.abc import Iterator

PYTHON = f"{sys.version_info[0]}.{sys.version_info[1]}"
_ENDING = ".py"


def library(module: str) -> str | None:
    """The version of the library that a module belongs to; None of a module of the user's."""
    top = module.partition(".")[0]
    return f"Python {PYTHON}" if _is_pythons(top) else _installed(top)


def _is_pythons(top: str) -> bool:
    return top in sys.stdlib_module_names or top in sys.builtin_module_names


@functools.cache
def _installed(top: str) -> str | None:
    spec = _spec(top)
    if spec is None:
        return None
    found = [spec.origin] if spec.origin and spec.has_location else list(spec.submodule_search_locations or ())
    if not any(place.startswith(_folders()) for place in found):
        return None  # also what is installed so that it can be edited
    version = getattr(sys.modules.get(top), "__version__", None)
    if isinstance(version, str):
        return version
    names = importlib.metadata.packages_distributions().get(top, ())
    return " ".join(sorted({importlib.metadata.version(name) for name in names})) or None


@functools.cache
def _folders() -> tuple[str, ...]:
    own = [sysconfig.get_path(kind) for kind in ("purelib", "platlib")]
    return tuple({folder + os.sep for folder in (*own, *site.getsitepackages(), site.getusersitepackages())})


def source(module: str, known: dict[str, tuple[str, list[str]]]) -> str:
    """What a module does, by its text and that of the user's modules that it imports; nothing is imported for that.

    `known` keeps what was read. Empty if its text cannot be had.
    """
    found = {module}
    waiting = [module]
    while waiting:
        name = waiting.pop()
        if name not in known:
            known[name] = _text(name)
        more = {each for each in known[name][1] if library(each) is None} - found
        found |= more
        waiting += more
    told = [f"{name} {known[name][0]}" for name in sorted(found) if known[name][0]]
    return hashlib.sha256("\0".join(told).encode()).hexdigest() if known[module][0] else ""


def _text(module: str) -> tuple[str, list[str]]:
    """The text of a module without comments, or the sum of what is none, and the names of what it imports."""
    path = _path(module)
    if path is None:
        return "", []
    try:
        with open(path, "rb") as file:
            data = file.read()
        if not path.endswith(_ENDING):
            return hashlib.sha256(data).hexdigest(), []
        tree = ast.parse(data)
    except (OSError, SyntaxError, ValueError):
        return "", []
    package = module if path.endswith(os.sep + "__init__" + _ENDING) else module.rpartition(".")[0]
    return ast.dump(tree), [each for name in _imported(tree, package) for each in with_packages(name)]


def absolute(name: str, level: int, package: str) -> str:
    """The whole name of a module that is imported, from a package if there are dots before its name."""
    if not level:
        return name
    parts = package.split(".")
    return ".".join([*parts[: len(parts) - level + 1], *([name] if name else [])])


def _imported(tree: ast.AST, package: str) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = absolute(node.module or "", node.level, package)
            yield base
            yield from (f"{base}.{alias.name}" for alias in node.names)


def with_packages(name: str) -> Iterator[str]:
    """A module, and the packages that are imported before it."""
    parts = name.split(".")
    yield from (".".join(parts[:end]) for end in range(1, len(parts) + 1))


def _path(module: str) -> str | None:
    """The file that a module is."""
    spec = _spec(module)
    return spec.origin if spec is not None and spec.has_location else None


def _spec(module: str) -> importlib.machinery.ModuleSpec | None:
    """Where a module would be found; nothing is imported, neither it nor its packages."""
    top, *within = module.split(".")
    try:
        spec = importlib.util.find_spec(top)
        for number, _ in enumerate(within, 2):
            if spec is None or spec.submodule_search_locations is None:
                return None
            name = ".".join(module.split(".")[:number])
            spec = importlib.machinery.PathFinder.find_spec(name, list(spec.submodule_search_locations))
    except (ImportError, ValueError, AttributeError):  # what a module says that was made by hand
        return None
    return spec
