"""A user's program as a file: loading it, and finding the pipeline that it makes."""

from __future__ import annotations

import importlib.util
import os
import sys
import traceback
from types import ModuleType
from typing import TYPE_CHECKING

from headwater.cli.where import WrongUsage
from headwater.errors import HeadwaterError

if TYPE_CHECKING:
    from headwater import Pipeline

_HINT = 'the file must make one when it is loaded: shop = headwater.Pipeline("shop")'


class Program:
    """`shop.py`, or `shop.py:name` where it makes several pipelines."""

    def __init__(self, given: str) -> None:
        path, _, name = given.rpartition(":")
        if not path or os.path.exists(given) or not name.isidentifier():
            path, name = given, ""
        self.path = path
        self.name = name
        if not os.path.isfile(path):
            raise WrongUsage("there is no such file", where=path, hint="`headwater init` writes one to begin with")

    def pipeline(self) -> Pipeline:
        """Run the file as Python would import it, and take its only pipeline, or the one that was named."""
        module = self._load()
        public = importlib.import_module("headwater").Pipeline
        found: dict[str, Pipeline] = {
            name: value for name, value in vars(module).items() if isinstance(value, public)
        }
        if self.name:
            if self.name not in found:
                names = ", ".join(found) or "none"
                raise WrongUsage(f"{self.name} is not a pipeline", where=self.path, hint=f"there are: {names}")
            return found[self.name]
        if not found:
            raise WrongUsage("it makes no pipeline", where=self.path, hint=_HINT)
        if len({id(pipeline) for pipeline in found.values()}) > 1:
            msg = f"it makes several pipelines: {', '.join(found)}"
            raise WrongUsage(
                msg, where=self.path, hint=f"choose one: headwater run {self.path}:{next(iter(found))}"
            )
        return next(iter(found.values()))

    def _load(self) -> ModuleType:
        folder, file = os.path.split(os.path.abspath(self.path))
        sys.path.insert(0, folder)
        name = file.partition(".")[0]
        spec = importlib.util.spec_from_file_location(name, self.path)
        if spec is None or spec.loader is None:
            raise WrongUsage("this is not a Python file", where=self.path, hint="its name must end in .py")
        module = importlib.util.module_from_spec(spec)
        sys.modules.setdefault(name, module)
        try:
            spec.loader.exec_module(module)
        except SyntaxError as error:
            other = error.filename is not None and not os.path.samefile(error.filename, self.path)
            place = f"{error.filename if other else self.path}, line {error.lineno}"
            raise HeadwaterError(f"{error.msg}: {(error.text or '').strip()}", where=place) from None
        except HeadwaterError as error:
            error.where = ", ".join(part for part in (self._place(error), error.where) if part)
            raise
        except Exception as error:
            what = traceback.format_exception_only(error)[-1].strip()
            raise HeadwaterError(what, where=self._place(error)) from None
        return module

    def _place(self, error: BaseException) -> str:
        """The line of the user's file that was being run; of another file if it never came to that."""
        frames = traceback.extract_tb(error.__traceback__)
        own = [frame for frame in frames if os.path.abspath(frame.filename) == os.path.abspath(self.path)]
        return f"{self.path}, line {own[-1].lineno}" if own else self.path
