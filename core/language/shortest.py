"""The shortest string of a language, by how long its spelling is."""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappop, heappush

from ..errors import LimitError
from .termkinds import CHARS, DEAD, DEFERRED, END, EPSILON, NULLABLE, REGULAR, REPEAT, SEQ, WORDS
from .termtable import TermTable

#: How many states the search for a shortest string may visit.
MAX_SEARCHED = 20_000


def shortest(terms: TermTable, term: int, spell: Callable[[int, int], bytes]) -> bytes:
    """The shortest spelling of a string of a non-empty language.

    Args:
        terms: where the term was made.
        term: the language.
        spell: the shortest spelling of any character between two code points.

    Raises:
        LimitError: too many states to search (an intersection or complement that is hard to satisfy).
    """
    if terms.known(term) & NULLABLE:
        return b""
    if terms.known(term) & REGULAR:
        return _by_shape(terms, term, spell)
    # Dijkstra's algorithm over derivatives.
    heap: list[tuple[int, bytes, int]] = [(0, b"", term)]
    done: set[int] = set()
    while heap:
        length, path, state = heappop(heap)
        if terms.known(state) & NULLABLE:
            return path
        if state in done:
            continue
        done.add(state)
        if len(done) > MAX_SEARCHED:
            break
        if terms.known(state) & REGULAR:
            tail = _by_shape(terms, state, spell)
            heappush(heap, (length + len(tail), path + tail, EPSILON))
            continue
        starts, targets = terms.segments(state)
        best: dict[int, bytes] = {}
        for index, target in enumerate(targets):
            if target in done or terms.known(target) & DEAD:
                continue
            char = spell(starts[index], (starts[index + 1] if index + 1 < len(starts) else END) - 1)
            if target not in best or (len(char), char) < (len(best[target]), best[target]):
                best[target] = char
        for target, char in best.items():
            heappush(heap, (length + len(char), path + char, target))
    raise LimitError(
        f"no string of a pattern was found among {MAX_SEARCHED:,} states", hint="simplify the pattern or its length"
    )


def _by_shape(terms: TermTable, term: int, spell: Callable[[int, int], bytes]) -> bytes:
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
        return result + _by_shape(terms, args[0], spell)
    if kind == CHARS:
        options = [spell(low, high) for low, high in args]
    elif kind == WORDS:
        options = [b"".join(spell(ord(char), ord(char)) for char in word) for word in args]
    elif kind == REPEAT:
        copies: int = args[1]
        return result + _by_shape(terms, args[0], spell) * copies
    else:
        options = [_by_shape(terms, part, spell) for part in args]
    return result + min(options, key=lambda option: (len(option), option))
