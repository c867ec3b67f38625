"""Functions of the user's, made known to Spark."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, Protocol

from pyspark.sql import SparkSession
from pyspark.sql.pandas.functions import PandasUDFType, pandas_udf


class Function(Protocol):
    """A user's function as the pipeline keeps it."""

    @property
    def name(self) -> str:
        """What SQL calls it."""
        ...

    @property
    def function(self) -> Callable[..., Any]:
        """The Python function."""
        ...

    @property
    def returns(self) -> str:
        """The type of its result."""
        ...

    @property
    def kind(self) -> str:
        """Scalar, pandas or aggregate."""
        ...


def register(session: SparkSession, udf: Function) -> None:
    """Make a function known to a session."""
    if udf.kind == "scalar":
        session.udf.register(udf.name, udf.function, udf.returns)
    else:
        session.udf.register(udf.name, _over_pandas(udf))


def _over_pandas(udf: Function) -> Any:
    kind = PandasUDFType.SCALAR if udf.kind == "pandas" else PandasUDFType.GROUPED_AGG
    with warnings.catch_warnings():
        # Spark would rather read the type hints, which a lambda has not.
        warnings.simplefilter("ignore", UserWarning)
        return pandas_udf(udf.function, udf.returns, kind)
