"""Shortest strings of terms, measured in bytes of their spelling."""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappop, heappush

from ...errors import REPORT, InternalError
from ...language.term_kinds import (
    ALT,
    AND,
    CHARS,
    DEAD,
    DEFERRED,
    END,
    MULTIPLE,
    NULLABLE,
    REGULAR,
    REPEAT,
    SEQ,
    SURROGATES,
    SURROGATES_END,
    WORDS,
)
from ...language.terms import Terms

#: Maximum number of states that a search for a shortest string visits, and that number after one was given up.
MAX_SEARCHED, FEW_SEARCHED = 5_000, 200

#: Visible characters, and whitespace.
_READABLE = bytes(range(0x21, 0x7F))
_SPACED = b" \t\n" + _READABLE


def preference(text: bytes) -> tuple[int, int, bytes]:
    """Return a key that orders spellings: the shortest first, and of those the most readable and neutral.

    People read the completion of an answer whose budget is used up: a full stop suggests less than a digit, and both
    are better than a control character.
    """
    # White space counts once, control characters and non-ASCII bytes twice.
    strange = len(text.translate(None, _READABLE)) + len(text.translate(None, _SPACED))
    return len(text), strange, text.replace(b".", b"\0")  # a full stop before all others


#: For a term: the spelling of the first character of its shortest string, and the derivative by that character.
Firsts = dict[int, tuple[bytes, int]]

#: The key in `Firsts` that records that a search was given up.
_GAVE_UP = -1


def shortest(terms: Terms, term: int, spell: Callable[[int, int], bytes], firsts: Firsts) -> bytes:
    """Return the shortest spelling of a string of a non-empty language; if the search exceeds its limit (for a hard
    intersection or complement), the spelling of some string.

    Law: ``shortest(L)`` is the spelling of a character c followed by ``shortest(derivative(L, c))``, or empty.

    Args:
        terms: the store of the term.
        term: the language.
        spell: returns the shortest spelling of a character between two code points.
        firsts: memoised results with this ``spell``; new ones are added.
    """
    spelled: list[bytes] = []
    while not terms.known(term) & (NULLABLE | REGULAR):
        if term not in firsts:
            most = FEW_SEARCHED if _GAVE_UP in firsts else MAX_SEARCHED
            if terms.is_hurried or not _search(terms, term, spell, firsts, most):
                firsts[_GAVE_UP] = b"", _GAVE_UP
                _take_some(terms, term, spell, firsts)
        char, term = firsts[term]
        spelled.append(char)
    if not terms.known(term) & NULLABLE:
        spelled.append(_by_shape(terms, term, spell))
    return b"".join(spelled)


#: A step of the search: a state, the index of the previous step, the spelled character between them, and the length and
#: strangeness (see `preference`) of the spelling so far.
_Step = tuple[int, int, bytes, int, int]

#: The state after the last character.
_OVER = -1


def _search(terms: Terms, term: int, spell: Callable[[int, int], bytes], firsts: Firsts, most: int) -> bool:
    """Add to ``firsts`` the first characters of the shortest spelling and of its suffixes; return False if the search
    visits more than ``most`` states.

    A* over derivatives (Hart, Nilsson, Raphael 1968) with `fewest_chars` as the estimate. Where the rest is regular, or
    known, it is one step to `_OVER`.
    """
    spelled: dict[tuple[int, int], tuple[tuple[int, int, bytes], bytes]] = {}  # by code points, with `preference`
    steps: list[_Step] = [(term, -1, b"", 0, 0)]
    nearest = {term: (0, 0)}  # for each state reached, the least length and strangeness of a spelling to it
    # Lower bounds of the whole length and strangeness, and the index of the step; it is negative, so that of steps with
    # equal bounds the newest is taken first, and the search goes deep.
    heap = [(0, 0, 0)]
    visited = 0
    while heap:
        bound, _, negative = heappop(heap)
        index = -negative
        state, before, char, length, strange = steps[index]
        if state == _OVER or terms.known(state) & NULLABLE:
            while before >= 0:  # back along the steps
                after = state
                letter = char
                state, before, char, _, _ = steps[before]
                if after != _OVER:
                    firsts.setdefault(state, (letter, after))
                    terms.lead(state, after)
            return True
        if nearest[state] < (length, strange):
            continue
        visited += 1
        if visited > most:
            return False
        if terms.known(state) & REGULAR or state in firsts:
            size, odd, _ = preference(shortest(terms, state, spell, firsts))
            heappush(heap, (length + size, strange + odd, -len(steps)))
            steps.append((_OVER, index, b"", 0, 0))
            continue
        starts, targets = terms.segments(state)
        best: dict[int, tuple[tuple[int, int, bytes], bytes]] = {}  # by target: the best character that leads there
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
                whole = max(bound, reached[0] + fewest_chars(terms, target))
                heappush(heap, (whole, reached[1], -len(steps)))
                steps.append((target, index, char, *reached))
    raise InternalError("a language without a string has to be completed", hint=REPORT)


def _take_some(terms: Terms, term: int, spell: Callable[[int, int], bytes], firsts: Firsts) -> None:
    """Add to ``firsts`` the characters of the string that showed the language to be non-empty (`some_string`), each at
    the term before it. Where the string comes back to a term, what is between is left out."""
    path: list[tuple[int, bytes]] = []  # pairs of a term and the spelling of the next character
    place: dict[int, int] = {}  # by term: its index in `path`
    for char in some_string(terms, term):
        if terms.known(term) & (NULLABLE | REGULAR) or term in firsts:
            break
        del path[place.setdefault(term, len(path)) :]
        path.append((term, spell(ord(char), ord(char))))
        term = terms.derivative(term, ord(char))
    for state, spelled in reversed(path):
        firsts[state] = spelled, term
        term = state


def some_string(terms: Terms, term: int) -> str:
    """Return a string of a non-empty language, by the paths that emptiness searches recorded (`Terms.toward`)."""
    text: list[str] = []
    stack = [term]
    while stack:
        term = stack.pop()
        known = terms.known(term)
        if known & NULLABLE:
            continue
        if known & REGULAR:
            text.append(_by_shape(terms, term, _as_utf_32).decode("utf-32-le"))
            continue
        if terms.is_empty(term):
            raise InternalError("a language without a string has to be completed", hint=REPORT)
        kind, args = terms.shape(term)
        if term in terms.toward:
            target = terms.toward[term]
            starts, targets = terms.segments(term)
            low, high = next(
                (start, stop - 1)
                for start, stop, reached in zip(starts, (*starts[1:], END), targets, strict=True)
                if reached == target and not SURROGATES <= start < stop <= SURROGATES_END
            )
            text.append(_as_utf_32(low, high).decode("utf-32-le"))
            stack.append(target)
        elif kind == SEQ:
            stack += reversed(args)
        elif kind == DEFERRED:  # decided by what it stands for
            stack.append(terms.made(term))
        # A term may be regular, and not known as such: in a store with multiples.
        elif kind == CHARS:
            text.append(min((_as_utf_32(low, high) for low, high in args), key=preference).decode("utf-32-le"))
        elif kind == WORDS:
            text.append(args[0])
        elif kind == REPEAT:
            stack += [args[0]] * args[1]
        elif kind == MULTIPLE:
            text.append(_rest_of_multiple(*args))
        else:  # an ALT, which was decided by a part with a known string
            first = next(part for part in args if not terms.known(part) & DEAD)
            stack.append(terms.memo.get(("live", term), first))
    return "".join(text)


def _rest_of_multiple(of: int, places: int, remainder: int, decimals: int) -> str:
    """Return digits that make a number a multiple, given the arguments of its MULTIPLE term (`TermStore.multiples`)."""
    count = places - decimals if decimals >= 0 else 1  # after the point, all missing places are written
    while (missing := -remainder * 10**count % of) >= 10**count:
        count += 1
    return str(missing).zfill(count)


def _as_utf_32(low: int, high: int) -> bytes:
    """Return a readable character in ``[low, high]`` that is not a surrogate, in UTF-32."""
    code = next((code for code in b"a0." if low <= code <= high), low)
    return chr(SURROGATES_END if SURROGATES <= code < SURROGATES_END else code).encode("utf-32-le")


def _by_shape(terms: Terms, term: int, spell: Callable[[int, int], bytes]) -> bytes:
    """Return `shortest` for a term without intersection and complement, by its shape: the concatenation of those of the
    parts; of a union, the best of those of the alternatives, without the ones that are surely longer."""
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
        for least, part in sorted([(fewest_chars(terms, part), part) for part in args]):
            # A character has at least one byte. A part that can be only as short as the best one is asked, too, since
            # it may be more readable; but no deferred term is made for that.
            gain = min(map(len, options)) - least if options else 1
            if gain > 0 or (gain == 0 and not _is_deferred(terms, part)):
                options.append(_by_shape(terms, part, spell))
    return result + min(options, key=preference)


def _is_deferred(terms: Terms, term: int) -> bool:
    """Return True if a term ends with a deferred term, which may not be built yet."""
    kind, args = terms.shape(term)
    while kind == SEQ:
        kind, args = terms.shape(args[1])
    return bool(kind == DEFERRED)


def fewest_chars(terms: Terms, term: int) -> int:
    """Return a lower bound of the number of characters of a term's strings, by its shape; nothing deferred is made."""
    memo = terms.memo
    pending = [term]  # without recursion: concatenations and unions nest as deep as a text is long
    while pending:
        top = pending[-1]
        if top in memo:
            pending.pop()
            continue
        kind, args = terms.shape(top)
        parts = args[:1] if kind == REPEAT else args if kind in (SEQ, ALT, AND) else ()
        if terms.known(top) & NULLABLE:
            least = 0
        elif parts:
            missing = [part for part in parts if part not in memo]
            pending += missing
            if missing:
                continue
            lengths = [memo[part] for part in parts]
            if kind == REPEAT:
                least = lengths[0] * args[1]
            else:
                least = sum(lengths) if kind == SEQ else min(lengths) if kind == ALT else max(lengths)
        elif kind == WORDS:
            least = min(map(len, args))
        else:
            least = args[0] if kind == DEFERRED else 1
        memo[top] = least
    return int(memo[term])
