"""Views of a pipeline: declared once, planned by Spark, known to every process from then on."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from headwater.catalog.names import candidate_of
from headwater.catalog.relations import Relations
from headwater.catalog.view import DEAD_LETTER, SUSPEND, OperatorLine, ViewDeclaration
from headwater.errors import DeclarationChanged, HeadwaterError, SchemaError, ViewRefused
from headwater.plan.arrangement_key import arrangement_key
from headwater.plan.describe import describe
from headwater.plan.operators import Plan
from headwater.plan.sql_text import same_sql
from headwater.schema import Schema
from headwater.topics.declaration import topic_name

_NUMBERED = re.compile(r"#\d+L?|(?<=_common_expr_)\d+")
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
    def of(cls, declared: ViewDeclaration) -> View:
        """A view as it was declared, or its candidate."""
        return cls(declared.base, declared.sql, declared.key, declared.schema, declared.number)


def known_view(
    relations: Relations, name: str, sql: str, key: Sequence[str], on_error: str, *, replace: bool
) -> View | None:
    """The view if it was declared just so before; None if it is to be declared now; else `DeclarationChanged`."""
    known = relations.view(name)
    if known is None:
        if (other := relations.find(name)) is not None:
            msg = f"it is already declared as a {other.kind}, not a view"
            raise DeclarationChanged(msg, where=name, hint=_HINT)
        return None
    changed = _differences(known, sql, key, on_error)
    candidate = relations.view(candidate_of(name))
    if not changed:
        return View.of(known)
    if candidate is not None and not replace and not _differences(candidate, sql, key, on_error):
        return View.of(candidate)
    if replace:
        return None
    msg = f"it is already declared differently: {' and '.join(changed)} would change"
    raise DeclarationChanged(msg, where=name, hint=_REPLACE)


def _differences(known: ViewDeclaration, sql: str, key: Sequence[str], on_error: str) -> list[str]:
    """What would change in a view."""
    changed = []
    if not same_sql(known.sql, sql):
        changed.append("its SQL")
    if [each.lower() for each in known.key] != [each.lower() for each in key]:
        changed.append(f"its key, which is {', '.join(known.key) or 'none'}")
    if known.on_error != on_error:
        changed.append(f"its on_error, which is {known.on_error}")
    return changed


def checked_view(
    name: str, sql: str, key: str | Sequence[str] | None, on_error: str
) -> tuple[str, str, tuple[str, ...]]:
    """The arguments of a declaration, or an error that says what is wrong with them."""
    if on_error not in (SUSPEND, DEAD_LETTER):
        msg = f"on_error is {on_error!r}"
        raise HeadwaterError(msg, where=str(name), hint=f"it is one of {SUSPEND}, {DEAD_LETTER}")
    if not isinstance(sql, str) or not sql.strip():
        msg = f"the SQL of a view is a text, not {sql!r}"
        raise HeadwaterError(msg, where=str(name), hint="write a SELECT")
    names = () if key is None else tuple(key) if isinstance(key, list | tuple) else (key,)
    if not all(isinstance(each, str) for each in names):
        msg = f"key is {key!r}"
        raise HeadwaterError(msg, where=str(name), hint="give the names of columns of the view")
    return topic_name(name), sql.strip().removesuffix(";").strip(), names


def declaration(
    name: str, sql: str, key: Sequence[str], plan: Plan, schema: Schema, on_error: str
) -> ViewDeclaration:
    """A view that is to be declared; it shares nothing yet."""
    appends_only, lines = described(plan)
    return ViewDeclaration(
        name=name,
        sql=sql,
        key=_key_columns(name, key, schema),
        schema=schema,
        inputs=plan.inputs,
        plan=lines,
        appends_only=appends_only,
        by=arrangement_key(plan),
        on_error=on_error,
    )


def described(plan: Plan) -> tuple[bool, tuple[OperatorLine, ...]]:
    """What is kept of a plan, which may become another when all state is built again."""
    lines = (OperatorLine.from_dict(_without_numbers(line)) for line in describe(plan))
    return plan.appends_only, tuple(lines)


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
    return {k: _NUMBERED.sub("", v) if isinstance(v, str) else v for k, v in line.items()}
