from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from headwater.spark.session import start


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """Spark for the whole run: pipelines that find it running take a session of it and leave it running."""
    session = start("tests", master="local[2]")
    yield session
    session.stop()
