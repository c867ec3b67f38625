"""docs/settings.md against the settings of the Spark that runs."""

from __future__ import annotations

import pytest

from tests.docs.settings_page import PAGE, page, registry

pytestmark = pytest.mark.spark


def test_the_page_says_what_spark_can_be_set_to() -> None:
    assert PAGE.read_text() == page(registry())
