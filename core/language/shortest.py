"""Shortest strings of languages, by the length in which they are written."""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappop, heappush

from ..errors import LimitError
from .term_kinds import (
    ALT,
    CHARS,
    DEAD,
    DEFERRED,
    END,
    EPSILON,
    NULLABLE,
    REGULAR,
    REPEAT,
    SEQ,
    SURROGATES,
    SURROGATES_END,
    WORDS,
)
from .terms import Terms

#: Maximum number of states that the search for a shortest string visits.
MAX_SEARCHED = 20_000


#: Visible characters, and whitespace.
_READABLE = bytes(range(0x21, 0x7F))
_SPACED = b" \t\n" + _READABLE


def preference(text: bytes) -> tuple[int, int, bytes]:
    """Return a key that orders spellings: the shortest first, and of those the most readable and neutral.

    The shortest text completes an answer whose budget is used up, and people read it: a full stop says less than a
    digit, and both are better than a control character.
    """
    strange = len(text.translate(None, _READABLE)) + len(text.translate(None, _SPACED))
    return len(text), strange, text.replace(b".", b"\0")


def shortest(terms: Terms, term: int, spell: Callable[[int, int], bytes]) -> bytes:
    """Return the shortest spelling of a string of a non-empty language.

    Args:
        terms: the store of the term.
        term: the language.
        spell: returns the shortest spelling of a character between two code points.

    Raises:
        LimitError: too many states to search (an intersection or complement that is hard to satisfy).
    """
    if terms.known(term) & NULLABLE:
        return b""
    if terms.known(term) & REGULAR:
        return _by_shape(terms, term, spell)
    # Dijkstra's algorithm over derivatives.
    heap: list[tuple[tuple[int, int, bytes], int, bytes]] = [(preference(b""), term, b"")]
    done: set[int] = set()
    while heap:
        _, state, path = heappop(heap)
        if terms.known(state) & NULLABLE:
            return path
        if state in done:
            continue
        done.add(state)
        if len(done) > MAX_SEARCHED:
            break
        if terms.known(state) & REGULAR:
            tail = _by_shape(terms, state, spell)
            heappush(heap, (preference(path + tail), EPSILON, path + tail))
            continue
        starts, targets = terms.segments(state)
        best: dict[int, bytes] = {}
        for index, target in enumerate(targets):
            if target in done or terms.known(target) & DEAD:
                continue
            start, stop = starts[index], starts[index + 1] if index + 1 < len(starts) else END
            if SURROGATES <= start and stop <= SURROGATES_END:
                continue  # complements have surrogates, strings have none
            char = spell(start, stop - 1)
            if target not in best or preference(char) < preference(best[target]):
                best[target] = char
        for target, char in best.items():
            heappush(heap, (preference(path + char), target, path + char))
    raise LimitError(
        f"no string of a pattern was found among {MAX_SEARCHED:,} states", hint="simplify the pattern or its length"
    )


def _by_shape(terms: Terms, term: int, spell: Callable[[int, int], bytes]) -> bytes:
    """`shortest` of a term without intersection and complement, read off its shape."""
    result = b""
    kind, args = terms.shape(term)
    while kind == SEQ:
        result += _by_shape(terms, args[0], spell)
        term = args[1]
        kind, args = terms.shape(term)
    if terms.known(term) & NULLABLE:
        return result
    if kind == DEFERRED:
        return result + _by_shape(terms, terms.made(term), spell)
    if kind == CHARS:
        options = [spell(low, high) for low, high in args]
    elif kind == WORDS:
        options = [b"".join(spell(ord(char), ord(char)) for char in word) for word in args]
    elif kind == REPEAT:
        copies: int = args[1]
        return result + _by_shape(terms, args[0], spell) * copies
    else:
        options = []
        for least, part in sorted([(_least_length(terms, part), part) for part in args]):
            room = min(map(len, options)) - least if options else 1
            if room > 0 or (room == 0 and not _is_deferred(terms, part)):
                options.append(_by_shape(terms, part, spell))
    return result + min(options, key=preference)


def _is_deferred(terms: Terms, term: int) -> bool:
    """Return True if a term ends with what is not made yet."""
    kind, args = terms.shape(term)
    while kind == SEQ:
        kind, args = terms.shape(args[1])
    return bool(kind == DEFERRED)


def _least_length(terms: Terms, term: int) -> int:
    """Return a lower bound of the length of a term's strings, read off its shape; makes nothing that is deferred."""
    if terms.known(term) & NULLABLE:
        return 0
    key = ("least length", term)
    least: int | None = terms.memo.get(key)
    if least is None:
        kind, args = terms.shape(term)
        if kind == SEQ:
            least = sum(_least_length(terms, part) for part in args)
        elif kind == ALT:
            least = min(_least_length(terms, part) for part in args)
        elif kind == REPEAT:
            least = _least_length(terms, args[0]) * args[1]
        elif kind == WORDS:
            least = min(map(len, args))
        else:
            least = args[0] if kind == DEFERRED else 1
        terms.memo[key] = least
    return least
