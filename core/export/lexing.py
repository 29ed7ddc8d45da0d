"""Fixed texts that a longest-match lexer would divide wrongly: they have to be written as single characters.

llguidance runs all possible terminals in parallel, continues while one of them can, and never backtracks. So a terminal
is divided wrongly if the character after its end also continues another terminal.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TypeGuard

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
    """The terminals of rules, numbered by occurrence, and which of them may follow which.

    Sets of terminals are integers with a bit for each number, and sets of characters are integers with a bit for each
    interval between the bounds of all sets.
    """

    def __init__(self, rules: Mapping[str, Expression], root: str, split: set[str]) -> None:
        self._split = split
        self._terminals: list[str | CharSet | None] = []  # None: a control token
        numbered = {name: self._numbered(body) for name, body in rules.items()}
        self._shapes: dict[str, _Shape] = dict.fromkeys(rules, (False, 0, 0))
        self._settle(numbered)
        self._root = self._shapes[root][1]
        self._follow = [0] * len(self._terminals)
        for part in numbered.values():
            self._link_within(part)
        sets = [each if isinstance(each, CharSet) else CharSet.of((each or "")[:1]) for each in self._terminals]
        self._bounds = sorted({bound for each in sets for low, high in each.ranges for bound in (low, high + 1)})
        places = {bound: index for index, bound in enumerate(self._bounds)}
        self._begins = [sum((1 << places[high + 1]) - (1 << places[low]) for low, high in each.ranges) for each in sets]
        self._first_of: dict[int, int] = {}

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

    def _settle(self, numbered: Mapping[str, _Part]) -> None:
        """Find the shape of each rule, the least that agrees with those of the rules that it refers to."""
        edges = {name: list(dict.fromkeys(part.rules())) for name, part in numbered.items()}
        users: dict[str, list[str]] = {name: [] for name in numbered}
        for name, used in edges.items():
            for each in used:
                users[each].append(name)
        changed = set(numbered)
        order = inner_first(edges, edges)
        while changed:
            for name in order:
                if name in changed:
                    changed.discard(name)
                    shape = self._shape(numbered[name])
                    if shape != self._shapes[name]:
                        self._shapes[name] = shape
                        changed.update(users[name])

    def _shape(self, part: _Part) -> _Shape:
        """Return the shape of a part. A reference has the shape of its rule so far."""
        if part.kind == "terminal":
            return False, part.bit, part.bit
        if part.kind == "rule":
            return self._shapes[part.name]
        if part.kind == "repeat":
            nullable, first, last = self._shape(part.items[0])
            return nullable or part.is_optional, first, last
        shapes = map(self._shape, part.items)
        return _either(shapes) if part.kind == "choice" else _joined(shapes)

    def _link_within(self, part: _Part) -> _Shape:
        """Record which terminals may follow which (as in Glushkov's construction). Return the shape of the part."""
        if not part.items:
            return self._shape(part)
        shapes = [self._link_within(item) for item in part.items]
        if part.kind == "choice":
            return _either(shapes)
        if part.kind == "repeat":
            ((nullable, first, last),) = shapes
            if part.is_loop:
                self._link(last, first)
            return nullable or part.is_optional, first, last
        ends = 0
        for nullable, first, last in shapes:
            self._link(ends, first)
            ends = last | (ends if nullable else 0)
        return _joined(shapes)

    def _link(self, ends: int, begins: int) -> None:
        for number in _members(ends):
            self._follow[number] |= begins

    def _may_begin(self, numbers: int, char: str) -> bool:
        """Return True if one of some terminals begins with a character."""
        first = self._first_of.get(numbers)
        if first is None:
            first = 0
            for number in _members(numbers):
                first |= self._begins[number]
            self._first_of[numbers] = first
        return self._has(first, char)

    def _has(self, chars: int, char: str) -> bool:
        place = bisect_right(self._bounds, ord(char)) - 1
        return place >= 0 and bool(chars >> place & 1)

    def _possible_sets(self) -> Iterator[tuple[list[int], list[int]]]:
        """Yield each set of terminals that may come next at one position: their numbers, and for each of them, as bits,
        the terminals that may follow it or a terminal like it (`_alike`)."""
        pending = [self._root]
        seen = set(pending)
        while pending:
            members = _members(pending.pop())
            follows: dict[int, int] = {}
            for group in self._alike(members):
                joint = 0
                for number in group:
                    joint |= self._follow[number]
                follows |= dict.fromkeys(group, joint)
                if joint and joint not in seen:
                    seen.add(joint)
                    pending.append(joint)
            yield members, [follows[number] for number in members]

    def _alike(self, members: list[int]) -> list[list[int]]:
        """Return terminals in groups. Two are alike if they have a text in common, because after it the lexer is at the
        end of both, or if both are like a third one."""
        equal: dict[str | None, list[int]] = {}  # control tokens, and texts of several characters
        overlapping: list[tuple[int, list[int]]] = []  # those of one character, with the characters of each group
        for number in members:
            terminal = self._terminals[number]
            if terminal is None or _is_long(terminal):
                equal.setdefault(terminal, []).append(number)
                continue
            chars, group, others = self._begins[number], [number], []
            for other_chars, other_group in overlapping:
                if other_chars & self._begins[number]:
                    chars |= other_chars
                    group += other_group
                else:
                    others.append((other_chars, other_group))
            overlapping = [*others, (chars, group)]
        return [*equal.values(), *(group for _, group in overlapping)]

    def conflicts(self) -> set[str]:
        """Return fixed texts that continue another terminal where it may end: ``"ab"`` beside the terminal ``"a"``, if
        that may be followed by a terminal that begins with ``b``."""
        found: set[str] = set()
        for count, (members, follows) in enumerate(self._possible_sets()):
            if count > MAX_SETS:
                return {text for text in self._terminals if _is_long(text)}
            texts = {text for number in members if _is_long(text := self._terminals[number])}
            if not texts or len(members) < 2:
                continue
            for number, follow in zip(members, follows, strict=True):
                terminal = self._terminals[number]
                if terminal is None or not follow:
                    continue
                for text in texts - found:
                    if isinstance(terminal, str):
                        size = len(terminal)
                        is_begun = size < len(text) and text.startswith(terminal)
                    else:
                        size, is_begun = 1, self._has(self._begins[number], text[0])
                    if is_begun and self._may_begin(follow, text[size]):
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
    """Return the numbers of the bits of a set."""
    found = []
    while numbers:
        lowest = numbers & -numbers  # the lowest bit alone
        found.append(lowest.bit_length() - 1)
        numbers ^= lowest
    return found


def _either(shapes: Iterable[_Shape]) -> _Shape:
    """Return the shape of a choice."""
    nullable, first, last = False, 0, 0
    for shape in shapes:
        nullable, first, last = nullable or shape[0], first | shape[1], last | shape[2]
    return nullable, first, last


def _joined(shapes: Iterable[_Shape]) -> _Shape:
    """Return the shape of a sequence."""
    nullable, first, last = True, 0, 0
    for shape in shapes:
        first |= shape[1] if nullable else 0
        last = shape[2] | (last if shape[0] else 0)
        nullable = nullable and shape[0]
    return nullable, first, last
