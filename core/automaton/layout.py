"""How row states are written down: what `rowtable` keeps and the kernel reads."""

from __future__ import annotations

#: In a row: no valid text goes on so.
DEAD = -1

#: The row state in which the text is complete and nothing can follow.
DONE = 0

#: Kinds of row states: before the opening quote; between two characters, raw or in a JSON string. (There are more.)
OPEN, RAW, QUOTED = 1, 2, 3

#: How many numbers are kept of a state; the first are where its row is (-1: not derived yet), whether the text may end
#: there, and, if so many characters of one class follow and then the closing quote, the number of the class plus one
#: (else 0) and the bounds (most -1: none).
FACTS = 8
ROW_AT, MAY_END, CLASS, LEAST, MOST = range(5)
