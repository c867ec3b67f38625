"""How evaluating rows fails. The kind of an error says whose it is, never its words."""

from __future__ import annotations

from headwater.errors import HeadwaterError


class EvaluationFailed(HeadwaterError):
    """An expression without a value, and the row, as JSON, for which it has none."""

    def __init__(self, what: str, *, row: str = "", where: str = "", hint: str = "") -> None:
        self.row = row
        super().__init__(what, where=where, hint=hint)

    def __str__(self) -> str:
        told = super().__str__()
        return f"{told}, for the row {self.row}" if self.row else told


class OutOfMemory(EvaluationFailed):
    """An expression that took more memory than there was; maybe because of what was computed beside it."""


class TooMuchOfOne(EvaluationFailed):
    """One row of which more come than fit into memory: that with the number `place` among those evaluated."""

    def __init__(self, what: str, *, place: int = 0, row: str = "", where: str = "", hint: str = "") -> None:
        self.place = place
        super().__init__(what, row=row, where=where, hint=hint)


class OwnFault(HeadwaterError):
    """Our own code went wrong, whatever the rows: none of them is to blame, and none is set aside for it."""

    def __init__(self, said: str, *, where: str = "") -> None:
        at = f", at {where}" if where else ""
        super().__init__(f"this is a fault of Headwater: {said}{at}", hint="please report it")
