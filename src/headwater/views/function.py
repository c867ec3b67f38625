"""A function of the user's that SQL may call."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Udf:
    """A function that is known to be deterministic. `kind`: scalar, pandas or aggregate; `returns`: its type."""

    name: str
    function: Callable[..., Any]
    returns: str
    kind: str = "scalar"
