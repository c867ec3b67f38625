from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from headwater.spark.session import start


@pytest.fixture(scope="module")
def spark() -> SparkSession:
    """A session of the run's Spark, which ends with the run: pipelines that find it leave it running."""
    return start("tests", master="local[2]")
