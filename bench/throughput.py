"""Appends of ours against Kafka's, at equal durability, with one and with eight producers.

The rounds interleave: ours, Kafka by librdkafka, Kafka by Java, ours, ... after one round that is thrown away
(the broker's code compiles itself in it). The line of Kafka's better producer is the one with the bar.

Ours appends 1,000 rows and waits. Kafka's producers are handed the same batches of 1,000 and may make what they
like of them. Tried on a shared, busy machine of two cores with `bench.kafka_tuning`, librdkafka, medians (range) in
thousand rows/s by bytes per batch; 110,000 bytes are about 1,000 rows, and Kafka's limit is 1,048,588:

    flush.messages=1, 1 producer   110,000: 139 (91-146)   500,000: 298 (166-301)   1,000,000: 357 (233-485)
    flush.messages=1, 8 producers  110,000: 109 (99-114)   500,000: 270 (209-314)   1,000,000: 285 (266-356)
    default flush, 8 producers     110,000: 257 (203-267)  250,000: 316 (230-428)   1,000,000: 604 (377-1,076)

So 1,000,000 it is; against 500,000 the ranges overlap. In the last row a buffer of 20 MiB gave 725 (371-1,031)
where 64 MiB gave 604: no difference beyond the noise. Other lingers (10, 20 ms), a buffer of 128 MiB, Java's
batches and one producer with the default flush were tried in single samples only, too noisy to rank them. Note that
Kafka thus flushes about once in 9,000 rows, and ours once per append of 1,000 or less often.
"""

from statistics import median

from bench import headwater_producers
from bench.crew import Throughput
from bench.kafka import Kafka
from bench.kafka_producers import JavaPerformance, Librdkafka, Peer, Tuning
from bench.progress import say
from bench.table import Line
from bench.workspace import CannotMeasure, scratch

BARS = {"fsync": 1.2, "none": 2.0}

TUNING = Tuning(batch_bytes=1_000_000, linger_ms=5, buffer_bytes=64 << 20)


def compare(kafka: Kafka | None, durability: str, producers: int, rounds: int, seconds: float) -> list[Line]:
    """Measure one durability with one number of producers; without a Kafka, only ours."""
    what = f"append, {durability}, {producers} producer{'s' if producers > 1 else ''}"
    peers: list[Peer] = [Librdkafka(), JavaPerformance()] if kafka is not None else []
    ours: list[Throughput] = []
    theirs: dict[str, list[float]] = {peer.name: [] for peer in peers}
    for number in range(rounds + 1):
        say(f"{what}: " + (f"round {number} of {rounds}" if number else "a round to warm up"))
        measured = _ours(durability, producers, seconds)
        if measured is not None and number:
            ours.append(measured)
        for peer in peers:
            assert kafka is not None
            rate = _theirs(kafka, peer, durability, producers, seconds)
            if number:
                theirs[peer.name].append(rate)
    return _lines(what, durability, ours, theirs)


def _ours(durability: str, producers: int, seconds: float) -> Throughput | None:
    try:
        return headwater_producers.measure(durability, producers, seconds)
    except CannotMeasure as reason:
        say(f"ours is left out: {reason}")
        return None


def _theirs(kafka: Kafka, peer: Peer, durability: str, producers: int, seconds: float) -> float:
    with scratch("kafka-round") as name:
        topic = name.name
        kafka.create(topic, flush_every_message=durability == "fsync")
        try:
            return peer.measure(kafka, topic, producers, TUNING, seconds)
        finally:
            kafka.delete(topic)


def _lines(what: str, durability: str, ours: list[Throughput], theirs: dict[str, list[float]]) -> list[Line]:
    rates = [t.rows_per_second for t in ours]
    best = max(theirs, key=lambda name: median(theirs[name]), default=None)
    if best is None:
        return [Line(what, rates, [], BARS[durability], note=_syncs(ours))]
    lines = []
    for name in sorted(theirs, key=lambda name: name != best):
        bar = BARS[durability] if name == best else None
        note = "; ".join(filter(None, (f"Kafka by {name}", _syncs(ours) if name == best else "")))
        lines.append(Line(what, rates, theirs[name], bar, note=note))
    return lines


def _syncs(ours: list[Throughput]) -> str:
    per_append = [t.syncs / (t.rows / 1_000) for t in ours if t.syncs is not None and t.rows]
    return f"{median(per_append):.2f} fsyncs per append" if per_append else ""
