"""Languages defined by equations, as deterministic automata.

Where a language is defined by itself (``X = K | r X``), and intersections hold it, derivatives do not repeat by
themselves: each adds a layer. This is an alternating automaton (Brzozowski and Leiss 1980, "On equations for regular
languages, finite automata, and sequential networks"), whose derivatives are Boolean combinations of finitely many
terms. Written as unions of intersections they repeat, and become the states of a deterministic automaton, of which
equivalent ones are merged.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from typing import Final

from ..errors import LimitError
from ..language import term_kinds
from ..language.terms import Terms

#: Maximum number of variables, and of states of one automaton.
MAX_STATES: Final = 2_000
#: Maximum number of intersections whose union is one state.
_MAX_INTERSECTIONS: Final = 64

_OF_PARTS: Final = frozenset((term_kinds.SEQ, term_kinds.ALT, term_kinds.AND))
_OF_ONE_PART: Final = frozenset((term_kinds.NOT, term_kinds.REPEAT))

#: A piecewise constant function from code points to terms: where each piece begins, and its term.
Row = list[tuple[int, int]]


class Equations:
    """Variables, each a deferred term that stands for a language without the empty string, and their solution.

    A variable may be in its own equation: as the end of a concatenation, in unions and in intersections, but not in a
    complement.

    Args:
        terms: where terms are made.
    """

    def __init__(self, terms: Terms) -> None:
        self._terms = terms
        self._variables: dict[Hashable, int] = {}
        self._equations: dict[int, Callable[[], int]] = {}
        self._values: dict[int, int] = {}
        self._has: dict[int, bool] = {}  # by term: it has variables
        self._unions: dict[int, frozenset[frozenset[int]]] = {}

    def variable(self, key: Hashable, equation: Callable[[], int]) -> int:
        """Return the variable of a key; ``equation`` makes its language when it is looked at.

        Raises:
            LimitError: too many of them.
        """
        term = self._variables.get(key)
        if term is None:
            self._check(len(self._variables))
            term = self._terms.deferred(object(), lambda terms: self._values[self._variables[key]], loops=True)
            self._variables[key] = term
            self._equations[term] = equation
        return term

    def solve(self, root: int) -> int:
        """Return a language without variables: as states of a deterministic automaton, as far as it has any.

        Raises:
            LimitError: the automaton has too many states.
        """
        terms = self._terms
        root = self._canonical(root)
        rows: dict[int, Row] = {}
        ends: list[int] = []  # where strings end, or the rest of them has no variables
        waiting = [root]
        while waiting:
            state = waiting.pop()
            if state in rows or state == terms.EMPTY:
                continue
            if not self._has_variables(state):
                if not terms.is_empty(state):
                    ends.append(state)
                continue
            self._check(len(rows))
            if terms.nullable(state):
                ends.append(state)
            row = rows[state] = []
            starts, targets = terms.segments(state)
            for start, stop, target in zip(starts, (*starts[1:], term_kinds.END), targets, strict=True):
                row.append((start, terms.EMPTY if is_surrogate(start, stop) else self._canonical(target)))
            waiting += {target for _, target in row}
        return automaton(terms, rows, set(ends), root)

    def _check(self, states: int) -> None:
        if states == MAX_STATES:
            raise LimitError(f"more than {MAX_STATES:,} states for a repetition with assertions", hint="simplify it")

    def _has_variables(self, term: int) -> bool:
        """Return True if a term has variables; the values of these are then made."""
        waiting = [term]
        while waiting:
            top = waiting[-1]
            if top in self._has:
                waiting.pop()
            elif top in self._equations:
                self._has[top] = True
                value = self._values[top] = self._equations[top]()
                waiting[-1] = value
            else:
                kind, args = self._terms.shape(top)
                parts = args if kind in _OF_PARTS else args[:1] if kind in _OF_ONE_PART else ()
                unknown = [part for part in parts if part not in self._has]
                waiting += unknown
                if not unknown:
                    self._has[top] = any(self._has[part] for part in parts)
        return self._has[term]

    def _canonical(self, term: int) -> int:
        """Return a term as a union of intersections, so that equal states of `solve` more often are one term; unchanged
        if it has no variables."""
        if not self._has_variables(term):
            return term
        terms = self._terms
        return terms.alt([terms.and_(parts) for parts in self._union(term)])

    def _largest(self, intersections: Iterable[frozenset[int]]) -> frozenset[frozenset[int]]:
        """Return the intersections without those that include all parts of another, and so add no strings to the union.
        Raise LimitError if there are too many."""
        union = set(intersections)
        if len(union) > _MAX_INTERSECTIONS:
            raise LimitError(
                f"more than {_MAX_INTERSECTIONS:,} intersections in one state of a repetition with assertions",
                hint="simplify it",
            )
        return frozenset(parts for parts in union if not any(other < parts for other in union))

    def _union(self, term: int) -> frozenset[frozenset[int]]:
        """Return a term as a union of intersections, each the set of its parts; operators are taken apart as far as
        they contain variables. None of the sets contains another, because a larger intersection adds no strings."""
        cached = self._unions.get(term)
        if cached is not None:
            return cached
        kind, args = self._terms.shape(term)
        union = frozenset((frozenset((term,)),))
        if kind == term_kinds.AND:
            union = frozenset((frozenset(),))
            for part in args:
                union = self._largest(one | other for one in union for other in self._union(part))
        elif kind == term_kinds.ALT and self._has_variables(term):
            union = self._largest(parts for part in args for parts in self._union(part))
        self._unions[term] = union
        return union


def is_surrogate(start: int, stop: int) -> bool:
    """Return True if all code points of a range are surrogates, which no string has."""
    return start >= term_kinds.SURROGATES and stop <= term_kinds.SURROGATES_END


def automaton(terms: Terms, rows: dict[int, Row], ends: set[int], start: int) -> int:
    """Return the language of a deterministic automaton.

    Args:
        terms: where the term is made.
        rows: the states; targets without a row are terms.
        ends: the states at which strings end, and the targets without a row that are not empty.
        start: the first state.
    """
    live = _leading_to(ends, rows)
    if start not in live:
        return terms.EMPTY
    live_rows: dict[int, Row] = {}
    for state in live & rows.keys():
        live_rows[state] = [(at, target if target in live else terms.EMPTY) for at, target in rows[state]]
    return _Automaton(terms, live_rows, ends).term(start)


def quotient(terms: Terms, term: int, end: int) -> int:
    """Return the texts that become a text of a language when some text of another one follows (its right quotient).

    Raises:
        LimitError: the automaton of the language has too many states.
    """
    rows: dict[int, Row] = {}
    ends: set[int] = set()
    waiting = [term]
    while waiting:
        state = waiting.pop()
        if state in rows or state == terms.EMPTY:
            continue
        if len(rows) == MAX_STATES:
            raise LimitError(f"more than {MAX_STATES:,} states for what a stop text ends", hint="simplify it")
        if not terms.is_empty(terms.and_([state, end])):
            ends.add(state)
        starts, targets = terms.segments(state)
        rows[state] = list(zip(starts, targets, strict=True))
        waiting += targets
    return automaton(terms, rows, ends, term)


class _Automaton:
    """The languages of the states of a deterministic automaton, each a deferred term.

    Args:
        terms: where terms are made.
        rows: the transitions of the states; each state can reach an end. Targets without a row are terms.
        ends: the accepting states.
    """

    def __init__(self, terms: Terms, rows: dict[int, Row], ends: set[int]) -> None:
        self._terms = terms
        self._rows = rows
        self._ends = ends
        self._same = _merged(rows, {state: state in ends for state in rows})
        self._states: dict[int, int] = {}  # by state, the term of its non-empty strings

    def term(self, state: int) -> int:
        """Return the language of a state, as a term: its non-empty strings, and EPSILON if it accepts.

        States may form circles, so the term of the non-empty strings is deferred: it is made of the terms of the next
        states (`_more`) when a text reaches it. A state without a row is a term itself.
        """
        terms = self._terms
        if state not in self._rows:
            return state
        state = self._same[state]  # one state for all with this language
        if state not in self._states:
            goes_on = any(target != terms.EMPTY for _, target in self._rows[state])
            more = terms.deferred(object(), lambda terms: self._more(state), loops=True) if goes_on else terms.EMPTY
            self._states[state] = more
        more = self._states[state]
        return terms.alt([terms.EPSILON, more]) if state in self._ends else more

    def _more(self, state: int) -> int:
        """Return the language of a state but for the empty string."""
        flips: dict[int, list[int]] = {}  # by target, the starts and ends of the ranges of characters that lead there
        row = self._rows[state]
        for (start, target), (stop, _) in zip(row, (*row[1:], (term_kinds.END, 0)), strict=True):
            ranges = flips.setdefault(self.term(target), [])
            if ranges and ranges[-1] == start:
                ranges[-1] = stop
            else:
                ranges += (start, stop)
        terms = self._terms
        return terms.alt([terms.seq(terms.chars_of(ranges), target) for target, ranges in flips.items()])


def _before(rows: dict[int, Row]) -> dict[int, set[int]]:
    """Return the states that lead to each target."""
    before: dict[int, set[int]] = {}
    for state, row in rows.items():
        for _, target in row:
            before.setdefault(target, set()).add(state)
    return before


def _leading_to(states: Iterable[int], rows: dict[int, Row]) -> set[int]:
    """Return the states from which one of the given states can be reached, the given ones included."""
    before = _before(rows)
    reaching = set(states)
    waiting = [*reaching]
    while waiting:
        more = before.get(waiting.pop(), set()) - reaching
        reaching |= more
        waiting += more
    return reaching


def _merged(rows: dict[int, Row], is_end: dict[int, bool]) -> dict[int, int]:
    """Return for each state of ``rows`` the one that stands for all with the same language. ``is_end``: for each state,
    if strings end there.

    Moore's partition refinement: states are divided into groups until the states of each group have equal rows, with
    groups in place of targets. Only states whose targets changed their group are looked at again.
    """
    before = _before(rows)
    group = {state: -1 - end for state, end in is_end.items()}  # negative, unlike targets without a row (terms)
    members: dict[int, set[int]] = {-1: set(), -2: set()}
    for state, number in group.items():
        members[number].add(state)
    signatures: dict[int, tuple[tuple[int, int], ...]] = {}  # by state: its row, with groups in place of targets
    changed = set(rows)
    while changed:
        for state in changed:
            row: Row = []
            for start, target in rows[state]:
                leads_to = group.get(target, target)
                if not row or row[-1][1] != leads_to:
                    row.append((start, leads_to))
            signatures[state] = tuple(row)
        groups = {group[state] for state in changed}
        changed = set()
        for number in groups:
            parts: dict[tuple[tuple[int, int], ...], set[int]] = {}
            for state in members[number]:
                parts.setdefault(signatures[state], set()).add(state)
            for part in sorted(parts.values(), key=len)[:-1]:  # the largest part keeps the number
                members[number] -= part
                new = -1 - len(members)
                members[new] = part
                for state in part:
                    group[state] = new
                    changed |= before.get(state, set())
    first: dict[int, int] = {}
    return {state: first.setdefault(group[state], state) for state in rows}
