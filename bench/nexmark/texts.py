"""The texts of the events, ready to be picked by number, the same for every seed.

Short texts come whole from a list; filler is glued from two pieces of a list of 4,096, so that there are 16 million
different ones and making them costs no more than copying.
"""

from __future__ import annotations

import random
import string
from functools import cache

import pyarrow as pa
import pyarrow.compute as pc

from bench.nexmark.draws import Draws, Integers

STATES = ("AZ", "CA", "ID", "OR", "WA", "WY")
CITIES = (
    *("Phoenix", "Los Angeles", "San Francisco", "Boise", "Portland"),
    *("Bend", "Redmond", "Seattle", "Kent", "Cheyenne"),
)
FIRST_NAMES = ("Ada", "Bruno", "Carla", "Dmitri", "Edith", "Farid", "Greta", "Hugo", "Ines", "Jonas", "Kirsten")
LAST_NAMES = ("Andersen", "Brandt", "Castillo", "Dubois", "Eriksen", "Fischer", "Grimaldi", "Hansen", "Ivanova")
HOT_CHANNELS = ("Google", "Facebook", "Baidu", "Apple")
CHANNELS = 10_000

_PIECES = 4_096
_SHORTEST = 3
_WITHOUT_ID = 10
"""One in so many channels has no `channel_id` in its URL."""


def picked(texts: pa.Array, places: Integers) -> pa.Array:
    """The texts at these places."""
    return texts.take(pa.array(places))


def chosen(draws: Draws, name: str, texts: tuple[str, ...]) -> pa.Array:
    """One of these for each event."""
    return picked(pa.array(texts), draws.below(name, len(texts)))


def words(draws: Draws, name: str, longest: int) -> pa.Array:
    """Letters and a few spaces, from 3 to so many of them."""
    return picked(_words(longest), draws.below(name, _PIECES))


def filler(draws: Draws, mean: int) -> pa.Array:
    """Letters, so many on average and a fifth more or less at the most."""
    pieces = _filler(mean)
    halves = (picked(pieces, draws.below(f"extra{half}", _PIECES)) for half in (1, 2))
    return pc.binary_join_element_wise(*halves, "")


def names(draws: Draws) -> pa.Array:
    """First and last names."""
    first, last = chosen(draws, "first", FIRST_NAMES), chosen(draws, "last", LAST_NAMES)
    return pc.binary_join_element_wise(first, last, " ")


def emails(draws: Draws) -> pa.Array:
    """Addresses like `hrwq@utxe.com`."""
    mailbox, domain = (picked(_mailboxes(), draws.below(part, _PIECES)) for part in ("mailbox", "domain"))
    return pc.binary_join_element_wise(pc.binary_join_element_wise(mailbox, domain, "@"), ".com", "")


def credit_cards(draws: Draws) -> pa.Array:
    """Four groups of four digits."""
    groups = [picked(_four_digits(), draws.below(f"card{group}", 10_000)) for group in range(4)]
    return pc.binary_join_element_wise(*groups, " ")


@cache
def channels() -> tuple[pa.Array, pa.Array]:
    """Channels and the URL of each: the hot ones, then `channel-0` and so on."""
    letters = random.Random("channels")
    urls = [_page(letters) for _ in HOT_CHANNELS]
    for channel in range(CHANNELS):
        page = _page(letters)
        has_id = letters.randrange(_WITHOUT_ID) > 0
        urls.append(f"{page}&channel_id={(channel + 1) * 40_503 % 1_000_003}" if has_id else page)
    return pa.array([*HOT_CHANNELS, *(f"channel-{channel}" for channel in range(CHANNELS))]), pa.array(urls)


def _page(letters: random.Random) -> str:
    folders = "/".join("".join(letters.choices(string.ascii_lowercase, k=letters.randint(3, 5))) for _ in range(3))
    return f"https://www.nexmark.com/{folders}/item.htm?query=1"


@cache
def _words(longest: int) -> pa.Array:
    letters = random.Random(longest)
    alphabet = string.ascii_lowercase + "  "
    made = ("".join(letters.choices(alphabet, k=letters.randint(_SHORTEST, longest))) for _ in range(_PIECES))
    return pa.array([text.strip() or "none" for text in made])


@cache
def _filler(mean: int) -> pa.Array:
    letters = random.Random(f"filler {mean}")
    lengths = [letters.randint(round(mean * 0.4), round(mean * 0.6)) for _ in range(_PIECES)]
    return pa.array(["".join(letters.choices(string.ascii_lowercase, k=length)) for length in lengths])


@cache
def _mailboxes() -> pa.Array:
    letters = random.Random("mailboxes")
    return pa.array(
        ["".join(letters.choices(string.ascii_lowercase, k=letters.randint(3, 7))) for _ in range(_PIECES)]
    )


@cache
def _four_digits() -> pa.Array:
    return pa.array([f"{number:04d}" for number in range(10_000)])
