"""The operators that keep nothing: rows of the query's own, all rows of several inputs, expressions by row."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Self

import numpy as np
import pyarrow as pa

from headwater.change import WEIGHT
from headwater.change.consolidate import consolidate
from headwater.change.gather import CHUNK_BYTES, gather, in_parts
from headwater.change.keys import without_nulls
from headwater.change.pairs import Pairs
from headwater.evaluation import ROW
from headwater.evaluation.ways import SetAside, naming_a_row, setting_aside
from headwater.expressions.evaluate import Unsure, panes_of
from headwater.expressions.evaluate import evaluate as directly
from headwater.expressions.expression import Direct
from headwater.plan.operators import TAKES, Names, Node, Reading
from headwater.plan.physical import Apply, EvaluateRows, Rows, Step, Together
from headwater.plan.registry import register

WEIGHT_FIELD = pa.field(WEIGHT, pa.int64())


@register()
@dataclass(frozen=True)
class Constant(Node):
    """Rows that the query itself holds: they appear once, when the view is filled."""

    kind: ClassVar[str] = "source"
    rows: pa.Table | None = None

    def renamed(self, names: Names) -> Self:
        """Its rows have the same names."""
        renamed = super().renamed(names)
        if self.rows is None or not self.output:
            return renamed
        return replace(renamed, rows=self.rows.rename_columns(names.all(self.rows.column_names)))

    @property
    def title(self) -> str:
        """Nothing of the rows."""
        return "rows written in the query"

    @property
    def work(self) -> str:
        """What a tick costs."""
        return TAKES

    def physical(self) -> Step:
        """Its rows."""
        return Rows(self.rows if self.rows is not None else self.schema.empty_table(), self.schema)


@register()
@dataclass(frozen=True)
class Union(Node):
    """All rows of all inputs; their columns go by position."""

    inputs: tuple[Node, ...] = ()

    @property
    def children(self) -> tuple[Node, ...]:
        """Its inputs."""
        return self.inputs

    def over(self, children: Sequence[Node]) -> Self:
        """The same over others."""
        return replace(self, inputs=tuple(children))

    @property
    def title(self) -> str:
        """What SQL calls it."""
        return "union all"

    def physical(self) -> Step:
        """All together."""
        return Together(tuple(each.physical() for each in self.inputs), self.schema)


@register()
@dataclass(frozen=True)
class Fragment(Node):
    """A stretch of filters, projections and generators.

    Rows with a null in one of `present` are left out first. `computing` gets the columns `inputs` and gives new
    ones, by row; the columns in `passed` (new name, old name) go by untouched. Without `computing` it only
    selects columns. `direct` computes the same without Spark, if it can.
    """

    child: Node = field(kw_only=True)
    present: tuple[str, ...] = ()
    inputs: tuple[str, ...] = ()
    computing: Any = None
    direct: Direct | None = field(default=None, compare=False)
    passed: tuple[tuple[str, str], ...] = ()
    text: str = ""

    @property
    def children(self) -> tuple[Node, ...]:
        """Its input."""
        return (self.child,)

    @property
    def computes(self) -> bool:
        """Whether it evaluates anything."""
        return self.computing is not None or self.direct is not None

    def over(self, children: Sequence[Node]) -> Self:
        """The same over another."""
        return replace(self, child=children[0])

    def renamed(self, names: Names) -> Self:
        """What it computes, and from what, has the same names."""
        computing, direct = self.computing, self.direct
        if computing is not None:
            inputs, outputs = names.fields(computing.inputs), names.fields(computing.outputs)
            computing = replace(computing, inputs=inputs, outputs=outputs)
        if direct is not None:
            direct = direct.giving(names.all(direct.schema.names[:-1]))
        return replace(
            super().renamed(names),
            present=names.all(self.present),
            inputs=names.all(self.inputs),
            computing=computing,
            direct=direct,
            passed=tuple((names[new], names[old]) for new, old in self.passed),
        )

    def bare(self) -> Self:
        """The columns that it looks at, and those that it passes on, are left."""
        return replace(super().bare(), computing=None, text="")

    def portable(self) -> Self:
        """What Arrow computes goes along."""
        return replace(super().portable(), computing=None)

    @property
    def computed(self) -> Any:
        """What Spark evaluates."""
        return self.computing

    @property
    def arranged_by(self) -> tuple[str, ...]:
        """What its input is, if it passes all of that on."""
        new, below = {old: name for name, old in self.passed}, self.child.arranged_by
        return tuple(new[each] for each in below) if set(below) <= set(new) else ()

    @property
    def reading(self) -> Reading | None:
        """That of its input, if it computes nothing."""
        below = self.child.reading
        if below is None or self.computes:
            return None
        old, read = dict(self.passed), dict(zip(self.child.schema.names, below.columns, strict=True))
        columns = tuple(read[old[each.name]] for each in self.output)
        return Reading(below.relation, columns, (*below.present, *(read[each] for each in self.present)))

    @property
    def selected(self) -> tuple[Node, dict[str, str]]:
        """Its input, and the names there of its columns, if it only selects columns; else itself."""
        return super().selected if self.computes or self.present else (self.child, dict(self.passed))

    @property
    def title(self) -> str:
        """The steps as Spark tells them, or the columns that must not be null."""
        return self.text or f"{', '.join(self.child.shown([name]) for name in self.present)} is not null"

    def physical(self) -> Step:
        """Applied to its input."""
        return Apply(self, self.child.physical())

    # -- rows

    def apply(self, rows: pa.Table | Pairs, evaluate: EvaluateRows, aside: SetAside | None = None) -> pa.Table:
        """What becomes of rows with `_weight`: computed columns, by `evaluate` if Arrow cannot, and the others.

        Rows for which an expression has no value are set `aside`, if that is possible; else the error names one.
        """
        rows, made = without_nulls(rows, self.present), None
        if self.computes and aside is not None:
            rows = aside.left(rows.table() if isinstance(rows, Pairs) else rows, self.child.output)
        if self.computes and rows.num_rows:
            rows, made = self._evaluated(rows, evaluate, aside)
        schema = self.schema.append(WEIGHT_FIELD)
        if not rows.num_rows:
            return schema.empty_table()
        columns = {}
        if made is not None:
            columns = {name: made.column(name) for name in made.column_names if name != ROW}
            if not _all_rows(made.column(ROW), rows.num_rows):
                rows = self._taken(rows, made.column(ROW))
        columns |= {new: rows.column(old) for new, old in self.passed} | {WEIGHT: rows.column(WEIGHT)}
        return pa.Table.from_arrays([columns[name] for name in schema.names], schema=schema)

    def _evaluated(
        self, rows: pa.Table, evaluate: EvaluateRows, aside: SetAside | None
    ) -> tuple[pa.Table, pa.Table | None]:
        """The rows that can be evaluated, and the computed columns with the place of the row of each."""

        def computed(rows: pa.Table) -> pa.Table | None:
            return self._computed(rows, evaluate) if rows.num_rows else None

        if aside is None:
            return rows, naming_a_row(computed, rows, self.child.output)
        return setting_aside(computed, rows, self.child.output, aside)

    def _computed(self, rows: pa.Table, evaluate: EvaluateRows) -> pa.Table:
        numbers = pa.array(np.arange(rows.num_rows))
        columns = [*(rows.column(name) for name in self.inputs), numbers]
        given = pa.table(columns, names=[*self.inputs, ROW])
        if self.direct is not None:
            with suppress(Unsure):
                return directly(self.direct, given)
        if given.nbytes <= CHUNK_BYTES:
            return evaluate(self.computing, given)
        return pa.concat_tables([evaluate(self.computing, part) for part in in_parts(given)])

    def _taken(self, rows: pa.Table | Pairs, places: pa.ChunkedArray) -> pa.Table | Pairs:
        """The rows from which others came, as far as they are passed on."""
        if isinstance(rows, Pairs):
            return rows.take(places)
        needed = rows.select(list({old: 0 for _, old in self.passed} | {WEIGHT: 0}))
        return gather(needed, places.to_numpy())

    def in_panes(self, rows: pa.Table | Pairs, groups: tuple[str, ...] | None) -> tuple[Self, pa.Table | Pairs]:
        """Rows that cannot be told apart by their `groups` as one, before there are several of each.

        What is to be applied to them is another fragment.
        """
        panes = self.direct.panes if self.direct is not None else None
        if self.direct is None or panes is None or groups is None or isinstance(rows, Pairs):
            return self, rows
        name = self.inputs[self.direct.inputs.index(panes.column)]
        if any(new not in groups or old == name for new, old in self.passed):
            return self, rows
        columns = dict.fromkeys([*self.inputs, *(old for _, old in self.passed), WEIGHT])
        given = without_nulls(rows, self.present).select(list(columns))
        values = panes_of(panes, given.column(name))
        if values is None:
            return self, rows
        alike = given.set_column(given.schema.get_field_index(name), name, values)
        return replace(self, direct=panes.rest), consolidate(alike)


def _all_rows(taken: pa.ChunkedArray, count: int) -> bool:
    return len(taken) == count and bool(np.array_equal(taken.to_numpy(), np.arange(count)))
