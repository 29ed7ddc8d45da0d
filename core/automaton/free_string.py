"""The automaton of the free JSON string (RFC 8259), a constant: COUNTED atoms step it, and count its characters."""

from __future__ import annotations

from array import array
from functools import cache

from ..language.terms import Terms
from .byte_rows import ByteRows
from .encoding import DEAD, DONE, LOCAL_DONE

#: The local states before the opening quote, and between two characters; the others are inside a character.
BEFORE, BETWEEN = 0, 1


@cache
def free_string() -> tuple[array[int], list[bytes]]:
    """Return the table of the local states, 256 entries each; and for each local state the shortest bytes that complete
    its character (and open the string, before the quote)."""
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
    return table, [rows.shortest(state)[:-1] for state in queue]
