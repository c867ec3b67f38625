"""Which regular expressions mean the same everywhere, and how one group of them is told."""

import pytest

from headwater.expressions.patterns import groups, is_plain, only_group

PLAIN = ["", "a", "(&|^)channel_id=([^&]*)", "x|y|", "^[A-Z]?b+", r"\d+-(\w+)\.htm", "[.?]*", "((a)|(b))c"]
OTHERS = ["a.b", "a$", "(?i)a", "a{2}", "(a)*", "a++", "a*?", "^*", "*a", "(a", "a)", ")(", "[a", "[]a]", "[a&&b]"]
OTHERS += ["[a-c]", r"\s", r"\b", r"\1", r"\p{L}", "é", "[[a]]", "a\n"]


@pytest.mark.parametrize("pattern", PLAIN)
def test_patterns_of_characters_classes_and_groups_are_plain(pattern: str) -> None:
    assert is_plain(pattern)


@pytest.mark.parametrize("pattern", OTHERS)
def test_what_java_may_see_otherwise_is_not_plain(pattern: str) -> None:
    assert not is_plain(pattern)


def test_one_group_has_a_name_and_the_others_do_not_count() -> None:
    assert groups("(&|^)id=([^(]*)") == 2
    assert only_group("(&|^)id=([^(]*)", 2) == "(?:&|^)id=(?P<found>[^(]*)"
    assert only_group("((a)|b)", 1) == "(?P<found>(?:a)|b)"
    assert only_group("(a)|b", 0) == "(?P<found>(?:a)|b)"
