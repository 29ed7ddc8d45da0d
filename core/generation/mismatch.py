"""The longest prefix of a text that a grammar allows, and a description of what was expected after it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..errors import ToolGrammarError
from ..grammar import Grammar
from ..grammar.sampling import single_bytes
from ..masks.matcher import Matcher
from ..masks.promised import take
from ..repair import loose_json
from .json_places import JsonPlaces
from .partial import partial
from .tracer import describe

#: Maximum number of continuations in a description, and their length in characters.
MAX_NAMED = 8
MAX_LENGTH = 40

#: Number of characters before the position that are shown.
_SHOWN = 24


@dataclass(frozen=True)
class Match:
    """Result of matching a text with a grammar.

    Attributes:
        matches: it is a text of the grammar.
        size: number of characters of its longest prefix that is a prefix of a text of the grammar.
        expected: a description of the possible continuations after that prefix.
        pointer: JSON pointer of the value at the end of that prefix; None if the prefix is not JSON.
    """

    matches: bool
    size: int
    expected: str = ""
    pointer: str | None = None

    @classmethod
    def of(cls, grammar: Grammar, text: str) -> Match:
        """Match a text with a grammar."""
        matcher = grammar.bind(single_bytes()).matcher()
        size = 0
        for character in text:
            if not matcher.accept_bytes(character.encode("utf-8", "surrogatepass")):
                break
            size += 1
        if size == len(text) and matcher.is_accepting:
            return cls(True, size)
        pointer = JsonPlaces(text[:size] + "?").at(size)[0]  # any character there, as the beginning of the next value
        return cls(False, size, _expected(matcher), pointer)


_SPACE = frozenset(b" \t\r\n")

#: Names of white space, other than a single space, in a description.
_SIGNS = str.maketrans({"\t": "\\t", "\n": "\\n", "\r": "\\r"})


def _expected(matcher: Matcher) -> str:
    """Return a description of what may follow: of few bytes, each with the text that is forced after it (`` `true` or
    `null` ``); of many, the bytes (``a digit, }``)."""
    allowed = matcher.allowed_tokens()
    ends = ["the end of the text"] if matcher.is_accepting else []
    letters = [token for token in allowed if token < 256]
    if len(letters) > MAX_NAMED:
        return ", or ".join([describe(bytes(letters)), *ends])
    words = []
    # White space is allowed nearly everywhere, so it is not worth mentioning.
    for letter in [letter for letter in letters if letter not in _SPACE] or letters:
        take(matcher, letter)
        data = bytes((letter,)) + matcher.forced_bytes()
        matcher.rollback(1)
        text = data.decode("utf-8", "replace").translate(_SIGNS)
        words.append(f"`{text if len(text) <= MAX_LENGTH else text[:MAX_LENGTH] + '…'}`")
    return " or ".join([*words, *ends])


def where_it_stops(text: str, schema: Any) -> str:
    """Return a description, for a model, of the position at which a JSON text violates a schema, and of what is
    expected.

    Args:
        text: the answer of a model; the JSON begins at its first bracket.
        schema: JSON Schema of the value.

    Returns:
        A clause; empty if the text is valid, or if there is no such description.
    """
    places = [at for at in (text.find("{"), text.find("[")) if at >= 0]
    body = text[min(places, default=0) :]
    try:
        grammar = loose_json(schema)
        match = Match.of(grammar, body)
    except ToolGrammarError:
        return ""
    if match.matches:
        return ""
    place = f" (in {match.pointer})" if match.pointer else ""
    try:
        missing = partial(body[: match.size], grammar).missing[:MAX_NAMED]
    except ToolGrammarError:
        missing = ()
    more = f"; still missing: {', '.join(pointer for pointer in missing if pointer)}" if any(missing) else ""
    return f"after {body[max(0, match.size - _SHOWN) : match.size]!r}{place} comes {match.expected}{more}"
