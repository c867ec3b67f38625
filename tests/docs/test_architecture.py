"""docs/architecture.md says what is there: its modules, its rooms, and a picture of the imports of today."""

from __future__ import annotations

import re

from tests.test_imports import SOURCE

from .rooms_picture import IMAGES, PICTURE, TEXT, WORDS, drawn, graph, picture, text

PAGE = (IMAGES.parent / "architecture.md").read_text()
ROOMS, WALK = PAGE.split("\n## ")[1:]
MODULE = re.compile(r"`((?:\w+/)*\w+\.py)`")
AGAIN = "draw it anew: make docs-picture"


def test_every_module_that_the_walk_names_exists() -> None:
    named = MODULE.findall(WALK)
    assert len(named) > 30
    assert not [module for module in named if not (SOURCE / module).is_file()]


def test_each_step_of_the_walk_names_one_module_and_no_other_does() -> None:
    steps = re.findall(r"^\d+\. (.*)$", WALK, re.MULTILINE)
    named = [MODULE.findall(step) for step in steps]
    assert all(len(each) == 1 for each in named), [
        step for step, each in zip(steps, named, strict=True) if len(each) != 1
    ]
    modules = [module for (module,) in named]
    assert sorted(modules) == sorted(set(modules))


def test_the_steps_are_numbered_one_after_the_other_on_both_paths() -> None:
    before, small, large, after = re.split(r"### The small path.*|### The large path.*|### The commit", WALK)
    numbers = [
        [int(number) for number in re.findall(r"^(\d+)\. ", part, re.MULTILINE)]
        for part in (before, small, large, after)
    ]
    first, last = numbers[0][-1] + 1, numbers[3][0]
    assert numbers[0] == list(range(1, first))
    assert numbers[1] == numbers[2] == list(range(first, last))
    assert numbers[3] == list(range(last, last + len(numbers[3])))


def test_every_room_is_told_and_none_that_is_not_there() -> None:
    told = re.findall(r"^\| `(\w+)` \|", ROOMS, re.MULTILINE)
    assert sorted(told) == sorted(set(graph()) - WORDS)


def test_the_picture_shows_the_imports_of_today() -> None:
    rooms = graph()
    assert TEXT.read_text() == text(rooms), AGAIN
    assert PICTURE.read_text() == picture(rooms), AGAIN


def test_an_arrow_that_follows_from_others_is_not_drawn_and_every_other_is() -> None:
    rooms = {"a": {"b", "c", "errors"}, "b": {"c"}, "c": {"errors"}, "d": {"c"}, "errors": set[str]()}
    assert drawn(rooms) == {"a": {"b"}, "b": {"c"}, "c": set(), "d": {"c"}}
