"""The format of what is in a folder, said by a file in it, so that no version takes it for something else."""

from __future__ import annotations

import os
import secrets
from dataclasses import dataclass

from headwater.errors import HeadwaterError
from headwater.files import Files

_FILE = "format"


@dataclass(frozen=True, slots=True)
class Format:
    """What a folder holds, in which version, and what else helps if it is another."""

    what: str
    version: int
    otherwise: str = ""

    @property
    def _text(self) -> bytes:
        return f"headwater {self.what} {self.version}\n".encode()

    def check(self, folder: str) -> bool:
        """Whether the folder says that it is of this format, False if it says nothing; an error if of another."""
        path = os.path.join(folder, _FILE)
        try:
            with open(path, "rb") as file:
                found = file.read(100)
        except FileNotFoundError:
            return False
        if found != self._text:
            said = found.decode(errors="replace").strip()
            msg = f"this folder is {said!r}, and this version of headwater reads {self._text.decode().strip()!r}"
            hint = "use the version of headwater that wrote it" + self.otherwise
            raise HeadwaterError(msg, where=folder, hint=hint)
        return True

    def mark(self, files: Files, folder: str) -> None:
        """Say lastingly that the folder is of this format, unless it does; an error if it is of another."""
        if self.check(folder):
            return
        files.make_folder(folder)
        path = os.path.join(folder, _FILE)
        new = f"{path}.{secrets.token_hex(8)}"  # others may be at it too
        handle = files.open(new, create=True)
        try:
            files.write(handle, [self._text], 0)
            files.sync(handle)
        finally:
            files.close(handle)
        files.rename(new, path)
        files.sync_folder(folder)


LOG = Format("log", 1)
STATE = Format("state", 2, ", or delete this folder while no process has the pipeline open: it is built again")
