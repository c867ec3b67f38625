"""Operators that have a faster way than evaluating anew, each where that way could go wrong, on both paths.

`shop.tick()` compares every view with batch, so each test says only what is special about it.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from random import Random

import pytest

import headwater as hw
from tests.equivalence.shop import Shop

pytestmark = [pytest.mark.spark, pytest.mark.slow]

NAN = float("nan")


def values(random: Random, number: int) -> dict[str, object]:
    return {
        "id": number,
        "k": random.choice([None, 1, 2, 3]),
        "x": random.choice([None, NAN, -0.0, 0.0, 1.5, 2.5]),
        "t": random.choice([None, "", "a", "B", "é"]),
    }


@pytest.fixture
def table(shop: Shop) -> hw.Table:
    return shop.table("a", "id INT, k INT, x DOUBLE, t STRING", key="id", partitions=2)


def stir(shop: Shop, table: hw.Table, seed: int, ticks: int = 3) -> None:
    """Ticks with rows that come, change and go."""
    random = Random(seed)
    for _ in range(ticks):
        table.upsert([values(random, number) for number in random.sample(range(30), random.choice([1, 8]))])
        table.delete(random.sample(range(30), random.choice([1, 6])))
        shop.tick()


def test_several_distincts_with_conditions(shop: Shop, table: hw.Table) -> None:
    counted = "count(*) AS n, count(*) FILTER (WHERE id > 9) AS m, max(t) AS last, sum(id) AS s"
    distinct = "count(DISTINCT x) AS x, count(DISTINCT t) FILTER (WHERE id < 20) AS t, count(DISTINCT id % 3) AS r"
    shop.view("by_key", f"SELECT k, {counted}, {distinct} FROM a GROUP BY k")
    shop.view("over_all", f"SELECT {counted}, {distinct} FROM a")
    shop.view("nested", "SELECT n, count(DISTINCT m) AS m, count(DISTINCT x) AS x FROM by_key GROUP BY n")
    assert "recompute: group by k" not in shop.pipeline.explain("by_key")
    stir(shop, table, 1)
    table.delete(list(range(30)))
    shop.tick()
    assert shop.rows("over_all") == [(0, 0, None, None, 0, 0, 0)]


def test_a_column_that_is_called_like_sparks_own(shop: Shop, table: hw.Table) -> None:
    inner = "SELECT k, t, id % 2 AS gid, max(id) AS m FROM a GROUP BY k, t, id % 2"
    shop.view("v", f"SELECT k, first(m, true) FILTER (WHERE gid = 0) AS f, count(*) AS n FROM ({inner}) GROUP BY k")
    assert "recompute" in shop.pipeline.explain("v")


def test_windows_that_hop_are_counted_by_slices(shop: Shop) -> None:
    stream = shop.stream("e", "k INT, x DOUBLE, at TIMESTAMP", partitions=2)
    table = shop.table("f", "id INT, k INT, at TIMESTAMP", key="id")
    for source in ("e", "f"):
        hops = f"FROM {source} GROUP BY k, window(at, '10 seconds', '2 seconds')"
        shop.view(f"{source}_counted", f"SELECT k, window.start AS s, count(*) AS n, count(k) AS m {hops}")
        shop.view(f"{source}_last", f"SELECT window.end AS e, max(k) AS last {hops}")
        odd = f"FROM {source} GROUP BY window(at, '5 seconds', '2 seconds')"
        shop.view(f"{source}_odd", f"SELECT window, sum(k) AS s, count(*) AS n {odd}")
    shop.view(
        "summed", "SELECT window, sum(x) AS s, avg(k) AS a FROM e GROUP BY window(at, '4 seconds', '2 seconds')"
    )
    shop.view("most", "SELECT s, max(n) AS n FROM e_counted GROUP BY s")
    random = Random(7)

    def moment(tick: int) -> datetime | None:
        at = random.choice([0, 1_700_000_000]) * 1_000_000 + random.randint(-8_000_000, 8_000_000)
        known = datetime.fromtimestamp(0, UTC) + timedelta(microseconds=at)
        return random.choice([None, known]) if tick == 1 else known

    keys = [None, 1, 1, 1, 2]
    for tick in range(3):
        events = [(random.choice(keys), random.choice([0.5, NAN]), moment(tick)) for _ in range(40)]
        stream.append([{"k": k, "x": x, "at": at} for k, x, at in events])
        chosen = random.sample(range(40), 20)
        table.upsert([{"id": number, "k": random.choice(keys), "at": moment(tick)} for number in chosen])
        table.delete(random.sample(range(40), 5))
        shop.tick()


@pytest.mark.parametrize("order", ["x DESC NULLS FIRST, t", "id % 2, x NULLS LAST"])
def test_first_rows_of_each_key(shop: Shop, table: hw.Table, order: str) -> None:
    ranked = f"SELECT *, row_number() OVER (PARTITION BY k ORDER BY {order}, id) AS place FROM a"
    shop.view("one", f"SELECT id, k, x, t FROM ({ranked}) WHERE place = 1")
    shop.view("three", f"SELECT k, place, id, t FROM ({ranked}) WHERE place <= 3")
    shop.view("two_and", f"SELECT k, id FROM ({ranked}) WHERE place < 3 AND id > 4")
    shop.view("second", f"SELECT id FROM ({ranked}) WHERE place = 2")
    shop.view("above", "SELECT k, count(*) AS n, sum(place) AS s FROM three GROUP BY k")
    by_float = f"SELECT *, row_number() OVER (PARTITION BY x, t ORDER BY {order}, id) AS place FROM a"
    shop.view("by_float", f"SELECT id, x FROM ({by_float}) WHERE place = 1")
    stir(shop, table, len(order))


def test_first_rows_of_events(shop: Shop) -> None:
    stream = shop.stream("e", "k INT, n INT, t STRING", partitions=2)
    ranked = "SELECT *, row_number() OVER (PARTITION BY k ORDER BY n DESC, t) AS place FROM e"
    shop.view("last", f"SELECT k, n, t FROM ({ranked}) WHERE place = 1")
    shop.view("five", f"SELECT n, t FROM ({ranked}) WHERE place <= 5")
    ranks = "SELECT k, t, rank() OVER (PARTITION BY k ORDER BY n) AS r FROM e"
    shop.view("ranks", f"SELECT * FROM ({ranks}) WHERE r <= 2")
    random = Random(3)
    for _ in range(4):
        rows = [{"k": random.choice([None, 1, 2]), "n": random.randint(0, 6), "t": "x"} for _ in range(12)]
        stream.append(rows + rows[:3])
        shop.tick()
    assert "by k: the rows of the view themselves" in shop.pipeline.explain("last")
    assert "themselves" not in shop.pipeline.explain("five")


def test_views_that_only_grow(shop: Shop) -> None:
    left = shop.stream("l", "k INT, t STRING", partitions=2)
    right = shop.stream("r", "k INT, u STRING")
    shop.view("copied", "SELECT t, k FROM l")
    shop.view("computed", "SELECT upper(t) AS t, k + 1 AS k FROM l WHERE k > 1")
    shop.view("both", "SELECT t AS v FROM l UNION ALL SELECT u FROM r")
    shop.view("joined", "SELECT l.t, r.u, k FROM l JOIN r USING (k)")
    shop.view("exploded", "SELECT k, explode(split(t, ',')) AS part FROM l")
    shop.view("above", "SELECT k, count(*) AS n FROM copied GROUP BY k")
    random = Random(4)
    for _ in range(6):  # enough for merges
        texts = random.choices([None, "a", "a,b"], k=6)
        left.append([{"k": random.choice([None, 1, 2, 3]), "t": text} for text in texts])
        right.append([{"k": random.choice([1, 2]), "u": "same"} for _ in range(2)])
        shop.tick()


def test_groups_are_added_up_apart_and_together(shop: Shop, table: hw.Table) -> None:
    calls = "count(x) AS c, sum(id) AS s, avg(id) AS a, stddev(id) AS d, count(*) FILTER (WHERE x > 1) AS f"
    shop.view("by_text", f"SELECT t, k, {calls} FROM a GROUP BY t, k")
    shop.view("renamed", f"SELECT k AS key, k AS again, {calls} FROM a GROUP BY k")
    shop.view("hidden", f"SELECT {calls} FROM a GROUP BY k")
    shop.view("in_all", f"SELECT {calls} FROM a")
    twice = "(SELECT * FROM a UNION ALL SELECT * FROM a WHERE id > 9)"  # by two tasks
    shop.view("of_both", f"SELECT k, {calls} FROM {twice} GROUP BY k")
    shop.view("least", "SELECT upper(t) AS t, min(id) AS n, max(k) AS k FROM a GROUP BY upper(t)")
    stir(shop, table, 6)


def test_keys_that_need_more_rows_than_came(shop: Shop, table: hw.Table) -> None:
    shop.view("left_join", "SELECT l.id AS l, r.id AS r FROM a l LEFT JOIN a r ON l.k = r.id AND l.x < r.x")
    shop.view("nulls", "SELECT id FROM a WHERE k NOT IN (SELECT id FROM a WHERE t = 'a')")
    window = "(PARTITION BY k ORDER BY id)"
    shop.view("windows", f"SELECT id, sum(id) OVER {window} AS s, lag(t) OVER {window} AS b FROM a")
    shop.view("plain", "SELECT upper(t) AS t, k FROM a WHERE id > 3")
    shop.view("middle", "SELECT k, median(id) AS m, max(x) AS x, collect_set(t) AS ts FROM a GROUP BY k")
    stir(shop, table, 7)
    table.delete(list(range(30)))
    shop.tick()
    assert not any(map(shop.rows, ("left_join", "nulls", "windows", "plain", "middle")))


def test_the_greatest_and_least_of_what_may_leave(shop: Shop, table: hw.Table) -> None:
    shop.view("greatest", "SELECT k, max(id) AS n FROM a GROUP BY k")
    shop.view("least", "SELECT min(t) AS t, k + 1 AS key FROM a GROUP BY k HAVING min(t) > ''")
    shop.view("of_float", "SELECT k, max(x) AS x FROM a GROUP BY k")
    counted = "SELECT k, t, count(*) AS n FROM a GROUP BY k, t"
    most = f"SELECT k, max(n) AS n FROM ({counted}) GROUP BY k"
    shop.view("most", f"SELECT c.k, c.t, c.n FROM ({counted}) c JOIN ({most}) m USING (k, n)")
    stir(shop, table, 8, ticks=4)
    table.upsert([{"id": 99, "k": 1, "x": None, "t": None}])
    shop.tick()
    table.delete([99])
    shop.tick()
    table.delete(list(range(30)))
    shop.tick()
    assert not any(map(shop.rows, ("greatest", "least", "of_float", "most")))


def test_what_arrow_is_unsure_of_is_left_to_spark(shop: Shop, table: hw.Table) -> None:
    shop.view("plain", "SELECT id, lower(t) AS t, length(t) AS n FROM a WHERE length(t) < 9")
    shop.view("joined", "SELECT l.id, upper(r.t) AS t FROM a l JOIN a r ON l.k = r.k WHERE length(r.t) > 0")
    shop.view("grouped", "SELECT lower(t) AS t, count(*) AS n FROM a GROUP BY lower(t)")
    shop.view("above", "SELECT m, count(*) AS n FROM (SELECT k, lower(max(t)) AS m FROM a GROUP BY k) GROUP BY m")
    shop.view("sums", "SELECT l.id, l.id * r.k AS n FROM a l JOIN a r ON l.k = r.id")
    table.upsert([{"id": n, "k": n % 3, "x": 0.0, "t": text} for n, text in enumerate(["A", "b", "É", "ǅ", None])])
    shop.tick()
    table.upsert([{"id": n, "k": n % 2, "x": 0.0, "t": text} for n, text in enumerate(["A", "b", "c"])])
    shop.tick()
    stir(shop, table, 9, ticks=2)
    table.upsert([{"id": 2**31 - 1, "k": 2, "x": None, "t": None}, {"id": 2, "k": 2, "x": None, "t": None}])
    shop.moved()
    assert "OVERFLOW" in shop.pipeline.explain("sums")


def test_constants_over_joins_and_sums_that_only_overflow_together(shop: Shop, table: hw.Table) -> None:
    joined = "a l JOIN a r ON l.k = r.id"
    shop.view("tagged", f"SELECT l.id, 'pair' AS kind FROM {joined}")
    shop.view("counted", f"SELECT l.k, sum(1) AS n, count(*) AS m FROM {joined} GROUP BY l.k")
    shop.view("both", f"SELECT 'l' AS tag, l.id FROM {joined} UNION ALL SELECT 'a', id FROM a")
    shop.view("sums", f"SELECT r.t, sum(l.id + 9223372036854775700L) AS s FROM {joined} GROUP BY r.t")
    table.upsert([{"id": n, "k": n % 2, "x": 0.0, "t": "t"} for n in range(1)])
    shop.tick()
    table.upsert([{"id": n, "k": 1, "x": 0.0, "t": f"t{n}"} for n in range(1, 3)])
    shop.moved()
    said = shop.pipeline.explain("sums")
    assert "OVERFLOW" in said
    assert "for the row" in said
