"""Candidates for an emptiness search: multiples computed from the remainders in a term.

A search for a multiple would visit a term for each remainder and number of digits; arithmetic finds one directly.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import gcd
from typing import Any

from . import term_kinds

#: Maximum number of parts of a term that are inspected, and of digits of a candidate.
MAX_PARTS, MAX_DIGITS = 64, 24

_INSIDE = frozenset({term_kinds.SEQ, term_kinds.ALT, term_kinds.AND})
_FIRST = frozenset({term_kinds.NOT, term_kinds.REPEAT})


def leads_to_multiple(terms: Any, term: int) -> bool:
    """Return True if a candidate is in the language, and record its path (`Terms.lead`); False does not show that the
    language is empty.

    Args:
        terms: the store, a `Terms`, which calls this.
        term: the term.
    """
    for state in _remainders(terms, term):
        for text in suggested(*state):
            if _leads(terms, term, text):
                return True
    return False


def _remainders(terms: Any, term: int) -> Iterator[tuple[int, int, int, int]]:
    """Yield the arguments of the MULTIPLE terms within a term."""
    waiting, seen = [term], {term}
    while waiting and len(seen) < MAX_PARTS:
        kind, arguments = terms.shape(waiting.pop())
        if kind == term_kinds.MULTIPLE:
            yield arguments
        inner = arguments if kind in _INSIDE else arguments[:1] if kind in _FIRST else ()
        waiting += [part for part in inner if part not in seen]
        seen.update(inner)


def _leads(terms: Any, term: int, text: str) -> bool:
    """Return True if a string, or a prefix of it with a known continuation, shows a member; record the path."""
    way = [term]
    for character in text:
        if terms.known(term) & (term_kinds.LIVE | term_kinds.DEAD):
            break
        term = terms.derivative(term, ord(character))
        way.append(term)
    if not terms.known(term) & term_kinds.LIVE:
        return False
    for index in range(len(way) - 2, -1, -1):
        terms.lead(way[index], way[index + 1])
    return True


def suggested(of: int, places: int, remainder: int, decimals: int) -> list[str]:
    """Return digit strings that complete a multiple (see `Terms.multiples`), the shortest first.

    For each number of digits before the point: the smallest, with and without leading zeros; with a point only if the
    divisor has decimal places. For example, multiples of 0.25 (``of`` 25, ``places`` 2) after no digits: ``""``,
    ``".00"``, ``"0"``, ``"1"``, ``"0.00"``, ...
    """
    if decimals >= 0:
        missing = max(0, places - decimals)
        rest = -remainder * 10**missing % of
        return [str(rest).zfill(missing) if missing else ""] if rest < 10**missing else []
    found: dict[str, None] = {}
    for digits in range(MAX_DIGITS):
        for modulus, more in dict.fromkeys(((of // gcd(of, 10**places), 0), (of, places))):
            size = 10 ** (digits + more)
            rest = -remainder * size % modulus
            least = size // 10 if digits else 0  # without a leading zero
            for number in (
                rest,
                rest - (rest - least) // modulus * modulus,
            ):  # the smallest of all, and from `least` on
                if number < size:
                    text = str(number).zfill(digits + more) if digits + more else ""
                    found[text[:digits] + "." + text[digits:] if more else text] = None
    return list(found)
