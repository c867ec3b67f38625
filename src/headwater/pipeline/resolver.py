"""Resolver: what the names in a query stand for."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from headwater.catalog.catalog import Catalog
from headwater.catalog.names import is_candidate
from headwater.catalog.relation import Relation
from headwater.catalog.view import ViewDeclaration
from headwater.schema import Column, Schema
from headwater.schema.plain import plain
from headwater.spark.planner.build import KnownRelation
from headwater.topics.record_view import LOG_COLUMNS


class Resolver:
    """Finds relations for the planner in one catalog, so that it gives the same whenever it is asked.

    Of views in `changing`, with these columns, it is assumed that rows can disappear, of those in `steady` that
    they never do, of others what the catalog says. Topics have the columns that they had when they had been altered
    as often as `seen` says; all that they have now if that is not given.
    """

    def __init__(
        self,
        catalog: Catalog,
        changing: Mapping[str, Schema] | None = None,
        steady: Collection[str] = (),
        seen: Mapping[str, int] | None = None,
    ) -> None:
        self._catalog = catalog
        self._seen = seen
        self._changing = changing or {}
        self._steady = steady

    @classmethod
    def as_declared(cls, view: ViewDeclaration, catalog: Catalog) -> Resolver:
        """With what was assumed of the views that a view reads, and known of topics, when it was declared."""
        views = {name: catalog.views[name].schema for name in view.inputs if name in catalog.views}
        changing = {name: schema for name, schema in views.items() if name not in view.steady}
        return cls(catalog, changing, view.steady, view.seen)

    def __call__(self, name: str) -> KnownRelation | None:
        """What a name in any case stands for; None if a query may not read it."""
        folded = name.lower()
        if folded in self._changing:
            return KnownRelation(folded, self._changing[folded], appends_only=False)
        relation = self._catalog.find(folded)
        if relation is None or relation.kind == "letters" or is_candidate(relation.name):
            return None
        if relation.kind == "view":
            appends_only = folded in self._steady or self._catalog.appends_only(folded)
            return KnownRelation(folded, relation.schema, appends_only)
        schema = plain(self._columns(relation))
        if relation.kind == "log":
            columns = [Column(column.name, column.type) for column in schema]
            schema = Schema((*LOG_COLUMNS, *columns))
        key = relation.key if relation.kind == "table" else ()
        return KnownRelation(folded, schema, relation.kind in {"stream", "log"}, key)

    def _columns(self, relation: Relation) -> Schema:
        if self._seen is None or relation.topic is None:
            return relation.schema
        return relation.seen(self._seen.get(relation.topic.name, 0))
