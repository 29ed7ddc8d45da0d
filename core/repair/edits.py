"""Edits of a broken text, and their costs: one changed character of a value costs 1, a change of spelling little."""

from __future__ import annotations

from typing import NamedTuple

#: Costs: of a change that keeps the value, of one that almost certainly keeps it, and of one changed character.
SPELLING, LIKELY, EDIT = 0.01, 0.2, 1.0

#: Default maximum cost of all edits: `MAX_COST` plus `MAX_EACH` for each ``{`` and each ``:`` of the text (at most 8
#: colons for a brace). Prose has few of them, and must not become an answer.
MAX_COST, MAX_EACH = 3.0, 0.4

#: Maximum further cost of other readings, once the text was read to its end and lacks values there.
MOST_BESIDE_CUT = 1.2

#: Default maximum cost for a text without brackets.
MAX_COST_OF_WORDS = 1.2

#: Added to the maximum cost if values may be invented.
MAX_INVENTED = 100.0

#: Costs of an inserted byte: one that the grammar forces, and one of a free choice.
MARKUP, INVENTED = 0.02, 3.0

#: Costs: of leaving out a member, of leaving out a member whose name is near no possible name, and of replacing a name
#: by the only possible name.
UNKNOWN_MEMBER, STRANGE_MEMBER, ONLY_NAME = 2.5, 1.0, 2.6

#: Costs of a name or constant that is written otherwise: in case and marks, and as the beginning of the word, or with
#: more after it.
MARKS, BEGINNING = 0.05, 0.6

#: Cost of leaving out space, fences and closing brackets after the answer.
COST_OF_FENCES = 0.1

#: Costs: of an inserted text that the grammar forces, besides its bytes (`MARKUP`); of a comma or colon between a quote
#: and a letter; and of a closing bracket before a comma that was read.
MISSING_MARKUP, AFTER_QUOTE, BEFORE_COMMA = 0.3, 0.9, 0.75

#: Costs: of leaving out a letter or digit; of each byte of a piece that is left out, besides `EDIT`; and of another
#: character.
OF_WORD, OF_PIECE, WRONG = 1.6, 0.05, 1.1

#: Costs of inserted punctuation.
INSERTED = (
    (b",", 0.6),
    (b":", 0.6),
    (b'"', 0.8),
    (b"}", 0.7),
    (b"]", 0.7),
    (b"{", 0.9),
    (b"[", 0.9),
)


class Change(NamedTuple):
    """One edit of a text.

    Attributes:
        begin, end: the bytes of the broken text that it replaces.
        text: the new text.
        cost: the cost of the change.
        why: the mistake, for users.
        is_invented: the new text follows neither from the broken text nor from the grammar.
        is_cut: it completes a broken text that could have continued otherwise.
    """

    begin: int
    end: int
    text: bytes
    cost: float
    why: str
    is_invented: bool = False
    is_cut: bool = False


def cost_of_prose(text: bytes) -> float:
    """Return the cost of leaving out text around the answer: little, unless it looks like an answer itself."""
    return 0.3 + 0.001 * len(text) + 0.5 * (text.count(b"{") + text.count(b":"))
