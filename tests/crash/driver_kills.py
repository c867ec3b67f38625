"""Drivers that are killed again and again while others append and read, and the check that every promise was kept.

    python -m tests.crash.driver_kills --kills 200 --seed 7

A driver dies by SIGKILL: at a random moment or at a crash point of the tick, each in turn, and every fourth one in
what it does first, which is recovering from the death of the one before. The next one waits, started but without
the lease. Most of them share the parent's Java, so that a life costs little; every tenth has its own, which dies
too. `--engine hand` does without Java: views planned by hand, many more kills.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import sys
import time
from collections import Counter, deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from typing import Any

import headwater as hw
from headwater.crashpoint import CRASH_POINTS
from tests.crash import driver, shop
from tests.crash.children import spawn
from tests.crash.driver import HAND, OWN, SHARED, Seat, Turn
from tests.crash.driver_verdict import Broken, Following, TrafficAndTicks, verdict
from tests.crash.hand_engine import drive
from tests.crash.kills import quick_folder
from tests.crash.shared_java import SharedJava, stop

POINTS = tuple(point for point in CRASH_POINTS if point.startswith("tick."))
TAKEOVER = 2.0
"""So many seconds after the death of a driver a started one must have taken over."""
_SIGKILL = -9
_STARTING = 1
_RECOVERY_EVERY = 4
_OWN_EVERY = 10
_CHECK_EVERY = 20
"""Every so manieth driver ticks to the end, and everything is compared, before it is killed too."""
_STARTED_WITHIN = 180.0
_STUCK = 120.0
_LONGEST = 20.0
_DYING = 10.0


@dataclass(slots=True)
class Report:
    """What a run did."""

    seed: int
    engine: str
    folder: Path
    kills: int = 0
    during_recovery: int = 0
    own_java: int = 0
    ticks: int = 0
    seconds: float = 0.0
    takeovers: list[float] = field(default_factory=list)
    points: Counter[str] = field(default_factory=Counter)
    numbers: dict[str, int] = field(default_factory=dict)
    broken: str = ""

    @property
    def slow(self) -> list[float]:
        """The takeovers that took too long."""
        return [seconds for seconds in self.takeovers if seconds > TAKEOVER]

    def __str__(self) -> str:
        took = sorted(self.takeovers) or [0.0]
        lines = [
            f"seed {self.seed}, engine {self.engine}: {self.kills} kills, {self.during_recovery} of them during "
            f"recovery, {self.own_java} with a Java of their own; {self.ticks} ticks; {self.seconds:.0f} s",
            "at " + ", ".join(f"{point} {count}" for point, count in sorted(self.points.items())),
            f"taken over within {took[len(took) // 2]:.2f} s (median), {took[-1]:.2f} s (longest)",
            ", ".join(f"{name} {number}" for name, number in self.numbers.items()),
        ]
        lines.append(f"BROKEN: {self.broken}\n{self.folder}" if self.broken else "no promise was broken")
        return "\n".join(lines)


@dataclass(slots=True)
class Member:
    """A driver process."""

    seat: Seat
    process: ForkServerProcess
    pipe: Connection

    def told(self, seconds: float) -> Any:
        """What it says next; None if it died or said nothing for so long."""
        try:
            return self.pipe.recv() if self.pipe.poll(max(0.0, seconds)) else None
        except (EOFError, ConnectionResetError):
            return None

    def kill(self) -> None:
        self.process.kill()
        self.process.join()

    def close(self) -> None:
        self.pipe.close()
        self.process.close()


@dataclass(slots=True)
class Called:
    """A driver that waits for the lease, or has it: what it is to do, and since when it could have the lease."""

    member: Member
    turn: Turn
    recovers: bool
    since: float


class Crew:
    """The drivers of a run: one drives, one waits for the lease, others get ready."""

    def __init__(self, report: Report, path: str, java: SharedJava | None) -> None:
        self._report = report
        self._path = path
        self._java = java
        self._dice = random.Random(f"crew {report.seed}")
        self._starting: deque[Member] = deque()
        self._next: Called | None = None
        self._begun = 0
        self._turns = 0
        self._points = 0
        self._killed_at = 0.0

    def _begin(self) -> None:
        self._begun += 1
        own = self._report.engine == SHARED and self._begun % _OWN_EVERY == _OWN_EVERY // 2
        seat = Seat(self._path, OWN if own else self._report.engine, self._java)
        ours, theirs = spawn.Pipe()
        process = spawn.Process(target=driver.run, args=(theirs, seat), daemon=True)
        process.start()
        theirs.close()
        self._starting.append(Member(seat, process, ours))

    def _call(self, *, patient: bool) -> None:
        """Have the next driver wait for the lease; if not patient, only if it is ready already."""
        while len(self._starting) < _STARTING:
            self._begin()
        if self._next is not None or not (patient or self._starting[0].pipe.poll(0)):
            return
        member = self._starting.popleft()
        self._begin()
        said = member.told(_STARTED_WITHIN)
        if said != "ready":
            raise Broken(f"a driver did not start: {said}")
        self._turns += 1
        recovers = self._turns % _RECOVERY_EVERY == _RECOVERY_EVERY // 2
        self._next = Called(member, self._turn(recovers=recovers), recovers, time.monotonic())
        member.pipe.send(self._next.turn)

    def _turn(self, *, recovers: bool) -> Turn:
        point, nth = None, 1
        if self._dice.random() < 0.6 and self._turns % _CHECK_EVERY:  # the last before a check survives it
            point = POINTS[self._points % len(POINTS)]
            self._points += 1
            nth = 1 if recovers or point == "tick.expired" else self._dice.randint(1, 4)
        large = self._dice.choice([0, 0, 0, 0, 0, 0, 1, 3])
        return Turn(f"{self._report.seed}/{self._turns}", point, nth, large)

    def _driving(self) -> Called:
        """The next driver, as soon as it drives."""
        self._call(patient=True)
        called, self._next = self._next, None
        assert called is not None
        said = self._said(called.member, _STUCK)
        if said is None or said[0] != "drives":
            raise Broken(f"a driver did not take over: {said}")
        if self._killed_at:
            self._report.takeovers.append(max(0.0, said[2] - max(self._killed_at, called.since)))
        return called

    def live(self) -> None:
        """One driver's life, from taking the lease to its death."""
        called = self._driving()
        by_itself = self._until_dead(called)
        self._bury(called, by_itself=by_itself)

    def _until_dead(self, called: Called) -> bool:
        """Wait until it dies at its point, or kill it when its time has come; True if it died by itself."""
        member, until = called.member, time.monotonic() + _LONGEST
        ticks = 1 << 30 if called.turn.point else 0 if called.recovers else self._dice.randint(0, 4)
        while True:
            if ticks == 0:
                until, ticks = time.monotonic() + self._dice.uniform(0.0, 0.4), -1
            self._call(patient=False)
            left = until - time.monotonic()
            if left <= 0 or wait([member.process.sentinel], timeout=0):
                break
            if wait([member.process.sentinel, member.pipe], timeout=min(0.1, left)) == [member.pipe]:
                said = self._said(member, 0.0)
                if said is None:
                    member.process.join(_DYING)
                    break
                ticks -= 1
        by_itself = not member.process.is_alive()
        self._killed_at = time.monotonic()
        member.kill()
        return by_itself

    def _said(self, member: Member, seconds: float) -> Any:
        said = member.told(seconds)
        if said is not None and said[0] == "failed":
            raise Broken(f"a driver failed:\n{said[1]}")
        return said

    def _bury(self, called: Called, *, by_itself: bool) -> None:
        member, report = called.member, self._report
        member.process.join()
        if member.process.exitcode != _SIGKILL:
            raise Broken(f"a driver ended with {member.process.exitcode}: {self._said(member, 0.0)}")
        report.kills += 1
        report.during_recovery += called.recovers
        report.own_java += member.seat.engine == OWN
        report.points[called.turn.point if by_itself and called.turn.point else "any moment"] += 1
        member.close()

    @contextmanager
    def survivor(self) -> Iterator[None]:
        """A driver that nobody kills while the block lasts; it dies afterwards, at its point or not, and counts.

        If it dies at its point, the next one is the survivor.
        """
        while True:
            called = self._driving()
            if called.turn.point is None:
                break
            self._bury(called, by_itself=self._until_dead(called))
        try:
            yield
        finally:
            self._killed_at = time.monotonic()
            called.member.kill()
            failed = [said for said in iter(lambda: called.member.told(0.0), None) if said[0] == "failed"]
        if failed:
            raise Broken(f"the surviving driver failed:\n{failed[0][1]}")
        self._bury(called, by_itself=False)

    def dismiss(self) -> None:
        waiting = [*self._starting, *([self._next.member] if self._next is not None else [])]
        for member in waiting:
            member.kill()
            member.close()
        self._starting.clear()
        self._next = None


def run(folder: Path, *, kills: int, seed: int, engine: str = SHARED, progress: bool = False) -> Report:
    """Kill drivers that many times; the report says what came of it. Checked now and then and in the end."""
    report = Report(seed, engine, folder)
    os.environ["HEADWATER_SEGMENT_BYTES"] = str(shop.SEGMENT_BYTES)
    spawn.set_forkserver_preload(["tests.crash.driver", "pandas"])
    started = time.monotonic()
    path = str(folder / "pipeline")
    java = SharedJava.started() if engine == SHARED else None
    crew = Crew(report, path, java)
    try:
        with shop.opened(path, views=False) as pipeline:
            if engine == HAND:
                drive(pipeline)
            shop.declare_views(pipeline)
            _campaign(report, crew, pipeline, kills, progress=progress)
    except (Broken, AssertionError, hw.HeadwaterError) as error:
        report.broken = f"{type(error).__name__}: {error}"
    finally:
        crew.dismiss()
        if java is not None:
            stop()
        del os.environ["HEADWATER_SEGMENT_BYTES"]
    report.seconds = time.monotonic() - started
    return report


def _campaign(report: Report, crew: Crew, pipeline: hw.Pipeline, kills: int, *, progress: bool) -> None:
    with Following(pipeline.path) as following, TrafficAndTicks(pipeline, report.seed) as traffic:
        while report.kills < kills:
            for _ in range(min(_CHECK_EVERY, kills - report.kills) - 1):
                crew.live()
                following.check()
                traffic.check()
            with traffic.paused(), crew.survivor():
                report.ticks = verdict(pipeline, traffic, with_spark=report.engine == SHARED)
                if report.kills + 1 >= kills:  # the survivor will be the last
                    report.numbers = {**traffic.numbers(), **following.end()}
            if progress:
                print(report, flush=True)


def main() -> int:
    """The command line, for `make soak`."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1_000_000))
    parser.add_argument(
        "--engine", choices=[SHARED, HAND], default=SHARED, help="shared: Spark; hand: without Java"
    )
    asked = parser.parse_args()
    folder = quick_folder()
    print(f"seed {asked.seed}, {folder}", flush=True)
    report = run(folder, kills=asked.kills, seed=asked.seed, engine=asked.engine, progress=True)
    print(report)
    if report.broken:
        return 1
    shutil.rmtree(folder)
    if report.slow:
        print(f"{len(report.slow)} takeovers took longer than {TAKEOVER} s: {report.slow}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
