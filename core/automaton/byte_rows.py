"""Row states by what they are of: a term, raw or as JSON string (how that is spelled: see `rowtable`)."""

from __future__ import annotations

from collections.abc import Hashable

from ..language.shortest import preference, shortest
from ..language.terms import Terms
from .encoding import DEAD, DONE, OPEN, QUOTED, RAW
from .escapes import spell_quoted, spell_raw
from .row_table import RowTable

#: Of how many characters one class must have for nearly all: of printable ASCII, and of all.
_WIDE_ASCII, _WIDE = 90, 0x100000


class Rows(RowTable):
    """The row states of a store of terms.

    Args:
        terms: the store.
    """

    def __init__(self, terms: Terms) -> None:
        super().__init__(terms)
        self.terms = terms
        self._path: dict[int, bytes] = {}
        self._wide: dict[int, bool] = {}

    def copy(self, terms: Terms) -> Rows:
        """Another store over a copy of the terms, in which all states so far have the same numbers.

        All their rows must have been derived, in the order of their numbers, and none is derived here later.
        """
        other = Rows.__new__(Rows)
        self.copy_to(other, terms)
        other.terms = terms
        other._path, other._wide = {}, {}
        return other

    def start(self, term: int, quoted: bool) -> int:
        """The state before a text of ``term``, which has some, and is written as a JSON string if ``quoted``, else
        raw."""
        return self.state(OPEN if quoted else RAW, term)

    def body(self, term: int, quoted: bool) -> int:
        """The state between two characters."""
        if not quoted and term == self.terms.EPSILON:
            return DONE
        return self.state(QUOTED if quoted else RAW, term)

    def shared(self, state: int) -> tuple[Hashable | None, int | None, int]:
        """What the tokens that stay inside a JSON string may be taken from.

        Returns:
            A key that is the same in every store, for the states of the free string and of a seed; for other states
            between two characters of a JSON string, the state of the free string there, and the number of a class of
            nearly all characters of which any may follow (-1: there is none).
        """
        kind, term = self.what(state)
        if OPEN <= kind <= QUOTED and term == self.terms.ALL:
            return free_key(kind), None, -1
        if state < self.seeded():
            return ("seed", state), None, -1
        if kind != QUOTED:
            return None, None, -1
        chars = self.terms.open_class(term)
        number = -1 if chars is None or not self._is_wide(chars) else self.class_number(chars)
        return None, self.state(QUOTED, self.terms.ALL), number

    def _is_wide(self, chars: int) -> bool:
        """Whether a class has nearly all characters, so that only few tokens leave it."""
        found = self._wide.get(chars)
        if found is None:
            ranges = self.terms.ranges(chars)
            ascii_letters = sum(max(0, min(high, 0x7E) - max(low, 0x20) + 1) for low, high in ranges)
            everything = sum(high - low + 1 for low, high in ranges)
            found = self._wide[chars] = ascii_letters >= _WIDE_ASCII and everything >= _WIDE
        return found

    def character_class(self, number: int) -> tuple[Hashable, int]:
        """What is the same in every store for a class of characters, and the state inside a string of any number of
        its characters."""
        chars = self.class_term(number)
        return self.terms.ranges(chars), self.body(self.terms.repeat(chars, 0, None), True)

    def shortest(self, state: int) -> bytes:
        """The shortest bytes that complete the text.

        Raises:
            LimitError: see `shortest`.
        """
        known = self._path.get(state)
        if known is None:
            known = self._path[state] = self._find_shortest(state)
        return known

    def _find_shortest(self, state: int) -> bytes:
        if self.nullable(state):
            return b""
        kind, term = self.what(state)
        if kind == OPEN:
            return b'"' + self.shortest(self.body(term, True))
        if kind == RAW:
            return shortest(self.terms, term, spell_raw)
        if kind == QUOTED:
            return shortest(self.terms, term, spell_quoted) + b'"'
        # Inside a character: a few bytes from the next place between two characters.
        first: dict[int, int] = {}
        for byte, target in enumerate(self.row(state)):
            if target != DEAD:
                first.setdefault(target, byte)
        options = [bytes((byte,)) + self.shortest(target) for target, byte in first.items()]
        return min(options, key=preference)


def free_key(kind: int) -> Hashable:
    """What `Rows.shared` says of a state of the free string: before the opening quote, or between two characters."""
    return "free", kind
