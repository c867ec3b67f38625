"""TailFile: what the processes that share a partition tell each other about its end.

One small file `tail` beside the segments, never synced: after a power cut it may say anything, so `written` is
believed only from the same boot of the machine, and `synced` only says what was true when it was written (which
stays true). Two records, little-endian, each with its own checksum; one that does not match counts as absent:

    byte  size  written, by the holder of the partition's lock
       0     8  checksum: XXH3-64 of bytes 8 to 80
       8     8  boot of the machine
      16     8  generation: raised when frames that were written were taken back, or may have been
      24     8  base of the active segment
      32     8  byte after its last frame
      40     8  next offset
      48     8  pipeline-wide sequence of the last frame
      56     8  time of receipt of the last frame
      64     8  byte up to which the segment's index reaches
      72     8  number of frames in the segment that name a producer
    byte  size  synced, by the holder of the sync lock
     128     8  checksum: XXH3-64 of bytes 136 to 160
     136     8  generation
     144     8  base of the segment
     152     8  byte up to which it is on disk (segments before it are wholly on disk)
    byte  size  news
     256     8  a counter that is raised when a transaction was decided; only its change matters
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

from xxhash import xxh3_64_intdigest

from headwater.files import Files
from headwater.log.entry import Mark

_WRITTEN = struct.Struct("<QQQQQQQqQQ")
_SYNCED = struct.Struct("<QQQQ")
_NEWS = struct.Struct("<Q")
_SYNCED_AT = 128
_NEWS_AT = 256
_SIZE = 264
_TRIES = 8


@dataclass(frozen=True, slots=True)
class Written:
    """How far the partition is written; the fields are those of the module's text."""

    boot: int
    generation: int
    segment: int
    byte: int
    next_offset: int
    sequence: int
    received_at: int
    indexed: int
    producers: int

    @property
    def mark(self) -> Mark:
        """The place after the last frame."""
        return Mark(self.segment, self.byte)


@dataclass(frozen=True, slots=True)
class Synced:
    """How far the partition is on disk."""

    generation: int
    mark: Mark

    @property
    def is_known(self) -> bool:
        """False if the file does not tell."""
        return self.mark.byte > 0


NOTHING_SYNCED = Synced(0, Mark(0, 0))


class TailFile:
    """The open file. Reads are safe at any time; `publish…` only under the lock that the record belongs to."""

    def __init__(self, files: Files, path: str) -> None:
        self.path = path
        self._files = files
        self._handle = -1
        self._handle = files.open(path, create=True)

    def read(self) -> tuple[Written | None, Synced]:
        """Both records. One that is being written just now is read again."""
        for _ in range(_TRIES):
            data = self._files.read(self._handle, _SIZE, 0).ljust(_SIZE, b"\0")
            written, synced = _decode_written(data), _decode_synced(data)
            if written is not None and synced is not None:
                return written, synced
        return written, synced or NOTHING_SYNCED

    def publish_written(self, written: Written) -> None:
        """Say how far the partition is written."""
        body = _WRITTEN.pack(
            0,
            written.boot,
            written.generation,
            written.segment,
            written.byte,
            written.next_offset,
            written.sequence,
            written.received_at,
            written.indexed,
            written.producers,
        )[8:]
        self._files.write(self._handle, [xxh3_64_intdigest(body).to_bytes(8, "little") + body], 0)

    def forget_written(self) -> None:
        """Make whoever comes next recover, should this process die before it publishes again."""
        self._files.write(self._handle, [bytes(_WRITTEN.size)], 0)

    def publish_synced(self, synced: Synced) -> None:
        """Say how far the partition is on disk."""
        body = _SYNCED.pack(0, synced.generation, synced.mark.segment, synced.mark.byte)[8:]
        self._files.write(self._handle, [xxh3_64_intdigest(body).to_bytes(8, "little") + body], _SYNCED_AT)

    def publish_news(self) -> None:
        """Wake those who wait, though nothing was written. Racing calls may count as one."""
        data = self._files.read(self._handle, 8, _NEWS_AT).ljust(8, b"\0")
        count = (_NEWS.unpack(data)[0] + 1) % (1 << 63)
        self._files.write(self._handle, [_NEWS.pack(count)], _NEWS_AT)

    def sync(self) -> None:
        """Make the file lasting, once, when it is new: afterwards its absence tells of a loss."""
        self._files.sync(self._handle)

    def close(self) -> None:
        """Close the file. Safe to call twice; whoever still uses it gets an error, never another file."""
        handle, self._handle = self._handle, -1
        if handle >= 0:
            self._files.close(handle)

    def __del__(self) -> None:
        self.close()


def _decode_written(data: bytes) -> Written | None:
    fields = _WRITTEN.unpack_from(data)
    if xxh3_64_intdigest(data[8 : _WRITTEN.size]) != fields[0]:
        return None
    return Written(*fields[1:])


def _decode_synced(data: bytes) -> Synced | None:
    checksum, generation, segment, byte = _SYNCED.unpack_from(data, _SYNCED_AT)
    if xxh3_64_intdigest(data[_SYNCED_AT + 8 : _SYNCED_AT + _SYNCED.size]) != checksum:
        return None
    return Synced(generation, Mark(segment, byte))
