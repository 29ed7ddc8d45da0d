"""The DFA of the free JSON string (RFC 8259), a constant; a COUNTED atom is this DFA with a counter of characters."""

from __future__ import annotations

from array import array
from functools import cache

from ..language.terms import Terms
from .byte_rows import ByteRows
from .encoding import DEAD, DONE, LOCAL_DONE

#: The states before the opening quote, and between two characters; all others are inside a character.
BEFORE, BETWEEN = 0, 1


@cache
def free_string() -> tuple[array[int], list[bytes]]:
    """Return the transition table, 256 entries for each state; and for each state the shortest bytes that complete its
    character (or, before the opening quote, that open the string)."""
    terms = Terms()
    rows = ByteRows(terms)
    number = {rows.start(terms.ALL, True): BEFORE, rows.body(terms.ALL, True): BETWEEN}
    queue = list(number)
    table = array("b")
    for state in queue:
        for target in rows.row(state):
            if target not in number and target not in (DEAD, DONE):
                number[target] = len(number)
                queue.append(target)
            table.append(LOCAL_DONE if target == DONE else DEAD if target == DEAD else number[target])
    return table, [rows.shortest(state)[:-1] for state in queue]  # without the closing quote
