"""NEAREST … BY: Spark joins all pairs and groups them by a random number that each row of the left side got.

    Aggregate [__qid], [first(id), min_by(struct(…), distance, k)]      becomes the same, grouped by the columns
    +- Join Inner                                                       of the left side and the place of a row
       :- Project [id, s, uuid() AS __qid]                              among its equals
       +- q

So a row is told by what it is, whenever it comes, and its pairs leave with it.
"""

from __future__ import annotations

from headwater.errors import ViewRefused
from headwater.spark.catalyst import Catalyst, Java, number
from headwater.spark.planner.order import carrying
from headwater.spark.planner.refusals import position_of


def tell_rows_apart(catalyst: Catalyst, plan: Java) -> Java:
    """The plan with rows told apart by their columns, where Spark would number them at random."""
    if "Uuid" not in catalyst.kinds(plan):
        return plan
    return _Telling(catalyst).plan(plan)


class _Telling:
    def __init__(self, catalyst: Catalyst) -> None:
        self._catalyst = catalyst
        self._told: dict[int, list[Java]] = {}

    def plan(self, plan: Java) -> Java:
        """A plan, its inputs first."""
        plan = self._catalyst.map_children(plan, self.plan)
        if plan.nodeName() == "Project":
            return self._numbered(plan)
        if plan.nodeName() == "Aggregate":
            return self._grouped(plan)
        return plan

    def _numbered(self, plan: Java) -> Java:
        """Rows with their place among those that are equal; nothing needs the random number any more."""
        catalyst = self._catalyst
        every = catalyst.items(plan.projectList())
        random = [each for each in every if "Uuid" in map(_kind, catalyst.walk(each))]
        if not random:
            return plan
        others = [each for each in every if each not in random]
        columns = [each.toAttribute() for each in others]
        for column in columns:
            if not catalyst.is_orderable(column):
                what = f"{column.name()} is of type {column.dataType().sql()}, by which rows cannot be told apart"
                hint = "leave it out of what is joined with the nearest, and join it again by a key"
                raise ViewRefused(what, position=position_of(catalyst, random[0]), hint=hint)
        place = catalyst.alias(catalyst.row_number(columns), "place")
        for each in random:
            self._told[number(each)] = [*columns, place.toAttribute()]
        windowed = catalyst.window([place], columns, [], catalyst.project(others, plan.child()))
        return catalyst.project([*columns, *random], windowed)

    def _grouped(self, plan: Java) -> Java:
        catalyst = self._catalyst
        groups = catalyst.items(plan.groupingExpressions())
        if len(groups) != 1 or _kind(groups[0]) != "AttributeReference" or number(groups[0]) not in self._told:
            return plan
        told = self._told[number(groups[0])]
        child = carrying(catalyst, plan.child(), told)
        return catalyst.aggregate(told, catalyst.items(plan.aggregateExpressions()), child)


def _kind(thing: Java) -> str:
    return str(thing.nodeName())
