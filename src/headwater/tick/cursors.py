"""Cursors that are too far behind: given up, which is told before and after."""

from __future__ import annotations

import logging
from dataclasses import replace

from headwater.read.backlog import Backlog, Lag, Limits
from headwater.state.files import StateFiles
from headwater.store import Store

_logger = logging.getLogger("headwater.tick")


class LateCursors:
    """Gives up the cursors that hold too much for too long. For one thread."""

    def __init__(self, store: Store, files: StateFiles, limits: Limits | None = None) -> None:
        self._cursors = store.cursors
        self._backlog = Backlog(store, files, limits)
        self._told: set[str] = set()

    def give_up(self, now: int) -> None:
        """Give up what is too far behind; warn once of what will be."""
        for lag in self._backlog.lags(now):
            cursor = lag.cursor
            if cursor.given_up:
                continue
            if lag.is_too_far:
                self._give_up(lag)
            elif lag.warning and cursor.name not in self._told:
                self._told.add(cursor.name)
                _logger.warning("the cursor %r on %s: %s", cursor.name, cursor.relation, lag.warning)
            elif not lag.warning:
                self._told.discard(cursor.name)

    def _give_up(self, lag: Lag) -> None:
        given_up = replace(lag.cursor, given_up=str(lag).replace("it is", "it was", 1))
        if self._cursors.change(lag.cursor, given_up) is not None:  # else it has just moved
            _logger.warning(
                "the cursor %r on %s was given up: %s", lag.cursor.name, lag.cursor.relation, given_up.given_up
            )
