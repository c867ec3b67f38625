"""The names of what is kept: arrangements, by whose they are, and candidates. They are made here alone.

A table has `t7`, a view `v8`; what an operator of a view keeps is below it (`v8/join1.left`), and so are its dead
letters. What views share has a name of its own. Nobody else puts such a name together or takes one apart.
"""

from __future__ import annotations

import uuid

LOG = "__log"
"""Behind the name of a topic: what was recorded of it."""
_CANDIDATE = "@next"
_SHARED = "~"
_LETTERS = "letters"


def state_of(kind: str, number: int) -> str:
    """The arrangement of a table's or view's own rows, by the number of its declaration; it owns those below it."""
    return f"{kind[0]}{number}"


def view_state(number: int) -> str:
    """The arrangement of a view's rows."""
    return state_of("view", number)


def table_state(number: int) -> str:
    """The arrangement of a table's rows."""
    return state_of("table", number)


def below(owner: str, name: str) -> str:
    """What an owner keeps under a name: of an operator, for instance."""
    return f"{owner}/{name}"


def is_below(arrangement: str, owner: str) -> bool:
    """Whether an arrangement is one of those that an owner keeps beside its rows."""
    return arrangement.startswith(f"{owner}/")


def owner_of(arrangement: str) -> str:
    """Whose an arrangement is: a table's, a view's, or of something shared."""
    return arrangement.partition("/")[0]


def is_of_table(arrangement: str) -> bool:
    """Whether a table owns it."""
    return arrangement.startswith("t")


def letters_of(owner: str) -> str:
    """The arrangement of the dead letters of a view."""
    return below(owner, _LETTERS)


def is_of_relation(arrangement: str) -> bool:
    """Whether it has the rows of a relation, or of something shared: not what an operator keeps."""
    owner = owner_of(arrangement)
    return arrangement in {owner, letters_of(owner)}


def difference_of(arrangement: str) -> str:
    """Where what changes when one version takes another's place is put together, within a tick."""
    return below(arrangement, "difference")


def caught_up(arrangement: str, number: int) -> str:
    """Where the changes of several ticks are put together, within a tick."""
    return below(arrangement, f"caught up {number}")


def new_shared() -> str:
    """A name for something that views are to share, which no other has."""
    return _SHARED + uuid.uuid4().hex[:12]


def is_shared(name: str) -> bool:
    """Whether this is the name of something that views share, or of an arrangement of that."""
    return name.startswith(_SHARED)


def candidate_of(view: str) -> str:
    """The name under which what is to replace a view is declared."""
    return view + _CANDIDATE


def is_candidate(name: str) -> bool:
    """Whether this is the name of what is to replace a view."""
    return name.endswith(_CANDIDATE)


def base_of(name: str) -> str:
    """The name of the view itself, also of what is to replace it."""
    return name.removesuffix(_CANDIDATE)
