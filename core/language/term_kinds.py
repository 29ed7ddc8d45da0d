"""Term kinds: the kinds of `Terms`, and the constants that go with them.

========= ===================================================================================================
EMPTY     no string at all
EPSILON   the empty string
CHARS     one character of a class; the arguments are the code points at which membership flips
SEQ       concatenation: left (never a SEQ itself), right
ALT       union: parts in order, none of them an ALT
AND       intersection: parts in order, none of them an AND
NOT       complement, relative to all strings
REPEAT    bounded repetition: part, least, most (NONE: no upper bound)
WORDS     finitely many strings: a list, the range of its words, and the number of characters of each that are
          already read
MULTIPLE  decimal numbers that are whole multiples: of, places, remainder, decimals (see `Terms.multiples`)
DEFERRED  a term that is built when its derivative is needed: a unique number, a lower bound of its lengths
========= ===================================================================================================
"""

from __future__ import annotations

EMPTY_KIND, EPSILON_KIND, CHARS, SEQ, ALT, AND, NOT, REPEAT, WORDS, MULTIPLE, DEFERRED = range(11)

#: The first terms of every store.
EMPTY, EPSILON, ANY, ALL = range(4)

#: Traits of a term, as bits. REGULAR: built without intersection and complement, and does not contain itself.
NULLABLE, REGULAR, LIVE, DEAD = 1, 2, 4, 8

#: No upper bound.
NONE = -1

#: Values of ``decimals`` in a MULTIPLE before the decimal point: before the first digit, and after some digits.
NO_DIGITS, NO_POINT = -1, -2

#: Maximum bound of a repetition; a larger one counts as unbounded, because no text is that long.
MANY = 2**31 - 1

#: One more than the last code point.
END = 0x110000
#: The first surrogate, and one more than the last: code points that are not characters.
SURROGATES, SURROGATES_END = 0xD800, 0xE000

#: Maximum number of distinct terms in one store: about a hundred MB, and seconds of work.
MAX_TERMS = 200_000
