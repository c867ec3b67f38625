from __future__ import annotations

import json
from pathlib import Path

import pytest

import headwater as hw

from .conftest import Headwater


@pytest.mark.usefixtures("shop")
def test_each_topic_has_a_line(headwater: Headwater) -> None:
    headwater("produce", "customers", given='{"id": 1, "name": "Ada", "country": "NO"}\n')
    done = headwater("topics")
    heading, *lines = done.stdout.splitlines()
    assert heading.split() == ["name", "kind", "key", "partitions", "durability", "records", "bytes", "schema"]
    assert [line.split()[0] for line in lines] == ["clicks", "customers", "orders", "products"]
    assert lines[1].split()[:6] == ["customers", "table", "id", "1", "fsync", "1"]
    assert lines[1].endswith("id BIGINT, name STRING, country STRING")


@pytest.mark.usefixtures("shop")
def test_json_is_one_document_with_plain_numbers(headwater: Headwater) -> None:
    said = json.loads(headwater("topics", "--json").stdout)
    assert said[2]["name"] == "orders"
    assert (said[2]["key"], said[2]["records"]) == (["id"], 0)


def test_a_pipeline_without_topics_says_how_to_declare_one(headwater: Headwater, folder: Path) -> None:
    with hw.Pipeline("empty", folder / ".headwater" / "empty"):
        pass
    done = headwater("topics")
    assert done.returncode == 0
    assert "no topics yet" in done.stdout


def test_without_a_pipeline_the_error_says_where_to_go(headwater: Headwater) -> None:
    done = headwater("topics")
    assert done.returncode == 2
    assert done.stderr.startswith("error: there is no pipeline in ./.headwater\nhint:  ")
