from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

import headwater as hw

from .conftest import Headwater, click


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


def test_a_topic_whose_folder_is_gone_leaves_the_others_usable(headwater: Headwater, shop: Path) -> None:
    headwater("produce", "clicks", given=click("s"))
    (gone,) = (path for path in shop.rglob("*orders*") if path.is_dir())
    shutil.rmtree(gone)
    assert headwater("produce", "clicks", given=click("t")).returncode == 0
    assert len(headwater("tail", "clicks", "--json").stdout.splitlines()) == 2
    listed = headwater("topics")
    assert listed.returncode == 1
    assert [line.split()[0] for line in listed.stdout.splitlines()[1:]] == ["clicks", "customers", "products"]
    assert listed.stderr.startswith("error: orders: ")
    assert ["fault" in topic for topic in json.loads(headwater("topics", "--json").stdout)] == [0, 0, 1, 0]
    checked = json.loads(headwater("doctor", "--json").stdout)["checks"]
    assert {part["name"]: part["ok"] for part in checked if part["name"] in {"clicks", "orders"}} == {
        "clicks": True,
        "orders": False,
    }
