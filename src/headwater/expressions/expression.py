"""Expressions that need no Spark, as pure data; `evaluate` has their values."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from math import prod
from typing import Any

import pyarrow as pa


@dataclass(frozen=True)
class ColumnReference:
    """A column of the rows."""

    name: str


@dataclass(frozen=True)
class Value:
    """The same for all rows."""

    scalar: pa.Scalar


@dataclass(frozen=True)
class FunctionCall:
    """A function over other expressions; `options` are plain values. Equal calls of a plan are one object."""

    function: str
    arguments: tuple[Expression, ...]
    type: pa.DataType
    options: tuple[Any, ...] = ()


Expression = ColumnReference | Value | FunctionCall


@dataclass(frozen=True)
class Filter:
    """Only the rows for which a condition is true."""

    condition: Expression


@dataclass(frozen=True)
class Expand:
    """New rows: for each there is, one by each of `several` lists of named expressions."""

    several: tuple[tuple[tuple[str, Expression], ...], ...]


@dataclass(frozen=True)
class Panes:
    """An input that only counts by a `value` of it, and the `rest`, for rows that have the value in its place."""

    column: str
    value: FunctionCall
    rest: Direct


@dataclass(frozen=True)
class Direct:
    """What a fragment computes, step by step, from `inputs`, as they are called here, to `outputs` (`schema`)."""

    steps: tuple[Filter | Expand, ...]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    schema: pa.Schema
    panes: Panes | None = None

    @property
    def times(self) -> int:
        """How many rows come of one, at most."""
        return prod(len(step.several) for step in self.steps if isinstance(step, Expand))

    def giving(self, names: Iterable[str]) -> Direct:
        """The same with other names for what it computes, all but the last column."""
        schema = pa.schema([*map(pa.Field.with_name, self.schema, names), self.schema.field(-1)])
        panes = self.panes and replace(self.panes, rest=replace(self.panes.rest, schema=schema))
        return replace(self, schema=schema, panes=panes)
