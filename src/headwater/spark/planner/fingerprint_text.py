"""What Spark evaluates, in words that are the same in every process."""

from __future__ import annotations

import re

from headwater.plan.fingerprint import Words
from headwater.spark.catalyst import Java

_NUMBERS = re.compile(r'(#|"id":|"loopId":|\bUnionLoop(?:Ref)? |\b_common_expr_|_)(\d+)')
_PROCESS = re.compile(r'"jvmId":"[-0-9a-f]+"')
_FUNCTION = re.compile(r'"class":"[\w.]*\.(?:PythonUDF|PythonUDAF|PythonUDTF)","num-children":\d+,"name":"(\w+)"')
_ALL = 1 << 30
_LEAST = 1 << 48
"""Numbers behind a `_` are only taken for Spark's if they can be no others."""


def words_of(query: Java) -> Words:
    """A plan over no rows, with its columns numbered in the order in which they appear.

    Spark's JSON has the types and settings of expressions, its tree what JSON leaves out.
    """
    given = query.toJSON()
    text = _PROCESS.sub("", given + query.treeString(True, False, _ALL, False, False))
    numbers: dict[tuple[str, str], int] = {}

    def numbered(found: re.Match[str]) -> str:
        if found[1] == "_" and int(found[2]) < _LEAST:
            return found[0]
        counter = found[1].removesuffix("Ref ") if found[1][-1] in " _" else ""
        return f"{found[1]}{numbers.setdefault((counter.strip(), found[2]), len(numbers))}"

    return Words(_NUMBERS.sub(numbered, text), frozenset(_FUNCTION.findall(given)))
