"""The kept patches stay patches: each changes a place that is there, exactly once."""

from __future__ import annotations

import pytest

from tests.mutants.join_patches import JOIN_PATCHES
from tests.mutants.patches import PATCHES, Patch
from tests.mutants.run import ROOT
from tests.mutants.sql_patches import SQL_PATCHES
from tests.mutants.tick_patches import TICK_PATCHES
from tests.mutants.tree_patches import TREE_PATCHES

EVERY = (*PATCHES, *TICK_PATCHES, *JOIN_PATCHES, *SQL_PATCHES, *TREE_PATCHES)


@pytest.mark.parametrize("patch", EVERY, ids=lambda patch: patch.promise)
def test_a_patch_applies(patch: Patch) -> None:
    text = (ROOT / "src" / "headwater" / patch.file).read_text()
    for old, new in patch.edits:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    compile(text, patch.file, "exec")
