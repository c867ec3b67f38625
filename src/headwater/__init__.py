"""Headwater: a database turned inside out on Spark."""

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
from headwater.pipeline.pipeline import Pipeline
from headwater.position import Position
from headwater.topics.stream import Stream
from headwater.topics.table import Table

__version__ = "0.1.0.dev0"

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
    "Stream",
    "Table",
    "Unavailable",
    "VersionExpired",
    "ViewRefused",
    "ViewSuspended",
    "__version__",
]
