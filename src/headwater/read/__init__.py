"""Reading: views, tables, streams and logs at one version, their changes, and SQL over them. No Spark."""

from headwater.read.reader import Reader

__all__ = ["Reader"]
