"""What `headwater doctor` looks at: one function for each part of the machine, each with its own finding."""

from __future__ import annotations

import importlib
import importlib.metadata
import importlib.util
import os
import resource
import shutil
import socket
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

from headwater.cli.findings import Finding, fault
from headwater.cli.text import count, size
from headwater.errors import HeadwaterError
from headwater.spark.session.java import find_java

if TYPE_CHECKING:
    from headwater import Pipeline

_PYTHON = (3, 11)
_SPARK = "4.3"
_FREE = 500_000_000
_DESCRIPTORS = 512
_SYNCS = 9
_READ = 1 << 30
"""So much of the state is read in a second or two."""


def python() -> Finding:
    """Whether it is new enough."""
    version = ".".join(map(str, sys.version_info[:3]))
    if sys.version_info[:2] < _PYTHON:
        return Finding(
            "python", False, f"{version} is too old", "use Python 3.11 or later: make PYTHON=/path/to/it"
        )
    return Finding("python", True, f"{version} ({sys.executable})")


def java() -> Finding:
    """Whether there is one that runs, and which would be taken."""
    try:
        found = find_java()
    except HeadwaterError as error:
        return Finding("java", False, error.what, error.hint)
    note = "; ".join(found.passed_over)
    return Finding(
        "java", True, f"{found.version} from {found.source} ({found.home})", note and f"passed over: {note}"
    )


def spark(*, start: bool) -> Finding:
    """Whether it is installed in a version we know; with `start`, whether a job runs through a Python worker."""
    again = "pip install --force-reinstall 'pyspark>=4.3,<4.4'"
    try:
        version = importlib.metadata.version("pyspark")
    except importlib.metadata.PackageNotFoundError:
        return Finding("spark", False, "pyspark is not installed", again)
    if importlib.util.find_spec("pyspark") is None or importlib.util.find_spec("py4j") is None:
        return Finding("spark", False, f"pyspark {version} is damaged: it cannot be imported", again)
    if not version.startswith(f"{_SPARK}."):
        return Finding("spark", False, f"pyspark {version} is not a {_SPARK}", again)
    return _start_spark(version) if start else Finding("spark", True, f"{version} (start it too with --spark)")


def _start_spark(version: str) -> Finding:
    began = time.monotonic()
    try:
        session = importlib.import_module("headwater.spark.session.start").start("doctor", master="local[1]")
        started = time.monotonic() - began
        try:
            session.range(2).mapInArrow(lambda batches: batches, "id long").collect()
        finally:
            session.stop()
    except HeadwaterError as error:
        return Finding("spark", False, error.what, error.hint)
    except Exception as error:  # whatever it is, it is the finding
        words = str(error).strip().splitlines() or [type(error).__name__]
        return Finding(
            "spark",
            False,
            f"{version} started, but a job failed: {words[0]}",
            "check that PYTHONPATH and the firewall leave Spark's Python workers alone",
        )
    whole = time.monotonic() - began
    return Finding("spark", True, f"{version}, session in {started:.1f} s, first job after {whole:.1f} s")


def disk(folder: str) -> Finding:
    """Whether there is room, and whether fsync works and how fast, measured where the log would be."""
    name, place = "disk", os.path.abspath(folder)
    try:
        free = shutil.disk_usage(folder).free
        latency = _sync_latency(folder)
    except OSError as error:
        hint = "choose a folder that can be written to and whose file system supports fsync"
        return Finding(name, False, f"{place}: {error.strerror}", hint)
    said = f"{size(free)} free, fsync takes {latency * 1000:.2f} ms ({place})"
    if free < _FREE:
        return Finding(name, False, said, f"make room: {size(_FREE)} is the least to work with")
    return Finding(name, True, said)


def _sync_latency(folder: str) -> float:
    """The median of a few 4 kB appends, in seconds."""
    took = []
    with tempfile.TemporaryFile(dir=folder) as file:
        for _ in range(_SYNCS):
            os.write(file.fileno(), bytes(4096))
            began = time.perf_counter()
            os.fsync(file.fileno())
            took.append(time.perf_counter() - began)
    return statistics.median(took)


def ports() -> Finding:
    """Whether Spark's parts can talk to each other on the loopback."""
    try:
        with socket.socket() as listener, socket.socket() as caller:
            listener.bind(("127.0.0.1", 0))
            listener.listen(1)
            port = listener.getsockname()[1]
            caller.settimeout(5)
            caller.connect(("127.0.0.1", port))
    except OSError as error:
        hint = "Spark talks to itself over 127.0.0.1: bring the loopback interface up and let no firewall block it"
        return Finding("ports", False, f"127.0.0.1 cannot be used: {error.strerror or error}", hint)
    return Finding("ports", True, f"127.0.0.1 accepts connections (tried {port})")


def descriptors() -> Finding:
    """Whether this process may open as many files as segments, sockets and Spark need."""
    limit, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    if limit != resource.RLIM_INFINITY and limit < _DESCRIPTORS:
        hint = f"ulimit -n {_DESCRIPTORS * 8 if most < 0 else min(most, _DESCRIPTORS * 8)}"
        return Finding("files", False, f"only {count(limit, 'open file')} allowed", hint)
    said = "no limit on open files" if limit == resource.RLIM_INFINITY else f"{count(limit, 'open file')} allowed"
    return Finding("files", True, said)


def pipeline(path: str) -> Iterator[Finding]:
    """Whether it opens, and whether its topics' logs, its store and its state are as they were written.

    Of a state that is large only the ends of the files are looked at.
    """
    try:
        public = importlib.import_module("headwater.pipeline")
        stored = importlib.import_module("headwater.cli.stored")
    except ImportError as error:
        again = "pip install --force-reinstall headwater"
        yield Finding("pipeline", False, f"headwater is damaged: {error}", again)
        return
    try:
        with public.reopen(path) as opened:
            names = public.topic_kinds(opened)
            said = f"{path}, {count(len(names), 'topic')}, time zone {opened.timezone}"
            yield Finding("pipeline", True, said)
            yield from (topic(opened, name) for name in names)
            yield from stored.findings(opened, most=_READ)
    except (HeadwaterError, OSError) as error:
        yield fault("pipeline", error)


def topic(opened: Pipeline, name: str) -> Finding:
    """Whether every byte of a topic's log is as it was written."""
    try:
        found = importlib.import_module("headwater.pipeline").topic(opened, name)
        found.verify()
        measured = found.size()
    except (HeadwaterError, OSError) as error:
        return fault(name, error)
    return Finding(name, True, f"{count(measured.records, 'record')}, {size(measured.bytes)}, undamaged")
