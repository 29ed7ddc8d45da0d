"""What nodes there are: the kinds of `Nodes`, and the constants that go with them.

========= =======================================================================================
EMPTY     no text at all
EPSILON   the empty text
LITERAL   exactly these bytes
TEXT      a regular language of decoded text (a term), spelled as UTF-8 or as a JSON string
COUNTED   a JSON string of between so many and so many characters (counted, not unrolled)
SPECIAL   a control token, by name; it has no bytes
SEQ       concatenation of two nodes
ALT       union
REPEAT    bounded repetition
WORDS     many literals, each with its own continuation, kept sorted (enumerations, property names)
LAZY      a reference to a rule, expanded when first met, so recursion costs nothing until then;
          *stateful* bodies (objects, arrays) are rules whose key says what was already written
DYNAMIC   a place without text of its own, at which what follows is computed from the text so far
========= =======================================================================================
"""

from __future__ import annotations

#: The order counts: the atomic kinds, which stand for themselves at the beginning of a text, are those up to DYNAMIC.
LITERAL, TEXT, COUNTED, SPECIAL, DYNAMIC, EMPTY_KIND, EPSILON_KIND, SEQ, ALT, REPEAT, WORDS, LAZY = range(12)

#: Kinds of DYNAMIC places, by what they may forbid. AFTER_NAME: nothing but a name that was just repeated. BEYOND: not
#: what was just written, but something of what follows. HERE: both.
AFTER_NAME, BEYOND, HERE = 1, 2, 3

#: Neighbouring literals are joined up to this many bytes.
MAX_JOINED = 128

#: Stands for a control token in the text so far: a byte that no text in UTF-8 has.
CONTROL = b"\xff"

#: Maximum number of nodes in one store.
MAX_NODES = 300_000

#: Additional nodes and terms in a store that many grammars share, where others have left theirs.
SHARED_ROOM = 200_000

#: More bytes or items than any text will ever have: bounds beyond are none.
ENDLESS = 2**31 - 1

#: The columns of a node's row in its store: its kind; its arguments (by kind: LITERAL, SPECIAL, LAZY and DYNAMIC: where
#: its bytes, name or rule stand; SEQ: two nodes; ALT: where its parts begin, and how many; REPEAT and COUNTED: part,
#: least, most or -1; WORDS: first and last word, and from which byte on; LAZY: the node that is empty iff it is or -1,
#: and what it expands to plus one; DYNAMIC: its static node, and its own kind); whether it has a text, and
#: the empty text (0: not known yet); where its heads begin plus one (0: not known yet, -1: being looked for); where it
#: is in a search. And how many columns there are.
KIND, A, B, C, HAS_TEXT, NULLABLE, HEADS, MARK, WIDTH = range(9)

#: Values of the columns of queries once they are answered.
NO, YES = 1, 2

#: The first nodes of every store.
EMPTY, EPSILON = 0, 1
