"""Half a second is all a command has before it feels slow."""

from __future__ import annotations

import sys


class _Without:
    """An import hook that says a module is not there."""

    def __init__(self, module: str) -> None:
        self._module = module

    def find_spec(self, name: str, path: object = None, target: object = None) -> None:
        """Nothing, for the import system to go on looking; an error for the one module."""
        if name == self._module:
            msg = f"{name} is left out of this command"
            raise ModuleNotFoundError(msg, name=name)


def leave_out_pandas() -> None:
    """Only in a process of our own: pyarrow imports pandas when it makes its first array, for a third of a second.

    It wants to know whether what it was given comes from pandas. In a command that reads JSON nothing does.
    """
    sys.meta_path.insert(0, _Without("pandas"))
