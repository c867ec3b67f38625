"""Functions, each with a change after which it does something else; as texts, so that any process can make them."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

from headwater.plan.function import Udf


class Changed(NamedTuple):
    """A program that defines `f`, and what of its text becomes something else."""

    program: str
    old: str
    new: str


CHANGED = {
    "what is caught": Changed(
        """
def f(x):
    try:
        y = x + 1
    except ZeroDivisionError:
        return 0
    else:
        z = 10 // y
    return y + z
""",
        "    except ZeroDivisionError:\n        return 0\n    else:\n        z = 10 // y\n",
        "        z = 10 // y\n    except ZeroDivisionError:\n        return 0\n",
    ),
    "the order of a table that it goes through": Changed(
        """
RULES = {"a": 1, "ab": 2}
def f(x):
    return next(value for key, value in RULES.items() if x.startswith(key))
""",
        '"a": 1, "ab": 2',
        '"ab": 2, "a": 1',
    ),
    "what a table gives for what is not in it": Changed(
        """
from collections import defaultdict
RATES = defaultdict(lambda: 1, {"no": 2})
def f(x): return RATES[x]
""",
        "lambda: 1",
        "lambda: 3",
    ),
    "the table whose method it is": Changed('f = {"no": 1, "se": 2}.get\n', '"se": 2', '"se": 3'),
    "the pattern whose method it is": Changed("import re\nf = re.compile('a+').search\n", "a+", "b+"),
    "what decorates it, as an object": Changed(
        """
import functools
class Times:
    def __init__(self, function, by):
        functools.update_wrapper(self, function)
        self.function, self.by = function, by
    def __call__(self, x): return self.function(x) * self.by
f = Times(lambda x: x + 1, 2)
""",
        ", 2)",
        ", 3)",
    ),
    "what decorates a function of a library's": Changed(
        """
import functools, json
@functools.wraps(json.dumps)
def called(x): return json.dumps(x) + "!"
def f(x): return called(x)
""",
        '"!"',
        '"?"',
    ),
    "what a wrapper of a library's was made of": Changed(
        """
import contextlib
class Twice(contextlib.ContextDecorator):
    def __enter__(self): return self
    def __exit__(self, *_): return False
@Twice()
def more(x): return x + 1
del more.__wrapped__
def f(x): return more(x)
""",
        "x + 1",
        "x + 2",
    ),
    "what is cached": Changed(
        """
import functools
def times(by, x): return x * by
twice = functools.lru_cache(functools.partial(times, 2))
def f(x): return twice(x)
""",
        "times, 2",
        "times, 3",
    ),
    "its own attributes": Changed(
        """
def f(x): return x * f.by
f.by = 2
""",
        "f.by = 2",
        "f.by = 3",
    ),
    "names of fields": Changed(
        """
from collections import namedtuple
Point = namedtuple("Point", "x y")
HERE = Point(1, 2)
def f(x): return x + HERE.x
""",
        "x y",
        "y x",
    ),
    "fields of a class that was made by a function": Changed(
        """
from dataclasses import field, make_dataclass
Rates = make_dataclass("Rates", [("no", int, field(default=1))])
def f(x): return x * Rates().no
""",
        "default=1",
        "default=2",
    ),
    "a slot below a class with a dict": Changed(
        """
class Kept:
    __slots__ = ("rate",)
    def __init__(self): self.rate = 2
class Rated(Kept):
    def __call__(self, x): return x * self.rate
f = Rated()
""",
        "rate = 2",
        "rate = 3",
    ),
    "a method of its own kind of list": Changed(
        """
class Rates(list):
    def best(self): return max(self)
RATES = Rates([1, 2])
def f(x): return x * RATES.best()
""",
        "max(self)",
        "min(self)",
    ),
    "a method of its own kind of number": Changed(
        """
class Rate(int):
    def of(self, x): return x * self
def made(rate):
    return lambda x: rate.of(x)
f = made(Rate(2))
""",
        "x * self",
        "x + self",
    ),
    "how a property is worked out": Changed(
        """
import functools
class Rates:
    @functools.cached_property
    def best(self): return 2
RATES = Rates()
def f(x): return x * RATES.best
""",
        "return 2",
        "return 3",
    ),
    "how a class is called": Changed(
        """
class Called(type):
    def __call__(cls, x): return x + 1
class Rate(metaclass=Called): pass
def f(x): return Rate(x)
""",
        "x + 1",
        "x + 2",
    ),
    "a static method that becomes one of the class": Changed(
        """
class Rate:
    @staticmethod
    def of(*given): return len(given)
def f(x): return Rate.of(x)
""",
        "staticmethod",
        "classmethod",
    ),
    "a module within a package": Changed(
        """
import package.within
def f(x): return package.within.twice(x)
""",
        "return 2",
        "return 3",
    ),
    "a module that it has from around it": Changed(
        """
def made():
    import package.within as within
    return lambda x: within.twice(x)
f = made()
""",
        "return 2",
        "return 3",
    ),
    "a module that is an attribute": Changed(
        """
import package.within
class Rates:
    module = package.within
def f(x): return Rates.module.twice(x)
""",
        "return 2",
        "return 3",
    ),
    "a module that it imports when it runs": Changed(
        """
def f(x):
    from package.within import twice
    return twice(x)
""",
        "return 2",
        "return 3",
    ),
    "what is imported by a module that it imports when it runs": Changed(
        """
def f(x):
    import package.user
    return package.user.four(x)
""",
        "return 2",
        "return 3",
    ),
    "what it asks a module for by name": Changed(
        """
import package.within
def f(x): return getattr(package.within, "twice")(x)
""",
        "return 2",
        "return 3",
    ),
    "a value far down": Changed(
        """
CHAIN = None
for number in range(2000): CHAIN = [CHAIN, 1 if number == 0 else 0]
def f(x): return CHAIN
""",
        "1 if number == 0",
        "2 if number == 0",
    ),
    "one of many": Changed(
        """
TABLE = [{"a": number, "b": str(number)} for number in range(5000)]
def f(x): return TABLE[x]["a"]
""",
        "str(number)",
        "str(number + 1)",
    ),
}
"""By what is changed."""
STEADY = {
    "a class of which an object was copied": Changed(
        """
import copy
class Rate:
    __slots__ = ("by",)
    def of(self, x): return x
def f(x): return Rate().of(x)
def used(): copy.copy(Rate())
""",
        "",
        "",
    ),
    "one that chooses by type, and was called": Changed(
        """
import functools
@functools.singledispatch
def f(x): return 0
@f.register
def whole(x: int): return 1
def used(): f(1)
""",
        "",
        "",
    ),
    "what keeps its results, and has some": Changed(
        """
import functools
@functools.lru_cache
def rate(x): return {"a", "b", "c"}, x
def f(x): return rate(x)
def used(): rate(1)
""",
        "",
        "",
    ),
    "objects that have worked out something of themselves": Changed(
        """
import functools
class Rates:
    def __init__(self, by=()): self.__dict__.update(by)
    @functools.cached_property
    def best(self): return 2
RATES, OTHERS = Rates(), Rates({"by": 3})
def f(x): return x * RATES.best * OTHERS.best
def used(): f(1)
""",
        "",
        "",
    ),
    "objects that tell nothing of themselves": Changed(
        """
class Proxy:
    @property
    def __class__(self): raise RuntimeError("not here")
    def __getattr__(self, name): raise RuntimeError("not here")
PROXY = Proxy()
def f(x): return PROXY
""",
        "",
        "",
    ),
    "what says in which module it is": Changed(
        """
import contextlib, functools, logging
from dataclasses import dataclass, field
LOG = logging.getLogger(__name__)
@dataclass
class Rate:
    by: int = 2
    others: list = field(default_factory=list)
@functools.cache
def rate(): return Rate()
@contextlib.contextmanager
def told():
    LOG.debug("…")
    yield rate()
class Wrapped:
    def __init__(self, function): functools.update_wrapper(self, function)
WRAPPED = Wrapped(rate)
def f(x):
    with told() as found: return x * found.by, WRAPPED
""",
        "",
        "",
    ),
    "what a set holds": Changed(
        """
from fractions import Fraction
PARTS = {(Fraction(1, n), f"{n}") for n in range(1, 30)}
NAMES = {"a": {"x", "y", "z"}, "b": frozenset("xyz")}
class Names(set): pass
OWN = Names("abcdef")
def f(x): return x in PARTS or NAMES, OWN
""",
        "",
        "",
    ),
    "a function of a library's": Changed("import numpy\nf = numpy.mean\n", "", ""),
}
"""What stays the same, though a process has used them already."""
PACKAGE = {
    "__init__": "",
    "within": "def twice(x): return 2 * x\n",
    "user": "from .within import twice\ndef four(x): return twice(twice(x))\n",
}
"""The modules that some of them use."""


def main(folder: str, *, changed: bool, used: bool) -> None:
    """Print the fingerprints of all of them; before that they may be used, in a program that is imported."""
    package = Path(folder, "package")
    package.mkdir()
    for name, text in PACKAGE.items():
        package.joinpath(f"{name}.py").write_text(text.replace("return 2", "return 3") if changed else text)
    sys.path.insert(0, folder)
    sys.modules["shop"] = ModuleType("shop")
    found = {}
    for name, (program, old, new) in {**CHANGED, **STEADY}.items():
        made: dict[str, Any] = {"__name__": "shop" if used else "__main__"}
        exec(program.replace(old, new) if changed else program, made)
        if used:
            made["used"]() if "used" in made else None
        found[name] = Udf("f", made["f"], "BIGINT").fingerprint
    print(json.dumps(found))


if __name__ == "__main__":
    main(sys.argv[1], changed="changed" in sys.argv, used="used" in sys.argv)
