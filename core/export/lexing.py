"""Fixed texts that a longest-match lexer would divide wrongly: they have to be written as single characters.

llguidance runs all possible terminals in parallel, continues while one of them can, and never backtracks. So a terminal
is divided wrongly if the character after its end also continues another terminal.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import pairwise

from ..text_grammars.expressions import Chars, Choice, Control, Expression, Literal, Reference, Repeat, Sequence
from ..unicode.charset import CharSet

#: Maximum number of sets of terminals that may come next together and are looked at.
MAX_SETS = 300

#: Nullable, and the numbers of the terminals with which texts begin and end, as bits.
_Shape = tuple[bool, int, int]


def ambiguous_literals(rules: Mapping[str, Expression], root: str) -> set[str]:
    """Return the fixed texts that are to be written out in characters, so that every cut is the only one.

    Those are all of them, where more than `MAX_SETS` sets of terminals may come next together.
    """
    split: set[str] = set()
    while more := _Lexing(rules, root, split).conflicts():
        split |= more
    return split


class _Lexing:
    """The terminals of rules, numbered by occurrence, and which of them may follow which."""

    def __init__(self, rules: Mapping[str, Expression], root: str, split: set[str]) -> None:
        self._rules = rules
        self._root = root
        self._split = split
        self._terminals: list[str | CharSet | None] = []  # None: a control token
        self._follow: list[int] = []
        self._shapes: dict[str, _Shape] = dict.fromkeys(rules, (False, 0, 0))
        self._numbers: dict[tuple[str, int], int] = {}
        changed = True
        while changed:
            changed = False
            for name, body in reversed(list(rules.items())):
                self._rule, self._at = name, 0
                shape = self._shape(body)
                if shape != self._shapes[name]:
                    self._shapes[name] = shape
                    changed = True
        for name, body in rules.items():  # with the final shapes
            self._rule, self._at = name, 0
            self._shape(body)

    def _terminal(self, terminal: str | CharSet | None) -> int:
        """Return the number of the next terminal of the rule that is read now: the same number in each pass."""
        key = (self._rule, self._at)
        self._at += 1
        number = self._numbers.get(key)
        if number is None:
            number = self._numbers[key] = len(self._terminals)
            self._terminals.append(terminal)
            self._follow.append(0)
        return number

    def _link(self, ends: int, begins: int) -> None:
        while ends:
            lowest = ends & -ends
            self._follow[lowest.bit_length() - 1] |= begins
            ends ^= lowest

    def _shape(self, expression: Expression) -> _Shape:
        """Return the shape of an expression; number its terminals, and record which may follow which (as in Glushkov's
        construction). A reference has the shape of its rule so far."""
        if isinstance(expression, Literal):
            text = expression.text
            pieces = list(text) if text in self._split else [text]
            numbers = [self._terminal(piece) for piece in pieces]
            for one, two in pairwise(numbers):
                self._follow[one] |= 1 << two
            return False, 1 << numbers[0], 1 << numbers[-1]
        if isinstance(expression, Chars):
            bit = 1 << self._terminal(expression.charset)
            return False, bit, bit
        if isinstance(expression, Control):
            bit = 1 << self._terminal(None)
            return False, bit, bit
        if isinstance(expression, Reference):
            return self._shapes[expression.name]
        if isinstance(expression, Choice):
            nullable, first, last = False, 0, 0
            for item in expression.items:
                shape = self._shape(item)
                nullable, first, last = nullable or shape[0], first | shape[1], last | shape[2]
            return nullable, first, last
        if isinstance(expression, Repeat):
            nullable, first, last = self._shape(expression.item)
            if expression.most is None or expression.most > 1:
                self._link(last, first)
            return nullable or expression.least == 0, first, last
        assert isinstance(expression, Sequence)
        nullable, first, last = True, 0, 0
        for item in expression.items:
            shape = self._shape(item)
            self._link(last, shape[1])
            first |= shape[1] if nullable else 0
            last = shape[2] | (last if shape[0] else 0)
            nullable = nullable and shape[0]
        return nullable, first, last

    def _members(self, numbers: int) -> list[int]:
        found = []
        while numbers:
            lowest = numbers & -numbers
            found.append(lowest.bit_length() - 1)
            numbers ^= lowest
        return found

    def _begins(self, numbers: int, char: str) -> bool:
        """Return True if one of some terminals begins with a character."""
        for number in self._members(numbers):
            terminal = self._terminals[number]
            if terminal is not None and (terminal[0] == char if isinstance(terminal, str) else ord(char) in terminal):
                return True
        return False

    def _possible_sets(self) -> Iterator[tuple[list[int], list[int]]]:
        """Yield each set of terminals that may come next at one position: their numbers, and for each of them, as bits,
        the terminals that may follow it or a terminal like it.

        Two terminals are alike if they have a text in common, because after it the lexer is at the end of both, or if
        both are like a third one.
        """
        pending = [self._shapes[self._root][1]]
        seen = set(pending)
        while pending:
            members = self._members(pending.pop())
            groups: dict[str | None, list[int]] = {}
            classes: list[tuple[CharSet, list[int]]] = []
            for number in members:
                terminal = self._terminals[number]
                if terminal is None or (isinstance(terminal, str) and len(terminal) > 1):
                    groups.setdefault(terminal, []).append(number)
                    continue
                chars = CharSet.of(terminal) if isinstance(terminal, str) else terminal
                alike = [pair for pair in classes if pair[0] & chars]
                classes = [pair for pair in classes if not pair[0] & chars]
                merged = [number]
                for other, numbers in alike:
                    chars, merged = chars | other, merged + numbers
                classes.append((chars, merged))
            follows: dict[int, int] = {}
            for group in (*groups.values(), *(numbers for _, numbers in classes)):
                joint = 0
                for number in group:
                    joint |= self._follow[number]
                follows |= dict.fromkeys(group, joint)
                if joint and joint not in seen:
                    seen.add(joint)
                    pending.append(joint)
            yield members, [follows[number] for number in members]

    def conflicts(self) -> set[str]:
        """Return fixed texts that continue another terminal where it may end."""
        found: set[str] = set()
        for count, (members, follows) in enumerate(self._possible_sets()):
            if count > MAX_SETS:
                return {text for text in self._terminals if isinstance(text, str) and len(text) > 1}
            long = {text for n in members if isinstance(text := self._terminals[n], str) and len(text) > 1}
            if not long or len(members) < 2:
                continue
            for number, follow in zip(members, follows, strict=True):
                terminal = self._terminals[number]
                if terminal is None or not follow:
                    continue
                for text in long - found:
                    if isinstance(terminal, str):
                        size = len(terminal)
                        is_begun = size < len(text) and text.startswith(terminal)
                    else:
                        size, is_begun = 1, ord(text[0]) in terminal
                    if is_begun and self._begins(follow, text[size]):
                        found.add(text)
        return found
