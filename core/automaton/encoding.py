"""Bit encoding of positions: numbers that separately compiled modules agree on.

In those they are constants of C: when they are built, ``setup.py`` declares what is said here.
"""

from __future__ import annotations

#: The position of an atom is one integer of 64 bits; the bits from here on say what it is.
TAG = 60

#: The tags: a state of `ByteRows` in ``byte_rows.py``; an offset into the pool of literals (they are laid down
#: whole, not as states), where what is no byte ends one; a JSON string with a count of characters that is computed, not
#: unrolled; a control token; and a place where what follows depends on the text so far (see `Automaton.resolve`).
ROW, LITERAL, COUNTED, SPECIAL, DYNAMIC = range(5)
POOL_END = 256

#: No upper bound on the characters of a counted string.
UNBOUNDED = 0xFFFFFFFF

#: In the automaton of the free JSON string: between two characters, and behind the closing quote.
LOCAL_BODY, LOCAL_DONE = 1, 127

#: In a row: the text cannot go on with this byte.
DEAD = -1

#: For a state: no text goes on so; and, less the number of a byte, the text met a DYNAMIC place after that byte.
REFUSED, OPENED = -1, -2

#: The row state in which the text is complete and nothing can follow.
DONE = 0

#: Kinds of row states: before the opening quote; between two characters, raw or in a JSON string. (There are more.)
OPEN, RAW, QUOTED = 1, 2, 3

#: Number of facts kept of a row state; the first are where its row is (-1: not derived yet), whether the text may end
#: there, and, if so many characters of one class follow and then the closing quote, the number of the class plus one
#: (else 0) and the bounds (most -1: none).
FACTS = 8
ROW_AT, MAY_END, CLASS, LEAST, MOST = range(5)

#: The rows lie in blocks of ``1 << BLOCK`` numbers, 16 rows each.
BLOCK = 12
IN_BLOCK = (1 << BLOCK) - 1

#: Groups of bytes (see `trie`), each a bit: parts of characters beyond ASCII, those of U+2028 and U+2029, and all that
#: no state may be asked for.
HIGH, SEPARATOR, OTHER = 1 << 61, 1 << 62, 1 << 63
