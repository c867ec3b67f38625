"""The log against Apache Kafka: `python -m bench.log` (`make bench-log`).

Parts, each of which `--only` can choose: `fsync` and `none` (appends, by durability), `replay` (a topic into
Spark), `segments` (appends with many segments behind), `commands` (the small commands' time). What cannot be
measured on this machine is named with its reason and the rest goes on. The exit code is 1 if a bar that was
measured did not hold or a part failed.
"""

import argparse
import sys
import traceback
from collections.abc import Callable
from contextlib import ExitStack

from bench import commands, results, segments, spark_replay, throughput
from bench.kafka import Kafka
from bench.progress import say
from bench.table import Line, show
from bench.workspace import CannotMeasure

PARTS = ("fsync", "none", "replay", "segments", "commands")
_WITH_KAFKA = {"fsync", "none", "replay"}
_PRODUCERS = (1, 8)


def main() -> int:
    """Measure, print the table, write the results and give the exit code."""
    chosen = _arguments()
    lines: list[Line] = []
    failed = False
    with ExitStack() as closing:
        kafka = _kafka(closing) if _WITH_KAFKA & set(chosen.only) else None
        for part in _parts(chosen, kafka):
            try:
                lines += part()
            except CannotMeasure as reason:
                say(f"left out: {reason}")
            except Exception:
                failed = True
                traceback.print_exc()
    print(show(lines))
    say(f"every figure: {results.write(lines, 'log')}")
    return 1 if failed or any(line.held is False for line in lines) else 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.log", description="Measure the log against Kafka.")
    parser.add_argument("--rounds", type=int, default=5, help="rounds that count, per comparison (default 5)")
    parser.add_argument("--seconds", type=float, default=3.0, help="length of one measurement (default 3)")
    parser.add_argument("--rows", type=int, default=3_000_000, help="rows of the topic that is replayed")
    parser.add_argument("--segments", type=int, default=segments.SEGMENTS, help="sealed segments behind")
    parser.add_argument("--only", type=_names, default=PARTS, metavar="PART,...", help=", ".join(PARTS))
    return parser.parse_args()


def _names(text: str) -> tuple[str, ...]:
    names = tuple(text.split(","))
    unknown = set(names) - set(PARTS)
    if unknown:
        message = f"no such part: {', '.join(sorted(unknown))}"
        raise argparse.ArgumentTypeError(message)
    return names


def _kafka(closing: ExitStack) -> Kafka | None:
    try:
        return closing.enter_context(Kafka())
    except CannotMeasure as reason:
        say(f"Kafka is left out: {reason}")
        return None


def _parts(chosen: argparse.Namespace, kafka: Kafka | None) -> list[Callable[[], list[Line]]]:
    parts: list[Callable[[], list[Line]]] = []
    for durability in ("fsync", "none"):
        for producers in _PRODUCERS:
            if durability in chosen.only:
                parts.append(_append(kafka, durability, producers, chosen))
    if "replay" in chosen.only:
        parts.append(lambda: spark_replay.compare(kafka, chosen.rounds, chosen.rows))
    if "segments" in chosen.only:
        parts.append(lambda: segments.compare(chosen.rounds, chosen.segments))
    if "commands" in chosen.only:
        parts.append(commands.compare)
    return parts


def _append(
    kafka: Kafka | None, durability: str, producers: int, chosen: argparse.Namespace
) -> Callable[[], list[Line]]:
    return lambda: throughput.compare(kafka, durability, producers, chosen.rounds, chosen.seconds)


if __name__ == "__main__":
    sys.exit(main())
