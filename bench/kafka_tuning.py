"""Try producer settings against Kafka and print what each reaches: `python -m bench.kafka_tuning`.

The settings take turns, `--repeats` times, because a single sample on a busy machine can be off by a factor of two;
each line gives the median and the range.
"""

import argparse
import itertools
from statistics import median

from bench.kafka import Kafka
from bench.kafka_producers import JavaPerformance, Librdkafka, Peer, Tuning
from bench.progress import say
from bench.workspace import scratch

_BATCHES = (110_000, 250_000, 500_000, 1_000_000)


def main() -> None:
    """Print a line per durability, number of producers, kind of producer and setting."""
    chosen = _arguments()
    known: dict[str, Peer] = {peer.name: peer for peer in (Librdkafka(), JavaPerformance())}
    tunings = [
        Tuning(batch, linger, buffer << 20)
        for batch, linger, buffer in itertools.product(chosen.batches, chosen.lingers, chosen.buffers)
    ]
    with Kafka() as kafka:
        for flush, producers, name in itertools.product(chosen.flush, chosen.producers, chosen.peers):
            rates: dict[Tuning, list[float]] = {tuning: [] for tuning in tunings}
            for number in range(chosen.repeats + 1):
                say(f"flush {flush}, {producers} x {name}: round {number} of {chosen.repeats} (0 warms up)")
                for tuning in tunings:
                    rate = _measure(kafka, known[name], flush == "each", producers, tuning, chosen.seconds)
                    if number:
                        rates[tuning].append(rate)
            for tuning, figures in rates.items():
                spread = f"{min(figures):,.0f} to {max(figures):,.0f}"
                print(
                    f"flush {flush:8} {producers} x {name:11} {tuning}: {median(figures):,.0f} ({spread})",
                    flush=True,
                )


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.kafka_tuning", description="Try producer settings.")
    parser.add_argument("--flush", nargs="+", choices=("default", "each"), default=("default", "each"))
    parser.add_argument("--producers", type=int, nargs="+", default=(1, 8))
    parser.add_argument("--peers", nargs="+", choices=("librdkafka", "java"), default=("librdkafka", "java"))
    parser.add_argument("--batches", type=int, nargs="+", default=_BATCHES, help="bytes")
    parser.add_argument("--lingers", type=int, nargs="+", default=(5,), help="milliseconds")
    parser.add_argument("--buffers", type=int, nargs="+", default=(64,), help="MiB")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=2.0)
    return parser.parse_args()


def _measure(kafka: Kafka, peer: Peer, flush: bool, producers: int, tuning: Tuning, seconds: float) -> float:
    with scratch("tuning") as name:
        topic = name.name
        kafka.create(topic, flush_every_message=flush)
        try:
            return peer.measure(kafka, topic, producers, tuning, seconds)
        finally:
            kafka.delete(topic)


if __name__ == "__main__":
    main()
