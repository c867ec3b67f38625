"""TopicDeclaration: everything that is fixed about a topic when it is declared."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import pyarrow as pa

from headwater.change.columns import OPERATION, constant, marked
from headwater.errors import HeadwaterError, SchemaError
from headwater.schema import Schema, check, check_topic, parse, parse_with_defaults
from headwater.topics.alterations import NEVER_ALTERED, Alterations

Kind = Literal["stream", "table"]
DEAD_LETTERS = "__dead_letters"
LETTER = parse("reason STRING, column STRING, raw STRING, origin STRING")
_NAME = re.compile(r"[a-z][a-z0-9_]{0,99}")


def topic_name(name: str) -> str:
    """The name as we keep it (names are case-insensitive); an error if users may not use it."""
    if not isinstance(name, str) or not _NAME.fullmatch(name.lower()):
        msg = f"{name!r} is not a name"
        raise HeadwaterError(msg, hint="use up to 100 letters, digits and _, beginning with a letter")
    if name.lower().endswith(("__log", DEAD_LETTERS)):
        msg = f"{name!r} is a name of ours"
        raise HeadwaterError(msg, hint="names ending in __log and __dead_letters belong to Headwater")
    return name.lower()


@dataclass(frozen=True, slots=True)
class TopicDeclaration:
    """A topic's kind, columns, key and promises. `as_dict` and `from_dict` are inverse.

    `defaults` are what rows have, in some columns, that were written before those were there, as texts.
    """

    name: str
    kind: Kind
    schema: Schema
    key: tuple[str, ...] = ()
    partitions: int = 1
    event_time: str | None = None
    lateness: str | None = None
    on_error: str = "refuse"
    durability: str = "fsync"
    defaults: Mapping[str, str] = field(default_factory=dict)
    alterations: Alterations = NEVER_ALTERED

    @classmethod
    def check(
        cls,
        name: str,
        kind: Kind,
        schema: str,
        *,
        key: str | Sequence[str] | None,
        partitions: int,
        event_time: str | None = None,
        lateness: str | None = None,
        on_error: str,
        durability: str,
    ) -> TopicDeclaration:
        """The declaration that a user means, or an error that says what is wrong with it."""
        name = topic_name(name)
        columns, defaults = checked_columns(schema)
        if key is not None and not isinstance(key, str | list | tuple):
            msg = f"key is {key!r}"
            raise HeadwaterError(msg, where=name, hint="give the names of columns")
        names = check_topic(columns, [key] if isinstance(key, str) else key)
        _one_of(name, "on_error", on_error, ("refuse", "dead_letter"))
        _one_of(name, "durability", durability, ("fsync", "none"))
        if isinstance(partitions, bool) or not isinstance(partitions, int) or not 1 <= partitions <= 1024:
            msg = f"partitions is {partitions!r}"
            raise HeadwaterError(msg, where=name, hint="a topic has 1 to 1024 partitions")
        _without_event_time(name, event_time=event_time, lateness=lateness)
        return cls(
            name=name,
            kind=kind,
            schema=columns,
            key=names,
            partitions=partitions,
            on_error=on_error,
            durability=durability,
            defaults=defaults,
        )

    def as_dict(self) -> dict[str, Any]:
        """The declaration as JSON-ready data, without its name and kind."""
        made: dict[str, Any] = {
            "schema": self.schema.ddl,
            "key": list(self.key),
            "partitions": self.partitions,
            "event_time": self.event_time,
            "lateness": self.lateness,
            "on_error": self.on_error,
            "durability": self.durability,
        }
        if self.defaults:
            made["defaults"] = dict(self.defaults)
        if self.alterations.number:
            made["altered"] = self.alterations.as_dict()
        return made

    @classmethod
    def from_dict(cls, name: str, kind: Kind, data: Mapping[str, Any]) -> TopicDeclaration:
        """Read what `as_dict` gave."""
        fields = {**data, "schema": parse(data["schema"]), "key": tuple(data["key"])}
        altered = fields.pop("altered", None)
        alterations = NEVER_ALTERED if altered is None else Alterations.from_dict(altered)
        return cls(name=name, kind=kind, alterations=alterations, **fields)

    @staticmethod
    def altered_in(data: Mapping[str, Any]) -> int:
        """How often a topic was altered of which `as_dict` gave this."""
        return int(data.get("altered", {}).get("number", 0))

    @property
    def stored_schema(self) -> pa.Schema:
        """How records lie in the log: what was done, then the columns, all of them nullable for deletes' sake."""
        columns = [pa.field(each.name, each.type) for each in self.schema.arrow]
        schema = pa.schema([pa.field(OPERATION, pa.int8(), nullable=False), *columns])
        return marked(schema, self.alterations.number, self.alterations.ids, self.defaults)

    @property
    def promises(self) -> str:
        """All that a declaration again must have in common with it, as text.

        The names of columns are the same in any case, and comments are nothing. Folders may have an event time from
        when that was accepted and did nothing.
        """
        plain = replace(
            self,
            schema=self.schema.without_comments,
            event_time=None,
            lateness=None,
            defaults={},
            alterations=NEVER_ALTERED,
        )
        return json.dumps(plain.as_dict(), sort_keys=True).lower()

    def dead_letters(self) -> TopicDeclaration:
        """The topic that takes this one's bad rows."""
        return TopicDeclaration(
            name=self.name + DEAD_LETTERS,
            kind="stream",
            schema=LETTER,
            durability=self.durability,
        )


def checked_columns(schema: str) -> tuple[Schema, dict[str, str]]:
    """The columns of a topic, and the defaults of some; SchemaError for a default that its column cannot have."""
    columns, defaults = parse_with_defaults(schema)
    for name, text in defaults.items():
        column = columns.column(name)
        try:
            value = constant(text, column.type.arrow).as_py()
            bad = check(Schema((column,)), [{name: value}]).bad
        except (pa.ArrowException, NotImplementedError, ValueError) as error:
            msg = f"{text!r} is no {column.type.ddl}: {error}"
            raise SchemaError(msg, column=name, hint="give a constant of the column's type") from None
        if bad:
            raise SchemaError(bad[0].reason, column=name, hint="give a constant of the column's type")
    return columns, defaults


def _one_of(where: str, argument: str, value: object, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        msg = f"{argument} is {value!r}"
        raise HeadwaterError(msg, where=where, hint=f"it is one of {', '.join(allowed)}")


def _without_event_time(where: str, **arguments: str | None) -> None:
    """Refuse what would do nothing so far."""
    given = [argument for argument, value in arguments.items() if value is not None]
    if given:
        verb = "comes" if len(given) == 1 else "come"
        msg = f"{' and '.join(given)} {verb} with event time, which is not there yet"
        raise HeadwaterError(msg, where=where, hint="leave it out; views can use the column all the same")
