"""Grammar nodes as rules of a plain context-free grammar.

Regular languages with intersections and complements become deterministic automata, one rule for each state. A context-
free grammar cannot express constraints that depend on the text so far: there, the rules admit more texts, and
`ExportedRules.unsaid` names the constraint.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from ..dependent.resolution import bound
from ..errors import GrammarError, LimitError
from ..language.images import json_spellings
from ..language.node_kinds import (
    ALL,
    ALT,
    COUNTED,
    EPSILON_KIND,
    LAZY,
    LITERAL,
    REPEAT,
    REPEATED_NAMES,
    RIVALS,
    SEQ,
    SOME,
    SPECIAL,
    TEXT,
    WORDS,
)
from ..language.nodes import Nodes
from ..language.term_kinds import ALT as TERM_ALT
from ..language.term_kinds import AND, CHARS, DEFERRED, END, REGULAR
from ..language.term_kinds import EPSILON_KIND as TERM_EPSILON
from ..language.term_kinds import REPEAT as TERM_REPEAT
from ..language.term_kinds import SEQ as TERM_SEQ
from ..language.term_kinds import WORDS as TERM_WORDS
from ..text_grammars.expressions import (
    EMPTY_TEXT,
    Chars,
    Choice,
    Control,
    Expression,
    Literal,
    Reference,
    Repeat,
    Sequence,
    children,
    choice,
    inner_first,
    sequence,
    walk,
)
from ..unicode.charset import CharSet

#: Maximum number of rules of an exported grammar.
MAX_RULES = 50_000

#: Maximum number of states of a regular language with intersections or complements.
MAX_STATES = 4_000

#: Maximum number of terms of strings, each counted once.
MAX_TERMS = 50_000

#: Minimum number of characters and sets of an expression that becomes a rule, because it occurs more than once.
MIN_SHARED = 5

#: Maximum nesting of an expression into which rules are inlined.
MAX_DEPTH = 12

#: Maximum number of alternatives that are written as they are; of more, each common beginning is written once.
MANY_ALTERNATIVES = 64

#: Maximum nesting of common beginnings.
MAX_FACTORED = 8


@dataclass(frozen=True)
class ExportedRules:
    """Rules that admit every text of a grammar.

    Attributes:
        rules: the expression of each rule; all of them are used.
        root: the name of the start rule.
        unsaid: the constraints of the grammar that the rules lack; empty: both have the same texts.
    """

    rules: Mapping[str, Expression]
    root: str
    unsaid: tuple[str, ...]


def exported_rules(nodes: Nodes, root: int) -> ExportedRules:
    """Return the rules of a node.

    Raises:
        GrammarError: a fixed text is not UTF-8.
        LimitError: there are more than `MAX_RULES` rules, `MAX_STATES` states, or `MAX_TERMS` terms; or it is nested
            too deeply.
    """
    try:
        return _exported(nodes, root)
    except RecursionError:
        raise LimitError("the grammar is nested too deeply to be written", hint="flatten it") from None


def _exported(nodes: Nodes, root: int) -> ExportedRules:
    """Return the rules of a node, as `exported_rules` does, or fail with the interpreter's own limit of recursion."""
    reader = _Exporter(nodes)
    reader.rules["root"] = reader.node(root)
    while reader.pending:
        name, lazy = reader.pending.pop()
        apart = nodes.known.get(("apart", lazy))  # of a union of objects (`ObjectUnions`)
        reader.rules[name] = reader.node(nodes.expand(lazy) if apart is None else apart)
        if len(reader.rules) > MAX_RULES:
            raise LimitError(f"the grammar has more than {MAX_RULES:,} rules", hint="export its parts one by one")
    rules = {name: factored(body) for name, body in shared(inlined(reader.rules, "root")).items()}
    return ExportedRules(rules, "root", tuple(reader.unsaid))


def inlined(rules: Mapping[str, Expression], root: str) -> dict[str, Expression]:
    """Return the rules that a root needs; those that are used once, or short, are written where they are used."""
    uses: dict[str, int] = {root: 2}  # so that the root stays a rule
    edges: dict[str, list[str]] = {}
    pending = [root]
    while pending:
        name = pending.pop()
        edges[name] = [part.name for part in walk(rules[name]) if isinstance(part, Reference)]
        for used in edges[name]:
            if used not in uses:
                pending.append(used)
            uses[used] = uses.get(used, 0) + 1
    done: dict[str, tuple[Expression, int]] = {}
    opened: set[str] = set()  # those that are being rewritten

    def is_inline(name: str) -> bool:
        is_short = name != root and (isinstance(rules[name], (Literal, Chars)) or rules[name] == EMPTY_TEXT)
        return (uses[name] == 1 or is_short) and name not in opened

    known: dict[int, tuple[Expression, int]] = {}  # by identity: the same part occurs in many

    def rewritten(expression: Expression) -> tuple[Expression, int]:
        """Return an expression with small rules written in place of their names, and its depth."""
        if isinstance(expression, Reference):
            if is_inline(expression.name):
                body, depth = finished(expression.name)
                if depth <= MAX_DEPTH:
                    return body, depth
            return expression, 0
        if not isinstance(expression, (Sequence, Choice, Repeat)):
            return expression, 0
        made = known.get(id(expression))
        if made is not None:
            return made
        if isinstance(expression, Repeat):
            item, depth = rewritten(expression.item)
            made = Repeat(item, expression.least, expression.most), depth + 1
        else:
            found = [rewritten(item) for item in expression.items]
            depth = max((depth for _, depth in found), default=0) + 1
            join = _joined if isinstance(expression, Sequence) else choice
            made = join(*[item for item, _ in found]), depth
        known[id(expression)] = made
        return made

    def finished(name: str) -> tuple[Expression, int]:
        """Return the rewritten body of a rule, and its depth."""
        if name not in done:
            opened.add(name)
            done[name] = rewritten(rules[name])
            opened.discard(name)
        return done[name]

    # Rules are finished after those that they use, so that the recursion is shallow.
    for name in inner_first(edges, (root,)):
        finished(name)
    kept: dict[str, Expression] = {}
    pending = [root]
    while pending:
        name = pending.pop()
        if name not in kept:
            kept[name] = done[name][0]
            pending += [part.name for part in walk(kept[name]) if isinstance(part, Reference)]
    return kept


def shared(rules: Mapping[str, Expression]) -> dict[str, Expression]:
    """Return the rules with parts that occur more than once as rules of their own: ``a ::= "x" (b c) "y" (b c)`` ->
    ``a ::= "x" s1 "y" s1`` and ``s1 ::= b c``."""
    # By number, where equal expressions have one number:
    parts: list[tuple[Expression, tuple[int, ...]]] = []  # the expression, and the numbers of its own parts
    weights: list[int] = []  # characters and sets in it
    uses: list[int] = []
    numbers: dict[object, int] = {}
    known: dict[int, int] = {}  # by identity: inlined rules are the same object wherever they stand

    def number(expression: Expression) -> int:
        """Return the number of an expression: equal expressions have one. Counts their uses and sizes on the way."""
        found = known.get(id(expression))
        if found is not None:
            return found
        inner = tuple([number(item) for item in children(expression)])
        bounds = (expression.least, expression.most) if isinstance(expression, Repeat) else ()
        key = (type(expression), inner, bounds) if inner else expression
        found = numbers.get(key)
        if found is None:
            found = numbers[key] = len(parts)
            parts.append((expression, inner))
            own = len(expression.text) if isinstance(expression, Literal) else 1
            weights.append(sum(weights[item] for item in inner) if inner else own)
            uses.append(0)
            for item in inner:
                uses[item] += 1
        known[id(expression)] = found
        return found

    roots = {name: number(expression) for name, expression in rules.items()}
    for root in roots.values():
        uses[root] += 1
    names = dict(zip(roots.values(), roots, strict=False))  # a part that is a whole rule is that rule
    made: dict[str, Expression] = {}
    done: dict[int, Expression] = {}

    def reference(part: int) -> Expression:
        """Return a numbered expression, or the reference to its rule if it is shared."""
        _, inner = parts[part]
        if not inner or uses[part] == 1 or weights[part] < MIN_SHARED:
            return rebuilt(part)
        if part not in names:
            names[part] = f"s{len(names)}"
            made[names[part]] = rebuilt(part)
        return Reference(names[part])

    def rebuilt(part: int) -> Expression:
        """Return a numbered expression in which shared parts are references to rules."""
        if part not in done:
            expression, inner = parts[part]
            items = tuple([reference(item) for item in inner])
            if isinstance(expression, (Sequence, Choice)):
                expression = type(expression)(items)
            elif isinstance(expression, Repeat):
                expression = Repeat(items[0], expression.least, expression.most)
            done[part] = expression
        return done[part]

    for name, root in roots.items():
        made[name] = rebuilt(root) if names[root] == name else Reference(names[root])
    return made


def factored(expression: Expression) -> Expression:
    """Return an expression in which long choices of fixed texts have each common beginning once.

    Parsers follow all alternatives at the same time, and give up at a limit (llguidance: 2,000).
    """
    if isinstance(expression, Repeat):
        return Repeat(factored(expression.item), expression.least, expression.most)
    if isinstance(expression, (Sequence, Choice)):
        items = tuple(map(factored, expression.items))
        return choice(*_factored(items, MAX_FACTORED)) if isinstance(expression, Choice) else Sequence(items)
    return expression


def _factored(items: tuple[Expression, ...], levels: int) -> tuple[Expression, ...]:
    """Return alternatives of which no two begin with the same character of a fixed text, if there are many."""
    if len(items) <= MANY_ALTERNATIVES or not levels:
        return items
    groups: dict[str, list[tuple[str, tuple[Expression, ...]]]] = {}
    others: list[Expression] = []
    for item in items:
        first, *rest = item.items if isinstance(item, Sequence) and item.items else (item,)
        if isinstance(first, Literal) and first.text:
            groups.setdefault(first.text[0], []).append((first.text, tuple(rest)))
        else:
            others.append(item)
    found: list[Expression] = []
    for group in groups.values():
        # Of all texts, the first and the last in order have the least in common.
        low, high = min(text for text, _ in group), max(text for text, _ in group)
        size = next((at for at, (one, other) in enumerate(zip(low, high, strict=False)) if one != other), len(low))
        tails = [sequence(*([Literal(text[size:])] if text[size:] else []), *rest) for text, rest in group]
        found.append(sequence(Literal(low[:size]), choice(*_factored(tuple(tails), levels - 1))))
    return (*found, *others)


def _joined(*items: Expression) -> Expression:
    """Return a sequence in which neighbouring fixed characters are one text."""
    joined: list[Expression] = []
    whole = sequence(*items)
    for item in whole.items if isinstance(whole, Sequence) else (whole,):
        if isinstance(item, Chars) and len(item.charset.ranges) == 1 and len({*item.charset.ranges[0]}) == 1:
            item = Literal(chr(item.charset.ranges[0][0]))
        if joined and isinstance(item, Literal) and isinstance(joined[-1], Literal):
            item = Literal(joined.pop().text + item.text)  # type: ignore[union-attr]
        joined.append(item)
    return sequence(*joined)


class _Exporter:
    """Expressions of nodes and terms, and the rules that they refer to."""

    def __init__(self, nodes: Nodes) -> None:
        self.rules: dict[str, Expression] = {}
        self.pending: list[tuple[str, int]] = []
        self.unsaid: dict[str, None] = {}
        self._nodes = nodes
        self._terms = nodes.terms
        self._names: dict[int, str] = {}
        self._texts: dict[tuple[int, bool], Expression] = {}
        self._found: dict[int, Expression] = {}
        self._found_terms: dict[tuple[int, bool], Expression] = {}
        self._read_terms = 0

    # -- nodes -----------------------------------------------------------------------------------------------------

    def node(self, node: int) -> Expression:
        """Return the expression of a node, one object wherever the node occurs; lazy ones are referred to."""
        found = self._found.get(node)
        if found is None:
            found = self._found[node] = self._node(node)
        return found

    def _node(self, node: int) -> Expression:
        """Return the expression of a node that was not read before."""
        nodes = self._nodes
        kind, args = nodes.kind(node), nodes.args(node)
        if kind == EPSILON_KIND:
            return EMPTY_TEXT
        if kind == LITERAL:
            return self._literal(args[0])
        if kind == TEXT:
            return self.text(*args)
        if kind == COUNTED:
            least, most = args
            return sequence(Literal('"'), Repeat(self._character(), least, most), Literal('"'))
        if kind == SPECIAL:
            return Control(args[0])
        if kind == SEQ:
            parts: list[Expression] = []
            while nodes.kind(node) == SEQ:
                left, node = nodes.args(node)
                parts.append(self.node(left))
            return sequence(*parts, self.node(node))
        if kind == ALT:
            return choice(*(self.node(part) for part in args if not nodes.is_empty(part)))
        if kind == REPEAT:
            part, least, most = args
            return Repeat(self.node(part), least, most)
        if kind == WORDS:
            words, depth = args
            ways = [
                sequence(self._literal(word[depth:]), self.node(rest))
                for word, rest in words
                if not nodes.is_empty(rest)
            ]
            return choice(*ways)
        if kind == LAZY:
            name = self._names.get(node)
            if name is None:
                name = self._names[node] = f"r{len(self._names)}"
                self.pending.append((name, node))
            return Reference(name)
        static, forbids = bound(nodes, node)  # the node depends on the text so far
        self.unsaid[_FORBIDDEN[forbids]] = None
        return self.node(static)

    @staticmethod
    def _literal(data: bytes) -> Expression:
        try:
            return Literal(data.decode()) if data else EMPTY_TEXT
        except UnicodeDecodeError:
            raise GrammarError(
                f"the fixed text {data[:20]!r} is not UTF-8, and has no form in a grammar of text", hint="leave it out"
            ) from None

    def _character(self) -> Expression:
        """Return the rule of any character in a JSON string."""
        self.rules.setdefault("char", spelled(CharSet.full()))
        return Reference("char")

    # -- terms -----------------------------------------------------------------------------------------------------

    def text(self, term: int, is_json: bool) -> Expression:
        """Return the strings of a term, as text or as JSON strings."""
        found = self._texts.get((term, is_json))
        if found is None:
            found = self._term(term, is_json)
            if is_json:
                found = sequence(Literal('"'), found, Literal('"'))
            name = f"t{len(self._texts)}"
            self.rules[name] = found
            found = self._texts[term, is_json] = Reference(name)
        return found

    def _leaf(self, charset: CharSet, is_json: bool) -> Expression:
        """Return one character of a set."""
        if not is_json:
            return Chars(charset)
        return self._character() if charset == CharSet.full() else spelled(charset)

    def _term(self, term: int, is_json: bool) -> Expression:
        """Return a term as an expression, one object wherever the term occurs. Terms with intersections or complements
        become automata.

        Args:
            term: the term.
            is_json: characters are written as in JSON strings.
        """
        found = self._found_terms.get((term, is_json))
        if found is None:
            found = self._found_terms[term, is_json] = self._read_term(term, is_json)
            self._read_terms += len(found.items) if isinstance(found, Sequence) else 1
            if self._read_terms > MAX_TERMS:
                raise LimitError(
                    f"the strings of the grammar have more than {MAX_TERMS:,} parts", hint="export its parts one by one"
                )
        return found

    def _read_term(self, term: int, is_json: bool) -> Expression:
        """Return the expression of a term that was not read before."""
        terms = self._terms
        if term == terms.ALL:
            return Repeat(self._leaf(CharSet.full(), is_json), 0, None)
        if not terms.known(term) & REGULAR:
            return self._automaton(term, is_json)
        kind, args = terms.shape(term)
        if kind == TERM_EPSILON:
            return EMPTY_TEXT
        if kind == CHARS:
            return self._leaf(CharSet(args), is_json)
        if kind == TERM_SEQ:
            parts: list[Expression] = []
            while kind == TERM_SEQ and terms.known(term) & REGULAR:
                parts.append(self._term(args[0], is_json))
                term = args[1]
                kind, args = terms.shape(term)
            return sequence(*parts, self._term(term, is_json))
        if kind == TERM_ALT:
            return choice(*[self._term(part, is_json) for part in args])
        if kind == TERM_REPEAT:
            part, least, most = args
            return Repeat(self._term(part, is_json), least, None if most < 0 else most)
        if kind == TERM_WORDS:
            words = [[self._leaf(CharSet.of(char), is_json) for char in word] for word in args]
            return choice(*[sequence(*word) for word in words])
        if kind == DEFERRED:
            return self._term(terms.made(term), is_json)
        return self._automaton(term, is_json)

    def _automaton(self, term: int, is_json: bool) -> Expression:
        """Return the rule of the first state of a term's automaton."""
        terms = self._terms
        numbers: dict[int, int] = {term: 0}
        arcs: dict[int, dict[int, list[tuple[int, int]]]] = {}  # by state: the ranges of characters to each target
        pending = [term]
        while pending:
            state = pending.pop()
            targets = arcs[state] = {}
            starts, followers = terms.segments(state)
            for index, target in enumerate(followers):
                end = starts[index + 1] if index + 1 < len(starts) else END
                if not terms.is_empty(target):
                    targets.setdefault(target, []).append((starts[index], end - 1))
            for target in targets:
                if target not in numbers:
                    numbers[target] = len(numbers)
                    pending.append(target)
            if len(numbers) > MAX_STATES:
                return self._widened(term, is_json)
        prefix = f"a{len(self.rules)}s"
        rules: dict[str, Expression] = {}
        for state, targets in arcs.items():
            ways = [
                sequence(self._leaf(charset, is_json), Reference(f"{prefix}{numbers[target]}"))
                for target, ranges in targets.items()
                if (charset := CharSet(ranges))
            ]
            rules[f"{prefix}{numbers[state]}"] = choice(*ways, *([EMPTY_TEXT] if terms.nullable(state) else []))
        self.rules |= rules
        return Reference(f"{prefix}0")

    def _widened(self, term: int, is_json: bool) -> Expression:
        """Return an intersection that has too many states without some of its parts.

        Bounds on the length are left out first; without any, the parts that are not regular as they stand; without
        any, all but the first. So the parts become fewer each time.
        """
        terms = self._terms
        kind, args = terms.shape(term)
        parts = [part for part in args if not self._is_length(part)] if kind == AND else []
        if kind == AND and len(parts) in (0, len(args)):
            regular = [part for part in args if terms.known(part) & REGULAR]
            parts = regular if len(regular) < len(args) else regular[:1]
        if not parts:
            raise LimitError(
                f"a regular language of the grammar has more than {MAX_STATES:,} states",
                hint="relax its bounds or multiples",
            )
        self.unsaid[_TOO_LARGE] = None
        return self._term(terms.and_(parts), is_json)

    def _is_length(self, term: int) -> bool:
        """Return True for a number of any characters."""
        kind, args = self._terms.shape(term)
        if kind != TERM_REPEAT:
            return False
        kind, inner = self._terms.shape(args[0])
        return kind == CHARS and CharSet(inner) == CharSet.full()


@lru_cache(maxsize=512)
def spelled(charset: CharSet) -> Expression:
    """Return the texts of one character of a set inside of a JSON string: itself, or an escape."""
    exporter = _Exporter(Nodes())
    return exporter._term(json_spellings(exporter._terms, charset), False)


#: Constraints of dependent nodes, by the continuations that they may forbid.
_FORBIDDEN = {
    SOME: "that items or names differ from those before",
    REPEATED_NAMES: "that a name occurs only once in an object",
    RIVALS: "that items or names differ from those before",
    ALL: "the values that callables give (x-values)",
}
_TOO_LARGE = f"conditions on a number or string that need more than {MAX_STATES:,} states"
