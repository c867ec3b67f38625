from __future__ import annotations

from pathlib import Path

import pytest

import headwater as hw
from headwater.cli.where import WrongUsage, find

from .conftest import Headwater


def pipeline(path: Path) -> str:
    path.mkdir(parents=True)
    (path / "headwater.db").touch()
    return str(path)


def test_the_only_pipeline_here_is_meant(tmp_path: Path) -> None:
    only = pipeline(tmp_path / ".headwater" / "shop")
    (tmp_path / ".headwater" / "something else").mkdir()
    assert find(None, here=str(tmp_path), environ={}) == only


def test_the_option_comes_before_the_variable_and_the_variable_before_the_folder(tmp_path: Path) -> None:
    pipeline(tmp_path / ".headwater" / "here")
    named, variable = pipeline(tmp_path / "named"), pipeline(tmp_path / "variable")
    environ = {"HEADWATER_PIPELINE": variable}
    assert find(None, here=str(tmp_path), environ=environ) == variable
    assert find(named, here=str(tmp_path), environ=environ) == named


def test_none_here_says_how_to_name_one(tmp_path: Path) -> None:
    with pytest.raises(WrongUsage) as caught:
        find(None, here=str(tmp_path), environ={})
    assert caught.value.what == "there is no pipeline in ./.headwater"
    assert "--pipeline PATH" in caught.value.hint


def test_several_are_listed_and_one_must_be_chosen(tmp_path: Path) -> None:
    for name in ("shop", "stock"):
        pipeline(tmp_path / ".headwater" / name)
    with pytest.raises(WrongUsage) as caught:
        find(None, here=str(tmp_path), environ={})
    assert caught.value.what == "there are 2 pipelines in ./.headwater: shop, stock"
    assert ".headwater/shop" in caught.value.hint


def test_what_is_left_of_one_without_its_database_is_not_passed_over(headwater: Headwater, folder: Path) -> None:
    path = folder / ".headwater" / "shop"
    with hw.Pipeline("shop", path) as shop:
        shop.stream("s", "id BIGINT").append([{"id": 1}])
    for file in path.glob("headwater.db*"):
        file.unlink()
    for words in (("topics",), ("tail", "s"), ("verify",), ("topics", "--pipeline", str(path))):
        done = headwater(*words)
        assert done.returncode == 1
        assert "headwater.db is missing, without which the topics that lie here cannot be read: s.1" in done.stderr
    done = headwater("doctor")
    assert done.returncode == 1
    assert "headwater.db is missing" in " ".join(done.stdout.split())
    (path / "headwater.db").touch()
    assert "headwater.db is missing" in headwater("topics").stderr
    assert not (path / "headwater.db").stat().st_size, "an empty one was made into a new one"


@pytest.mark.parametrize("origin", ["--pipeline", "HEADWATER_PIPELINE"])
def test_a_folder_without_a_pipeline_is_named_with_where_it_came_from(tmp_path: Path, origin: str) -> None:
    given = str(tmp_path) if origin == "--pipeline" else None
    with pytest.raises(WrongUsage) as caught:
        find(given, environ={"HEADWATER_PIPELINE": str(tmp_path)})
    assert caught.value.where == origin
    assert str(tmp_path) in caught.value.what
