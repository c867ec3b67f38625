"""The home timeline: for every user the newest twenty posts of those they follow, always ready to be looked up.

A read is one lookup, whatever the number of people one follows; the work is done when somebody posts, follows or
changes their name. `headwater run examples/timeline/timeline.py` keeps the timelines fresh. In another shell,
`python examples/timeline/timeline.py` lets people post, and
`headwater query "SELECT place, name, text FROM timelines WHERE follower = 1 ORDER BY place"` reads one.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import islice
from random import Random

import headwater as hw

LENGTH = 20
TIMELINES = f"""
    SELECT follower, place, id, name, text, at
    FROM (
        SELECT f.follower, t.id, u.name, t.text, t.at,
               row_number() OVER (PARTITION BY f.follower ORDER BY t.at DESC, t.id DESC) AS place
        FROM tweets t
        JOIN follows f ON f.followee = t.sender
        JOIN users u ON u.id = t.sender
    )
    WHERE place <= {LENGTH}
"""  # noqa: S608 - a number of ours


class Network:
    """The tables of a small social network, and the view over them."""

    def __init__(self, pipeline: hw.Pipeline) -> None:
        self.users = pipeline.table("users", "id BIGINT, name STRING", key="id")
        self.follows = pipeline.table("follows", "follower BIGINT, followee BIGINT", key=["follower", "followee"])
        self.tweets = pipeline.table("tweets", "id BIGINT, sender BIGINT, text STRING, at TIMESTAMP", key="id")
        self.timelines = pipeline.view("timelines", TIMELINES, key=["follower", "place"])

    def live(self, chance: Random, people: int) -> Iterator[str]:
        """What people do, one thing at a time, without end; each is told in a word."""
        self.users.upsert([{"id": each, "name": f"user {each}"} for each in range(people)])
        posts: list[int] = []
        for number in range(1 << 62):
            someone = chance.randrange(people)
            other = int(people * chance.random() ** 3)  # a few are followed by most
            kind = chance.choices(["post", "follow", "unfollow", "rename", "delete"], [60, 25, 8, 4, 3])[0]
            if kind == "post":
                row = {"id": number, "sender": other, "text": f"number {number}", "at": datetime.now(UTC)}
                self.tweets.upsert([row])
                posts.append(number)
            elif kind == "follow":
                self.follows.upsert([{"follower": someone, "followee": other}])
            elif kind == "unfollow":
                self.follows.delete([{"follower": someone, "followee": other}])
            elif kind == "rename":
                self.users.upsert([{"id": other, "name": f"user {other}, the {number}th"}])
            elif posts:
                self.tweets.delete([posts.pop(chance.randrange(len(posts)))])
            yield kind


network = hw.Pipeline("network")
tables = Network(network)

if __name__ == "__main__":
    with network:
        for _ in islice(tables.live(Random(1), 50), 2000):  # noqa: S311 - a game
            time.sleep(0.01)
