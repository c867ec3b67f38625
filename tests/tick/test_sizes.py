"""What goes together is limited in bytes as well as in rows."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import headwater as hw
from headwater.change import HASH, WEIGHT
from headwater.change.gather import CHUNK_BYTES, batches_of
from headwater.log.extent import Extent
from headwater.state.arrangement import Arrangement
from headwater.state.files import LocalStateFiles
from headwater.state.run_file import RunFile
from headwater.tick import computation
from headwater.tick.driver import Driver
from headwater.tick.slices import ROW_BYTES, SLICE_ROWS, arranged_slices, recorded_slices
from tests.crash import expected, shop
from tests.tick.moving import move

SCHEMA = pa.schema([("text", pa.string()), (HASH, pa.int64()), (WEIGHT, pa.int64())])


def arrangement(folder: Path, rows: int, size: int) -> Arrangement:
    hashes = np.sort(np.random.default_rng(7).integers(-(1 << 62), 1 << 62, rows))
    columns = [pa.array(["x" * size] * rows), pa.array(hashes), pa.array(np.ones(rows, np.int64))]
    file = RunFile(LocalStateFiles(str(folder)), "a.runs", packs=False)
    run = file.add(pa.Table.from_arrays(columns, schema=SCHEMA))
    file.finish()
    return Arrangement(LocalStateFiles(str(folder)), SCHEMA, [run])


@pytest.mark.parametrize(("rows", "size", "slices"), [(600, 1_000_000, 3), (5000, 10, 1)])
def test_slices_of_state_are_limited_in_bytes(tmp_path: Path, rows: int, size: int, slices: int) -> None:
    given = arrangement(tmp_path, rows, size)
    found = list(arranged_slices(given, LocalStateFiles(str(tmp_path))))
    assert len(found) == slices
    tables = [each.load() for each in found]
    assert sum(table.num_rows for table in tables) == rows
    assert max(table.nbytes for table in tables) <= 1.1 * SLICE_ROWS * ROW_BYTES


def test_slices_of_the_log_are_limited_in_bytes() -> None:
    extent = Extent("", 0, 0, 0, 100 << 20, "")
    found = list(recorded_slices("stream", pa.schema([]), [extent] * 9, rows=90))
    assert [len(each.of) for each in found] == [3, 3, 3]


def test_batches_are_limited_in_bytes() -> None:
    table = pa.table({"text": ["x" * 1_000_000] * 300, "n": range(300)})
    found = batches_of(table, 65_536)
    assert max(batch.nbytes for batch in found) <= CHUNK_BYTES
    assert pa.Table.from_batches(found).equals(table)
    assert [batch.num_rows for batch in batches_of(pa.table({"n": range(10)}), 4)] == [4, 4, 2]
    assert batches_of(table.slice(0, 0), 4) == []


def test_a_view_that_is_filled_from_few_large_rows_is_not_computed_in_this_process(
    driven: tuple[hw.Pipeline, Driver], monkeypatch: pytest.MonkeyPatch
) -> None:
    pipeline, driver = driven
    driver.small_rows = 20_000
    pipeline.drop("dear")
    pipeline.drop("clicked")
    monkeypatch.setattr(computation, "SMALL_BYTES", 1)
    for name in ("dear", "clicked"):
        pipeline.view(name, shop.VIEWS[name], key=shop.KEYS[name])
    tick = pipeline.tick()
    assert tick is not None
    assert tick.paths == {"dear": "large", "clicked": "large"}
    move(pipeline, 2)
    tick = pipeline.tick()
    assert tick is not None
    assert set(tick.paths.values()) == {"small"}
    assert expected.check(pipeline) == 3
