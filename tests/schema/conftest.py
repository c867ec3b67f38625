from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from headwater.spark.session import start


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    session = start("schema-tests", master="local[1]")
    yield session
    session.stop()
