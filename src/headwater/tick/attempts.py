"""Attempts: when views that failed are tried again, and which were computed when Java ended."""

from __future__ import annotations

import json
import time
from collections.abc import Collection

from headwater.attempt import Attempt
from headwater.store import Store

_MANY = 100_000
_REST = 4
"""An attempt with many rows is repeated only after several times as long as it took."""
_REST_OF_JAVA = 60.0
_NAME = "java ended"


class Attempts:
    """When views that failed are tried again: when an input has changed, and if it is much, after a while.

    It lives as long as the driver: another process may have other functions, and tries once in any case. But what
    ended Java rests there too.
    """

    def __init__(self, ends: JavaEnds) -> None:
        self.ends = ends
        self._failed: dict[str, float] = {}
        self._changed: set[str] = set()
        self._hung: dict[str, tuple[int, Attempt]] = {}
        self.forget()

    def hung(self, arrangement: str, seconds: float, attempt: Attempt) -> None:
        """Note that computing a view did not end: it rests as long, or longer each time, and until it has ended."""
        times = self._hung[arrangement][0] + 1 if arrangement in self._hung else 0
        self._hung[arrangement] = times, attempt
        self._changed.discard(arrangement)
        self._failed[arrangement] = time.monotonic() + seconds * 2**times

    def failed(self, arrangement: str, rows: int, seconds: float) -> None:
        """Note that computing a view from so many rows failed after so many seconds."""
        self._changed.discard(arrangement)
        self._failed[arrangement] = time.monotonic() + (_REST * seconds if rows > _MANY else 0)

    def succeeded(self, arrangement: str) -> None:
        """Note that a view is well."""
        self._changed.discard(arrangement)
        self._failed.pop(arrangement, None)
        self._hung.pop(arrangement, None)

    def forget(self) -> None:
        """Try all of them again, but what ended Java: another function makes another view of that."""
        now = time.monotonic()
        self._failed = {each: now + _REST_OF_JAVA * 2**times for each, times in self.ends.times.items()}

    def changed(self, arrangement: str) -> None:
        """Note that an input of a view has changed since it failed."""
        self._changed.add(arrangement)

    def is_due(self, arrangement: str) -> bool:
        """Whether computing it may succeed now."""
        if arrangement in self._hung and not self._hung[arrangement][1].ended.is_set():
            return False
        rest = self._failed.get(arrangement)
        return rest is None or (arrangement in self._changed and time.monotonic() >= rest)


class JavaEnds:
    """What was computed when Java ended; in the store, so that it is known to whoever ticks next.

    What is `suspected` was computed then, maybe beside what was to blame, so it is computed alone until it is well.
    What was alone when Java ended once more did so: `times` says how often again.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        kept = json.loads(store.kept(_NAME) or "{}")
        self.suspected: set[str] = set(kept.get("suspected", ()))
        self.times: dict[str, int] = dict(kept.get("times", {}))

    def ended(self, computed: Collection[str]) -> None:
        """Note that Java ended while these were computed."""
        if len(computed) == 1 and self.suspected.issuperset(computed):
            (blamed,) = computed
            self.times[blamed] = self.times.get(blamed, -1) + 1
        if not self.suspected.issuperset(computed) or self.times:
            self.suspected.update(computed)
            self._keep()

    def forgive(self, arrangement: str) -> None:
        """Note that something was computed, and Java lived on."""
        if arrangement in self.suspected:
            self.suspected.discard(arrangement)
            self.times.pop(arrangement, None)
            self._keep()

    def _keep(self) -> None:
        kept = {"suspected": sorted(self.suspected), "times": self.times}
        self._store.keep({_NAME: json.dumps(kept)})
