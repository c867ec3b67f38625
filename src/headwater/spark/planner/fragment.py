"""Stateless stretches of Spark's plan, cut down to what must be computed.

Columns that an expression does not touch never go to Spark: they are taken by row number from the table that is
already in memory. So a fragment sends only the columns its expressions read, plus `_row`, and gets back the
computed columns, with the row that each result came from.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import pyarrow as pa

from headwater.evaluation import ROW
from headwater.expressions.expression import Direct
from headwater.operators.stateless import Fragment
from headwater.plan.operators import Field, Node, Source
from headwater.spark.catalyst import Catalyst, Java, label, number
from headwater.spark.evaluator.computing import Computing
from headwater.spark.planner.expressions import compile_direct
from headwater.spark.planner.fields import field_of, types_of


@dataclass(frozen=True)
class Chain:
    """Stateless operators of Spark's, the topmost first, over something with these attributes."""

    steps: list[Java]
    attributes: list[Java]


def compile_fragment(catalyst: Catalyst, base: Node, chain: Chain) -> Fragment:
    """The fragment for a chain over an operator of ours."""
    return _FragmentCompiler(catalyst, base, chain).fragment()


class _FragmentCompiler:
    def __init__(self, catalyst: Catalyst, base: Node, chain: Chain) -> None:
        self._catalyst = catalyst
        self._base = base
        self._leaf = {number(attribute): attribute for attribute in chain.attributes}
        self._untouched = set(self._leaf) - set().union(*(self._remade(step) for step in chain.steps))
        top = chain.steps[0]
        if top.nodeName() == "Project":
            self._results = catalyst.items(top.projectList())
            self._steps = chain.steps[1:]
        else:
            self._results = catalyst.items(top.output())
            self._steps = list(chain.steps)
        self._steps = [step for step in self._steps if not self._only_selects(step)]
        self._text = [step.simpleString(200) for step in chain.steps if not self._only_selects(step)]

    def _remade(self, step: Java) -> set[int]:
        """The attributes that a step gives a new value although they keep their numbers."""
        if step.nodeName() != "Expand":
            return set()
        output = self._catalyst.items(step.output())
        projections = [self._catalyst.items(each) for each in self._catalyst.items(step.projections())]
        return {
            number(attribute)
            for place, attribute in enumerate(output)
            if not all(each[place].semanticEquals(attribute) for each in projections)
        }

    def _only_selects(self, step: Java) -> bool:
        return step.nodeName() == "Project" and all(
            each.nodeName() == "AttributeReference" for each in self._catalyst.items(step.projectList())
        )

    def fragment(self) -> Fragment:
        """The fragment."""
        present = self._take_present()
        passed = {label(each): source for each in self._results if (source := self._source(each)) is not None}
        computed = [each for each in self._results if label(each) not in passed]
        if not computed and not self._steps:
            return self._made(present, passed, None)
        return self._made(present, passed, self._computing(computed))

    def _source(self, result: Java) -> str | None:
        """The column of the base that a result merely passes on, maybe under another number."""
        inner = self._catalyst.children(result)[0] if result.nodeName() == "Alias" else result
        if inner.nodeName() == "AttributeReference" and number(inner) in self._untouched:
            return label(inner)
        return None

    def _take_present(self) -> tuple[str, ...]:
        """Take `x IS NOT NULL` of the base's own columns out of the filters; we check that ourselves."""
        present: list[str] = []
        kept: list[Java] = []
        for step in self._steps:
            if step.nodeName() != "Filter":
                kept.append(step)
                continue
            others = []
            for condition in self._catalyst.conjuncts(step.condition()):
                name = self._checked_present(condition)
                if name is None:
                    others.append(condition)
                else:
                    present.append(name)
            if others:
                kept.append(self._catalyst.filter(self._catalyst.conjunction(others), step.child()))
        self._steps = kept
        return tuple(dict.fromkeys(present))

    def _checked_present(self, condition: Java) -> str | None:
        if condition.nodeName() != "IsNotNull":
            return None
        inner = self._catalyst.children(condition)[0]
        if inner.nodeName() == "AttributeReference" and number(inner) in self._untouched:
            return label(inner)
        return None

    def _computing(self, computed: list[Java]) -> Computing:
        catalyst = self._catalyst
        row = catalyst.attribute(ROW, catalyst.bigint)
        required = set().union(*(catalyst.references(each) for each in computed))
        steps = [catalyst.project([*computed, row], catalyst.local(catalyst.sequence([])))]
        for step in self._steps:
            kept, required = self._required(step, row, required)
            steps.append(kept)
        inputs = [attribute for key, attribute in self._leaf.items() if key in required]
        kinds = {step.nodeName() for step in steps}
        return Computing(
            attributes=(*inputs, row),
            types=types_of([*inputs, row]),
            steps=tuple(reversed(steps)),
            inputs=tuple(self._field(attribute) for attribute in inputs),
            outputs=tuple(self._field(each.toAttribute()) for each in computed),
            plain=kinds <= {"Project", "Filter"} and not any(map(self._has_python, self._expressions(steps))),
        )

    def _required(self, step: Java, row: Java, required: set[int]) -> tuple[Java, set[int]]:
        """A step cut down to what is required of it, and what it then requires of the one below."""
        catalyst, kind = self._catalyst, step.nodeName()
        if kind == "Filter":
            return step, required | catalyst.references(step.condition())
        if kind == "Project":
            kept = [each for each in catalyst.items(step.projectList()) if number(each) in required]
            needed = set().union(*(catalyst.references(each) for each in kept))
            return catalyst.project([*kept, row], step.child()), needed
        if kind == "Generate":
            made = {number(each) for each in catalyst.items(step.generatorOutput())}
            return catalyst.generate(step), (required - made) | catalyst.references(step.generator())
        if kind == "Expand":
            projections = [catalyst.items(each) for each in catalyst.items(step.projections())]
            needed = set().union(*(catalyst.references(each) for several in projections for each in several))
            output = [*catalyst.items(step.output()), row]
            return catalyst.expand([[*each, row] for each in projections], output, step.child()), needed
        made = {number(each) for each in catalyst.items(step.resultAttrs())}
        needed = set().union(*(catalyst.references(each) for each in catalyst.items(step.udfs())))
        return step, (required - made) | needed

    def _expressions(self, steps: list[Java]) -> list[Java]:
        return [each for step in steps for each in self._catalyst.items(step.expressions())]

    def _has_python(self, expression: Java) -> bool:
        return any(part.nodeName() == "PythonUDF" for part in self._catalyst.walk(expression))

    def _direct(self, computing: Computing) -> Direct | None:
        inputs = [label(each) for each in computing.attributes]
        outputs = [*(each.name for each in computing.outputs), inputs[-1]]
        wanted = pa.schema([*(each.arrow for each in computing.outputs), pa.field(ROW, pa.int64())])
        return compile_direct(self._catalyst, computing.steps, inputs, outputs, wanted)

    def _field(self, attribute: Java) -> Field:
        return field_of(attribute)

    def _made(self, present: tuple[str, ...], passed: dict[str, str], computing: Computing | None) -> Fragment:
        known = {each.name: each for each in self._base.output}
        made = {} if computing is None else {each.name: each for each in computing.outputs}
        output = []
        for result in self._results:
            name = label(result)
            if name in passed:
                output.append(replace(known[passed[name]], name=name, shown=result.name()))
            else:
                output.append(made[name])
        inputs = () if computing is None else tuple(each.name for each in computing.inputs)
        base = _pruned(self._base, {*present, *inputs, *passed.values()})
        return Fragment(
            tuple(dict.fromkeys(output)),
            child=base,
            present=present,
            inputs=inputs,
            computing=computing,
            direct=None if computing is None else self._direct(computing),
            passed=tuple(passed.items()),
            text=" · ".join(reversed(self._text)),
        )


def _pruned(base: Node, needed: set[str]) -> Node:
    """A source reads only what is needed."""
    if not isinstance(base, Source):
        return base
    pairs = [pair for pair in zip(base.output, base.columns, strict=True) if pair[0].name in needed]
    return replace(base, output=tuple(f for f, _ in pairs), columns=tuple(c for _, c in pairs))
