"""A case as a test that can be pasted beside the others."""

from __future__ import annotations

import datetime as dt
import decimal
import math
from collections.abc import Iterator
from typing import Any

from tests.equivalence.cases import Case
from tests.equivalence.traffic import Operation, Step, Topic

_HEAD = """\
from __future__ import annotations

import datetime as dt
import decimal

import pytest

from tests.equivalence.shop import Shop

pytestmark = [pytest.mark.spark, pytest.mark.slow]

"""


def as_test(case: Case) -> str:
    """A module with one test for the `shop` fixture of tests/equivalence, which runs both paths."""
    (view,) = case.views
    more = ", each tick in a new process" if case.restarts else ""
    lines = [f"def test_seed_{case.seed}_{view.name}(shop: Shop) -> None:  # failed on the {case.path} path{more}"]
    lines += [f"    {_declared(topic)}" for topic in case.topics]
    for number, steps in enumerate(case.ticks):
        if number == min(view.since, len(case.ticks) - 1):
            lines += [f"    sql = {_quoted(view.query.sql())}  # noqa: E501", f'    shop.view("{view.name}", sql)']
        lines += [f"    {line}" for step in steps for line in _done(step)]
        lines.append("    shop.tick()" if steps else "    shop.moved()")
    return f"{_HEAD}\n" + "\n".join(lines) + "\n"


def _quoted(sql: str) -> str:
    return f'"{sql}"' if '"' not in sql and "\\" not in sql else repr(sql)


def _declared(topic: Topic) -> str:
    kind = "stream" if topic.kind == "stream" else "table"
    key = f", key={list(topic.key)!r}" if topic.key else ""
    partitions = f", partitions={topic.partitions}" if topic.partitions > 1 else ""
    return f'{topic.name} = shop.{kind}("{topic.name}", "{topic.schema}"{key}{partitions})'


def _done(step: Step) -> Iterator[str]:
    if isinstance(step, Operation):
        yield f"{step.topic}.{step.verb}({_written(list(step.rows))})"
        return
    yield "with shop.pipeline.transaction() as transaction:"
    for part in step.operations:
        yield f'    transaction.{part.verb}("{part.topic}", {_written(list(part.rows))})'


def _written(value: Any) -> str:
    """A value as Python source."""
    match value:
        case dict():
            return "{" + ", ".join(f'"{name}": {_written(each)}' for name, each in value.items()) + "}"
        case list():
            return f"[{', '.join(map(_written, value))}]"
        case float() if not math.isfinite(value):
            return f'float("{value}")'
        case dt.datetime():
            return repr(value).replace("datetime.", "dt.").replace("dt.timezone.utc", "dt.UTC")
        case dt.date():
            return repr(value).replace("datetime.", "dt.")
        case decimal.Decimal():
            return f'decimal.Decimal("{value}")'
    return repr(value)
