"""What is stored of a view, as fields, and back."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from headwater.catalog.view import EarlierView, ViewDeclaration
from headwater.schema import parse
from headwater.store import Declaration

STORED: dict[str, Any] = {
    "sql": "SELECT country, sum(cents) AS cents FROM orders JOIN known USING (id) GROUP BY country",
    "key": ["country"],
    "schema": "country STRING, cents BIGINT",
    "inputs": ["orders", "known"],
    "plan": [
        {
            "depth": 0,
            "kind": "accumulating",
            "text": "group by country: sum(cents)",
            "work": "adds the change to the touched groups",
            "state": [{"name": "aggregate1", "key": "country"}],
        }
    ],
    "appends_only": False,
    "by": ["country"],
    "on_error": "dead_letter",
    "steady": ["known"],
    "shares": {"join1.left": "orders", "join1.right": "~1f0c"},
    "shared": {"~1f0c": ["known"]},
}
EARLIER = {"number": 3, "schema": "country STRING", "key": [], "by": ["country"], "on_error": "suspend"}
REPLACED = {
    **STORED,
    "since": 9,
    "renewed": "its plan has become another",
    "before": {**EARLIER, "since": 4, "before": {**EARLIER, "number": 1}},
}


def view(stored: dict[str, Any], name: str = "revenue") -> ViewDeclaration:
    return ViewDeclaration.from_stored(Declaration(name, "view", 7, json.loads(json.dumps(stored))))


@pytest.mark.parametrize("stored", [STORED, REPLACED, STORED | {"hold": True}], ids=["new", "replaced", "held"])
def test_what_is_stored_comes_back_as_it_was(stored: dict[str, Any]) -> None:
    assert view(stored).as_dict() == stored
    assert view(stored).stored() == Declaration("revenue", "view", 7, stored)


def test_older_folders_lack_some_of_it() -> None:
    bare = {name: STORED[name] for name in ("sql", "key", "schema", "inputs")}
    assert view(bare).on_error == "suspend"
    assert view(bare).shares == {}


def test_a_candidate_is_the_same_view_under_another_name() -> None:
    candidate = view(REPLACED).as_candidate("the function twice has changed")
    assert (candidate.name, candidate.base, candidate.is_candidate) == ("revenue@next", "revenue", True)
    assert (candidate.number, candidate.since, candidate.before) == (0, 0, None)
    assert candidate.as_dict() == STORED | {"renewed": "the function twice has changed"}
    assert view(STORED | {"hold": True}, "revenue@next").as_candidate().hold


def test_what_takes_over_knows_what_kept_versions_need_of_those_before_it() -> None:
    old = view(REPLACED)
    new = replace(view(STORED | {"hold": True}, "revenue@next"), number=8)
    taken = new.taking_over(old, 12, oldest=5)
    assert (taken.name, taken.number, taken.since, taken.hold) == ("revenue", 8, 12, False)
    first = EarlierView(
        3, parse("country STRING"), (), by=("country",), since=4
    )  # what was before it is in no version
    assert taken.before == EarlierView(
        7, old.schema, ("country",), "dead_letter", ("country",), since=9, before=first
    )
    assert new.taking_over(old, 12, oldest=9).before == replace(taken.before, before=None)
