"""The syntax tree of a regular expression over characters.

The nodes are :class:`Empty`, :class:`Chars`, :class:`Seq`, :class:`Alt`, :class:`Repeat`, and the assertions
:class:`Start`, :class:`End`, :class:`WordBoundary`, :class:`Look`, whose truth depends on the text around the match.
Trees of ``parse_with_groups`` also have :class:`Capture` and :class:`BackReference` (see ``back_references.py``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeVar, Union

from ..unicode.charset import CharSet


class _Leaf:
    """An immutable node without parts; by default an assertion.

    Attributes:
        items: the parts of the node, in order.
        is_pure: the tree has no assertion, so that its language does not depend on the text around it.
        is_nullable: the tree is pure, and its language has the empty string.
        shortest: lower bound of the length of the matched strings; an assertion matches the empty string.
        longest: upper bound of this length; None: there is none.
    """

    items: tuple[Regex, ...] = ()
    is_pure: bool = False
    is_nullable: bool = True
    shortest: int = 0
    longest: int | None = 0


class _Branch:
    """A node with parts: immutable, with the attributes of `_Leaf`.

    They are computed here, from those of the parts, and so is the hash: trees are deep, and looked up often.
    """

    __slots__ = ("_arguments", "_hash", "is_nullable", "is_pure", "items", "longest", "shortest")

    def __init__(
        self,
        arguments: tuple[Any, ...],
        items: tuple[Regex, ...],
        is_nullable: bool,
        shortest: int,
        longest: int | None,
    ) -> None:
        self._arguments = arguments
        self._hash = hash((type(self), arguments))
        self.items = items
        self.is_pure: bool = all(item.is_pure for item in items)
        self.is_nullable = is_nullable
        self.shortest = shortest
        self.longest = longest

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        return type(self) is type(other) and self._hash == other._hash and self._arguments == other._arguments

    def __hash__(self) -> int:
        return self._hash

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(map(repr, self._arguments))})"


@dataclass(frozen=True)
class Empty(_Leaf):
    """The empty string."""

    is_pure = True


class Chars(_Leaf):
    """One character of a set; no string at all when the set is empty."""

    __slots__ = ("charset",)

    is_pure = True
    is_nullable = False
    shortest = longest = 1

    def __init__(self, charset: CharSet) -> None:
        self.charset = charset

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Chars) and self.charset == other.charset

    def __hash__(self) -> int:
        return hash(self.charset)

    def __repr__(self) -> str:
        return f"Chars({self.charset!r})"


@dataclass(frozen=True)
class Start(_Leaf):
    """``^``: the text begins here."""


@dataclass(frozen=True)
class End(_Leaf):
    """``$``: the text ends here."""


@dataclass(frozen=True)
class WordBoundary(_Leaf):
    r"""``\b``: exactly one of the two neighbours is in ``[A-Za-z0-9_]``; or ``\B``, when negated."""

    negated: bool


@dataclass(frozen=True)
class BackReference(_Leaf):
    """The text that a group matched."""

    number: int
    longest: int | None = None


class Seq(_Branch):
    """One item after the other."""

    __slots__ = ()

    def __init__(self, items: tuple[Regex, ...]) -> None:
        nullable, shortest = all(item.is_nullable for item in items), sum([item.shortest for item in items])
        super().__init__((items,), items, nullable, shortest, _longest(items, sum))


class Alt(_Branch):
    """Any one of the items."""

    __slots__ = ()

    def __init__(self, items: tuple[Regex, ...]) -> None:
        nullable, shortest = any(item.is_nullable for item in items), min([item.shortest for item in items])
        super().__init__((items,), items, nullable, shortest, _longest(items, max))


class Repeat(_Branch):
    """The item ``min`` to ``max`` times in a row; without an upper end when ``max`` is None. A lazy repetition matches
    the same strings, but other captures are found first: parsers say it beside groups alone."""

    __slots__ = ("is_lazy", "item", "max", "min")

    def __init__(self, item: Regex, min: int, max: int | None, *, is_lazy: bool = False) -> None:
        self.item, self.min, self.max, self.is_lazy = item, min, max, is_lazy
        longest = 0 if item.longest == 0 else None if item.longest is None or max is None else item.longest * max
        arguments = (item, min, max, "lazy") if is_lazy else (item, min, max)
        super().__init__(arguments, (item,), min == 0 or item.is_nullable, item.shortest * min, longest)


class Look(_Branch):
    """``(?=...)``, ``(?!...)``, ``(?<=...)`` or ``(?<!...)``: the item matches from here (``ahead``) or up to here."""

    __slots__ = ("ahead", "item", "negated")

    def __init__(self, ahead: bool, negated: bool, item: Regex) -> None:
        self.ahead, self.negated, self.item = ahead, negated, item
        super().__init__((ahead, negated, item), (item,), True, 0, 0)
        self.is_pure = False


class Capture(_Branch):
    """A group with a number, from 1."""

    __slots__ = ("item", "number")

    def __init__(self, number: int, item: Regex) -> None:
        self.number, self.item = number, item
        super().__init__((number, item), (item,), item.is_nullable, item.shortest, item.longest)


def _longest(items: tuple[Regex, ...], combine: Callable[[list[int]], int]) -> int | None:
    """Return the combined longest matches of some items; None if one has no longest match."""
    longest = [item.longest for item in items if item.longest is not None]
    return combine(longest) if len(longest) == len(items) else None


Regex = Union[Empty, Chars, Seq, Alt, Repeat, Start, End, WordBoundary, Look, Capture, BackReference]

EMPTY: Final = Empty()
ANYTHING: Final = Repeat(Chars(CharSet.full()), 0, None)
"""All strings."""

_T = TypeVar("_T")


def fold(node: Regex, combine: Callable[[Regex, Sequence[_T]], _T]) -> _T:
    """Compute a value for a tree from the leaves up, without recursion and once for each shared node.

    Args:
        node: the root.
        combine: from a node and the values of its items to the value of the node.

    Returns:
        The value of the root.
    """
    if not node.items:
        return combine(node, ())
    values: dict[int, _T] = {}
    stack: list[Regex] = [node]
    while stack:
        top = stack[-1]
        missing = [item for item in top.items if id(item) not in values]
        if missing:
            stack += missing
            continue
        stack.pop()
        if id(top) not in values:
            values[id(top)] = combine(top, [values[id(item)] for item in top.items])
    return values[id(node)]


def boundary(word: CharSet, *, negated: bool) -> Regex:
    r"""Return ``\b`` (or ``\B``) for a set of word characters, as look-arounds."""
    before, not_before = [Look(ahead=False, negated=is_not, item=Chars(word)) for is_not in (False, True)]
    after, not_after = [Look(ahead=True, negated=is_not, item=Chars(word)) for is_not in (False, True)]
    if negated:
        return Alt((Seq((before, after)), Seq((not_before, not_after))))
    return Alt((Seq((before, not_after)), Seq((not_before, after))))


def line_anchor(character: str, terminators: CharSet) -> Regex:
    """Return ``^`` or ``$`` under the flag ``m``: an end of the text, or beside one of the line terminators."""
    ahead = character == "$"
    return Alt((End() if ahead else Start(), Look(ahead=ahead, negated=False, item=Chars(terminators))))


def in_a_row(items: Sequence[Regex]) -> Regex:
    """Return items one after the other, not simplified."""
    return EMPTY if not items else items[0] if len(items) == 1 else Seq(tuple(items))


def matches_empty_anywhere(node: Regex) -> bool:
    """Return True if a tree plainly matches the empty string, whatever is around it. False: it may or may not."""

    def combine(node: Regex, parts: Sequence[bool]) -> bool:
        """``parts``: for each part of the node, the result."""
        if isinstance(node, Seq):
            return all(parts)
        if isinstance(node, Alt):
            return any(parts)
        if isinstance(node, Repeat):
            return node.min == 0 or parts[0]
        if isinstance(node, Look):
            return parts[0] and not node.negated
        return isinstance(node, Empty)

    return fold(node, combine)


def looks_beyond(node: Regex, after: int = 0) -> bool:
    """Return True if an assertion in a tree may depend on more of the text than the tree and ``after`` characters that
    surely follow it: ``(?=b)a`` does not, nor does ``\\ba``; ``a(?=b)`` and ``(?=bc)a`` do."""
    if node.is_pure:
        return False
    if isinstance(node, (Start, End, WordBoundary)):
        return not isinstance(node, Start) and not after
    if isinstance(node, Look) and node.ahead:
        return not node.item.is_pure or node.item.longest is None or node.item.longest > after
    for item in reversed(node.items):
        if looks_beyond(item, after):
            return True
        after += item.shortest if isinstance(node, Seq) else 0
    return False
