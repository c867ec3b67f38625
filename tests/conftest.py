from __future__ import annotations

import os

import pytest
from pyspark import SparkContext
from pyspark.sql import SparkSession

from headwater.spark.session.start import start
from tests.suite import (  # noqa: F401  pytest finds its hooks here
    pytest_addoption,
    pytest_collection_modifyitems,
    pytest_configure,
    pytest_ignore_collect,
    pytest_report_header,
)

os.environ.setdefault("SPARK_SUBMIT_OPTS", "-XX:TieredStopAtLevel=1 -XX:+UseParallelGC -XX:MetaspaceSize=768m")
"""For every Spark of the run: what a test makes Java run is over before compiling it well would pay."""


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """The run's Spark is started for the first test that uses it; pipelines that find it leave it running."""
    if item.get_closest_marker("spark") is not None and SparkContext._active_spark_context is None:
        start("tests", master="local[2]")


@pytest.fixture(scope="module")
def spark() -> SparkSession:
    """A session of the run's Spark."""
    return start("tests", master="local[2]")
