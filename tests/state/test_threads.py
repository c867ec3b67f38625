"""Work by several threads gives what work by one gives."""

from __future__ import annotations

import os
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from headwater.state.threads import at_once, give_way


@pytest.mark.parametrize("count", [0, 1, 15, 16, 17, 100])
def test_results_come_in_the_order_of_the_items(count: int) -> None:
    assert at_once(lambda item: item * item, range(count)) == [item * item for item in range(count)]


def test_many_items_are_worked_on_by_two_threads_and_few_by_one() -> None:
    assert len(set(at_once(lambda _: threading.get_ident(), range(16)))) == 2
    assert len(set(at_once(lambda _: threading.get_ident(), range(15)))) == 1


@pytest.mark.parametrize("bad", [6, 7])
def test_an_error_of_either_thread_is_raised(bad: int) -> None:
    def work(item: int) -> int:
        if item == bad:
            raise ValueError(item)
        return item

    with pytest.raises(ValueError, match=str(bad)):
        at_once(work, range(20))


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere threads have no priority of their own")
def test_only_the_thread_that_gives_way_and_those_it_starts_have_less() -> None:
    def mine() -> int:
        return os.getpriority(os.PRIO_PROCESS, threading.get_native_id())

    def giving_way() -> tuple[int, int]:
        give_way()
        with ThreadPoolExecutor(1) as started:
            return mine(), started.submit(mine).result()

    before = mine()
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(giving_way).result() == (max(10, before), max(10, before))
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(mine).result() == before == mine()
