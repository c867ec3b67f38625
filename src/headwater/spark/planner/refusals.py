"""What cannot be maintained, told with its place in the SQL, the reason and what to write instead."""

from __future__ import annotations

from collections.abc import Iterator

from headwater.errors import SchemaError, ViewRefused
from headwater.schema import Schema
from headwater.spark.catalyst import Catalyst, Java, number
from headwater.spark.planner.clock import ClockSearch

_OPERATORS = {
    "Sample": ("a sample is another one each time", "filter by a hash of a key: WHERE pmod(xxhash64(id), 10) = 0"),
    "ScriptTransformation": (
        "TRANSFORM runs a program, which may answer anything",
        "write it as a function: udf()",
    ),
}
_SUSPECT = set(_OPERATORS) | {"AesEncrypt"}
"""Without any of these there is nothing to refuse, and no need to look at every expression."""
_STORE_THE_TIME = "store its value in a column when you append"
_AGGREGATE = "org.apache.spark.sql.catalyst.expressions.aggregate.AggregateFunction"
_PLAN = "org.apache.spark.sql.catalyst.plans.logical.LogicalPlan"
_SUBQUERY = "org.apache.spark.sql.catalyst.expressions.SubqueryExpression"


class Refusals:
    """Refuses on behalf of one view."""

    def __init__(self, catalyst: Catalyst, view: str) -> None:
        self._catalyst = catalyst
        self._view = view
        self._clock = ClockSearch(catalyst)

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

    def check_plan(self, planned: Java) -> None:
        """Refuse what is left in a plan, after all rewrites, that depends on where its rows are.

        Spark's rules may bring in row numbers and random identities of their own, which are not in the query.
        """
        if planned.deterministic():
            return
        for plan in self._plans(planned):
            for part in self._expressions(plan):
                if self._is_arbitrary(part):
                    what = f"Spark answers this by {part.prettyName()}, which depends on where rows happen to be"
                    raise self._refused(plan, what, "write it as a join, a window function or an aggregate")

    def _is_arbitrary(self, part: Java) -> bool:
        if self._catalyst.is_a(part, _AGGREGATE) or self._catalyst.is_a(part, _SUBQUERY) or part.deterministic():
            return False
        return all(child.deterministic() for child in self._catalyst.children(part))

    def check_columns(self, analysed: Java, schema: Schema) -> None:
        """Refuse a query without columns, and columns that cannot be stored."""
        if not schema.columns:
            raise self._refused(analysed, "it has no columns", "a view has at least one: name it after SELECT")
        outputs = self._catalyst.items(analysed.output())
        aliases = [each for each in self._catalyst.items(analysed.expressions()) if each.nodeName() == "Alias"]
        named = {number(each): each for each in aliases}
        for column, attribute in zip(schema, outputs, strict=True):
            try:
                column.arrow  # noqa: B018  raises for what cannot be stored
            except SchemaError as error:
                what = f"the column {column.name} is of type {column.type}: {error.what}"
                hint = (
                    error.hint
                    if "CAST" in error.hint
                    else f"cast it to another type, as in CAST({column.name} AS STRING)"
                )
                raise self._refused(named.get(number(attribute), attribute), what, hint) from None

    def check_text(self, sql: str) -> None:
        """Refuse texts like `TIMESTAMP 'now'`, of which Spark makes a constant while it reads the query."""
        for place, text in self._clock.texts(sql):
            before = sql[:place]
            line, column = before.count("\n") + 1, place - before.rfind("\n")
            where = f"{self._view}, line {line}, column {column}"
            what = f"'{text.strip()}' changes without any input"
            raise ViewRefused(what, position=(line, column), where=where, hint=_STORE_THE_TIME)

    def check_clock(self, plan: Java) -> None:
        """Refuse what asks the clock: what was resolved, and again what has become of it."""
        if not self._clock.may_be_asked(plan):
            return
        for each in self._plans(plan):
            for expression in self._catalyst.items(each.expressions()):
                for part, words in self._clock.asked(expression):
                    raise self._refused(part, f"{words} changes without any input", _STORE_THE_TIME)

    def _expressions(self, plan: Java) -> Iterator[Java]:
        for expression in self._catalyst.items(plan.expressions()):
            yield from self._catalyst.walk(expression)

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
            if kind == "AesEncrypt":
                hint = "encrypt it when you append, and store that in a column"
                raise self._refused(part, "aes_encrypt gives another answer each time", hint)
            # An aggregate depends on the order of rows at most; a subquery's plan is checked itself.
            if self._is_arbitrary(part):
                reason = f"{part.prettyName()} gives another answer each time"
                raise self._refused(part, reason, "compute it when you append, and store it in a column")

    def operator(self, plan: Java) -> ViewRefused:
        """An operator that is not maintained."""
        default = (f"{plan.nodeName()} is not maintained yet", "compute it when you read the view")
        return self._refused(plan, *_OPERATORS.get(plan.nodeName(), default))

    def lost_order(self, sort: Java) -> ViewRefused:
        """An order of one side of a UNION, of which something above depends."""
        what = "a UNION does not keep the order of its sides, and an answer depends on it"
        return self._refused(sort, what, "ORDER BY after the UNION")

    def _refused(self, thing: Java, what: str, hint: str) -> ViewRefused:
        return ViewRefused(what, position=self._position(thing), where=self._place(thing), hint=hint)

    def _place(self, thing: Java) -> str:
        position = self._position(thing)
        return self._view if position is None else f"{self._view}, line {position[0]}, column {position[1]}"

    def _position(self, thing: Java) -> tuple[int, int] | None:
        return position_of(self._catalyst, thing)


def position_of(catalyst: Catalyst, thing: Java) -> tuple[int, int] | None:
    """Line and column, both from 1, of an operator or an expression or the first of its parts that has one."""
    origin = thing.origin()
    line, column = catalyst.option(origin.line()), catalyst.option(origin.startPosition())
    if line is not None and column is not None:
        return int(line), int(column) + 1
    for child in catalyst.children(thing):
        found = position_of(catalyst, child)
        if found is not None:
            return found
    return None
