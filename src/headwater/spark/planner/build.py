"""Spark's optimised plan, turned into ours.

Stateless stretches become fragments that hold Spark's own expressions; each stateful operator becomes one of ours:
a join of equal keys or an aggregate that can be added to where that is possible, a recompute everywhere else.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import pyarrow as pa

from headwater.operators.accumulate import Aggregate
from headwater.operators.join import Join
from headwater.operators.ranking import Order, Ranking
from headwater.operators.recompute import Recompute
from headwater.operators.stateless import Constant, Union
from headwater.operators.top_k import TopK
from headwater.operators.top_k_tree import MOST_ROWS, TopKTree
from headwater.operators.tree import Tree
from headwater.plan.operators import Fields, Node, Source
from headwater.schema import Schema
from headwater.spark.catalyst import Catalyst, Java, label
from headwater.spark.evaluator.computing import Leaf, Recomputing
from headwater.spark.evaluator.evaluate import rows_of
from headwater.spark.planner.aggregate_calls import AggregateCalls, NotAddedError
from headwater.spark.planner.distinct_aggregates import stands_alone
from headwater.spark.planner.fields import field_of, oddity
from headwater.spark.planner.fragment import Chain, compile_fragment
from headwater.spark.planner.order import order_of_calls, order_of_ties
from headwater.spark.planner.ranges import RangeCondition, has_few, range_condition, range_join
from headwater.spark.planner.recompute import Operators, once
from headwater.spark.planner.refusals import Refusals
from headwater.spark.planner.retracting import LIMITS, LINEAR, PAIRING, PASSING, SOURCES, may_retract
from headwater.spark.planner.top_k import limited, top_k, without_limit
from headwater.spark.planner.unmatched import Sides, counts_matches, equalities, kind_of, unmatched_join

_LONGEST_RANGE = 1_000_000
_WHOLE = {"UnionLoop", "AsOfJoin"}
"""Operators that are evaluated anew as they are. What is not known here may depend on where rows happen to be."""

Orders = tuple[Order, ...]
Based = tuple[Node, list[Java], list[Java]]
"""An operator, its attributes, and the stateless steps that belong to it."""


@dataclass(frozen=True)
class KnownRelation:
    """What a query may read: its columns, whether its rows never disappear, and the key of a table."""

    name: str
    schema: Schema
    appends_only: bool
    key: tuple[str, ...] = ()


class Builder:
    """Turns one optimised plan into ours."""

    def __init__(self, catalyst: Catalyst, relations: Mapping[int, KnownRelation], refusals: Refusals) -> None:
        self._catalyst = catalyst
        self._relations = relations
        self._refusals = refusals
        self._calls = AggregateCalls(catalyst)
        self._streams: set[str] = set()
        self._operators = Operators(catalyst)
        self._counts: dict[str, int] = {}

    def node(self, plan: Java, wanted: Sequence[Java] | None = None) -> Node:
        """Our operator for Spark's; `wanted` are the expressions that are needed of it, all columns if None."""
        steps: list[Java] = []
        while (kind := plan.nodeName()) in LINEAR or kind in PASSING:
            if kind in LINEAR:
                steps.append(plan)
            plan = self._catalyst.children(plan)[0]
        base, attributes, below = self._base(plan)
        if isinstance(base, TopK | TopKTree):
            steps = without_limit(self._catalyst, plan, base.ranking.limit, steps)
        steps += below
        if wanted is not None:
            steps.insert(0, self._catalyst.project(wanted, plan))
        if not steps:
            return base
        return compile_fragment(self._catalyst, base, Chain(steps, attributes))

    def _base(self, plan: Java) -> Based:
        """A leaf or a stateful operator, its attributes, and the stateless steps that belong to it."""
        kind = plan.nodeName()
        attributes = self._catalyst.items(plan.output())
        if kind in SOURCES:
            relation = self._relations[plan.rdd().id()]
            fields = self._fields(attributes)
            if relation.appends_only:
                self._streams.add(relation.name)
            return Source(fields, relation.name, tuple(a.name() for a in attributes)), attributes, []
        if kind in {"LocalRelation", "OneRowRelation"} or self._is_short_range(plan):
            return self._constant(plan, attributes), attributes, []
        if kind == "Union":
            children = tuple(self.node(child) for child in self._catalyst.children(plan))
            return Union(self._fields(attributes), children), attributes, []
        if kind in LIMITS:
            return self._limit(plan)
        special = {"Join": self._join, "Aggregate": self._aggregate, "Window": self._window}.get(kind, self._whole)
        return special(plan)

    def _name(self, kind: str) -> str:
        self._counts[kind] = self._counts.get(kind, 0) + 1
        return f"{kind}{self._counts[kind]}"

    def _is_short_range(self, plan: Java) -> bool:
        """`range(…)`: rows that the query itself holds, if they are not too many."""
        return plan.nodeName() == "Range" and int(str(plan.numElements())) <= _LONGEST_RANGE

    def _fields(self, attributes: Sequence[Java]) -> Fields:
        return tuple(field_of(attribute) for attribute in attributes)

    def _constant(self, plan: Java, attributes: list[Java]) -> Constant:
        if len(columns := once(attributes)) < len(attributes):
            plan = self._catalyst.project(columns, plan)
        fields = self._fields(columns)
        if not attributes:
            count = plan.data().size() if plan.nodeName() == "LocalRelation" else 1
            return Constant((), pa.table({"_": pa.nulls(count, pa.int8())}))
        return Constant(fields, rows_of(self._catalyst, plan, fields))

    # -- joins

    def _join(self, plan: Java) -> Based:
        pairs, condition = equalities(self._catalyst, plan)
        is_inner = kind_of(plan) in PAIRING
        attributes = self._catalyst.items(plan.left().output()) + self._catalyst.items(plan.right().output())
        if is_inner and (ranges := self._ranges(plan, pairs, condition)) is not None:
            ranged = range_join(self._catalyst, plan, pairs, ranges, self._side)
            output = _chosen(attributes, ranged.left, ranged.right)
            above = [self._catalyst.filter(condition, plan)]
            return replace(ranged, output=output, name=self._name("join")), attributes, above
        left, left_names = self._side(plan.left(), [pair[0] for pair in pairs])
        right, right_names = self._side(plan.right(), [pair[1] for pair in pairs])
        if not is_inner:
            return self._other_join(plan, Sides(left, right, left_names, right_names, condition))
        join = Join(
            _chosen(attributes, left, right),
            left=left,
            right=right,
            left_keys=left_names,
            right_keys=right_names,
            name=self._name("join"),
        )
        return join, attributes, [] if condition is None else [self._catalyst.filter(condition, plan)]

    def _ranges(
        self, plan: Java, pairs: Sequence[tuple[Java, Java]], condition: Java | None
    ) -> RangeCondition | None:
        """The range in the condition of a join; None if there is none, or a key does better by itself.

        It does if it has few rows of a side; and if no row of either side ever leaves, since what is kept by a key
        alone is written once, and shared.
        """
        sides = ((plan.left(), [pair[0] for pair in pairs]), (plan.right(), [pair[1] for pair in pairs]))
        if pairs and any(has_few(self._catalyst, side, keys, self._table_key) for side, keys in sides):
            return None
        if pairs and not self._may_retract(plan.left()) and not self._may_retract(plan.right()):
            return None
        return range_condition(self._catalyst, plan, condition)

    def _table_key(self, plan: Java) -> tuple[str, ...]:
        return self._relations[plan.rdd().id()].key if plan.nodeName() in SOURCES else ()

    def _other_join(self, plan: Java, sides: Sides) -> Based:
        if sides.left_keys and counts_matches(plan):
            made = unmatched_join(self._catalyst, plan, sides, self._name)
            return made, self._catalyst.items(plan.output()), []
        leaves = [self._operators.leaf(self._catalyst.items(side.output())) for side in (plan.left(), plan.right())]
        computing = self._operators.join(plan, leaves[0], leaves[1], keyed=bool(sides.left_keys))
        words = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", kind_of(plan))
        what = f"{words.lower()} join"
        reason = "it has no equality between the two sides" if not sides.left_keys else ""
        keys = (sides.left_keys, sides.right_keys)
        return self._recomputed(plan, computing, (sides.left, sides.right), keys, what, reason, matches=True)

    def _side(self, plan: Java, keys: Sequence[Java]) -> tuple[Node, tuple[str, ...]]:
        """One side with its key columns, and their names."""
        wanted = self._catalyst.items(plan.output())
        columns = [self._key_column(key, wanted) for key in keys]
        return self.node(plan, once(wanted)), tuple(label(column) for column in columns)

    def _key_column(self, key: Java, wanted: list[Java]) -> Java:
        """A key as a column of an input, of which it is wanted from now on."""
        column = key if key.nodeName() in {"AttributeReference", "Alias"} else self._catalyst.alias(key, "key")
        wanted.append(column)
        return column

    # -- aggregates

    def _aggregate(self, plan: Java) -> Based:
        if (found := order_of_calls(self._catalyst, plan, self._refusals)) is not None:
            plan = self._catalyst.with_child(plan, found.plan)
            return self._grouped(plan, "it depends on the order of rows", found.order)
        try:
            return self._accumulated(plan)
        except NotAddedError as reason:
            return self._grouped(plan, str(reason))

    def _accumulated(self, plan: Java, *, merged: bool = False) -> Based:
        """A GROUP BY to which changes can be added; or of which partial results can be `merged`."""
        catalyst = self._catalyst
        replaced: list[tuple[Java, Java]] = []
        wanted: list[Java] = []
        keys: list[Java] = []
        for expression in catalyst.items(plan.groupingExpressions()):
            if reason := oddity(expression):
                raise NotAddedError(reason)
            key = catalyst.normalised(expression)
            if key.nodeName() != "AttributeReference":
                key = catalyst.alias(key, "key")
                replaced.append((expression, key.toAttribute()))
            wanted.append(key)
            keys.append(key if key.nodeName() == "AttributeReference" else key.toAttribute())
        results = catalyst.items(plan.aggregateExpressions())
        retracts = not merged and self._may_retract(plan.child())
        alone = partial(stands_alone, catalyst, plan) if not merged else _never
        calls, found = self._calls.of(results, wanted, retracts=retracts, alone=alone)
        child = self.node(plan.child(), once(wanted))
        by_name = {each.name: each for each in child.output}
        names = tuple(dict.fromkeys(label(key) for key in keys))
        fields = tuple(by_name[name] for name in names) + tuple(call.result for call in calls)
        kind, name = (Tree, "tree") if merged else (Aggregate, "aggregate")
        made = kind(fields, child=child, keys=names, calls=calls, name=self._name(name))
        attributes = list({label(key): key for key in keys}.values()) + [attribute for _, attribute in found]
        replaced += found
        named = [catalyst.named(catalyst.replaced(result, replaced), result) for result in results]
        return made, attributes, [catalyst.project(named, catalyst.local(catalyst.sequence(attributes)))]

    def _grouped(self, plan: Java, reason: str, order: Sequence[Java] = ()) -> Based:
        """A GROUP BY that nothing can be added to, of rows that may be in an order."""
        if not order:
            try:
                return self._accumulated(plan, merged=True)
            except NotAddedError as found:
                reason = str(found)
        groups = self._catalyst.items(plan.groupingExpressions())
        child, keys = self._keyed(plan.child(), groups)
        leaf = self._operators.leaf(self._catalyst.items(plan.child().output()))
        computing = self._operators.aggregate(plan, leaf, order, keyed=bool(keys))
        what = "group by " + ", ".join(each.sql() for each in groups) if groups else "aggregate everything"
        return self._recomputed(plan, computing, (child,), (keys,), what, reason)

    # -- windows and limits

    def _window(self, plan: Java) -> Based:
        """Window functions; if only the first rows of each partition are asked for, no others are given."""
        parts = self._catalyst.items(plan.partitionSpec())
        first = plan.child() if plan.child().nodeName() == "WindowGroupLimit" else None
        below = plan.child() if first is None else first.child()
        order: tuple[Java, ...] = ()
        if (found := order_of_ties(self._catalyst, plan, below, self._refusals)) is not None:
            first, below, order = None, found.plan, found.order
        child, keys = self._keyed(below, parts)
        leaf = self._operators.leaf(self._catalyst.items(below.output()))
        computing = self._operators.window(plan, first, leaf, order, keyed=bool(keys))
        what = "window functions" if first is None else f"first {first.limit()} rows"
        if parts:
            what += " by " + ", ".join(each.sql() for each in parts)
        reason = "" if parts or first is not None else "there is no PARTITION BY"
        forgets = first is not None and not self._may_retract(below)
        selects = first is not None
        made, output, below = self._recomputed(
            plan, computing, (child,), (keys,), what, reason, selects=selects, forgets=forgets
        )
        ranking = None if first is None else top_k(self._catalyst, plan)
        if ranking is not None and not forgets and ranking.limit <= MOST_ROWS:
            return self._top_k_tree(made.output, child, keys, ranking, what), output, below
        return made if ranking is None else TopK.of(made, ranking), output, below

    def _top_k_tree(
        self, output: Fields, child: Node, keys: tuple[str, ...], ranking: Ranking, text: str, offset: int = 0
    ) -> TopKTree:
        name = self._name("tree")
        return TopKTree(output, child=child, keys=keys, ranking=ranking, offset=offset, name=name, text=text)

    def _keyed(self, plan: Java, keys: Sequence[Java]) -> tuple[Node, tuple[str, ...]]:
        """An input with those of its keys by which rows can be told apart."""
        usable = [self._catalyst.normalised(key) for key in keys if not oddity(key)]
        return self._side(plan, [key for key in usable if not key.foldable()])

    def _limit(self, plan: Java) -> Based:
        """LIMIT and OFFSET, with the order below them if there is one."""
        chain: list[Java] = []
        while plan.nodeName() in LIMITS | LINEAR | {"LocalLimit"}:
            chain.append(plan)
            plan = plan.child()
        order: list[Java] = []
        if plan.nodeName() == "Sort":
            order = self._catalyst.items(plan.order())
            plan = plan.child()
        else:
            while chain[-1].nodeName() in LINEAR:
                plan = chain.pop()
        attributes = self._catalyst.items(plan.output())
        leaf = self._operators.leaf(attributes)
        what = "first rows by " + ", ".join(each.sql() for each in order) if order else "some rows"
        child, above = self.node(plan), [each for each in chain if each.nodeName() == "Project"]
        if self._may_retract(plan) and (found := limited(self._catalyst, chain, order)) is not None:
            return self._limit_tree(child, attributes, above, found, what)
        limits = [each for each in chain if each.nodeName() in {"GlobalLimit", "LocalLimit"}]
        if len(above) + len(limits) == len(chain):
            computing = self._operators.limit(limits, order, leaf, attributes)
            forgets = not self._may_retract(plan)
            made = self._recomputed(plan, computing, (child,), ((),), what, "", selects=True, forgets=forgets)
            return made[0], made[1], above
        computing = self._operators.limit(chain, order, leaf, self._catalyst.items(chain[0].output()))
        return self._recomputed(chain[0], computing, (child,), ((),), what, "OFFSET looks at all rows")

    def _limit_tree(
        self, child: Node, attributes: list[Java], above: list[Java], found: tuple[Orders, int, int], what: str
    ) -> Based:
        """A LIMIT of rows in an order that may leave: those with places beyond the offset, up to the last."""
        catalyst, (order, offset, last) = self._catalyst, found
        place = catalyst.attribute("place", catalyst.bigint)
        numbered = [*once(attributes), place]
        made = self._top_k_tree(self._fields(numbered), child, (), Ranking(last, order, label(place)), what, offset)
        below = catalyst.project(attributes, catalyst.local(catalyst.sequence(numbered)))
        return made, numbered, [*above, below]

    # -- everything else

    def _whole(self, plan: Java) -> Based:
        if plan.nodeName() not in _WHOLE:
            raise self._refusals.operator(plan)
        cut: list[tuple[Leaf, Node]] = []
        operator = self._catalyst.map_children(plan, lambda child: self._cut(child, cut))
        computing = self._operators.made(
            operator, [leaf for leaf, _ in cut], self._catalyst.items(plan.output()), None
        )
        inputs = tuple(node for _, node in cut)
        return self._recomputed(
            plan, computing, inputs, ((),) * len(inputs), plan.nodeName(), "it looks at all rows"
        )

    def _cut(self, plan: Java, cut: list[tuple[Leaf, Node]]) -> Java:
        """An input of an operator as a leaf, or as leaves below what refers to a recursion."""
        if "UnionLoopRef" not in self._catalyst.kinds(plan):
            attributes = self._catalyst.items(plan.output())
            leaf = self._operators.leaf(attributes)
            cut.append((leaf, self.node(plan)))
            return self._catalyst.project(attributes, leaf.plan)
        return self._catalyst.map_children(plan, lambda child: self._cut(child, cut))

    def _recomputed(
        self,
        plan: Java,
        computing: Recomputing,
        inputs: tuple[Node, ...],
        keys: tuple[tuple[str, ...], ...],
        text: str,
        reason: str,
        *,
        matches: bool = False,
        selects: bool = False,
        forgets: bool = False,
    ) -> tuple[Recompute, list[Java], list[Java]]:
        made = Recompute(
            computing.outputs,
            inputs=inputs,
            keys=keys,
            computing=computing,
            matches=matches,
            selects=selects,
            forgets=forgets,
            name=self._name("recompute"),
            text=text,
            reason=reason,
        )
        return made, self._catalyst.items(plan.output()), []

    # -- what may disappear

    def _may_retract(self, plan: Java) -> bool:
        return may_retract(self._catalyst, plan, lambda source: not self._relations[source.rdd().id()].appends_only)

    def retracts(self, node: Node) -> bool:
        """Whether rows of an operator may ever disappear."""
        if isinstance(node, Source):
            return node.relation not in self._streams
        return node.retracts or any(self.retracts(child) for child in node.children)


def _never(condition: Java) -> bool:
    """Rows that come are not told from those that were there."""
    return False


def _chosen(attributes: Sequence[Java], left: Node, right: Node) -> Fields:
    """The columns of both sides that are these attributes."""
    names = {label(each) for each in attributes}
    return tuple(each for each in left.output + right.output if each.name in names)
