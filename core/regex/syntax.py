"""The syntax tree of a regular expression over characters, and one way to walk it.

Two families share the type :data:`Regex`. The nodes that a pattern is made of: :class:`Empty`, :class:`Chars`,
:class:`Seq`, :class:`Alt`, :class:`Repeat`, and the assertions :class:`Start`, :class:`End`, :class:`WordBoundary`,
:class:`Look`, whose truth depends on the text around the match. And the nodes of an *anchored* language, which is a
plain set of strings: the first five, plus :class:`And`, :class:`Not`, :data:`NOTHING` and :data:`ANYTHING`.

The functions :func:`seq`, :func:`alt`, :func:`both`, :func:`negate` and :func:`repeat` build nodes and simplify what
is trivially simpler; the language is the same as that of the plain constructor.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeVar, Union

from ..unicode.charset import CharSet


def _hash(node: Any) -> int:
    """Return the hash of a node, which it knows once it was asked: trees are deep, and looked up often."""
    found: int | None = node.__dict__.get("_hash")
    if found is None:
        found = node.__dict__["_hash"] = hash(tuple(getattr(node, name) for name in node.__match_args__))
    return found


@dataclass(frozen=True)
class Empty:
    """The empty string."""


@dataclass(frozen=True)
class Chars:
    """One character of a set; no string at all when the set is empty."""

    charset: CharSet

    __hash__ = _hash


@dataclass(frozen=True)
class Seq:
    """One item after the other."""

    items: tuple[Regex, ...]

    __hash__ = _hash


@dataclass(frozen=True)
class Alt:
    """Any one of the items."""

    items: tuple[Regex, ...]

    __hash__ = _hash


@dataclass(frozen=True)
class Repeat:
    """The item ``min`` to ``max`` times in a row; without an upper end when ``max`` is None."""

    item: Regex
    min: int
    max: int | None

    __hash__ = _hash


@dataclass(frozen=True)
class Start:
    """``^``: the text begins here."""


@dataclass(frozen=True)
class End:
    """``$``: the text ends here."""


@dataclass(frozen=True)
class WordBoundary:
    r"""``\b``: exactly one of the two neighbours is in ``[A-Za-z0-9_]``; or ``\B``, when negated."""

    negated: bool


@dataclass(frozen=True)
class Look:
    """``(?=...)``, ``(?!...)``, ``(?<=...)`` or ``(?<!...)``: the item matches from here (``ahead``) or up to here."""

    ahead: bool
    negated: bool
    item: Regex

    __hash__ = _hash


@dataclass(frozen=True)
class And:
    """The strings that are in the language of every item."""

    items: tuple[Regex, ...]

    __hash__ = _hash


@dataclass(frozen=True)
class Not:
    """The strings (of any length) that are not in the language of the item."""

    item: Regex

    __hash__ = _hash


Regex = Union[Empty, Chars, Seq, Alt, Repeat, Start, End, WordBoundary, Look, And, Not]

EMPTY: Final = Empty()
NOTHING: Final = Chars(CharSet.empty())
"""The language without any string."""
ANY_CHARACTER: Final = Chars(CharSet.full())
ANYTHING: Final = Repeat(ANY_CHARACTER, 0, None)
"""The language of all strings."""

_T = TypeVar("_T")


def children(node: Regex) -> tuple[Regex, ...]:
    """Return the direct parts of a node, in order."""
    if isinstance(node, Chars):  # most nodes
        return ()
    if isinstance(node, (Seq, Alt, And)):
        return node.items
    if isinstance(node, (Repeat, Look, Not)):
        return (node.item,)
    return ()


def fold(node: Regex, combine: Callable[[Regex, Sequence[_T]], _T], memo: str | None = None) -> _T:
    """Compute a value for a tree from the leaves up, without recursion and once for each shared node.

    Args:
        node: the root.
        combine: from a node and the values of its children (as in :func:`children`) to the value of the node.
        memo: the nodes remember their values under this name, for all folds that have it (and the same ``combine``).

    Returns:
        The value of the root.
    """
    values: dict[int, _T] = {}
    stack: list[tuple[Regex, tuple[Regex, ...] | None]] = [(node, None)]
    while stack:
        top, parts = stack.pop()
        if parts is None:
            if id(top) in values:
                continue
            if memo is not None and memo in top.__dict__:
                values[id(top)] = top.__dict__[memo]
                continue
            parts = children(top)
            if parts:
                stack.append((top, parts))
                stack.extend([(part, None) for part in parts])
                continue
        value = values[id(top)] = combine(top, [values[id(part)] for part in parts])
        if memo is not None:
            top.__dict__[memo] = value
    return values[id(node)]


def is_nullable(node: Regex) -> bool:
    """Return whether an anchored language holds the empty string; ValueError for a node that is an assertion."""

    def combine(node: Regex, parts: Sequence[bool]) -> bool:
        if isinstance(node, Chars):
            return False
        if isinstance(node, Empty):
            return True
        if isinstance(node, (Seq, And)):
            return all(parts)
        if isinstance(node, Alt):
            return any(parts)
        if isinstance(node, Repeat):
            return node.min == 0 or parts[0]
        if isinstance(node, Not):
            return not parts[0]
        raise ValueError(f"an assertion has no language of its own: {node}")

    return fold(node, combine, "_nullable")


def any_node(node: Regex, predicate: Callable[[Regex], bool]) -> bool:
    """Return whether a tree has a node for which the predicate holds."""
    return fold(node, lambda node, parts: predicate(node) or any(parts))


def is_pure(node: Regex) -> bool:
    """Return whether a tree is free of assertions, so that it has a language of its own."""

    def combine(node: Regex, parts: Sequence[bool]) -> bool:
        return False not in parts and not isinstance(node, (Start, End, WordBoundary, Look))

    return fold(node, combine, "_pure")


@dataclass(frozen=True)
class Width:
    """Bounds for the length of the strings that a tree matches; no upper bound when ``most`` is None."""

    least: int
    most: int | None


def width(node: Regex) -> Width:
    """Bounds for the length of the matched strings; assertions have none."""

    def combine(node: Regex, parts: Sequence[Width]) -> Width:
        least = [part.least for part in parts]
        most = [part.most for part in parts if part.most is not None]
        bounded = len(most) == len(parts)
        if isinstance(node, Chars):
            return Width(1, 1)
        if isinstance(node, Seq):
            return Width(sum(least), sum(most) if bounded else None)
        if isinstance(node, Alt):
            return Width(min(least), max(most) if bounded else None)
        if isinstance(node, And):
            return Width(max(least), min(most, default=None))
        if isinstance(node, Repeat):
            upper = 0 if most == [0] else most[0] * node.max if most and node.max is not None else None
            return Width(least[0] * node.min, upper)
        return Width(0, None) if isinstance(node, Not) else Width(0, 0)

    return fold(node, combine, "_width")


def seq(*items: Regex) -> Regex:
    """Concatenation: flattens, drops the empty string, and is NOTHING when an item is."""
    flat: list[Regex] = []
    for item in items:
        if item == NOTHING:
            return NOTHING
        parts = item.items if isinstance(item, Seq) else (item,)
        for part in parts:
            if part != EMPTY and not (flat and part is ANYTHING and flat[-1] is ANYTHING):
                flat.append(part)
    return EMPTY if not flat else flat[0] if len(flat) == 1 else Seq(tuple(flat))


def alt(*items: Regex) -> Regex:
    """Union: flattens, drops NOTHING and what is there already, joins adjacent single characters to one set."""
    flat: dict[Regex, None] = {}
    charset: CharSet | None = None
    for item in items:
        for part in item.items if isinstance(item, Alt) else (item,):
            if isinstance(part, Chars):
                charset = part.charset if charset is None else charset | part.charset
            else:
                flat[part] = None
    if charset:
        flat[Chars(charset)] = None
    if ANYTHING in flat:
        return ANYTHING
    parts = tuple(flat)
    return NOTHING if not parts else parts[0] if len(parts) == 1 else Alt(parts)


def both(*items: Regex) -> Regex:
    """Intersection of anchored languages: flattens, drops ANYTHING, and is NOTHING when an item is."""
    flat: dict[Regex, None] = {}
    for item in items:
        for part in item.items if isinstance(item, And) else (item,):
            if part == NOTHING:
                return NOTHING
            if part != ANYTHING:
                flat[part] = None
    if EMPTY in flat:
        return EMPTY if all(is_nullable(part) for part in flat) else NOTHING
    parts = tuple(flat)
    return ANYTHING if not parts else parts[0] if len(parts) == 1 else And(parts)


def negate(item: Regex) -> Regex:
    """Complement of an anchored language, relative to all strings."""
    if isinstance(item, Not):
        return item.item
    if item == NOTHING:
        return ANYTHING
    return NOTHING if item == ANYTHING else Not(item)


def repeat(item: Regex, min: int, max: int | None) -> Regex:
    """Repetition: once is the item itself, never is the empty string."""
    if max == 0 or item == EMPTY:
        return EMPTY
    if item == NOTHING:
        return EMPTY if min == 0 else NOTHING
    if (min, max) == (1, 1):
        return item
    if item == ANY_CHARACTER and (min, max) == (0, None):
        return ANYTHING
    return Repeat(item, min, max)
