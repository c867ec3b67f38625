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
from tests.inside import topic_of
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


class Slow(HandEngine):
    """Plans when it is let."""

    def __init__(self) -> None:
        super().__init__()
        self.began, self.go_on = threading.Event(), threading.Event()

    def plan(self, name: str, sql: str, relation: Any) -> tuple[Plan, Schema]:
        self.began.set()
        assert self.go_on.wait(_PATIENCE)
        return super().plan(name, sql, relation)


def test_topics_are_written_and_read_while_a_view_is_planned(tmp_path: Path) -> None:
    with shop.opened(str(tmp_path), views=False) as pipeline:
        move(pipeline, 1)
        engine = Slow()
        pipeline._parts = SparkParts(pipeline, cast("Engine", engine))
        declaring = threading.Thread(target=shop.declare_views, args=(pipeline,), daemon=True)
        declaring.start()
        assert engine.began.wait(_PATIENCE)
        found: list[int] = []

        def work() -> None:
            move(pipeline, 2)
            found.append(sum(each.num_rows for each in topic_of(pipeline, "orders").tail()))

        working = threading.Thread(target=work, daemon=True)
        working.start()
        working.join(_PATIENCE / 2)
        assert found, "it waits for whoever plans"
        engine.go_on.set()
        declaring.join(_PATIENCE)
        assert not declaring.is_alive()
