"""How far a text goes under a grammar, and what was expected where it stops, in words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..errors import ToolGrammarError
from ..grammar import Grammar
from ..grammar.sampling import single_bytes
from ..masks.matcher import Matcher
from .json_places import Places
from .partial import partial
from .tracer import describe

#: Maximum number of continuations that are named, and their length in characters.
MAX_NAMED = 8
MAX_LENGTH = 40

#: Number of characters before the place that are shown.
_SHOWN = 24


@dataclass(frozen=True)
class Match:
    """How far a text goes.

    Attributes:
        matches: it is a text of the grammar.
        size: number of its first characters with which a text of the grammar may begin.
        expected: what may come there, in words.
        pointer: JSON pointer of the value there; None if the text is no JSON up to there.
    """

    matches: bool
    size: int
    expected: str = ""
    pointer: str | None = None


def match_text(grammar: Grammar, text: str) -> Match:
    """Return how far a text goes under a grammar."""
    matcher = grammar.bind(single_bytes()).matcher()
    size = 0
    for character in text:
        if not matcher.accept_bytes(character.encode("utf-8", "surrogatepass")):
            break
        size += 1
    if size == len(text) and matcher.is_accepting:
        return Match(True, size)
    pointer = Places(text[:size] + "?").at(size)[0]
    return Match(False, size, _expected(matcher), pointer)


_SPACE = frozenset(b" \t\r\n")

#: White space other than a single one, as it is named in a list of what may come.
_SIGNS = str.maketrans({"\t": "\\t", "\n": "\\n", "\r": "\\r"})


def _expected(matcher: Matcher) -> str:
    """Return what may come next, in words: whole continuations where there are few."""
    allowed = matcher.allowed_tokens()
    ends = ["the end of the text"] if matcher.is_accepting else []
    letters = [token for token in allowed if token < 256]
    if len(letters) > MAX_NAMED:
        return ", or ".join([describe(bytes(letters)), *ends])
    words = []
    # White space may come nearly anywhere, and is nothing to wait for.
    for letter in [letter for letter in letters if letter not in _SPACE] or letters:
        matcher.accept(letter)
        data = bytes((letter,)) + matcher.forced_bytes()
        matcher.rollback(1)
        text = data.decode("utf-8", "replace").translate(_SIGNS)
        words.append(f"`{text if len(text) <= MAX_LENGTH else text[:MAX_LENGTH] + '…'}`")
    return " or ".join([*words, *ends])


def where_it_stops(text: str, schema: Any) -> str:
    """Return where a JSON text leaves a schema, and what is expected there, for a model to read.

    Args:
        text: what a model wrote; the JSON begins at its first bracket.
        schema: JSON Schema of the value.

    Returns:
        A clause; empty if the text is one of the schema, or that cannot be said.
    """
    places = [at for at in (text.find("{"), text.find("[")) if at >= 0]
    body = text[min(places, default=0) :]
    try:
        grammar = Grammar.from_json_schema(
            schema, whitespace="flexible", property_order="any", on_unsupported="validate"
        )
        match = match_text(grammar, body)
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
