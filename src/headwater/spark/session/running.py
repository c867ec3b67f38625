"""The Spark of this process: who uses it, whether it still runs, and what is left behind when Java has ended.

PySpark keeps its Spark in class attributes, and neither notices that Java ended nor that the process was forked. So
all that reaches into them is here, and in `session`, which starts it.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from py4j.finalizer import ThreadSafeFinalizer
from py4j.protocol import Py4JError, Py4JJavaError
from pyspark import SparkContext
from pyspark.sql import SparkSession, SQLContext

from headwater.errors import Fenced, LeaseHeld, Unavailable
from headwater.spark.session.quiet import quiet

_PATIENCE = 5.0
"""A connection may break some moments before the process behind it is gone."""


class _Process:
    """What this process has of Spark: the context that Headwater started, if it did, and who uses one."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.ours: SparkContext | None = None
        self.users: weakref.WeakSet[Running] = weakref.WeakSet()
        self.of_the_parent: list[object] = []


_process = _Process()


class Running:
    """One user's part in the Spark of this process. Safe for threads.

    The Spark that Headwater started is stopped when the last of its users leaves; one that was there before is not.
    """

    def __init__(self, start: Callable[[], SparkSession]) -> None:
        with _process.lock:
            _clear_away()
            found = SparkContext._active_spark_context
            try:
                with quiet():
                    self.session = start()
            except (Py4JError, OSError) as error:
                end = _end_of(SparkContext._gateway, wait=_is_of_a_connection(error), ask=True)
                if not end:
                    raise
                raise _unavailable(end) from None
            finally:
                if found is None:
                    _process.ours = SparkContext._active_spark_context
            self._context = self.session.sparkContext
            self._gateway = SparkContext._gateway
            self._ended = ""
            if found is None:
                _say_nothing_of_the_end(self._context._accumulatorServer, self._gateway)
            _process.users.add(self)

    @property
    def has_ended(self) -> bool:
        """Whether Java is known to have ended, or an error has shown that Spark did; takes no time."""
        return bool(self._ended or _end_of(self._gateway, wait=False, ask=False))

    def ended(self, error: BaseException | None = None) -> Unavailable | None:
        """What to raise if Spark has ended; None if it runs. `error` is what made someone ask."""
        if isinstance(error, Fenced | LeaseHeld):
            return None
        self._ended = self._ended or _end_of(self._gateway, wait=_is_of_a_connection(error), ask=True)
        if not self._ended and _is_stopped(self._context):
            self._ended = "Spark was stopped"
        return _unavailable(self._ended) if self._ended else None

    @contextmanager
    def telling(self) -> Iterator[None]:
        """An error that comes from the end of Spark is `Unavailable`, and nothing else."""
        try:
            with quiet():
                yield
        except Exception as error:
            ended = self.ended(error)
            if ended is None:
                raise
            raise ended from None

    def cancel(self) -> None:
        """End all jobs, if it is Headwater that started Spark."""
        if self._context is _process.ours:
            with quiet(), suppress(Py4JError, OSError):
                self._context.cancelAllJobs()

    def leave(self) -> None:
        """Use it no longer. Done again, it does nothing."""
        with _process.lock:
            _process.users.discard(self)
            ours = self._context is _process.ours
            if not ours or any(each._context is self._context for each in _process.users):
                return
            _process.ours = None
            if SparkContext._active_spark_context is not self._context:
                return
            with quiet():
                if _end_of(self._gateway, wait=False, ask=True):
                    _remove(self._context)
                else:
                    self._stop()

    def _stop(self) -> None:
        """Stop Spark. A Java that ends meanwhile, or is about to, needs no more than to be forgotten."""
        context: Any = self._context
        try:
            if context._jsc is not None:
                context._jsc.stop()
                context._jsc = None  # else PySpark stops it as well, and warns where it cannot
            self.session.stop()
        except (Py4JError, OSError):
            if not _end_of(self._gateway, wait=True, ask=True):
                raise
            _remove(context)


def _unavailable(end: str) -> Unavailable:
    hint = "the next tick starts it again; if it ends time and again, the machine may lack memory"
    return Unavailable(end, where="Spark", hint=hint, retry=True)


def _clear_away() -> None:
    """Make room for another Spark where one has ended, unless it is somebody else's."""
    context, gateway = SparkContext._active_spark_context, SparkContext._gateway
    end = _end_of(gateway, wait=False, ask=True)
    if not end and context is not None and _is_stopped(context):
        end = "Spark was stopped"
    if not end:
        return
    stopped = context is None or context._jsc is None
    if not stopped and context is not _process.ours:
        msg = f"the Spark that this process had started by itself has ended: {end}"
        hint = "call stop() on that SparkSession; then Headwater starts one of its own"
        raise Unavailable(msg, where="Spark", hint=hint, retry=True)
    _process.ours = None
    if end == "Spark was stopped" and context is not None:
        context.stop()
        SparkSession._instantiatedSession = SparkSession._activeSession = None
    else:
        _remove(context)


def _remove(context: SparkContext | None) -> None:
    """Remove what PySpark keeps of a Spark whose Java has ended."""
    gateway = SparkContext._gateway
    if context is not None:
        server, context._accumulatorServer = getattr(context, "_accumulatorServer", None), None  # type: ignore[assignment]
        context._jsc = None
        if server is not None:
            with suppress(OSError):
                server.shutdown()
                server.server_close()
    if gateway is not None:
        gateway.shutdown()
        _let_go(gateway)
    _forget()


def _let_go(gateway: Any) -> None:
    """Java lives as long as somebody holds this."""
    java = _java(gateway)
    if java is not None and java.stdin is not None:
        with suppress(OSError):
            java.stdin.close()


def _forget() -> None:
    SparkContext._active_spark_context = SparkContext._gateway = SparkContext._jvm = None
    SparkSession._instantiatedSession = SparkSession._activeSession = None
    SQLContext._instantiatedContext = None


def _say_nothing_of_the_end(server: Any, gateway: Any) -> None:
    """What waits for news from Java would print a traceback when there will be none."""
    tell = server.handle_error

    def handle_error(request: Any, address: Any) -> None:
        if not _end_of(gateway, wait=True, ask=True):
            tell(request, address)

    server.handle_error = handle_error


def _java(gateway: Any) -> subprocess.Popen[bytes] | None:
    """The process behind a gateway, if it was started by this one."""
    found: subprocess.Popen[bytes] | None = vars(gateway).get("proc")
    return found


def _end_of(gateway: Any, *, wait: bool, ask: bool) -> str:
    """How Java ended; empty if it runs.

    It must be asked whether it is ending, and also whether it has ended where it is another's child; that takes a
    moment.
    """
    if gateway is None:
        return ""
    java = _java(gateway)
    if java is None and ask and not _answers(gateway):
        return "Java ended"
    if java is not None and wait:
        with suppress(subprocess.TimeoutExpired):
            java.wait(_PATIENCE)
    code = None if java is None else java.poll()
    if code is None:
        return "Java is ending" if ask and _is_ending(gateway) else ""
    return f"Java ended by {signal.Signals(-code).name}" if code < 0 else f"Java ended with exit code {code}"


def _is_ending(gateway: Any) -> bool:
    """Whether Java was told to end, as by SIGTERM. It may take long, and nothing can be started in it any more."""
    try:
        java = gateway.jvm.java.lang
        java.Runtime.getRuntime().removeShutdownHook(java.Thread())
    except Py4JJavaError:  # only what is ending refuses that
        return True
    except (Py4JError, OSError):
        return False
    return False


def _answers(gateway: Any) -> bool:
    at = gateway.gateway_parameters.address, gateway.gateway_parameters.port
    try:
        socket.create_connection(at, timeout=_PATIENCE).close()
    except OSError:
        return False
    return True


def _is_stopped(context: SparkContext) -> bool:
    if context._jsc is None:
        return True
    try:
        return bool(context._jsc.sc().isStopped())
    except (Py4JError, OSError):
        return False


def _is_of_a_connection(error: BaseException | None) -> bool:
    """Whether an error, or one that led to it, is of talking to Java rather than Java's own."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        if isinstance(error, ConnectionError | EOFError) or (
            isinstance(error, Py4JError) and not isinstance(error, Py4JJavaError)
        ):
            return True
        error = error.__cause__ or error.__context__
    return False


def _after_fork() -> None:
    """A child begins without Spark: its parent's must hear nothing from it, nor live on because of it."""
    users = list(_process.users)
    gateway = SparkContext._gateway
    mine = _Process()
    _process.lock, _process.users = mine.lock, mine.users
    if not users:
        return
    _process.of_the_parent += [*users, _process.ours, SparkContext._active_spark_context, gateway]
    _process.ours = None
    SparkContext._lock = threading.RLock()
    ThreadSafeFinalizer.lock = threading.RLock()
    ThreadSafeFinalizer.clear_finalizers(True)  # else Java is told of all that the child lets go of
    _forget()
    if gateway is not None:
        _let_go(gateway)
    if getattr(signal.getsignal(signal.SIGINT), "__module__", "") == SparkContext.__module__:
        signal.signal(signal.SIGINT, signal.default_int_handler)


os.register_at_fork(after_in_child=_after_fork)
