"""Catalog: all that is declared at one moment."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from graphlib import TopologicalSorter
from itertools import chain

from headwater.catalog.names import candidate_of
from headwater.catalog.relation import Relation
from headwater.catalog.view import ViewDeclaration
from headwater.topics.declaration import DEAD_LETTERS


@dataclass(frozen=True)
class Shared:
    """What `views` share, and what it reads itself."""

    views: tuple[str, ...]
    reads: tuple[str, ...]


@dataclass(frozen=True)
class Catalog:
    """Relations and views by name, also candidates; each view behind those that it reads, and behind its candidate.

    It never changes: whoever has it plans and ticks by what was declared when it was read, whatever others declare
    meanwhile. `with_view` and `without` give what it would be otherwise.
    """

    relations: Mapping[str, Relation]
    views: Mapping[str, ViewDeclaration]

    @classmethod
    def of(cls, relations: Mapping[str, Relation], views: Iterable[ViewDeclaration]) -> Catalog:
        """The catalog of views in any order, and of all relations."""
        return cls(relations, _in_order({view.name: view for view in views}))

    def with_view(self, view: ViewDeclaration) -> Catalog:
        """What it would be if a view, or a candidate, were declared so."""
        relations = {**self.relations, view.name: Relation.of_view(view)}
        views = {**self.views, view.name: view}
        known = self.views.get(view.name)
        in_order = known is not None and known.inputs == view.inputs
        return Catalog(relations, views) if in_order else Catalog.of(relations, views.values())

    def without(self, name: str) -> Catalog:
        """What it would be without a view or candidate."""
        relations = {each: relation for each, relation in self.relations.items() if each != name}
        return Catalog(relations, {each: view for each, view in self.views.items() if each != name})

    def find(self, name: str) -> Relation | None:
        """The relation of a name in any case, if there is one; also a topic's log, and dead letters."""
        folded = name.lower()
        found = self.relations.get(folded)
        if found is None and folded.endswith(DEAD_LETTERS):
            view = self.relations.get(folded.removesuffix(DEAD_LETTERS))
            return view.letters if view is not None and view.ever_set_aside else None
        return found

    def candidate(self, name: str) -> ViewDeclaration | None:
        """What is to replace a view, if something is."""
        return self.views.get(candidate_of(name))

    @cached_property
    def topics(self) -> Mapping[str, int]:
        """The number of each topic."""
        return {name: each.number for name, each in self.relations.items() if each.kind in {"stream", "table"}}

    @cached_property
    def switching(self) -> frozenset[str]:
        """The views that are to be replaced as soon as their candidates are filled."""
        return frozenset(
            name
            for name, view in self.views.items()
            if (then := self.candidate(name)) is not None and not then.hold and self._may_switch(view, then)
        )

    def _may_switch(self, view: ViewDeclaration, candidate: ViewDeclaration) -> bool:
        """Whether all that read a view can read what is to replace it."""
        read = self._read_by_views
        return view.schema == candidate.schema or view.name not in read

    @cached_property
    def _read_by_views(self) -> frozenset[str]:
        return frozenset(chain.from_iterable(view.inputs for view in self.views.values()))

    @cached_property
    def shared(self) -> Mapping[str, Shared]:
        """What views share."""
        found: dict[str, Shared] = {}
        for name, view in self.views.items():
            for each, reads in view.shared.items():
                known = found.get(each, Shared((), reads))
                found[each] = Shared((*known.views, name), known.reads)
        return found

    @cached_property
    def recorded(self) -> Mapping[str, Relation]:
        """The relations whose rows come from the log: topics and their logs."""
        return {name: each for name, each in self.relations.items() if each.topic is not None}

    @cached_property
    def states(self) -> Mapping[str, str]:
        """The arrangements of what views have and share, with the names of the views, or of what is shared."""
        return {view.state: name for name, view in self.views.items()} | {name: name for name in self.shared}

    def touched(self, names: Iterable[str]) -> list[str]:
        """The views, in order, that may change if these views, relations, or something shared, do."""
        found, waiting = set[str](), [*names]
        while waiting:
            name = waiting.pop()
            more = {name} & self.views.keys() | self._needed_by.get(name, frozenset())
            waiting += more - found - {name}
            found |= more
        return sorted(found, key=self._places.__getitem__)

    @cached_property
    def _needed_by(self) -> Mapping[str, frozenset[str]]:
        """The views that need a relation, something shared, or a candidate."""
        found: dict[str, set[str]] = {}
        for name, view in self.views.items():
            for each in (
                *view.inputs,
                *view.shared,
                *chain.from_iterable(view.shared.values()),
                candidate_of(name),
            ):
                found.setdefault(each, set()).add(name)
        return {name: frozenset(views) for name, views in found.items()}

    @cached_property
    def _places(self) -> Mapping[str, int]:
        return {name: place for place, name in enumerate(self.views)}

    def inputs(self, name: str) -> list[Relation]:
        """The relations that a view reads, or something shared; also through what is shared."""
        names: Sequence[str] = ()
        if name in self.shared:
            names = self.shared[name].reads
        elif name in self.views:
            names = self.views[name].inputs
        nested = [relation for each in names if each in self.shared for relation in self.inputs(each)]
        return [*(self.relations[each] for each in names if each in self.relations), *nested]

    def shares(self, name: str) -> Collection[str]:
        """What a view, or something shared, has of what is shared."""
        if name in self.shared:
            return [each for each in self.shared[name].reads if each in self.shared]
        return self.views[name].shares.values() if name in self.views else ()

    def users(self, name: str) -> Collection[str]:
        """The views that need something shared; of a view, that view."""
        return self.shared[name].views if name in self.shared else (name,)

    def dependents(self, name: str) -> list[str]:
        """The views that read a topic or view, or a topic's log."""
        return [view.name for view in self.views.values() if view.is_over(name)]

    def alterations(self, names: Iterable[str]) -> dict[str, int]:
        """How often topics were altered, of those that some relations are of, if they were at all."""
        found = (self.relations[each] for each in names if each in self.relations)
        return {
            each.topic.name: each.alterations.number for each in found if each.topic and each.alterations.number
        }

    def unseen(self, view: ViewDeclaration) -> dict[str, tuple[str, ...]]:
        """Columns that came to topics since a view with `SELECT *` was declared, which it would have otherwise."""
        found = {}
        for name in view.inputs:
            relation = self.relations.get(name)
            if relation is None or relation.topic is None or not relation.alterations.number:
                continue
            known = relation.seen(view.seen.get(relation.topic.name, 0)).names
            new = tuple(each for each in relation.schema.names if each not in known)
            if new and "*" in view.sql and all(view.names(relation.topic.name, each) for each in known):
                found[relation.topic.name] = new
        return found

    def readers(self, name: str) -> list[str]:
        """The views that read a view, or one that reads it, each behind its inputs."""
        found = {name}
        for each, view in self.views.items():
            if found & {*view.inputs}:
                found |= {each, view.base}
        return [each for each in self.views if each in found and each != name]

    def appends_only(self, name: str) -> bool:
        """Whether rows never disappear: of no view that was or will be replaced, and of none that reads one."""
        view = self.views.get(name)
        if view is None:
            return True
        steady = view.appends_only and self.candidate(name) is None
        return steady and all(map(self.appends_only, view.inputs))


def _in_order(views: Mapping[str, ViewDeclaration]) -> dict[str, ViewDeclaration]:
    """The views, each behind those that it reads, and behind what is to replace it."""
    before = {
        name: [each for each in (*view.inputs, candidate_of(name)) if each in views] for name, view in views.items()
    }
    order = TopologicalSorter(before).static_order()
    return {name: views[name] for name in order}
