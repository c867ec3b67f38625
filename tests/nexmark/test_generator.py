from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from bench.nexmark.generator import EPOCH, FIRST_ID, LEAD, OPEN_AUCTIONS, Events, Generator
from bench.nexmark.queries import QUERIES
from bench.nexmark.streams import SIDE_INPUT_SCHEMA, STREAMS, side_input
from bench.nexmark.texts import HOT_CHANNELS, STATES

from headwater.schema import parse

EVENTS = 100_000
STEP = timedelta(milliseconds=100)


@pytest.fixture(scope="module")
def events() -> Events:
    return Generator(1, step=STEP).take(EVENTS)


def joined(parts: list[Events]) -> dict[str, pa.Table]:
    return {name: pa.concat_tables([part.tables()[name] for part in parts]) for name in STREAMS}


def share(mask: pa.ChunkedArray) -> float:
    return float(pc.mean(pc.cast(mask, pa.int8())).as_py())


def numbers_of_bids(count: int) -> np.ndarray:
    numbers = np.arange(count)
    return numbers[numbers % EPOCH >= 4]


def test_columns_are_those_of_the_declared_streams(events: Events) -> None:
    for name, ddl in STREAMS.items():
        assert events.tables()[name].schema == parse(ddl).arrow
    assert side_input().schema == parse(SIDE_INPUT_SCHEMA).arrow


def test_of_fifty_events_one_is_a_person_and_three_are_auctions(events: Events) -> None:
    assert (events.person.num_rows, events.auction.num_rows, events.bid.num_rows) == (2_000, 6_000, 92_000)
    assert events.num_rows == EVENTS
    first = Generator(1).take(5)
    assert (first.person.num_rows, first.auction.num_rows, first.bid.num_rows) == (1, 3, 1)


@pytest.mark.parametrize("seed", range(5))
def test_rows_do_not_depend_on_how_many_are_taken_at_once(seed: int) -> None:
    sizes = random.Random(seed).choices([0, 1, 2, 3, 7, 49, 50, 51, 1_000], k=40)
    whole = Generator(seed).take(sum(sizes))
    generator = Generator(seed)
    assert joined([generator.take(size) for size in sizes]) == whole.tables()


def test_large_takes_are_whole() -> None:
    whole = Generator(3).take(250_001)
    generator = Generator(3)
    assert joined([generator.take(99_999), generator.take(150_002)]) == whole.tables()


def test_a_generator_can_start_anywhere() -> None:
    behind = Generator(1)
    behind.take(777)
    assert Generator(1, first=777).take(100).tables() == behind.take(100).tables()


def test_another_seed_gives_other_rows() -> None:
    assert Generator(1).take(100).bid != Generator(2).take(100).bid


def test_people_and_auctions_are_numbered_from_1000_on(events: Events) -> None:
    assert events.person["id"].to_pylist() == list(range(FIRST_ID, FIRST_ID + 2_000))
    assert events.auction["id"].to_pylist() == list(range(FIRST_ID, FIRST_ID + 6_000))


def test_references_are_to_somebody_recent_or_soon_to_come(events: Events) -> None:
    numbers = numbers_of_bids(EVENTS)
    newest_auction = numbers // EPOCH * 3 + 2 + FIRST_ID
    auctions = events.bid["auction"].to_numpy()
    assert (auctions <= newest_auction + LEAD).all()
    assert (auctions >= np.maximum(newest_auction - OPEN_AUCTIONS, FIRST_ID)).all()
    bidders = events.bid["bidder"].to_numpy()
    assert (bidders <= numbers // EPOCH + FIRST_ID + LEAD).all()
    assert bidders.min() >= FIRST_ID
    sellers = events.auction["seller"].to_numpy()
    assert (sellers <= np.arange(6_000) // 3 + FIRST_ID + LEAD).all()
    assert sellers.min() >= FIRST_ID
    assert 0.85 < np.mean(auctions <= newest_auction) < 1


def test_hot_keys_are_hot(events: Events) -> None:
    assert np.mean(events.bid["auction"].to_numpy() % 100 == 0) == pytest.approx(0.5, abs=0.02)
    assert np.mean(events.bid["bidder"].to_numpy() % 100 == 1) == pytest.approx(0.75, abs=0.02)
    assert np.mean(events.auction["seller"].to_numpy() % 100 == 0) == pytest.approx(0.75, abs=0.02)
    assert share(pc.is_in(events.bid["channel"], pa.array(HOT_CHANNELS))) == pytest.approx(0.5, abs=0.02)


def test_every_power_of_ten_is_as_frequent_among_prices_as_any_other(events: Events) -> None:
    prices = events.bid["price"].to_numpy()
    assert 100 <= prices.min() <= prices.max() <= 100_000_000
    for power in range(2, 8):
        assert np.mean((prices >= 10**power) & (prices < 10 ** (power + 1))) == pytest.approx(1 / 6, abs=0.01)
    assert pc.all(pc.greater(events.auction["reserve"], events.auction["initial_bid"])).as_py()


def test_urls_have_three_folders_and_nine_in_ten_of_the_small_channels_an_identifier(events: Events) -> None:
    bids = events.bid.filter(pc.invert(pc.is_in(events.bid["channel"], pa.array(HOT_CHANNELS))))
    assert all(channel.startswith("channel-") for channel in bids["channel"].to_pylist())
    assert share(pc.match_substring(bids["url"], "&channel_id=")) == pytest.approx(0.9, abs=0.02)
    assert {url.count("/") for url in events.bid["url"].to_pylist()} == {6}
    assert len(set(zip(bids["channel"].to_pylist(), bids["url"].to_pylist(), strict=True))) == len(
        set(bids["channel"].to_pylist())
    )


def test_states_and_categories_are_few(events: Events) -> None:
    assert set(events.person["state"].to_pylist()) == set(STATES)
    assert set(events.auction["category"].to_pylist()) == set(range(10, 15))


def test_filler_has_the_documented_size(events: Events) -> None:
    for table, mean in ((events.bid, 68), (events.auction, 390), (events.person, 130)):
        lengths = pc.utf8_length(table["extra"]).to_numpy()
        assert np.mean(lengths) == pytest.approx(mean, rel=0.02)
        assert mean * 0.79 <= lengths.min() <= lengths.max() <= mean * 1.21
        assert len(set(table["extra"].to_pylist())) > table.num_rows * 0.98


def test_event_time_advances_with_a_little_disorder(events: Events) -> None:
    start = datetime(2026, 1, 1, tzinfo=UTC)
    times = events.bid["date_time"].cast(pa.int64()).to_numpy() - int(start.timestamp()) * 1_000_000
    behind = times - numbers_of_bids(EVENTS) * 100_000
    assert (behind >= 0).all()
    assert (behind <= 1_000_000).all()
    assert (times % 1_000 == 0).all()
    assert 0.2 < np.mean(np.diff(times) < 0) < 0.6
    ordered = Generator(1, step=STEP, disorder=0).take(1_000).bid["date_time"].cast(pa.int64()).to_numpy()
    assert (np.diff(ordered) >= 100_000).all()


def test_auctions_close_about_a_hundred_auctions_later(events: Events) -> None:
    opened, closed = (events.auction[name].cast(pa.int64()).to_numpy() for name in ("date_time", "expires"))
    assert (closed > opened).all()
    assert np.mean(closed - opened) == pytest.approx(100 * EPOCH / 3 * 100_000, rel=0.05)


def test_there_are_23_queries() -> None:
    assert list(QUERIES) == [f"q{number}" for number in range(23)]
