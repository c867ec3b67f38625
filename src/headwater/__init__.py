"""Headwater: a database turned inside out on Spark."""

from importlib import import_module
from typing import TYPE_CHECKING

from headwater.errors import (
    DeclarationChanged,
    Fenced,
    HeadwaterError,
    LeaseHeld,
    LogDamaged,
    NotReached,
    SchemaError,
    SequenceGap,
    Unavailable,
    VersionExpired,
    ViewRefused,
    ViewSuspended,
)
from headwater.position import Position
from headwater.version import __version__

if TYPE_CHECKING:
    from headwater.catalog.status import Status
    from headwater.pipeline.pipeline import Pipeline
    from headwater.pipeline.views import View
    from headwater.tick.report import Tick
    from headwater.topics.stream import Stream
    from headwater.topics.table import Table

_LATER = {
    "Pipeline": "headwater.pipeline.pipeline",
    "Status": "headwater.catalog.status",
    "Stream": "headwater.topics.stream",
    "Table": "headwater.topics.table",
    "Tick": "headwater.tick.report",
    "View": "headwater.pipeline.views",
}
"""Names that bring pyarrow with them, imported when they are first used: the command line starts faster."""


def __getattr__(name: str) -> object:
    if name not in _LATER:
        msg = f"module 'headwater' has no attribute {name!r}"
        raise AttributeError(msg)
    return getattr(import_module(_LATER[name]), name)


__all__ = [
    "DeclarationChanged",
    "Fenced",
    "HeadwaterError",
    "LeaseHeld",
    "LogDamaged",
    "NotReached",
    "Pipeline",
    "Position",
    "SchemaError",
    "SequenceGap",
    "Status",
    "Stream",
    "Table",
    "Tick",
    "Unavailable",
    "VersionExpired",
    "View",
    "ViewRefused",
    "ViewSuspended",
    "__version__",
]
