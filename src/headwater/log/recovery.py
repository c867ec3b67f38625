"""Recovery: find a partition's true end after its last writer died or the power failed."""

from __future__ import annotations

import dataclasses
import logging

import pyarrow as pa

from headwater import crashpoint
from headwater.errors import LogDamaged
from headwater.files import Files
from headwater.log import index
from headwater.log.entry import Entry
from headwater.log.segment import Segment, Stamp, Tail, prepare
from headwater.log.segments import Segments
from headwater.log.tail_file import Synced, TailFile, Written

AFTER_A_LOST_TAIL = 1 << 32
"""How far offsets jump when records that readers may have seen may be lost: none is ever used twice."""

_logger = logging.getLogger("headwater.log")


def recover(files: Files, segments: Segments, tail: TailFile, *, boot: int, durable: bool) -> Written:
    """Read the active segment again and cut off a torn tail. Only for the holder of the partition's lock.

    Damage behind the furthest point that is known to be on disk is a torn tail. Damage before it raises
    `LogDamaged`, and nothing is changed.
    """
    before, synced = tail.read()
    segment = segments.get(segments.refresh()[-1])
    if synced.mark.segment > segment.base:
        msg = f"the segment that begins at offset {synced.mark.segment} is missing"
        raise LogDamaged(msg, segment=segment.path, byte=segment.size())
    _check_previous(segments, segment)
    found = segment.scan(segment.header.length)
    if found.good < max(_known(segment, before, synced, boot), found.synced):
        msg = f"{found.reason or 'the file ends too early'}, though these bytes were on disk"
        raise LogDamaged(msg, segment=segment.path, byte=found.good, hint="restore this file from a backup")
    files.sync_folder(segments.folder)
    _cut_torn_tail(segment, found.good, found.reason)
    if not durable and (before is None or before.boot != boot):
        found = _leave_gap(segment, found)
    return Written(
        boot=boot,
        generation=max(before.generation, synced.generation) if before else synced.generation + 1,
        segment=segment.base,
        byte=found.good,
        next_offset=_next_offset(segment, found.last),
        sequence=found.last.sequence if found.last else segment.header.sequence,
        received_at=found.last.received_at if found.last else segment.header.received_at,
        indexed=index.truncate(files, segments.folder, segment.base, found.good),
        producers=found.producers,
    )


def _known(segment: Segment, before: Written | None, synced: Synced, boot: int) -> int:
    """Up to which byte the segment is known to be whole, as the tail file says."""
    known = synced.mark.byte if synced.mark.segment == segment.base else segment.header.length
    if before is not None and before.boot == boot and before.segment == segment.base:
        known = max(known, before.byte)  # a killed process harms nothing that was written before
    return known


def _next_offset(segment: Segment, last: Entry | None) -> int:
    return last.end if last else segment.base


def _leave_gap(segment: Segment, found: Tail) -> Tail:
    """Go on far behind records that readers may have seen and that are lost.

    An empty frame makes the gap lasting: without it, what is appended now could be lost in turn, and the next
    recovery would give its offsets out again.
    """
    sequence = found.last.sequence if found.last else segment.header.sequence
    received_at = found.last.received_at if found.last else segment.header.received_at
    nothing = prepare(pa.RecordBatch.from_pylist([], schema=segment.header.schema))
    offset = _next_offset(segment, found.last) + AFTER_A_LOST_TAIL
    gap = segment.write(found.good, offset, found.synced, nothing, Stamp(sequence, received_at))
    try:
        segment.sync()
    except OSError:
        segment.truncate(found.good)
        raise
    return dataclasses.replace(found, last=gap, good=gap.after.byte)


def _cut_torn_tail(segment: Segment, good: int, reason: str | None) -> None:
    size = segment.size()
    if size <= good:
        return
    crashpoint.reach("recover.before_truncate")
    segment.truncate(good)
    crashpoint.reach("recover.truncated")
    _logger.warning(
        "%s: cut a torn tail of %d bytes at byte %d (%s); nothing acknowledged was in it",
        segment.path,
        size - good,
        good,
        reason,
    )


def _check_previous(segments: Segments, segment: Segment) -> None:
    """The segment before must be whole, unless retention took it away."""
    bases = segments.bases()
    if segment.header.previous in bases[:-1]:
        segments.get(segment.header.previous).sealed(segment.header.previous_length)
    elif len(bases) > 1:
        msg = f"the segment that begins at offset {segment.header.previous} is missing"
        raise LogDamaged(msg, segment=segment.path, byte=0)
