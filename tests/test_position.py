from __future__ import annotations

import random

import pytest

from headwater import HeadwaterError, Position


def test_parse_and_str_are_inverse() -> None:
    chance = random.Random(3)
    for _ in range(200):
        ends = {
            (chance.choice("abc"), chance.randrange(4)): chance.randrange(10**12)
            for _ in range(chance.randrange(5))
        }
        position = Position(tuple(sorted((topic, partition, end) for (topic, partition), end in ends.items())))
        assert Position.parse(str(position)) == position


def test_positions_are_joined_by_the_later_end_of_each_partition() -> None:
    left, right = Position.parse("orders@0:5,1:9"), Position.parse("orders@1:3,2:4")
    assert str(left | right) == "orders@0:5,1:9,2:4"
    assert left | right == right | left
    assert left | left == left


def test_positions_of_several_topics_travel_together() -> None:
    joined = Position.of("b", {0: 1}) | Position.of("a", {1: 2})
    assert str(joined) == "a@1:2;b@0:1"
    assert joined.topics == ("a", "b")
    assert joined.in_topic("a") == {1: 2}
    assert joined.in_topic("c") == {}


@pytest.mark.parametrize(
    "text", ["orders", "orders@", "orders@0", "orders@0:x", "@0:1", "orders@0:1;", "a b@0:1", "orders@-1:2"]
)
def test_what_is_not_a_position_is_an_error_that_shows_one(text: str) -> None:
    with pytest.raises(HeadwaterError, match="is not a position") as refused:
        Position.parse(text)
    assert "orders@0:42" in refused.value.hint
