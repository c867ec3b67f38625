"""EmbeddedTransaction: records that wait beside the log until they are committed together."""

from __future__ import annotations

from collections.abc import Callable, Collection
from contextlib import AbstractContextManager

from headwater import crashpoint
from headwater.errors import HeadwaterError, Unavailable
from headwater.files import disk_errors_told
from headwater.log.commit import Commit
from headwater.log.log import Parts
from headwater.log.partition import Partition
from headwater.log.segment import prepare
from headwater.log.spill import Spill
from headwater.position import Position


class EmbeddedTransaction:
    """See `Transaction` for the contract.

    Nothing is in the log before `commit`, which writes all frames under the locks of all partitions, syncs them,
    and then decides with one row in the store. So an undecided stretch of the log is short.
    """

    def __init__(
        self,
        identity: bytes,
        spill: Spill,
        commit: Commit,
        partition: Callable[[str, int], Partition],
        check_schema: Callable[[str, Parts], None],
        drops_told: Callable[[Collection[str]], AbstractContextManager[None]],
    ) -> None:
        self.identity = identity
        self._spill = spill
        self._commit = commit
        self._partition = partition
        self._check_schema = check_schema
        self._drops_told = drops_told
        self._kept: dict[str, str] = {}
        self._ended = False

    def append(self, topic: str, parts: Parts) -> None:
        """See `Transaction.append`."""
        self._must_be_open()
        self._check_schema(topic, parts)
        try:
            for number, batch in parts.items():
                self._partition(topic, number)
                self._spill.add(topic, number, batch)
        except OSError as error:
            self.abort()
            msg = f"the transaction could not be kept: {error.strerror}; it is taken back"
            raise Unavailable(msg, hint="make room on the disk, then do it again", retry=True) from error
        crashpoint.reach("transaction.spilled")

    def keep(self, name: str, value: str) -> None:
        """See `Transaction.keep`."""
        self._must_be_open()
        self._kept[name] = value

    def _must_be_open(self) -> None:
        if self._ended:
            raise HeadwaterError("the transaction has ended", hint="begin another one")

    @disk_errors_told()
    def commit(self) -> Position:
        """See `Transaction.commit`."""
        self._must_be_open()
        self._ended = True
        try:
            targets = {
                place: (self._partition(*place), map(prepare, self._spill.batches(place)))
                for place in self._spill.places()
            }
            if not targets and not self._kept:
                return Position(())
            with self._drops_told({topic for topic, _ in targets}):
                return self._commit.store_transaction(self.identity, targets, self._kept)
        finally:
            self._spill.close()

    def abort(self) -> None:
        """See `Transaction.abort`."""
        if not self._ended:
            self._ended = True
            self._spill.close()
