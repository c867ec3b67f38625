"""Views of a pipeline: declared once, planned by Spark, known to every process from then on."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from graphlib import TopologicalSorter
from typing import Any

from headwater.errors import DeclarationChanged, HeadwaterError, SchemaError, ViewRefused
from headwater.read.relation import DEAD_LETTER
from headwater.schema import Schema, parse
from headwater.store import NEXT, Declaration, Store
from headwater.topics.declaration import topic_name
from headwater.views.describe import describe
from headwater.views.natural import natural_key
from headwater.views.plan import Plan

SUSPEND = "suspend"
_HINT = "choose another name, or drop the old one first"
_REPLACE = "choose another name, or replace it: view(…, replace=True)"


@dataclass(frozen=True)
class View:
    """A declared view."""

    name: str
    sql: str
    key: tuple[str, ...]
    schema: Schema
    number: int

    @classmethod
    def of(cls, stored: Declaration) -> View:
        """The view that the store knows."""
        return cls(
            stored.name.removesuffix(NEXT),
            stored.spec["sql"],
            tuple(stored.spec["key"]),
            parse(stored.spec["schema"]),
            stored.number,
        )


def known_view(
    store: Store, name: str, sql: str, key: Sequence[str], on_error: str, *, replace: bool
) -> View | None:
    """The view if it was declared just so before; None if it is to be declared now; else `DeclarationChanged`."""
    stored = store.find(name)
    if stored is None:
        return None
    if stored.kind != "view":
        msg = f"it is already declared as a {stored.kind}, not a view"
        raise DeclarationChanged(msg, where=name, hint=_HINT)
    changed = _differences(stored, sql, key, on_error)
    waiting = store.find(name + NEXT)
    if not changed:
        return View.of(stored)
    if waiting is not None and not replace and not _differences(waiting, sql, key, on_error):
        return View.of(waiting)
    if replace:
        return None
    msg = f"it is already declared differently: {' and '.join(changed)} would change"
    raise DeclarationChanged(msg, where=name, hint=_REPLACE)


def _differences(stored: Declaration, sql: str, key: Sequence[str], on_error: str) -> list[str]:
    """What would change in a view."""
    changed = []
    if stored.spec["sql"] != sql:
        changed.append("its SQL")
    if [each.lower() for each in stored.spec["key"]] != [each.lower() for each in key]:
        changed.append(f"its key, which is {', '.join(stored.spec['key']) or 'none'}")
    if stored.spec["on_error"] != on_error:
        changed.append(f"its on_error, which is {stored.spec['on_error']}")
    return changed


def checked_view(
    name: str, sql: str, key: str | Sequence[str] | None, on_error: str
) -> tuple[str, str, tuple[str, ...]]:
    """The arguments of a declaration, or an error that says what is wrong with them."""
    if on_error not in {SUSPEND, DEAD_LETTER}:
        msg = f"on_error is {on_error!r}"
        raise HeadwaterError(msg, where=str(name), hint=f"it is one of {SUSPEND}, {DEAD_LETTER}")
    if not isinstance(sql, str) or not sql.strip():
        msg = f"the SQL of a view is a text, not {sql!r}"
        raise HeadwaterError(msg, where=str(name), hint="write a SELECT")
    names = () if key is None else (key,) if isinstance(key, str) else tuple(key)
    if not all(isinstance(each, str) for each in names):
        msg = f"key is {key!r}"
        raise HeadwaterError(msg, where=str(name), hint="give the names of columns of the view")
    return topic_name(name), sql.strip().removesuffix(";").strip(), names


def specification(
    name: str, sql: str, key: Sequence[str], plan: Plan, schema: Schema, on_error: str = SUSPEND
) -> dict[str, Any]:
    """What the store keeps of a view."""
    return {
        "on_error": on_error,
        "sql": sql,
        "key": list(_key_columns(name, key, schema)),
        "by": list(natural_key(plan)),
        "schema": schema.ddl,
        "inputs": list(plan.inputs),
        **described(plan),
    }


def described(plan: Plan) -> dict[str, Any]:
    """What the store keeps of a plan, which may become another when all state is built again."""
    return {"appends_only": plan.appends_only, "plan": [_without_numbers(line) for line in describe(plan)]}


def _key_columns(name: str, key: Sequence[str], schema: Schema) -> tuple[str, ...]:
    try:
        columns = [schema.column(each) for each in key]
    except SchemaError as error:
        raise ViewRefused(f"the key names a column that the view has not: {error.what}", where=name) from None
    for column in columns:
        if not column.type.atomic:
            msg = f"the key column {column.name} is of type {column.type.ddl}, which cannot be compared"
            raise ViewRefused(msg, where=name, hint="use columns of simple types as key")
    if len({column.name for column in columns}) < len(columns):
        raise ViewRefused("the key names a column twice", where=name)
    return tuple(column.name for column in columns)


def _without_numbers(line: Mapping[str, Any]) -> dict[str, Any]:
    """Spark numbers its columns anew each time."""
    return {k: re.sub(r"#\d+L?", "", v) if isinstance(v, str) else v for k, v in line.items()}


def dependents(store: Store, name: str) -> list[str]:
    """The views that read a topic or view, or a topic's log."""
    return [
        stored.name
        for stored in store.declarations().values()
        if stored.kind == "view" and {name, f"{name}__log"} & set(stored.spec["inputs"])
    ]


def in_order(declarations: Mapping[str, Declaration]) -> list[str]:
    """The views, each behind those that it reads, and behind what is to replace it."""
    views = {name: each for name, each in declarations.items() if each.kind == "view"}
    before = {
        name: [each for each in (*view.spec["inputs"], name + NEXT) if each in views]
        for name, view in views.items()
    }
    return list(TopologicalSorter(before).static_order())
