"""Frame: one appended batch as bytes. Only `segment.py` knows of frames.

A frame starts at a multiple of 64 bytes and fills a multiple of 64 bytes. Little-endian:

    byte  size  field
       0     8  head checksum: XXH3-64 of bytes 8 up to `head length`
       8     4  magic "HWF1"
      12     4  frame length, padding included
      16     8  body checksum: XXH3-64 of the `body length` bytes at `head length`
      24     8  offset of the first record
      32     4  number of records (0 is legal: only the producer's sequence is stored)
      36     4  head length, a multiple of 64: where the body starts, counted from the frame's start
      40     4  body length
      44     2  length of the producer's name
      46     2  flags: 1 = belongs to a transaction, 2 = has a producer
      48     4  length of the headers
      52     4  zero
      56     8  pipeline-wide sequence number
      64     8  time of receipt, microseconds since 1970 UTC
      72     8  synced: up to this byte the segment was known to be on disk when the frame was written
      80     8  the producer's sequence (signed)
      88    16  transaction id
     104     8  zero
     112     …  the producer's name (UTF-8), then the headers (a JSON object), then zeros up to `head length`

The body is one Arrow IPC record-batch message, to be read with the segment's schema, followed by zeros.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

from xxhash import xxh3_64_intdigest

ALIGNMENT = 64
MAGIC = b"HWF1"
FIXED = struct.Struct("<Q4sIQQIIIHHIIQqQq16s8x")
IN_TRANSACTION = 1
HAS_PRODUCER = 2
NO_TRANSACTION = bytes(16)
_CHECKSUM = struct.Struct("<Q")


class BadFrame(ValueError):
    """Bytes that are not a whole, unharmed frame."""


@dataclass(frozen=True, slots=True)
class Frame:
    """A frame's head. `length`, `head_length`, `body_length` and `body_checksum` describe its bytes."""

    offset: int
    count: int
    sequence: int
    received_at: int
    synced: int
    producer: str | None
    producer_sequence: int
    transaction: bytes | None
    headers: bytes
    head_length: int
    body_length: int
    body_checksum: int
    length: int


def padded(length: int) -> int:
    """The next multiple of the alignment."""
    return -length % ALIGNMENT + length


def describe(body: bytes | memoryview, *, count: int, producer: str | None, headers: bytes = b"") -> Frame:
    """A frame around a body, its place and numbers still zero. The costly part: it sums the body."""
    name = producer.encode() if producer is not None else b""
    head_length = padded(FIXED.size + len(name) + len(headers))
    return Frame(
        offset=0,
        count=count,
        sequence=0,
        received_at=0,
        synced=0,
        producer=producer,
        producer_sequence=0,
        transaction=None,
        headers=headers,
        head_length=head_length,
        body_length=len(body),
        body_checksum=xxh3_64_intdigest(body),
        length=padded(head_length + len(body)),
    )


def encode_head(frame: Frame) -> bytes:
    """The frame's head as bytes."""
    name = frame.producer.encode() if frame.producer is not None else b""
    flags = IN_TRANSACTION * (frame.transaction is not None) | HAS_PRODUCER * (frame.producer is not None)
    fixed = FIXED.pack(
        0,
        MAGIC,
        frame.length,
        frame.body_checksum,
        frame.offset,
        frame.count,
        frame.head_length,
        frame.body_length,
        len(name),
        flags,
        len(frame.headers),
        0,
        frame.sequence,
        frame.received_at,
        frame.synced,
        frame.producer_sequence,
        frame.transaction or NO_TRANSACTION,
    )
    head = (fixed + name + frame.headers).ljust(frame.head_length, b"\0")
    return _CHECKSUM.pack(xxh3_64_intdigest(head[8:])) + head[8:]


def decode_head(data: bytes | memoryview) -> Frame:
    """Read a head; `BadFrame` if the bytes are not one, `IncompleteHead` if more of them are needed."""
    if len(data) < FIXED.size:
        raise BadFrame("the frame's head is cut off")
    fields = FIXED.unpack_from(data)
    checksum, magic, length, body_checksum, offset, count, head_length, body_length = fields[:8]
    name_length, flags, headers_length, _, sequence, received_at, synced, producer_sequence, transaction = fields[
        8:
    ]
    if magic != MAGIC:
        raise BadFrame("no frame begins here")
    end = FIXED.size + name_length + headers_length
    if head_length != padded(end) or length != padded(head_length + body_length):
        raise BadFrame("the frame's lengths do not agree")
    if len(data) < head_length:
        raise IncompleteHead(head_length)
    if xxh3_64_intdigest(data[8:head_length]) != checksum:
        raise BadFrame("the frame's head does not match its checksum")
    name_end = FIXED.size + name_length
    return Frame(
        offset=offset,
        count=count,
        sequence=sequence,
        received_at=received_at,
        synced=synced,
        producer=bytes(data[FIXED.size : name_end]).decode() if flags & HAS_PRODUCER else None,
        producer_sequence=producer_sequence,
        transaction=transaction if flags & IN_TRANSACTION else None,
        headers=bytes(data[name_end:end]),
        head_length=head_length,
        body_length=body_length,
        body_checksum=body_checksum,
        length=length,
    )


class IncompleteHead(BadFrame):
    """The head is longer than the bytes at hand; `needed` says how long."""

    def __init__(self, needed: int) -> None:
        self.needed = needed
        super().__init__(f"the frame's head has {needed} bytes")


def body_is_whole(frame: Frame, body: bytes | memoryview) -> bool:
    """Whether the body's bytes are those that were summed."""
    return len(body) == frame.body_length and xxh3_64_intdigest(body) == frame.body_checksum
