"""Picking rows from chunked tables, however large."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest

from headwater.change import gather as module
from headwater.change.gather import gather, rows_per_chunk


def chunked(rows: int, chunks: int, random: np.random.Generator) -> pa.Table:
    table = pa.table({"n": np.arange(rows), "text": [f"text {n}" for n in range(rows)]})
    cuts = [0, *sorted(random.integers(0, rows + 1, chunks - 1).tolist()), rows]
    return pa.concat_tables([table.slice(a, b - a) for a, b in pairwise(cuts)])


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("chunk_bytes", [1, 200, 1 << 20])
def test_rows_come_in_the_order_asked_for(seed: int, chunk_bytes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "CHUNK_BYTES", chunk_bytes)
    random = np.random.default_rng(seed)
    table = chunked(100, seed + 1, random)
    some = random.integers(0, 100, int(random.integers(0, 120)))
    for indices in (some, np.sort(some), some[:1], some[:0]):
        picked = gather(table, indices)
        assert picked.schema == table.schema
        assert picked.column("n").to_pylist() == indices.tolist()
        assert picked.column("text").to_pylist() == [f"text {n}" for n in indices]


def test_chunks_are_neither_large_nor_many() -> None:
    assert rows_per_chunk(0, 0) == 1
    assert rows_per_chunk(8_000_000, 1_000_000) == 1 << 20
    assert rows_per_chunk(1 << 30, 1 << 10) == 128
    assert rows_per_chunk(1 << 40, 2) == 1


@pytest.mark.slow
def test_more_text_than_one_chunk_can_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    chunk = pa.array(["x" * (1 << 20)] * 1100)
    table = pa.table({"text": pa.chunked_array([chunk, chunk]), "n": np.arange(2200)})
    with pytest.raises(pa.ArrowInvalid, match="overflow"):
        table.take([0, 2199])
    assert gather(table, np.array([2199, 0])).column("n").to_pylist() == [2199, 0]
    monkeypatch.setattr(module, "rows_per_chunk", lambda *_: 1 << 20)  # as if rows were of even size
    picked = gather(table, np.arange(2200)[::-1].copy())
    assert picked.column("n").to_pylist() == list(range(2199, -1, -1))
    assert [len(chunk) for chunk in picked.column("text").chunks] == [1100, 1100]
