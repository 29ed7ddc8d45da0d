"""Rules of a context-free grammar as nodes: regular parts become terms, left recursion is solved.

A rule is a lazy node, so only the rules that a text reaches cost anything. Two things are done in advance:

- An expression without recursion, control tokens and foreign languages is regular. It becomes one term, with the rules
  that it names, so that masks see one atom instead of one for each character.
- Left-recursive rules, alone or in a cycle, are a system of equations A = A₁ C₁ | A₂ C₂ | ... | B, where no B begins
  with a rule of the cycle. Its least solution is regular in the B and C (Arden 1961), found by elimination: the number
  of nodes is at most cubic in the number of rules of the cycle. For one rule it is A = B C*. For a rule that can be
  empty, the equations are about its nonempty texts.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from math import inf

from ..basics.cached import cached_property
from ..errors import GrammarError, LimitError, ToolGrammarError, UnsupportedSchemaError
from ..language.least_text import LOWER_COUNTS, MAX_LEAST_TEXT, too_long
from ..language.nodes import Nodes
from ..language.terms import Terms
from ..regex.equations import quotient
from .expressions import (
    Chars,
    Choice,
    Complement,
    Control,
    Expression,
    Intersection,
    Lazy,
    Literal,
    Part,
    Reference,
    Regular,
    Repeat,
    Sequence,
    Stopped,
    children,
    sequence,
    walk,
)

#: Maximum size of an expression that becomes one term: characters and sets, repetitions written out.
MAX_REGULAR = 2_000

#: Maximum number of products that solving a circle of left-recursive rules may take.
MAX_PRODUCTS = 50_000


@dataclass(frozen=True)
class Rules:
    """Rules and the name of the first one. Two of them are equal iff their keys are.

    Attributes:
        key: what they were read from.
        rules: the expression of each rule; all references are to rules.
        root: the name of the start rule.
        source: the text to read them again, if the key does not contain it.
    """

    key: Hashable
    rules: Mapping[str, Expression]
    root: str
    source: str | None = None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Rules) and other.key == self.key

    def __hash__(self) -> int:
        return hash(self.key)

    def build(self, nodes: Nodes) -> int:
        """Return the root node in a store."""
        builder = nodes.builders.get(self)
        if builder is None:
            builder = nodes.builders[self] = _Builder(self, nodes)
        root: int = builder.rule(self.root)
        return root

    def term(self, terms: Terms, expression: Expression | None = None) -> int | None:
        """Return the term of an expression, without one of the first rule; None if it is not regular, or too large."""
        whole = expression or Reference(self.root)
        return _RegularParts(self, terms).of(whole) if self.is_regular(whole) else None

    @cached_property
    def controls(self) -> frozenset[str]:
        """The names of the control tokens."""
        parts = [part for expression in self.rules.values() for part in walk(expression)]
        own = {part.name for part in parts if isinstance(part, Control)}
        return frozenset(own).union(*(part.language.controls for part in parts if isinstance(part, Part)))

    def check(self) -> None:
        """Raise an error if no text of the first rule is finite, or if a part has none that a model can write.

        Raises:
            GrammarError: the first rule never ends.
            LimitError: all texts of a part of a rule are too long; names the rule.
        """
        fewest = _fewest_of(self.rules, _least_of_leaf)
        if self.root not in fewest:
            raise GrammarError(
                f"rule {self.root!r} never ends: every alternative of it needs a rule that never ends",
                hint="add an alternative that does not contain the rule",
            )
        for name, expression in self.rules.items():
            for part in walk(expression):
                if isinstance(part, (Sequence, Repeat)):
                    length = fewest_chars(part, fewest)
                    if MAX_LEAST_TEXT < length < inf:
                        raise LimitError(too_long(f"each text of a part of rule {name!r}", length), hint=LOWER_COUNTS)

    @cached_property
    def recursive(self) -> frozenset[str]:
        """The names of the rules that can contain themselves."""
        edges = {
            name: [part.name for part in walk(expression) if isinstance(part, Reference)]
            for name, expression in self.rules.items()
        }
        return frozenset(name for circle in circles_of(edges) for name in circle)

    @cached_property
    def sizes(self) -> dict[str, int | None]:
        """The size of each rule that is regular; None for the others."""
        sizes: dict[str, int | None] = dict.fromkeys(self.recursive)
        pending = list(self.rules)
        while pending:
            name = pending[-1]
            if name in sizes:
                pending.pop()
                continue
            parts = [part.name for part in walk(self.rules[name]) if isinstance(part, Reference)]
            missing = [part for part in parts if part not in sizes]
            pending += missing
            if not missing:
                sizes[name] = _size(self.rules[name], sizes)
        return sizes

    def is_regular(self, expression: Expression) -> bool:
        """Return True if an expression becomes one term."""
        return _size(expression, self.sizes) is not None


@dataclass
class ReadGrammar:
    """The result of reading a grammar.

    Attributes:
        rules: the language.
        problems: keywords of JSON Schemas that are left out.
        narrowed: keywords of which some valid values are left out.
    """

    rules: Rules
    problems: tuple[ToolGrammarError, ...] = ()
    narrowed: tuple[UnsupportedSchemaError, ...] = ()


def _size(expression: Expression, sizes: Mapping[str, int | None]) -> int | None:
    """Return the size of a regular expression, at most `MAX_REGULAR`; None if it is not one, or too large."""
    if isinstance(expression, Reference):
        return sizes[expression.name]
    if isinstance(expression, (Control, Part)):
        return None
    size = len(expression.text) if isinstance(expression, Literal) else 1
    for item in children(expression):
        part = _size(item, sizes)
        if part is None:
            return None
        size += part
    if isinstance(expression, Repeat):
        size *= max(1, expression.least, expression.most or 0)
    return size if size <= MAX_REGULAR else None


def _fewest(expression: Expression, rules: Mapping[str, float], leaf: Callable[[Expression], float]) -> float:
    """Return a lower bound of the characters of an expression's texts, which is 0 if one is empty; infinite if it is
    seen that there is none.

    Args:
        expression: the expression.
        rules: the fewest characters of each rule; without a rule, it counts as one without texts.
        leaf: returns those of any other expression: a text, a set or token, and what is not looked into (a pattern, an
            intersection, a complement, a language that is built elsewhere).
    """
    if isinstance(expression, Reference):
        return rules.get(expression.name, inf)
    if isinstance(expression, Sequence):
        total: float = 0
        for item in expression.items:
            total += _fewest(item, rules, leaf)
            if total == inf:
                break
        return total
    if isinstance(expression, Choice):
        return min([_fewest(item, rules, leaf) for item in expression.items], default=inf)
    if isinstance(expression, Repeat):
        return _fewest(expression.item, rules, leaf) * expression.least if expression.least else 0
    if isinstance(expression, Stopped) and _fewest(expression.stop, rules, leaf) == inf:
        return inf
    if isinstance(expression, (Lazy, Stopped)):
        return _fewest(expression.item, rules, leaf)
    return leaf(expression)


def fewest_chars(expression: Expression, rules: Mapping[str, float] | None = None) -> float:
    """Return a lower bound of the characters of an expression's texts: `_fewest`, with what is not looked into counted
    as the empty text. ``rules`` has that of each rule."""
    return _fewest(expression, rules or {}, _least_of_leaf)


def _least_of_leaf(expression: Expression) -> float:
    """Return a lower bound of the characters of a text, a set or token; 0 for what is not looked into (`_fewest`)."""
    if isinstance(expression, Literal):
        return len(expression.text)
    return 1 if isinstance(expression, (Chars, Control)) else 0


def _fewest_of(rules: Mapping[str, Expression], leaf: Callable[[Expression], float]) -> dict[str, float]:
    """Return the fewest characters of each rule that has a text: the least fixpoint, by increasing length (Knuth 1977).

    Args:
        rules: the rules.
        leaf: as for `_fewest`.
    """
    users: dict[str, list[str]] = {name: [] for name in rules}
    for name, expression in rules.items():
        for used in {part.name for part in walk(expression) if isinstance(part, Reference)}:
            users[used].append(name)
    found: dict[str, float] = {}
    nearest = {name: _fewest(expression, found, leaf) for name, expression in rules.items()}
    heap = [(length, name) for name, length in nearest.items() if length < inf]
    heapify(heap)
    while heap:
        length, name = heappop(heap)
        if name in found:
            continue
        found[name] = length
        for user in users[name]:
            if nearest[user] > length:  # else it has a text that is not longer
                shorter = _fewest(rules[user], found, leaf)
                if shorter < nearest[user]:
                    nearest[user] = shorter
                    heappush(heap, (shorter, user))
    return found


def circles_of(edges: Mapping[str, Iterable[str]]) -> list[list[str]]:
    """Return the strongly connected components that have an edge inside (Tarjan 1972, without recursion)."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    on_stack: set[str] = set()
    circles = []
    for start in edges:
        if start in index:
            continue
        work = [(start, iter(edges[start]))]
        index[start] = low[start] = len(index)
        stack.append(start)
        on_stack.add(start)
        while work:
            name, targets = work[-1]
            target = next(targets, None)
            if target is None:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[name])
                if low[name] == index[name]:
                    at = stack.index(name)
                    circle = stack[at:]
                    del stack[at:]
                    on_stack.difference_update(circle)
                    if len(circle) > 1 or name in edges[name]:
                        circles.append(circle)
            elif target not in index:
                index[target] = low[target] = len(index)
                stack.append(target)
                on_stack.add(target)
                work.append((target, iter(edges[target])))
            elif target in on_stack:
                low[name] = min(low[name], index[target])
    return circles


class _RegularParts:
    """The terms of regular expressions in one store."""

    def __init__(self, rules: Rules, terms: Terms) -> None:
        self._rules = rules
        self._terms = terms
        self._known: dict[str, int] = {}

    def of(self, expression: Expression) -> int:
        """Return the term of a regular expression."""
        terms = self._terms
        if isinstance(expression, Literal):
            return terms.literal(expression.text)
        if isinstance(expression, Chars):
            return terms.chars(expression.charset)
        if isinstance(expression, Regular):
            return expression.build(terms)
        if isinstance(expression, Sequence):
            return terms.sequence([self.of(item) for item in expression.items])
        if isinstance(expression, Choice):
            return terms.alt([self.of(item) for item in expression.items])
        if isinstance(expression, Repeat):
            return terms.repeat(self.of(expression.item), expression.least, expression.most)
        if isinstance(expression, Lazy):
            return _shortest(terms, self.of(expression.item))
        if isinstance(expression, Stopped):
            return self._stopped(expression)
        if isinstance(expression, Intersection):
            return int(terms.and_([self.of(item) for item in expression.items]))
        if isinstance(expression, Complement):
            return int(terms.not_(self.of(expression.item)))
        assert isinstance(expression, Reference)
        return self._rule(expression.name)

    def _rule(self, name: str) -> int:
        """Return the term of a rule; those that it needs, maybe thousands, are made first and without recursion."""
        pending = [name]
        while pending:
            top = pending[-1]
            if top in self._known:
                pending.pop()
                continue
            body = self._rules.rules[top]
            names = {part.name for part in walk(body) if isinstance(part, Reference)}
            missing = names - self._known.keys()
            pending += missing
            if not missing:
                self._known[top] = self.of(body)
        return self._known[name]

    def _stopped(self, expression: Stopped) -> int:
        """Return the term of a stopped expression: the M of `Stopped`, without the stop text at its end."""
        terms = self._terms
        item, stop = self.of(expression.item), self.of(expression.stop)
        return int(terms.and_([item, quotient(terms, _shortest(terms, terms.sequence([item, stop])), stop)]))


def _shortest(terms: Terms, term: int) -> int:
    """Return the texts of a term of which no beginning is another one."""
    return int(terms.and_([term, terms.not_(terms.sequence([term, terms.ANY, terms.ALL]))]))


def _too_recursive(circle: tuple[str, ...]) -> LimitError:
    return LimitError(
        f"{len(circle)} mutually left-recursive rules, {circle[0]!r} among them, need more than {MAX_PRODUCTS:,} steps",
        hint="write lists with * instead of left recursion",
    )


class _Builder:
    """The nodes of rules in one store."""

    def __init__(self, rules: Rules, nodes: Nodes) -> None:
        self._rules = rules
        self._nodes = nodes
        self._terms: Terms = nodes.terms
        self._term = _RegularParts(rules, nodes.terms).of
        self._solutions: dict[str, int] = {}
        # By rule: 0 if it has the empty text, else a number above.
        self._fewest = _fewest_of(rules.rules, self._fewest_of_leaf)
        first = {name: self._first_rules(expression) for name, expression in rules.rules.items()}
        self._circle_of = {name: tuple(circle) for circle in circles_of(first) for name in circle}

    def release(self) -> None:
        """Break the reference cycles with the store."""
        self._solutions.clear()
        del self._nodes, self._terms, self._term

    # -- nodes -----------------------------------------------------------------------------------------------------

    def rule(self, name: str) -> int:
        """Return the node of a rule."""
        return self._lazy(name, "whole", lambda: self._expanded(name))

    def _lazy(self, name: str, variant: str, expand: Callable[[], int]) -> int:
        node: int = self._nodes.lazy((self._rules, variant, name), expand)
        return node

    def _expanded(self, name: str) -> int:
        """Return the node of a rule, expanded: a left-recursive one is solved."""
        if name not in self._circle_of:
            return self.node(self._rules.rules[name])
        parts = [self._nodes.EPSILON] if self._fewest.get(name) == 0 else []
        return int(self._nodes.alt([*parts, self._rest(name)]))

    def node(self, expression: Expression) -> int:
        """Return the node of an expression. A regular one is a single TEXT node, whose automaton is deterministic,
        however ambiguous its rules are."""
        nodes = self._nodes
        if isinstance(expression, Literal):
            return int(nodes.literal(expression.text.encode()))
        if self._rules.is_regular(expression):
            return int(nodes.text(self._term(expression)))
        if isinstance(expression, Control):
            return int(nodes.special(expression.name))
        if isinstance(expression, Part):
            return expression.language.build(nodes)
        if isinstance(expression, Repeat):
            return int(nodes.repeat(self.node(expression.item), expression.least, expression.most))
        if isinstance(expression, Reference):
            return self.rule(expression.name)
        if isinstance(expression, Sequence):
            return int(nodes.sequence([self.node(part) for part in self._joined(expression.items)]))
        assert isinstance(expression, Choice)
        return self._alternatives(expression.items)

    def _joined(self, items: tuple[Expression, ...]) -> list[Expression]:
        """Return the items of a sequence, with neighbours joined that are regular together, so that there are fewer
        nodes."""
        joined: list[Expression] = []
        for item in items:
            if joined and self._rules.is_regular(whole := sequence(joined[-1], item)):
                both_literal = isinstance(joined[-1], Literal) and isinstance(item, Literal)
                joined[-1] = Literal(joined[-1].text + item.text) if both_literal else whole  # type: ignore[union-attr]
            else:
                joined.append(item)
        return joined

    def _alternatives(self, items: Iterable[Expression]) -> int:
        """Return a union, in which alternatives with equal first parts share them, so that fewer texts are
        ambiguous."""
        regular = [item for item in items if self._rules.is_regular(item)]
        groups: dict[Expression, list[Expression]] = {}
        for item in items:
            if not self._rules.is_regular(item):
                parts = item.items if isinstance(item, Sequence) and item.items else (item,)
                groups.setdefault(parts[0], []).append(Sequence(parts[1:]))
        nodes = [self._nodes.text(self._term(Choice(tuple(regular))))] if regular else []
        for head, rests in groups.items():
            tail = self.node(rests[0]) if len(rests) == 1 else self._alternatives(tuple(dict.fromkeys(rests)))
            nodes.append(self._nodes.seq(self.node(head), tail))
        return int(self._nodes.alt(nodes))

    # -- left recursion --------------------------------------------------------------------------------------------

    def _fewest_of_leaf(self, expression: Expression) -> float:
        """Return 0 if one of the expressions that `_fewest` leaves to this has the empty text, else a number above. For
        a control token, and for what is built elsewhere, such as a schema, 1 is enough: it never begins with a rule, so
        no left recursion goes through it."""
        if isinstance(expression, (Regular, Intersection, Complement)):  # regular, so no other rule is waited for
            return not self._terms.nullable(self._term(expression))
        return _least_of_leaf(expression) if isinstance(expression, Literal) else 1

    def _is_nullable(self, expression: Expression) -> bool:
        """Return True if an expression has the empty text."""
        return _fewest(expression, self._fewest, self._fewest_of_leaf) == 0

    def _first_rules(self, expression: Expression) -> list[str]:
        """Return the rules that a text of an expression may enter before anything is written; cycles of these are left
        recursion. For example, of ``a b`` it is ``a``, and ``b`` too if ``a`` has the empty text."""
        if self._rules.is_regular(expression):
            return []
        if isinstance(expression, Reference):
            return [expression.name]
        found: list[str] = []
        for item in children(expression):
            found += self._first_rules(item)
            if isinstance(expression, Sequence) and not self._is_nullable(item):
                break
        return found

    def _rest(self, name: str) -> int:
        """Return the texts of a rule that are not empty."""
        if name not in self._circle_of:
            expression = self._rules.rules[name]
            return self._lazy(name, "rest", lambda: self._union(self._beginnings(expression, ())))
        if name not in self._solutions:
            self._solve(self._circle_of[name])
        return self._solutions[name]

    def _union(self, beginnings: Iterable[tuple[str | None, int]]) -> int:
        return int(self._nodes.alt([node for _, node in beginnings]))

    def _beginnings(self, expression: Expression, circle: tuple[str, ...]) -> list[tuple[str | None, int]]:
        """Return the texts of an expression that are not empty, as a union: of the circle (a, b), for ``a x | y`` the
        pairs (a, x) and (None, y).

        Args:
            expression: the expression.
            circle: names of rules.

        Returns:
            Pairs of a rule of the circle, or None, and a node: the texts of the rule that are not empty, if there is
            one, then the node.
        """
        nodes = self._nodes
        if self._rules.is_regular(expression):
            term = self._term(expression)
            if self._terms.nullable(term):
                term = self._terms.and_([term, self._terms.not_(self._terms.EPSILON)])
            return [(None, nodes.text(term))]
        if isinstance(expression, Reference):
            if expression.name in circle:
                return [(expression.name, nodes.EPSILON)]
            is_nullable = self._is_nullable(expression)
            return [(None, self._rest(expression.name) if is_nullable else self.rule(expression.name))]
        if isinstance(expression, Choice):
            return [pair for item in expression.items for pair in self._beginnings(item, circle)]
        if isinstance(expression, Repeat):
            if expression.most == 0:
                return []
            # The first copy that is not empty, and those after it; copies before it are empty.
            least = 0 if self._is_nullable(expression.item) else max(expression.least - 1, 0)
            most = None if expression.most is None else expression.most - 1
            rest = nodes.repeat(self.node(expression.item), least, most)
            return [(name, nodes.seq(node, rest)) for name, node in self._beginnings(expression.item, circle)]
        if isinstance(expression, Sequence):
            found = []
            for number, item in enumerate(expression.items):
                rest = self.node(Sequence(expression.items[number + 1 :]))
                found += [(name, nodes.seq(node, rest)) for name, node in self._beginnings(item, circle)]
                if not self._is_nullable(item):
                    break
            return found
        return [(None, self.node(expression))]

    def _solve(self, circle: tuple[str, ...]) -> None:
        """Solve the equations of a circle of left-recursive rules: X = base | X step, whose solution is base step*, by
        elimination of one rule after the other (Gauss); then substitute back. The solutions are the rules' texts that
        are not empty.

        Raises:
            LimitError: that takes more than `MAX_PRODUCTS` products.
        """
        nodes = self._nodes
        bases: dict[str, list[int]] = {name: [] for name in circle}
        steps: dict[str, dict[str, list[int]]] = {name: {} for name in circle}  # steps[a][b]: b = ... | a step
        for name in circle:
            for first, node in self._beginnings(self._rules.rules[name], circle):
                (bases[name] if first is None else steps[first].setdefault(name, [])).append(node)
        products = len(circle) ** 2 // 4  # a lower bound, with those of the substitution
        if products > MAX_PRODUCTS:
            raise _too_recursive(circle)
        # Those with few products first (Markowitz 1957), so that the others get few new steps.
        order = sorted(circle, key=lambda name: sum(name in targets for targets in steps.values()) * len(steps[name]))
        left = set(circle)
        loops: dict[str, int] = {}
        for name in order:
            left.discard(name)
            loops[name] = loop = nodes.repeat(nodes.alt(steps[name].get(name, [])), 0, None)
            base = nodes.seq(nodes.alt(bases[name]), loop)
            for target in [target for target in steps[name] if target in left]:
                way = nodes.alt(steps[name][target])
                bases[target].append(nodes.seq(base, way))
                for source in [source for source in left if name in steps[source]]:
                    before = nodes.seq(nodes.alt(steps[source][name]), loop)
                    steps[source].setdefault(target, []).append(nodes.seq(before, way))
                    products += 1
                    if products > MAX_PRODUCTS:
                        raise _too_recursive(circle)
        solved: set[str] = set()
        for name in reversed(order):
            parts = [*bases[name]]
            parts += [
                nodes.seq(self._solutions[other], nodes.alt(steps[other][name]))
                for other in solved
                if name in steps[other]
            ]
            whole = nodes.seq(nodes.alt(parts), loops[name])
            self._solutions[name] = self._lazy(name, "rest", lambda whole=whole: whole)  # type: ignore[misc]
            solved.add(name)
