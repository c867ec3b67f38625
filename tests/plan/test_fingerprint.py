"""What is kept under a fingerprint stays: another word in the code does not make state anew."""

from __future__ import annotations

import pyarrow as pa

from headwater.operators import Aggregate, AggregateCall, Order, Ranking, TopK
from headwater.plan.fingerprint import Words, fingerprints
from headwater.plan.operators import Field, Source
from headwater.plan.sharing import Split

KEY, COUNT, PLACE = (Field(name, pa.int64()) for name in ("c0", "c1", "c2"))


def test_a_fingerprint_is_what_it_was_when_state_was_kept_under_it() -> None:
    source = Source((KEY,), relation="orders", columns=("id",))
    calls = (AggregateCall("Count", (), COUNT),)
    counted = Aggregate((KEY, COUNT), child=source, keys=("c0",), calls=calls, name="a0")
    first = Ranking(3, (Order("c1", ascending=False, nulls_first=False),), "c2")
    root = TopK((KEY, COUNT, PLACE), inputs=(counted,), keys=(("c0",),), selects=True, first=first, name="r1")
    own, shared = fingerprints(Split(root), lambda computing: Words(""), str)
    assert str(own) == "efbcfcdf2498d0f3"
    assert not shared
