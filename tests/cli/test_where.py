from __future__ import annotations

from pathlib import Path

import pytest

from headwater.cli.where import WrongUsage, find


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


@pytest.mark.parametrize("origin", ["--pipeline", "HEADWATER_PIPELINE"])
def test_a_folder_without_a_pipeline_is_named_with_where_it_came_from(tmp_path: Path, origin: str) -> None:
    given = str(tmp_path) if origin == "--pipeline" else None
    with pytest.raises(WrongUsage) as caught:
        find(given, environ={"HEADWATER_PIPELINE": str(tmp_path)})
    assert caught.value.where == origin
    assert str(tmp_path) in caught.value.what
