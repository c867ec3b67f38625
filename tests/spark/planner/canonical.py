"""Plans made again: the same queries planned in several sessions, in other orders, with others in between.

python -m tests.spark.planner.canonical 500        as many random queries, beside those of Nexmark
"""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator, Mapping

from bench.nexmark.queries import QUERIES
from bench.nexmark.streams import SIDE_INPUT, SIDE_INPUT_SCHEMA, STREAMS

from headwater import ViewRefused
from headwater.plan.sharing import split
from headwater.schema import Column, Schema, parse
from headwater.schema.plain import plain
from headwater.spark.engine import SparkEngine
from headwater.spark.planner.build import KnownRelation
from headwater.topics.record_view import LOG_COLUMNS
from tests.equivalence.deep.queries import make_query
from tests.equivalence.deep.schema import TOPICS

SEED = 20270120
DISTINCT = {
    "two": "SELECT g, count(DISTINCT id) AS x, count(DISTINCT big) AS y FROM items GROUP BY g",
    "many": "SELECT g, sum(DISTINCT id) AS a, count(DISTINCT big) AS b, count(DISTINCT name) AS c, "
    "count(DISTINCT price) AS d, count(DISTINCT score) AS e, count(DISTINCT born, at) AS f, max(id) AS h "
    "FROM items GROUP BY g",
    "made": "WITH m AS (SELECT g, lower(name) AS a, name || 'x' AS b, upper(name) AS c FROM items) "
    "SELECT m.g, count(DISTINCT m.a) AS x, count(DISTINCT m.b) AS y, count(DISTINCT n.c || m.a) AS z "
    "FROM m JOIN m AS n ON m.g = n.g GROUP BY m.g",
    "below": "SELECT g, count(DISTINCT s) AS x, count(DISTINCT t) AS y FROM "
    "(SELECT g, name, sum(id) AS s, max(price) AS t FROM items GROUP BY g, name) GROUP BY g",
    "names": "SELECT i.id, p.price, p.name, p.born, l.score FROM items i "
    "JOIN parts p ON i.g = p.g AND i.name = p.name LEFT JOIN loose l ON l.g = p.g AND l.id = i.id "
    "WHERE i.price > p.price AND p.n IN (1, 2, 3) AND i.born > p.born",
    "until": "WITH RECURSIVE r (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < 4) SELECT n FROM r",
    "reached": "WITH RECURSIVE r (id, g) AS (SELECT id, g FROM items WHERE ok UNION ALL "
    "SELECT l.id, l.g FROM loose l JOIN r ON l.id = r.g) SELECT DISTINCT id FROM r",
    "within": "SELECT id FROM items WHERE price > (SELECT avg(price) FROM parts) "
    "AND g NOT IN (SELECT g FROM loose) AND EXISTS (SELECT 1 FROM parts p WHERE p.g = items.g AND p.n > 2)",
}


def relations() -> dict[str, KnownRelation]:
    """What the queries read."""
    found: dict[str, KnownRelation] = {}
    streams = {name: (ddl, True) for name, ddl in STREAMS.items()} | {SIDE_INPUT: (SIDE_INPUT_SCHEMA, False)}
    for name, (ddl, only) in (streams | {t.name: (t.schema, t.kind == "stream") for t in TOPICS}).items():
        schema = plain(parse(ddl))
        found[name] = KnownRelation(name, schema, only)
        columns = [Column(column.name, column.type) for column in schema]
        found[f"{name}__log"] = KnownRelation(f"{name}__log", Schema((*LOG_COLUMNS, *columns)), True)
    return found


def corpus(count: int) -> dict[str, str]:
    """So many random queries, and others that people wrote."""
    return DISTINCT | dict(QUERIES) | {f"r{number}": make_query(SEED, number).sql() for number in range(count)}


def planned(queries: Mapping[str, str], chance: random.Random) -> Iterator[tuple[str, str]]:
    """The fingerprint of each query, or why it is refused, in a session of its own and in any order."""
    known = relations()
    engine = SparkEngine("canonical", {})
    names = sorted(queries)
    chance.shuffle(names)
    for name in names:
        for _ in range(chance.randrange(3)):  # numbers are used up in between
            engine.spark.range(1).selectExpr(*["id"] * chance.randrange(1, 40)).schema  # noqa: B018
        try:
            plan, _ = engine.plan(name, queries[name], known.get)
        except ViewRefused as error:
            yield name, f"refused: {error.what.split('#')[0]}"
        else:
            yield name, str(engine.fingerprints(split(plan, lambda place, keyed: None))[0])


def differences(queries: Mapping[str, str], times: int) -> list[str]:
    """The queries that do not always become the same plan."""
    found = [dict(planned(queries, random.Random(f"{SEED}:{number}"))) for number in range(times)]
    return [name for name in queries if len({each[name] for each in found}) > 1]


if __name__ == "__main__":
    from headwater.spark.session.start import start

    start("canonical", master="local[2]")
    wrong = differences(corpus(int(sys.argv[1])), 3)
    print(f"{len(wrong)} of {len(corpus(int(sys.argv[1])))} queries become other plans: {wrong}")
    sys.exit(bool(wrong))
