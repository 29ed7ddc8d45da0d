"""Bit encoding of positions and states: the integers that separately compiled modules agree on.

``setup.py`` declares them as constants of C when it builds those modules.
"""

from __future__ import annotations

#: A position is one integer of 64 bits: a tag from bit TAG, and what the tag says of the bits below.
TAG = 60

#: The tags, and the meaning of the bits below: a row state (see ``byte_rows.py``); an offset into the pool of literals,
#: each ended by POOL_END; a position in a JSON string of bounded length (below); the number of a control token; a
#: dependent node, which `Automaton.resolve` replaces.
ROW, LITERAL, COUNTED, SPECIAL, DYNAMIC = range(5)
POOL_END = 256

#: Mask of the low 32 bits of a position: the offset, number or node of LITERAL, SPECIAL and DYNAMIC.
PAYLOAD = 0xFFFFFFFF

#: Fields of a COUNTED position: from bit NUMBER_AT, the number of the string's bounds (`Positions.least`, `most`); from
#: bit WRITTEN_AT, 32 bits, the number of characters so far; below, 8 bits, the state in the free JSON string.
NUMBER_AT, WRITTEN_AT = 40, 8
NUMBER_MASK, LOCAL_MASK = 0xFFFFF, 0xFF

#: No upper bound on the characters of a counted string; also the mask of the 32 bits of WRITTEN_AT.
UNBOUNDED = 0xFFFFFFFF

#: States of the free JSON string: between two characters, and after the closing quote.
LOCAL_BODY, LOCAL_DONE = 1, 127

#: In a row: the byte is not allowed.
DEAD = -1

#: Results of a step: no text continues with these bytes; ``OPENED - n``: a dependent node was reached after byte ``n``.
REFUSED, OPENED = -1, -2

#: Values of a matcher's state besides (closed) states: after an end-of-text token; a step that is not memoised.
FINISHED, UNKNOWN = -2, -3

#: Results of a search for the only possible next byte: none so far; several.
NO_BYTE, SEVERAL = -1, -2

#: The row state of a complete text, without continuations.
DONE = 0

#: Kinds of row states: before the opening quote; between two characters, raw or in a JSON string. (There are more.)
OPEN, RAW, QUOTED = 1, 2, 3

#: Number of facts of a row state, and their order: the index of its row (-1: not derived yet); 1 if the text may end in
#: this state; if exactly C{m,n} and the closing quote follow, the number of C plus one (else 0), m, and n (-1:
#: unbounded).
FACTS = 8
ROW_AT, MAY_END, CLASS, LEAST, MOST = range(5)

#: Rows are stored in blocks of ``1 << BLOCK`` numbers, which are 16 rows each.
BLOCK = 12
IN_BLOCK = (1 << BLOCK) - 1

#: Byte groups (see `trie`), each a bit: bytes of non-ASCII characters, those of non-ASCII white space, and bytes at
#: which the subtree test does not apply.
HIGH, SEPARATOR, OTHER = 1 << 61, 1 << 62, 1 << 63
