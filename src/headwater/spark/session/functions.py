"""Functions of the user's, made known to Spark."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Protocol

from pyspark import cloudpickle
from pyspark.sql import SparkSession
from pyspark.sql.pandas.functions import PandasUDFType, pandas_udf


class Function(Protocol):
    """A user's function as the pipeline keeps it."""

    @property
    def name(self) -> str:
        """What SQL calls it."""
        ...

    @property
    def pickled(self) -> bytes:
        """The Python function, as `pickled` makes it."""
        ...

    @property
    def returns(self) -> str:
        """The type of its result."""
        ...

    @property
    def kind(self) -> str:
        """Scalar, pandas or aggregate."""
        ...


def pickled(function: Callable[..., Any]) -> bytes:
    """A function as it is now, as it can be sent to Spark's Python workers; raises anything if it cannot."""
    return bytes(cloudpickle.dumps(function))  # type: ignore[no-untyped-call]


class _Pickled:
    """A function in its pickled form, which is what workers get of it, however often it is sent."""

    def __init__(self, form: bytes) -> None:
        self._form = form

    def __call__(self, *values: Any) -> Any:
        return cloudpickle.loads(self._form)(*values)

    def __reduce__(self) -> tuple[Callable[[bytes], Any], tuple[bytes]]:
        return cloudpickle.loads, (self._form,)


def register(session: SparkSession, udf: Function) -> None:
    """Make a function known to a session.

    A datetime that it is given is in the session's time zone, and hashes of texts are the same in every process.
    """
    zone = str(session.conf.get("spark.sql.session.timeZone"))
    with _workers_have(session.sparkContext.environment, {"TZ": zone, "PYTHONHASHSEED": "0"}):
        if udf.kind == "scalar":
            session.udf.register(udf.name, _Pickled(udf.pickled), udf.returns)
        else:
            session.udf.register(udf.name, _over_pandas(udf))


@contextmanager
def _workers_have(environment: dict[str, str], variables: Mapping[str, str]) -> Iterator[None]:
    """Functions that are made within the block run in processes with these variables."""
    before = {name: environment.get(name) for name in variables}
    environment.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del environment[name]
            else:
                environment[name] = value


def _over_pandas(udf: Function) -> Any:
    kind = PandasUDFType.SCALAR if udf.kind == "pandas" else PandasUDFType.GROUPED_AGG
    with warnings.catch_warnings():
        # Spark would rather read the type hints, which a lambda has not.
        warnings.simplefilter("ignore", UserWarning)
        return pandas_udf(_Pickled(udf.pickled), udf.returns, kind)
