"""Columns of ours for attributes of Spark's."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

from headwater.errors import SchemaError, ViewRefused
from headwater.plan.operators import Field
from headwater.schema import parse
from headwater.spark.catalyst import Java, label

_COLLATION = re.compile(r"COLLATE (\w+)")


def field_of(attribute: Java) -> Field:
    """The column for an attribute; `ViewRefused` if its type cannot be stored."""
    text = attribute.dataType().sql()
    try:
        kind = parse(f"x {text}").columns[0].type
        return Field(label(attribute), kind.arrow, attribute.name(), kind.atomic)
    except SchemaError:
        what = f"the column {attribute.name()} would be of type {text}, which cannot be stored"
        raise ViewRefused(what, hint="cast it to another type, as in CAST(x AS STRING)") from None


def oddity(expression: Java) -> str:
    """Why values of an expression may be equal without having the same bytes; empty if they may not."""
    if expression.nodeName() == "AttributeReference" and expression.metadata().contains("spark.sessionWindow"):
        return "sessions grow together"
    kind = expression.dataType().sql()
    if any(collation != "UTF8_BINARY" for collation in _COLLATION.findall(kind)):
        return f"texts that differ may be equal as {kind}"
    return ""


def types_of(attributes: Sequence[Java]) -> str:
    """Spark's description of rows with these attributes, which have names by place."""
    fields = [
        {"name": f"_{place}", "type": json.loads(each.dataType().json()), "nullable": True, "metadata": {}}
        for place, each in enumerate(attributes)
    ]
    return json.dumps({"type": "struct", "fields": fields})
