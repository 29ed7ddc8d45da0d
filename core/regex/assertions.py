r"""Patterns with assertions as languages of whole texts.

JSON Schema searches for a ``pattern`` anywhere in a string, and its assertions (``^``, ``$``, ``\b``, look-arounds)
depend on the text around the match. Here a pattern becomes the language of the texts in which it matches. Notation: r
is a pattern, Σ* is any text, K is the *continuation*: the language of the text after r. ∂w(L) is the derivative of L by
w.

*Ahead.* A tree is read from right to left: its language is computed from K. An assertion that looks ahead is an
intersection with K: ``(?=r)`` is (r Σ*) ∩ K, ``(?!r)`` is ¬(r Σ*) ∩ K, ``$`` is {ε} ∩ K.

*Behind.* After the text w, ``(?<=r)`` holds if and only if ε ∈ ∂w(Σ* r). So K is a function of such derivatives, its
*past*, of which there are finitely many. A look-ahead at the end of r is one at the position itself; if another one
depends on the text beyond r, the pattern is refused.

*Repetition.* ``r*`` before K is the least solution of X = K ∪ r' X, where r' = r without ε (an iteration without width
adds nothing, see RepeatMatcher, ECMA-262 section 22.2.2.3.1). If r has assertions, this is an alternating automaton
(Brzozowski and Leiss 1980, "On equations for regular languages, finite automata, and sequential networks"): its
derivatives are Boolean combinations of finitely many terms. As unions of intersections they are finitely many, and
become the states of a deterministic automaton.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import count
from typing import Final, NamedTuple

from ..errors import LimitError, Place, UnsupportedPatternError
from ..language import term_kinds
from ..language.terms import Terms
from ..unicode.charset import CharSet
from .equations import Equations, automaton, is_surrogate
from .parser import WORD
from .syntax import (
    ANYTHING,
    Alt,
    Chars,
    Empty,
    End,
    Look,
    Regex,
    Repeat,
    Seq,
    Start,
    WordBoundary,
    boundary,
    fold,
    looks_beyond,
    matches_empty_anywhere,
)

#: Maximum number of parts of a pattern, each counted once for each repetition.
_MAX_PARTS: Final = 20_000
#: Maximum count up to which a repetition with assertions is written out, without an automaton.
_FEW_COPIES: Final = 3
#: Maximum number of pasts that are compared one by one.
MAX_PASTS: Final = 500
#: Number of items of a sequence after which one is resolved at once, to bound the depth of the recursion.
_FEW_ITEMS: Final = 50
#: Pairs of the number of a look-behind and its derivative by the text so far.
Past = tuple[tuple[int, int], ...]


def search_language(terms: Terms, node: Regex) -> int:
    r"""Return the language of all texts in which a pattern matches somewhere.

    Args:
        terms: where the term is made.
        node: the tree of a pattern, as ``parse`` makes it.

    Raises:
        UnsupportedPatternError: too many states for the repetitions that hold assertions.

    Law: a text is in the language if and only if the pattern matches in it, in the sense of ECMA-262's
    ``RegExp.prototype.test`` with the ``u`` flag.
    """
    items = node.items if isinstance(node, Seq) else (node,)
    first, last = isinstance(items[0], Start), isinstance(items[-1], End)
    before = () if first else (ANYTHING,)
    after = () if last else (ANYTHING,)
    tree = Seq((*before, *items[first : len(items) - last], *after))
    if tree.is_pure:
        return _pure_language(terms, tree)
    try:
        try:
            return _AssertionCompiler(terms, tree).language(terms.EPSILON)
        except RecursionError:
            from concurrent.futures import ThreadPoolExecutor

            # The result must not depend on the caller's stack depth: a thread has a stack of its own.
            with ThreadPoolExecutor(1) as thread:
                return thread.submit(lambda: _AssertionCompiler(terms, tree).language(terms.EPSILON)).result()
    except (LimitError, RecursionError) as error:
        reason = error.message if isinstance(error, LimitError) else "they are nested too deep"
        raise UnsupportedPatternError(
            f"the assertions of this pattern are too complex: {reason}",
            hint="move ^, $, \\b and look-arounds out of repetitions, or write several patterns under allOf",
            place=Place(offset=0),
        ) from None


def _pure_language(terms: Terms, node: Regex) -> int:
    """Return the language of a tree without assertions."""

    def combine(node: Regex, parts: Sequence[int]) -> int:
        """Return the term of a node from those of its items, for `fold`."""
        if isinstance(node, Chars):
            term = terms.chars(node.charset)
        elif isinstance(node, Seq):
            term = terms.sequence(parts)
        elif isinstance(node, Alt):
            term = terms.alt(parts)
        elif isinstance(node, Repeat):
            term = terms.repeat(parts[0], node.min, node.max)
        elif isinstance(node, Empty):
            term = terms.EPSILON
        else:
            raise TypeError(f"no part of a pattern without assertions: {node}")
        return term

    return fold(node, combine)


class _Rest:
    """The continuation at a position of a pattern, as a function of the past.

    Attributes:
        behinds: the numbers of the look-behinds on which it depends.
    """

    __slots__ = ("_known", "_language", "behinds")

    def __init__(self, language: Callable[[Past], int], behinds: frozenset[int]) -> None:
        self.behinds = behinds
        self._language = language
        self._known: dict[Past, int] = {}

    def at(self, past: Past) -> int:
        """Return the continuation after a past."""
        past = tuple([state for state in past if state[0] in self.behinds])
        term = self._known.get(past)
        if term is None:
            term = self._known[past] = self._language(past)
        return term


class _Loop(NamedTuple):
    """A repetition with its continuation: all strings, and the strings in which the repetition is not empty."""

    whole: _Rest
    positive: _Rest


class _AssertionCompiler:
    """The reader of one tree; look-behinds have readers of their own.

    Args:
        terms: where terms are made.
        tree: the tree.
    """

    def __init__(self, terms: Terms, tree: Regex) -> None:
        self.terms = terms
        self.tree = tree
        self.behinds: list[int] = []  # by number, the derivative of a look-behind at the beginning of the text
        self.looks: dict[int, tuple[_Rest, Regex]] = {}  # by the identities of nodes, which are kept for that
        self.guards: dict[int, tuple[_Rest, Regex]] = {}
        self.plain: dict[int, tuple[int, Regex]] = {}
        self.rows: dict[Past, list[tuple[int, Past]]] = {}
        self.loops: dict[tuple[int, int], tuple[_Loop, Regex, _Rest]] = {}
        self.depth = 0  # number of loops around the current node
        self.parts = 0
        self.numbers = count()
        self.equations = Equations(terms)
        self.behinds_in(tree)

    def language(self, follows: int) -> int:
        """Return the strings of the tree, each followed by those of a language."""
        rest = self.enter(self.tree, self.closed(follows))
        return rest.at(tuple(enumerate(self.behinds)))

    # -- look-behinds ------------------------------------------------------------------------------------------

    def behinds_in(self, node: Regex) -> frozenset[int]:
        """Return the numbers of the look-behinds in a tree, on whose states its meaning depends."""
        numbers: set[int] = set()
        waiting = [node]
        while waiting:
            top = waiting.pop()
            if top.is_pure:
                continue
            if isinstance(top, (Start, WordBoundary)) or (isinstance(top, Look) and not top.ahead):
                numbers |= self.behind(top).behinds
            else:
                waiting += top.items
        return frozenset(numbers)

    def behind(self, node: Regex) -> _Rest:
        r"""Return what may follow a position at which a look-behind holds; a negated one is read without the negation.

        Args:
            node: ``^``, a look-behind, or ``\b`` (which looks for a word character behind).
        """
        if id(node) not in self.looks:
            if isinstance(node, Start):
                found = self._number(self.terms.EPSILON)
            else:
                found = self._behind(node.item if isinstance(node, Look) else Chars(WORD))
            self.looks[id(node)] = found, node
        return self.looks[id(node)][0]

    def _behind(self, body: Regex) -> _Rest:
        """Return the texts after a position at which a match of a tree ends: those after which the derivative of the
        tree, anchored nowhere, has the empty string. For ``a``, for example, all texts after an a, and none after other
        characters."""
        if matches_empty_anywhere(body):
            return self.closed(self.terms.ALL)
        if body.longest == 0:
            return self.guard(body)
        if isinstance(body, Alt) and not body.is_pure:
            return self.joined(self.either, [self._behind(item) for item in body.items])
        if isinstance(body, Seq) and body.items[-1].longest == 0:
            return self.joined(self.both, [self._behind(Seq(body.items[:-1])), self.guard(body.items[-1])])
        if looks_beyond(body):
            raise LimitError("a look-behind has a look-ahead beyond its end")
        tree = Seq((ANYTHING, body))
        return self._number(_AssertionCompiler(self.terms, tree).language(self.terms.EPSILON))

    def _number(self, start: int) -> _Rest:
        """Return the texts after a position at which a look-behind holds: all or none. A new look-behind, which is
        given by its derivative at the beginning of the text, gets a number."""
        if start not in self.behinds:
            self.behinds.append(start)
        return _Rest(
            lambda past: self.terms.ALL if self.terms.nullable(past[0][1]) else term_kinds.EMPTY,
            frozenset((self.behinds.index(start),)),
        )

    def _row(self, past: Past) -> list[tuple[int, Past]]:
        """Return the transitions of a past by one character: pairs of the first code point of a segment (of characters
        that lead to the same past) and the past after it."""
        row = self.rows.get(past)
        if row is None:
            segments = [self.terms.segments(state) for _, state in past]
            cursors = [0] * len(past)
            row = self.rows[past] = []
            bounds = sorted({0, *(start for starts, _ in segments for start in starts)})
            for bound, stop in zip(bounds, (*bounds[1:], term_kinds.END), strict=True):
                target: list[tuple[int, int]] = []
                for i, (starts, targets) in enumerate(segments):
                    if cursors[i] + 1 < len(starts) and starts[cursors[i] + 1] == bound:
                        cursors[i] += 1
                    target.append((past[i][0], targets[cursors[i]]))
                if not is_surrogate(bound, stop):
                    row.append((bound, tuple(target)))
        return row

    def _reachable(self, past: Past) -> list[Past] | None:
        """Return all pasts that are reachable from a past, itself included; None: more than `MAX_PASTS`."""
        queue = [past]
        reached = {past}
        for state in queue:
            for _, target in self._row(state):
                if target not in reached:
                    reached.add(target)
                    queue.append(target)
            if len(queue) > MAX_PASTS:
                return None
        return queue

    def _texts_between(self, pasts: Sequence[Past], ends: Iterable[Past]) -> int:
        """Return the texts that lead from the first past to one of ``ends``; ``pasts`` are all that it can reach."""
        numbers = {past: -1 - i for i, past in enumerate(pasts)}  # the states: negative, so that they are no terms
        rows = {numbers[past]: [(start, numbers[to]) for start, to in self._row(past)] for past in pasts}
        return automaton(self.terms, rows, {numbers[past] for past in ends}, -1)

    # -- languages of pure trees -------------------------------------------------------------------------------

    def term(self, node: Regex) -> int:
        """Return the language of a tree without assertions."""
        entry = self.plain.get(id(node))
        if entry is None:
            entry = self.plain[id(node)] = _pure_language(self.terms, node), node
        return entry[0]

    def positive(self, node: Regex) -> int:
        """Return the language of a tree without assertions, but for the empty string."""
        terms = self.terms
        if not node.is_nullable:
            return self.term(node)
        if isinstance(node, Repeat) and not node.item.is_nullable:
            return terms.repeat(self.term(node.item), 1, node.max)
        return terms.and_([self.term(node), terms.not_(terms.EPSILON)])

    # -- continuations -----------------------------------------------------------------------------------------

    def closed(self, term: int) -> _Rest:
        """Return a continuation that does not depend on the past."""
        return _Rest(lambda past: term, frozenset())

    def both(self, parts: Iterable[int]) -> int:
        """Return the intersection."""
        return self.terms.and_([*parts])

    def either(self, parts: Sequence[int]) -> int:
        """Return the union."""
        return self.terms.alt(parts)

    def negated(self, rest: _Rest) -> _Rest:
        """Return the complement of a continuation."""
        return _Rest(lambda past: self.terms.not_(rest.at(past)), rest.behinds)

    def joined(self, join: Callable[[list[int]], int], parts: Sequence[_Rest]) -> _Rest:
        """Return the union or intersection (``join``) of continuations."""
        if len(parts) == 1:
            return parts[0]
        behinds: frozenset[int] = frozenset().union(*[part.behinds for part in parts])
        return _Rest(lambda past: join([part.at(past) for part in parts]), behinds)

    def enter(self, node: Regex, rest: _Rest) -> _Rest:
        """Return a tree before a rest: the strings of both, one after the other, in which the assertions of the tree
        hold."""
        self._count()
        if node.is_pure and not rest.behinds:
            return self.closed(self.terms.seq(self.term(node), rest.at(())))
        if isinstance(node, Seq):
            return self._rests(node.items, rest)[-1]
        if isinstance(node, Alt):
            return self.joined(self.either, [self.enter(item, rest) for item in node.items])
        if isinstance(node, Repeat):
            return self.run(self.term(node), rest) if node.is_pure else self.loop(node, rest).whole
        if isinstance(node, (Start, End, WordBoundary, Look)):
            return self.joined(self.both, [self.guard(node), rest])
        return rest if isinstance(node, Empty) else self.consume(node, rest)

    def _count(self) -> None:
        """Count one more part that is read; LimitError if they are too many."""
        self.parts += 1
        if self.parts > _MAX_PARTS:
            raise LimitError(
                f"more than {_MAX_PARTS:,} parts, each counted as often as it is repeated", hint="simplify it"
            )

    def _rests(self, items: Sequence[Regex], rest: _Rest) -> list[_Rest]:
        """Return the rest after a sequence, that after its last item but one, and so on to the whole sequence."""
        rests = [rest]
        for item in reversed(items):
            rests.append(self.enter(item, rests[-1]))
            if len(rests) % _FEW_ITEMS == 0:  # computed now, so that later calls end here: the recursion stays shallow
                start = tuple([(i, start) for i, start in enumerate(self.behinds) if i in rests[-1].behinds])
                for past in self._reachable(start) or ():
                    rests[-1].at(past)
        return rests

    def consume(self, node: Regex, rest: _Rest) -> _Rest:
        """Return `enter` of the strings of a tree that have at least one character.

        In a sequence, any item may be the first with a character, if the items before it match the empty string (their
        guards hold). In ``^a*b``, for example, it is a* or b.
        """
        self._count()
        terms = self.terms
        if node.is_pure and not rest.behinds:
            return self.closed(terms.seq(self.positive(node), rest.at(())))
        if isinstance(node, Chars):
            return self.step(node.charset, rest)
        if isinstance(node, Alt):
            return self.joined(self.either, [self.consume(item, rest) for item in node.items])
        if isinstance(node, Repeat):
            return self.run(self.positive(node), rest) if node.is_pure else self.loop(node, rest).positive
        if not isinstance(node, Seq):
            return self.closed(terms.EMPTY)
        rests = self._rests(node.items[1:], rest)
        parts: list[_Rest] = []  # by the first item with a character
        guards: list[_Rest] = []  # of the items before it
        for item in node.items:
            parts.append(self.joined(self.both, [*guards, self.consume(item, rests.pop())]))
            if item.is_pure:
                if not item.is_nullable:
                    break
            else:
                guards.append(self.guard(item))
        return self.joined(self.either, parts)

    def guard(self, node: Regex) -> _Rest:
        """Return what may follow a position at which a tree matches the empty string: all texts, if it has no
        assertions."""
        if id(node) not in self.guards:
            self.guards[id(node)] = self._guard(node), node
        return self.guards[id(node)][0]

    def _guard(self, node: Regex) -> _Rest:
        """Make `guard` of a node: a pure tree asks for nothing, or never matches the empty string; an assertion asks
        for what follows it to hold."""
        terms = self.terms
        if node.is_pure:
            return self.closed(self.terms.ALL if node.is_nullable else terms.EMPTY)
        if isinstance(node, Seq):
            return self.joined(self.both, [self.guard(item) for item in node.items])
        if isinstance(node, Alt):
            return self.joined(self.either, [self.guard(item) for item in node.items])
        if isinstance(node, Repeat):
            return self.guard(node.item) if node.min else self.closed(self.terms.ALL)
        if isinstance(node, End):
            return self.closed(terms.EPSILON)
        if isinstance(node, WordBoundary):
            return self.guard(boundary(WORD, negated=node.negated))
        if isinstance(node, Start):
            return self.behind(node)
        if not isinstance(node, Look):
            raise TypeError(f"no part of a pattern: {node}")
        if not node.ahead:
            guard = self.behind(node)
        elif matches_empty_anywhere(node.item):
            guard = self.closed(self.terms.ALL)
        else:
            # No loop around is a part of this language (it may be negated): its own loops are solved at once.
            depth, self.depth = self.depth, 0
            guard = self.enter(node.item, self.closed(self.terms.ALL))
            self.depth = depth
        return self.negated(guard) if node.negated else guard

    def step(self, charset: CharSet, rest: _Rest) -> _Rest:
        """Return the characters of a set, each followed by the rest after it. Characters that lead the look-behinds to
        equal continuations are one part."""

        def language(past: Past) -> int:
            row = self._row(past)
            ranges: dict[int, list[tuple[int, int]]] = {}
            for (start, target), (stop, _) in zip(row, (*row[1:], (term_kinds.END, ())), strict=True):
                ranges.setdefault(rest.at(target), []).append((start, stop - 1))
            of_chars = [(terms.chars(charset & CharSet(of)), follows) for follows, of in ranges.items()]
            return terms.alt([terms.seq(chars, follows) for chars, follows in of_chars])

        terms = self.terms
        return _Rest(language, rest.behinds)

    def run(self, term: int, rest: _Rest) -> _Rest:
        """Return the strings of a term, each followed by the rest after it."""

        def language(past: Past) -> int:
            return terms.alt([terms.seq(terms.and_([term, of]), follows) for of, follows in self._cases(past, rest)])

        terms = self.terms
        return _Rest(language, rest.behinds)

    def _cases(self, past: Past, rest: _Rest) -> list[tuple[int, int]]:
        """Return the pairs (texts, continuation after these texts), for all texts after a past.

        Raises:
            LimitError: the look-behinds have too many states.
        """
        terms = self.terms
        past = tuple([state for state in past if state[0] in rest.behinds])
        pasts = self._reachable(past)
        if pasts is None:
            raise LimitError(f"more than {MAX_PASTS:,} states of look-behinds", hint="simplify it")
        by_past = {target: rest.at(target) for target in pasts}
        if len(set(by_past.values())) == 1:
            return [(terms.ALL, by_past[pasts[0]])]
        is_plain = True  # continuations depend on nothing but which look-behinds hold
        by_answers: dict[tuple[bool, ...], int] = {}
        for target, follows in by_past.items():
            holds = tuple([terms.nullable(state) for _, state in target])
            is_plain = is_plain and by_answers.setdefault(holds, follows) == follows
        cases: list[tuple[int, int]] = []
        if is_plain:
            for holds, follows in by_answers.items():
                pairs = zip(past, holds, strict=True)
                texts = terms.and_([state if held else terms.not_(state) for (_, state), held in pairs])
                cases.append((texts, follows))
        else:
            for follows in dict.fromkeys(by_past.values()):
                ends = [target for target in pasts if by_past[target] == follows]
                cases.append((self._texts_between(pasts, ends), follows))
        return [(texts, follows) for texts, follows in cases if follows != terms.EMPTY]

    # -- repetitions -------------------------------------------------------------------------------------------

    def loop(self, node: Repeat, rest: _Rest) -> _Loop:
        """Return a repetition, in which each optional round has at least one character, before a rest."""
        key = id(node), id(rest)
        if key not in self.loops:
            self.loops[key] = self._loop(node, rest), node, rest
        return self.loops[key][0]

    def _loop(self, node: Repeat, rest: _Rest) -> _Loop:
        """Make `loop` of a node and a rest."""
        terms, item, least = self.terms, node.item, node.min
        if item.longest == 0:  # all rounds are at the same position, with the same meaning
            return _Loop(self.joined(self.both, [self.guard(node), rest]), self.closed(terms.EMPTY))
        follows = None if rest.behinds else rest.at(())
        if follows == terms.ALL:  # one more round is as good as many
            optional = int(node.max != least)
        else:
            optional = 0 if node.max is None else node.max - least
        if optional + least > _FEW_COPIES and follows == terms.EPSILON and item.shortest == item.longest:
            # All rounds have the same length, so the length says how many there are.
            loop = self.loop(Repeat(item, 0, None), rest)
            one = terms.repeat(terms.ANY, item.shortest, item.longest)
            length = self.closed(terms.repeat(one, least, node.max))
            return _Loop(self.joined(self.both, [loop.whole, length]), self.joined(self.both, [loop.positive, length]))
        return _Rounds(self, node, rest, optional, is_endless=node.max is None and follows != terms.ALL).loop()


class _Rounds:
    """The continuations inside one repetition, by *level*: the number of rounds that are left.

    At the levels up to ``optional``, all rounds left are optional, and have a character. Above, some are required: such
    a round may match the empty string where the guard of the item holds. An endless repetition counts the required
    rounds only: at its level 0, any number of optional ones is left.

    The levels of a long repetition are variables of equations, so that each is made once; the outermost one solves
    them.
    """

    def __init__(
        self, compiler: _AssertionCompiler, node: Repeat, rest: _Rest, optional: int, *, is_endless: bool
    ) -> None:
        self.compiler = compiler
        self.number = next(compiler.numbers)
        self.depth = compiler.depth
        self.item = node.item
        self.rest = rest
        self.optional = optional
        self.is_endless = is_endless
        self.is_required = node.min > 0
        self.top = optional + node.min
        self.is_long = is_endless or self.top > _FEW_COPIES
        self.behinds = rest.behinds | compiler.behinds_in(self.item)
        self.guard = compiler.guard(self.item)
        self.rounds: dict[int, _Rest] = {}  # by the level before it: a round with a character, and what follows
        self.levels: list[_Rest] = [_Rest(self._some_more(0) if is_endless else rest.at, self.behinds)]
        self.levels += [_Rest(self._some_more(left), self.behinds) for left in range(1, optional + 1)]
        self.levels += [_Rest(self._must_go(left), self.behinds) for left in range(optional + 1, self.top + 1)]

    def loop(self) -> _Loop:
        """Return the repetition before its rest."""
        whole, positive = self.levels[-1].at, self._positive
        if self.is_long and not self.depth:
            solve = self.compiler.equations.solve
            return _Loop(
                _Rest(lambda past: solve(whole(past)), self.behinds),
                _Rest(lambda past: solve(positive(past)), self.behinds),
            )
        return _Loop(self.levels[-1], _Rest(positive, self.behinds))

    def _one_more(self, left: int, past: Past) -> int:
        """Return one round with a character, and what may follow, at a level above 0 (or level 0 of an endless
        repetition, where the round leads to the same level)."""

        def made() -> int:
            if left not in self.rounds:
                compiler = self.compiler
                before, compiler.depth = compiler.depth, self.depth + self.is_long
                self.rounds[left] = compiler.consume(self.item, self.levels[max(left - 1, 0)])
                compiler.depth = before
            return self.rounds[left].at(past)

        past = tuple([state for state in past if state[0] in self.behinds])
        return self.compiler.equations.variable((self.number, left, past), made) if self.is_long else made()

    def _some_more(self, left: int) -> Callable[[Past], int]:
        """Return the continuation at a level of optional rounds: the rest, or one more round."""
        return lambda past: self.compiler.either([self.rest.at(past), self._one_more(left, past)])

    def _must_go(self, left: int) -> Callable[[Past], int]:
        """Return the continuation at a level where some rounds are required."""
        return lambda past: self._required(left, past, self.levels[self.optional].at(past))

    def _required(self, left: int, past: Past, end: int) -> int:
        """Return the continuation at a level where some rounds are required: the next one has a character; or it is
        empty, and a later one is the first with a character; or all are empty, and ``end`` follows."""
        empty = self.guard.at(past)
        ways = [self._one_more(left, past)]
        if empty != self.compiler.terms.EMPTY:
            later = [self._one_more(level, past) for level in range(self.optional + 1, left)]
            ways.append(self.compiler.both([empty, self.compiler.either([*later, end])]))
        return self.compiler.either(ways)

    def _positive(self, past: Past) -> int:
        """Return the strings in which the repetition is not empty, each with its continuation."""
        has_optional = self.optional or self.is_endless
        end = self._one_more(self.optional, past) if has_optional else self.compiler.terms.EMPTY
        return self._required(self.top, past, end) if self.is_required else end
