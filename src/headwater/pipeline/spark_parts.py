"""SparkParts: the parts of a pipeline that need Spark, made when a view is declared or a tick asked for."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from headwater.backends import open_engine
from headwater.catalog.catalog import Catalog
from headwater.errors import DeclarationChanged, LeaseHeld
from headwater.pipeline.arguments import duration_seconds
from headwater.pipeline.planning import Planning
from headwater.pipeline.plans import Plans
from headwater.pipeline.renewing import Renewing
from headwater.pipeline.sharing import Sharing
from headwater.plan.engine import Engine
from headwater.spark.session.settings import KEPT, kept_settings, meant
from headwater.state.files import StateFiles
from headwater.state.pins import Pins
from headwater.store import Faults
from headwater.tick.driver import Driver, Retention

if TYPE_CHECKING:
    from headwater.pipeline.pipeline import Pipeline


class SparkParts:
    """One process's engine for a pipeline, what plans by it, and the driver that ticks by it."""

    def __init__(self, pipeline: Pipeline, engine: Engine | None = None, files: StateFiles | None = None) -> None:
        self._pipeline = pipeline
        self._store = pipeline._store
        kept = kept_settings(self._store)
        self._settings = kept if pipeline.settings is None else pipeline.settings
        self._plans = Plans(pipeline.path)
        self._swept: Catalog | None = None
        self.engine = engine or open_engine(
            pipeline.master, pipeline.name, pipeline._udfs, pipeline.timezone, self._settings
        )
        self.planning = Planning(self.engine, self._plans)
        self.sharing = Sharing(self.engine, self.planning, pipeline._log)
        self.renewing = Renewing(self.planning, self.sharing, Faults(self._store))
        self.driver = Driver(
            self._store,
            pipeline._log,
            files or pipeline.state_files,
            pipeline._scratch,
            Pins(os.path.join(pipeline.path, "state")),
            pipeline._lease,
            pipeline.clock,
            self.engine,
            self.catalog,
            self.planning,
            self.renewing,
            Retention(pipeline.retain_ticks, duration_seconds(pipeline.retain_for)),
            max_rows=pipeline.max_rows,
        )
        if meant(self._settings) != kept:
            try:
                self._keep_settings()
            except BaseException:
                self.close()
                raise

    def catalog(self) -> Catalog:
        """All that is declared now; `DeclarationChanged` if the pipeline has got other settings of Spark."""
        if kept_settings(self._store) != meant(self._settings):
            msg = "another process has given this pipeline other settings of Spark"
            raise DeclarationChanged(msg, where=self._pipeline.path, hint="open it again, without spark")
        found = self._pipeline._relations.catalog()
        if found is not self._swept:
            self._plans.forget_others({view.number for view in found.views.values()})
            self._swept = found
        return found

    def arrangements(self) -> Mapping[str, Any]:
        """What every arrangement consists of now."""
        last = self._store.last_tick()
        return self._store.arrangements(last.number) if last is not None else {}

    def _keep_settings(self) -> None:
        """Keep the settings that the pipeline was opened with; only its driver may change them."""
        lease, wanted = self._pipeline._lease, meant(self._settings)
        held = lease.holds
        try:
            lease.acquire()
        except LeaseHeld as error:
            if kept_settings(self._store) == wanted:  # by a process that was opened with the same just now
                return
            msg = f"{error.what} with other settings of Spark"
            hint = "stop it first, or leave spark out"
            raise LeaseHeld(msg, holder=error.holder, where=self._pipeline.path, hint=hint) from None
        try:
            self._store.keep({KEPT: json.dumps(wanted)})
        finally:
            if not held:
                lease.release()

    def close(self) -> None:
        """Stop the driver, and Spark if nobody else uses it."""
        self.driver.close()
