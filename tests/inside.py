"""The parts of a pipeline that users never see: the one place where tests reach for them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import headwater as hw
    from headwater.attempt import Attempt
    from headwater.log import EmbeddedLog
    from headwater.pipeline.spark_parts import SparkParts
    from headwater.plan.operators import Plan
    from headwater.store import Lease, SqliteStore
    from headwater.tick.attempts import Attempts
    from headwater.tick.deciding import Deciding
    from headwater.tick.driver import Driver
    from headwater.tick.merging import Merging


def store_of(pipeline: Any) -> SqliteStore:
    """Where it keeps its metadata."""
    found: SqliteStore = pipeline._store
    return found


def database_of(pipeline: Any) -> Any:
    """What its metadata is asked of."""
    return store_of(pipeline)._database


def log_of(pipeline: Any) -> EmbeddedLog:
    """Its log."""
    found: EmbeddedLog = pipeline._log
    return found


def lease_of(pipeline: Any) -> Lease:
    """By which it drives."""
    found: Lease = pipeline._lease
    return found


def topic_of(pipeline: hw.Pipeline, name: str) -> Any:
    """A topic that any process declared."""
    return pipeline._topic(name)


def planning_of(pipeline: hw.Pipeline) -> SparkParts:
    """Whoever plans its views; starts Spark."""
    return pipeline._spark()


def plan_of(pipeline: hw.Pipeline, name: str, sql: str) -> Plan:
    """What a view with this SQL would be planned as."""
    parts = planning_of(pipeline)
    return parts.planning.plan(name, sql, parts.catalog())[0]


def driver_of(pipeline: hw.Pipeline) -> Driver:
    """Whoever ticks it; starts Spark."""
    return pipeline._driver()


def deciding_of(driver: Driver) -> Deciding:
    """What says what there is to do for its ticks."""
    return driver._deciding


def engine_of(pipeline: hw.Pipeline) -> Any:
    """What plans and evaluates its views: Spark's engine, or one by hand; starts Spark."""
    return pipeline._spark().engine


def merging_of(driver: Driver) -> Merging:
    """What merges beside its ticks."""
    return driver._merging


def attempts_of(driver: Driver) -> Attempts:
    """When its views that failed are tried again."""
    return driver._attempts


def given_up(driver: Driver, name: str) -> Attempt:
    """What it has given up of a view that hung."""
    return driver._attempts._hung[name][1]
