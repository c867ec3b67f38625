"""Functions of the user's, checked when they are declared."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from headwater.errors import HeadwaterError
from headwater.schema import parse
from headwater.views.function import Udf

KINDS = ("scalar", "pandas", "aggregate")


def checked_udf(name: str, function: Callable[..., Any], returns: str, kind: str) -> Udf:
    """The function that a user means, or an error that says what is wrong."""
    if kind not in KINDS:
        msg = f"kind is {kind!r}"
        raise HeadwaterError(msg, where=name, hint=f"it is one of {', '.join(KINDS)}")
    if not callable(function):
        msg = f"{function!r} cannot be called"
        raise HeadwaterError(msg, where=name, hint="give a Python function")
    parse(f"x {returns}")
    return Udf(name.lower(), function, returns, kind)
