"""Length bounds: a language of strings with a length bound, as an unbounded language A and the bound.

The product of ``^(\\S+\\s+)*\\S+$`` and ``maxLength: 500`` has a state for each number of remaining characters, each
with its own row. But the bound matters only near its end. Let ``A`` be the language without the bound, and let
``margin`` be a number of characters that suffices to complete every prefix of a string in ``A``. A prefix of ``n``
characters

- has a completion of at most ``most`` characters in all if ``n + margin <= most``, and none if ``n > most``;
- is itself in the bounded language iff it is in ``A`` and ``least <= n <= most``.

A minimum length does not change the first point if each string of ``A`` is a prefix of another that is one character
longer, because the completion can then be extended to ``least``. Only prefixes of ``most - margin < n <= most``
characters need the states of the product.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from ..language import term_kinds
from ..language.queries import excluded_words

if TYPE_CHECKING:
    from ..language.terms import Terms

#: The least length and the margin of a term; None if it has a part for which they are not computed.
Lengths = tuple[int, int] | None

#: Maximum nesting of terms for which margins are computed.
_DEEP = 50


class Bounded(NamedTuple):
    """A language of strings with a length bound (see the docstring of the module).

    Attributes:
        unbounded: the language without the bound, ``A``, as a term.
        least: minimum number of characters.
        most: maximum number of characters.
        margin: a number of characters that suffices to complete every prefix of a string in ``A``.
    """

    unbounded: int
    least: int
    most: int
    margin: int


def without_bound(terms: Terms, term: int, known: dict[int, Lengths]) -> Bounded | None:
    """Return a term as a language with a length bound; None if it has no such bound, or the margin is not known.

    Args:
        terms: the store.
        term: the term.
        known: memoised lengths of terms.
    """
    alone = terms.length_bounds(term)
    if alone is not None and alone[1] is not None:  # all strings of these lengths
        return Bounded(terms.ALL, alone[0], alone[1], 0)
    kind, args = terms.shape(term)
    if kind != term_kinds.AND or len(args) != 2:
        return None
    for part, bound in (args, args[::-1]):
        bounds = terms.length_bounds(bound)
        if bounds is None:
            continue
        least, most = bounds
        lengths = _lengths(terms, part, known, 0)
        if lengths is None or most is None or (least > 0 and not _is_extensible(terms, part)):
            return None
        return Bounded(part, least, most, lengths[1])
    return None


def _lengths(terms: Terms, term: int, known: dict[int, Lengths], depth: int) -> Lengths:
    """Return the least length and the margin of a term without intersection and complement.

    One complement is allowed, that of finitely many words: appending some character to an excluded word gives an
    allowed string, so the margin is 1."""
    if term in known:
        return known[term]
    kind, args = terms.shape(term)
    found: Lengths = None
    if kind == term_kinds.CHARS:
        found = 1, 1
    elif kind == term_kinds.EPSILON_KIND:
        found = 0, 0
    elif kind == term_kinds.WORDS:
        sizes = [len(word) for word in args]
        found = min(sizes), max(sizes)
    elif (lacking := excluded_words(terms, term)) is not None:
        found = int("" in lacking), 1
    elif kind in (term_kinds.SEQ, term_kinds.ALT, term_kinds.REPEAT) and depth < _DEEP:
        parts = [args[0]] if kind == term_kinds.REPEAT else list(args)
        while (
            kind == term_kinds.SEQ and terms.shape(parts[-1])[0] == term_kinds.SEQ
        ):  # iterative: there may be thousands of parts
            parts[-1:] = terms.shape(parts[-1])[1]
        lengths = [_lengths(terms, part, known, depth + 1) for part in parts]
        sure = [each for each in lengths if each is not None]
        if len(sure) == len(lengths):
            found = _joined(kind, args, sure)
    known[term] = found
    return found


def _joined(kind: int, args: tuple[int, ...], lengths: list[tuple[int, int]]) -> tuple[int, int]:
    """Return the least length and the margin of a union, a repetition or a sequence, from those of its parts."""
    if kind == term_kinds.ALT:
        return min(least for least, _ in lengths), max(margin for _, margin in lengths)
    if kind == term_kinds.REPEAT:  # inside the first copy, all the others are missing
        least, margin = lengths[0]
        return args[1] * least, margin + max(0, args[1] - 1) * least
    whole_least = whole_margin = 0
    for least, margin in reversed(lengths):
        whole_margin = max(whole_margin, margin + whole_least)  # inside this part, all parts after it are missing
        whole_least += least
    return whole_least, whole_margin


def _is_extensible(terms: Terms, term: int) -> bool:
    """Return True if the shape of a term shows that each of its strings is a prefix of another, one character
    longer."""
    kind, args = terms.shape(term)
    while kind == term_kinds.SEQ:
        term = args[1]
        kind, args = terms.shape(term)
    if excluded_words(terms, term) is not None:  # all strings but finitely many: some continuation is not excluded
        return True
    if kind == term_kinds.REPEAT:
        return args[2] == term_kinds.NONE and terms.shape(args[0])[0] == term_kinds.CHARS
    return kind == term_kinds.ALT and all(_is_extensible(terms, part) for part in args)
