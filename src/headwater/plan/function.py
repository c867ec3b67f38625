"""A function of the user's that SQL may call."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from headwater.errors import HeadwaterError
from headwater.plan.function_code import code_fingerprint, digest


@dataclass(frozen=True)
class Udf:
    """A function that is known to be deterministic. `kind`: scalar, pandas or aggregate; `returns`: its type.

    What it does is told by the user's `version`, or by its code. It is told as it is now, and `pickled` is the form
    of it, made just before, that runs wherever it is called: what it uses may change afterwards, in vain.
    `HeadwaterError` if it cannot be told.

    `fingerprint`: another one whenever it may give something else than before, in whatever process.
    """

    name: str
    function: Callable[..., Any]
    returns: str
    kind: str = "scalar"
    version: str | None = None
    pickled: bytes = field(default=b"", compare=False, repr=False)
    fingerprint: str = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "fingerprint", self._told())

    def _told(self) -> str:
        try:
            does = code_fingerprint(self.function) if self.version is None else ["version", self.version]
            return digest([self.kind, " ".join(self.returns.lower().split()), does])
        except Exception as error:  # whatever the values that it holds say when they are looked at
            msg = f"what the function {self.name} does cannot be told: {type(error).__name__}: {error}"
            hint = "declare it with a version, another one whenever the function is another"
            raise HeadwaterError(msg, where=self.name, hint=hint) from error
