"""Schemas: Spark's DDL and types without Spark, rows checked on the way in, and the hash of their keys."""

from headwater.schema.ddl import parse, parse_with_defaults
from headwater.schema.rows import BadRow, Checked, check, check_keys
from headwater.schema.schema import Column, Schema
from headwater.schema.topic_schema import check_topic

__all__ = [
    "BadRow",
    "Checked",
    "Column",
    "Schema",
    "check",
    "check_keys",
    "check_topic",
    "parse",
    "parse_with_defaults",
]
