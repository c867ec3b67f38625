"""The four tables: keyed, keyed by two columns, a bag, and a stream. Names are shared so that they join."""

from __future__ import annotations

from tests.equivalence.traffic import Topic

ITEMS = Topic(
    "items",
    "table",
    (
        ("id", "int"),
        ("g", "int"),
        ("big", "wide"),
        ("name", "string"),
        ("price", "money"),
        ("score", "double"),
        ("ok", "boolean"),
        ("born", "date"),
        ("at", "timestamp"),
        ("tags", "ints"),
    ),
    key=("id",),
)
PARTS = Topic(
    "parts",
    "table",
    (("g", "int"), ("name", "string"), ("n", "int"), ("price", "money"), ("born", "date"), ("pair", "pair")),
    key=("g", "name"),
    partitions=2,
)
LOOSE = Topic(
    "loose",
    "bag",
    (
        ("id", "int"),
        ("g", "int"),
        ("score", "double"),
        ("ok", "boolean"),
        ("at", "timestamp"),
        ("tags", "ints"),
        ("pair", "pair"),
    ),
)
EVENTS = Topic(
    "events",
    "stream",
    (("id", "int"), ("n", "int"), ("big", "wide"), ("name", "string"), ("price", "money"), ("at", "timestamp")),
    required=("n",),
    partitions=2,
)
TOPICS = (ITEMS, PARTS, LOOSE, EVENTS)
ROWS = {"items": 10, "parts": 12, "loose": 16, "events": 24}
"""About how many rows each holds, so that joins stay small."""
