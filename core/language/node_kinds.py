"""Node kinds: the kinds of `Nodes`, and the constants that go with them.

========= =======================================================================================
EMPTY     no text at all
EPSILON   the empty text
LITERAL   exactly these bytes
TEXT      a regular language of decoded text (a term), spelled as UTF-8 or as a JSON string
COUNTED   a JSON string of bounded length (a counter, not one state for each character)
SPECIAL   a control token, by name; it has no bytes
SEQ       concatenation of two nodes
ALT       union
REPEAT    bounded repetition
WORDS     many literals, each with its own continuation, kept sorted (enumerations, property names)
LAZY      a reference to a rule, expanded on first use, so recursion costs nothing before;
          *stateful* bodies (objects, arrays) are rules whose key holds what was already written
DYNAMIC   a *dependent* node: the node that it stands for is computed from the text so far
========= =======================================================================================
"""

from __future__ import annotations

#: The order matters: the kinds up to DYNAMIC are atomic (their own heads).
LITERAL, TEXT, COUNTED, SPECIAL, DYNAMIC, EMPTY_KIND, EPSILON_KIND, SEQ, ALT, REPEAT, WORDS, LAZY = range(12)

#: Maximum number of bytes of a literal that is joined from adjacent ones.
MAX_JOINED = 128

#: Stands for a control token in the text so far: a byte that is not in UTF-8.
CONTROL = b"\xff"

#: Name of a control token that no vocabulary has: in a planned completion, one token of a value that is not known yet.
RESERVED = "\0reserved"

#: Maximum number of nodes in one store.
MAX_NODES = 1_000_000

#: Additional nodes and terms in a store of many grammars, which also holds those of the other grammars.
SHARED_ROOM = 200_000

#: Smallest bound that counts as unbounded: no text has so many bytes or items.
ENDLESS = 2**31 - 1

#: The columns of a node's row in its store, and their number.
#:
#: - KIND.
#: - A, B, C: the arguments, by kind. LITERAL, SPECIAL: the index of its bytes or name. SEQ: two nodes. ALT: the index
#:   of its parts, and their number. REPEAT, COUNTED: part, least, most (-1: no bound). WORDS: first and last word, and
#:   the number of bytes of each that are already read. LAZY: the index of its rule, the node that is empty iff it is
#:   (-1: none; `UNASKED`: its family knows it), and the expansion plus one (before it, 0; of a rule of a family, -1
#:   minus its number). DYNAMIC: the index of its resolver, its static node, and what it may forbid.
#: - HAS_TEXT, NULLABLE: NO or YES, 0 if not known yet.
#: - HEADS: the index of its heads plus one; 0 if not known yet, SEARCHED while they are searched.
#: - MARK: 0; while a search visits it, its frame plus one; while its "no" is provisional, minus the number of that
#:   answer, from 1 (see `Nodes._search`).
KIND, A, B, C, HAS_TEXT, NULLABLE, HEADS, MARK, WIDTH = range(9)

#: Values of HAS_TEXT and NULLABLE; and the results of `Nodes._child` that are not nodes.
NO, YES = 1, 2
ANSWER_NO, ANSWER_YES = -1, -2

#: The value of HEADS while the heads of a node are searched.
SEARCHED = -1

#: The value of B of a LAZY node of a family before its emptiness is asked for.
UNASKED = -2

#: The first nodes of every store.
EMPTY, EPSILON = 0, 1

#: Continuations that a dependent node may forbid: some, but never all; one that repeats the name (or the string in an
#: array) just written; all; some or all after a string that an earlier item has in the same member (`DistinctObjects`).
SOME, REPEATED_NAMES, ALL, RIVALS = 0, 1, 2, 3
