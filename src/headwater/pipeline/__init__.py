"""The public face: a pipeline and what is declared in it."""

from headwater.pipeline.opened import topic, topic_kinds
from headwater.pipeline.pipeline import Pipeline
from headwater.pipeline.reopen import declared, reopen

__all__ = ["Pipeline", "declared", "reopen", "topic", "topic_kinds"]
