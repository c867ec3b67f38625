"""One thread declares while another ticks."""

from __future__ import annotations

import threading
from collections import defaultdict
from pathlib import Path
from typing import Any, cast

from headwater.pipeline.spark_parts import SparkParts
from headwater.plan.engine import Engine
from headwater.plan.operators import Plan
from headwater.schema import Schema
from tests.crash import shop
from tests.crash.hand_engine import HandEngine
from tests.tick.moving import move

_PATIENCE = 8.0


class OneAtATime(HandEngine):
    """Plans one view at a time, as Spark does, and asks meanwhile what a name stands for."""

    def __init__(self) -> None:
        super().__init__()
        self.turn = threading.Lock()
        self.came = defaultdict[str, threading.Event](threading.Event)

    def plan(self, name: str, sql: str, relation: Any) -> tuple[Plan, Schema]:
        thread = threading.current_thread().name
        self.came[thread].set()
        with self.turn:
            if thread == "ticking":  # all that the other holds while it waits for its turn, it holds now
                assert self.came["declaring"].wait(_PATIENCE)
            assert relation("orders") is not None
            return super().plan(name, sql, relation)


def test_nobody_waits_in_a_circle_when_one_declares_while_another_ticks(tmp_path: Path) -> None:
    with shop.opened(str(tmp_path), views=False) as pipeline:
        engine = OneAtATime()
        parts = pipeline._parts = SparkParts(pipeline, cast("Engine", engine))
        shop.declare_views(pipeline)
        move(pipeline, 1)
        parts.planning.forget()
        dear = f"{shop.VIEWS['dear']} AND id > 0"
        ticking = threading.Thread(target=pipeline.tick, name="ticking", daemon=True)
        declaring = threading.Thread(
            target=lambda: pipeline.view("dear", dear, key="id", replace=True), name="declaring", daemon=True
        )
        ticking.start()
        assert engine.came["ticking"].wait(_PATIENCE)
        declaring.start()
        for each in (declaring, ticking):
            each.join(_PATIENCE)
            assert not each.is_alive()
        pipeline.tick()
        assert {row["id"] for row in pipeline.read("dear").to_pylist()} == {1}
