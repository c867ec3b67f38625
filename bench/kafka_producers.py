"""Kafka's throughput by two producers, both idempotent with acks=all and no compression: the better one counts.

- `librdkafka`: confluent-kafka in one process per producer, values encoded beforehand, `produce_batch`.
- `java`: Kafka's `ProducerPerformance`, its own steady-state figure (no JVM start, no warm-up in it), payloads from
  a file because making them up costs the tool time. Eight producers are eight of it in one JVM, and their figures
  are added up, which flatters Kafka if they do not quite overlap.

After each measurement the topic must hold exactly the records that were sent, else the figure is refused.
"""

import re
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import confluent_kafka

from bench import crew, rows
from bench.kafka import Kafka
from bench.workspace import BENCH, scratch

_STEADY = re.compile(r"^(\d+) steady state records sent, ([\d.]+) records/sec", re.MULTILINE)
_WARMUP_SECONDS = 1.0
_FIRST_GUESS = 300_000.0


@dataclass(frozen=True)
class Tuning:
    """What a producer may choose for throughput; `bench.kafka_tuning` tries several."""

    batch_bytes: int
    linger_ms: int = 5
    buffer_bytes: int = 64 << 20

    def __str__(self) -> str:
        return f"batch {self.batch_bytes:,} B, linger {self.linger_ms} ms, buffer {self.buffer_bytes >> 20} MiB"


class Peer(Protocol):
    """A way of producing to Kafka."""

    name: str

    def measure(self, kafka: Kafka, topic: str, producers: int, tuning: Tuning, seconds: float) -> float:
        """Give the rows per second that *producers* reach on *topic*, which is new and empty."""
        ...


@dataclass(frozen=True)
class LibrdkafkaProducer:
    """One process of the librdkafka peer."""

    address: str
    topic: str
    tuning: Tuning

    def produce(self, start: Callable[[], float], seconds: float) -> crew.Share:
        """Send batches until the time is over, then wait for every acknowledgement."""
        producer = confluent_kafka.Producer(self._settings())
        batch = [{"value": value} for value in rows.csv_values(0)]
        warmup = self._send(producer, batch, time.monotonic() + _WARMUP_SECONDS)
        started = start()
        sent = self._send(producer, batch, started + seconds)
        return crew.Share(started, time.monotonic(), sent, warmup)

    def _settings(self) -> dict[str, str | int | bool]:
        return {
            "bootstrap.servers": self.address,
            "acks": "all",
            "enable.idempotence": True,
            "compression.type": "none",
            "batch.size": self.tuning.batch_bytes,
            "batch.num.messages": 1_000_000,
            "linger.ms": self.tuning.linger_ms,
            "queue.buffering.max.kbytes": self.tuning.buffer_bytes >> 10,
            "queue.buffering.max.messages": self.tuning.buffer_bytes // rows.ROW_BYTES,
        }

    def _send(self, producer: confluent_kafka.Producer, batch: list[dict[str, bytes]], deadline: float) -> int:
        sent = 0
        while time.monotonic() < deadline:
            queued = producer.produce_batch(self.topic, batch, partition=0)
            sent += queued
            if queued == len(batch):
                producer.poll(0)
                continue
            producer.poll(0.005)  # The queue is full; what was refused is marked and stays behind.
            for message in batch:
                message.pop("_error", None)
        left = producer.flush(60)
        if left != 0:
            problem = f"Kafka did not acknowledge {left} records within 60 s"
            raise RuntimeError(problem)
        return sent


class Librdkafka:
    """The librdkafka peer: a process per producer."""

    name = "librdkafka"

    def measure(self, kafka: Kafka, topic: str, producers: int, tuning: Tuning, seconds: float) -> float:
        """Give the rows of all over the time from the common start to the last acknowledgement."""
        one = LibrdkafkaProducer(kafka.address, topic, tuning)
        result = crew.run([one] * producers, seconds)
        _check(kafka, topic, result.rows + result.warmup_rows)
        return result.rows_per_second


@dataclass
class JavaPerformance:
    """The Java peer: the perf tool wants a number of records, so it is guessed from the figure before."""

    name: str = "java"
    _seen: dict[int, float] = field(default_factory=dict)

    def measure(self, kafka: Kafka, topic: str, producers: int, tuning: Tuning, seconds: float) -> float:
        """Give the sum of the steady-state figures that the tool prints."""
        rate = self._seen.get(producers, _FIRST_GUESS)
        warmup = int(rate * seconds / 2 / producers)
        total = warmup + int(rate * seconds / producers)
        with scratch("payloads") as directory:
            payloads = directory / "payloads"
            payloads.write_bytes(b"\n".join(rows.csv_values(0)))
            command = self._command(kafka, topic, producers, tuning, total, warmup, payloads)
            result = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
        figures = _STEADY.findall(result.stdout)
        if result.returncode != 0 or len(figures) != producers:
            message = f"Kafka's perf tool failed: {(result.stderr or result.stdout)[-500:]}"
            raise RuntimeError(message)
        _check(kafka, topic, total * producers)
        self._seen[producers] = sum(float(rate) for _, rate in figures)
        return self._seen[producers]

    def _command(
        self,
        kafka: Kafka,
        topic: str,
        producers: int,
        tuning: Tuning,
        total: int,
        warmup: int,
        payloads: Path,
    ) -> list[str]:
        command = kafka.java_command(str(BENCH / "ProducerThreads.java"), str(producers))
        command.insert(1, f"-Xmx{512 + producers * (tuning.buffer_bytes >> 20)}m")
        command += ["--bootstrap-server", kafka.address, "--topic", topic, "--throughput", "-1"]
        command += ["--num-records", str(total), "--warmup-records", str(warmup)]
        command += ["--payload-file", str(payloads), "--reporting-interval", "3600000"]
        command += ["--command-property", "acks=all", "enable.idempotence=true", "compression.type=none"]
        command += [f"batch.size={tuning.batch_bytes}", f"linger.ms={tuning.linger_ms}"]
        command += [f"buffer.memory={tuning.buffer_bytes}", f"max.request.size={2 * tuning.batch_bytes}"]
        return command


def _check(kafka: Kafka, topic: str, sent: int) -> None:
    held = kafka.count(topic)
    if held != sent:
        message = f"{sent} records were sent to {topic} and {held} are there"
        raise RuntimeError(message)
