"""What `produce` does with a batch, and what it can say about it when one fails."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from headwater.cli.rows import InputRow
from headwater.cli.text import count
from headwater.cli.where import WrongUsage
from headwater.errors import HeadwaterError, SchemaError, SequenceGap
from headwater.schema.json import from_json

if TYPE_CHECKING:
    from headwater import Position, Stream, Table
    from headwater.schema import Checked


class Sender:
    """Appends batches to one topic, as a producer if there is one."""

    def __init__(
        self,
        topic: Stream | Table,
        *,
        delete: bool = False,
        producer: str | None = None,
        sequence: int | None = None,
    ) -> None:
        if delete and topic.kind == "stream":
            msg = "it is a stream, and only rows of a table can be deleted"
            raise WrongUsage(msg, where=topic.name, hint="leave --delete out to append to it")
        self._topic = topic
        self._deletes = delete
        self._operation = "delete" if delete else "upsert" if topic.kind == "table" and topic.key else "append"
        self._producer = producer
        self._sequence = sequence

    def send(self, batch: list[InputRow]) -> tuple[Position, int]:
        """Append it; the position, and how many rows were set aside.

        Nothing of it is stored if a row is refused (`SchemaError`, whose `row` counts in the batch).
        """
        rows = [self._row(index, entry) for index, entry in enumerate(batch)]
        checked = self._checked(rows)
        try:
            position = self._topic.store(checked, self._operation, producer=self._producer, sequence=self._sequence)
        except SchemaError as error:
            error.hint = ""  # which rows are stored and what to do next is known better here
            raise
        if self._sequence is not None:
            self._sequence += 1
        return position, len(checked.bad)

    def _checked(self, rows: list[object]) -> Checked:
        """The rows as the topic looks at them."""
        operation = () if self._topic.kind == "stream" else (self._operation,)
        checked: Checked = self._topic.checked(rows, *operation)
        return checked

    def _row(self, index: int, entry: InputRow) -> object:
        """The row as the topic takes it. What is no row at all goes there too, to be refused with its reason."""
        try:
            value = entry.value()
        except SchemaError as error:
            error.row = index
            raise
        return from_json(self._topic.schema, value) if isinstance(value, dict) else self._plain_key(value)

    def _plain_key(self, value: object) -> object:
        """A key that was given without its name, read like any other value of its column."""
        if self._deletes and len(self._topic.key) == 1:
            name = self._topic.key[0]
            return from_json(self._topic.schema, {name: value})[name]
        return value


@dataclass(slots=True)
class Sent:
    """How far the sending of one input has come."""

    origin: str
    unit: str
    rows: int = 0
    aside: int = 0
    last: int = 0
    position: Position | None = None
    trying: list[InputRow] = field(default_factory=list)

    def acknowledge(self, position: Position, aside: int) -> None:
        """The batch that was being tried is stored; of its rows so many were set aside."""
        self.rows += len(self.trying) - aside
        self.aside += aside
        self.last = self.trying[-1].number
        self.position = position if self.position is None else self.position | position
        self.trying = []


class SendingStopped(HeadwaterError):
    """Sending ended early. Says what of the input is in the log, and from where on it is not."""

    def __init__(self, cause: HeadwaterError | OSError, sent: Sent) -> None:
        self._cause = cause
        self._sent = sent
        self._line = _number(cause, sent)
        what = cause.what if isinstance(cause, HeadwaterError) else cause.strerror or str(cause)
        hint = cause.hint if isinstance(cause, HeadwaterError) else ""
        super().__init__(
            f"{what}\n{_stored(cause, sent)}",
            where=_place(cause, sent, self._line),
            hint="\n".join(filter(None, (hint, _again(sent, self._line)))),
            retry=isinstance(cause, HeadwaterError) and cause.retry,
        )

    def as_dict(self) -> dict[str, object]:
        """The cause, with the whole of what is known about the input."""
        cause = self._cause if isinstance(self._cause, HeadwaterError) else HeadwaterError(str(self._cause))
        return {
            **{name: value for name, value in cause.as_dict().items() if name != "row"},
            "where": self.where,
            "hint": self.hint,
            self._sent.unit: self._line,
            "stored": self._sent.rows,
            "set_aside": self._sent.aside,
            "position": None if self._sent.position is None else str(self._sent.position),
            "resume": self._sent.trying[0].number if self._sent.trying else None,
        }


def _number(cause: BaseException, sent: Sent) -> int | None:
    """The number of the faulty line, if it is one line's fault."""
    row = cause.row if isinstance(cause, SchemaError) else None
    return sent.trying[row].number if row is not None and row < len(sent.trying) else None


def _place(cause: BaseException, sent: Sent, line: int | None) -> str:
    parts = [sent.origin]
    if line is not None:
        parts.append(f"{sent.unit} {line}")
    elif sent.trying:
        first, last = sent.trying[0].number, sent.trying[-1].number
        parts.append(f"{sent.unit} {first}" if first == last else f"{sent.unit}s {first} to {last}")
    if isinstance(cause, SchemaError) and cause.column is not None:
        parts.append(f"column {cause.column}")
    return ", ".join(parts)


def _stored(cause: BaseException, sent: Sent) -> str:
    """Exactly what is in the log. A batch whose append failed half-way may be, and is not claimed either way."""
    before = "nothing was stored"
    if sent.position is not None:
        aside = f" ({sent.aside} more set aside)" if sent.aside else ""
        place = f", at {sent.position}" if sent.position.ends else ""
        before = f"stored: {count(sent.rows, 'row')}{aside}, up to {sent.unit} {sent.last}{place}"
    if not sent.trying:
        return before
    first, last = sent.trying[0].number, sent.trying[-1].number
    if not isinstance(cause, SchemaError | SequenceGap):
        return f"{before}; {sent.unit}s {first} to {last} were sent but not acknowledged"
    return f"{before}; nothing from {sent.unit} {first} on" if sent.position is not None else before


def _again(sent: Sent, line: int | None) -> str:
    correct = "" if line is None else f"correct {sent.unit} {line}, then "
    start = f" from {sent.unit} {sent.trying[0].number} on" if sent.position is not None and sent.trying else ""
    return f"{correct}send again{start}" if correct or start else ""
