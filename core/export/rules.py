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
        # A union of objects has two forms (`core/schema/lower/object_unions.py`); "apart" has fewer states in all.
        body = nodes.known.get(("apart", lazy))
        reader.rules[name] = reader.node(nodes.expand(lazy) if body is None else body)
        if len(reader.rules) > MAX_RULES:
            raise LimitError(f"the grammar has more than {MAX_RULES:,} rules", hint="export its parts one by one")
    rules = {name: factored(body) for name, body in shared(inlined(reader.rules, "root")).items()}
    return ExportedRules(rules, "root", tuple(reader.unsaid))


def inlined(rules: Mapping[str, Expression], root: str) -> dict[str, Expression]:
    """Return the rules that a root needs, in which the bodies of rules that are short or used once replace their names.

    A rule stays if its body would be nested more deeply than `MAX_DEPTH`, or refers to itself.
    """
    uses: dict[str, int] = {root: 2}  # more than once, so that the root stays a rule
    edges: dict[str, list[str]] = {}
    pending = [root]
    while pending:
        name = pending.pop()
        edges[name] = [part.name for part in walk(rules[name]) if isinstance(part, Reference)]
        for used in edges[name]:
            if used not in uses:
                pending.append(used)
            uses[used] = uses.get(used, 0) + 1
    done: dict[str, tuple[Expression, int]] = {}  # rewritten bodies, with their depths
    in_progress: set[str] = set()  # rules whose bodies are being rewritten: their own names stay

    def is_inline(name: str) -> bool:
        is_short = name != root and (isinstance(rules[name], (Literal, Chars)) or rules[name] == EMPTY_TEXT)
        return (uses[name] == 1 or is_short) and name not in in_progress

    known: dict[int, tuple[Expression, int]] = {}  # by identity: bodies have parts in common

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
            in_progress.add(name)
            done[name] = rewritten(rules[name])
            in_progress.discard(name)
        return done[name]

    # Rules are finished after those that they use, so that the recursion is shallow.
    for name in inner_first(edges, (root,)):
        finished(name)
    still_used: dict[str, Expression] = {}
    pending = [root]
    while pending:
        name = pending.pop()
        if name not in still_used:
            still_used[name], _ = done[name]
            pending += [part.name for part in walk(still_used[name]) if isinstance(part, Reference)]
    return still_used


@dataclass(slots=True)
class _Part:
    """An expression that occurs in rules, in at least one place.

    Attributes:
        expression: the expression.
        inner: the numbers of its own parts.
        weight: the number of characters and sets in it.
        uses: the number of parts and rules that have it.
    """

    expression: Expression
    inner: tuple[int, ...]
    weight: int
    uses: int = 0


def shared(rules: Mapping[str, Expression]) -> dict[str, Expression]:
    """Return the rules with parts that occur more than once as rules of their own: ``a ::= "x" (b c) "y" (b c)`` ->
    ``a ::= "x" s1 "y" s1`` and ``s1 ::= b c``."""
    parts: list[_Part] = []  # by number
    numbers: dict[object, int] = {}  # by a key that is equal for equal expressions
    known: dict[int, int] = {}  # numbers by identity: inlined rules are the same object wherever they stand

    def number(expression: Expression) -> int:
        """Return the number of an expression, the same for equal ones; append new ones to ``parts``, and count uses."""
        found = known.get(id(expression))
        if found is not None:
            return found
        inner = tuple([number(item) for item in children(expression)])
        bounds = (expression.least, expression.most) if isinstance(expression, Repeat) else ()
        # The numbers of the parts are compared, not the parts, which may be deep.
        key = (type(expression), inner, bounds) if inner else expression
        found = numbers.get(key)
        if found is None:
            found = numbers[key] = len(parts)
            weight = len(expression.text) if isinstance(expression, Literal) else 1
            parts.append(_Part(expression, inner, sum(parts[item].weight for item in inner) if inner else weight))
            for item in inner:
                parts[item].uses += 1
        known[id(expression)] = found
        return found

    roots = {name: number(expression) for name, expression in rules.items()}
    for root in roots.values():
        parts[root].uses += 1
    names = dict(zip(roots.values(), roots, strict=False))  # a part that is a whole rule is that rule
    made: dict[str, Expression] = {}
    done: dict[int, Expression] = {}

    def reference(number: int) -> Expression:
        """Return an expression by its number, or the reference to its rule if it is shared."""
        part = parts[number]
        if not part.inner or part.uses == 1 or part.weight < MIN_SHARED:
            return rebuilt(number)
        if number not in names:
            names[number] = f"s{len(names)}"
            made[names[number]] = rebuilt(number)
        return Reference(names[number])

    def rebuilt(number: int) -> Expression:
        """Return an expression by its number, in which shared parts are references to rules."""
        if number not in done:
            expression = parts[number].expression
            items = tuple([reference(item) for item in parts[number].inner])
            if isinstance(expression, (Sequence, Choice)):
                expression = type(expression)(items)
            elif isinstance(expression, Repeat):
                expression = Repeat(items[0], expression.least, expression.most)
            done[number] = expression
        return done[number]

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
    """Return alternatives of which no two begin with the same character of a fixed text, if there are many.

    ``"cat" x | "car"`` -> ``"ca" ("t" x | "r")``. The rest of a group is factored again, to ``levels`` in all.
    """
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
        # What the first and the last text in order have in common, all texts between them have too.
        low, high = min(text for text, _ in group), max(text for text, _ in group)
        size = next((at for at, (one, other) in enumerate(zip(low, high, strict=False)) if one != other), len(low))
        tails = [sequence(*([Literal(text[size:])] if text[size:] else []), *rest) for text, rest in group]
        found.append(sequence(Literal(low[:size]), choice(*_factored(tuple(tails), levels - 1))))
    return (*found, *others)


def _joined(*items: Expression) -> Expression:
    """Return a sequence in which neighbouring fixed texts and single characters are one text."""
    joined: list[Expression] = []
    whole = sequence(*items)
    for item in whole.items if isinstance(whole, Sequence) else (whole,):
        if isinstance(item, Chars) and item.charset.size == 1:
            item = Literal(chr(item.charset.first))
        if joined and isinstance(item, Literal) and isinstance(joined[-1], Literal):
            item = Literal(joined.pop().text + item.text)  # type: ignore[union-attr]
        joined.append(item)
    return sequence(*joined)


class _Exporter:
    """Expressions of nodes and terms, and the rules that they refer to.

    Rules are named by their first letter: ``r`` of lazy nodes, ``t`` of the strings of a term, ``a`` and ``s`` of a
    state of an automaton (``a0s1``), ``char`` of any character in a JSON string.
    """

    def __init__(self, nodes: Nodes) -> None:
        self.rules: dict[str, Expression] = {}
        self.pending: list[tuple[str, int]] = []  # names of rules that are still to be read, and their lazy nodes
        self.unsaid: dict[str, None] = {}  # an ordered set
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
            words, depth = args  # the texts and what follows each; the first `depth` bytes of them are before this node
            alternatives = [
                sequence(self._literal(word[depth:]), self.node(rest))
                for word, rest in words
                if not nodes.is_empty(rest)
            ]
            return choice(*alternatives)
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
        numbers: dict[int, int] = {term: 0}  # of states; a state is a term, a derivative of the first
        moves: dict[int, dict[int, list[tuple[int, int]]]] = {}  # by state: the ranges of characters to each next state
        pending = [term]
        while pending:
            state = pending.pop()
            ranges_to = moves[state] = {}
            starts, followers = terms.segments(state)
            for start, end, target in zip(starts, [*starts[1:], END], followers, strict=True):
                if not terms.is_empty(target):
                    ranges_to.setdefault(target, []).append((start, end - 1))
            for target in ranges_to:
                if target not in numbers:
                    numbers[target] = len(numbers)
                    pending.append(target)
            if len(numbers) > MAX_STATES:
                return self._widened(term, is_json)
        prefix = f"a{len(self.rules)}s"
        rules: dict[str, Expression] = {}
        for state, ranges_to in moves.items():
            alternatives = [
                sequence(self._leaf(charset, is_json), Reference(f"{prefix}{numbers[target]}"))
                for target, ranges in ranges_to.items()
                if (charset := CharSet(ranges))  # without surrogates, so it may be empty
            ]
            if terms.nullable(state):
                alternatives.append(EMPTY_TEXT)
            rules[f"{prefix}{numbers[state]}"] = choice(*alternatives)
        self.rules |= rules
        return Reference(f"{prefix}0")

    def _widened(self, term: int, is_json: bool) -> Expression:
        """Return an intersection that has too many states without some of its parts.

        Leave out bounds on the length. If there are none, leave out intersections and complements. If there are none of
        these either, keep the first part only. The result may have too many states again, and is widened again.
        """
        terms = self._terms
        kind, args = terms.shape(term)
        parts: list[int] = []
        if kind == AND:
            parts = [part for part in args if not self._is_length(part)]
            if len(parts) in (0, len(args)):  # only bounds, or none
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
        """Return True for a bound on the length: a repetition of any character."""
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
