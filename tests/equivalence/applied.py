"""A case's topics and steps, done to a pipeline."""

from __future__ import annotations

from headwater import Pipeline
from tests.equivalence.traffic import Operation, Step, Topic, Transaction
from tests.inside import topic_of


def declare(pipeline: Pipeline, topic: Topic) -> None:
    """Declare a topic. Nothing here is about power cuts, so nothing waits for the disk."""
    if topic.kind == "stream":
        pipeline.stream(topic.name, topic.schema, partitions=topic.partitions, durability="none")
    else:
        key = list(topic.key) or None
        pipeline.table(topic.name, topic.schema, key=key, partitions=topic.partitions, durability="none")


def apply(pipeline: Pipeline, step: Step) -> None:
    """Do one step."""
    if isinstance(step, Transaction):
        with pipeline.transaction() as transaction:
            for part in step.operations:
                getattr(transaction, part.verb)(part.topic, list(part.rows))
    else:
        _operate(pipeline, step)


def _operate(pipeline: Pipeline, operation: Operation) -> None:
    getattr(topic_of(pipeline, operation.topic), operation.verb)(list(operation.rows))
