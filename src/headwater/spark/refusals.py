"""What cannot be maintained, told with its place in the SQL, the reason and what to write instead."""

from __future__ import annotations

import re
from collections.abc import Iterator

from headwater.errors import ViewRefused
from headwater.spark.catalyst import Catalyst, Java

_CLOCKS = {
    "CurrentTimestamp",
    "Now",
    "CurrentDate",
    "LocalTimestamp",
    "CurrentTime",
    "CurrentUser",
    "CurrentDatabase",
    "CurrentCatalog",
}
_OPERATORS = {
    "Sample": ("a sample is another one each time", "filter by a hash of a key: WHERE pmod(xxhash64(id), 10) = 0"),
    "ScriptTransformation": (
        "TRANSFORM runs a program, which may answer anything",
        "write it as a function: udf()",
    ),
}
_SUSPECT = _CLOCKS | set(_OPERATORS) | {"AesEncrypt"}
"""Without any of these there is nothing to refuse, and no need to look at every expression."""
_STORE_THE_TIME = "store its value in a column when you append"
_NOW = re.compile(r"'\s*(now|today|tomorrow|yesterday)\b[^']*'", re.IGNORECASE)
_NOW_LITERAL = re.compile(rf"\b(date|timestamp\w*)\s*{_NOW.pattern}", re.IGNORECASE)
_AGGREGATE = "org.apache.spark.sql.catalyst.expressions.aggregate.AggregateFunction"
_PLAN = "org.apache.spark.sql.catalyst.plans.logical.LogicalPlan"
_SUBQUERY = "org.apache.spark.sql.catalyst.expressions.SubqueryExpression"


class Refusals:
    """Refuses on behalf of one view."""

    def __init__(self, catalyst: Catalyst, view: str) -> None:
        self._catalyst = catalyst
        self._view = view

    def check(self, analysed: Java) -> None:
        """Refuse what can be told from the resolved query, before Spark rewrites it."""
        kinds = self._catalyst.kinds(analysed)
        if analysed.deterministic() and not kinds & _SUSPECT:
            return
        for plan in self._plans(analysed):
            for expression in self._catalyst.items(plan.expressions()):
                self._check_expression(expression)
            kind = plan.nodeName()
            if kind in _OPERATORS:
                raise self.operator(plan)

    def check_text(self, sql: str, analysed: Java) -> None:
        """Refuse texts like `TIMESTAMP 'now'`, of which Spark makes a constant while it reads the query."""
        found = _NOW.search(sql)
        if found is None:
            return
        casts = any(self._is_now(part) for plan in self._plans(analysed) for part in self._expressions(plan))
        if casts or _NOW_LITERAL.search(sql):
            before = sql[: found.start()]
            line, column = before.count("\n") + 1, found.start() - before.rfind("\n")
            where = f"{self._view}, line {line}, column {column}"
            what = f"{found[0]} changes without any input"
            raise ViewRefused(what, position=(line, column), where=where, hint=_STORE_THE_TIME)

    def _expressions(self, plan: Java) -> Iterator[Java]:
        for expression in self._catalyst.items(plan.expressions()):
            yield from self._catalyst.walk(expression)

    def _is_now(self, part: Java) -> bool:
        """Whether a text like 'now' becomes a time."""
        if part.nodeName() != "Cast" or part.dataType().sql() not in {"DATE", "TIMESTAMP", "TIMESTAMP_NTZ"}:
            return False
        return _NOW.fullmatch(f"'{self._catalyst.children(part)[0].toString()}'") is not None

    def _plans(self, plan: Java) -> Iterator[Java]:
        """A plan and all below it, with the plans of its subqueries."""
        yield plan
        for child in self._catalyst.items(plan.innerChildren()):
            if self._catalyst.is_a(child, _SUBQUERY):
                yield from self._plans(child.plan())
            elif self._catalyst.is_a(child, _PLAN):
                yield from self._plans(child)
        for child in self._catalyst.children(plan):
            yield from self._plans(child)

    def _check_expression(self, whole: Java) -> None:
        for part in self._catalyst.walk(whole):
            kind = part.nodeName()
            if kind in _CLOCKS:
                reason = f"{part.prettyName()}() changes without any input"
                raise self._refused(part, reason, _STORE_THE_TIME)
            if kind == "AesEncrypt":
                hint = "encrypt it when you append, and store that in a column"
                raise self._refused(part, "aes_encrypt gives another answer each time", hint)
            if self._catalyst.is_a(part, _AGGREGATE) or self._catalyst.is_a(part, _SUBQUERY):
                continue  # an aggregate depends on the order of rows at most; a subquery's plan is checked itself
            if not part.deterministic() and all(child.deterministic() for child in self._catalyst.children(part)):
                reason = f"{part.prettyName()} gives another answer each time"
                raise self._refused(part, reason, "compute it when you append, and store it in a column")

    def operator(self, plan: Java) -> ViewRefused:
        """An operator that is not maintained."""
        default = (f"{plan.nodeName()} is not maintained yet", "compute it when you read the view")
        return self._refused(plan, *_OPERATORS.get(plan.nodeName(), default))

    def _refused(self, thing: Java, what: str, hint: str) -> ViewRefused:
        return ViewRefused(what, position=self._position(thing), where=self._place(thing), hint=hint)

    def _place(self, thing: Java) -> str:
        position = self._position(thing)
        return self._view if position is None else f"{self._view}, line {position[0]}, column {position[1]}"

    def _position(self, thing: Java) -> tuple[int, int] | None:
        """Line and column, both from 1, of an operator or an expression or the first of its parts that has one."""
        origin = thing.origin()
        line, column = self._catalyst.option(origin.line()), self._catalyst.option(origin.startPosition())
        if line is not None and column is not None:
            return int(line), int(column) + 1
        for child in self._catalyst.children(thing):
            found = self._position(child)
            if found is not None:
                return found
        return None
