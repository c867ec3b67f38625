"""Of which rows a group has one at most, where Spark has taken several DISTINCT aggregates apart."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from headwater.spark.catalyst import Catalyst
from headwater.spark.planner.distinct_aggregates import stands_alone

pytestmark = pytest.mark.spark


def test_only_rows_without_anything_distinct_stand_alone(spark: SparkSession) -> None:
    catalyst = Catalyst(spark)
    rows = spark.range(9).selectExpr("id % 2 AS k", "id % 3 AS a", "id % 4 AS b", "id AS c")
    rows.createOrReplaceTempView("rows_alone")
    query = "SELECT k, count(DISTINCT a), count(DISTINCT b), max(c) FROM rows_alone GROUP BY k"
    outer = spark.sql(query)._jdf.queryExecution().optimizedPlan()
    assert outer.nodeName() == "Aggregate"
    aggregates = [
        part
        for result in catalyst.items(outer.aggregateExpressions())
        for part in catalyst.walk(result)
        if part.nodeName() == "AggregateExpression"
    ]
    conditions = [each for part in aggregates if (each := catalyst.option(part.filter())) is not None]
    found = {each.toString(): stands_alone(catalyst, outer, each) for each in conditions}
    assert sorted((text[-2], alone) for text, alone in found.items()) == [("0", True), ("1", False), ("2", False)]
