"""The oracle: whether views hold what Spark says they are.

It replays the log naively up to the cut of the last tick and runs the user's original SQL over that, as a batch. It
knows nothing of arrangements, plans and changes.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from graphlib import TopologicalSorter
from typing import Protocol

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from headwater.catalog.names import is_candidate
from headwater.catalog.view import ViewDeclaration
from headwater.errors import HeadwaterError
from headwater.log import Cut
from headwater.oracle.difference import difference
from headwater.oracle.naive import content, recorded
from headwater.oracle.unordered import unordered as unordered_columns
from headwater.spark.catalyst import Catalyst
from headwater.spark.session.functions import Function, register
from headwater.spark.session.settings import kept_settings
from headwater.spark.session.start import start, undisturbed
from headwater.store import Declaration, Store, TickRecord
from headwater.topics import Topic

_LOG = "__log"
_FEW_ROWS = 50_000
_STABLE = {"spark.sql.sort.enableRadixSort": "false"}
"""Spark evaluates a correlated LIMIT by sorting once more, by its key: equal keys must stay in the order that they
had, and a radix sort that meets null moves others out of its way.
"""
_QUICK = {"spark.sql.shuffle.partitions": "1", "spark.sql.adaptive.enabled": "false"}
"""For few rows: what Spark does to spread work over many costs more than the work."""

_WITH_VOID = {"spark.sql.optimizer.excludedRules": "org.apache.spark.sql.catalyst.optimizer.ConvertToLocalRelation"}
"""Spark knows that NULL <=> NULL while it optimises. Where it has put NULL into rows before, it looks for them by a
hash join, in which VOID is never the same.
"""

_THREADS = 2
_RELATION = re.compile(r"UnresolvedRelation \[(\w+)\]")


class Judged(Protocol):
    """What the oracle needs of a pipeline."""

    @property
    def timezone(self) -> str:
        """The session time zone of its views."""
        ...

    @property
    def _store(self) -> Store: ...

    @property
    def _udfs(self) -> Mapping[str, Function]: ...

    def _topic(self, name: str) -> Topic: ...

    def read(self, name: str, *, as_of: int | None = None) -> pa.Table:
        """A view at a tick."""
        ...


def same_as_batch(pipeline: Judged, views: Collection[str] | None = None) -> None:
    """Compare views, all of them unless some are named, with Spark's answer at the cut of the last tick.

    AssertionError with the views that differ, their SQL, and rows that are missing or too many. Columns of floats
    are compared within 1e-9, since sums of them depend on the order; lists that `collect_list` or `collect_set`
    gave in any order; all else exactly, but for the types of columns if a topic was altered since the tick. What
    Spark or `read` raises comes through. Runs Spark in this process, if it does not run yet.
    """
    tick = pipeline._store.last_tick()
    if tick is None:
        raise HeadwaterError("there is nothing to compare before the first tick", hint="call tick() first")
    declared = pipeline._store.declarations()
    names = _views(declared, views)
    batch, unordered = _batch(pipeline, declared, names, Cut.from_dict(tick.cut))
    moved = _altered_since(pipeline, declared, tick)
    wrong = []
    for name in names:
        rows = pipeline.read(name, as_of=tick.number)
        if moved:
            rows = _typed(rows, batch[name].schema)
        found = difference(batch[name], rows, unordered[name])
        if found:
            heading = f"view {name} at tick {tick.number} is not what Spark returns for"
            wrong.append(f"{heading}\n{_sql(declared, name)}\n{found}")
    if wrong:
        raise AssertionError("\n\n".join(wrong))


def _altered_since(pipeline: Judged, declared: Mapping[str, Declaration], tick: TickRecord) -> bool:
    """Whether a topic has been altered since a tick, so that views will have other types after the next one."""
    known: Mapping[str, int] = tick.detail.get("altered", {})
    topics = (pipeline._topic(name) for name, each in declared.items() if each.kind != "view")
    return any(topic.declaration.alterations.number > known.get(topic.name, 0) for topic in topics)


def _typed(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """The rows with the types that their columns will have; as they are if they will have other columns."""
    return rows.cast(schema, safe=False) if rows.schema.names == schema.names else rows


def _views(declared: Mapping[str, Declaration], views: Collection[str] | None) -> list[str]:
    known = [name for name, declaration in declared.items() if declaration.kind == "view"]
    known = [name for name in known if not is_candidate(name)]
    named = [views] if isinstance(views, str) else views
    wanted = known if named is None else [name.lower() for name in named]
    strangers = [name for name in wanted if name not in known]
    if strangers:
        msg = f"there is no view called {strangers[0]!r}"
        raise HeadwaterError(msg, hint=f"declared are: {', '.join(known) or 'none yet'}")
    return wanted


def _sql(declared: Mapping[str, Declaration], name: str) -> str:
    return ViewDeclaration.from_stored(declared[name]).sql


def _batch(
    pipeline: Judged, declared: Mapping[str, Declaration], names: Sequence[str], cut: Cut
) -> tuple[dict[str, pa.Table], dict[str, set[str]]]:
    """Spark's answers, and their columns that are in no order."""
    settings = kept_settings(pipeline._store) | _STABLE | _QUICK
    session = start("oracle", timezone=pipeline.timezone, settings=settings)
    with undisturbed(session.sparkContext, session):  # queries are read under the settings of the calling thread
        return _answers(pipeline, declared, _graph(declared, names, session), names, cut)


def _answers(
    pipeline: Judged,
    declared: Mapping[str, Declaration],
    graph: Mapping[str, Sequence[str]],
    names: Sequence[str],
    cut: Cut,
) -> tuple[dict[str, pa.Table], dict[str, set[str]]]:
    """All needed relations become temporary views of a session that nobody else uses."""
    order = list(TopologicalSorter(graph).static_order())
    relations = {name: _relation(pipeline, name, cut) for name in order if name not in graph}
    session = _session(pipeline, sum(table.num_rows for table in relations.values()))
    frames: dict[str, DataFrame] = {}
    for name in order:
        for each in (each for each in graph.get(name, ()) if each in relations):
            _show(pipeline, frames, ViewDeclaration.from_stored(declared[name]), each)
        frame = session.sql(_sql(declared, name)) if name in graph else _frame(session, relations[name])
        frame.createOrReplaceTempView(name)
        frames[name] = frame
    if any(_has_void(frame) for frame in frames.values()):
        for setting, value in _WITH_VOID.items():
            session.conf.set(setting, value)
    catalyst = Catalyst(session)

    def answer(name: str) -> pa.Table:
        catalyst.activate()
        return _nullable_where_void(frames[name]).toArrow()

    with ThreadPoolExecutor(_THREADS) as threads:
        answers = list(threads.map(answer, names))
    unordered = {name: unordered_columns(catalyst, frames[name]) for name in names}
    return dict(zip(names, answers, strict=True)), unordered


def _graph(
    declared: Mapping[str, Declaration], names: Sequence[str], session: SparkSession
) -> dict[str, list[str]]:
    """Every view that is needed, with what it reads."""
    graph: dict[str, list[str]] = {}
    waiting = list(names)
    while waiting:
        name = waiting.pop()
        graph[name] = _read_by(declared, name, session)
        views = [each for each in graph[name] if each in declared and declared[each].kind == "view"]
        waiting += [each for each in views if each not in graph]
    return graph


def _read_by(declared: Mapping[str, Declaration], name: str, session: SparkSession) -> list[str]:
    """What a view reads, as Spark's parser says; names of common table expressions may be among it."""
    parsed = session._jsparkSession.sessionState().sqlParser().parsePlan(_sql(declared, name))
    found = dict.fromkeys(each.lower() for each in _RELATION.findall(parsed.treeString()))
    return [each for each in found if each != name and each.removesuffix(_LOG) in declared]


def _relation(pipeline: Judged, name: str, cut: Cut) -> pa.Table:
    if name.endswith(_LOG):
        return recorded(pipeline._topic(name.removesuffix(_LOG)), cut)
    return content(pipeline._topic(name), cut)


def _show(pipeline: Judged, frames: Mapping[str, DataFrame], view: ViewDeclaration, name: str) -> None:
    """Give a view, of a topic that was altered since it was declared, the columns of before."""
    topic = pipeline._topic(name.removesuffix(_LOG))
    alterations = topic.declaration.alterations
    if alterations.number:
        later = set(topic.schema.names).difference(
            each.name for each in alterations.seen(topic.schema, view.seen.get(topic.name, 0))
        )
        frames[name].select([each for each in frames[name].columns if each not in later]).createOrReplaceTempView(
            name
        )


def _session(pipeline: Judged, rows: int) -> SparkSession:
    settings = kept_settings(pipeline._store) | _STABLE | (_QUICK if rows < _FEW_ROWS else {})
    session = start("oracle", timezone=pipeline.timezone, settings=settings)
    with undisturbed(session.sparkContext, session):
        for udf in pipeline._udfs.values():
            register(session, udf)
    return session


def _frame(session: SparkSession, table: pa.Table) -> DataFrame:
    """Without the schema Spark would take a timestamp without a zone for an instant."""
    return session.createDataFrame(table, from_arrow_schema(table.schema, prefer_timestamp_ntz=True))


def _has_void(frame: DataFrame) -> bool:
    return '"void"' in frame.schema.json()


def _nullable_where_void(frame: DataFrame) -> DataFrame:
    """The same rows in columns that may be null, if VOID is among their types.

    PySpark cannot give what is VOID and never null, as the elements of `array()`. DDL cannot say that elements are
    never null, and in a union a column may be null if it may in either.
    """
    if not _has_void(frame):
        return frame
    return frame.union(frame.sparkSession.createDataFrame([], frame._jdf.schema().asNullable().toDDL()))
