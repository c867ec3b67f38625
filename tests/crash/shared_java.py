"""One Java for many drivers: a process attaches to the Spark that another one started.

Starting Java takes seconds, attaching to it a fraction of one. What is killed is the driver: the Python process
with the lease, the plans and the files. Its tasks go on in the Java it leaves behind, which is worse than if they
died.
"""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass

from pyspark import SparkConf, SparkContext
from pyspark.java_gateway import launch_gateway

from headwater.spark.session.start import start


@dataclass(frozen=True)
class SharedJava:
    """Where the gateway of a running Spark is."""

    port: int
    secret: str

    @classmethod
    def started(cls) -> SharedJava:
        """That of this process, which is started if it does not run yet."""
        session = start("shared", master="local[2]")
        session.sparkContext.setLogLevel("OFF")  # it complains about each driver that it misses
        gateway = SparkContext._gateway
        assert gateway is not None
        return cls(gateway.gateway_parameters.port, gateway.gateway_parameters.auth_token)

    def attach(self) -> None:
        """Use it in this process, which has no Spark of its own yet."""
        os.environ["PYSPARK_GATEWAY_PORT"] = str(self.port)
        os.environ["PYSPARK_GATEWAY_SECRET"] = self.secret
        os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
        gateway = launch_gateway()  # type: ignore[no-untyped-call]
        running = gateway.jvm.org.apache.spark.SparkContext.getOrCreate()
        SparkContext(
            conf=SparkConf(_jconf=running.conf()), gateway=gateway, jsc=gateway.jvm.JavaSparkContext(running)
        )


def stop() -> None:
    """Stop the Spark of this process."""
    context = SparkContext._active_spark_context
    if context is not None:
        context.stop()
