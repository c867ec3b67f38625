"""Topics: streams of events and tables of rows, both kept as a log."""

from headwater.topics.declaration import TopicDeclaration
from headwater.topics.stream import Stream
from headwater.topics.table import Table
from headwater.topics.topic import Topic
from headwater.topics.transaction import TopicTransaction

__all__ = ["Stream", "Table", "Topic", "TopicDeclaration", "TopicTransaction"]
