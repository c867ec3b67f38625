"""One Kafka 4.3.0 broker in a process of its own, for as long as a `with` block lasts.

Broker and controller share the process (KRaft), listen on 127.0.0.1 only, keep their log in a scratch directory
of the benchmark and get a heap of 1 GB and the garbage collector flags of Kafka's own start script. Everything
else is Kafka's default; `flush.messages=1` is set per topic. A topic with it forces log and indexes to disk
inside the append, before the acknowledgement.
"""

import os
import signal
import socket
import subprocess
import time
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType

from confluent_kafka import Consumer, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from bench.maven import Artifact, jars, java
from bench.progress import say
from bench.workspace import CannotMeasure, scratch

VERSION = "4.3.0"

_ARTIFACTS = (
    Artifact("org.apache.kafka", "kafka_2.13", VERSION),
    Artifact("org.apache.kafka", "kafka-tools", VERSION),
    Artifact("org.slf4j", "slf4j-simple", "1.7.36"),
)

_FLAGS = (
    "-server",
    "-Xms1g",
    "-Xmx1g",
    "-XX:+UseG1GC",
    "-XX:MaxGCPauseMillis=20",
    "-XX:InitiatingHeapOccupancyPercent=35",
    "-XX:+ExplicitGCInvokesConcurrent",
    "-Djava.awt.headless=true",
)

_QUIET = "-Dorg.slf4j.simpleLogger.defaultLogLevel=error"

_SETTINGS = """process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller}
listeners=PLAINTEXT://127.0.0.1:{broker},CONTROLLER://127.0.0.1:{controller}
advertised.listeners=PLAINTEXT://127.0.0.1:{broker}
controller.listener.names=CONTROLLER
log.dirs={data}
offsets.topic.replication.factor=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
auto.create.topics.enable=false
"""


class Kafka:
    """A running broker; construct it in a `with` statement.

    Raises CannotMeasure if Java, Maven or the artifacts are not to be had or the broker does not come up.
    """

    def __init__(self) -> None:
        self._closing = ExitStack()
        self._process: subprocess.Popen[bytes] | None = None
        self.address = ""

    def __enter__(self) -> "Kafka":
        say(f"starting Kafka {VERSION}")
        self._classpath = f"{jars('kafka', _ARTIFACTS)}/*"
        directory = self._closing.enter_context(scratch("kafka"))
        try:
            self._start(directory)
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)
            try:
                self._process.wait(timeout=20)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        self._closing.close()

    def java_command(self, *arguments: str) -> list[str]:
        """Give the command line of a Java program with Kafka's classes."""
        return [java(), _QUIET, "-cp", self._classpath, *arguments]

    def create(self, topic: str, *, flush_every_message: bool) -> None:
        """Make a topic of one partition and one replica."""
        config = {"file.delete.delay.ms": "0"}
        if flush_every_message:
            config["flush.messages"] = "1"
        created = self._admin.create_topics([NewTopic(topic, 1, 1, config=config)])
        created[topic].result(timeout=30)

    def delete(self, topic: str) -> None:
        """Remove a topic and its files, so that the disk does not fill over the rounds."""
        self._admin.delete_topics([topic])[topic].result(timeout=30)

    def count(self, topic: str) -> int:
        """Give the number of records that the topic's only partition holds."""
        consumer = Consumer({"bootstrap.servers": self.address, "group.id": "count"})
        try:
            low, high = consumer.get_watermark_offsets(TopicPartition(topic, 0), timeout=30)
        finally:
            consumer.close()
        return int(high) - int(low)

    def _start(self, directory: Path) -> None:
        broker, controller = _free_ports(2)
        self.address = f"127.0.0.1:{broker}"
        settings = directory / "server.properties"
        settings.write_text(_SETTINGS.format(broker=broker, controller=controller, data=directory / "data"))
        storage = self.java_command("kafka.tools.StorageTool")
        identity = subprocess.run([*storage, "random-uuid"], capture_output=True, text=True, check=True)
        formatting = [*storage, "format", "-t", identity.stdout.strip(), "-c", str(settings)]
        subprocess.run(formatting, capture_output=True, check=True)
        command = self.java_command("kafka.Kafka", str(settings))
        command[1:1] = _FLAGS
        with (directory / "output").open("wb") as output:
            self._process = subprocess.Popen(
                command, stdout=output, stderr=output, env={**os.environ, "LC_ALL": "C"}
            )
        self._wait(directory / "output", deadline=time.monotonic() + 60)
        self._admin = AdminClient({"bootstrap.servers": self.address, "log_level": 0})

    def _wait(self, output: Path, deadline: float) -> None:
        assert self._process is not None
        probe = AdminClient({"bootstrap.servers": self.address, "log_level": 0})
        while time.monotonic() < deadline and self._process.poll() is None:
            try:
                if probe.list_topics(timeout=1).brokers:
                    return
            except KafkaException:
                continue
        message = f"Kafka did not come up: {output.read_text(errors='replace')[-500:]}"
        raise CannotMeasure(message)


def _free_ports(count: int) -> list[int]:
    sockets = [socket.socket() for _ in range(count)]
    try:
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [int(each.getsockname()[1]) for each in sockets]
    finally:
        for each in sockets:
            each.close()
