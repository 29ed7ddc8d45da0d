"""Shortest strings of languages, by the length in which they are written."""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappop, heappush

from .term_kinds import (
    ALT,
    AND,
    CHARS,
    DEAD,
    DEFERRED,
    END,
    NULLABLE,
    REGULAR,
    REPEAT,
    SEQ,
    SURROGATES,
    SURROGATES_END,
    WORDS,
)
from .terms import Terms

#: Maximum number of states that the search for a shortest string visits; and once a search was given up.
MAX_SEARCHED, FEW_SEARCHED = 5_000, 200


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


#: Of a language, the spelling of a character that its text begins with, and the language of the rest.
Ways = dict[int, tuple[bytes, int]]


def shortest(terms: Terms, term: int, spell: Callable[[int, int], bytes], ways: Ways) -> bytes:
    """Return the shortest spelling of a string of a non-empty language; some spelling, where too many states would have
    to be searched (an intersection or complement that is hard to satisfy).

    Law: the rest of it, after a character, is the spelling that is returned for the language of that rest.

    Args:
        terms: the store of the term.
        term: the language.
        spell: returns the shortest spelling of a character between two code points.
        ways: results so far with this ``spell``, to which new ones are added.
    """
    found: list[bytes] = []
    while not terms.known(term) & (NULLABLE | REGULAR):
        if term not in ways:
            most = FEW_SEARCHED if _GAVE_UP in ways else MAX_SEARCHED
            if terms.is_hurried or not _search(terms, term, spell, ways, most):
                ways[_GAVE_UP] = b"", _GAVE_UP
                _take_some(terms, term, spell, ways)
        char, term = ways[term]
        found.append(char)
    if not terms.known(term) & NULLABLE:
        found.append(_by_shape(terms, term, spell))
    return b"".join(found)


#: A place of the search: a state, the index of the place before it, and the character between them; the length and
#: strangeness of the spelling up to here.
_Place = tuple[int, int, bytes, int, int]

#: The key in `Ways` that says that a search was given up.
_GAVE_UP = -1

#: The state after the last character.
_OVER = -1


def _search(terms: Terms, term: int, spell: Callable[[int, int], bytes], ways: Ways, most: int) -> bool:
    """Add the ways of the shortest spelling, by A* over derivatives (Hart, Nilsson, Raphael 1968) with `least_length`
    as the estimate; return False if it takes more than ``most`` states.

    Of places that look equally good the newest is taken, so that the search goes straight on.
    """
    spelled: dict[tuple[int, int], tuple[tuple[int, int, bytes], bytes]] = {}  # between two code points, with its rank
    places: list[_Place] = [(term, -1, b"", 0, 0)]
    nearest = {term: (0, 0)}  # of each state met, the least length and strangeness of a spelling up to it
    heap = [(0, 0, 0)]  # length and strangeness of the whole spelling (bounds), and the negative index of the place
    visited = 0
    while heap:
        bound, _, index = heappop(heap)
        state, before, char, length, strange = places[-index]
        if state == _OVER or terms.known(state) & NULLABLE:
            while before >= 0:
                after = state
                letter = char
                state, before, char, _, _ = places[before]
                if after != _OVER:
                    ways.setdefault(state, (letter, after))
                    terms.lead(state, after)
            return True
        if nearest[state] < (length, strange):
            continue
        visited += 1
        if visited > most:
            return False
        if terms.known(state) & REGULAR or state in ways:
            size, odd, _ = preference(shortest(terms, state, spell, ways))
            heappush(heap, (length + size, strange + odd, -len(places)))
            places.append((_OVER, -index, b"", 0, 0))
            continue
        starts, targets = terms.segments(state)
        best: dict[int, tuple[tuple[int, int, bytes], bytes]] = {}
        for start, stop, target in zip(starts, (*starts[1:], END), targets, strict=True):
            if terms.known(target) & DEAD or SURROGATES <= start < stop <= SURROGATES_END:
                continue  # complements have surrogates, strings have none
            ranked = spelled.get((start, stop))
            if ranked is None:
                char = spell(start, stop - 1)
                ranked = spelled[start, stop] = preference(char), char
            if target not in best or ranked < best[target]:
                best[target] = ranked
        for (rank, char), target in sorted([(ranked, target) for target, ranked in best.items()], reverse=True):
            size, odd, _ = rank
            reached = length + size, strange + odd
            if target not in nearest or reached < nearest[target]:
                nearest[target] = reached
                whole = max(bound, reached[0] + least_length(terms, target))
                heappush(heap, (whole, reached[1], -len(places)))
                places.append((target, -index, char, *reached))
    raise AssertionError("the language is empty")


def _take_some(terms: Terms, term: int, spell: Callable[[int, int], bytes], ways: Ways) -> None:
    """Add the ways of a string by which the language was found not to be empty."""
    path: list[tuple[int, bytes]] = []
    at: dict[int, int] = {}
    for char in some_string(terms, term):
        if terms.known(term) & (NULLABLE | REGULAR) or term in ways:
            break
        del path[at.setdefault(term, len(path)) :]  # no way leads in a circle
        path.append((term, spell(ord(char), ord(char))))
        term = terms.derivative(term, ord(char))
    for state, spelled in reversed(path):
        ways[state] = spelled, term
        term = state


def some_string(terms: Terms, term: int) -> str:
    """Return a string of a non-empty language without a search, if its emptiness was searched before (see
    `Terms.toward`)."""
    found: list[str] = []
    stack = [term]
    while stack:
        term = stack.pop()
        known = terms.known(term)
        if known & NULLABLE:
            continue
        if known & REGULAR:
            found.append(_by_shape(terms, term, _as_utf_32).decode("utf-32-le"))
            continue
        assert not terms.is_empty(term), "the language is empty"
        kind, args = terms.shape(term)
        if term in terms.toward:
            starts, targets = terms.segments(term)
            stops = (*starts[1:], END)
            found.append(
                next(
                    _as_utf_32(start, stop - 1).decode("utf-32-le")
                    for start, stop, target in zip(starts, stops, targets, strict=True)
                    if target == terms.toward[term] and not SURROGATES <= start < stop <= SURROGATES_END
                )
            )
            stack.append(terms.toward[term])
        elif kind == SEQ:
            stack += reversed(args)
        else:  # an ALT: its emptiness was decided by a part of which a string is known
            first = next(part for part in args if not terms.known(part) & DEAD)
            stack.append(terms.memo.get(("live", term), first))
    return "".join(found)


def _as_utf_32(low: int, high: int) -> bytes:
    """Return a readable character between two code points that is no surrogate, in UTF-32."""
    code = next((code for code in b"a0." if low <= code <= high), low)
    return chr(SURROGATES_END if SURROGATES <= code < SURROGATES_END else code).encode("utf-32-le")


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
        for least, part in sorted([(least_length(terms, part), part) for part in args]):
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


def least_length(terms: Terms, term: int) -> int:
    """Return a lower bound of the length of a term's strings, read off its shape; makes nothing that is deferred."""
    least: int | None = terms.memo.get(term)
    if least is None:
        kind, args = terms.shape(term)
        if terms.known(term) & NULLABLE:
            least = 0
        elif kind == SEQ:
            least = sum([least_length(terms, part) for part in args])
        elif kind == ALT:
            least = min([least_length(terms, part) for part in args])
        elif kind == AND:
            least = max([least_length(terms, part) for part in args])
        elif kind == REPEAT:
            least = least_length(terms, args[0]) * args[1]
        elif kind == WORDS:
            least = min(map(len, args))
        else:
            least = args[0] if kind == DEFERRED else 1
        terms.memo[term] = least
    return least
