"""Where hashes are among sorted ones, against looking at each."""

from __future__ import annotations

import numpy as np
import pytest

from headwater.state import hashes as module
from headwater.state.hashes import Hashes


@pytest.mark.parametrize("seed", range(80))
def test_all_that_are_wanted_are_found_however_many_there_are(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(seed)
    monkeypatch.setattr(module, "_MANY", int(random.choice([1, 20])))
    monkeypatch.setattr(module, "_LARGE", 1)
    monkeypatch.setattr(module, "_WORTH", 1000)
    lowest, highest = (-(1 << 63), (1 << 63) - 1) if seed % 2 else (-50, 50)
    rows = int(random.choice([1, 2, 63, 64, 65, 127, 128, 129, 1000]))
    held = random.integers(lowest, highest, rows, endpoint=True)
    held[: int(random.integers(0, 3))] = highest
    held = np.sort(held)
    others = random.integers(lowest, highest, 40, endpoint=True)
    wanted = np.unique(np.concatenate([random.choice(held, 30), others, [lowest, highest]]))
    wanted = wanted[wanted <= held[-1]]
    assert len(wanted)
    hashes = Hashes(held)
    assert len(hashes) == rows
    for _ in range(2):  # what is kept apart is there the second time
        assert hashes.below(wanted).tolist() == [int((held < each).sum()) for each in wanted]
        assert hashes.positions(wanted).tolist() == np.flatnonzero(np.isin(held, wanted)).tolist()
