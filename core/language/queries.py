"""Queries of languages, answered from the shapes of their terms or by a search of their derivatives."""

from __future__ import annotations

from .term_kinds import (
    ALT,
    AND,
    ANY,
    CHARS,
    DEFERRED,
    EMPTY_KIND,
    END,
    EPSILON_KIND,
    NOT,
    REPEAT,
    SEQ,
    SURROGATES,
    SURROGATES_END,
    WORDS,
)
from .terms import Terms


def steps(terms: Terms, term: int) -> list[tuple[int, int, int]]:
    """Return the non-empty derivatives of a term, each with the first and last code point of its range. Surrogates,
    which complements contain, are omitted: strings have none."""
    starts, targets = terms.segments(term)
    return [
        (start, stop - 1, target)
        for start, stop, target in zip(starts, (*starts[1:], END), targets, strict=True)
        if not (SURROGATES <= start and stop <= SURROGATES_END) and not terms.is_empty(target)
    ]


def is_cofinite(terms: Terms, term: int) -> bool:
    """Return True if a term's shape shows that all but finitely many strings are in the language.

    Then every string is a prefix of one in the language.
    """
    key = ("cofinite", term)
    known = terms.memo.get(key)
    if known is None:
        kind, args = terms.shape(term)
        if kind == NOT:
            known = is_finite(terms, args[0])
        elif kind == REPEAT:
            known = args[0] == ANY and args[2] < 0
        elif kind == AND:
            known = all(is_cofinite(terms, part) for part in args)
        else:
            known = kind == ALT and any(is_cofinite(terms, part) for part in args)
        terms.memo[key] = known
    return bool(known)


def is_finite(terms: Terms, term: int) -> bool:
    """Return True if a term's shape shows that its language is finite (intersections are not computed)."""
    waiting, seen = [term], {term}  # sequences are thousands of parts long
    while waiting:
        kind, args = terms.shape(waiting.pop())
        if kind == REPEAT:
            if args[2] < 0:
                return False
            args = args[:1]
        elif kind not in (SEQ, ALT):
            if kind not in (EMPTY_KIND, EPSILON_KIND, CHARS, WORDS):
                return False
            continue
        waiting += [part for part in args if part not in seen]
        seen.update(args)
    return True


def listing(terms: Terms, term: int, most: int) -> list[str] | None:
    """Return all strings of the language, shortest first; None if there are more than ``most``."""
    kind, args = terms.shape(term)
    if kind == WORDS:
        return sorted(args, key=lambda word: (len(word), word)) if len(args) <= most else None
    texts: list[str] = []
    level = [("", term)]
    while level:
        following: list[tuple[str, int]] = []
        for text, state in level:
            if terms.nullable(state):
                texts.append(text)
            for first, last, target in steps(terms, state):
                if last - first > most - len(following):
                    return None
                for code in range(first, last + 1):
                    if not SURROGATES <= code < SURROGATES_END:
                        following.append((text + chr(code), target))
        level = following
        if len(texts) + len(level) > most:  # each prefix belongs to one string at least
            return None
    return texts


def open_class(terms: Terms, term: int) -> int | None:
    """Return a class C of characters such that every string of C* is a prefix of one in the language, and the same C
    holds for derivatives by characters of C; None if the term's shape shows no such class.

    Examples: patterns that may match anywhere (all characters), ``.+:[0-9]`` (all but line ends), and languages that
    lack finitely many strings.
    """
    kind, args = terms.shape(term)
    if kind == SEQ:
        found = []
        while kind == SEQ:  # without recursion: as long as a pattern is
            part, term = args
            if not terms.is_empty(term):  # a text may stay in this part without end
                found.append(_endless_class(terms, part))
            if not terms.nullable(part):  # it must begin with this part
                return _widest(terms, found)
            kind, args = terms.shape(term)
        return _widest(terms, [*found, open_class(terms, term)])
    if kind == ALT:
        return _widest(terms, [open_class(terms, part) for part in args])
    if kind == AND:  # an intersection of an open language with cofinite ones is open
        rest = [part for part in args if not is_cofinite(terms, part)]
        return ANY if not rest else open_class(terms, rest[0]) if len(rest) == 1 else None
    return ANY if is_cofinite(terms, term) else _endless_class(terms, term)


def _endless_class(terms: Terms, term: int) -> int | None:
    """Return the class of which a term is an unbounded repetition; else None."""
    bounds = terms.run_bounds(term)
    return bounds[0] if bounds is not None and bounds[2] is None else None


def _widest(terms: Terms, classes: list[int | None]) -> int | None:
    """Return the class with the most characters."""
    some = [chars for chars in classes if chars is not None]
    return max(some, key=lambda chars: sum(high - low for low, high in terms.ranges(chars)), default=None)


def excluded_words(terms: Terms, term: int) -> tuple[str, ...] | None:
    """Return the words W if the language is the complement of a finite set W; else None."""
    kind, args = terms.shape(term)
    if kind != NOT:
        return None
    kind, words = terms.shape(args[0])
    return words if kind == WORDS else ("",) if kind == EPSILON_KIND else None


def begins_deferred(terms: Terms, term: int, known: set[int]) -> bool:
    """Return True if the derivatives of a term need a deferred term to be built.

    Args:
        terms: the store of the term.
        term: the term.
        known: terms of which the answer is False; more are added.
    """
    waiting, visited = [term], set[int]()
    while waiting:
        term = waiting.pop()
        if term in known or term in visited:
            continue
        visited.add(term)
        kind, args = terms.shape(term)
        if kind == DEFERRED:
            return True
        if kind in (ALT, AND):
            waiting += args
        elif kind in (NOT, REPEAT):
            waiting.append(args[0])
        elif kind == SEQ:
            waiting += args if terms.nullable(args[0]) else args[:1]
    known |= visited
    return False
