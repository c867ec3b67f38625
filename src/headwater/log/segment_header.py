"""The head of a segment file: what the segment is, and how it follows the one before.

Little-endian:

    byte  size  field
       0     8  checksum: XXH3-64 of bytes 8 up to `header length`
       8     4  magic "HWS1"
      12     4  header length, a multiple of 64: where the first frame starts
      16     4  kind of segment: 1 = frames
      20     4  length of the schema
      24     8  ordinal: 0 for a partition's first segment, then one more each
      32     8  base: no record in the segment has a smaller offset
      40     8  time of creation, microseconds since 1970 UTC
      48     8  base of the previous segment (of itself, for ordinal 0)
      56     8  length in bytes of the previous segment, which is sealed and wholly on disk (0 for ordinal 0)
      64     8  pipeline-wide sequence of the last frame before the segment
      72     8  time of receipt of the last frame before the segment
      80     4  length of the producers
      84     4  zero
      88     …  the schema (an Arrow IPC schema message), then the producers (JSON), then zeros

The producers are what is remembered of idempotent appends before this segment, so that retention can take the
older segments away: `{"name": [[sequence, first offset, end offset, transaction in hex or null], …]}`.
"""

from __future__ import annotations

import json
import struct
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
from xxhash import xxh3_64_intdigest

from headwater.log.frame import padded

MAGIC = b"HWS1"
FRAMES = 1
FIXED = struct.Struct("<Q4sIIIQQqQQQqI4x")
_CHECKSUM = struct.Struct("<Q")


class BadHeader(ValueError):
    """Bytes that are not a whole, unharmed segment header."""


@dataclass(frozen=True, slots=True)
class SegmentHeader:
    """See the module's text for each field."""

    ordinal: int
    base: int
    created_at: int
    previous: int
    previous_length: int
    sequence: int
    received_at: int
    schema: pa.Schema
    producers: dict[str, list[Any]] = field(default_factory=dict)
    length: int = 0


def encode(header: SegmentHeader) -> bytes:
    """The header as bytes."""
    schema: bytes = header.schema.serialize().to_pybytes()
    producers = json.dumps(header.producers, separators=(",", ":")).encode()
    length = padded(FIXED.size + len(schema) + len(producers))
    fixed = FIXED.pack(
        0,
        MAGIC,
        length,
        FRAMES,
        len(schema),
        header.ordinal,
        header.base,
        header.created_at,
        header.previous,
        header.previous_length,
        header.sequence,
        header.received_at,
        len(producers),
    )
    data = (fixed + schema + producers).ljust(length, b"\0")
    return _CHECKSUM.pack(xxh3_64_intdigest(data[8:])) + data[8:]


def length_of(data: bytes) -> int:
    """How many bytes the header has, read from its beginning; not yet checked."""
    if len(data) < FIXED.size or data[8:12] != MAGIC:
        raise BadHeader("no segment begins here")
    return int.from_bytes(data[12:16], "little")


def decode(data: bytes) -> SegmentHeader:
    """Read a whole header."""
    length = length_of(data)
    if len(data) < length:
        raise BadHeader("the segment's header is cut off")
    (checksum, _, _, kind, schema_length, ordinal, base, created_at, previous, previous_length, sequence,
     received_at, producers_length) = FIXED.unpack_from(data)  # fmt: skip
    if length < FIXED.size or xxh3_64_intdigest(data[8:length]) != checksum:
        raise BadHeader("the segment's header does not match its checksum")
    if kind != FRAMES:
        msg = f"segments of kind {kind} are not known to this version"
        raise BadHeader(msg)
    start = FIXED.size
    schema = pa.ipc.read_schema(pa.py_buffer(data[start : start + schema_length]))
    producers = data[start + schema_length : start + schema_length + producers_length]
    return SegmentHeader(
        ordinal=ordinal,
        base=base,
        created_at=created_at,
        previous=previous,
        previous_length=previous_length,
        sequence=sequence,
        received_at=received_at,
        schema=schema,
        producers=json.loads(producers),
        length=length,
    )
