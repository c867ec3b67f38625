"""NOT IN: an anti-join, and whether the inner side is empty or has a null.

    a NOT IN (SELECT b …)   becomes   the rows without an equal b, of which are kept
        all                                  if the inner side is empty
        none                                 if it has a null
        those whose a is not null            otherwise

So a change touches the rows with its own key only, unless the inner side gets its first row or null.
"""

from __future__ import annotations

from headwater.spark.catalyst import Catalyst, Java, number

_COUNTS = ("count(1) AS n", "count(b) AS present")
_FLAGS = ("n = 0 AS is_empty", "n > present AS has_null")


def rewrite_not_in(catalyst: Catalyst, plan: Java) -> Java:
    """The plan with every NOT IN of one column, over a subquery of its own, rewritten."""
    plan = catalyst.map_children(plan, lambda child: rewrite_not_in(catalyst, child))
    if plan.nodeName() != "Join" or plan.joinType().toString() != "LeftAnti":
        return plan
    equality = _null_aware(catalyst, catalyst.option(plan.condition()))
    if equality is None:
        return plan
    outer, inner = catalyst.children(equality)
    left, right = plan.left(), plan.right()
    if not catalyst.references(outer) <= _numbers(catalyst, left):
        outer, inner = inner, outer
    if not catalyst.references(outer) <= _numbers(catalyst, left) or not catalyst.references(inner):
        return plan
    flags = catalyst.derived(catalyst.project([catalyst.alias(inner, "b")], right), _COUNTS, _FLAGS)
    is_empty, has_null = catalyst.items(flags.output())
    kept = catalyst.either(is_empty, catalyst.conjunction([catalyst.negated(has_null), catalyst.present(outer)]))
    unmatched = catalyst.join(left, right, plan.joinType(), equality)
    joined = catalyst.join(unmatched, flags, catalyst.inner, kept)
    return catalyst.project(catalyst.items(left.output()), joined)


def _null_aware(catalyst: Catalyst, condition: Java | None) -> Java | None:
    """The equality in `a = b OR (a = b) IS NULL`."""
    if condition is None or condition.nodeName() != "Or":
        return None
    equality, unknown = catalyst.children(condition)
    if equality.nodeName() != "EqualTo" or unknown.nodeName() != "IsNull":
        return None
    return equality if catalyst.children(unknown)[0].semanticEquals(equality) else None


def _numbers(catalyst: Catalyst, plan: Java) -> set[int]:
    return {number(each) for each in catalyst.items(plan.output())}
