"""ViewDeclaration: everything that is declared of a view, as the store keeps it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from headwater.catalog.names import LOG, base_of, candidate_of, is_candidate, view_state
from headwater.schema import Schema, parse
from headwater.store import Declaration

VIEW = "view"
SUSPEND, DEAD_LETTER = "suspend", "dead_letter"


@dataclass(frozen=True)
class KeptState:
    """What an operator keeps: the name, and by which columns, in words."""

    name: str
    key: str


@dataclass(frozen=True)
class OperatorLine:
    """An operator of a view in words, at a depth below the last one; `work` is what a tick has to do."""

    depth: int
    kind: str
    text: str
    work: str
    state: tuple[KeptState, ...] = ()

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> OperatorLine:
        """Read what `as_dict` gave."""
        return cls(**{**data, "state": tuple(KeptState(**each) for each in data["state"])})

    def as_dict(self) -> dict[str, Any]:
        """As the store keeps it."""
        return {
            "depth": self.depth,
            "kind": self.kind,
            "text": self.text,
            "work": self.work,
            "state": [{"name": each.name, "key": each.key} for each in self.state],
        }


@dataclass(frozen=True)
class EarlierView:
    """A view that was replaced, as far as versions that are kept need it."""

    number: int
    schema: Schema
    key: tuple[str, ...]
    on_error: str = SUSPEND
    by: tuple[str, ...] = ()
    since: int = 0
    before: EarlierView | None = None

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> EarlierView:
        """Read what `as_dict` gave."""
        return cls(
            data["number"],
            parse(data["schema"]),
            tuple(data["key"]),
            data.get("on_error", SUSPEND),
            tuple(data.get("by", ())),
            data.get("since", 0),
            cls.from_dict(data["before"]) if data.get("before") else None,
        )

    def as_dict(self) -> dict[str, Any]:
        """As the store keeps it."""
        made: dict[str, Any] = {"number": self.number, "schema": self.schema.ddl, "key": list(self.key)}
        made |= {"by": list(self.by), "on_error": self.on_error}
        if self.since:
            made["since"] = self.since
        if self.before is not None:
            made["before"] = self.before.as_dict()
        return made

    def needed(self, oldest: int) -> EarlierView:
        """The same without those before it that no version from a tick on has."""
        if self.before is None or self.since <= oldest:
            return replace(self, before=None)
        return replace(self, before=self.before.needed(oldest))


@dataclass(frozen=True)
class ViewDeclaration:
    """A view, or (under a name of its own) the candidate that is to replace one.

    It reads `inputs`. Its rows are arranged `by` some columns if it has no key. `steady` are those of the views
    that it reads of which it counts on that no row ever disappears. `shares` says for inputs of its operators, by
    the names of their state, which table has their rows or under which name views share them; `shared` what each
    of these reads. Since the tick `since` the name has meant this view, and another one `before`. A candidate with
    `hold` waits with the switch. `renewed` is why a view was made anew.

    Of the columns of its inputs it names those that are in `reads`; one that is missing there may be read whole.
    Of a topic that had been altered when it was declared, `seen` says how often; it knows no later column.

    `from_stored` and `as_dict` are inverse. The number is 0 until it was declared.
    """

    name: str
    sql: str
    key: tuple[str, ...]
    schema: Schema
    inputs: tuple[str, ...]
    plan: tuple[OperatorLine, ...]
    appends_only: bool
    by: tuple[str, ...] = ()
    on_error: str = SUSPEND
    steady: tuple[str, ...] = ()
    shares: Mapping[str, str] = field(default_factory=dict)
    shared: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    since: int = 0
    before: EarlierView | None = None
    hold: bool = False
    renewed: str = ""
    reads: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    seen: Mapping[str, int] = field(default_factory=dict)
    number: int = 0

    @classmethod
    def from_stored(cls, stored: Declaration) -> ViewDeclaration:
        """The view that the store knows."""
        spec = stored.spec
        return cls(
            name=stored.name,
            sql=spec["sql"],
            key=tuple(spec["key"]),
            schema=parse(spec["schema"]),
            inputs=tuple(spec["inputs"]),
            plan=tuple(map(OperatorLine.from_dict, spec.get("plan", ()))),
            appends_only=spec.get("appends_only", False),
            by=tuple(spec.get("by", ())),
            on_error=spec.get("on_error", SUSPEND),
            steady=tuple(spec.get("steady", ())),
            shares=dict(spec.get("shares", {})),
            shared={name: tuple(reads) for name, reads in spec.get("shared", {}).items()},
            since=spec.get("since", 0),
            before=EarlierView.from_dict(spec["before"]) if spec.get("before") else None,
            hold=spec.get("hold", False),
            renewed=spec.get("renewed", ""),
            reads={name: tuple(columns) for name, columns in spec.get("reads", {}).items()},
            seen=dict(spec.get("seen", {})),
            number=stored.number,
        )

    def as_dict(self) -> dict[str, Any]:
        """The declaration as JSON-ready data, without its name and number."""
        made: dict[str, Any] = {
            "sql": self.sql,
            "key": list(self.key),
            "schema": self.schema.ddl,
            "inputs": list(self.inputs),
            "plan": [line.as_dict() for line in self.plan],
            "appends_only": self.appends_only,
            "by": list(self.by),
            "on_error": self.on_error,
            "steady": list(self.steady),
            "shares": dict(self.shares),
            "shared": {name: list(reads) for name, reads in self.shared.items()},
        }
        rare: dict[str, Any] = {"since": self.since, "hold": self.hold, "renewed": self.renewed}
        rare |= {"reads": {name: list(columns) for name, columns in self.reads.items()}, "seen": dict(self.seen)}
        made |= {name: value for name, value in rare.items() if value}
        if self.before is not None:
            made["before"] = self.before.as_dict()
        return made

    def stored(self) -> Declaration:
        """As the store knows it."""
        return Declaration(self.name, VIEW, self.number, self.as_dict())

    @property
    def state(self) -> str:
        """The name of the arrangement that has its rows."""
        return view_state(self.number)

    @property
    def base(self) -> str:
        """The name of the view itself, also of its candidate."""
        return base_of(self.name)

    @property
    def is_candidate(self) -> bool:
        """Whether it is to replace another."""
        return is_candidate(self.name)

    @property
    def sets_aside(self) -> bool:
        """Whether rows that it cannot evaluate become dead letters."""
        return self.on_error == DEAD_LETTER

    def is_over(self, name: str) -> bool:
        """Whether it reads a topic or view, or the log of a topic."""
        return name in self.inputs or name + LOG in self.inputs

    def names(self, topic: str, column: str) -> bool:
        """Whether it names a column of a topic, or of its log, or may do so."""
        return any(
            column in self.reads.get(each, (column,)) for each in (topic, topic + LOG) if each in self.inputs
        )

    def as_candidate(self, renewed: str = "") -> ViewDeclaration:
        """The same view, to be made anew beside itself, for a reason."""
        return replace(self, name=candidate_of(self.base), since=0, before=None, renewed=renewed, number=0)

    def taking_over(self, old: ViewDeclaration, tick: int, oldest: int) -> ViewDeclaration:
        """What it is from the tick on in which it takes the place of `old`; versions are kept from `oldest` on."""
        earlier = EarlierView(old.number, old.schema, old.key, old.on_error, old.by, old.since, old.before)
        return replace(self, name=old.name, hold=False, since=tick, before=earlier.needed(oldest))
