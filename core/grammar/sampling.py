"""Random texts of a grammar: readable examples of what it allows, from one seeded source."""

from __future__ import annotations

import random
from functools import cache
from typing import TYPE_CHECKING, Any

from ..masks.promised import take
from ..vocabulary.vocabulary import Vocabulary

if TYPE_CHECKING:
    from ..masks import Matcher

#: From this length on, in bytes, the shortest end is written.
LENGTH = 400

#: Weights of bytes in free text: common letters, and an early end of a string; every other byte has 0.02.
_IN_TEXT = [0.02] * 256
#: Weights elsewhere: brackets close soon, and white space is rare.
_BETWEEN = [1.0] * 256
for _table, _bytes, _weight in (
    (_IN_TEXT, b"etaoinshrdlu", 12.0),
    (_IN_TEXT, b"bcfgjkmpqvwxyzETAOINSHRDLU0123456789", 3.0),
    (_IN_TEXT, b" -_.,", 2.0),
    (_IN_TEXT, b'"', 40.0),
    (_BETWEEN, b"]}", 2.0),
    (_BETWEEN, b",", 4.0),
    (_BETWEEN, b" \n\r\t+eE", 0.2),
):
    for _byte in _bytes:
        _table[_byte] = _weight


#: Maximum weight of the end of a text.
_END = 8.0


#: The token that ends a text in `single_bytes`.
_END_OF_TEXT = 256


@cache
def single_bytes() -> Vocabulary:
    """Return the vocabulary whose token ``b`` is the byte ``b``; and one that ends a text."""
    return Vocabulary([*(bytes((byte,)) for byte in range(_END_OF_TEXT)), None], eos=[_END_OF_TEXT])


def random_text(grammar: Any, source: random.Random, length: int | None = None) -> str:
    """Return a random text of a grammar; equal sources give equal texts.

    Args:
        grammar: a `Grammar` of texts without control tokens (the class imports this module).
        source: of the randomness.
        length: from this length on, in bytes, the text ends as soon as it may; None: `LENGTH`.

    Raises:
        ToolGrammarError: the grammar has no text.
    """
    matcher = grammar.bind(single_bytes()).matcher()
    written = bytearray()
    length = LENGTH if length is None else length
    while not matcher.is_finished:
        forced = matcher.forced_bytes()
        if forced:
            take(matcher, forced)
            written += forced
            continue
        if len(written) >= length and (matcher.is_accepting or _at_character(written)):
            written += matcher.shortest_completion()
            break
        byte = _choice(matcher, source)
        if byte == _END_OF_TEXT:
            break
        take(matcher, byte)
        written.append(byte)
    return written.decode("utf-8", "replace")


def _choice(matcher: Matcher, source: random.Random) -> int:
    """Return an allowed byte or `_END_OF_TEXT`, drawn by weight."""
    allowed = matcher.allowed_tokens()
    weights = _IN_TEXT if ord("q") in allowed and ord("x") in allowed else _BETWEEN  # rare letters: free text
    chances = [weights[token] if token < _END_OF_TEXT else 0.0 for token in allowed]
    end = min(_END, sum(chances)) or 1.0  # a text that may go on does so at least half the time
    return source.choices(allowed, [chance or end for chance in chances])[0]


def _at_character(written: bytearray) -> bool:
    """Return True if a text does not end inside a character."""
    try:
        written[-4:].decode()
    except UnicodeDecodeError:
        return written[-1] < 128
    return True
