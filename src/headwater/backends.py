"""Backends: URLs turned into the parts that a pipeline stands on; the only place that names concrete ones.

A part is chosen by the scheme of its URL. Another implementation is added to the part's registry under a scheme of
its own, before a pipeline is opened with it and in every process that opens one:

    from headwater.backends import LOGS

    LOGS.add("one-file", open_one_file_log)
    shop = hw.Pipeline("shop", log="one-file:///data/shop.log")

What it has to do is said by its protocol, and tested by the suite in `tests/contracts` that is called like it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from typing import Generic, ParamSpec, TypeVar

from headwater.clock import Clock
from headwater.errors import HeadwaterError, Unavailable
from headwater.format import STATE
from headwater.liveness import Liveness, LockedFiles
from headwater.log.embedded import EmbeddedLog
from headwater.log.log import Log
from headwater.plan.engine import Engine
from headwater.plan.function import Udf
from headwater.state.files import LocalStateFiles, StateFiles
from headwater.store.sqlite import SqliteStore
from headwater.store.store import Store

DATABASE = "headwater.db"
EMBEDDED = "embedded:"
"""The log in the pipeline's own folder, where no other was asked for."""
SPARK = "local[*]"
"""Spark in this process, where no other was asked for."""
LOCAL = "file:"
"""The files of the state in the pipeline's own folder, where no others were asked for."""
SQLITE = "sqlite:"
"""The store in the pipeline's own folder, where no other was asked for."""
_SCHEME = re.compile(r"([a-z][a-z0-9+.-]*)(?:[:\[]|$)")
_TOPIC = re.compile(r"[a-z]\w*\.\d+")

Given = ParamSpec("Given")
Part = TypeVar("Part")


class Registry(Generic[Given, Part]):
    """The implementations of one part by their schemes. Each is a function of a URL and of what the part needs."""

    def __init__(self, part: str, argument: str = "") -> None:
        self.part = part
        self._argument = argument or part
        self._known: dict[str, Callable[Given, Part]] = {}

    def add(self, scheme: str, make: Callable[Given, Part]) -> None:
        """Have URLs of a scheme mean this implementation; an error if they mean another one."""
        if self._known.setdefault(scheme, make) is not make:
            msg = f"{scheme}: is the scheme of another {self.part}"
            raise HeadwaterError(msg, hint="choose another scheme, or remove that one first")

    def remove(self, scheme: str) -> None:
        """Forget the implementation of a scheme; what was made by it stays as it is."""
        self._known.pop(scheme, None)

    def get(self, url: object) -> Callable[Given, Part] | None:
        """The implementation that a URL asks for; None if there is none."""
        scheme = _SCHEME.match(url) if isinstance(url, str) else None
        return self._known.get(scheme[1]) if scheme is not None else None

    def of(self, url: object) -> Callable[Given, Part]:
        """The implementation that a URL asks for; `Unavailable`, with those that there are, if there is none."""
        found = self.get(url)
        if found is None:
            msg = f"{self._argument}={url!r}: there is no {self.part} for such a URL"
            known = ", ".join(f"{each}:" for each in sorted(self._known))
            raise Unavailable(msg, hint=f"there are {known}; or leave {self._argument} out")
        return found


LOGS: Registry[[str, str, Store, Clock], Log] = Registry("log")
"""Made from a URL, the pipeline's folder, its store and its clock."""
ENGINES: Registry[[str, str, Mapping[str, Udf], str, Mapping[str, str]], Engine] = Registry("engine", "master")
"""Made from a URL, the pipeline's name, the user's functions, a time zone and settings.

A master of Spark's has the schemes of its own: what stands before the first `:` or `[`.
"""
STORES: Registry[[str, str], Store] = Registry("store")
"""Made from a URL and the pipeline's folder."""
LIVENESS: Registry[[str], Liveness] = Registry("liveness", "store")
"""By the scheme of the store, made from the pipeline's folder."""
STATE_FILES: Registry[[str, str, str], StateFiles] = Registry("place of state files", "path")
"""Made from a URL, the pipeline's folder, and what they are called together."""


def check(*, log: str | None, store: str | None, state: str | None) -> None:
    """`Unavailable` if nothing is known of what is asked for; opens nothing."""
    STATE_FILES.of(LOCAL if state is None else state)
    LOGS.of(EMBEDDED if log is None else log)
    STORES.of(SQLITE if store is None else store)


def open_store(url: str | None, folder: str) -> Store:
    """The store that a pipeline keeps its metadata in, whose folder is on this machine."""
    url = SQLITE if url is None else url
    return STORES.of(url)(url, folder)


def open_liveness(store: str | None, folder: str) -> Liveness:
    """Who is alive of those that a store names: as the store brings it, or else processes of this machine."""
    return (LIVENESS.get(SQLITE if store is None else store) or _locked_files)(folder)


def open_log(url: str, folder: str, store: Store, clock: Clock) -> Log:
    """The log of a pipeline."""
    return LOGS.of(url)(url, folder, store, clock)


def open_state_files(url: str, folder: str, together: str = "state") -> StateFiles:
    """The files of the state, or others that lie beside them and are read by workers too."""
    return STATE_FILES.of(url)(url, folder, together)


def open_engine(
    master: str | None,
    name: str,
    udfs: Mapping[str, Udf],
    timezone: str,
    settings: Mapping[str, str],
) -> Engine:
    """Whoever plans and evaluates a pipeline's views; starts Spark."""
    master = SPARK if master is None else master
    return ENGINES.of(master)(master, name, udfs, timezone, settings)


# -- what is there from the start


def _spark(
    master: str,
    name: str,
    udfs: Mapping[str, Udf],
    timezone: str,
    settings: Mapping[str, str],
) -> Engine:
    from headwater.spark.engine import SparkEngine  # noqa: PLC0415  brings pyspark with it

    return SparkEngine(name, udfs, master=master, timezone=timezone, settings=settings)


def _embedded_log(_url: str, folder: str, store: Store, clock: Clock) -> Log:
    return EmbeddedLog(os.path.join(folder, "log"), store, clock=clock)


def _sqlite_store(_url: str, folder: str) -> Store:
    check_not_lost(folder)
    return SqliteStore(os.path.join(folder, DATABASE))


def _local_files(_url: str, folder: str, together: str) -> StateFiles:
    STATE.check(os.path.join(folder, together))
    return LocalStateFiles(os.path.join(folder, together))


def _locked_files(folder: str) -> Liveness:
    return LockedFiles(folder)


def topics_in(folder: str) -> list[str]:
    """The folders of topics in the folder of a pipeline, whether or not anything else of it is there."""
    path = os.path.join(folder, "log")
    return [name for name in os.listdir(path) if _TOPIC.fullmatch(name)] if os.path.isdir(path) else []


def check_not_lost(folder: str) -> None:
    """An error if a pipeline's log is in the folder and its database is not."""
    topics = topics_in(folder)
    place = os.path.join(folder, DATABASE)
    if topics and not (os.path.isfile(place) and os.path.getsize(place)):  # it is made before any topic
        msg = f"{DATABASE} is missing, without which the topics that lie here cannot be read: {', '.join(topics)}"
        hint = f"restore {DATABASE} from a backup, or choose another path; nothing was changed"
        raise HeadwaterError(msg, where=folder, hint=hint)


for each in ("local", "local-cluster", "spark", "yarn", "k8s"):
    ENGINES.add(each, _spark)
LOGS.add("embedded", _embedded_log)
STATE_FILES.add("file", _local_files)
STORES.add("sqlite", _sqlite_store)
