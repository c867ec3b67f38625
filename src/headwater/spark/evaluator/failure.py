"""What Spark says when something fails: whether that is because of the rows, and stopping what does not end."""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import pairwise
from typing import Any

from py4j.protocol import Py4JJavaError, Py4JNetworkError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from headwater.attempt import current, go_on
from headwater.errors import HeadwaterError, Unavailable
from headwater.evaluation.errors import EvaluationFailed, OutOfMemory
from headwater.spark.evaluator.tasks import DISK_HINT, TaskFailures

SPARKS = (Py4JJavaError, Py4JNetworkError, PySparkException)
"""What is raised where Spark is called."""
_OF_A_DISK = re.compile(
    r"No space left on device|Disk quota exceeded|Read-only file system|Input/output error|Too many open files"
)
_FILE_GONE = re.compile(r"java\.(io\.FileNotFound|nio\.file\.\w+)Exception$")
_STOPPED = re.compile(
    r"stopped SparkContext|SparkContext (was|has been) (shut down|stopped)|SparkContext is stopped"
)
_MEMORY = re.compile(r"(OutOfMemoryError|SparkOutOfMemoryError|OutOfMemoryException)$")
_OF_FILES = re.compile(r"java\.n?io\.|SparkOutOfMemoryError$")
_OF_JOBS = re.compile(r"(\.SparkException|\.IllegalStateException)$")
_WORKER_DIED = "Python worker exited unexpectedly"
_LONGEST = 1000
_JAVA_HINT = "tick again; see `headwater doctor`"


def evaluation_failed(error: Any, tasks: TaskFailures | None = None) -> HeadwaterError:
    """Spark's own reason why something has no value, or what went wrong in `tasks` of ours.

    `EvaluationFailed` if a row may be to blame, `Unavailable` if it is the disk or Java, `OwnFault` if it is our
    own code. `Stopped` if nobody waits for it any more.
    """
    go_on()
    if isinstance(error, Py4JNetworkError):
        return Unavailable("Java has ended", where="Spark", hint=_JAVA_HINT, retry=True)
    cause, kind = _cause(error), _class(error)
    if tasks is not None and (found := tasks.found(cause)) is not None:
        return found
    lines = [line for line in cause.splitlines() if line.strip()]
    if kind.endswith((".SparkException", "PythonException")) and any(
        line.startswith("Traceback ") for line in lines
    ):
        return EvaluationFailed(_last_of(lines))  # in a user's function, whatever it says
    return _of_java(error, cause, lines, kind)


def _of_java(error: Any, cause: str, lines: list[str], kind: str) -> HeadwaterError:
    """What went wrong in Java. What a message says of disks may be the text of a row: the kind of error counts."""
    what = _first(lines) or "evaluation failed"
    of_a_job = bool(_OF_JOBS.search(kind)) and not what.startswith("[")
    if (_OF_A_DISK.search(cause) and (of_a_job or _OF_FILES.search(kind))) or _FILE_GONE.search(kind):
        return Unavailable(f"the disk refused: {what}", hint=DISK_HINT, retry=True)
    if of_a_job and _STOPPED.search(cause):
        return Unavailable(f"Spark has stopped: {what}", where="Spark", hint=_JAVA_HINT, retry=True)
    if kind.endswith(".EOFException") and _WORKER_DIED in str(error):
        return EvaluationFailed("the Python process that computed it died")
    if _MEMORY.search(kind):
        return OutOfMemory(f"there was not enough memory: {kind.rpartition('.')[2]}: {what}")
    return EvaluationFailed(_with_class(what, kind), where=_expression(lines))


def _last_of(traceback: list[str]) -> str:
    """What was raised, by the text of a traceback."""
    return [line for line in traceback if not line.startswith((" ", "Traceback "))][-1].strip()[:_LONGEST]


def is_waiting(spark: SparkSession, attempt: str) -> bool:
    """Whether an attempt does nothing but wait until tasks of others leave it a place."""
    tracker = spark.sparkContext.statusTracker()
    jobs = [tracker.getJobInfo(number) for number in tracker.getJobIdsForGroup(attempt)]
    running = [job for job in jobs if job is not None and job.status == "RUNNING"]
    stages = [tracker.getStageInfo(stage) for job in running for stage in job.stageIds]
    return bool(running) and not any(stage is not None and stage.numActiveTasks for stage in stages)


def interruptible(spark: SparkSession) -> None:
    """Have jobs that this thread starts belong to its attempt, so that they can be stopped; `Stopped` if it was."""
    go_on()
    attempt = current()
    if attempt is not None:
        spark.sparkContext._jsc.sc().setJobGroup(attempt.name, "a view", True)


def stop(spark: SparkSession, attempt: str) -> None:
    """Stop the jobs of an attempt, and any that it still starts; its Python workers are killed."""
    spark.sparkContext._jsc.sc().cancelJobGroupAndFutureJobs(attempt, "it does not come to an end")


def _class(error: Any) -> str:
    return str(_root(error).getClass().getName()) if isinstance(error, Py4JJavaError) else type(error).__name__


def _with_class(what: str, kind: str) -> str:
    """The message, and what kind of error it is of, if it does not say so itself as Spark's own do."""
    name = kind.rpartition(".")[2]
    return (
        what if what.startswith("[") or name in what or kind.startswith("org.apache.spark") else f"{name}: {what}"
    )


def _root(error: Py4JJavaError) -> Any:
    cause = error.java_exception
    while cause.getCause() is not None:
        cause = cause.getCause()
    return cause


def _cause(error: Any) -> str:
    if isinstance(error, Py4JJavaError):
        cause = _root(error)
        return str(cause.getMessage() or cause.toString())
    return str(error)


def _first(lines: Iterable[str]) -> str:
    return next((line.split(" SQLSTATE")[0].strip()[:_LONGEST] for line in lines), "")


def _expression(lines: list[str]) -> str:
    """The line of the query above Spark's `^^^` marks."""
    for before, line in pairwise(lines):
        if line.strip() and set(line.strip()) == {"^"}:
            start = line.index("^")
            return before[start : start + line.count("^")]
    return ""
