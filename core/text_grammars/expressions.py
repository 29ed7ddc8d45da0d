"""Right-hand sides of rules: immutable expressions over text, control tokens and other rules."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Protocol

from ..language.nodes import Nodes
from ..language.terms import Terms
from ..regex.compile import regex_term
from ..unicode.charset import CharSet


class Buildable(Protocol):
    """Something that has a node in each store, a compiled JSON Schema say."""

    @property
    def controls(self) -> frozenset[str]:
        """The names of its control tokens."""

    def build(self, nodes: Nodes) -> int:
        """Return the node."""


@dataclass(frozen=True)
class Literal:
    """One text."""

    text: str


@dataclass(frozen=True)
class Chars:
    """One character of a set."""

    charset: CharSet


@dataclass(frozen=True)
class Regular:
    """A regular language, equal to others of the same key.

    Attributes:
        key: equal iff the languages are.
        build: returns its term in a store.
    """

    key: tuple[object, ...]
    build: Callable[[Terms], int]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Regular) and other.key == self.key

    def __hash__(self) -> int:
        return hash(self.key)


@dataclass(frozen=True)
class Control:
    """A control token, by name."""

    name: str


@dataclass(frozen=True)
class Part:
    """A language that is built elsewhere; it is not looked into."""

    language: Buildable


class _Compound:
    """An expression that is made of others. Its hash is computed once: the same part occurs in many."""

    def __hash__(self) -> int:
        found: int | None = self.__dict__.get("_hash")
        if found is None:
            found = self.__dict__["_hash"] = hash((type(self), *self._values()))
        return found

    def __reduce__(self) -> tuple[type, tuple[object, ...]]:
        return type(self), self._values()  # without the hash: those of strings differ between processes

    def _values(self) -> tuple[object, ...]:
        return tuple(getattr(self, name) for name in self.__dataclass_fields__)  # type: ignore[attr-defined]


@dataclass(frozen=True)
class Sequence(_Compound):
    """One after the other; without items, the empty text."""

    __hash__ = _Compound.__hash__

    items: tuple[Expression, ...]


@dataclass(frozen=True)
class Choice(_Compound):
    """Any of the items; without items, no text at all."""

    __hash__ = _Compound.__hash__

    items: tuple[Expression, ...]


@dataclass(frozen=True)
class Repeat(_Compound):
    """Between ``least`` and ``most`` copies (None: no upper bound)."""

    __hash__ = _Compound.__hash__

    item: Expression
    least: int
    most: int | None


@dataclass(frozen=True)
class Lazy:
    """The texts of a regular expression of which no proper prefix is a text of it."""

    item: Expression


@dataclass(frozen=True)
class Stopped:
    """The texts of a regular expression up to the first stop text, without the stop text.

    Let L = item stop, and M the texts of L of which no proper prefix is in L. A text t of the item belongs to this
    expression if t s ∈ M for a stop text s.
    """

    item: Expression
    stop: Expression


@dataclass(frozen=True)
class Intersection:
    """The texts that regular expressions have in common."""

    items: tuple[Expression, ...]


@dataclass(frozen=True)
class Complement:
    """All texts but those of a regular expression."""

    item: Expression


@dataclass(frozen=True)
class Reference:
    """Another rule, by name."""

    name: str


Expression = (
    Literal
    | Chars
    | Regular
    | Control
    | Part
    | Sequence
    | Choice
    | Repeat
    | Lazy
    | Stopped
    | Intersection
    | Complement
    | Reference
)

#: The empty text.
EMPTY_TEXT = Sequence(())


def sequence(*items: Expression) -> Expression:
    """Return items one after the other, without needless nesting."""
    flat: list[Expression] = []
    for item in items:
        flat += item.items if isinstance(item, Sequence) else (item,)
    return flat[0] if len(flat) == 1 else Sequence(tuple(flat))


def choice(*items: Expression) -> Expression:
    """Return any of the items, equal ones once."""
    distinct = tuple(dict.fromkeys(items))
    return distinct[0] if len(distinct) == 1 else Choice(distinct)


def pattern(text: str) -> Regular:
    """Return the texts that an ECMA-262 pattern matches as a whole.

    Raises:
        PatternError: malformed, or not regular.
    """
    regex_term(Terms(), text, whole=True)  # errors now, not at first use
    return Regular(("pattern", text), lambda terms: regex_term(terms, text, whole=True))


def substring(chunks: tuple[str, ...]) -> Regular:
    """Return the texts of neighbouring chunks, and the empty text: of ``("a", "b", "c")`` they are "", a, b, c, ab, bc
    and abc."""

    def build(terms: Terms) -> int:
        rest, found = terms.EPSILON, [terms.EPSILON]
        for chunk in reversed(chunks):
            found.append(terms.seq(terms.literal(chunk), rest))
            rest = terms.alt([terms.EPSILON, found[-1]])
        return terms.alt(found)

    return Regular(("substring", chunks), build)


def children(expression: Expression) -> tuple[Expression, ...]:
    """Return the expressions of which one is made."""
    if isinstance(expression, (Sequence, Choice, Intersection)):
        return expression.items
    if isinstance(expression, Stopped):
        return expression.item, expression.stop
    return (expression.item,) if isinstance(expression, (Repeat, Lazy, Complement)) else ()


def walk(expression: Expression) -> Iterator[Expression]:
    """Yield an expression and all within it; a compound part that is the same object at several locations once."""
    pending = [expression]
    seen: set[int] = set()
    while pending:
        current = pending.pop()
        inner = children(current)
        if inner:
            if id(current) in seen:
                continue
            seen.add(id(current))
            pending += inner
        yield current


def inner_first(edges: Mapping[str, list[str]], roots: Iterable[str]) -> list[str]:
    """Return the rules that the roots lead to, each after the rules that it refers to, except in a cycle.

    Args:
        edges: for each rule, the names of the rules that it refers to.
        roots: the names of the first rules.
    """
    order: list[str] = []
    seen: set[str] = set()
    for root in roots:
        pending = [(root, False)]
        while pending:
            name, is_done = pending.pop()  # done: what it refers to was visited
            if is_done:
                order.append(name)
            elif name not in seen:
                seen.add(name)
                pending.append((name, True))
                pending += [(used, False) for used in edges[name]]
    return order
