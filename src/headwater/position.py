"""Position: how far an append reached, over the topics and partitions it touched."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from headwater.errors import HeadwaterError

_TOPIC = re.compile(r"(?P<topic>[^@;,:\s]+)@(?P<ends>\d+:\d+(?:,\d+:\d+)*)")


@dataclass(frozen=True, slots=True)
class Position:
    """The offset after the last appended record, by topic and partition.

    A read that waits for a position waits until everything below these offsets is in. `str` and `parse` are
    inverse; `|` joins two positions by taking the later end of each partition.

    >>> Position.of("orders", {0: 42, 2: 17}) | Position.of("orders", {0: 40, 1: 5})
    Position('orders@0:42,1:5,2:17')
    """

    ends: tuple[tuple[str, int, int], ...]

    @classmethod
    def of(cls, topic: str, ends: Mapping[int, int]) -> Position:
        """The position in one topic."""
        return cls(tuple(sorted((topic, partition, end) for partition, end in ends.items())))

    @classmethod
    def parse(cls, text: str) -> Position:
        """Read what `str` wrote; anything else is an error."""
        if not isinstance(text, str):
            msg = f"{text!r} is not a position"
            raise HeadwaterError(msg, hint="a position looks like orders@0:42,1:17")
        ends: dict[tuple[str, int], int] = {}
        for part in text.split(";") if text else ():
            match = _TOPIC.fullmatch(part)
            if match is None:
                msg = f"{text!r} is not a position"
                raise HeadwaterError(msg, hint="a position looks like orders@0:42,1:17")
            for pair in match["ends"].split(","):
                partition, end = pair.split(":")
                ends[match["topic"].lower(), int(partition)] = int(end)
        return cls(tuple(sorted((topic, partition, end) for (topic, partition), end in ends.items())))

    @property
    def topics(self) -> tuple[str, ...]:
        """The topics it speaks of."""
        return tuple(dict.fromkeys(topic for topic, _, _ in self.ends))

    def in_topic(self, topic: str) -> dict[int, int]:
        """The ends by partition in one topic; empty if it speaks of others only."""
        return {partition: end for name, partition, end in self.ends if name == topic}

    def __or__(self, other: Position) -> Position:
        later: dict[tuple[str, int], int] = {}
        for topic, partition, end in (*self.ends, *other.ends):
            later[topic, partition] = max(end, later.get((topic, partition), 0))
        return Position(tuple(sorted((topic, partition, end) for (topic, partition), end in later.items())))

    def __str__(self) -> str:
        return ";".join(
            f"{topic}@" + ",".join(f"{partition}:{end}" for partition, end in self.in_topic(topic).items())
            for topic in self.topics
        )

    def __repr__(self) -> str:
        return f"Position({str(self)!r})"
