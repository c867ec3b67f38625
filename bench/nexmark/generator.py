"""The events of Nexmark: of 50 one is a person, then three are auctions, then 46 are bids.

The proportions, identifiers, hot keys, prices and lifetimes are those that the public benchmark documents; the
rows are our own. Half of the bids go to a hot auction, the first of every hundred; three quarters of them come from
a hot bidder, the second of every hundred people; three quarters of the auctions belong to a hot seller, the first
of every hundred people. All others refer to somebody recent, or to somebody up to ten ahead, who appears a little
later.

Event time is `start + number * step`, and up to `disorder` steps more, in whole milliseconds.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import numpy as np
import pyarrow as pa

from bench.nexmark import texts
from bench.nexmark.draws import Draws, Integers

EPOCH = 50
PERSONS, AUCTIONS, BIDS = 1, 3, 46
FIRST_ID = 1_000
FIRST_CATEGORY, CATEGORIES = 10, 5

ACTIVE_PEOPLE = 1_000
OPEN_AUCTIONS = 100
LEAD = 10
"""How far ahead of the newest person or auction a reference may be."""

HOT_BATCH = 100
"""One in so many people and auctions is hot."""

HOT_SELLERS, HOT_BIDDERS, HOT_AUCTIONS, HOT_CHANNELS = 4, 4, 2, 2
"""All but one in so many references go to a hot one."""

STEP = timedelta(microseconds=100)
START = datetime(2026, 1, 1, tzinfo=UTC)

_AT_ONCE = 100_000
"""Events that are made at once, which bounds the memory for what is drawn."""

_INSTANT = pa.timestamp("us", "UTC")
_MILLISECOND = timedelta(milliseconds=1)
_MICROSECOND = timedelta(microseconds=1)


@dataclass(frozen=True)
class Events:
    """Some consecutive events, by kind, each in the order in which they happened."""

    person: pa.Table
    auction: pa.Table
    bid: pa.Table

    def tables(self) -> dict[str, pa.Table]:
        """The tables by the name of their stream."""
        return {"person": self.person, "auction": self.auction, "bid": self.bid}

    @property
    def num_rows(self) -> int:
        """How many events."""
        return sum(table.num_rows for table in self.tables().values())


class Generator:
    """A source of events that can start at any number.

    The rows depend on seed, step, start and disorder only, not on how many are taken at once. Not for use from
    several threads at once; several generators share nothing that changes.
    """

    def __init__(
        self,
        seed: int,
        first: int = 0,
        *,
        step: timedelta = STEP,
        start: datetime = START,
        disorder: int = 10,
    ) -> None:
        self.next = first
        self._seed = seed
        self._step = step // _MICROSECOND
        self._start = (start - datetime(1970, 1, 1, tzinfo=UTC)) // _MICROSECOND
        self._disorder = disorder

    def take(self, events: int) -> Events:
        """The next so many events."""
        stop = self.next + events
        parts = [self._part(at, min(at + _AT_ONCE, stop)) for at in range(self.next, stop, _AT_ONCE)]
        parts = parts or [self._part(stop, stop)]
        self.next = stop
        return Events(
            pa.concat_tables([part.person for part in parts]),
            pa.concat_tables([part.auction for part in parts]),
            pa.concat_tables([part.bid for part in parts]),
        )

    def _part(self, first: int, stop: int) -> Events:
        numbers = np.arange(first, stop, dtype=np.int64)
        offsets = numbers % EPOCH
        is_person, is_bid = offsets < PERSONS, offsets >= PERSONS + AUCTIONS
        return Events(
            self._persons(numbers[is_person]),
            self._auctions(numbers[~(is_person | is_bid)]),
            self._bids(numbers[is_bid]),
        )

    def _persons(self, numbers: Integers) -> pa.Table:
        draws = Draws(self._seed, numbers)
        return pa.table(
            {
                "id": pa.array(_newest_person(numbers) + FIRST_ID),
                "name": texts.names(draws),
                "email_address": texts.emails(draws),
                "credit_card": texts.credit_cards(draws),
                "city": texts.chosen(draws, "city", texts.CITIES),
                "state": texts.chosen(draws, "state", texts.STATES),
                "date_time": _instants(self._times(numbers, draws)),
                "extra": texts.filler(draws, 130),
            }
        )

    def _auctions(self, numbers: Integers) -> pa.Table:
        draws = Draws(self._seed, numbers)
        times = self._times(numbers, draws)
        initial_bids = _prices(draws, "initial_bid")
        return pa.table(
            {
                "id": pa.array(_newest_auction(numbers) + FIRST_ID),
                "item_name": texts.words(draws, "item_name", 19),
                "description": texts.words(draws, "description", 99),
                "initial_bid": pa.array(initial_bids),
                "reserve": pa.array(initial_bids + _prices(draws, "reserve")),
                "date_time": _instants(times),
                "expires": _instants(times + self._lifetimes(draws)),
                "seller": pa.array(_people(draws, numbers, "seller", HOT_SELLERS, place=0)),
                "category": pa.array(draws.below("category", CATEGORIES) + FIRST_CATEGORY),
                "extra": texts.filler(draws, 390),
            }
        )

    def _bids(self, numbers: Integers) -> pa.Table:
        draws = Draws(self._seed, numbers)
        channels, urls = texts.channels()
        places = _channels(draws)
        return pa.table(
            {
                "auction": pa.array(_auctions_bid_for(draws, numbers)),
                "bidder": pa.array(_people(draws, numbers, "bidder", HOT_BIDDERS, place=1)),
                "price": pa.array(_prices(draws, "price")),
                "channel": texts.picked(channels, places),
                "url": texts.picked(urls, places),
                "date_time": _instants(self._times(numbers, draws)),
                "extra": texts.filler(draws, 68),
            }
        )

    def _times(self, numbers: Integers, draws: Draws) -> Integers:
        """Microseconds since 1970, in whole milliseconds."""
        late = draws.below("late", self._disorder * self._step)
        times = self._start + numbers * self._step + late
        return times - times % (_MILLISECOND // _MICROSECOND)

    def _lifetimes(self, draws: Draws) -> Integers:
        """Microseconds: on average as long as it takes until a hundred more auctions have appeared."""
        mean = OPEN_AUCTIONS * EPOCH // AUCTIONS * self._step
        unit = _MILLISECOND // _MICROSECOND
        return (1 + draws.below("lifetime", max(2 * mean // unit, 1))) * unit


def _newest_person(numbers: Integers) -> Integers:
    """The person that appears with these events or did so last; the first is 0."""
    return numbers // EPOCH


def _newest_auction(numbers: Integers) -> Integers:
    """The auction that appears with these events, which are no persons, or did so last; the first is 0."""
    return numbers // EPOCH * AUCTIONS + np.minimum(numbers % EPOCH - PERSONS, AUCTIONS - 1)


def _people(draws: Draws, numbers: Integers, role: str, ratio: int, *, place: int) -> Integers:
    """Somebody for each event: the one at this place of the newest hundred, or anybody active."""
    newest = _newest_person(numbers)
    active = np.minimum(newest + 1, ACTIVE_PEOPLE)
    anybody = newest + 1 - active + draws.below(role, active + LEAD)
    hot = newest - newest % HOT_BATCH + place
    return np.where(draws.all_but_one_in(f"hot {role}", ratio), hot, anybody) + FIRST_ID


def _auctions_bid_for(draws: Draws, numbers: Integers) -> Integers:
    newest = _newest_auction(numbers)
    oldest = np.maximum(newest - OPEN_AUCTIONS, 0)
    any_open = oldest + draws.below("auction", newest - oldest + 1 + LEAD)
    hot = newest - newest % HOT_BATCH
    return np.where(draws.all_but_one_in("hot auction", HOT_AUCTIONS), hot, any_open) + FIRST_ID


def _channels(draws: Draws) -> Integers:
    """Places in the list of channels, in which the hot ones come first."""
    hot = draws.below("hot channel", len(texts.HOT_CHANNELS))
    other = len(texts.HOT_CHANNELS) + draws.below("channel", texts.CHANNELS)
    return np.where(draws.all_but_one_in("heat of channel", HOT_CHANNELS), hot, other)


def _prices(draws: Draws, name: str) -> Integers:
    """From 100 to 100 million, every power of ten as often as every other."""
    return np.rint(10.0 ** (draws.real(name) * 6 + 2)).astype(np.int64)


def _instants(times: Integers) -> pa.Array:
    return pa.array(times).view(_INSTANT)
