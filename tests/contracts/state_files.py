"""What every place for the files of the state must do. A test module subclasses this and says where it is."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from headwater.change import HASH, WEIGHT
from headwater.errors import Unavailable
from headwater.state import Arrangement, Run, RunFile
from headwater.state.files import StateFiles
from headwater.state.verify import check_all, check_directory, faults

ROOT = Path(__file__).parents[2]
_OPENED = """
import json, pickle, sys
files = pickle.loads(bytes.fromhex(sys.argv[1]))
print(json.dumps([sorted(files.list()), files.open("a").read(1, 3).to_pybytes().decode()]))
"""


def made(files: StateFiles, name: str, *parts: bytes, steadily: bool = False) -> None:
    file = files.create(name, steadily=steadily)
    for part in parts:
        file.write([part])
    file.finish()


def content(files: StateFiles, name: str) -> bytes:
    opened = files.open(name)
    return bytes(opened.read(0, opened.size))


def run_of(files: StateFiles, name: str, rows: int, *, packs: bool = True) -> tuple[Run, pa.Schema]:
    """A file of one run, with a column `n` that counts."""
    numbers = np.arange(rows)
    table = pa.table({"n": numbers, HASH: numbers, WEIGHT: np.ones(rows, np.int64)})
    writer = RunFile(files, name, packs=packs)
    run = writer.add(table)
    writer.finish()
    return run, table.schema


class StateFilesContract:
    @pytest.fixture
    def files(self) -> StateFiles:
        raise NotImplementedError

    def test_what_was_written_is_read_at_any_place(self, files: StateFiles) -> None:
        made(files, "a", b"hello", b"", b" world")
        opened = files.open("a")
        assert opened.size == files.size("a") == 11
        for start in range(12):
            for length in range(12):
                assert bytes(opened.read(start, length)) == b"hello world"[start : start + length]

    def test_buffers_are_written_one_behind_the_other(self, files: StateFiles) -> None:
        file = files.create("a")
        file.write([b"ab", memoryview(b"cd"), memoryview(pa.py_buffer(b"ef"))])
        file.write([b"gh"])
        file.finish()
        assert content(files, "a") == b"abcdefgh"

    def test_a_file_is_read_before_it_is_finished(self, files: StateFiles) -> None:
        file = files.create("a")
        file.write([b"one"])
        first, identity = files.open("a"), files.identity("a")
        assert bytes(first.read(0, 10)) == b"one"
        file.write([b"two"])
        assert content(files, "a") == b"onetwo"
        assert files.identity("a") != identity
        file.finish()
        assert content(files, "a") == b"onetwo"
        assert bytes(first.read(0, 3)) == b"one"

    def test_what_was_written_is_taken_back(self, files: StateFiles) -> None:
        file = files.create("a")
        file.write([b"onetwo"])
        file.truncate(3)
        file.write([b"three"])
        file.finish()
        assert content(files, "a") == b"onethree"

    def test_a_file_that_is_closed_is_there_and_may_be_closed_again(self, files: StateFiles) -> None:
        file = files.create("a")
        file.write([b"x"])
        file.close()
        file.close()
        assert content(files, "a") == b"x"
        made(files, "b", b"y")
        empty = files.create("c")
        empty.finish()
        empty.close()
        assert content(files, "c") == b""

    def test_what_is_open_stays_as_it_is_when_it_is_removed_or_replaced(self, files: StateFiles) -> None:
        made(files, "a", b"old")
        opened, identity = files.open("a"), files.identity("a")
        part = opened.read(1, 2)
        made(files, "a", b"new!")
        assert files.identity("a") != identity
        assert (bytes(part), bytes(opened.read(0, 3))) == (b"ld", b"old")
        assert content(files, "a") == b"new!"
        last = files.open("a")
        files.remove("a")
        assert bytes(last.read(0, 4)) == b"new!"

    def test_what_is_not_there_is_a_file_not_found(self, files: StateFiles) -> None:
        made(files, "a", b"x")
        for name in ("a", "b"):
            files.remove(name)
            files.remove(name)
            assert not files.exists(name)
            for ask in (files.open, files.size, files.identity):
                with pytest.raises(FileNotFoundError):
                    ask(name)

    def test_they_are_listed_without_those_that_lie_apart(self, files: StateFiles) -> None:
        assert files.list() == []
        made(files, "a", b"x")
        made(files, "b", b"y")
        other = files.apart("others")
        assert other.list() == []
        made(other, "a", b"z")
        files.sync()
        other.sync()
        assert [name for name in sorted(files.list()) if files.exists(name) and name != "others"] == ["a", "b"]
        assert other.list() == ["a"]
        assert (content(files, "a"), content(other, "a")) == (b"x", b"z")
        other.remove("a")
        assert files.exists("a")

    def test_a_file_says_where_it_is(self, files: StateFiles) -> None:
        assert files.place("a").endswith("a")
        assert files.place("a") != files.place("b")

    def test_any_process_that_they_are_sent_to_can_open_them(self, files: StateFiles) -> None:
        made(files, "a", b"hello")
        sent = pickle.dumps(files)
        assert pickle.loads(sent) == files
        assert hash(pickle.loads(sent)) == hash(files)
        assert files.apart("others") != files
        command = [sys.executable, "-c", _OPENED, sent.hex()]
        done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT)
        assert json.loads(done.stdout) == [["a"], "ell"]

    def test_a_large_file_is_written_steadily(self, files: StateFiles) -> None:
        parts = [bytes([number]) * (3 << 20) for number in range(9)]
        made(files, "a", *parts, steadily=True)
        assert content(files, "a") == b"".join(parts)

    def test_many_threads_write_and_read(self, files: StateFiles) -> None:
        wrong: list[str] = []

        def work(number: int) -> None:
            for turn in range(4):
                name = f"{number}-{turn}"
                made(files, name, name.encode() * 100)
                if content(files, name) != name.encode() * 100:
                    wrong.append(name)
                if turn % 2:
                    files.remove(name)

        threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not wrong
        assert len(files.list()) == 8

    # -- what is built on them

    def test_runs_are_probed_and_scanned(self, files: StateFiles) -> None:
        runs, schema = zip(*(run_of(files, f"{number}.runs", 1000) for number in range(3)), strict=True)
        arrangement = Arrangement(files, schema[0], runs)
        found = arrangement.probe(np.array([5, 900]))
        assert sorted(zip(found["n"].to_pylist(), found[WEIGHT].to_pylist(), strict=True)) == [(5, 3), (900, 3)]
        assert sum(table.num_rows for table in arrangement.scan(rows=100)) == 1000

    def test_a_run_of_a_file_that_is_gone_is_told_with_where_it_was(self, files: StateFiles) -> None:
        run, schema = run_of(files, "1.runs", 10)
        files.remove("1.runs")
        with pytest.raises(Unavailable, match="missing") as caught:
            Arrangement(files, schema, [run]).probe(np.array([5]))
        assert caught.value.where == files.place("1.runs")
        assert [fault.what for fault in faults(files, {"v1": [run]}, check_all)] == ["the file is missing"]

    def test_a_changed_byte_is_found(self, files: StateFiles) -> None:
        run, schema = run_of(files, "1.runs", 1000, packs=False)
        assert list(faults(files, {"v1": [run]}, check_all)) == []
        data = bytearray(content(files, "1.runs"))
        data[run.offset + run.length // 2] ^= 1
        made(files, "1.runs", bytes(data))
        assert list(faults(files, {"v1": [run]}, check_directory)) == []
        assert len(list(faults(files, {"v1": [run]}, check_all))) == 1
        with pytest.raises(Unavailable, match="not what was written"):
            Arrangement(files, schema, [run]).probe(np.array([5]))
