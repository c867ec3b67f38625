"""What py4j logs of a connection that broke goes to a caller anyway, or to nobody."""

from __future__ import annotations

import logging

import pytest
from py4j.protocol import Py4JNetworkError

from headwater.spark.session.quiet import quiet


def logged(error: Exception, path: str) -> None:
    """As the root logger logs an error that some file met."""
    root = logging.getLogger()
    root.handle(root.makeRecord("root", logging.ERROR, path, 1, "it failed", (), (type(error), error, None)))


def test_a_broken_connection_is_not_logged_in_any_thread(caplog: pytest.LogCaptureFixture) -> None:
    with quiet():
        logged(ValueError("called by us"), "py4j/java_gateway.py")
    assert not caplog.records
    for error in (Py4JNetworkError("ended"), ConnectionResetError("by peer")):
        logged(error, "py4j/java_gateway.py")
    assert not caplog.records
    logged(ConnectionResetError("by peer"), "users.py")
    logged(ValueError("called by the user"), "py4j/java_gateway.py")
    assert [each.exc_info[0] for each in caplog.records if each.exc_info] == [ConnectionResetError, ValueError]
