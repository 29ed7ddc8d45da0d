"""Node kinds: the kinds of `Nodes`, and the constants that go with them.

========= =======================================================================================
EMPTY     no text at all
EPSILON   the empty text
LITERAL   exactly these bytes
TEXT      a regular language of decoded text (a term), spelled as UTF-8 or as a JSON string
COUNTED   a JSON string of bounded length (its characters are counted, not unrolled)
SPECIAL   a control token, by name; it has no bytes
SEQ       concatenation of two nodes
ALT       union
REPEAT    bounded repetition
WORDS     many literals, each with its own continuation, kept sorted (enumerations, property names)
LAZY      a reference to a rule, expanded when first met, so recursion costs nothing until then;
          *stateful* bodies (objects, arrays) are rules whose key says what was already written
DYNAMIC   a *dependent* node: the node that it stands for is computed from the text so far
========= =======================================================================================
"""

from __future__ import annotations

#: In an order that matters: the kinds up to DYNAMIC are atomic, which means that they are heads of themselves.
LITERAL, TEXT, COUNTED, SPECIAL, DYNAMIC, EMPTY_KIND, EPSILON_KIND, SEQ, ALT, REPEAT, WORDS, LAZY = range(12)

#: Maximum number of bytes up to which neighbouring literals are joined.
MAX_JOINED = 128

#: The mark of a control token in the text so far: a byte that no text in UTF-8 has.
CONTROL = b"\xff"

#: Maximum number of nodes in one store.
MAX_NODES = 1_000_000

#: Additional nodes and terms in a store that many grammars share, where others have left theirs.
SHARED_ROOM = 200_000

#: Minimum of the bounds that count as unbounded: no text has that many bytes or items.
ENDLESS = 2**31 - 1

#: The columns of a node's row in its store, and their number.
#:
#: - KIND.
#: - A, B, C: the arguments, by kind. LITERAL, SPECIAL: the index of its bytes or name. SEQ: two nodes. ALT: the index
#:   of its parts, and their number. REPEAT, COUNTED: part, least, most (-1: no bound). WORDS: first and last word, and
#:   the number of bytes that are left out of each. LAZY: the index of its rule, the node that is empty iff it is (-1:
#:   none), and the expansion plus one. DYNAMIC: the index of its resolver, its static node, and 1 if it only forbids
#:   repeated names.
#: - HAS_TEXT, NULLABLE: NO or YES, 0 if not known yet.
#: - HEADS: the index of its heads plus one; 0 if not known yet, SEARCHED while they are searched.
#: - MARK: its place in a search.
KIND, A, B, C, HAS_TEXT, NULLABLE, HEADS, MARK, WIDTH = range(9)

#: Answers of HAS_TEXT and NULLABLE; and of a search, where nodes are not negative.
NO, YES = 1, 2
ANSWER_NO, ANSWER_YES = -1, -2

#: The value of HEADS while the heads of a node are searched.
SEARCHED = -1

#: The first nodes of every store.
EMPTY, EPSILON = 0, 1
