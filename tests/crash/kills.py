"""Writers that are killed again and again, readers beside them, and the check that every promise was kept.

    python -m tests.crash.kills --kills 1000 --seed 7

Each life of a writer ends by SIGKILL: at a random moment, or at a crash point, each in turn. The seed decides who
dies when; what the machine does in between is not repeatable, so a failing run keeps its folder.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from multiprocessing.context import ForkServerProcess
from pathlib import Path

from headwater.crashpoint import CRASH_POINTS
from tests.crash import reader, verdict, writer
from tests.crash.children import spawn
from tests.crash.history import Violation
from tests.crash.writer import Life

WRITERS = 5
READERS: dict[str, Callable[[Life, Callable[[], None]], None]] = {"follow": reader.follow, "cut": reader.cut}
_SIGKILL = -9
_ARMED_FOR = 1.0
_STUCK = 60.0
_CHECK_EVERY = 250


@dataclass(slots=True)
class Report:
    """What a run did and found."""

    seed: int
    folder: Path
    kills: int = 0
    seconds: float = 0.0
    points: Counter[str] = field(default_factory=Counter)
    numbers: dict[str, int] = field(default_factory=dict)
    violations: list[Violation] = field(default_factory=list)

    def __str__(self) -> str:
        rate = self.kills / self.seconds
        lines = [f"seed {self.seed}: {self.kills} kills in {self.seconds:.1f} s ({rate:.1f}/s)"]
        lines.append("at " + ", ".join(f"{point} {count}" for point, count in sorted(self.points.items())))
        lines.append(", ".join(f"{name} {number}" for name, number in self.numbers.items()))
        lines += [f"{violation.kind}: {violation.text}" for violation in self.violations[:20]]
        lines.append(f"{len(self.violations)} broken promises; {self.folder}")
        return "\n".join(lines)


@dataclass(slots=True)
class Member:
    """A running process, what its life is, and when it is to be killed if it has not died by itself."""

    role: str
    life: Life
    process: ForkServerProcess
    ready: Connection
    lasts: float
    until: float


class Crew:
    """The processes of a run: starts them, kills them, and replaces the dead."""

    def __init__(self, report: Report) -> None:
        self.report = report
        self._dice = random.Random(report.seed)
        self._lives = 0
        self._points: list[str] = []
        self._members: list[Member] = []

    def start(self) -> None:
        """Everybody begins."""
        for number in range(WRITERS):
            self._begin("write", number)
        for role in READERS:
            self._begin(role, 0)

    def _begin(self, role: str, number: int) -> None:
        self._lives += 1
        point, nth = None, 1
        lasts = self._dice.uniform(0.01, 0.2) if role == "write" else self._dice.uniform(0.5, 3.0)
        recovering = any("recover" in point for point in self._points[:1])
        if role == "write" and (recovering or self._dice.random() < 0.5):
            point, nth = self._arm()
            lasts = _ARMED_FOR
        life = Life(str(self.report.folder), number, f"{self.report.seed}/{self._lives}", point, nth)
        target = {"write": writer.run, **READERS}[role]
        ready, tell = spawn.Pipe(duplex=False)
        process = spawn.Process(target=_guarded, args=(target, life, tell), daemon=True)
        process.start()
        tell.close()
        wakes = self._dice.random() < 0.8  # its time begins when it has opened the pipeline; else at once
        until = time.monotonic() + (_STUCK if wakes else lasts)
        self._members.append(Member(role, life, process, ready, lasts, until))

    def _arm(self) -> tuple[str, int]:
        """The next crash point in turn; some of them only after a while.

        Recovery happens only behind a torn tail, to whoever comes next: for one that is to die in it there are
        some who tear.
        """
        if not self._points:
            for point in CRASH_POINTS:
                self._points += [point, "append.half_written"] * 3 if point.startswith("recover") else [point]
        point = self._points.pop(0)
        often = point.startswith("append") and point != "append.half_written"
        return point, self._dice.randint(1, 20 if often else 3 if point.startswith("trans") else 1)

    def step(self) -> None:
        """Wait for the next death, natural or not, and replace the dead one."""
        due = min(self._members, key=lambda member: member.until)
        waiting = {member.ready: member for member in self._members if not member.ready.closed}
        sentinels = [member.process.sentinel for member in self._members]
        for one in wait([*sentinels, *waiting], timeout=max(0, due.until - time.monotonic())):
            if isinstance(one, Connection):
                waiting[one].until = min(waiting[one].until, time.monotonic() + waiting[one].lasts)
                one.close()
        if due.until <= time.monotonic():
            due.process.kill()
            due.process.join()
        for member in [member for member in self._members if not member.process.is_alive()]:
            self._members.remove(member)
            self._bury(member, by_itself=member is not due or due.until > time.monotonic())
            self._begin(member.role, member.life.writer)

    def _bury(self, member: Member, *, by_itself: bool) -> None:
        member.process.join()
        if member.process.exitcode != _SIGKILL:
            text = f"{member.role} {member.life} ended with {member.process.exitcode}: {_trace(member.life)}"
            self.report.violations.append(Violation("failed", text))
        elif member.role == "write":
            self.report.kills += 1
            self.report.points[member.life.point if by_itself and member.life.point else "any moment"] += 1
        member.process.close()
        member.ready.close()

    def kill(self, *roles: str) -> None:
        """Kill all who have one of these roles and do not replace them; counted for writers."""
        for member in [member for member in self._members if member.role in roles]:
            member.process.kill()
            self._members.remove(member)
            self._bury(member, by_itself=False)


def _guarded(target: Callable[[Life, Callable[[], None]], None], life: Life, tell: Connection) -> None:
    try:
        target(life, tell.close)
    except BaseException:
        _trace_path(life).write_text(traceback.format_exc())
        raise


def _trace_path(life: Life) -> Path:
    return Path(life.folder, f"failed-{life.seed.replace('/', '-')}.txt")


def _trace(life: Life) -> str:
    return _trace_path(life).read_text() if _trace_path(life).exists() else "(no trace)"


def run(folder: Path, *, kills: int, seed: int) -> Report:
    """Kill writers that many times; the report says what it found. Checked now and then and in the end."""
    report = Report(seed, folder)
    started = time.monotonic()
    folder.mkdir(parents=True, exist_ok=True)
    while report.kills < kills and not report.violations:
        crew = Crew(report)
        crew.start()
        goal = min(kills, report.kills + _CHECK_EVERY) - WRITERS
        seen, since = -1, time.monotonic()
        while report.kills < goal and not report.violations:
            crew.step()
            written = sum(path.stat().st_size for path in folder.glob("writer-*.notes"))
            if written != seen:
                seen, since = written, time.monotonic()
            elif time.monotonic() - since > _STUCK:
                report.violations.append(Violation("stuck", f"no writer did anything for {_STUCK} s"))
        crew.kill("write")
        try:
            report.numbers = verdict.reach(folder, report.violations)
        finally:
            crew.kill(*READERS)
    report.seconds = time.monotonic() - started
    return report


def quick_folder() -> Path:
    """A new folder in memory if there is one: no disk is needed where only processes die."""
    memory = Path("/dev/shm")
    return Path(tempfile.mkdtemp(prefix="headwater-kills-", dir=memory if memory.is_dir() else None))


def main() -> int:
    """The command line, for `make soak`."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1_000_000))
    parser.add_argument("--folder", type=Path, help="where the pipeline is made (kept if anything is wrong)")
    asked = parser.parse_args()
    folder = asked.folder or quick_folder()
    print(f"seed {asked.seed}, {folder}", flush=True)
    report = run(folder, kills=asked.kills, seed=asked.seed)
    print(report)
    if report.violations:
        (folder / "report.json").write_text(json.dumps([v.kind + ": " + v.text for v in report.violations]))
        return 1
    shutil.rmtree(folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
