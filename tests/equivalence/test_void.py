"""Columns of NULL are of the type VOID: null in every row, and Arrow's null to whoever reads them, on both paths.

`shop.tick()` compares every view with batch.
"""

from __future__ import annotations

import pyarrow as pa
import pytest

from headwater.pipeline import reopen
from headwater.state import packed
from headwater.testing import assert_same_as_batch
from tests.equivalence.shop import Shop

pytestmark = pytest.mark.spark

VIEWS = {
    "plain": "SELECT id, k, NULL AS n FROM a",
    "nested": "SELECT id, array(NULL) AS l, array() AS e, named_struct('n', NULL, 'k', k) AS s, "
    "map('x', NULL) AS m, array(named_struct('n', NULL)) AS d FROM a",
    "untyped": "SELECT id, CASE WHEN k > 1 THEN NULL END AS n, coalesce(NULL, NULL) AS c, "
    "if(k > 1, NULL, NULL) AS i FROM a",
    "nothing_else": "SELECT NULL AS n FROM a",
    "all_rows": "SELECT id, NULL AS n FROM a UNION ALL SELECT id, n FROM plain",
    "each_once": "SELECT k, NULL AS n FROM a UNION SELECT k, n FROM plain",
    "typed": "SELECT id, NULL AS n FROM a UNION ALL SELECT id, k FROM a",
    "distinct_rows": "SELECT DISTINCT k, n FROM plain",
    "joined": "SELECT l.id, l.n AS one, r.n AS other FROM plain l JOIN plain r ON l.k = r.id",
    "by_same": "SELECT l.id, r.id AS other, l.n FROM plain l JOIN plain r ON l.n <=> r.n AND l.k = r.k",
    "outer_by_same": "SELECT l.id, r.id AS other FROM plain l LEFT JOIN plain r ON l.n <=> r.n AND l.k = r.id",
    "inside": "SELECT id FROM plain p WHERE EXISTS (SELECT 1 FROM nested q WHERE q.s.n <=> p.n AND q.id = p.k)",
    "unmatched": "SELECT l.id, r.n, r.s, r.l FROM a l LEFT JOIN (SELECT p.n, q.* FROM plain p JOIN nested q "
    "ON p.id = q.id) r ON l.k = r.id",
    "without": "SELECT id, n FROM plain WHERE id NOT IN (SELECT k FROM plain WHERE k IS NOT NULL)",
    "by_void": "SELECT n, count(*) AS c, count(n) AS d, max(n) AS g, min(n) AS l, max(k) AS k FROM plain "
    "GROUP BY n",
    "by_both": "SELECT k, n, max(n) AS g, sum(id) AS s FROM plain GROUP BY k, n",
    "greatest": "SELECT max(NULL) AS g, count(NULL) AS c, first(NULL) AS f, any_value(NULL) AS y FROM a",
    "sums": "SELECT k, sum(n) AS s, avg(n) AS v, collect_list(n) AS l, max(n) AS g FROM plain GROUP BY k",
    "by_struct": "SELECT s, count(*) AS c, max(e) AS g FROM nested GROUP BY s",
    "cubed": "SELECT k, n, count(*) AS c FROM plain GROUP BY CUBE (k, n)",
    "first_rows": "SELECT id, n FROM plain ORDER BY n, id DESC LIMIT 2",
    "ranked": "SELECT id, n, row_number() OVER (PARTITION BY k ORDER BY n, id) AS r, lag(n) OVER (PARTITION BY n "
    "ORDER BY id) AS b FROM plain",
    "one_each": "SELECT k, id, n FROM plain QUALIFY row_number() OVER (PARTITION BY k ORDER BY n, id) = 1",
    "asked": "SELECT id, n IS NULL AS i, coalesce(n, k) AS c, n = 1 AS e, concat(n, 'x') AS t, n <=> NULL AS s, "
    "CAST(n AS STRING) AS u, k + n AS p FROM plain",
    "opened": "SELECT id, l[0] AS x, s.n, s.k, m['x'] AS y, d[0].n AS z, size(e) AS w FROM nested",
    "exploded": "SELECT id, x, y FROM nested LATERAL VIEW explode(l) t AS x LATERAL VIEW OUTER explode(e) u AS y",
    "never_any": "SELECT id, x FROM a LATERAL VIEW explode(array()) t AS x",
    "chosen": "SELECT id, n FROM plain WHERE n IS NULL AND k > 0",
    "a_value": "SELECT id, (SELECT max(n) FROM plain) AS v, (SELECT n FROM plain WHERE id = 1) AS w FROM a",
    "called": "SELECT id, known(n) AS y, known(NULL) AS z FROM plain",
}

EMPTY = {
    "by_null": "SELECT l.id FROM plain l JOIN plain r ON l.n = r.n",
    "above_one": "SELECT id, n FROM plain WHERE n > 1",
}


def test_columns_of_null_are_kept_like_any_other(shop: Shop) -> None:
    a = shop.table("a", "id INT, k INT", key="id")
    shop.pipeline.udf("known", lambda value: value is not None, "BOOLEAN")
    for name, sql in VIEWS.items():
        shop.view(name, sql, **({"key": "id"} if name in {"plain", "nested"} else {}))
    a.upsert([{"id": number, "k": number % 3 or None} for number in range(1, 8)])
    shop.tick()
    a.upsert([{"id": 2, "k": 1}, {"id": 9, "k": 9}])
    a.delete([1, 7])
    shop.tick()
    pipeline = shop.pipeline
    assert pipeline.read("plain").schema.field("n").type == pa.null()
    assert pipeline.read("nested").schema.field("l").type.value_type == pa.null()
    assert pipeline.lookup("plain", 2).to_pylist() == [{"id": 2, "k": 1, "n": None}]
    assert pipeline.lookup("nested", 9).to_pylist()[0]["s"] == {"n": None, "k": 9}
    assert pipeline.query(
        "SELECT count(*) AS c, count(n) AS d, max(s.n) AS g FROM plain JOIN nested USING (id)"
    ).to_pylist() == [{"c": 6, "d": 0, "g": None}]
    assert shop.changes("nothing_else", since=1) == [(-1, None)]
    shop.view("alone", "SELECT NULL AS n, array(NULL) AS l")
    shop.tick()
    assert pipeline.read("alone").to_pylist() == [{"n": None, "l": [None]}]


def test_what_null_rules_out_is_empty_and_reads_nothing(shop: Shop) -> None:
    a = shop.table("a", "id INT, k INT", key="id")
    for name, sql in {"plain": VIEWS["plain"], **EMPTY}.items():
        shop.pipeline.view(name, sql)
    for filled in (dict.fromkeys(EMPTY, "small"), {}):
        a.upsert([{"id": len(filled), "k": 1}])
        tick = shop.moved()
        assert tick is not None
        assert tick.paths == {"plain": shop.path, **filled}
        assert_same_as_batch(shop.pipeline)
    assert [shop.rows(name) for name in EMPTY] == [[], []]


def test_columns_of_null_outlive_the_process(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    a = shop.table("a", "id INT, k INT", key="id")
    kept = [name for name in VIEWS if name in {"plain", "nested", "joined", "by_void", "by_struct", "first_rows"}]
    for name in kept:
        shop.view(name, VIEWS[name])
    a.upsert([{"id": number, "k": number % 5} for number in range(20)])
    shop.tick()
    shop.pipeline.close()
    monkeypatch.setattr(packed, "_ROWS", 1 << 30)
    shop.pipeline = reopen(shop.pipeline.path)
    a = shop.table("a", "id INT, k INT", key="id")
    for name in kept:
        shop.pipeline.view(name, VIEWS[name])
    for number in range(4):  # runs are merged
        a.upsert([{"id": 3, "k": number}, {"id": 20 + number, "k": None}])
        a.delete([4 + number])
        shop.tick()
