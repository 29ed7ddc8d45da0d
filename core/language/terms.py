"""Regular languages of *decoded* text: hash-consed terms over Unicode code points, with derivatives.

A term is a small integer; equal terms are the same integer, so a derivative automaton closes by itself
(Brzozowski 1964; Owens, Reppy, Turon 2009, "Regular-expression derivatives re-examined"). Intersection and
complement are first-class. How a term is spelled in bytes (UTF-8, JSON escapes) is not decided here: see
``toolgrammar.core.automaton.byte_rows``.

A whole derivative row at once is a `Segments` value: a piecewise constant function from code points to terms.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable

from . import shortest, term_kinds
from .term_kinds import ALT, AND, ANY, CHARS, END, MAX_TERMS, NOT, REPEAT, SEQ, WORDS
from .term_table import TermTable

__all__ = ["END", "MAX_TERMS", "SURROGATES", "Segments", "Terms"]

#: A piecewise constant function: ``targets[i]`` holds on ``starts[i] <= code point < starts[i + 1]``.
Segments = tuple[tuple[int, ...], tuple[int, ...]]

SURROGATES = (0xD800, 0xDFFF)


class Terms(TermTable):
    """The hash-consing store of terms.

    Laws (all property-tested): `alt` is union, `and_` intersection, `not_` complement relative to all strings,
    `seq` concatenation, `repeat` bounded repetition; ``nullable(derivative(t, c))`` iff the one-character string
    ``c`` is in ``t``; `is_empty` is exact.

    Attributes:
        EMPTY: the empty language.
        EPSILON: the language of the empty string.
        ALL: every string.
        ANY: every string of one character.
        room: how many terms the store may hold.
        memo: terms that were made here before, by what they were made of; for those who make them.
    """

    EMPTY = term_kinds.EMPTY
    EPSILON = term_kinds.EPSILON
    ANY = term_kinds.ANY
    ALL = term_kinds.ALL

    def __init__(self) -> None:
        super().__init__(MAX_TERMS)
        self.memo: dict[Hashable, int] = {}
        self._cofinite: dict[int, bool] = {}

    def copy(self) -> Terms:
        """Another store in which all terms so far have the same numbers; what was learnt of them is known there."""
        other = Terms.__new__(Terms)
        self.copy_to(other)
        other.memo, other._cofinite = self.memo.copy(), self._cofinite.copy()
        return other

    # -- questions ---------------------------------------------------------------------------------------------

    def length_bounds(self, term: int) -> tuple[int, int | None] | None:
        """``(least, most)`` when the language is "every string of so many characters", else None."""
        bounds = self.run_bounds(term)
        return bounds[1:] if bounds is not None and bounds[0] == ANY else None

    def is_cofinite(self, term: int) -> bool:
        """Whether all but finitely many strings are in the language, seen from the term's shape (False: not known).

        Every string is then the beginning of one in the language.
        """
        known = self._cofinite.get(term)
        if known is None:
            kind, args = self.shape(term)
            if kind == NOT:
                known = self._is_finite(args[0])
            elif kind == REPEAT:
                known = args[0] == ANY and args[2] < 0
            elif kind == AND:
                known = all(map(self.is_cofinite, args))
            else:
                known = kind == ALT and any(map(self.is_cofinite, args))
            self._cofinite[term] = known
        return known

    def open_class(self, term: int) -> int | None:
        """A class of characters such that every string of them is the beginning of one in the language, seen from the
        term's shape; None: none known.

        So it is for patterns that may match anywhere (any characters), for ``.+:[0-9]`` (any but ends of lines), and
        for languages that lack finitely many strings. Derivatives by characters of the class have it too.
        """
        kind, args = self.shape(term)
        if kind == SEQ:
            part, follows = args
            bounds = self.run_bounds(part)
            return bounds[0] if bounds is not None and bounds[2] is None and not self.is_empty(follows) else None
        if kind == ALT:
            found = [each for each in map(self.open_class, args) if each is not None]
            return max(found, key=self._width, default=None)
        if kind == AND:  # what has endlessly many ways to go on can lose finitely many
            rest = [part for part in args if not self.is_cofinite(part)]
            return ANY if not rest else self.open_class(rest[0]) if len(rest) == 1 else None
        return ANY if self.is_cofinite(term) else None

    def _width(self, chars: int) -> int:
        return sum(high - low for low, high in self.ranges(chars))

    def _is_finite(self, term: int) -> bool:
        waiting, seen = [term], {term}  # sequences are thousands of parts long
        while waiting:
            kind, args = self.shape(waiting.pop())
            if kind == REPEAT:
                if args[2] < 0:
                    return False
                args = args[:1]
            elif kind not in (SEQ, ALT):
                if kind not in (term_kinds.EMPTY_KIND, term_kinds.EPSILON_KIND, CHARS, WORDS):
                    return False
                continue
            waiting += [part for part in args if part not in seen]
            seen.update(args)
        return True

    def shortest(self, term: int, spell: Callable[[int, int], bytes]) -> bytes:
        """The shortest spelling of a string of a non-empty language: see `toolgrammar.core.language.shortest`."""
        return shortest.shortest(self, term, spell)
