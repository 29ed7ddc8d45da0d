"""Rules of recursive grammars: definitions and parts, and the check that each ends and none begins with itself.

The parts are `Grammar` objects, which are taken apart by their makers and arguments.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..errors import GrammarError, LimitError
from ..language.nodes import Nodes

#: Maximum number of rules that one grammar may reach.
MAX_RULES = 2_000


@dataclass(frozen=True)
class Rule:
    """A named definition of a grammar, made when it is first needed. Equal rules have the same definition."""

    name: str
    definition: Callable[[], Any]
    _made: list[Any] = field(default_factory=list, compare=False, repr=False)

    @property
    def body(self) -> Any:
        """The grammar that the rule stands for."""
        if not self._made:
            try:
                made = self.definition()
            except NameError as error:
                raise GrammarError(
                    f"rule {self.name!r} is not defined: {error}",
                    hint="assign every grammar that its definition uses before the rule is used",
                ) from error
            if not hasattr(made, "_key"):
                raise GrammarError(
                    f"the definition of rule {self.name!r} returns {made!r}, not a grammar",
                    hint="return a Grammar: Grammar.literal('...') for a fixed text",
                )
            self._made.append(made)
        return self._made[0]


def _parts(grammar: Any) -> list[Any]:
    """Return the grammars among the arguments that a grammar was made of."""
    flat = (value for item in grammar._key for value in (item if isinstance(item, tuple) else (item,)))
    return [value for value in flat if hasattr(value, "_key")]


def reached_from(grammar: Any) -> tuple[list[Any], dict[Rule, Any]]:
    """Return a grammar with all its parts, those in rules included, in a fixed order; and the body of each rule. Rules
    with the same definition share a body. Parts without rules are not taken apart.

    Raises:
        GrammarError: a rule is not defined.
        LimitError: there are more than `MAX_RULES` rules.
    """
    bodies: dict[Rule, Any] = {}
    reached: dict[int, Any] = {}
    pending = [grammar]
    while pending:
        part = pending.pop()
        if id(part) in reached:
            continue
        reached[id(part)] = part
        if part._key[0] == "rule":
            if part._rule not in bodies:
                bodies[part._rule] = part._rule.body
                pending.append(part._rule.body)
            if len(bodies) > MAX_RULES:
                raise LimitError(
                    f"the grammar has more than {MAX_RULES:,} rules, the last of them {part._rule.name!r}",
                    hint="make each rule once, outside of the definitions",
                )
        elif part._has_rules:
            pending += reversed(_parts(part))
    return list(reached.values()), bodies


def content_of(grammar: Any) -> tuple[Hashable, ...]:
    """Return the makers and arguments of a recursive grammar: a list of its parts, which refer to each other by number.

    Raises as for `reached_from`.
    """
    reached, bodies = reached_from(grammar)
    numbers = {id(part): number for number, part in enumerate(reached)}

    def written(value: Any) -> Hashable:
        if isinstance(value, Rule):
            return value.name
        if isinstance(value, tuple):
            return tuple(map(written, value))
        return ("part", numbers[id(value)]) if getattr(value, "_has_rules", False) else value

    parts = [part for part in reached if part._has_rules]
    return (
        "rules",
        *((written(part._key), written(bodies[part._rule]) if part._key[0] == "rule" else None) for part in parts),
    )


def once(name: Hashable, build: Callable[[Nodes], int]) -> Callable[[Nodes], int]:
    """Return a builder that builds a node once in each store, where it is kept under a name."""

    def found(nodes: Nodes) -> int:
        node = nodes.known.get(name)
        if node is None:
            node = nodes.known[name] = build(nodes)
        return node

    return found


def check_rules(reached: Sequence[Any], bodies: Mapping[Any, Any], nodes: Nodes) -> None:
    """Refuse rules that have no finite text, and rules that may begin with themselves.

    Args:
        reached: a grammar and its parts, rules followed.
        bodies: the body of each rule.
        nodes: where the parts without rules are built.

    Raises:
        GrammarError: names the rule.
    """
    plain = [(part, part._node(nodes)) for part in reached if not part._has_rules]
    with_text = {id(part) for part, node in plain if part._is_sure or not nodes.is_empty(node)}
    nullable = {id(part) for part, node in plain if nodes.nullable(node)}
    _close(with_text, reached, bodies, only_empty=False)
    _close(nullable, reached, bodies, only_empty=True)
    for rule, body in bodies.items():
        if id(body) not in with_text:
            raise GrammarError(
                f"rule {rule.name!r} never ends: every alternative of it needs the rule again, or has no text",
                hint="add an alternative that does not contain the rule",
            )
    first = {id(part): _first(part, bodies, nullable) for part in reached if part._has_rules}
    for rule, body in bodies.items():
        if (cycle := _path(body, body, first)) is not None:
            names = dict.fromkeys(part._rule.name for part in cycle if part._key[0] == "rule")
            through = [repr(name) for name in names if name != rule.name]
            raise GrammarError(
                f"rule {rule.name!r} is left-recursive" + (f" through {', '.join(through)}" if through else ""),
                hint="write something before the rule, or use Grammar.repeat for lists",
            )


def _close(holding: set[int], reached: Sequence[Any], bodies: Mapping[Any, Any], *, only_empty: bool) -> None:
    """Add to ``holding``, the ids of parts without rules that have a text, those of the parts with rules that have one
    because their own parts have: the least fixpoint. ``only_empty``: the same for the empty text."""

    def holds(part: Any) -> bool:
        """Return True if a part has such a text, given the parts that are known to have one."""
        kind, *rest = part._key  # the maker of the part, and its arguments
        if kind == "rule":
            return id(bodies[part._rule]) in holding
        if kind == "sequence":
            return all(id(inner) in holding for inner in rest)
        if kind == "choice":
            return any(id(inner) in holding for inner in rest)
        if kind == "repeat":
            inner, least, _ = rest
            return least == 0 or id(inner) in holding
        if kind == "cases":
            return any(id(inner) in holding for word, inner in rest if not (only_empty and word))
        separator, least, _, *parts = rest  # "distinct"
        count = sum(id(inner) in holding for inner in parts)
        # One part needs no separator.
        return least == 0 or (count >= least and (least == 1 or id(separator) in holding))

    changed = True
    while changed:
        new = []
        for part in reversed(reached):  # mostly the parts before the whole
            if part._has_rules and id(part) not in holding and holds(part):
                holding.add(id(part))
                new.append(part)
        changed = bool(new)


def _first(part: Any, bodies: Mapping[Any, Any], nullable: set[int]) -> list[Any]:
    """Return the parts with which a text of a grammar may begin; ``nullable``: the ids of those with the empty text."""
    rest: list[Any]
    kind, *rest = part._key
    if kind == "rule":
        return [bodies[part._rule]]
    if kind == "sequence":
        count = next((number for number, inner in enumerate(rest) if id(inner) not in nullable), len(rest))
        return rest[: count + 1]
    if kind == "choice":
        return rest
    if kind == "repeat":
        inner, _, most = rest
        return [] if most == 0 else [inner]
    if kind == "cases":
        return [inner for word, inner in rest if not word]
    separator, _, most, *parts = rest  # "distinct"
    after = [separator] if most > 1 and any(id(inner) in nullable for inner in parts) else []
    return [*parts, *after] if most else []


def _path(start: Any, end: Any, first: Mapping[int, list[Any]]) -> list[Any] | None:
    """Return a path of at least one step from a grammar to another, as a list of parts; None if there is none."""
    before: dict[int, Any] = {}
    pending = [start]
    while pending:
        part = pending.pop()
        for follower in first.get(id(part), ()):
            if follower is end:
                way = [part]
                while way[-1] is not start:
                    way.append(before[id(way[-1])])
                return way[::-1]
            if id(follower) not in before and follower is not start:
                before[id(follower)] = part
                pending.append(follower)
    return None
