"""A driver process: gets ready, waits for its turn, takes the lease once it is free, and ticks until killed."""

from __future__ import annotations

import os
import random
import tempfile
import time
import traceback
from dataclasses import dataclass
from multiprocessing.connection import Connection

import headwater as hw
from headwater import crashpoint
from headwater.tick.report import Tick
from tests.crash import shop
from tests.crash.hand_engine import drive
from tests.crash.shared_java import SharedJava
from tests.inside import driver_of, lease_of, planning_of

OWN, SHARED, HAND = "own", "shared", "hand"
"""Whose Java it uses: its own, which dies with it; that of the parent; or none, its views being planned by hand."""


@dataclass(frozen=True)
class Seat:
    """Where a driver sits."""

    path: str
    engine: str
    java: SharedJava | None = None


@dataclass(frozen=True)
class Turn:
    """What a driver does once it may: where it dies, if it does so by itself, and when it takes the large path.

    That is at its first tick and then at every `large`-th; 0 is never.
    """

    seed: str
    point: str | None = None
    nth: int = 1
    large: int = 0


def run(pipe: Connection, seat: Seat) -> None:
    """Say `ready`, wait for a turn, say `drives` and then the number of each tick, all with the time."""
    try:
        os.environ["HEADWATER_SEGMENT_BYTES"] = str(shop.SEGMENT_BYTES)
        tempfile.tempdir = os.path.dirname(seat.path)
        if seat.java is not None and seat.engine == SHARED:
            seat.java.attach()
        with shop.opened(seat.path, views=False) as pipeline:
            prepare(pipeline, seat.engine)
            pipe.send("ready")
            turn = pipe.recv()
            wait_for_the_lease(pipeline)
            pipe.send(("drives", 0, time.monotonic()))
            go(pipe, pipeline, turn)
    except EOFError:
        return  # nobody needs it
    except BaseException:
        pipe.send(("failed", traceback.format_exc(), time.monotonic()))
        raise


def prepare(pipeline: hw.Pipeline, engine: str) -> None:
    """Everything that needs no lease: the engine, and the plans of the views."""
    if engine == HAND:
        drive(pipeline)
    shop.declare_views(pipeline)
    parts = planning_of(pipeline)
    catalog = parts.catalog()
    for view in catalog.views.values():
        parts.planning.planned(view, catalog)


def wait_for_the_lease(pipeline: hw.Pipeline) -> None:
    while True:
        try:
            lease_of(pipeline).acquire()
        except (hw.LeaseHeld, hw.Fenced):
            time.sleep(0.01)
        else:
            return


def go(pipe: Connection, pipeline: hw.Pipeline, turn: Turn) -> None:
    """Tick for ever."""
    crashpoint.arm(turn.point, nth=turn.nth)
    dice = random.Random(turn.seed)
    driver = driver_of(pipeline)
    small = driver.small_rows
    driver.small_rows = 0 if turn.large else small
    ticks = 0

    def after(tick: Tick) -> bool:
        nonlocal ticks
        ticks += 1
        driver.small_rows = 0 if turn.large and ticks % turn.large == 0 else small
        pipe.send(("tick", tick.number, time.monotonic()))
        time.sleep(dice.choice([0.0, 0.0, 0.05]))
        return False

    pipeline.run(until=after)
