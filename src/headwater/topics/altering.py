"""Altering: what a topic becomes when it is to have other columns, and what that means for those it has."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from headwater.change.columns import as_text
from headwater.errors import SchemaError
from headwater.schema import Column, Schema, check_topic
from headwater.schema.widening import widens
from headwater.topics.alterations import Alterations
from headwater.topics.declaration import TopicDeclaration, checked_columns


@dataclass(frozen=True)
class Alteration:
    """A topic as it is to be. `gone` are columns that nobody may read any more, also under their old names.

    `widened` are those that have other types from now on, by their names before.
    """

    declaration: TopicDeclaration
    gone: tuple[str, ...]
    widened: tuple[str, ...]


def altered(before: TopicDeclaration, schema: str, rename: Mapping[str, str] | None = None) -> Alteration:
    """What a topic becomes with this schema; `SchemaError`, with the column, for what is not possible.

    Columns are known by their names, but for those that `rename` gives others. Columns may come (null, or their
    DEFAULT, in the rows that are there), go, get wider types, or become nullable; those of the key stay. What it is
    already stays as it is.
    """
    columns, defaults = _as_written(before.schema, *checked_columns(schema))
    check_topic(columns, list(before.key) or None)
    rename = rename or {}
    is_same = before.schema.without_comments == columns.without_comments
    if is_same and not any(str(old).lower() in before.schema.by_name for old in rename):
        return Alteration(before, (), ())
    was = _former(before.schema, columns, rename)
    pairs = [(before.schema.column(was[column.name]), column) for column in columns if column.name in was]
    for old, new in pairs:
        _check_pair(before, old, new)
    added = [column for column in columns if column.name not in was]
    for column in added:
        _check_added(before, column, defaults)
    gone = [column.name for column in before.schema if column.name not in was.values()]
    if before.kind == "table" and not before.key:
        _check_found(before, pairs, gone, defaults)
    renamed = {old.name for old, new in pairs if old.name.lower() != new.name.lower()}
    declaration = replace(
        before,
        schema=columns,
        key=tuple(columns.column(name).name for name in before.key),
        defaults=_defaults(before, pairs, added, defaults),
        alterations=_alterations(before, was, added, gone),
    )
    widened = tuple(old.name for old, new in pairs if old.type != new.type)
    return Alteration(declaration, (*gone, *sorted(renamed)), widened)


def _as_written(before: Schema, after: Schema, defaults: Mapping[str, str]) -> tuple[Schema, dict[str, str]]:
    """The columns as they are written so far, whatever their case is now."""
    written = {name: column.name for name, column in before.by_name.items()}
    names = {column.name: written.get(column.name.lower(), column.name) for column in after}
    columns = tuple(replace(column, name=names[column.name]) for column in after)
    return Schema(columns), {names[name]: text for name, text in defaults.items()}


def _former(before: Schema, after: Schema, rename: Mapping[str, str]) -> dict[str, str]:
    """The names that columns had before, by those that they have after; of new ones there is none."""
    former = {}
    for old, new in rename.items():
        if not isinstance(old, str) or not isinstance(new, str):
            raise SchemaError("rename is a dict of names", hint="{'old': 'new'}")
        former[after.column(new).name] = before.column(old).name
    if len({*former.values()}) < len(rename):
        raise SchemaError("rename names a column twice", hint="give each its own name")
    for column in after:
        known = before.by_name.get(column.name.lower())
        if column.name not in former and known is not None and known.name not in former.values():
            former[column.name] = known.name
    return former


def _check_pair(before: TopicDeclaration, old: Column, new: Column) -> None:
    """What may become of a column."""
    if old.name in before.key:
        same = old.name.lower() == new.name.lower() and old.type == new.type and old.nullable == new.nullable
        if not same:
            what = f"it is of the key, and would become {new.ddl}"
            hint = "the key says in which partition a row is; declare another topic"
            raise SchemaError(what, column=old.name, where=before.name, hint=hint)
    if not widens(old.type, new.type):
        what = f"{old.type.ddl} cannot become {new.type.ddl}: not each value of the one is one of the other"
        raise SchemaError(what, column=old.name, where=before.name, hint="add a column of that type")
    if old.nullable and not new.nullable:
        what = "it may be null, so rows that are there may have none"
        raise SchemaError(what, column=old.name, where=before.name, hint="leave out NOT NULL")


def _check_added(before: TopicDeclaration, column: Column, defaults: Mapping[str, str]) -> None:
    if not column.nullable and column.name not in defaults:
        what = "a new column that is NOT NULL needs a DEFAULT, for the rows that are there"
        raise SchemaError(
            what, column=column.name, where=before.name, hint="leave out NOT NULL, or give a constant"
        )


def _check_found(
    before: TopicDeclaration, pairs: list[tuple[Column, Column]], gone: list[str], defaults: Mapping[str, str]
) -> None:
    """Of a table without a key: its rows have to be found where they are, by the hash of all columns."""
    moved = [old.name for (old, _), column in zip(pairs, before.schema, strict=False) if old != column]
    wider = [old.name for old, new in pairs if old.type != new.type]
    if found := [*gone, *moved, *wider, *(name for name in defaults if name not in before.defaults)]:
        what = "rows without a key are found by all columns, so none goes, moves, gets another type or a DEFAULT"
        raise SchemaError(what, column=found[0], where=before.name, hint="declare another topic")


def _alterations(
    before: TopicDeclaration, was: Mapping[str, str], added: list[Column], gone: list[str]
) -> Alterations:
    known = before.alterations
    number = known.number + 1
    ids = {name: known.identity(old) for name, old in was.items()}
    used = (*known.used, *(known.identity(name) for name in gone))
    for column in added:
        ids[column.name] = replace(known, used=used).new_identity(column.name, {*ids.values()})
    came = {name: known.added[old] for name, old in was.items() if old in known.added}
    came |= {column.name: number for column in added}
    return Alterations(number, {name: each for name, each in ids.items() if name != each}, used, came)


def _defaults(
    before: TopicDeclaration, pairs: list[tuple[Column, Column]], added: list[Column], given: Mapping[str, str]
) -> dict[str, str]:
    """Those of new columns, and those that columns had, which stay what they are."""
    kept = {}
    for old, new in pairs:
        if old.name in before.defaults:
            kept[new.name] = before.defaults[old.name]
            if old.type != new.type:
                kept[new.name] = as_text(kept[new.name], old.type.arrow, new.type.arrow)
        if new.name in given and given[new.name] != kept.get(new.name):
            what = "its default is what the rows have that were there before it, and stays"
            raise SchemaError(what, column=new.name, where=before.name, hint="leave it as it is, or out")
    return kept | {column.name: given[column.name] for column in added if column.name in given}
