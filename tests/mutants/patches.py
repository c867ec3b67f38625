"""Kept patches that each break one promise, with the test that must turn red.

A patch is a few exact replacements in one file of `src/headwater`; text that is not there exactly once is an error,
so that a patch which no longer applies is noticed.
"""

from __future__ import annotations

from dataclasses import dataclass

_CONTRACT = "tests/contracts/test_embedded_log.py::TestEmbeddedLogWithManySegments::"
_STORE = "tests/contracts/test_sqlite_store.py"
_POWER = "tests/crash/test_power_loss.py -k "
_CASE = "tests/log/test_interleavings.py::"
_LEASE = "tests/crash/test_lease.py::"


@dataclass(frozen=True, slots=True)
class Patch:
    """The promise it breaks, the file, the replacements in it, and the quickest test that notices."""

    promise: str
    file: str
    edits: tuple[tuple[str, str], ...]
    test: str


def patch(promise: str, file: str, old: str, new: str, test: str, *more: tuple[str, str]) -> Patch:
    """A patch of one replacement, or more in the same file."""
    return Patch(promise, file, ((old, new), *more), test)


PATCHES: tuple[Patch, ...] = (
    patch(
        "an append returns after its fsync",
        "log/segment.py",
        "        self._files.sync(self._handle)\n",
        "        pass\n",
        f"{_POWER} single_appends",
    ),
    patch(
        "a frame's head is checked",
        "log/frame.py",
        "    if xxh3_64_intdigest(data[8:head_length]) != checksum:\n",
        "    if False:\n",
        "tests/log/test_damage.py -k head",
    ),
    patch(
        "a frame's records are checked",
        "log/frame.py",
        "    return len(body) == frame.body_length and xxh3_64_intdigest(body) == frame.body_checksum\n",
        "    return len(body) == frame.body_length\n",
        "tests/log/test_damage.py -k body",
    ),
    patch(
        "a torn tail is cut off",
        "log/recovery.py",
        "    segment.truncate(good)\n",
        "    pass\n",
        "tests/log/test_damage.py -k torn",
    ),
    patch(
        "damage before the synced point is loud",
        "log/recovery.py",
        "    if found.good < max(_known(segment, before, synced, boot), found.synced):\n",
        "    if False:\n",
        "tests/log/test_damage.py -k damage_before",
    ),
    patch(
        "each frame tells up to where the file was synced before it",
        "log/partition.py",
        "        return synced.byte if synced.segment == written.segment else 0\n",
        "        return 0\n",
        "tests/log/test_damage.py -k damage_before",
    ),
    patch(
        "the same sequence again is stored once",
        "log/commit.py",
        "            if last is not None and sequence <= last:\n",
        "            if last is not None and sequence < last:\n",
        f"{_CONTRACT}test_the_same_sequence_again_stores_once_and_returns_the_same_position",
        (
            "            if last is not None and sequence != last + 1:\n",
            "            if last is not None and sequence > last + 1:\n",
        ),
    ),
    patch(
        "a skipped sequence is a gap",
        "log/commit.py",
        "            if last is not None and sequence != last + 1:\n",
        "            if False:\n",
        f"{_CONTRACT}test_a_skipped_sequence_is_a_gap_and_stores_nothing",
    ),
    patch(
        "producers are remembered over segment rolls",
        "log/partition.py",
        "                producers=producers.snapshot(),\n",
        "                producers={},\n",
        f"{_CONTRACT}test_producers_are_remembered_over_trimming",
    ),
    patch(
        "tries that were taken back do not crowd out what was stored",
        "log/producers.py",
        "            self._known[entry.producer] = [*filter(partial(_outlives, added), known), added]\n",
        "            self._known[entry.producer] = [*known, added][-REMEMBERED:]\n",
        "tests/log/test_producers.py -k crowd",
    ),
    patch(
        "a batch of bad rows only uses its sequence up",
        "log/commit.py",
        "            if all(name != topic for name, _ in targets):",
        "            if not targets:",
        "tests/log/test_producers.py -k bad_rows_only",
    ),
    patch(
        "a repeated batch is acknowledged only once it is on disk",
        "log/commit.py",
        "            self._make_last_lasting(involved, known, last)\n",
        "",
        f"{_POWER} a_producer_in_two_logs",
    ),
    patch(
        "an aborted transaction is never read",
        "log/embedded.py",
        "            if fate:\n                yield entry\n",
        "            yield entry\n",
        "tests/crash/test_tail_follow.py -k died",
    ),
    patch(
        "readers stop at an undecided transaction",
        "log/embedded.py",
        "            if fate is None:\n                return\n",
        "            if fate is None:\n                continue\n",
        f"{_CASE}test_readers_and_cuts_stop_at_an_undecided_transaction_and_go_on_when_it_commits",
    ),
    patch(
        "cuts stop at an undecided transaction",
        "log/cut.py",
        "        if None in fates or (rows",
        "        if (rows",
        f"{_CASE}test_readers_and_cuts_stop_at_an_undecided_transaction_and_go_on_when_it_commits",
    ),
    patch(
        "a dead owner's transaction is taken back",
        "log/decisions.py",
        "            if known is None and not _is_alive(self._folder, transaction):\n",
        "            if False:\n",
        "tests/crash/test_tail_follow.py -k died",
    ),
    patch(
        "a living owner's transaction is left alone",
        "lock.py",
        "        if not lock.acquire(timeout=0):\n            return True\n",
        "        if not lock.acquire(timeout=0):\n            return False\n",
        f"{_CASE}test_readers_and_cuts_stop_at_an_undecided_transaction_and_go_on_when_it_commits",
    ),
    patch(
        "a transaction is decided after its frames are synced",
        "log/commit.py",
        "                if one.partition.durable or explicit:\n",
        "                if identity is None:\n",
        f"{_POWER} transactions",
    ),
    patch(
        "a cut passes each partition's lock",
        "log/embedded.py",
        "            with partition.held() as written:\n                ends[place] = written\n",
        "            ends[place] = partition._tail.read()[0]\n",
        f"{_CASE}test_a_cut_waits_for_whoever_took_an_earlier_number",
    ),
    patch(
        "a cut never splits a transaction",
        "log/cut.py",
        "    for number, group in groupby(_merged(entries), key=lambda pair: pair[1].sequence):\n",
        "    for (number, _), group in groupby(_merged(entries), key=lambda pair: (pair[1].sequence, pair[0])):\n",
        f"{_CONTRACT}test_a_cut_never_splits_a_transaction_or_a_batch_over_partitions",
    ),
    patch(
        "what was cut is synced before the cut is returned",
        "log/embedded.py",
        "            if partitions[place].sync_to(ends[place]) < entry.after:\n",
        "            if False:\n",
        f"{_CASE}test_what_is_cut_is_made_lasting_first",
    ),
    patch(
        "an append takes its number under its partition's lock",
        "log/commit.py",
        "        with _all_held([partition for partition, _ in targets.values()]) as generations:\n"
        "            stored = self._write(targets, generations, identity)\n"
        "        return _within(topic, self._finish(stored, identity))\n",
        "        self._early = self._numbers.take()\n"
        "        with _all_held([partition for partition, _ in targets.values()]) as generations:\n"
        "            stored = self._write(targets, generations, identity)\n"
        "        return _within(topic, self._finish(stored, identity))\n",
        f"{_CASE}test_an_append_takes_its_number_only_when_it_holds_the_lock",
        ("Stamp(self._numbers.take(), ", "Stamp(getattr(self, '_early', 0) or self._numbers.take(), "),
    ),
    patch(
        "a commit with an old epoch is fenced",
        "store/sqlite.py",
        '            self._check_epoch(epoch, f"tick {tick.number} is not committed")\n',
        "",
        f"{_STORE} -k old_epoch",
    ),
    patch(
        "take_over raises the epoch",
        "store/sqlite.py",
        "(name, seen + 1, json.dumps(dict(holder)))",
        "(name, seen, json.dumps(dict(holder)))",
        f"{_LEASE}test_a_stopped_driver_that_was_replaced_is_fenced_and_deletes_nothing",
    ),
    patch(
        "a living driver is not replaced by acquire",
        "store/lease.py",
        "        if record.holder and self._liveness.is_alive(_name(record.epoch)):\n",
        "        if False:\n",
        f"{_LEASE}test_a_second_driver_is_refused_while_the_first_lives",
    ),
    patch(
        "a process that only has the driver's number is not killed",
        "process.py",
        "        return self.here and _started(self.pid) == self.started\n",
        "        return _started(self.pid) is not None\n",
        f"{_LEASE}test_a_process_that_only_has_the_drivers_number_is_not_killed",
    ),
    patch(
        "take_over frees every lock of the log that the old driver sits on",
        "log/partition.py",
        "        return self._sync_lock, self.lock\n",
        "        return self.lock, self.lock\n",
        f"'{_LEASE}test_a_driver_stopped_while_it_holds_a_lock_of_the_log_is_killed[sync]'",
    ),
    patch(
        "nothing of a batch with a bad row is stored",
        "topics/topic.py",
        '        if self.declaration.on_error == "refuse":\n',
        "        if False:\n",
        "tests/pipeline/test_pipeline.py -k 'bad_row_refuses'",
    ),
    patch(
        "a key's partition is its hash, for ever",
        "change/hash.py",
        "_SEED = 42\n",
        "_SEED = 43\n",
        "tests/change/test_hash.py -k spark_gave",
    ),
    patch(
        "no offset is used twice",
        "log/recovery.py",
        "AFTER_A_LOST_TAIL = 1 << 32\n",
        "AFTER_A_LOST_TAIL = 0\n",
        f"{_POWER} without_fsync",
    ),
    patch(
        "an append in company waits for the sync that covers it",
        "log/group_commit.py",
        "            return\n        with self._lock:\n            written, synced",
        "            return\n        if not self._lock.acquire(timeout=0):\n            return\n"
        "        self._lock.release()\n        with self._lock:\n            written, synced",
        f"{_CASE}test_an_append_returns_only_after_the_sync_that_covers_it",
    ),
    patch(
        "appends share their syncs",
        "log/group_commit.py",
        "            if synced.mark >= mark and synced.generation == generation:\n                return\n",
        "",
        "tests/crash/test_group_commit.py -k eight_processes",
    ),
    patch(
        "nobody reads what a power cut could take back",
        "log/partition.py",
        "        return self.sync_to(written)\n",
        "        return written.mark\n",
        f"{_CASE}test_nobody_reads_what_is_not_yet_synced_without_syncing_it",
    ),
    patch(
        "a segment is synced before the next one says that it is whole",
        "log/partition.py",
        "self.producers()\n            self._commit.seal(written.mark, written.generation)\n",
        "self.producers()\n",
        f"{_POWER} rolls",
    ),
    patch(
        "a follower is woken by news",
        "watch.py",
        "_IN_MODIFY = 0x2\n",
        "_IN_MODIFY = 0x4\n",
        "tests/crash/test_tail_follow.py -k 'loose and sees'",
    ),
)
