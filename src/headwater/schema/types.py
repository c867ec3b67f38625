"""Spark's data types as plain values, without Spark.

Every type has `ddl`, its canonical text, which Spark parses to the same type, and `arrow`, the Arrow type in
which Spark itself exchanges it. Types that cannot travel as Arrow raise SchemaError from `arrow`. Two types are
equal exactly when Spark's are. Immutable, so safe to share between threads.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import pyarrow as pa

from headwater.errors import SchemaError

_PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")


def quote_name(name: str) -> str:
    """The name as DDL takes it: bare if it is a plain word, else in back-quotes."""
    return name if _PLAIN_NAME.match(name) else "`" + name.replace("`", "``") + "`"


def quote_text(text: str) -> str:
    """The text as a SQL string literal."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


class DataType:
    """The root of all types. `atomic` types can be compared and hashed by Spark, so they can be keys."""

    atomic: ClassVar[bool] = True

    @property
    def ddl(self) -> str:
        """The type as canonical DDL."""
        raise NotImplementedError

    @property
    def arrow(self) -> pa.DataType:
        """The Arrow type that Spark uses for it; SchemaError if there is none."""
        what = f"{self.ddl} cannot be exchanged as Arrow"
        raise SchemaError(what, hint="this type cannot be stored in a column")

    @property
    def parts(self) -> Iterator[DataType]:
        """The types that this one is directly made of."""
        return iter(())

    def __str__(self) -> str:
        return self.ddl


@dataclass(frozen=True)
class Boolean(DataType):
    """True or false."""

    ddl = "BOOLEAN"
    arrow = pa.bool_()


@dataclass(frozen=True)
class Byte(DataType):
    """An integer of 8 bits."""

    ddl = "TINYINT"
    arrow = pa.int8()


@dataclass(frozen=True)
class Short(DataType):
    """An integer of 16 bits."""

    ddl = "SMALLINT"
    arrow = pa.int16()


@dataclass(frozen=True)
class Integer(DataType):
    """An integer of 32 bits."""

    ddl = "INT"
    arrow = pa.int32()


@dataclass(frozen=True)
class Long(DataType):
    """An integer of 64 bits."""

    ddl = "BIGINT"
    arrow = pa.int64()


@dataclass(frozen=True)
class Float(DataType):
    """A binary floating point number of 32 bits."""

    ddl = "FLOAT"
    arrow = pa.float32()


@dataclass(frozen=True)
class Double(DataType):
    """A binary floating point number of 64 bits."""

    ddl = "DOUBLE"
    arrow = pa.float64()


@dataclass(frozen=True)
class Decimal(DataType):
    """An exact decimal number of `precision` digits, `scale` of them after the point."""

    precision: int = 10
    scale: int = 0

    @property
    def ddl(self) -> str:
        """For example `DECIMAL(12,2)`."""
        return f"DECIMAL({self.precision},{self.scale})"

    @cached_property
    def arrow(self) -> pa.DataType:
        """A decimal128; SchemaError for DECIMAL(0,0), which Spark's parser takes but Arrow does not have."""
        if self.precision < 1:
            what = f"{self.ddl} cannot be exchanged as Arrow"
            raise SchemaError(what, hint="a decimal needs at least one digit")
        return pa.decimal128(self.precision, self.scale)


def _collated(ddl: str, collation: str | None) -> str:
    return ddl if collation is None else f"{ddl} COLLATE {collation}"


@dataclass(frozen=True)
class String(DataType):
    """Text in UTF-8. An explicit collation, also UTF8_BINARY, makes another type than none, as in Spark."""

    collation: str | None = None
    arrow = pa.string()

    @property
    def ddl(self) -> str:
        """For example `STRING COLLATE UNICODE_CI`."""
        return _collated("STRING", self.collation)


@dataclass(frozen=True)
class Char(DataType):
    """Text of exactly `length` characters, padded with blanks."""

    length: int
    collation: str | None = None
    arrow = pa.string()

    @property
    def ddl(self) -> str:
        """For example `CHAR(3)`."""
        return _collated(f"CHAR({self.length})", self.collation)


@dataclass(frozen=True)
class Varchar(DataType):
    """Text of at most `length` characters."""

    length: int
    collation: str | None = None
    arrow = pa.string()

    @property
    def ddl(self) -> str:
        """For example `VARCHAR(3)`."""
        return _collated(f"VARCHAR({self.length})", self.collation)


@dataclass(frozen=True)
class Binary(DataType):
    """A sequence of bytes."""

    ddl = "BINARY"
    arrow = pa.binary()


@dataclass(frozen=True)
class Date(DataType):
    """A day of the calendar."""

    ddl = "DATE"
    arrow = pa.date32()


@dataclass(frozen=True)
class Timestamp(DataType):
    """An instant, in microseconds."""

    ddl = "TIMESTAMP"
    arrow = pa.timestamp("us", tz="UTC")


@dataclass(frozen=True)
class TimestampNtz(DataType):
    """What a calendar and a clock show, in microseconds, without a zone."""

    ddl = "TIMESTAMP_NTZ"
    arrow = pa.timestamp("us")


@dataclass(frozen=True)
class Time(DataType):
    """A time of day with `precision` digits after the second, 0 to 9."""

    precision: int = 6
    arrow = pa.time64("ns")

    @property
    def ddl(self) -> str:
        """For example `TIME(6)`."""
        return f"TIME({self.precision})"


def _interval(start: str, end: str) -> str:
    return f"INTERVAL {start}" if start == end else f"INTERVAL {start} TO {end}"


@dataclass(frozen=True)
class DayTimeInterval(DataType):
    """A length of time in microseconds, written in the fields from `start` to `end` (DAY … SECOND)."""

    start: str = "DAY"
    end: str = "SECOND"
    arrow = pa.duration("us")

    @property
    def ddl(self) -> str:
        """For example `INTERVAL DAY TO SECOND`."""
        return _interval(self.start, self.end)


@dataclass(frozen=True)
class YearMonthInterval(DataType):
    """A number of months, written in the fields from `start` to `end` (YEAR, MONTH). Not in Arrow."""

    start: str = "YEAR"
    end: str = "MONTH"

    @property
    def ddl(self) -> str:
        """For example `INTERVAL YEAR TO MONTH`."""
        return _interval(self.start, self.end)


@dataclass(frozen=True)
class CalendarInterval(DataType):
    """Months, days and microseconds. Not in Arrow."""

    atomic = False
    ddl = "INTERVAL"


@dataclass(frozen=True)
class Void(DataType):
    """The type of NULL, which is null in every row: no column of a topic, but of a view."""

    atomic = False
    ddl = "VOID"
    arrow = pa.null()


@dataclass(frozen=True)
class Variant(DataType):
    """A self-describing value in Spark's binary encoding. The mark on `metadata` is how Spark knows it."""

    atomic = False
    ddl = "VARIANT"
    arrow = pa.struct(
        [
            pa.field("value", pa.binary(), nullable=False),
            pa.field("metadata", pa.binary(), nullable=False, metadata={b"variant": b"true"}),
        ]
    )


def _field(name: str, kind: DataType, *, nullable: bool) -> pa.Field:
    """An Arrow field. Of VOID none must be there if it may not be null, as in an array that is always empty."""
    return pa.field(name, kind.arrow, nullable=nullable or isinstance(kind, Void))


@dataclass(frozen=True)
class Array(DataType):
    """A list. DDL cannot say `contains_null=False`; such a type only comes from elsewhere."""

    element: DataType
    contains_null: bool = True
    atomic = False

    @property
    def ddl(self) -> str:
        """For example `ARRAY<STRING>`."""
        return f"ARRAY<{self.element.ddl}>"

    @cached_property
    def arrow(self) -> pa.DataType:
        """A list."""
        return pa.list_(_field("element", self.element, nullable=self.contains_null))

    @property
    def parts(self) -> Iterator[DataType]:
        """The element."""
        return iter((self.element,))


@dataclass(frozen=True)
class Map(DataType):
    """Values by key; keys are never null. DDL cannot say `value_contains_null=False`."""

    key: DataType
    value: DataType
    value_contains_null: bool = True
    atomic = False

    @property
    def ddl(self) -> str:
        """For example `MAP<STRING, INT>`."""
        return f"MAP<{self.key.ddl}, {self.value.ddl}>"

    @cached_property
    def arrow(self) -> pa.DataType:
        """A map; SchemaError if its keys are VOID: they are never null, and could be nothing else."""
        if isinstance(self.key, Void):
            what = f"{self.ddl} cannot be exchanged as Arrow"
            raise SchemaError(what, hint="say what its keys would be, as in CAST(map() AS MAP<STRING, STRING>)")
        value = _field("value", self.value, nullable=self.value_contains_null)
        return pa.map_(pa.field("key", self.key.arrow, nullable=False), value)

    @property
    def parts(self) -> Iterator[DataType]:
        """The key and the value."""
        return iter((self.key, self.value))


@dataclass(frozen=True)
class Struct(DataType):
    """Named fields in order."""

    fields: tuple[Column, ...] = ()
    atomic = False

    @property
    def ddl(self) -> str:
        """For example `STRUCT<a: INT NOT NULL, b: STRING>`."""
        return f"STRUCT<{', '.join(field.ddl_in_struct for field in self.fields)}>"

    @cached_property
    def arrow(self) -> pa.DataType:
        """A struct."""
        return pa.struct([field.arrow for field in self.fields])

    @property
    def parts(self) -> Iterator[DataType]:
        """The types of the fields."""
        return (field.type for field in self.fields)


@dataclass(frozen=True)
class Column:
    """A named type: a column of a schema or a field of a struct. Comments do not travel in Arrow."""

    name: str
    type: DataType
    nullable: bool = True
    comment: str | None = None

    @property
    def ddl(self) -> str:
        """For example `id BIGINT NOT NULL COMMENT 'ours'`."""
        return f"{quote_name(self.name)} {self._declared}"

    @property
    def ddl_in_struct(self) -> str:
        """The same with a colon, as Spark prints the fields of a struct."""
        return f"{quote_name(self.name)}: {self._declared}"

    @property
    def _declared(self) -> str:
        strictness = "" if self.nullable else " NOT NULL"
        remark = "" if self.comment is None else f" COMMENT {quote_text(self.comment)}"
        return f"{self.type.ddl}{strictness}{remark}"

    @property
    def arrow(self) -> pa.Field:
        """The Arrow field."""
        return _field(self.name, self.type, nullable=self.nullable)
