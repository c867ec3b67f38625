"""The same query becomes the same plan, whatever was planned before; and its text need not be the same to be."""

from __future__ import annotations

import pytest

from headwater.plan.sql_text import same_sql
from tests.spark.planner.canonical import corpus, differences


@pytest.mark.spark
def test_plans_do_not_depend_on_what_was_planned_before() -> None:
    queries = corpus(8)
    chosen = [name for name in queries if name[0] != "q"] + ["q5", "q14", "q15", "q16"]
    assert differences({name: queries[name] for name in chosen}, 2) == []


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("SELECT a FROM t", "SELECT a\n\tFROM t -- all of it\n"),
        ("SELECT a FROM t", "SELECT a /* b /* c */ d */ FROM t"),
        ("SELECT a+1 FROM t", "SELECT a + 1 FROM t"),
        ("SELECT a FROM t", "SELECT a FROM t /* open"),
        ("SELECT a FROM t", "SELECT a FROM t ; -- all of it"),
        ("SELECT 'it''s', r'\\' FROM t", "SELECT 'it''s' , r'\\' FROM t --"),
    ],
)
def test_white_space_and_comments_make_no_other_text(one: str, other: str) -> None:
    assert same_sql(one, other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("SELECT 'a b' FROM t", "SELECT 'a  b' FROM t"),
        ("SELECT `a b` FROM t", "SELECT `a  b` FROM t"),
        ('SELECT "a--" FROM t', 'SELECT "a"'),
        ("SELECT 'A' FROM t", "SELECT 'a' FROM t"),
        ("SELECT a FROM t", "SELECT A FROM t"),
        ("SELECT ';' FROM t", "SELECT '' FROM t"),
        ("SELECT a b FROM t", "SELECT ab FROM t"),
        ("SELECT /*+ BROADCAST(t) */ a FROM t", "SELECT a FROM t"),
        (r"SELECT 'a\' -- ', b FROM t", r"SELECT 'a\' ', b FROM t"),
        ("SELECT r'\\' -- ' FROM t", "SELECT r'\\' || ' FROM t"),
        ("SELECT a < = b FROM t", "SELECT a <= b FROM t"),
        ("SELECT a * 1e-5 FROM t", "SELECT a * 1e - 5 FROM t"),
        ("SELECT a - -1 FROM t", "SELECT a --1 FROM t"),
    ],
)
def test_all_else_does(one: str, other: str) -> None:
    assert not same_sql(one, other)
