"""The rows that are measured: 100 bytes each, in batches of 1,000, the same content for ours and for the peer.

Ours is `id BIGINT, key STRING, payload STRING`: 8 + 8 + 84 bytes. Kafka gets the same three columns as one value
of 100 bytes, as CSV or as JSON; only the filler in `payload` is shorter there, to make up for the punctuation. The
filler is random letters, so that nobody gains by compressing it.
"""

import random
import string
from functools import cache

import pyarrow as pa

SCHEMA = "id BIGINT, key STRING, payload STRING"
ROWS_PER_BATCH = 1_000
ROW_BYTES = 100
KEYS = 1_000


@cache
def _filler(length: int) -> list[str]:
    letters = random.Random(length)
    return ["".join(letters.choices(string.ascii_letters, k=length)) for _ in range(ROWS_PER_BATCH)]


def key(identifier: int) -> str:
    """Give the key of a row: one of 1,000, in no order."""
    return f"key-{identifier * 7919 % KEYS:04d}"


def record_batch(first: int) -> pa.RecordBatch:
    """Give 1,000 rows with identifiers from *first* on, as Arrow."""
    identifiers = range(first, first + ROWS_PER_BATCH)
    columns = {
        "id": pa.array(identifiers, pa.int64()),
        "key": pa.array([key(i) for i in identifiers], pa.string()),
        "payload": pa.array(_filler(ROW_BYTES - 16), pa.string()),
    }
    return pa.RecordBatch.from_pydict(columns)


def csv_values(first: int) -> list[bytes]:
    """Give the same 1,000 rows as values of 100 bytes: `id,key,payload`."""
    fillers = _filler(ROW_BYTES - len("00000000,key-0000,"))
    return [f"{first + i:08d},{key(first + i)},{fillers[i]}".encode() for i in range(ROWS_PER_BATCH)]


def json_values(first: int) -> list[bytes]:
    """Give the same 1,000 rows as JSON objects of 100 bytes (identifiers from 10,000,000 on keep the width)."""
    fillers = _filler(ROW_BYTES - len('{"id":10000000,"key":"key-0000","payload":""}'))
    return [
        f'{{"id":{10_000_000 + first + i},"key":"{key(first + i)}","payload":"{fillers[i]}"}}'.encode()
        for i in range(ROWS_PER_BATCH)
    ]
