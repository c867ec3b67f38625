"""Spark's own plans and expressions, seen from Python: thin words over what py4j gives."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from typing import Any, cast

from py4j.java_gateway import is_instance_of
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import expr

from headwater.spark.session.settings import ANSI, SQL

Java = Any
"""An object that lives in the Java process."""


_NUMBER = re.compile(r"#(\d+)")
_CLASS = re.compile(r'"class":"[\w.]*?(\w+)\$?"')
_VIEW = re.compile(r"^[ :+-]*View \(`(\w+)`", re.MULTILINE)
_NAMED = re.compile(r"'UnresolvedRelation \[(\w+)\]")


class Catalyst:
    """The classes and conversions of one session's Java process that plans are made with."""

    def __init__(self, spark: SparkSession) -> None:
        self.spark = spark
        self.session: Java = spark._jsparkSession
        self.jvm = cast("Java", spark._jvm)
        plans: Java = self.jvm.org.apache.spark.sql.catalyst.plans.logical
        expressions: Java = self.jvm.org.apache.spark.sql.catalyst.expressions
        # Every step through a package is a call to Java: these are taken once.
        self._array_list = self.jvm.java.util.ArrayList
        self._to_sequence = self.jvm.org.apache.spark.api.python.PythonUtils.toSeq
        self._local, self._project, self._join = plans.LocalRelation, plans.Project, plans.Join
        self._no_hint = plans.JoinHint.NONE()
        self.inner: Java = module(self.jvm.org.apache.spark.sql.catalyst.plans, "Inner")
        self._filter, self._generate, self._expand = plans.Filter, plans.Generate, plans.Expand
        self._local_limit = plans.LocalLimit
        self._limits: dict[int, Java] = {}
        self._aggregate, self._sort = plans.Aggregate, plans.Sort
        self._window = plans.Window
        self._alias, self._and, self._coalesce = expressions.Alias, expressions.And, expressions.Coalesce
        self._or, self._not, self._is_not_null = expressions.Or, expressions.Not, expressions.IsNotNull
        self._sort_order, self._ascending = expressions.SortOrder, module(expressions, "Ascending")
        self._attribute = expressions.AttributeReference
        self._new_number = expressions.NamedExpression.newExprId
        self._evaluated = self.jvm.org.apache.spark.sql.catalyst.optimizer.ConvertToLocalRelation.apply
        self._context: Java = spark.sparkContext._jsc.sc()
        self._settings = _of_tasks(self.jvm, self.session)
        self._set_active = self.jvm.org.apache.spark.sql.classic.SparkSession.setActiveSession

    @cached_property
    def ansi(self) -> bool:
        """Whether what does not fit its type is an error."""
        return str(self.spark.conf.get(ANSI)) == "true"

    @cached_property
    def none(self) -> Java:
        """Scala's None."""
        return self.jvm.scala.Option.empty()

    @cached_property
    def _nothing(self) -> Java:
        return self.sequence([])

    @cached_property
    def _no_metadata(self) -> Java:
        return self.jvm.org.apache.spark.sql.types.Metadata.empty()

    def items(self, sequence: Java) -> list[Java]:
        """A Scala sequence as a list."""
        return [sequence.apply(place) for place in range(sequence.size())]

    def sequence(self, items: Iterable[Java]) -> Java:
        """A list as a Scala sequence."""
        return self._to_sequence(self.java_list(items))

    def java_list(self, items: Iterable[Java]) -> Java:
        """A list as one of Java's."""
        made = self._array_list()
        for item in items:
            made.add(item)
        return made

    def option(self, value: Java) -> Java | None:
        """What a Scala Option holds."""
        return value.get() if value.isDefined() else None

    def activate(self, session: Java | None = None) -> None:
        """Make this session's settings, or another's, those of the calling thread and of the tasks that it starts.

        Spark itself gives settings to tasks only where a query is run as a whole.
        """
        self._set_active(session or self.session)
        self._context.getLocalProperties().putAll(self._settings)

    # -- plans

    def kinds(self, plan: Java) -> set[str]:
        """The names of all classes of operators and expressions in a plan."""
        return set(_CLASS.findall(plan.toJSON()))

    def views(self, analysed: Java) -> list[str]:
        """The names of all temporary views that a resolved plan reads, also in subqueries."""
        return _VIEW.findall(analysed.treeString())

    def names(self, parsed: Java) -> list[str]:
        """The names, in lower case, of what an unresolved plan reads, each once, also in subqueries."""
        return list(dict.fromkeys(name.lower() for name in _NAMED.findall(parsed.treeString())))

    def parse(self, sql: str) -> Java:
        """The text as an unresolved plan."""
        return self.session.sessionState().sqlParser().parsePlan(sql)

    def analyse(self, parsed: Java) -> Java:
        """The plan with every name and type resolved; nothing is executed."""
        tracker = self.jvm.org.apache.spark.sql.catalyst.QueryPlanningTracker(self.none)
        return self.session.sessionState().analyzer().executeAndCheck(parsed, tracker)

    def optimise(self, analysed: Java) -> Java:
        """The plan as Spark would run it: subqueries joined, predicates pushed down, columns pruned."""
        return self.session.sessionState().optimizer().execute(analysed)

    def is_a(self, thing: Java, name: str) -> bool:
        """Whether an object is of a class, given its full name."""
        return bool(is_instance_of(self.spark.sparkContext._gateway, thing, name))

    def equi_join(self, join: Java) -> Java | None:
        """The parts of an equi-join (type, left keys, right keys, other condition, …); None if it is none."""
        return self.option(self.jvm.org.apache.spark.sql.catalyst.planning.ExtractEquiJoinKeys.unapply(join))

    def generate(self, node: Java, generator: Java | None = None, child: Java | None = None) -> Java:
        """The same generator, or another with its output, passing all of its input's columns along."""
        return self._generate(
            generator or node.generator(),
            self.sequence([]),
            node.outer(),
            node.qualifier(),
            node.generatorOutput(),
            child or node.child(),
        )

    def local(self, attributes: Java, rows: Java | None = None) -> Java:
        """A relation of given rows (none: empty)."""
        return self._local(attributes, rows or self.sequence([]), False, self.none)

    def project(self, expressions: Iterable[Java], child: Java) -> Java:
        """A projection."""
        return self._project(self.sequence(expressions), child)

    def filter(self, condition: Java, child: Java) -> Java:
        """A filter."""
        return self._filter(condition, child)

    def aggregate(self, keys: Iterable[Java], results: Iterable[Java], child: Java) -> Java:
        """A GROUP BY."""
        return self._aggregate(self.sequence(keys), self.sequence(results), child, self.none)

    def sort(self, order: Iterable[Java], child: Java, *, everywhere: bool) -> Java:
        """An order, of all rows or within each partition."""
        return self._sort(self.sequence(order), everywhere, child, self.none)

    def window(
        self, functions: Iterable[Java], partition: Iterable[Java], order: Iterable[Java], child: Java
    ) -> Java:
        """Window functions that have partitions and order in common."""
        several = [self.sequence(each) for each in (functions, partition, order)]
        return self._window(*several, child, self.none)

    def expand(self, projections: Iterable[Iterable[Java]], output: Iterable[Java], child: Java) -> Java:
        """Several rows for each, one by each projection."""
        lists = self.sequence(self.sequence(each) for each in projections)
        return self._expand(lists, self.sequence(output), child)

    def at_most(self, rows: int, plan: Java) -> Java:
        """No more than so many rows of each partition of the plan."""
        if rows not in self._limits:
            self._limits[rows] = self.expression(f"{rows}")
        return self._local_limit(self._limits[rows], plan)

    @cached_property
    def heap(self) -> int:
        """How many bytes Java may have."""
        return int(self.jvm.java.lang.Runtime.getRuntime().maxMemory())

    def evaluated(self, plan: Java) -> Java:
        """A projection or filter of local rows, evaluated here and now."""
        return self._evaluated(plan)

    def with_child(self, plan: Java, child: Java) -> Java:
        """The same operator over another input."""
        return self.with_children(plan, [child])

    def with_children(self, plan: Java, children: Iterable[Java]) -> Java:
        """The same operator over other inputs."""
        return plan.withNewChildren(self.sequence(children).toIndexedSeq())

    def map_children(self, plan: Java, change: Callable[[Java], Java]) -> Java:
        """The same operator with every input changed."""
        before = self.children(plan)
        after = [change(child) for child in before]
        if all(new is old for new, old in zip(after, before, strict=True)):
            return plan
        return self.with_children(plan, after)

    def join(self, left: Java, right: Java, kind: Java, condition: Java | None) -> Java:
        """A join of any type."""
        wanted = self.none if condition is None else self.jvm.scala.Option.apply(condition)
        return self._join(left, right, kind, wanted, self._no_hint)

    def derived(self, plan: Java, calls: Iterable[str], results: Iterable[str]) -> Java:
        """Aggregates over all rows of a plan, and expressions over those, written in SQL; optimised."""
        frame = DataFrame(self.frame(plan), self.spark)
        made = frame.agg(*(expr(call) for call in calls)).select(*(expr(result) for result in results))
        return self.optimise(made._jdf.queryExecution().analyzed())

    def children(self, node: Java) -> list[Java]:
        """The inputs of a plan or the parts of an expression."""
        return self.items(node.children())

    def renamed(self, plan: Java, attributes: Iterable[Java]) -> Java:
        """The columns of a plan, by place, as these attributes."""
        pairs = zip(self.items(plan.output()), attributes, strict=True)
        return self.project([self.alias_as(given, wanted.name(), wanted.exprId()) for given, wanted in pairs], plan)

    def frame(self, plan: Java) -> Java:
        """A Java DataFrame of a plan."""
        return self.jvm.org.apache.spark.sql.classic.Dataset.ofRows(self.session, plan)

    # -- expressions

    def expression(self, sql: str) -> Java:
        """A constant, written in SQL."""
        return self.session.sessionState().sqlParser().parseExpression(sql)

    def alias(self, expression: Java, name: str) -> Java:
        """The expression under a name, as a new attribute."""
        number = self._new_number()
        return self.alias_as(expression, name, number)

    def alias_as(self, expression: Java, name: str, number: Java) -> Java:
        """The expression under a name, as the attribute with that number."""
        return self._alias(expression, name, number, self._nothing, self.none, self._nothing)

    def named(self, new: Java, old: Java) -> Java:
        """A result that keeps its number although an attribute took its place."""
        return new if number(new) == number(old) else self.alias_as(new, old.name(), old.exprId())

    def replaced(self, expression: Java, pairs: list[tuple[Java, Java]]) -> Java:
        """The expression with the second of each pair in place of the first."""

        def change(part: Java) -> Java | None:
            return next((new for old, new in pairs if part.semanticEquals(old)), None)

        return self.rewrite(expression, change)

    def called(self, function: Java, condition: Java | None) -> Java:
        """An aggregate function as a call, of the rows for which a condition is true."""
        given = self.none if condition is None else self.jvm.scala.Option.apply(condition)
        return function.toAggregateExpression(False, given)

    def first_of(self, value: Java, condition: Java) -> Java:
        """The first value that is not null where a condition is true."""
        function = self.jvm.org.apache.spark.sql.catalyst.expressions.aggregate.First(value, True)
        return self.called(function, condition)

    def null(self, kind: Java) -> Java:
        """Nothing, of a type."""
        return self.jvm.org.apache.spark.sql.catalyst.expressions.Literal(None, kind)

    def equal(self, one: Java, other: Java) -> Java:
        """That both are equal."""
        return self.jvm.org.apache.spark.sql.catalyst.expressions.EqualTo(one, other)

    def either(self, one: Java, other: Java) -> Java:
        """Both conditions joined by OR."""
        return self._or(one, other)

    def negated(self, condition: Java) -> Java:
        """The contrary."""
        return self._not(condition)

    def present(self, expression: Java) -> Java:
        """That it is not null."""
        return self._is_not_null(expression)

    def conjunction(self, conditions: list[Java]) -> Java:
        """All conditions joined by AND."""
        joined = conditions[0]
        for condition in conditions[1:]:
            joined = self._and(joined, condition)
        return joined

    def conjuncts(self, condition: Java) -> list[Java]:
        """The conditions that are joined by AND."""
        if condition.nodeName() != "And":
            return [condition]
        return [part for child in self.children(condition) for part in self.conjuncts(child)]

    def coalesce(self, expressions: Iterable[Java]) -> Java:
        """The first of them that is not null."""
        return self._coalesce(self.sequence(expressions))

    def ascending(self, expression: Java) -> Java:
        """An order by the expression, nulls first."""
        nulls = self._ascending.defaultNullOrdering()
        return self._sort_order(expression, self._ascending, nulls, self._nothing)

    def row_number(self, partition: Iterable[Java]) -> Java:
        """The place of a row in its partition, in no order that is told."""
        expressions = self.jvm.org.apache.spark.sql.catalyst.expressions
        ends = module(expressions, "UnboundedPreceding"), module(expressions, "CurrentRow")
        frame = expressions.SpecifiedWindowFrame(module(expressions, "RowFrame"), *ends)
        return expressions.WindowExpression(expressions.RowNumber(), self.specified(partition, [], frame))

    def specified(self, partition: Iterable[Java], order: Iterable[Java], frame: Java) -> Java:
        """What comes after OVER."""
        made = self.jvm.org.apache.spark.sql.catalyst.expressions.WindowSpecDefinition
        return made(self.sequence(partition), self.sequence(order), frame)

    def can_be_wider(self, kind: Java, other: Java) -> bool:
        """Whether every value of a type is one of the other."""
        return bool(self.jvm.org.apache.spark.sql.catalyst.expressions.Cast.canUpCast(kind, other))

    def is_orderable(self, expression: Java) -> bool:
        """Whether its values can be compared, so that equal rows can be found."""
        ordering = self.jvm.org.apache.spark.sql.catalyst.expressions.RowOrdering
        return bool(ordering.isOrderable(expression.dataType()))

    def attribute(self, name: str, kind: Java) -> Java:
        """A new attribute of a type."""
        number = self._new_number()
        return self._attribute(name, kind, True, self._no_metadata, number, self._nothing)

    @cached_property
    def bigint(self) -> Java:
        """The type of whole numbers of 64 bits."""
        return self.jvm.org.apache.spark.sql.types.DataType.fromDDL("BIGINT")

    def normalised(self, expression: Java) -> Java:
        """The expression with -0.0 as 0.0 and every NaN as one; itself if it holds no floats."""
        rules = self.jvm.org.apache.spark.sql.catalyst.optimizer
        return module(rules, "NormalizeFloatingNumbers").normalize(expression)

    def references(self, expression: Java) -> set[int]:
        """The numbers of the attributes that an expression reads."""
        return {number(each) for each in self.items(expression.references().toSeq())}

    def walk(self, expression: Java) -> Iterator[Java]:
        """An expression and all its parts, outer ones first."""
        yield expression
        for child in self.children(expression):
            yield from self.walk(child)

    def rewrite(self, expression: Java, change: Callable[[Java], Java | None]) -> Java:
        """The expression with every part for which `change` gives something replaced by that."""
        made = change(expression)
        if made is not None:
            return made
        before = self.children(expression)
        after = [self.rewrite(child, change) for child in before]
        if all(a is b for a, b in zip(after, before, strict=True)):
            return expression
        return self.with_children(expression, after)


def _of_tasks(jvm: Java, session: Java) -> Java:
    """The SQL settings of a session that are not Spark's own."""
    settings = session.sessionState().conf().settings()
    found = jvm.java.util.Properties()
    for key in settings.keySet().toArray():
        if key.startswith(SQL):
            found.setProperty(key, settings.get(key))
    return found


def module(package: Java, name: str) -> Java:
    """A Scala object, with what it keeps for Spark itself."""
    return getattr(getattr(package, f"{name}$"), "MODULE$")


def number(attribute: Java) -> int:
    """What tells an attribute (or a named expression) from all others: the last number that Spark prints for it."""
    return int(_NUMBER.findall(attribute.toString())[-1])


def label(attribute: Java) -> str:
    """An attribute's name in our plans."""
    return f"c{number(attribute)}"
