"""Bits of a pipeline's state flipped, its files cut short: the right answer or told, and healed by the next tick.

    python -m tests.crash.state_damage --flips 10000 --seed 7

A shop is driven by hand for some ticks. Then, again and again, one bit of one of its state files is flipped, or a
file is cut off somewhere, and everything is read: each answer is what it was, or `Unavailable`. Every so often the
pipeline is ticked on from there: after that, and a tick more for damage that only reading has found, everything is
what the log says. All of it happens in child processes, so that one that crashes or hangs is seen; half of them
have runs with many small blocks, so that what is read is checked piece by piece.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import headwater as hw
from headwater.log import Cut
from headwater.state import checksums
from headwater.state.damage import noted, settle
from headwater.state.files import LocalStateFiles
from headwater.state.manifest import Manifest
from headwater.state.verify import check_all, faults
from tests.crash import expected, shop
from tests.crash.hand_engine import drive
from tests.inside import store_of
from tests.read.hand import Rows, rows_of

TICKS = 10
NAMES = (*shop.VIEWS, "orders", "customers", "bag")
_PER_CHILD = 250
_TICKED = 7
"""Every so manieth harm is ticked on from."""
_CUTS = 8
"""Every so manieth harm cuts a file short."""
_STUCK = 300.0
_SMALL_BLOCK = 8

Answer = Rows | str
Ask = Callable[[], Any]


class Broken(Exception):
    """A promise that was not kept."""


def in_small_blocks() -> None:
    """From now on, in this process, runs have blocks of 256 bytes, and none is checked as a whole."""
    checksums.BLOCK, checksums._SHIFT, checksums._AT_ONCE = 1 << _SMALL_BLOCK, _SMALL_BLOCK, 0


def prepare(path: Path, seed: object) -> None:
    """A shop with some ticks, all kept."""
    with shop.opened(str(path), views=False, retain_ticks=100) as pipeline:
        drive(pipeline)
        shop.declare_views(pipeline)
        traffic = shop.Traffic(pipeline, seed)
        for _ in range(TICKS):
            for _ in range(8):
                traffic.step()
            pipeline.tick()


def questions(pipeline: hw.Pipeline, dice: random.Random) -> Iterator[tuple[str, Ask]]:
    """What is asked of a pipeline, in all the ways that there are."""
    last = store_of(pipeline).ticks()[-1][0]
    for name in NAMES:
        yield f"read {name}", partial(pipeline.read, name)
    for name in dice.sample(NAMES, 2):
        tick = dice.randrange(TICKS // 2, last + 1)
        yield f"read {name} as of {tick}", partial(pipeline.read, name, as_of=tick)
        yield f"changes of {name}", partial(_changes, pipeline, name)
        yield f"query {name}", partial(pipeline.query, f"SELECT * FROM {name}")
    for name, key in (
        ("orders", dice.randrange(60)),
        ("dear", dice.randrange(60)),
        ("revenue", dice.choice("ABCD")),
    ):
        yield f"lookup {name} {key}", partial(pipeline.lookup, name, key)


def _changes(pipeline: hw.Pipeline, name: str) -> Rows:
    total: Rows = Counter()
    for table in pipeline.changes(name):
        total += rows_of(table)
    return total


def asked(ask: Ask) -> Answer:
    """The rows, or what is told instead."""
    try:
        found = ask()
    except hw.Unavailable as error:
        return str(error)
    return found if isinstance(found, Counter) else rows_of(found)


class Harm:
    """A bit of a file that is flipped, or a length that it is cut to."""

    def __init__(self, path: Path, dice: random.Random, *, cuts: bool) -> None:
        self.path = path
        self._whole = path.read_bytes()
        self._cut = dice.randrange(len(self._whole)) if cuts else None
        self._bit = dice.randrange(len(self._whole) * 8)

    def __str__(self) -> str:
        how = f"bit {self._bit} flipped" if self._cut is None else f"cut to {self._cut} bytes"
        return f"{self.path.name} {how}"

    def of(self, data: bytes) -> bytes:
        if self._cut is not None:
            return data[: self._cut]
        changed = bytearray(data)
        changed[self._bit // 8] ^= 1 << self._bit % 8
        return bytes(changed)

    def do(self, path: Path) -> None:
        """Harm this file, or a copy of it; another file as far as a process can tell."""
        path.with_suffix(".fresh").write_bytes(self.of(self._whole))
        path.with_suffix(".fresh").replace(path)

    def undo(self) -> None:
        self.path.with_suffix(".fresh").write_bytes(self._whole)
        self.path.with_suffix(".fresh").replace(self.path)


class Victim:
    """A pipeline that is harmed, read, and made well again; copies of it are ticked on."""

    def __init__(self, base: Path, work: Path, seed: object) -> None:
        self._base = base
        self._work = work
        self._dice = random.Random(f"harm {seed}")
        self._files = sorted(base.glob("state/*.runs"))
        self._known: dict[str, Answer] = {}
        self.counts: Counter[str] = Counter()

    def run(self, flips: int) -> None:
        """So many harms."""
        with shop.opened(str(self._base), views=False, retain_ticks=100) as pipeline:
            state = str(self._base / "state")
            needed = {"any": {run for each in store_of(pipeline).files() for run in Manifest.from_dict(each).runs}}
            for number in range(flips):
                path = self._dice.choices(self._files, [each.stat().st_size for each in self._files])[0]
                harm = Harm(path, self._dice, cuts=number % _CUTS == 0)
                print(json.dumps({"harm": str(harm)}), flush=True)
                asks = list(questions(pipeline, self._dice))
                right = [self._right(what, ask) for what, ask in asks]
                if any(isinstance(answer, str) for answer in right):
                    raise Broken(f"what is well is called damaged: {right}")
                harm.do(path)
                is_found = any(faults(LocalStateFiles(state), needed, check_all))
                answers = [asked(ask) for _, ask in asks]
                harm.undo()
                self._judge([what for what, _ in asks], answers, right, is_found=is_found)
                for file in noted(LocalStateFiles(state)):
                    settle(LocalStateFiles(state), file)
                if number % _TICKED == 0:
                    self._tick_on(harm, large=number % (2 * _TICKED) == 0)

    def _right(self, what: str, ask: Ask) -> Answer:
        if what not in self._known:
            self._known[what] = asked(ask)
        return self._known[what]

    def _judge(self, asks: list[str], answers: list[Answer], right: list[Answer], *, is_found: bool) -> None:
        told = [answer for answer in answers if isinstance(answer, str)]
        for ask, answer, wanted in zip(asks, answers, right, strict=True):
            if answer != wanted and not isinstance(answer, str):
                raise Broken(f"another answer to {ask}: {answer}, not {wanted}")
        if told and not is_found:
            raise Broken(f"told to readers, but not found by who reads everything: {told[0]}")
        self.counts["harms"] += 1
        self.counts["answers right"] += len(answers) - len(told)
        self.counts["answers told"] += len(told)
        self.counts["found by verify" if is_found else "in no run"] += 1

    def _tick_on(self, harm: Harm, *, large: bool) -> None:
        """Have somebody drive who finds it so."""
        shutil.rmtree(self._work, ignore_errors=True)
        shutil.copytree(self._base, self._work)
        harm.do(self._work / "state" / harm.path.name)
        with shop.opened(str(self._work), views=False, retain_ticks=100) as pipeline:
            drive(pipeline, large=large)
            traffic = shop.Traffic(pipeline, self._dice.random())
            for _ in range(3):
                traffic.step()
            pipeline.tick()
            told = self._wrong(pipeline)
            if told:  # only reading has found it
                pipeline.tick()
                self.counts["healed once read"] += 1
            if told := told and self._wrong(pipeline):
                raise Broken(f"not healed: {told}")
            traffic.step()
            pipeline.tick()
            if told := self._wrong(pipeline):
                raise Broken(f"not well a tick later: {told}")
            last = store_of(pipeline).tick(TICKS + 1)
            self.counts["ticked on"] += 1
            self.counts["built again" if last is None or "rebuilt" in last.detail else "not needed"] += 1

    def _wrong(self, pipeline: hw.Pipeline) -> list[str]:
        """What is told instead of answers; an error if one is another answer."""
        last = store_of(pipeline).last_tick()
        assert last is not None
        wanted = expected.contents(pipeline, Cut.from_dict(last.cut))
        found = {name: asked(partial(pipeline.read, name)) for name in NAMES}
        for name, answer in found.items():
            if not isinstance(answer, str) and answer != wanted[name]:
                raise Broken(f"after the tick {name} is {answer}, not {wanted[name]}")
        return [answer for answer in found.values() if isinstance(answer, str)]


def child(seed: str, flips: int, *, small: bool) -> None:
    """What a child process does; it prints each harm before it is done, and at the end what it counted."""
    if small:
        in_small_blocks()
    with tempfile.TemporaryDirectory(prefix="headwater-damage-") as folder:
        prepare(Path(folder, "base"), seed)
        print(json.dumps({"prepared": seed}), flush=True)
        victim = Victim(Path(folder, "base"), Path(folder, "work"), seed)
        victim.run(flips)
    print(json.dumps({"counts": victim.counts}), flush=True)


def campaign(flips: int, seed: object, *, say: Callable[[str], None] = print) -> Counter[str]:
    """So many harms in child processes, and what came of them; `Broken` if a promise was not kept."""
    total: Counter[str] = Counter()
    for number in count():
        left = min(_PER_CHILD, flips - number * _PER_CHILD)
        if left <= 0:
            return total
        total += _in_a_child(f"{seed}/{number}", left, small=number % 2 == 0)
        say(f"{total['harms']} harms: {dict(total)}")
    raise AssertionError


def _in_a_child(seed: str, flips: int, *, small: bool) -> Counter[str]:
    words = [sys.executable, "-m", "tests.crash.state_damage", "--child", seed, "--flips", str(flips)]
    command = [*words, *(["--small"] if small else [])]
    with tempfile.TemporaryFile("w+") as said, tempfile.TemporaryFile("w+") as wrong:
        process = subprocess.Popen(command, stdout=said, stderr=wrong, text=True)
        seen, since = 0, time.monotonic()
        while process.poll() is None:
            if (size := os.fstat(said.fileno()).st_size) != seen:
                seen, since = size, time.monotonic()
            if time.monotonic() - since > _STUCK:
                process.kill()
            try:
                process.wait(0.2)
            except subprocess.TimeoutExpired:
                continue
        said.seek(0)
        wrong.seek(0)
        lines = [json.loads(line) for line in said.read().splitlines()]
        if process.returncode or "counts" not in lines[-1]:
            msg = f"exit code {process.returncode} after {lines[-1:]} of {seed}: {wrong.read()[-3000:]}"
            raise Broken(msg)
    return Counter(lines[-1]["counts"])


def main() -> None:
    """Run a campaign, or what one of its children does."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--flips", type=int, default=10_000)
    parser.add_argument("--seed", default=str(random.randrange(1 << 30)))
    parser.add_argument("--child")
    parser.add_argument("--small", action="store_true")
    arguments = parser.parse_args()
    if arguments.child:
        child(arguments.child, arguments.flips, small=arguments.small)
        return
    print(f"seed {arguments.seed}", flush=True)
    began = time.monotonic()
    total = campaign(arguments.flips, arguments.seed, say=lambda text: print(text, flush=True))
    print(f"{total['harms']} harms in {time.monotonic() - began:.0f} s, no other answer, no crash, no hang")


if __name__ == "__main__":
    main()
