"""The log: topics of typed records in partitions; append-only, ordered, replayable."""

from headwater.log.cut import Cut
from headwater.log.embedded import EmbeddedLog
from headwater.log.entry import Records
from headwater.log.log import Log, Parts, TopicDropped, TopicLog, TopicSize, Transaction
from headwater.log.slice import LogSlice

__all__ = [
    "Cut",
    "EmbeddedLog",
    "Log",
    "LogSlice",
    "Parts",
    "Records",
    "TopicDropped",
    "TopicLog",
    "TopicSize",
    "Transaction",
]
