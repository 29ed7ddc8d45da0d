"""Images of languages: the intersection of a node and a term, with each character replaced by its spellings.

A node is a context-free language of UTF-8 text, and a term a regular one. Their intersection is context-free
(Bar-Hillel, Perles and Shamir 1961): its rules are those of the node, once for each pair of states of the term, before
and after a rule's text. The states are the derivatives of the term; a rule without a text between two states is
omitted.

A substitution of characters, such as JSON escaping, maps a context-free language to a context-free language.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable

from ..errors import LimitError
from ..unicode.charset import CharSet
from . import node_kinds
from .node_kinds import ALT, DYNAMIC, EMPTY_KIND, EPSILON_KIND, LAZY, LITERAL, REPEAT, SEQ, SOME, TEXT, WORDS
from .nodes import Nodes
from .queries import steps
from .terms import Terms

#: Maximum number of states of a term.
MAX_STATES = 300

#: A function that maps a term to the term of its spelled texts.
Spelling = Callable[[Terms, int], int]


def image(nodes: Nodes, node: int, *, within: int | None = None, spelling: Spelling | None = None) -> int:
    """Return the node of the texts that are in a node and in a term, spelled.

    Args:
        nodes: the store.
        node: a grammar of literals and terms; no control tokens or JSON strings. A dependent node (`SOME`) has to read
            the spelled text.
        within: the term; None: every text.
        spelling: maps a term to its spelled texts; None: no change. It is part of the keys of rules, so it must be a
            named function, or a `functools.partial` that the caller keeps.

    Raises:
        LimitError: the term has more than `MAX_STATES` states.
    """
    return _Image(nodes, nodes.terms.ALL if within is None else within, spelling).of(node)


class _Image:
    """The image of nodes under a term and a spelling (see `image`): texts are followed through the derivative automaton
    of the term, whose states are terms.

    `_reached` computes to which states a node leads from one state; `_between` makes the node of the texts between two.
    """

    def __init__(self, nodes: Nodes, within: int, spelling: Spelling | None) -> None:
        self._nodes = nodes
        self._terms = nodes.terms
        self._spelling = spelling
        self._start = within
        self._edges = _edges(self._terms, within)
        # The fixpoint of `_reached`; a pair is a node and the state before it.
        self._ends: dict[tuple[int, int], frozenset[int]] = {}  # by pair, the states found so far
        self._users: dict[tuple[int, int], set[tuple[int, int]]] = {}  # by pair, the pairs that depend on it
        self._pending: list[tuple[int, int]] = []  # pairs to be computed (again)

    def of(self, node: int) -> int:
        """Return the image of a node."""
        ends = [end for end in self._reached(node, self._start) if self._terms.nullable(end)]
        return int(self._nodes.alt([self._between(node, self._start, end) for end in ends]))

    # -- which states a node leads to ------------------------------------------------------------------------------

    def _reached(self, node: int, start: int) -> frozenset[int]:
        """Return the states to which the texts of a node lead from ``start``. Rules may be recursive, so each pair of a
        node and a state begins with no states, and is computed again until nothing changes (the least fixpoint)."""
        if start == self._terms.ALL:  # every text leads there again; no rule is expanded
            return frozenset() if self._nodes.is_empty(node) else frozenset({start})
        if (node, start) not in self._ends:
            self._look((node, start), None)
            while self._pending:
                asked = self._pending.pop()
                found = self._step(asked)
                if found != self._ends[asked]:
                    self._ends[asked] = found
                    self._pending += self._users[asked]
        return self._ends[node, start]

    def _look(self, asked: tuple[int, int], user: tuple[int, int] | None) -> frozenset[int]:
        """Return the states found so far for ``asked``, a node and the state before it. ``user``, a pair that depends
        on them, will be computed again when there are more."""
        if asked not in self._ends:
            self._ends[asked] = frozenset()
            self._users[asked] = set()
            self._pending.append(asked)
        if user is not None:
            self._users[asked].add(user)
        return self._ends[asked]

    def _step(self, asked: tuple[int, int]) -> frozenset[int]:
        """Return the states after the texts of ``asked``, a node and the state before it, from the states found so far
        for its parts. Parts are registered by `_look`, so that this is computed again when one of them leads to more.
        """
        nodes, (node, start) = self._nodes, asked
        kind, args = nodes.kind(node), nodes.args(node)

        def after(part: int, states: frozenset[int]) -> frozenset[int]:
            return frozenset().union(*[self._look((part, state), asked) for state in states])

        if kind == EMPTY_KIND:
            return frozenset()
        if kind == EPSILON_KIND:
            return frozenset({start})
        if kind == LITERAL:
            state = start
            for char in args[0].decode():
                state = self._terms.derivative(state, ord(char))
            return frozenset() if self._terms.is_empty(state) else frozenset({state})
        if kind == TEXT:
            return frozenset(end for end in self._edges if not self._terms.is_empty(self._way(args[0], start, end)))
        if kind == LAZY:
            return after(nodes.expand(node), frozenset({start}))
        if kind == DYNAMIC:
            return after(args[0], frozenset({start}))
        if kind == SEQ:
            return after(args[1], after(args[0], frozenset({start})))
        if kind == ALT:
            return frozenset().union(*[self._look((part, start), asked) for part in args])
        if kind == WORDS:
            return frozenset().union(*[self._look((part, start), asked) for part in self._words(node)])
        assert kind == REPEAT, kind
        part, least, most = args
        states, found, count = frozenset({start}), frozenset[int](), 0
        while states and (most is None or count <= most):
            if count >= least:
                if states <= found:
                    break
                found |= states
            states, before, count = after(part, states), states, count + 1
            if states == before and count <= least:  # a fixpoint: further copies change nothing
                count = least
        return found

    def _words(self, node: int) -> list[int]:
        """Return the alternatives of a node of words, each a word with its continuation."""
        nodes, (pairs, read) = self._nodes, self._nodes.args(node)
        return [nodes.seq(nodes.literal(word[read:]), after) for word, after in pairs]

    # -- texts from state to state ---------------------------------------------------------------------------------

    def _way(self, term: int, start: int, end: int) -> int:
        """Return the node of the texts of a term that lead from ``start`` to ``end``."""
        if len(self._edges) == 1:
            return term
        return int(self._terms.and_([term, _path(self._terms, start, end, self._edges)]))

    def _between(self, node: int, start: int, end: int) -> int:
        """Return the image of the texts of a node that lead from ``start`` to ``end``: of a sequence, by all states in
        the middle; of a rule, a rule for this node and pair of states."""
        nodes = self._nodes
        if end not in self._reached(node, start):
            return node_kinds.EMPTY
        kind, args = nodes.kind(node), nodes.args(node)
        if kind == EPSILON_KIND:
            return node
        if kind == LITERAL:
            return self._text(self._terms.literal(args[0].decode()))
        if kind == TEXT:
            return self._text(self._way(args[0], start, end))
        if kind == LAZY:
            rule = ("image", self._spelling, self._start, "rule", node, start, end)
            expand = lambda: self._between(nodes.expand(node), start, end)  # noqa: E731
            return int(nodes.lazy(rule, expand, node_kinds.EPSILON))  # not empty, as it leads to ``end``
        if kind == DYNAMIC:
            static, resolve, forbids = args
            assert forbids == SOME
            key = ("image", self._spelling, self._start, node, start, end)
            resolved = lambda before: self._between(resolve(before), start, end)  # noqa: E731
            return int(nodes.dynamic(key, self._between(static, start, end), resolved))
        if kind == ALT:
            return int(nodes.alt([self._between(part, start, end) for part in args]))
        if kind == WORDS:
            return int(nodes.alt([self._between(part, start, end) for part in self._words(node)]))
        if kind == SEQ:
            middles = sorted(self._reached(args[0], start))
            ways = [(self._between(args[0], start, state), self._between(args[1], state, end)) for state in middles]
            return int(nodes.alt([nodes.seq(left, right) for left, right in ways]))
        return self._copies(args[0], args[1], args[2], start, end)

    def _copies(self, part: int, least: int, most: int | None, start: int, end: int) -> int:
        """Return the image of between ``least`` and ``most`` copies of a part (None: no upper bound), from ``start`` to
        ``end``. Copies that leave the state unchanged are a repetition; others are unrolled, one rule for each number
        of copies left."""
        nodes = self._nodes
        following = sorted(self._reached(part, start))
        if following == [start] and (most is not None or not least):  # no rule for each number of copies is needed
            if start != end:
                return node_kinds.EMPTY
            return int(nodes.repeat(self._between(part, start, start), least, most))
        if most == 0:
            return node_kinds.EPSILON if start == end else node_kinds.EMPTY

        def expand() -> int:
            """Return the node of no copy, or of one to each state and then the rest. Copies back to ``start``, if
            unlimited, are a loop before them, not a rule that refers to itself."""
            ways = [node_kinds.EPSILON] if start == end and not least else []
            loop = node_kinds.EPSILON
            for state in following:
                one = self._between(part, start, state)
                if state == start and not least and most is None:
                    loop = nodes.repeat(one, 0, None)
                else:
                    fewer = None if most is None else most - 1
                    ways.append(nodes.seq(one, self._copies(part, max(least - 1, 0), fewer, state, end)))
            return int(nodes.seq(loop, nodes.alt(ways)))

        return int(nodes.lazy(("image", self._spelling, self._start, part, least, most, start, end), expand))

    def _text(self, term: int) -> int:
        return int(self._nodes.text(term if self._spelling is None else self._spelling(self._terms, term)))


def _edges(terms: Terms, start: int) -> dict[int, dict[int, list[tuple[int, int]]]]:
    """Return the derivative automaton of a term: for each state, the character ranges that lead to each successor.

    Raises:
        LimitError: there are more than `MAX_STATES`.
    """
    edges: dict[int, dict[int, list[tuple[int, int]]]] = {}
    pending = [start]
    while pending:
        state = pending.pop()
        if state in edges:
            continue
        if len(edges) == MAX_STATES:
            raise LimitError(
                f"a condition on the texts of a grammar has more than {MAX_STATES:,} states",
                hint="leave out maxLength and pattern beside the grammar, or write them into the grammar",
            )
        edges[state] = {}
        for first, last, target in steps(terms, state):
            edges[state].setdefault(target, []).append((first, last))
            pending.append(target)
    return edges


def _path(terms: Terms, start: int, end: int, edges: dict[int, dict[int, list[tuple[int, int]]]]) -> int:
    """Return the term of the texts that lead from one state to another, or back to the same."""
    leading = _leading(end, edges)

    def beyond(state: int) -> int:
        """Return the texts from a state to ``end`` that are not empty: one term for each state, built when needed."""
        if not any(target in leading or target == end for target in edges[state]):
            return terms.EMPTY
        return terms.deferred(("path", state, end), lambda terms: build(state), loops=True)

    def rest(state: int) -> int:
        """Return all texts from a state to ``end``."""
        return terms.alt([terms.EPSILON, beyond(state)]) if state == end else beyond(state)

    def build(state: int) -> int:
        """Return the term of `beyond`: a character to each successor, then the rest from there."""
        parts = [(CharSet(tuple(ranges)), rest(target)) for target, ranges in edges[state].items()]
        return terms.alt([terms.seq(terms.chars(chars), after) for chars, after in parts])

    return rest(start)


def _leading(end: int, edges: dict[int, dict[int, list[tuple[int, int]]]]) -> set[int]:
    """Return the states from which a non-empty text leads to ``end``."""
    found: set[int] = set()
    grown = {state for state, targets in edges.items() if end in targets}
    while grown - found:
        found |= grown
        grown = {state for state, targets in edges.items() if not found.isdisjoint(targets)}
    return found


# -- spellings -----------------------------------------------------------------------------------------------------


def spelled(terms: Terms, term: int, name: Hashable, written: Callable[[Terms, CharSet], int]) -> int:
    """Return the term of the texts of a term with each character replaced by its spellings.

    Args:
        terms: the store.
        term: the texts.
        name: the name of the spelling.
        written: maps a class of characters to the term of their spellings, none of them empty.
    """

    def of_range(terms: Terms, first: int, last: int) -> int:
        """Return the spellings of a range of characters, which many states have."""
        key = ("spelled", name, first, last)
        if key not in terms.memo:
            terms.memo[key] = written(terms, CharSet(((first, last),)))
        return int(terms.memo[key])

    def build(terms: Terms) -> int:
        parts = [
            terms.seq(of_range(terms, first, last), spelled(terms, target, name, written))
            for first, last, target in steps(terms, term)
        ]
        return terms.alt(parts)

    parts = [terms.EPSILON] if terms.nullable(term) else []
    if steps(terms, term):
        parts.append(terms.deferred(("spelled", name, term), build, loops=True))
    return terms.alt(parts)


_SHORT = {0x08: "b", 0x09: "t", 0x0A: "n", 0x0C: "f", 0x0D: "r", 0x22: '"', 0x5C: "\\"}
_LETTERS = {**_SHORT, 0x2F: "/"}
_PLAIN = CharSet(((0x20, 0x10FFFF),)) & ~CharSet.of('"\\')
#: Characters with an escape: those that need one, DEL, and all beyond ASCII.
_ESCAPED = CharSet(((0, 0x1F), (0x22, 0x22), (0x5C, 0x5C), (0x7F, 0x10FFFF)))
_ASTRAL = 0x10000


def json_escaped(terms: Terms, term: int) -> int:
    r"""Return the contents (without quotes) of the JSON strings whose decoded value is in a term.

    ASCII characters are escaped only if they must be; all others are raw, or ``\uXXXX``.
    """
    return spelled(terms, term, "json", _in_json)


def json_spellings(terms: Terms, chars: CharSet) -> int:
    r"""Return all spellings of the characters of a class in a JSON string (RFC 8259, section 7).

    For example, a slash is ``/``, ``\/``, ``\u002f`` or ``\u002F``."""
    written = [terms.chars(CharSet.of("".join(letter for code, letter in _LETTERS.items() if code in chars)))]
    for first, last in chars.ranges:
        if first < _ASTRAL:
            written.append(_unit(terms, first, min(last, _ASTRAL - 1)))
        if last >= _ASTRAL:
            written.append(_pairs(terms, max(first, _ASTRAL) - _ASTRAL, last - _ASTRAL))
    return terms.alt([terms.chars(chars & _PLAIN), terms.seq(terms.literal("\\"), terms.alt(written))])


def _in_json(terms: Terms, chars: CharSet) -> int:
    """Return the spellings of the characters of a class that `json_escaped` allows."""
    written = []
    for first, last in (chars & _ESCAPED).ranges:
        codes = range(first, min(last, 0x5C) + 1)  # up to the last character of `_SHORT`
        written.append(terms.words([_SHORT[code] for code in codes if code in _SHORT]))
        if first < 0x20:
            written.append(_unit(terms, first, min(last, 0x1F)))
        elif 0x7F <= first < _ASTRAL:
            written.append(_unit(terms, first, min(last, _ASTRAL - 1)))
        if last >= _ASTRAL:
            written.append(_pairs(terms, max(first, _ASTRAL) - _ASTRAL, last - _ASTRAL))
    return terms.alt([terms.chars(chars & _PLAIN), terms.seq(terms.literal("\\"), terms.alt(written))])


def _unit(terms: Terms, low: int, high: int) -> int:
    """Return ``u`` and four hexadecimal digits, for each number of a range."""
    return terms.seq(terms.literal("u"), _digits(terms, low, high, 4))


def _pairs(terms: Terms, low: int, high: int) -> int:
    r"""Return the surrogate pairs (``u``, 4 digits, ``\u``, 4 digits) of a range of supplementary characters, given as
    code points minus 0x10000. The high surrogate has the upper ten bits (``first`` to ``last``), the low one the lower
    ten (``begin`` of ``first`` to ``end`` of ``last``)."""
    (first, begin), (last, end) = divmod(low, 0x400), divmod(high, 0x400)

    def pair(first: int, last: int, begin: int, end: int) -> int:
        second = terms.seq(terms.literal("\\"), _unit(terms, 0xDC00 + begin, 0xDC00 + end))
        return terms.seq(_unit(terms, 0xD800 + first, 0xD800 + last), second)

    if first == last:
        return pair(first, last, begin, end)
    ways = []
    if begin:
        ways.append(pair(first, first, begin, 0x3FF))
        first += 1
    if end < 0x3FF:
        ways.append(pair(last, last, 0, end))
        last -= 1
    return terms.alt([*ways, pair(first, last, 0, 0x3FF)] if first <= last else ways)


def _digits(terms: Terms, low: int, high: int, width: int) -> int:
    """Return the numbers of a range as ``width`` hexadecimal digits, in either case: 0x1f8 to 0x3ff as ``1f[89a-f]``,
    ``[23][0-9a-f][0-9a-f]``. Digits in a row that all lower digits may follow share one class."""
    if width == 0:
        return terms.EPSILON
    size = 16 ** (width - 1)
    parts = []
    digit = low // size
    while digit * size <= high:
        first, last = max(low, digit * size), min(high, digit * size + size - 1)
        stop = digit
        if first == digit * size and last == first + size - 1:  # all values of the lower digits
            while (stop + 2) * size - 1 <= high:  # so are those of the next digit
                stop += 1
            last = stop * size + size - 1
        chars = CharSet.of("".join(f"{each:x}{each:X}" for each in range(digit, stop + 1)))
        rest = _digits(terms, first % size, last % size, width - 1)
        parts.append(terms.seq(terms.chars(chars), rest))
        digit = stop + 1
    return terms.alt(parts)
