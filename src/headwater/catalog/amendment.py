"""Amendment: what is to become of a view's declaration."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from headwater.catalog.catalog import Catalog
from headwater.catalog.view import ViewDeclaration
from headwater.store import Store

_logger = logging.getLogger("headwater.tick")


@dataclass(frozen=True)
class Amendment:
    """That a view is to be declared, to be declared otherwise, or to be forgotten."""

    how: Literal["declare", "amend", "forget"]
    view: ViewDeclaration

    def on(self, catalog: Catalog) -> Catalog:
        """The catalog as it will be."""
        return catalog.without(self.view.name) if self.how == "forget" else catalog.with_view(self.view)

    def apply(self, store: Store) -> None:
        """Do it. What is gone is neither amended nor forgotten; `DeclarationChanged` if another is in the way."""
        stored = self.view.stored()
        if self.how == "declare":
            store.declare(stored.name, stored.kind, stored.spec)
        elif self.how == "amend":
            store.amend(stored)
        else:
            store.forget(stored)


def amend(store: Store, amendments: Iterable[Amendment]) -> None:
    """Do all of them, in order; views that are made anew are told."""
    for each in amendments:
        each.apply(store)
        if each.how == "declare" and each.view.renewed:
            _logger.warning("the view %s is made anew: %s", each.view.base, each.view.renewed)
