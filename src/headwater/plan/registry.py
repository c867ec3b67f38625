"""The operators that there are, and what they consist of, by the names under which plans are kept.

Fingerprints and files have these names, and outlive the words in the code. An operator that is not registered can
be run, but a plan that has it is made again by every process.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from typing import Any

_Kind = type[Any]
_stored: dict[_Kind, str] = {}
_kinds: dict[str, list[tuple[_Kind, Callable[[Mapping[str, Any]], bool]]]] = {}


def register(
    stored: str = "", *, when: Callable[[Mapping[str, Any]], bool] = lambda _: True
) -> Callable[[_Kind], _Kind]:
    """Have a kind of data known as `stored`, or else by its own name. To be set above `@dataclass(frozen=True)`.

    Several can have one name, if each tells of the fields that were kept which are its own. What is registered
    later is asked first. Registering is for when modules are imported: threads are not thought of.
    """

    def registered(kind: _Kind) -> _Kind:
        if not is_dataclass(kind) or not kind.__dataclass_params__.frozen:  # type: ignore[attr-defined]
            msg = f"{kind.__name__} is no frozen dataclass, and only such are parts of plans"
            raise TypeError(msg)
        name = stored or kind.__name__
        known = [
            each
            for each, _ in _kinds.get(name, ())
            if [f.name for f in fields(each)] != [f.name for f in fields(kind)]
        ]
        if known:
            msg = (
                f"{name} is what plans have {known[0].__qualname__} under, and {kind.__qualname__} has other fields"
            )
            raise ValueError(msg)
        _stored[kind] = name
        _kinds.setdefault(name, []).insert(0, (kind, when))
        return kind

    return registered


def stored_name(kind: _Kind) -> str:
    """The name under which fingerprints and files have a kind of data."""
    return _stored.get(kind, kind.__name__)


def is_registered(kind: _Kind) -> bool:
    """Whether data of a kind can be kept."""
    return kind in _stored


def made_of(name: str, given: Mapping[str, Any]) -> Any:
    """What was kept under a name, with these fields; `KeyError` if nothing is."""
    kind = next(each for each, when in _kinds[name] if when(given))
    return kind(**given)
