"""What a Python function does, as far as that can be told: the same in every process that has the same function.

It is told by its code, its constants, defaults, closure and attributes, and by the global names that it uses:
functions, classes and modules of the user's by what they do, those of installed libraries by the library's version,
values by themselves. Where it is written, and on which lines, does not count; nor do comments, nor the order of
sets; that of other collections does. A module that it imports when it runs counts by its whole text. What cannot be
looked into, as an open file, counts by its type.
"""

from __future__ import annotations

import copyreg
import dis
import enum
import functools
import hashlib
import json
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from logging import Logger
from types import BuiltinFunctionType, CodeType, FunctionType, MappingProxyType, MethodType, ModuleType
from typing import Any
from weakref import WeakKeyDictionary, WeakSet, WeakValueDictionary

from headwater.plan.installed import PYTHON, absolute, library, source, with_packages

Plain = Any
"""Lists, texts, numbers and so on, which JSON can write."""

_GLOBAL = {"LOAD_GLOBAL", "LOAD_NAME", "LOAD_FROM_DICT_OR_GLOBALS"}
_LENGTH = 16
_LONG = 1000
_PROTOCOL = 4
_MADE_IN_PYTHON = 1 << 9  # Py_TPFLAGS_HEAPTYPE
_SIMPLE = {type(None), type(...), type(NotImplemented), bool, int, float, complex, str, bytes}
_PLACES = ("__module__", "__doc__")
"""What wrappers copy of what they wrap: where it is written, and what about it."""
_OF_CLASSES = {
    *("__dict__", "__weakref__", "__doc__", "__module__", "__firstlineno__", "__static_attributes__"),
    *("__slotnames__", "__annotations_cache__"),  # come with the first use
}


def code_fingerprint(function: Any) -> Plain:
    """What a function does, as plain data."""
    return _Looking(_tops(function)).all_of(function)


def digest(plain: Plain) -> str:
    """A short text for plain data."""
    return hashlib.sha256(json.dumps(plain, sort_keys=True).encode()).hexdigest()[:_LENGTH]


class _Looking:
    """Looks at a value and at all that it uses.

    What can hold itself is told by a number, and is looked at once, after what holds it: so nothing is too deep.
    What is in the packages `own` is the user's, also if it is installed.
    """

    def __init__(self, own: frozenset[str], seen: Mapping[int, tuple[int, Any]] | None = None) -> None:
        self._own = own
        self._seen = dict(seen or {})
        self._waiting: deque[Any] = deque()
        self._texts: dict[str, tuple[str, list[str]]] = {}

    def all_of(self, value: Any) -> Plain:
        """A value, and then all that has a number."""
        made = [self._at(value)]
        while self._waiting:
            made.append(self._described(self._waiting.popleft()))
        return made

    def _at(self, value: Any) -> Plain:
        kind = type(value)
        if kind in _SIMPLE:
            text = repr(value)
            return [kind.__name__, text if len(text) < _LONG else hashlib.sha256(text.encode()).hexdigest()]
        if kind is tuple:
            return ["tuple", *map(self._at, value)]
        if kind is frozenset:
            return ["set", *self._in_any_order(value)]
        if kind is CodeType:
            return self._code(value)
        if id(value) not in self._seen:
            self._seen[id(value)] = len(self._seen), value  # held, so that no other gets its place in memory
            self._waiting.append(value)
        return ["at", self._seen[id(value)][0]]

    def _in_any_order(self, values: Iterable[Any]) -> list[Plain]:
        """Values that have no order of their own: each looked at as if it were the only one."""
        return sorted(
            digest(self._at(each) if type(each) in _SIMPLE else _Looking(self._own, self._seen).all_of(each))
            for each in values
        )

    def _described(self, value: Any) -> Plain:
        kind = type(value)
        for kinds, described in _KINDS:
            if issubclass(kind, kinds):
                return described(self, value)
        if kind is list or kind in _VIEWS:
            return ["list", *map(self._at, value)]
        if kind is dict or kind is MappingProxyType:
            items = [(key, each) for key, each in value.items() if type(key) is not str or key not in _PLACES]
            return ["dict", *([self._at(key), self._at(each)] for key, each in items)]
        if kind is set:
            return ["set", *self._in_any_order(value)]
        return self._object(value)

    def _code(self, code: CodeType) -> Plain:
        names = [code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars]
        counts = [code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags]
        does = [code.co_code.hex(), code.co_exceptiontable.hex()]
        return ["code", PYTHON, *does, *map(list, names), counts, *map(self._at, code.co_consts)]

    def _function(self, function: FunctionType) -> Plain:
        home = str(function.__globals__.get("__name__"))
        is_librarys = self._version(home) is not None
        if is_librarys and self._is_the_librarys(function):
            return self._named(function)
        names = _names(function.__code__)
        cells = []
        for cell in function.__closure__ or ():
            try:
                cells.append(self._value(cell.cell_contents, names))
            except ValueError:  # it is not filled yet
                cells.append("empty")
        defaults = [self._value(each, names) for each in function.__defaults__ or ()]
        given = [defaults, self._at(function.__kwdefaults__), self._at(function.__dict__), cells]
        if is_librarys:  # made by the library of what it was given
            return ["function", function.__code__.co_qualname, self._module(home), *given]
        return ["function", self._at(function.__code__), *given, self._globals(function, names)]

    def _globals(self, function: FunctionType, names: frozenset[str]) -> Plain:
        """What the global names stand for that a function uses, and the modules that it imports when it runs."""
        known, imported = function.__globals__, set[str]()
        used: set[str] = set()
        for code in _codes(function.__code__):
            used |= {each.argval for each in dis.get_instructions(code) if each.opname in _GLOBAL}
            imported.update(_imports(code, known.get("__package__") or ""))
        found = {name: self._value(known[name], names) for name in sorted(used & known.keys())}
        return [found, [self._module(name) for name in sorted(imported)]]

    def _value(self, value: Any, names: frozenset[str], within: tuple[ModuleType, ...] = ()) -> Plain:
        """A value that code with these names uses: of a module of the user's, what it takes of it."""
        if type(value) is not ModuleType:
            return self._at(value)
        if value in within or self._version(value.__name__):
            return ["module", value.__name__, self._version(value.__name__)]
        has, inner = vars(value), (*within, value)
        return ["module", {each: self._value(has[each], names, inner) for each in sorted(names & has.keys())}]

    def _module(self, name: str) -> Plain:
        """A module as a whole, which need not be imported."""
        version = self._version(name)
        return ["module", name, source(name, self._texts) if version is None else version]

    def _class(self, kind: type) -> Plain:
        if not kind.__flags__ & _MADE_IN_PYTHON or self._is_the_librarys(kind):
            return self._named(kind)
        parts = {name: self._at(each) for name, each in sorted(vars(kind).items()) if name not in _OF_CLASSES}
        return [
            "class",
            kind.__qualname__,
            self._at(type(kind)),
            [self._at(base) for base in kind.__bases__],
            parts,
        ]

    def _builtin(self, function: BuiltinFunctionType) -> Plain:
        owner = function.__self__
        return [*self._named(function), None if isinstance(owner, ModuleType) else self._at(owner)]

    def _object(self, value: Any) -> Plain:
        kind = type(value)
        if issubclass(kind, set | frozenset):
            return ["object", self._at(kind), self._at(_state(value)), *self._in_any_order(value)]
        made = _made_of(value)
        if len(made) < 2 or not self._is_the_librarys(kind):
            made.append(_state(value))
        made = [_declared(each, kind) for each in made]
        return ["object", self._at(kind), *map(self._at, made)]

    def _is_the_librarys(self, value: FunctionType | type) -> bool:
        """Whether a library has it under its name; else it was made by the library, of what is the user's."""
        found: Any = sys.modules.get(value.__module__) if self._version(value.__module__) else None
        for name in value.__qualname__.split("."):
            found = getattr(found, name, None)
        return found is value

    def _named(self, value: Any) -> list[Plain]:
        name = getattr(value, "__module__", None) or "builtins"
        return ["named", getattr(value, "__qualname__", ""), self._module(name)]

    def _version(self, module: object) -> str | None:
        """The version of the library that a module belongs to; None of the user's own modules."""
        if not isinstance(module, str) or module.partition(".")[0] in self._own:
            return None
        return library(module)


_VIEWS = {type(dict[str, str]().keys()), type(dict[str, str]().values()), type(dict[str, str]().items())}
_KINDS: tuple[tuple[Any, Callable[[_Looking, Any], Plain]], ...] = (
    (FunctionType, _Looking._function),
    (ModuleType, lambda looking, value: looking._module(value.__name__)),
    (type, _Looking._class),
    (BuiltinFunctionType, _Looking._builtin),
    (MethodType, lambda looking, value: ["method", looking._at(value.__func__), looking._at(value.__self__)]),
    (staticmethod, lambda looking, value: ["static", looking._at(value.__func__)]),
    (classmethod, lambda looking, value: ["of class", looking._at(value.__func__)]),
    (Logger, lambda looking, value: ["logger"]),
    ((WeakKeyDictionary, WeakValueDictionary, WeakSet), lambda looking, value: ["weak", type(value).__name__]),
    (property, lambda looking, value: ["property", *map(looking._at, (value.fget, value.fset, value.fdel))]),
    (enum.Enum, lambda looking, value: ["enum", looking._at(type(value)), looking._at(value._value_)]),
)


def _made_of(value: Any) -> list[Any]:
    """What a value would be made again from; its name alone if it is known by that, or nothing."""
    try:
        reduce = copyreg.dispatch_table.get(type(value))
        made = value.__reduce_ex__(_PROTOCOL) if reduce is None else reduce(value)
    except Exception:  # whatever a type says whose values cannot be made again
        return []
    if isinstance(made, str):
        return [made]
    return [list(each) if isinstance(each, Iterator) else each for each in made]


def _state(value: Any) -> Any:
    """The attributes of a value, whatever its own way of being copied leaves out."""
    try:
        return object.__getstate__(value)
    except Exception:  # as above
        return None


def _declared(state: Any, kind: type) -> Any:
    """The attributes of a value without those that it has worked out of the others, and keeps."""
    if type(state) is not dict:
        return state
    cached = {
        name
        for base in kind.__mro__
        for name, each in vars(base).items()
        if type(each) is functools.cached_property
    }
    return {name: each for name, each in state.items() if name not in cached} or None if cached else state


def _tops(function: Any) -> frozenset[str]:
    """The packages that a function, and all that it wraps, is from."""
    found: set[str] = set()
    for _ in range(_LONG):
        if isinstance(function, functools.partial):
            function = function.func
            continue
        function = getattr(function, "__func__", function)
        if isinstance(function, FunctionType):
            found.add(function.__globals__.get("__name__") or "")
        elif type(function).__flags__ & _MADE_IN_PYTHON:
            found.add(type(function).__module__)
        function = getattr(function, "__wrapped__", None)
        if function is None:
            break
    return frozenset(name.partition(".")[0] for name in found) - sys.stdlib_module_names


def _codes(code: CodeType) -> Iterable[CodeType]:
    yield code
    for each in code.co_consts:
        if isinstance(each, CodeType):
            yield from _codes(each)


def _names(code: CodeType) -> frozenset[str]:
    """The names of attributes that code may ask for, also those that it has as texts."""
    texts = {text for each in _codes(code) for text in each.co_consts if isinstance(text, str)}
    return frozenset(texts.union(*(each.co_names for each in _codes(code))))


def _imports(code: CodeType, package: str) -> Iterator[str]:
    """The modules that code imports when it runs; what it takes of them may be modules, too."""
    before: deque[Any] = deque(maxlen=2)  # how many dots, and what is taken
    for each in dis.get_instructions(code):
        if each.opname == "IMPORT_NAME":
            level, taken = before
            name = absolute(each.argval, level, package)
            yield from {*with_packages(name), *(f"{name}.{one}" for one in taken or ())}
        if each.opname != "EXTENDED_ARG":
            before.append(each.argval)
