"""A Spark session that starts anywhere: with or without a Java of the user's, quietly, on the loopback only."""

from __future__ import annotations

import contextlib
import os
import sys
import threading
from collections import deque
from collections.abc import Iterator, Mapping
from typing import Any

import pyspark
from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkRuntimeError
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

from headwater.errors import Unavailable
from headwater.spark.java import Java, find_java

_LOOPBACK = "127.0.0.1"


def start(
    name: str = "headwater",
    *,
    master: str = "local[*]",
    timezone: str = "UTC",
    settings: Mapping[str, str] | None = None,
) -> SparkSession:
    """A session of its own in this process's Spark, which is started if it does not run yet.

    Where Spark runs already, `master` and those of the `settings` that belong to the whole of Spark stay as they
    are; time zone, ANSI and the other SQL settings are the session's own. `Unavailable` if there is no Java or
    Spark does not start, with what Java said. Not for use from several threads at once.
    """
    wanted = {**_sql_settings(timezone), **(settings or {})}
    context = SparkContext._active_spark_context
    if context is None:
        session = SparkSession(_start_context(name, master, wanted))
    else:
        session = SparkSession(context).newSession()
    for key, value in wanted.items():
        if session.conf.isModifiable(key):
            session.conf.set(key, value)
    if "spark.sql.shuffle.partitions" not in wanted:
        session.conf.set("spark.sql.shuffle.partitions", session.sparkContext.defaultParallelism)
    return session


def _sql_settings(timezone: str) -> dict[str, str]:
    return {
        "spark.sql.ansi.enabled": "true",
        "spark.sql.timeType.enabled": "true",
        "spark.sql.session.timeZone": timezone,
        "spark.sql.execution.arrow.pyspark.enabled": "true",
    }


def _start_context(name: str, master: str, wanted: Mapping[str, str]) -> SparkContext:
    java = find_java()
    local = master.startswith("local")
    conf = SparkConf().setMaster(master).setAppName(name)
    for key, value in {**_context_settings(java, local=local), **wanted}.items():
        conf.set(key, value)
    said = _Said()
    with _environment(_variables(java, local=local)):
        try:
            if SparkContext._gateway is None:
                with said.listening() as ear:
                    gateway = launch_gateway(conf, {"stderr": ear})  # type: ignore[no-untyped-call]
                context = SparkContext(conf=conf, gateway=gateway)
            else:
                context = SparkContext(conf=conf)
        except PySparkRuntimeError as error:
            raise _did_not_start(java, said, error) from None
    if "spark.log.level" not in wanted:
        context.setLogLevel("FATAL")  # errors of tasks reach the caller as exceptions
    said.speak_up()
    return context


def _context_settings(java: Java, *, local: bool) -> dict[str, str]:
    settings = {
        "spark.driver.memory": f"{_heap_megabytes()}m",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.catalogImplementation": "in-memory",
        "spark.python.unix.domain.socket.enabled": "true",  # every task waits 40 ms for TCP
        "spark.python.daemon.module": "headwater.spark.daemon",
    }
    if local:
        settings |= {"spark.driver.host": _LOOPBACK, "spark.driver.bindAddress": _LOOPBACK}
    if java.version >= 24:
        # Arrow and Netty use what these versions of Java warn about on every start.
        quiet = "--sun-misc-unsafe-memory-access=allow --enable-native-access=ALL-UNNAMED"
        settings["spark.driver.defaultJavaOptions"] = quiet
    return settings


def _heap_megabytes() -> int:
    """A quarter of the machine's memory, as Java itself would take, but not more than 4 GB; Spark's own is 1 GB."""
    megabytes = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") >> 20
    return max(1024, min(4096, megabytes // 4))


def _variables(java: Java, *, local: bool) -> dict[str, str]:
    variables = {
        "JAVA_HOME": java.home,
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
    }
    if local:
        # A SPARK_HOME of the user's may hold another version than the pyspark that is imported here.
        variables |= {"SPARK_LOCAL_IP": _LOOPBACK, "SPARK_HOME": os.path.dirname(pyspark.__file__)}
    return variables


@contextlib.contextmanager
def _environment(variables: Mapping[str, str]) -> Iterator[None]:
    """Spark's launcher takes these from our environment; afterwards it is the user's again."""
    before = {key: os.environ.get(key) for key in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for key, value in before.items():
            if value is None:
                os.environ.pop(key, None)
            else:
                os.environ[key] = value


class _Said:
    """What the Java process writes to its standard error.

    Held back while it starts, since the usual warnings help nobody, and kept in case it does not. Then passed on,
    so that what a user's function prints is seen.
    """

    def __init__(self) -> None:
        self.lines: deque[str] = deque(maxlen=100)
        self._aloud = threading.Event()
        self._thread: threading.Thread | None = None

    @contextlib.contextmanager
    def listening(self) -> Iterator[int]:
        """The file descriptor to give to the child as its standard error."""
        out, ear = os.pipe()
        self._thread = threading.Thread(target=self._listen, args=(out,), name="spark-stderr", daemon=True)
        self._thread.start()
        try:
            yield ear
        finally:
            os.close(ear)

    def speak_up(self) -> None:
        """From now on, pass everything on."""
        self._aloud.set()

    def in_the_end(self) -> list[str]:
        """The last lines of a process that has ended."""
        if self._thread is not None:
            self._thread.join(timeout=5)
        return list(self.lines)

    def _listen(self, out: int) -> None:
        with os.fdopen(out, encoding="utf-8", errors="replace") as lines:
            for line in lines:
                if self._aloud.is_set():
                    with contextlib.suppress(OSError, ValueError):
                        sys.stderr.write(line)
                else:
                    self.lines.append(line.rstrip())


def _did_not_start(java: Java, said: _Said, error: Any) -> Unavailable:
    lines = [line for line in said.in_the_end() if line and not line.startswith("WARNING:")]
    words = "; ".join(lines[-5:]) or str(error)
    msg = f"Spark did not start with Java {java.version} from {java.source} ({java.home}): {words}"
    return Unavailable(
        msg, where="Spark", hint="try another Java (JAVA_HOME), and see `headwater doctor` for the other parts"
    )
