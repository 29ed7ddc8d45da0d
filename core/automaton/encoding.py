"""Bit encoding of positions and states: the integers that separately compiled modules agree on.

``setup.py`` declares them as constants of C when it builds those modules.
"""

from __future__ import annotations

#: The first bit of the tag in a position, which is one integer of 64 bits.
TAG = 60

#: The tags: a row state (see ``byte_rows.py``); an offset into the pool of literals, each ended by POOL_END; a JSON
#: string whose characters are counted; a control token; a place whose continuation depends on the text so far (see
#: `Automaton.resolve`).
ROW, LITERAL, COUNTED, SPECIAL, DYNAMIC = range(5)
POOL_END = 256

#: No upper bound on the characters of a counted string.
UNBOUNDED = 0xFFFFFFFF

#: States of the free JSON string: between two characters, and after the closing quote.
LOCAL_BODY, LOCAL_DONE = 1, 127

#: In a row: the byte is not allowed.
DEAD = -1

#: Results of a step: no text continues so; ``OPENED - n``: the text met a DYNAMIC place after byte ``n``.
REFUSED, OPENED = -1, -2

#: States of a matcher, which is never at an open state: ended by an end-of-text token; a step not taken before.
FINISHED, UNKNOWN = -2, -3

#: Results of a search for the only byte that may be next: none seen yet; several.
NO_BYTE, SEVERAL = -1, -2

#: The row state of a complete text that nothing can follow.
DONE = 0

#: Kinds of row states: before the opening quote; between two characters, raw or in a JSON string. (There are more.)
OPEN, RAW, QUOTED = 1, 2, 3

#: Number of facts of a row state, and their order: the index of its row (-1: not derived yet); 1 if the text may end
#: there; if a bounded repetition of one class and the closing quote follow, the number of the class plus one (else 0)
#: and the bounds (MOST -1: none).
FACTS = 8
ROW_AT, MAY_END, CLASS, LEAST, MOST = range(5)

#: The rows lie in blocks of ``1 << BLOCK`` numbers, 16 rows each.
BLOCK = 12
IN_BLOCK = (1 << BLOCK) - 1

#: Groups of bytes (see `trie`), each a bit: parts of non-ASCII characters, those of white space, and bytes that no
#: state may be asked about.
HIGH, SEPARATOR, OTHER = 1 << 61, 1 << 62, 1 << 63
