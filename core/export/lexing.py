"""Fixed texts that a longest-match lexer would divide wrongly: they have to be written as single characters.

A *terminal* is a fixed text, one character of a set, or a control token. llguidance runs all possible terminals in
parallel, continues while one of them can, and never backtracks. So a terminal is divided wrongly if the character after
its end also continues another terminal: in ``"a" "b" | "ab" "c"``, the text ``ab`` is read as ``"ab"``, and refused
because there is no ``c``.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple, TypeGuard

from ..text_grammars.expressions import (
    Chars,
    Choice,
    Control,
    Expression,
    Literal,
    Reference,
    Repeat,
    Sequence,
    inner_first,
)
from ..unicode.charset import CharSet

#: Maximum number of sets of terminals that may come next together and are looked at.
MAX_SETS = 300


class _Shape(NamedTuple):
    """Facts of an expression in Glushkov's construction: nullable, first, last.

    Attributes:
        nullable: it has the empty text.
        first: the set of terminals with which its texts begin.
        last: the set of terminals with which its texts end.
    """

    nullable: bool
    first: int
    last: int


def ambiguous_literals(rules: Mapping[str, Expression], root: str) -> set[str]:
    """Return the fixed texts that are to be written as single characters, so that each text is divided in one way.

    Where more than `MAX_SETS` sets of terminals may come next together, return all fixed texts.
    """
    split: set[str] = set()  # a text in characters has new terminals, which other texts may continue
    while more := _Lexing(rules, root, split).conflicts():
        split |= more
    return split


class _Lexing:
    """The terminals of rules, numbered by occurrence, and which of them may follow which.

    Sets of terminals are integers with a bit for each number, and sets of characters are integers with a bit for each
    interval between the bounds of all sets.
    """

    def __init__(self, rules: Mapping[str, Expression], root: str, split: set[str]) -> None:
        self._split = split
        self._terminals: list[str | CharSet | None] = []  # None: a control token
        numbered = {name: self._numbered(body) for name, body in rules.items()}
        self._shapes: dict[str, _Shape] = dict.fromkeys(rules, _NO_TEXT)
        self._find_shapes(numbered)
        self._root = self._shapes[root].first
        self._follow = [0] * len(self._terminals)  # by terminal: the set of those that may follow it
        for part in numbered.values():
            self._link_within(part)
        first_chars = [each if isinstance(each, CharSet) else CharSet.of((each or "")[:1]) for each in self._terminals]
        self._bounds = sorted({bound for each in first_chars for low, high in each.ranges for bound in (low, high + 1)})
        bit_of = {bound: 1 << index for index, bound in enumerate(self._bounds)}
        # The difference of two bits has all bits between them: the intervals from low to high.
        self._first_chars = [sum(bit_of[high + 1] - bit_of[low] for low, high in each.ranges) for each in first_chars]
        self._first_chars_of_sets: dict[int, int] = {}  # memo of `_may_begin`

    def _numbered(self, expression: Expression) -> _Part:
        """Return an expression in which each terminal has a number."""
        if isinstance(expression, Literal) and expression.text in self._split:
            return _Part("sequence", [self._terminal(char) for char in expression.text])
        if isinstance(expression, Literal):
            return self._terminal(expression.text)
        if isinstance(expression, Chars):
            return self._terminal(expression.charset)
        if isinstance(expression, Control):
            return self._terminal(None)
        if isinstance(expression, Reference):
            return _Part("rule", [], expression.name)
        if isinstance(expression, Repeat):
            is_loop = expression.most is None or expression.most > 1
            return _Part("repeat", [self._numbered(expression.item)], "", expression.least == 0, is_loop)
        assert isinstance(expression, (Choice, Sequence))
        kind = "choice" if isinstance(expression, Choice) else "sequence"
        return _Part(kind, [self._numbered(item) for item in expression.items])

    def _terminal(self, terminal: str | CharSet | None) -> _Part:
        self._terminals.append(terminal)
        return _Part("terminal", [], bit=1 << len(self._terminals) - 1)

    def _find_shapes(self, numbered: Mapping[str, _Part]) -> None:
        """Find the shape of each rule, a least fixed point: all begin without a text, and grow until none changes."""
        uses = {name: list(dict.fromkeys(part.rules())) for name, part in numbered.items()}
        users: dict[str, list[str]] = {name: [] for name in numbered}
        for name, used in uses.items():
            for each in used:
                users[each].append(name)
        outdated = set(numbered)  # rules of which a used rule has changed
        order = inner_first(uses, uses)
        while outdated:
            for name in order:
                if name in outdated:
                    outdated.discard(name)
                    shape = self._shape(numbered[name])
                    if shape != self._shapes[name]:
                        self._shapes[name] = shape
                        outdated.update(users[name])

    def _shape(self, part: _Part) -> _Shape:
        """Return the shape of a part. A reference has the shape of its rule so far."""
        if part.kind == "terminal":
            return _Shape(False, part.bit, part.bit)
        if part.kind == "rule":
            return self._shapes[part.name]
        if part.kind == "repeat":
            nullable, first, last = self._shape(part.items[0])
            return _Shape(nullable or part.is_optional, first, last)
        shapes = map(self._shape, part.items)
        return _shape_of_choice(shapes) if part.kind == "choice" else _shape_of_sequence(shapes)

    def _link_within(self, part: _Part) -> _Shape:
        """Record which terminals may follow which (as in Glushkov's construction). Return the shape of the part."""
        if not part.items:
            return self._shape(part)
        shapes = [self._link_within(item) for item in part.items]
        if part.kind == "choice":
            return _shape_of_choice(shapes)
        if part.kind == "repeat":
            ((nullable, first, last),) = shapes
            if part.is_loop:
                self._link(last, first)
            return _Shape(nullable or part.is_optional, first, last)
        before = 0  # the terminals that may come directly before the next item
        for nullable, first, last in shapes:
            self._link(before, first)
            before = last | (before if nullable else 0)
        return _shape_of_sequence(shapes)

    def _link(self, before: int, after: int) -> None:
        """Record that each terminal of a set may be followed by each one of another set."""
        for number in _members(before):
            self._follow[number] |= after

    def _may_begin(self, terminals: int, char: str) -> bool:
        """Return True if a terminal of a set begins with a character."""
        chars = self._first_chars_of_sets.get(terminals)
        if chars is None:
            chars = 0
            for number in _members(terminals):
                chars |= self._first_chars[number]
            self._first_chars_of_sets[terminals] = chars
        return self._has(chars, char)

    def _has(self, chars: int, char: str) -> bool:
        """Return True if a set of characters has this one."""
        interval = bisect_right(self._bounds, ord(char)) - 1
        return interval >= 0 and bool(chars >> interval & 1)

    def _possible_sets(self) -> Iterator[dict[int, int]]:
        """Yield each set of terminals that may come next at one position: a dict from the number of each to the set of
        terminals that may follow.

        The lexer does not know which of several terminals with the same text it has read. So what may follow one
        terminal is what may follow any terminal of its group (`_groups`).
        """
        pending = [self._root]
        seen = set(pending)
        while pending:
            followers: dict[int, int] = {}
            for group in self._groups(_members(pending.pop())):
                after = 0
                for number in group:
                    after |= self._follow[number]
                followers |= dict.fromkeys(group, after)
                if after and after not in seen:
                    seen.add(after)
                    pending.append(after)
            yield followers

    def _groups(self, members: list[int]) -> list[list[int]]:
        """Return terminals in groups: two with a text in common are in one group, so groups have no common text."""
        equal: dict[str | None, list[int]] = {}  # control tokens, and texts of several characters
        overlapping: list[tuple[int, list[int]]] = []  # groups of one character, each with its set of characters
        for number in members:
            terminal = self._terminals[number]
            if terminal is None or _is_long(terminal):
                equal.setdefault(terminal, []).append(number)
                continue
            # Merge the groups that have a character of this terminal.
            chars, group, separate = self._first_chars[number], [number], []
            for other_chars, other_group in overlapping:
                if other_chars & self._first_chars[number]:
                    chars |= other_chars
                    group += other_group
                else:
                    separate.append((other_chars, other_group))
            overlapping = [*separate, (chars, group)]
        return [*equal.values(), *(group for _, group in overlapping)]

    def conflicts(self) -> set[str]:
        """Return fixed texts that continue another terminal where it may end: ``"ab"`` beside the terminal ``"a"``, if
        that may be followed by a terminal that begins with ``b``."""
        found: set[str] = set()
        for count, followers in enumerate(self._possible_sets()):
            if count > MAX_SETS:
                return {text for text in self._terminals if _is_long(text)}
            texts = {text for number in followers if _is_long(text := self._terminals[number])}
            if not texts or len(followers) < 2:
                continue
            for number, after in followers.items():
                terminal = self._terminals[number]
                if terminal is None or not after:
                    continue
                for text in texts - found:
                    if isinstance(terminal, str):
                        size = len(terminal)
                        text_continues = size < len(text) and text.startswith(terminal)
                    else:
                        size = 1
                        text_continues = self._has(self._first_chars[number], text[0])
                    if text_continues and self._may_begin(after, text[size]):
                        found.add(text)
        return found


@dataclass(slots=True)
class _Part:
    """An expression whose terminals are numbered: a ``terminal``, ``rule``, ``repeat``, ``choice`` or ``sequence``.

    Attributes:
        items: its parts.
        name: of the rule.
        is_optional: the repetition may be empty.
        is_loop: the repetition may have more than one copy.
        bit: of the terminal.
    """

    kind: str
    items: list[_Part]
    name: str = ""
    is_optional: bool = False
    is_loop: bool = False
    bit: int = 0

    def rules(self) -> Iterator[str]:
        """Yield the names of the rules that it refers to."""
        if self.kind == "rule":
            yield self.name
        for item in self.items:
            yield from item.rules()


def _is_long(terminal: str | CharSet | None) -> TypeGuard[str]:
    """Return True for a text of several characters."""
    return isinstance(terminal, str) and len(terminal) > 1


def _members(numbers: int) -> list[int]:
    """Return the numbers in a set: ``0b1010`` -> ``[1, 3]``."""
    found = []
    while numbers:
        lowest = numbers & -numbers  # the lowest bit alone
        found.append(lowest.bit_length() - 1)
        numbers ^= lowest
    return found


#: The shape of an expression without a text, not even the empty one.
_NO_TEXT = _Shape(False, 0, 0)


def _shape_of_choice(shapes: Iterable[_Shape]) -> _Shape:
    nullable, first, last = _NO_TEXT
    for shape in shapes:
        nullable, first, last = nullable or shape.nullable, first | shape.first, last | shape.last
    return _Shape(nullable, first, last)


def _shape_of_sequence(shapes: Iterable[_Shape]) -> _Shape:
    nullable, first, last = True, 0, 0
    for shape in shapes:
        first |= shape.first if nullable else 0
        last = shape.last | (last if shape.nullable else 0)
        nullable = nullable and shape.nullable
    return _Shape(nullable, first, last)
