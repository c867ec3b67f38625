"""Every error that a user can meet: what failed, where, what to do next, and whether trying again can help."""

from __future__ import annotations


def _again(kind: type[Exception], arguments: tuple[object, ...], state: dict[str, object]) -> Exception:
    error = kind.__new__(kind, *arguments)
    vars(error).update(state)
    return error


class HeadwaterError(Exception):
    """The root of all our errors.

    `what` failed, `where` it happened, a `hint` on what to do, and `retry`: whether the same call may succeed
    later without anything being changed.
    """

    retry_by_default = False

    def __init__(self, what: str, *, where: str = "", hint: str = "", retry: bool | None = None) -> None:
        self.what = what
        self.where = where
        self.hint = hint
        self.retry = self.retry_by_default if retry is None else retry
        super().__init__(self.__str__())

    def __str__(self) -> str:
        place = f"{self.where}: " if self.where else ""
        advice = f" ({self.hint})" if self.hint else ""
        return f"{place}{self.what}{advice}"

    def __reduce__(self) -> tuple[object, ...]:
        """So that an error raised in a worker process arrives as it was."""
        return _again, (type(self), self.args, dict(vars(self)))

    def as_dict(self) -> dict[str, object]:
        """The error as plain data, for `--json` and the wire."""
        extra = {k: v for k, v in vars(self).items() if k not in {"what", "where", "hint", "retry"}}
        return {
            "error": type(self).__name__,
            "what": self.what,
            "where": self.where,
            "hint": self.hint,
            "retry": self.retry,
            **{k: v if isinstance(v, int | float | str | None) else str(v) for k, v in extra.items()},
        }


class SchemaError(HeadwaterError):
    """A schema that cannot be read, or a row that does not fit its topic. `row` counts from 0."""

    def __init__(
        self, what: str, *, row: int | None = None, column: str | None = None, where: str = "", hint: str = ""
    ) -> None:
        self.row = row
        self.column = column
        super().__init__(what, where=where, hint=hint)

    def __str__(self) -> str:
        place = [self.where] if self.where else []
        if self.row is not None:
            place.append(f"row {self.row}")
        if self.column is not None:
            place.append(f"column {self.column}")
        advice = f" ({self.hint})" if self.hint else ""
        return f"{', '.join(place)}: {self.what}{advice}" if place else f"{self.what}{advice}"


class ViewRefused(HeadwaterError):
    """A view that cannot be maintained. `position` is (line, column) in its SQL, counted from 1."""

    def __init__(
        self, what: str, *, position: tuple[int, int] | None = None, where: str = "", hint: str = ""
    ) -> None:
        self.position = position
        super().__init__(what, where=where, hint=hint)


class ViewSuspended(HeadwaterError):
    """A view that stopped being maintained because evaluating it failed."""


class VersionExpired(HeadwaterError):
    """A version that is no longer kept; `oldest` is the oldest that is."""

    def __init__(self, what: str, *, oldest: int, where: str = "", hint: str = "") -> None:
        self.oldest = oldest
        super().__init__(what, where=where, hint=hint)


class NotReached(HeadwaterError):
    """A wait that timed out before what it waited for had happened."""

    retry_by_default = True


class LeaseHeld(HeadwaterError):
    """Another process drives this pipeline; `holder` says which."""

    retry_by_default = True

    def __init__(self, what: str, *, holder: str, where: str = "", hint: str = "") -> None:
        self.holder = holder
        super().__init__(what, where=where, hint=hint)


class Fenced(HeadwaterError):
    """This process was replaced, as the driver or as the reader of a cursor; what it tried did not happen."""


class SequenceGap(HeadwaterError):
    """A producer skipped a sequence number: the batch in between is missing."""


class LogDamaged(HeadwaterError):
    """Bytes that were known to be on disk are missing or changed; `segment` and `byte` say where."""

    def __init__(self, what: str, *, segment: str, byte: int, hint: str = "") -> None:
        self.segment = segment
        self.byte = byte
        super().__init__(what, where=f"{segment} at byte {byte}", hint=hint)


class DeclarationChanged(HeadwaterError):
    """A name is already declared differently."""


class Unavailable(HeadwaterError):
    """A part that is missing or out of order: Java, the disk, a server."""
