from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import pytest

from headwater.files import Files
from headwater.state.files import LocalStateFiles, StateFiles
from tests.contracts.state_files import StateFilesContract, made
from tests.one_file_state import OneFileState


class TestLocalStateFiles(StateFilesContract):
    @pytest.fixture
    def files(self, tmp_path: Path) -> StateFiles:
        return LocalStateFiles(str(tmp_path / "new" / "state"))

    def test_what_is_finished_was_synced_and_then_its_name(self, tmp_path: Path) -> None:
        noting = Noting()
        files = LocalStateFiles(str(tmp_path), noting)
        made(files, "a", b"x")
        files.sync()
        assert noting.calls == ["open a", "write 1", "sync", "close", f"sync_folder {tmp_path.name}"]

    def test_a_file_that_is_written_steadily_is_put_on_disk_piece_by_piece(self, tmp_path: Path) -> None:
        noting = Noting()
        made(LocalStateFiles(str(tmp_path), noting), "a", *[bytes(3 << 20)] * 7, steadily=True)
        size = 3 << 20
        pieces = [call for call in noting.calls if not call.startswith("write 3")]
        assert pieces == ["open a", f"write_out 0 {3 * size}", f"write_out {3 * size} {3 * size}", "sync", "close"]


class TestOneFileState(StateFilesContract):
    """The contract asks for nothing that only files of a file system could do."""

    @pytest.fixture
    def files(self, tmp_path: Path) -> StateFiles:
        return OneFileState(str(tmp_path / "state.db"))


class Noting(Files):
    """The real file system, noting what is done to files."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[str] = []

    def open(self, path: str, *, create: bool = False) -> int:
        self.calls.append(f"open {os.path.basename(path)}")
        return super().open(path, create=create)

    def write(self, handle: int, buffers: Sequence[bytes | memoryview], position: int) -> None:
        self.calls.append(f"write {sum(map(len, buffers))}")
        super().write(handle, buffers, position)

    def write_out(self, handle: int, start: int, length: int) -> None:
        self.calls.append(f"write_out {start} {length}")
        super().write_out(handle, start, length)

    def sync(self, handle: int) -> None:
        self.calls.append("sync")
        super().sync(handle)

    def close(self, handle: int) -> None:
        self.calls.append("close")
        super().close(handle)

    def sync_folder(self, path: str) -> None:
        self.calls.append(f"sync_folder {os.path.basename(path)}")
        super().sync_folder(path)
