"""The fingerprint of a plan: what tells a view's state from one that is laid out otherwise.

It covers the operators with their names, their keys, the names and types of their columns, what each of them
evaluates, and the user's functions in it; not the words for people. Two plans with the same fingerprint keep the
same state.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Any

import pyarrow as pa

from headwater.plan.function_code import digest
from headwater.plan.operators import Keyed, Node
from headwater.plan.registry import stored_name
from headwater.plan.sharing import Split

_FOR_PEOPLE = {"shown", "text", "reason", "direct"}


@dataclass(frozen=True)
class Words:
    """What an operator evaluates, as text that is the same in every process, and the functions that it calls."""

    text: str
    functions: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Fingerprint:
    """Of the `operators` of a plan, and of the user's `functions` in it, by name.

    Its text is kept with the state: `1f0c… twice=9a4b…`.
    """

    operators: str
    functions: Mapping[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        return " ".join([self.operators, *(f"{name}={each}" for name, each in sorted(self.functions.items()))])

    @classmethod
    def parse(cls, text: str) -> Fingerprint:
        """The fingerprint with this text."""
        operators, _, rest = text.partition(" ")
        pairs = (each.partition("=") for each in rest.split())
        return cls(operators, {name: value for name, _, value in pairs})

    def differs(self, kept: str | None) -> str:
        """Why state with this fingerprint cannot be gone on with; empty if it can."""
        if kept == str(self):
            return ""
        if kept is None:
            return "it was made before the plans of views had fingerprints"
        before = Fingerprint.parse(kept)
        names = self.functions.keys() & before.functions.keys()
        changed = sorted(name for name in names if self.functions[name] != before.functions[name])
        if changed:
            return f"the function {', '.join(changed)} has changed"
        return "its plan has become another"


def fingerprints(
    split: Split, words: Callable[[Any], Words], functions: Callable[[str], str]
) -> tuple[Fingerprint, dict[str, Fingerprint]]:
    """Of a view's own plan, and of each subplan that it shares.

    `words` tells what an operator evaluates, `functions` the fingerprint of a function that it calls.
    """
    shared: dict[str, Fingerprint] = {}
    for name, keyed in split.shared.items():
        shared[name] = _fingerprint(keyed, words, functions, shared)
    return _fingerprint(split.root, words, functions, shared), shared


def _fingerprint(
    thing: Node | Keyed,
    words: Callable[[Any], Words],
    functions: Callable[[str], str],
    shared: Mapping[str, Fingerprint],
) -> Fingerprint:
    found: set[str] = set()

    def plain(value: Any) -> Any:
        if isinstance(value, pa.Table):
            return _rows(value)
        if isinstance(value, tuple):
            return [plain(each) for each in value]
        if not is_dataclass(value):
            return value if isinstance(value, bool | int | str | None) else str(value)
        made: dict[str, Any] = {"": stored_name(type(value))}
        for each in fields(value):
            if each.name == "computing":
                said = words(getattr(value, each.name))
                found.update(said.functions)
                made[each.name] = said.text
            elif each.name not in _FOR_PEOPLE:
                made[each.name] = plain(getattr(value, each.name))
        if (known := shared.get(made.get("relation", ""))) is not None:
            found.update(known.functions)
            made["relation"] = known.operators
        return made

    operators = digest(plain(thing))
    return Fingerprint(operators, {name: functions(name) for name in found})


def _rows(rows: pa.Table) -> str:
    """Rows of a query's own, by what they are written as."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as stream:
        stream.write_table(rows.combine_chunks())
    return hashlib.sha256(sink.getvalue()).hexdigest()
