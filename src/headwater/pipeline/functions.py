"""Functions of the user's, checked when they are declared."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from typing import Any

from headwater.errors import HeadwaterError, SchemaError
from headwater.plan.builtins import BUILTINS
from headwater.plan.function import Udf
from headwater.schema import Column, check_topic, parse, types

KINDS = ("scalar", "pandas", "aggregate")
_RESULT = "result"


def checked_udf(name: str, function: Callable[..., Any], returns: str, kind: str, version: str | None) -> Udf:
    """The function that a user means, or an error that says what is wrong."""
    if name in BUILTINS:
        msg = f"SQL has a function or word {name} already, which would be called instead"
        raise HeadwaterError(msg, where=name, hint=f"choose another name, such as my_{name}")
    if kind not in KINDS:
        msg = f"kind is {kind!r}"
        raise HeadwaterError(msg, where=name, hint=f"it is one of {', '.join(KINDS)}")
    if not callable(function):
        msg = f"{function!r} cannot be called"
        raise HeadwaterError(msg, where=name, hint="give a Python function")
    _check_returns(name, returns, kind)
    if kind != "scalar" and not _takes_anything(function):
        msg = f"{function!r} takes nothing"
        raise HeadwaterError(msg, where=name, hint="a function of this kind takes at least one column")
    if version is not None and not isinstance(version, str):
        msg = f"version is {version!r}"
        raise HeadwaterError(msg, where=name, hint="give a text, another one whenever the function is another")
    return Udf(name, function, returns, kind, version, _pickled(name, function))


def _pickled(name: str, function: Callable[..., Any]) -> bytes:
    from headwater.spark.session.functions import pickled  # noqa: PLC0415  brings Spark with it

    try:
        return pickled(function)
    except Exception as error:  # whatever it holds says in its own way that it cannot leave this process
        why = (str(error).strip().splitlines() or [type(error).__name__])[0]
        msg = f"it cannot be sent to Spark's workers: {why}"
        raise HeadwaterError(msg, where=name, hint="let it make what it holds when it is called") from None


def _check_returns(name: str, returns: object, kind: str) -> None:
    """An error unless this is one type in which Spark can take what Python gives, and give it to us."""
    why, hint = "", "it is one type, such as BIGINT"
    columns: tuple[Column, ...] = ()
    if isinstance(returns, str) and returns.strip():
        try:
            schema = parse(f"{_RESULT} {returns}")
            check_topic(schema, None)
            columns = schema.columns
        except SchemaError as error:
            why, hint = ": " + error.what.splitlines()[0], error.hint or hint
    if len(columns) == 1 and columns[0].nullable and columns[0].comment is None:
        if kind == "scalar" or not (why := _not_from_pandas(columns[0].type, kind)):
            return
        hint = "choose another type, or another kind"
    msg = f"returns is {returns!r}{why}"
    raise HeadwaterError(msg, where=name, hint=hint)


def _not_from_pandas(returns: types.DataType, kind: str) -> str:
    if kind == "aggregate" and isinstance(returns, types.Struct):
        return ": an aggregate cannot return a struct"
    if any(isinstance(each, types.Char | types.Varchar) for each in _within(returns)):
        return ": what is returned through pandas has no length"
    return ""


def _within(data_type: types.DataType) -> Iterator[types.DataType]:
    yield data_type
    for part in data_type.parts:
        yield from _within(part)


def _takes_anything(function: Callable[..., Any]) -> bool:
    try:
        return bool(inspect.signature(function).parameters)
    except (TypeError, ValueError):  # some that are written in C do not tell
        return True
