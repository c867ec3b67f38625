"""One small case for everything that is evaluated anew by key, each named after its trap, on both paths.

`shop.tick()` compares every view with batch, so each test says only what is special about it.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from random import Random

import pytest

import headwater as hw
from tests.equivalence.shop import Shop
from tests.seed import SEED

pytestmark = [pytest.mark.spark, pytest.mark.slow]

NAN = float("nan")
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


@pytest.fixture
def pair(shop: Shop) -> tuple[hw.Table, hw.Table]:
    return (
        shop.table("a", "id INT, k INT, x DOUBLE", key="id"),
        shop.table("b", "id INT, k INT, x DOUBLE", key="id", partitions=2),
    )


def rows(*values: tuple[int, int | None, float | None]) -> list[dict[str, float | None]]:
    return [{"id": number, "k": k, "x": x} for number, k, x in values]


# -- joins


def test_unmatched_rows_come_and_go(shop: Shop, pair: tuple[hw.Table, hw.Table]) -> None:
    a, b = pair
    for kind in ("LEFT", "RIGHT", "FULL"):
        shop.view(f"{kind}_join", f"SELECT a.id AS a, b.id AS b, b.x AS x FROM a {kind} JOIN b ON a.k = b.k")
    a.upsert(rows((1, 1, 1.0), (2, 1, None), (3, None, 1.0), (4, 4, 1.0)))
    shop.tick()
    assert shop.rows("left_join") == [(1, None, None), (2, None, None), (3, None, None), (4, None, None)]
    b.upsert(rows((1, 1, 2.0), (2, None, 2.0)))
    shop.tick()
    assert (None, 2, 2.0) in shop.rows("full_join")
    b.upsert(rows((3, 1, 3.0)))
    b.delete([1])
    a.delete([2])
    shop.tick()
    b.delete([1, 2, 3])
    shop.tick()
    assert shop.rows("right_join") == []


def test_a_condition_of_an_outer_join_is_no_filter(shop: Shop, pair: tuple[hw.Table, hw.Table]) -> None:
    a, b = pair
    shop.view("residual", "SELECT a.id AS a, b.id AS b FROM a LEFT JOIN b ON a.k = b.k AND a.x < b.x")
    shop.view("theta", "SELECT a.id AS a, b.id AS b FROM a FULL JOIN b ON a.x < b.x")
    shop.view("crossed", "SELECT a.id AS a, b.id AS b FROM a CROSS JOIN b")
    shop.view("inner_theta", "SELECT a.id AS a, b.id AS b FROM a JOIN b ON a.x <= b.x AND a.id <> b.id")
    a.upsert(rows((1, 1, 1.0), (2, 1, 5.0)))
    b.upsert(rows((1, 1, 2.0)))
    shop.tick()
    assert shop.rows("residual") == [(1, 1), (2, None)]
    b.upsert(rows((1, 1, 0.0), (2, 1, 9.0)))
    shop.tick()
    assert shop.rows("residual") == [(1, 2), (2, 2)]


def test_using_natural_and_null_safe_equality(shop: Shop, pair: tuple[hw.Table, hw.Table]) -> None:
    a, b = pair
    shop.view("used", "SELECT k, a.id AS a, b.id AS b FROM a FULL JOIN b USING (k)")
    shop.view("same", "SELECT a.id AS a, b.id AS b FROM a LEFT JOIN b ON a.k <=> b.k AND a.x <=> b.x")
    shop.view("natural", "SELECT id, k, x FROM a NATURAL LEFT JOIN b")
    a.upsert(rows((1, None, NAN), (2, 2, -0.0), (3, 3, None)))
    b.upsert(rows((1, None, NAN), (2, 2, 0.0), (3, 3, None)))
    shop.tick()
    assert shop.rows("same") == [(1, 1), (2, 2), (3, 3)]
    b.upsert(rows((1, 1, NAN), (2, 2, 1.0)))
    shop.tick()
    assert shop.rows("same") == [(1, None), (2, None), (3, 3)]


def test_not_in_knows_null(shop: Shop, pair: tuple[hw.Table, hw.Table]) -> None:
    a, b = pair
    shop.view("v", "SELECT id FROM a WHERE k NOT IN (SELECT k FROM b)")
    shop.view("two", "SELECT id FROM a WHERE (k, x) NOT IN (SELECT k, x FROM b)")
    shop.view("correlated", "SELECT id FROM a WHERE k NOT IN (SELECT k FROM b WHERE b.x = a.x)")
    a.upsert(rows((1, 1, 1.0), (2, 2, 2.0), (3, None, 1.0)))
    shop.tick()
    assert shop.rows("v") == [(1,), (2,), (3,)]  # nothing is in nothing, not even null
    b.upsert(rows((1, 1, 1.0)))
    shop.tick()
    assert shop.rows("v") == [(2,)]
    b.upsert(rows((2, None, 2.0)))
    shop.tick()
    assert shop.rows("v") == []
    b.delete([1, 2])
    shop.tick()
    assert shop.rows("v") == [(1,), (2,), (3,)]


def test_subqueries_in_every_place(shop: Shop, pair: tuple[hw.Table, hw.Table]) -> None:
    a, b = pair
    shop.view("scalar", "SELECT id, x - (SELECT avg(x) FROM b) AS d FROM a")
    shop.view("beside", "SELECT k, count(*) + (SELECT count(*) FROM b) AS n FROM a GROUP BY k")
    shop.view("having", "SELECT k FROM a GROUP BY k HAVING count(*) >= (SELECT count(*) FROM b)")
    shop.view("of_key", "SELECT id, (SELECT max(x) FROM b WHERE b.k = a.k) AS m FROM a")
    shop.view("any", "SELECT id FROM a WHERE EXISTS (SELECT 1 FROM b WHERE b.x > 5)")
    shop.view("some", "SELECT id, k IN (SELECT k FROM b) AS y FROM a WHERE k IN (SELECT k FROM b) OR x > 1")
    shop.view("beside_lateral", "SELECT a.id AS id, t FROM a, LATERAL (SELECT sum(x) AS t FROM b WHERE b.k = a.k)")
    a.upsert(rows((1, 1, 1.0), (2, 1, 2.0), (3, None, 4.0)))
    shop.tick()
    assert shop.rows("beside") == [(1, 2), (None, 1)]
    b.upsert(rows((1, 1, 8.0)))
    shop.tick()
    b.upsert(rows((1, 2, 4.0), (2, 1, 4.0)))
    shop.tick()
    b.delete([1, 2])
    shop.tick()


def test_more_than_one_row_for_one_value_is_an_error(shop: Shop, pair: tuple[hw.Table, hw.Table]) -> None:
    a, b = pair
    shop.view("v", "SELECT id, (SELECT x FROM b) AS x FROM a")
    a.upsert(rows((1, 1, 1.0)))
    shop.tick()
    position = b.upsert(rows((1, 1, 8.0), (2, 1, 8.0)))
    shop.moved()
    with pytest.raises(hw.ViewSuspended, match="more than one row"):
        shop.pipeline.read("v", after=position)
    b.delete([1])
    shop.moved()
    assert shop.rows("v") == [(1, 8.0)]
    a.upsert(rows((2, 1, 1.0)))
    shop.tick()


def test_set_operations_count(shop: Shop) -> None:
    a, b = shop.table("a", "x INT"), shop.table("b", "x INT")
    for word in ("UNION", "INTERSECT", "EXCEPT"):
        for every in ("", " ALL"):
            shop.view(f"{word}{every}".replace(" ", "_"), f"SELECT x FROM a {word}{every} SELECT x FROM b")
    a.append([{"x": 1}] * 3 + [{"x": None}] * 2 + [{"x": 2}])
    b.append([{"x": 1}] * 2 + [{"x": None}])
    shop.tick()
    assert shop.rows("except_all") == [(1,), (2,), (None,)]
    assert shop.rows("intersect_all") == [(1,), (1,), (None,)]
    b.append([{"x": 1}] * 2)
    a.delete([{"x": None}] * 2)
    shop.tick()
    assert shop.rows("except_all") == [(2,)]


# -- aggregates


def test_the_greatest_leaves(shop: Shop, pair: tuple[hw.Table, hw.Table]) -> None:
    a, _ = pair
    shop.view("v", "SELECT k, min(x) AS low, max(x) AS high, count(DISTINCT x) AS n FROM a GROUP BY k")
    shop.view("all", "SELECT max(x) AS high, max_by(id, struct(x, id)) AS who, median(x) AS m FROM a")
    shop.tick()
    assert shop.rows("all") == [(None, None, None)]
    a.upsert(rows((1, 1, 1.0), (2, 1, 9.0), (3, 1, NAN), (4, None, None)))
    shop.tick()
    a.delete([3])
    shop.tick()
    assert shop.rows("v") == [(1, 1.0, 9.0, 2), (None, None, None, 0)]
    a.delete([2, 4])
    shop.tick()
    assert shop.rows("v") == [(1, 1.0, 1.0, 1)]


def test_sums_of_floats_do_not_drift_when_rows_leave(shop: Shop, pair: tuple[hw.Table, hw.Table]) -> None:
    a, _ = pair
    shop.view("v", "SELECT k, sum(x) AS total, avg(x) AS mean, stddev(x) AS sd FROM a GROUP BY k")
    shop.view("over", "SELECT count(*) AS n, count(total) AS totals FROM v")
    for number in range(6):
        a.upsert(rows((number, 1, 0.1 * number), (number + 10, 1, 1e16)))
        a.delete([number + 10])
        shop.tick()
    a.upsert(rows((20, 1, 1e16)))
    shop.tick()
    a.delete([20])
    shop.tick()
    assert shop.rows("over") == [(1, 1)]
    assert shop.rows("v")[0][1] == pytest.approx(1.5, rel=1e-12)


def test_collected_lists_are_compared_in_any_order(shop: Shop, pair: tuple[hw.Table, hw.Table]) -> None:
    a, _ = pair
    shop.view("v", "WITH l AS (SELECT k, collect_list(id) AS ids FROM a GROUP BY k) SELECT k, ids AS i FROM l")
    shop.view("sorted", "SELECT k, sort_array(collect_set(id), false) AS ids FROM a GROUP BY k")
    a.upsert(rows(*((number * 7 % 11, 1, 0.0) for number in range(11))))
    shop.tick()
    a.delete([3, 10])
    shop.tick()
    assert shop.rows("v") == [(1, [0, 1, 2, 4, 5, 6, 7, 8, 9])]  # type: ignore[comparison-overlap]


def test_weights_above_one_go_through_everything(shop: Shop) -> None:
    bag = shop.table("bag", "g INT, x INT")
    shop.view("kinds", "SELECT g, collect_list(x) AS xs, percentile(x, 0.5) AS p, mode(x) AS m FROM bag GROUP BY g")
    shop.view("ranked", "SELECT g, x, row_number() OVER (PARTITION BY g ORDER BY x) AS r FROM bag")
    shop.view("outer_joined", "SELECT l.x AS l, r.x AS r FROM bag l LEFT JOIN bag r ON l.x = r.g")
    shop.view("top", "SELECT g, x FROM bag ORDER BY x, g LIMIT 3")
    bag.append([{"g": 1, "x": 1}] * 3 + [{"g": 1, "x": 2}] * 2)
    shop.tick()
    assert shop.rows("top") == [(1, 1), (1, 1), (1, 1)]
    bag.delete([{"g": 1, "x": 1}] * 2)
    bag.append([{"g": 2, "x": 1}] * 2)
    shop.tick()
    assert shop.rows("top") == [(1, 1), (2, 1), (2, 1)]


def test_grouping_sets_and_several_distincts(shop: Shop, pair: tuple[hw.Table, hw.Table]) -> None:
    a, _ = pair
    shop.view("rolled", "SELECT k, x, count(*) AS n, grouping_id() AS g FROM a GROUP BY ROLLUP (k, x)")
    shop.view("cubed", "SELECT k, x, max(id) AS m FROM a GROUP BY CUBE (k, x)")
    shop.view("distincts", "SELECT count(DISTINCT k) AS k, count(DISTINCT x) AS x, max(id) AS m FROM a")
    shop.view("pivoted", "SELECT * FROM (SELECT k, id FROM a) PIVOT (max(id) AS m FOR k IN (1, 2))")
    shop.view("unpivoted", "SELECT * FROM (SELECT id, k, id * 2 AS j FROM a) UNPIVOT (v FOR n IN (k, j))")
    a.upsert(rows((1, 1, 1.0), (2, 1, None), (3, None, 1.0), (4, 2, 2.0)))
    shop.tick()
    a.upsert(rows((4, 1, 1.0)))
    a.delete([3])
    shop.tick()


def test_windows_of_time_hop_and_sessions_merge(shop: Shop) -> None:
    clicks = shop.table("clicks", "id INT, who INT, at TIMESTAMP", key="id")
    shop.view("hops", "SELECT window(at, '10 minutes', '5 minutes') AS w, count(*) AS n FROM clicks GROUP BY 1")
    shop.view(
        "sessions",
        "SELECT who, session_window(at, '5 minutes') AS w, count(*) AS n, max(id) AS i FROM clicks GROUP BY 1, 2",
    )
    minutes = [(1, 1, 0), (2, 1, 8), (3, 2, 4)]
    clicks.upsert([{"id": i, "who": w, "at": NOON + timedelta(minutes=m)} for i, w, m in minutes])
    shop.tick()
    assert len(shop.rows("sessions")) == 3
    clicks.upsert([{"id": 4, "who": 1, "at": NOON + timedelta(minutes=4)}])
    shop.tick()
    assert len(shop.rows("sessions")) == 2
    clicks.delete([4])
    shop.tick()
    assert len(shop.rows("sessions")) == 3


def test_a_users_aggregate(shop: Shop, pair: tuple[hw.Table, hw.Table]) -> None:
    a, _ = pair
    shop.pipeline.udf("spread", lambda v: float(v.max() - v.min()), "DOUBLE", kind="aggregate")
    shop.view("v", "SELECT k, spread(x) AS s FROM a GROUP BY k")
    a.upsert(rows((1, 1, 1.0), (2, 1, 4.0), (3, 2, 2.0)))
    shop.tick()
    a.delete([2])
    shop.tick()
    assert shop.rows("v") == [(1, 0.0), (2, 0.0)]


def test_a_subquery_in_the_arguments_of_a_users_aggregate(shop: Shop, pair: tuple[hw.Table, hw.Table]) -> None:
    a, b = pair
    shop.pipeline.udf("spread", lambda v: float(v.max() - v.min()), "DOUBLE", kind="aggregate")
    shop.view("v", "SELECT k, spread(x * (SELECT count(*) FROM b)) AS s FROM a GROUP BY k")
    shop.view("w", "SELECT k, spread(x * (SELECT count(*) FROM b WHERE b.k = a.k)) AS s FROM a GROUP BY k")
    a.upsert(rows((1, 1, 1.0), (2, 1, 4.0), (3, 2, 2.0)))
    shop.tick()
    b.upsert(rows((1, 1, 1.0), (2, 2, 1.0)))
    shop.tick()
    assert shop.rows("v") == [(1, 6.0), (2, 0.0)]
    assert shop.rows("w") == [(1, 3.0), (2, 0.0)]
    b.delete([1])
    shop.tick()


# -- windows and limits


def test_window_functions_follow_their_partition(shop: Shop, pair: tuple[hw.Table, hw.Table]) -> None:
    a, _ = pair
    shop.view(
        "v",
        "SELECT id, rank() OVER w AS r, lag(id) OVER w AS before, sum(id) OVER (PARTITION BY k ORDER BY id "
        "ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING) AS near, ntile(2) OVER (PARTITION BY k ORDER BY id) AS half, "
        "count(*) OVER (PARTITION BY k ORDER BY id RANGE BETWEEN 2 PRECEDING AND CURRENT ROW) AS recent "
        "FROM a WINDOW w AS (PARTITION BY k ORDER BY x, id)",
    )
    shop.view("best", "SELECT k, id FROM a QUALIFY row_number() OVER (PARTITION BY k ORDER BY x DESC, id) <= 2")
    shop.view("all", "SELECT id, percent_rank() OVER (ORDER BY id) AS p FROM a")
    a.upsert(rows((1, 1, 1.0), (2, 1, 1.0), (3, 1, NAN), (4, None, 0.0), (5, None, None)))
    shop.tick()
    a.upsert(rows((2, 1, 9.0), (6, 2, 1.0)))
    a.delete([3, 4])
    shop.tick()
    assert shop.rows("best") == [(1, 1), (1, 2), (2, 6), (None, 5)]


def test_limit_and_offset_move_up_what_was_below(shop: Shop, pair: tuple[hw.Table, hw.Table]) -> None:
    a, _ = pair
    shop.view("top", "SELECT id FROM a ORDER BY x DESC, id LIMIT 2")
    shop.view("next", "SELECT id FROM a ORDER BY x DESC, id LIMIT 2 OFFSET 1")
    shop.view("rest", "SELECT id FROM a ORDER BY x DESC, id OFFSET 2")
    a.upsert(rows((1, 1, 1.0), (2, 1, 2.0), (3, 1, 3.0), (4, 1, None)))
    shop.tick()
    assert [shop.rows(name) for name in ("top", "next", "rest")] == [[(2,), (3,)], [(1,), (2,)], [(1,), (4,)]]
    a.delete([3])
    shop.tick()
    assert [shop.rows(name) for name in ("top", "next", "rest")] == [[(1,), (2,)], [(1,), (4,)], [(4,)]]


def test_what_sql_leaves_open_does_not_depend_on_the_order_of_arrival(shop: Shop) -> None:
    sql = {
        "limited": "SELECT g, x FROM {} LIMIT 2",
        "ties": "SELECT x FROM (SELECT x, row_number() OVER (PARTITION BY g ORDER BY 1) AS r FROM {}) WHERE r = 1",
        "firsts": "SELECT g, first(x) AS f, last(x) AS l, any_value(x) AS a FROM {} GROUP BY g",
        "lists": "SELECT g, array_join(collect_list(x), '') AS c FROM {} GROUP BY g",
    }
    given = [{"id": number, "g": number % 2, "x": number * 7 % 5} for number in range(6)]
    for name, order in (("there", given), ("back", given[::-1])):
        table = shop.table(name, "id INT, g INT, x INT", key="id")
        for view, query in sql.items():
            shop.pipeline.view(f"{view}_{name}", query.format(name))
        for row in order:
            table.upsert([row])
            assert shop.moved() is not None
    for view in sql:
        assert shop.rows(f"{view}_there") == shop.rows(f"{view}_back")
    assert shop.rows("limited_there") == [(0, 0), (0, 3)]  # the least of all columns, from left to right
    assert shop.rows("firsts_there") == [(0, 0, 4, 0), (1, 0, 2, 0)]
    assert shop.rows("lists_there") == [(0, "034"), (1, "012")]


def test_recursion_follows_edges_that_come_and_go(shop: Shop) -> None:
    edges = shop.table("edges", "a INT, b INT", key=["a", "b"])
    shop.view(
        "reach",
        "WITH RECURSIVE r(a, b, d) AS (SELECT a, b, 1 FROM edges UNION ALL "
        "SELECT r.a, e.b, d + 1 FROM r JOIN edges e ON r.b = e.a WHERE d < 5) SELECT DISTINCT a, b FROM r",
    )
    edges.upsert([{"a": 1, "b": 2}, {"a": 2, "b": 3}])
    shop.tick()
    assert shop.rows("reach") == [(1, 2), (1, 3), (2, 3)]
    edges.upsert([{"a": 3, "b": 4}])
    edges.delete([{"a": 1, "b": 2}])
    shop.tick()
    assert shop.rows("reach") == [(2, 3), (2, 4), (3, 4)]


def test_texts_that_only_differ_in_case_are_one_group_where_the_collation_says_so(shop: Shop) -> None:
    names = shop.table("names", "id INT, name STRING COLLATE UTF8_LCASE", key="id")
    shop.view("v", "SELECT lower(name) AS n, count(*) AS c FROM (SELECT name FROM names) GROUP BY name")
    names.upsert([{"id": 1, "name": "a"}, {"id": 2, "name": "A"}, {"id": 3, "name": "b"}])
    shop.moved()
    assert shop.rows("v") == [("a", 2), ("b", 1)]
    names.delete([1])
    shop.moved()
    assert shop.rows("v") == [("a", 1), ("b", 1)]


def test_first_rows_while_anything_comes_and_goes(shop: Shop) -> None:
    """What was given and what comes stand for all rows until one of those given leaves, also of equal rows."""
    chance = Random(SEED)
    bag, stream = shop.table("bag", "g INT, x INT"), shop.stream("s", "g INT, x INT")
    for name, relation in (("t", "bag"), ("s", "s")):
        shop.view(f"limit_{name}", f"SELECT x, g FROM {relation} ORDER BY x DESC, g LIMIT 4")
        shop.view(f"part_{name}", f"SELECT x + 1 AS y FROM {relation} ORDER BY g, x LIMIT 3")
        for function in ("rank", "dense_rank", "row_number"):
            over = f"{function}() OVER (PARTITION BY g ORDER BY x)"
            shop.view(f"{function}_{name}", f"SELECT g, x, {over} AS r FROM {relation} QUALIFY r <= 2")
        shop.view(f"all_{name}", f"SELECT x, rank() OVER (ORDER BY x) AS r FROM {relation} QUALIFY r <= 3")
    held: list[dict[str, int | None]] = []
    for _ in range(8):
        count = chance.randrange(6) if held else 6
        rows = [{"g": chance.choice([0, 1, None]), "x": chance.randrange(4)} for _ in range(count)]
        stream.append(rows[:2])
        bag.append(rows)
        held += rows
        chance.shuffle(held)
        gone = [held.pop() for _ in range(min(len(held), chance.randrange(5)))]
        bag.delete(gone)
        if rows or gone:
            shop.tick()
