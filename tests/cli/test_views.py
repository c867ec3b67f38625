from __future__ import annotations

import json
import resource
from collections.abc import Iterator

import pytest

import headwater as hw
from headwater.examples.shop import VIEWS, declare

from .conftest import Headwater

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, hw.Pipeline]]:
    """A shop with a few rows, its views filled, and one that is not."""
    path = str(tmp_path_factory.mktemp("views") / "shop")
    with hw.Pipeline("shop", path) as pipeline:
        shop = declare(pipeline)
        for view in VIEWS:
            view.declare(pipeline)
        shop.customers.upsert([{"id": 1, "name": "Ada", "country": "NO"}])
        shop.products.upsert([{"sku": "tent", "title": "Tent", "cents": 500}])
        pipeline.tick()
        pipeline.view("late", "SELECT id FROM orders")
        yield path, pipeline


def test_each_view_has_a_line_with_its_key_and_how_fresh_it_is(
    made: tuple[str, hw.Pipeline], headwater: Headwater
) -> None:
    done = headwater("views", "--pipeline", made[0])
    heading, *lines = done.stdout.splitlines()
    assert heading.split() == ["name", "key", "rows", "tick", "at", "schema"]
    assert [line.split()[0] for line in lines] == [*(view.name for view in VIEWS), "late"]
    assert lines[0].split()[1:5] == ["country", "0", "-", "-"]
    assert "not filled" in lines[-1]
    listed = json.loads(headwater("views", "--pipeline", made[0], "--json").stdout)
    assert [view["filled"] for view in listed] == [True] * len(VIEWS) + [False]


def test_a_view_that_pairs_all_rows_says_so(made: tuple[str, hw.Pipeline], headwater: Headwater) -> None:
    made[1].view("far", "SELECT a.id, b.id AS other FROM orders a JOIN orders b ON abs(a.id - b.id) > 7")
    said = headwater("views", "--pipeline", made[0]).stdout.splitlines()
    assert said[-1] == "far has a join that looks at every row of the other side: see explain"
    listed = json.loads(headwater("views", "--pipeline", made[0], "--json").stdout)
    assert [view["name"] for view in listed if view["pairs_all"]] == ["far"]
    made[1].drop("far")


def test_a_view_that_is_not_filled_is_not_ready(made: tuple[str, hw.Pipeline], headwater: Headwater) -> None:
    done = headwater("query", "SELECT * FROM late", "--pipeline", made[0])
    assert (done.returncode, done.stderr.splitlines()[0]) == (3, "error: late: no tick has filled this view yet")


def test_explain_shows_the_operators_and_their_state(made: tuple[str, hw.Pipeline], headwater: Headwater) -> None:
    text = headwater("explain", "revenue", "--pipeline", made[0]).stdout
    assert text.startswith("view revenue (country STRING, ")
    said = json.loads(headwater("explain", "REVENUE", "--pipeline", made[0], "--json").stdout)
    assert (said["name"], set(said["inputs"]), said["key"]) == ("revenue", {"customers", "orders"}, ["country"])
    assert said["text"] + "\n" == text
    assert said["plan"][0]["kind"] == "accumulating"


def test_looking_needs_no_spark_and_takes_less_than_a_second(
    made: tuple[str, hw.Pipeline], shell: Headwater
) -> None:
    """In processor time, the best of three, so that a busy machine does not fail it."""
    for words in (["query", "FROM revenue"], ["views"], ["explain", "revenue"]):
        took = []
        for _ in range(3):
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            assert shell(*words, "--pipeline", made[0]).returncode == 0
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            took.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
        assert min(took) < 1
