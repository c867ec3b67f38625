from __future__ import annotations

import re

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from headwater.plan.builtins import BUILTINS

OPERATORS = re.compile(r"\W")
BY_GRAMMAR = {"timestampadd", "timestampdiff"}
"""The parser takes these for something of its own, unless they have one or two arguments."""


@pytest.mark.spark
def test_the_names_that_sql_has_a_meaning_for_are_those_of_spark(spark: SparkSession) -> None:
    functions = {row[0] for row in spark.sql("SHOW SYSTEM FUNCTIONS").collect() if not OPERATORS.search(row[0])}
    words = {row[0].lower() for row in spark.sql("SELECT keyword FROM sql_keywords()").collect()}
    assert functions | BY_GRAMMAR | {word for word in words if not is_called(spark, word)} == BUILTINS


def is_called(spark: SparkSession, word: str) -> bool:
    """Whether the parser takes a word for the name of a function."""
    parser = spark._jsparkSession.sessionState().sqlParser()
    for text in (f"SELECT {word}(x)", f"SELECT {word}(x, y)"):
        try:
            if f"'{word}(" in parser.parsePlan(text).toString().lower():
                return True
        except Py4JJavaError:
            pass
    return False
