"""Relations: which names there are, as the store knows them at this moment."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping

from headwater.catalog.catalog import Catalog
from headwater.catalog.names import LOG
from headwater.catalog.relation import Relation
from headwater.catalog.view import VIEW, ViewDeclaration
from headwater.errors import HeadwaterError
from headwater.store import Declaration, Store
from headwater.topics import Topic
from headwater.topics.declaration import DEAD_LETTERS

Declarations = Mapping[str, Declaration]


class Relations:
    """The relations that any process declared. `topic` opens one by its name. Safe for threads."""

    def __init__(self, store: Store, topic: Callable[[str], Topic]) -> None:
        self._store = store
        self._topic = topic
        self._views: dict[int, tuple[Declaration, ViewDeclaration, Relation]] = {}
        self._seen: tuple[Declarations, Catalog] | None = None

    def get(self, name: object) -> Relation:
        """The relation of a name in any case; an error that lists the names if there is none."""
        found = self.find(name) if isinstance(name, str) else None
        if found is None:
            raise self.unknown(name)
        return found

    def find(self, name: str) -> Relation | None:
        """The relation of a name in any case, if there is one."""
        folded = name.lower()
        stored = self._store.find(folded)
        if stored is not None:
            return self._view(stored)[1] if stored.kind == VIEW else self._of_topic(stored).get(folded)
        for suffix in (LOG, DEAD_LETTERS):
            base = self._store.find(folded.removesuffix(suffix)) if folded.endswith(suffix) else None
            if base is not None and suffix == LOG and base.kind != VIEW:
                return self._of_topic(base).get(folded)
            if base is not None and suffix == DEAD_LETTERS and base.kind == VIEW:
                view = self._view(base)[1]
                return view.letters if view.ever_set_aside else None
        return None

    def topic(self, name: object, *, where: str) -> Declaration:
        """The declaration of a topic of this name in any case; an error that lists the names if there is none."""
        if not isinstance(name, str):
            msg = f"{name!r} is not a name"
            raise HeadwaterError(msg, where=where)
        stored = self._store.find(name.lower())
        if stored is None or stored.kind == VIEW:
            names = ", ".join(self._store.declarations()) or "none yet"
            msg = f"there is no topic called {name!r}"
            raise HeadwaterError(msg, where=where, hint=f"declared are: {names}")
        return stored

    def topics(self) -> list[str]:
        """The names of all topics, in the order in which they were declared."""
        return [each.name for each in self._store.declarations().values() if each.kind != VIEW]

    def view(self, name: str) -> ViewDeclaration | None:
        """The declaration of a view, or of a candidate, if there is one of just this name."""
        stored = self._store.find(name)
        return self._view(stored)[0] if stored is not None and stored.kind == VIEW else None

    def views(self) -> list[ViewDeclaration]:
        """The declarations of all views and candidates, in the order in which they were declared."""
        return [self._view(each)[0] for each in self._store.declarations().values() if each.kind == VIEW]

    def unknown(self, name: object) -> HeadwaterError:
        """The error for a name that does not exist."""
        names = list(self._store.declarations())
        close = difflib.get_close_matches(str(name).lower(), names, n=1)
        advice = f"did you mean {close[0]}? " if close else ""
        listed = f"there are {', '.join(names)}, and {LOG} of every topic" if names else "nothing is declared yet"
        msg = f"there is no view, table or stream called {name!r}"
        return HeadwaterError(msg, hint=advice + listed)

    def catalog(self) -> Catalog:
        """All that is declared now; made anew only if that has changed, since every tick asks."""
        declarations = self._store.declarations()
        seen = self._seen
        if seen is None or (seen[0] is not declarations and seen[0] != declarations):
            seen = self._seen = declarations, self._made(declarations)
        return seen[1]

    def _made(self, declarations: Declarations) -> Catalog:
        relations: dict[str, Relation] = {}
        views: list[ViewDeclaration] = []
        for stored in declarations.values():
            if stored.kind == VIEW:
                view, relations[stored.name] = self._view(stored)
                views.append(view)
            else:
                relations |= self._of_topic(stored)
        return Catalog.of(relations, views)

    def _of_topic(self, stored: Declaration) -> dict[str, Relation]:
        """A topic and its log by their names; nothing if it was dropped in this moment."""
        try:
            topic = self._topic(stored.name)
        except HeadwaterError:
            now = self._store.find(stored.name)
            if now is not None and now.number == stored.number:
                raise
            return {}
        return {each.name: each for each in (Relation.of_topic(topic), Relation.of_log(topic))}

    def _view(self, stored: Declaration) -> tuple[ViewDeclaration, Relation]:
        known = self._views.get(stored.number)
        if known is None or known[0] != stored:
            view = ViewDeclaration.from_stored(stored)
            known = self._views[stored.number] = stored, view, Relation.of_view(view)
        return known[1:]
