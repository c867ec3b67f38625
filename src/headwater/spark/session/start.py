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

from headwater.errors import HeadwaterError, Unavailable
from headwater.spark.session.java import JavaHome, find_java
from headwater.spark.session.settings import ANSI, MACHINE, PINNED, SQL, ZONE, is_secret

Java = Any
"""An object that lives in the Java process."""

_LOOPBACK = "127.0.0.1"
_PARTITIONS = "spark.sql.shuffle.partitions"
_INHERITING = "spark.sql.legacy.sessionInitWithConfigDefaults"


def start(
    name: str = "headwater",
    *,
    master: str = "local[*]",
    timezone: str = "UTC",
    settings: Mapping[str, str] | None = None,
) -> SparkSession:
    """A session of ours in this process's Spark, which is started if it does not run yet.

    It has nothing of the user's sessions, nor they of it: no relations, functions, extensions or SQL settings.
    Those are at their defaults but for what is pinned and what `settings` say; only what belongs to the machine is
    as Spark was started with. Where Spark runs already, `master` and those of the `settings` that belong to the
    whole of Spark stay as they are. `Unavailable` if there is no Java or Spark does not start, with what Java said;
    `HeadwaterError` for settings that Spark does not take. Not for use from several threads at once.
    """
    given = settings or {}
    context = SparkContext._active_spark_context
    if context is None:
        others = {key: value for key, value in given.items() if not key.startswith(SQL)}
        context = _start_context(name, master, others)
    if SparkSession._should_update_active_session():
        SparkSession(context)  # the one that the user's program gets when it asks for a session
    with undisturbed(context):
        session = SparkSession(context, _root(context).newSession())
        _settle(session, timezone, {key: value for key, value in given.items() if key.startswith(SQL)})
    return session


@contextlib.contextmanager
def undisturbed(context: SparkContext, session: SparkSession | None = None) -> Iterator[None]:
    """Within the block this thread works with a session of ours; afterwards the user's is active again."""
    assert context._jvm is not None
    sessions: Java = context._jvm.org.apache.spark.sql.classic.SparkSession
    known, before = SparkSession._activeSession, sessions.getActiveSession()
    properties: Java = context._jsc.sc().getLocalProperties()
    untouched = properties.clone()
    if session is not None:
        SparkSession._activeSession = session  # PySpark makes functions by the settings of this one
        sessions.setActiveSession(session._jsparkSession)
    try:
        yield
    finally:
        SparkSession._activeSession = known
        if context._jsc is not None:  # else Spark was stopped meanwhile
            context._jsc.sc().setLocalProperties(untouched)
            if before.isDefined():
                sessions.setActiveSession(before.get())
            else:
                sessions.clearActiveSession()


_roots: list[tuple[SparkContext, Java]] = []


def _root(context: SparkContext) -> Java:
    """What our sessions come from: with a catalog of its own in memory, and without extensions.

    So no name in our SQL is a table, view or function of the user's, wherever theirs are kept.
    """
    if not _roots or _roots[0][0] is not context:
        jvm: Java = context._jvm
        session: Java = context._jsc.sc()
        if session.conf().getBoolean(_INHERITING, False):
            msg = f"{_INHERITING} is on, which puts the settings of this Spark into every session"
            raise HeadwaterError(msg, where="Spark", hint="start Spark without it")
        nothing: Java = getattr(getattr(jvm.scala.collection.immutable, "Map$"), "MODULE$").empty()
        options = nothing.updated("spark.sql.catalogImplementation", "in-memory")
        options = options.updated("spark.sql.globalTempDatabase", "global_temp")
        none = jvm.scala.Option.empty()
        extensions = jvm.org.apache.spark.sql.SparkSessionExtensions()
        made = jvm.org.apache.spark.sql.classic.SparkSession(session, none, none, extensions, options, nothing)
        _roots[:] = [(context, made)]
    return _roots[0][1]


def _settle(session: SparkSession, timezone: str, given: Mapping[str, str]) -> None:
    """Put all SQL settings where they are to be."""
    conf: Java = session._jsparkSession.sessionState().conf()
    for key in list(conf.settings().keySet().toArray()):
        if key.startswith(SQL) and key not in MACHINE:
            conf.unsetConf(key)
    wanted = {**{key: value for key, (value, _) in PINNED.items()}, ANSI: "true", ZONE: timezone, **given}
    registry: Java = getattr(getattr(session._jvm.org.apache.spark.sql.internal, "SQLConf$"), "MODULE$")  # type: ignore[union-attr]
    if not conf.settings().containsKey(_PARTITIONS):
        wanted = {_PARTITIONS: str(session.sparkContext.defaultParallelism), **wanted}
    for key, value in wanted.items():
        if registry.getConfigEntry(key) is None:
            msg = f"Spark {session.version} has no setting {key}"
            raise HeadwaterError(msg, where="Spark's settings", hint="check its name")
        if not conf.isModifiable(key):
            msg = f"{key} belongs to the whole of Spark, and not to a pipeline"
            raise HeadwaterError(msg, where="Spark's settings", hint="leave it out")
        try:
            conf.setConfString(key, value)
        except Exception as error:  # whatever Spark says about a value
            if key == ZONE:
                msg = f"Spark's Java does not know the time zone {value}"
                hint = "use a newer Java (JAVA_HOME), or make another pipeline in another time zone"
                raise HeadwaterError(msg, where="timezone", hint=hint) from None
            said = str(error).strip().splitlines() or [type(error).__name__]
            msg = f"{key} cannot be {value!r}: {said[0]}"
            raise HeadwaterError(msg, where="Spark's settings", hint="correct the value") from None


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
                seen = SparkConf(loadDefaults=False)  # anyone may read the arguments of a process
                seen.setAll([(key, value) for key, value in conf.getAll() if not is_secret(key)])
                with said.listening() as ear:
                    gateway = launch_gateway(seen, {"stderr": ear})  # type: ignore[no-untyped-call]
                context = SparkContext(conf=conf, gateway=gateway)
            else:
                context = SparkContext(conf=conf)
        except PySparkRuntimeError as error:
            raise _did_not_start(java, said, error) from None
    if "spark.log.level" not in wanted:
        context.setLogLevel("FATAL")  # errors of tasks reach the caller as exceptions
    said.speak_up()
    return context


def _context_settings(java: JavaHome, *, local: bool) -> dict[str, str]:
    settings = {
        "spark.driver.memory": f"{_heap_megabytes()}m",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.catalogImplementation": "in-memory",
        _INHERITING: "false",
        "spark.python.unix.domain.socket.enabled": "true",  # every task waits 40 ms for TCP
        "spark.python.daemon.module": "headwater.spark.workers.daemon",
        # Spark's own is up to 64 MB for each sort, hash table and broadcast, however few rows it has.
        "spark.buffer.pageSize": "4m",
        # What was compiled for 100 stages does for one evaluation of a few dozen queries.
        "spark.sql.codegen.cache.maxEntries": "1000",
        # Else Java ends itself when the rows of one view take all of its memory.
        "spark.executor.killOnFatalError.depth": "0",
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


def _variables(java: JavaHome, *, local: bool) -> dict[str, str]:
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


def _did_not_start(java: JavaHome, said: _Said, error: Any) -> Unavailable:
    lines = [line for line in said.in_the_end() if line and not line.startswith("WARNING:")]
    words = "; ".join(lines[-5:]) or str(error)
    msg = f"Spark did not start with Java {java.version} from {java.source} ({java.home}): {words}"
    return Unavailable(
        msg, where="Spark", hint="try another Java (JAVA_HOME), and see `headwater doctor` for the other parts"
    )
