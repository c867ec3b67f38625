"""What of a query gives another value at another moment.

Spark has four ways to the clock: functions such as `now()`; texts such as 'today' behind DATE or TIMESTAMP, of
which its parser makes constants; the same texts, however they are written, where constants are cast; and times
without a date, such as '12:30', which get the date of the day when they are cast to TIMESTAMP. Words in a column
are none: 'today' in a row is an error.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from headwater.plan.sql_text import tokens
from headwater.spark.catalyst import Catalyst, Java

_MOMENT = re.compile(r"\s*(now|today|tomorrow|yesterday)(\s.*)?", re.IGNORECASE | re.DOTALL)
_TIME_OF_DAY = re.compile(r"\s*(T\d{1,2}|\d{1,2}:).*", re.DOTALL)
_BEFORE_TEXT = re.compile(r"date|timestamp(_ltz|_ntz)?", re.IGNORECASE)
_REPLACEABLE = "org.apache.spark.sql.catalyst.expressions.RuntimeReplaceable"
_IS_OF_THE_PIPELINE = "CurrentTimeZone"


class ClockSearch:
    """Finds what asks the clock."""

    def __init__(self, catalyst: Catalyst) -> None:
        self._catalyst = catalyst
        patterns = catalyst.jvm.org.apache.spark.sql.catalyst.trees.TreePattern
        self._asks, self._replaceable = patterns.CURRENT_LIKE(), patterns.RUNTIME_REPLACEABLE()
        self._may_ask = self._asks, self._replaceable, patterns.CAST()

    def may_be_asked(self, thing: Java) -> bool:
        """Whether a plan or an expression, or anything in it, is of a kind that may ask."""
        return any(thing.containsPattern(each) for each in self._may_ask)

    def texts(self, sql: str) -> Iterator[tuple[int, str]]:
        """The place and the text of each constant like `DATE 'today'` in a query that can be parsed."""
        before = ""
        for place, token in tokens(sql):
            if _BEFORE_TEXT.fullmatch(before) and token.lstrip("rR")[:1] in {"'", '"'}:
                text = self._written(token)
                if text is not None and self._is_moment(text, before.upper()):
                    yield place, text
            before = token

    def asked(self, expression: Java) -> Iterator[tuple[Java, str]]:
        """The parts of an expression that ask, each with its name, or its text in quotes."""
        if not self.may_be_asked(expression):
            return
        if self._catalyst.is_a(expression, _REPLACEABLE):  # its arguments are in what it is replaced by
            yield from self.asked(expression.replacement())
            return
        children = self._catalyst.children(expression)
        kind = expression.nodeName()
        if kind == "Cast":
            text = self._constant(children[0])
            if text is not None and self._is_moment(text, expression.dataType().sql()):
                yield children[0], f"'{text.strip()}'"
        elif kind != _IS_OF_THE_PIPELINE and self._asks_itself(expression, children):
            yield expression, f"{expression.prettyName()}()"
        for child in children:
            yield from self.asked(child)

    def _asks_itself(self, expression: Java, children: list[Java]) -> bool:
        return expression.containsPattern(self._asks) and not any(
            child.containsPattern(self._asks) for child in children
        )

    def _is_moment(self, text: str, kind: str) -> bool:
        """Whether Spark takes the value of a text from the clock when it becomes a date or a timestamp."""
        if kind != "DATE" and not kind.startswith("TIMESTAMP"):
            return False
        has_zone = kind.startswith("TIMESTAMP") and not kind.startswith("TIMESTAMP_NTZ")
        return bool(_MOMENT.fullmatch(text) or (has_zone and _TIME_OF_DAY.fullmatch(text)))

    def _written(self, token: str) -> str | None:
        """What a text in quotes says; None if it is no text but a name."""
        parsed = self._catalyst.expression(token)
        return str(parsed.value().toString()) if parsed.nodeName() == "Literal" else None

    def _constant(self, expression: Java) -> str | None:
        """The text that an expression has in every row, if it has one."""
        runs = self._as_it_runs(expression)
        if not runs.foldable() or not runs.dataType().sql().startswith("STRING"):
            return None
        try:
            value = runs.eval(None)
        except (Py4JError, PySparkException):  # it has no value, which is told when it is evaluated
            return None
        return None if value is None else str(value.toString())

    def _as_it_runs(self, expression: Java) -> Java:
        """The expression with what Spark replaces calls by that have no value of their own."""
        if not expression.containsPattern(self._replaceable):
            return expression

        def replacement(part: Java) -> Java | None:
            return self._as_it_runs(part.replacement()) if self._catalyst.is_a(part, _REPLACEABLE) else None

        return self._catalyst.rewrite(expression, replacement)
