"""Where the files of the state are, and how they are written and read."""

from headwater.state.files.local import LocalStateFiles
from headwater.state.files.state_files import NewFile, OpenFile, StateFiles

__all__ = ["LocalStateFiles", "NewFile", "OpenFile", "StateFiles"]
