"""The log: topics of typed records in partitions; append-only, ordered, replayable."""

from headwater.log.cut import Cut
from headwater.log.embedded import EmbeddedLog
from headwater.log.entry import Records
from headwater.log.log import Log, Parts, TopicLog, TopicSize, Transaction

__all__ = ["Cut", "EmbeddedLog", "Log", "Parts", "Records", "TopicLog", "TopicSize", "Transaction"]
