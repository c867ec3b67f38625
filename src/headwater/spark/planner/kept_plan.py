r"""Kept plans: what a view was planned as, in a file, so that no process needs to plan it again.

    <sha256 of the next line>\n
    {"key": "…", "marks": […]}\n
    <sha256 of all that follows>\n
    <our operators>\n
    <Spark's expressions and operators, as Java writes objects: one list, in one graph>

Our operators are JSON, in which Spark's objects are numbers: places in that list. A file is only used if its `key`,
which stands for all that a plan depends on, is the one that is asked for, and if its sums are right. To know of
which plan a view is, the first two lines are enough. Spark's objects are read when one of them is needed, and
nothing is read that is not of the classes which plans are made of.

Everything in it can be made again: a file that is missing, damaged or of another key is no loss.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import uuid
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import fields, is_dataclass
from typing import Any, BinaryIO, overload

import pyarrow as pa
from py4j.java_gateway import JavaObject
from py4j.protocol import Py4JJavaError

from headwater.errors import Unavailable
from headwater.expressions import expression
from headwater.plan.operators import Plan
from headwater.plan.registry import is_registered, made_of, register, stored_name
from headwater.spark.catalyst import Catalyst, Java
from headwater.spark.evaluator.computing import Computing, Leaf, Recomputing

for _stored, _kind in {
    "Computing": Computing,
    "Recomputing": Recomputing,
    "Leaf": Leaf,
    "Direct": expression.Direct,
    "Value": expression.Value,
    "Column": expression.ColumnReference,
    "DirectCall": expression.FunctionCall,
    "Kept": expression.Filter,
    "Made": expression.Expand,
    "Slicing": expression.Panes,
}.items():
    register(_stored)(_kind)
_FIELDS = {"panes": "slicing"}
"""Fields that have other names in files."""
_READ = {stored: name for name, stored in _FIELDS.items()}
_ALLOWED = (
    "org.apache.spark.sql.catalyst.**",
    "org.apache.spark.sql.types.**",
    "org.apache.spark.unsafe.types.*",
    "org.apache.spark.QueryContextType",
    "org.apache.spark.util.collection.BitSet",
    "org.apache.spark.util.collection.ImmutableBitSet",
    "scala.collection.**",
    "scala.runtime.ModuleSerializationProxy",
    "scala.Enumeration*",
    "scala.None$",
    "scala.Option",
    "scala.Some",
    "scala.Tuple*",
    *(f"java.lang.{name}" for name in ("Object", "String", "Enum", "Number", "Boolean", "Character", "Byte")),
    *(f"java.lang.{name}" for name in ("Short", "Integer", "Long", "Float", "Double")),
    "java.math.*",
    "java.util.ArrayList",
    "java.util.UUID",
    "java.util.concurrent.atomic.AtomicReference",
    "java.time.**",
    "!*",
)


class _Unfit(Exception):
    """Something that is not kept in files."""


class KeptPlan:
    """The file of one plan."""

    def __init__(self, catalyst: Catalyst, path: str) -> None:
        self._catalyst = catalyst
        self._path = path

    def write(self, key: str, made: Plan, marks: Sequence[str]) -> None:
        """Keep a plan and some texts with it, if it can be kept; what goes wrong with that is no loss."""
        objects: list[Java] = []
        with suppress(_Unfit, Py4JJavaError, OSError):
            coded = _Coding(self._catalyst, objects).value(made)
            blob = self._bytes(objects)
            self._objects(blob)  # or else it cannot be read
            head = json.dumps({"key": key, "marks": list(marks)}).encode()
            body = json.dumps(coded).encode() + b"\n" + blob
            os.makedirs(os.path.dirname(self._path), exist_ok=True)
            temporary = f"{self._path}.{uuid.uuid4().hex[:8]}"
            with open(temporary, "wb") as file:
                file.write(b"\n".join([_sum(head), head, _sum(body), body]))
            os.replace(temporary, self._path)

    def marks(self, key: str) -> list[str] | None:
        """The texts that were kept with the plan under that key, if it is there."""
        try:
            with open(self._path, "rb") as file:
                return _marks(file, key)
        except OSError:
            return None

    def read(self, key: str) -> tuple[Plan, list[str]] | None:
        """The plan that was kept under that key with its texts, if it is there."""
        try:
            with open(self._path, "rb") as file:
                marks, checksum, body = _marks(file, key), file.readline().rstrip(b"\n"), file.read()
        except OSError:
            return None
        if marks is None or _sum(body) != checksum:
            return None
        plan, _, blob = body.partition(b"\n")
        made = _Decoding(_Objects(lambda: self._readable(blob))).value(json.loads(plan))
        assert isinstance(made, Plan)
        return made, marks

    def _bytes(self, objects: Sequence[Java]) -> bytes:
        io = self._catalyst.jvm.java.io
        sink = io.ByteArrayOutputStream()
        stream = io.ObjectOutputStream(sink)
        stream.writeObject(self._catalyst.java_list(objects))
        stream.close()
        return bytes(sink.toByteArray())

    def _objects(self, blob: bytes) -> list[Java]:
        io = self._catalyst.jvm.java.io
        stream = io.ObjectInputStream(io.ByteArrayInputStream(blob))
        stream.setObjectInputFilter(io.ObjectInputFilter.Config.createFilter(";".join(_ALLOWED)))
        return list(stream.readObject())

    def _readable(self, blob: bytes) -> list[Java]:
        """Spark's objects; `Unavailable` if they cannot be read, and then the file is gone."""
        try:
            return self._objects(blob)
        except Py4JJavaError as error:
            with suppress(OSError):
                os.unlink(self._path)
            msg = "a kept plan cannot be read; it is planned again"
            raise Unavailable(msg, where=self._path, retry=True) from error


def _sum(data: bytes) -> bytes:
    return hashlib.sha256(data).hexdigest().encode()


def _marks(file: BinaryIO, key: str) -> list[str] | None:
    """The texts in the first two lines of a file; None if they are not whole, or of another key."""
    checksum, head = file.readline().rstrip(b"\n"), file.readline().rstrip(b"\n")
    if _sum(head) != checksum:
        return None
    found = json.loads(head)
    marks: list[str] = found["marks"]
    return marks if found["key"] == key else None


class _Objects:
    """Spark's objects, read when the first of them is needed."""

    def __init__(self, read: Callable[[], list[Java]]) -> None:
        self._read = read
        self._found: list[Java] | None = None

    def at(self, place: int) -> Java:
        if self._found is None:
            self._found = self._read()
        return self._found[place]


class _Some(Sequence[Java]):
    """Some of Spark's objects, in an order."""

    def __init__(self, objects: _Objects, places: Sequence[int]) -> None:
        self._objects = objects
        self._places = places

    def __len__(self) -> int:
        return len(self._places)

    @overload
    def __getitem__(self, place: int) -> Java: ...

    @overload
    def __getitem__(self, place: slice) -> Sequence[Java]: ...

    def __getitem__(self, place: int | slice) -> Java | Sequence[Java]:
        if isinstance(place, slice):
            return _Some(self._objects, self._places[place])
        return self._objects.at(self._places[place])


class _Coding:
    """Makes plain data of a plan."""

    def __init__(self, catalyst: Catalyst, objects: list[Java]) -> None:
        self._catalyst = catalyst
        self._objects = objects
        self._known: dict[int, tuple[int, Any]] = {}

    def value(self, value: Any) -> Any:  # noqa: PLR0911  one for each kind
        if value is None or isinstance(value, bool | int | float | str):
            return value
        if isinstance(value, tuple | list):
            if value and all(isinstance(each, JavaObject) for each in value):
                return {"java": [self._java(each) for each in value]}
            return {"tuple": [self.value(each) for each in value]}
        if isinstance(value, pa.DataType):
            return {"type": _bytes_of(pa.schema([pa.field("x", value)]).empty_table())}
        if isinstance(value, pa.Schema):
            return {"schema": _bytes_of(value.empty_table())}
        if isinstance(value, pa.Table):
            return {"rows": _bytes_of(value)}
        if isinstance(value, pa.Scalar):
            return {"scalar": _bytes_of(pa.table({"x": pa.repeat(value, 1)}))}
        if is_registered(type(value)):
            return self._object(value)
        raise _Unfit

    def _object(self, value: Any) -> Any:
        if id(value) in self._known:
            return {"known": self._known[id(value)][0]}
        self._known[id(value)] = len(self._known), value
        number = len(self._known) - 1
        assert is_dataclass(value)
        given = {each.name: getattr(value, each.name) for each in fields(value)}
        if isinstance(value, Computing):
            given["steps"] = [self._bare(step) for step in value.steps]
        if isinstance(value, Leaf):
            given["plan"] = None
        if isinstance(value, Recomputing) and value.operator.collectLeaves().size() != len(value.leaves):
            raise _Unfit  # rows of its own do not come back as they were
        coded = {_FIELDS.get(name, name): self.value(each) for name, each in given.items()}
        return {"is": stored_name(type(value)), "n": number, **coded}

    def _bare(self, step: Java) -> Java:
        """A step over nothing: what is below it does not count, and may not be written."""
        catalyst = self._catalyst
        return catalyst.with_child(step, catalyst.local(step.child().output()))

    def _java(self, value: Java) -> int:
        self._objects.append(value)
        return len(self._objects) - 1


class _Decoding:
    """Makes a plan of plain data."""

    def __init__(self, objects: _Objects) -> None:
        self._objects = objects
        self._known: dict[int, Any] = {}

    def value(self, data: Any) -> Any:
        if not isinstance(data, dict):
            return data
        if "is" in data:
            number, kind = data.pop("n"), data.pop("is")
            given = {str(_READ.get(name, name)): self.value(each) for name, each in data.items()}
            made = self._known[number] = made_of(kind, given)
            return made
        (kind, given), *_ = data.items()
        if kind == "known":
            return self._known[given]
        if kind == "tuple":
            return tuple(map(self.value, given))
        if kind == "java":
            return _Some(self._objects, given)
        rows = pa.ipc.open_stream(base64.b64decode(given)).read_all()
        of = {"type": lambda: rows.schema.field(0).type, "schema": lambda: rows.schema, "rows": lambda: rows}
        return of[kind]() if kind in of else rows.column(0)[0]


def _bytes_of(rows: pa.Table) -> str:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as stream:
        stream.write_table(rows.combine_chunks())
    return base64.b64encode(sink.getvalue()).decode()
