"""The judge of masks: every token of a mask against the matcher.

`accepted` asks the matcher of each token. `Steps` is for large vocabularies: it takes the bytes of all tokens through
the automaton, one byte of all tokens at a time, and asks the matcher only of the tokens that depend on the text. Neither
knows a token set or a route to one.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from toolgrammar.core import LimitError, Matcher, Vocabulary
from toolgrammar.core.automaton.encoding import FINISHED

Flags = npt.NDArray[np.bool_]

#: Maximum number of tokens of which each is asked.
FEW = 2_000
#: Maximum number of states of which the steps are memoised.
MAX_STATES = 20_000

#: The transition of a byte after which the text decides.
_ASK = -2


class MaskError(AssertionError):
    """A mask and its matcher differ."""


def allowed(matcher: Matcher) -> Flags:
    """Return the tokens that the mask allows."""
    size = matcher.constraint.vocabulary.size
    words = np.zeros((size + 31) // 32, dtype=np.uint32)
    matcher.fill_mask(words)
    return np.unpackbits(words.view(np.uint8), bitorder="little")[:size].astype(bool)


def accepted(matcher: Matcher, tokens: Sequence[int] | None = None) -> Flags:
    """Return the tokens that the matcher accepts, each tried; of ``tokens`` only, if they are given."""
    size = matcher.constraint.vocabulary.size
    found = np.zeros(size, dtype=bool)
    accept, rollback = matcher.accept, matcher.rollback
    found[[token for token in (range(size) if tokens is None else tokens) if accept(token) and not rollback(1)]] = True
    return found


class _Nodes:
    """The trie of a vocabulary, by depth: the parents, the bytes and the nodes where tokens end, as arrays."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        below: dict[tuple[int, int], int] = {}
        parents, values, depths = [-1], [0], [0]
        ends: list[tuple[int, int]] = []
        self.without_text: list[int] = []
        self.escapes: list[int] = []
        for token, data in enumerate(vocabulary.tokens):
            if not data:
                self.without_text.append(token)
                continue
            if b"\\" in data:
                self.escapes.append(token)
            node = 0
            for value in data:
                then = below.get((node, value))
                if then is None:
                    then = below[node, value] = len(parents)
                    parents.append(node)
                    values.append(value)
                    depths.append(depths[node] + 1)
                node = then
            ends.append((token, node))
        self.count = len(parents)
        order = np.argsort(depths, kind="stable")
        starts = np.searchsorted(np.array(depths)[order], range(1, max(depths) + 2))
        self.levels = [order[first:last] for first, last in itertools.pairwise(starts)]
        self.parents, self.values = np.array(parents), np.array(values)
        self.tokens, self.ends = np.array(ends).T


class Steps:
    """The tokens that a matcher accepts, for many texts of one constraint.

    Attributes:
        distinct: number of states of texts so far, each with a mask of its own.
    """

    def __init__(self) -> None:
        self.distinct = 0
        self._store: Any = None
        self._begin(None)

    def _begin(self, store: Any) -> None:
        """Forget the states of another store, which had other numbers."""
        self._store = store
        self._known: dict[int, Flags] = {}
        #: The states after each byte, and the row of each state; -1: none yet.
        self._rows = np.zeros((64, 256), dtype=np.int64)
        self._place = np.full(1024, -1, dtype=np.int64)
        self._count = 0

    def accepted(self, matcher: Matcher) -> Flags:
        """Return the tokens that the matcher accepts."""
        engine, state = matcher._place
        if state == FINISHED:
            return np.zeros(matcher.constraint.vocabulary.size, dtype=bool)
        if engine is not self._store or self._count > MAX_STATES:
            self._begin(engine)
        known = self._known.get(state)
        if known is not None:
            return known
        nodes = matcher.constraint.vocabulary.derived(_Nodes)
        at = np.full(nodes.count, -1, dtype=np.int64)
        at[0] = state
        asks = False
        for level in nodes.levels:
            before = at[nodes.parents[level]]
            alive = before >= 0
            asked = before == _ASK
            if asked.any():
                asks = True
                at[level[asked]] = _ASK
            if not alive.any():
                if not asks:
                    break
                continue
            here = level[alive]
            places = self._places(before[alive])
            at[here] = self._rows[places, nodes.values[here]]
        found = np.zeros(matcher.constraint.vocabulary.size, dtype=bool)
        reached = at[nodes.ends]
        found[nodes.tokens[reached >= 0]] = True
        found |= accepted(matcher, nodes.tokens[reached == _ASK].tolist())
        found |= accepted(matcher, nodes.without_text)
        self.distinct += 1
        if not (reached == _ASK).any():
            self._known[state] = found
        return found

    def _places(self, states: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Return the rows of some states, which are made if they are new."""
        most = int(states.max())
        if most >= len(self._place):
            self._place = np.concatenate([self._place, np.full(2 * most, -1, dtype=np.int64)])
        places = self._place[states]
        if (places < 0).any():
            automaton = self._store.program.automaton
            for state in np.unique(states[places < 0]).tolist():
                if self._count == len(self._rows):
                    self._rows = np.concatenate([self._rows, np.zeros_like(self._rows)])
                row = self._rows[self._count]
                row[:] = -1
                for value in automaton.following(state):  # by `advance`: it tells where a dependent node begins
                    row[value] = max(automaton.advance(state, _BYTES[value], False), _ASK)
                self._place[state] = self._count
                self._count += 1
            places = self._place[states]
        return places


_BYTES = [bytes((value,)) for value in range(256)]


def check_mask(matcher: Matcher, steps: Steps | None = None) -> Flags:
    """Compare the whole mask of a text with the matcher; return it.

    Args:
        matcher: the text.
        steps: of its constraint; None: each token is tried.

    Raises:
        MaskError: they differ; says in which token.
    """
    mask = allowed(matcher)
    vocabulary = matcher.constraint.vocabulary
    if steps is None or vocabulary.size <= FEW:
        right = accepted(matcher)
    else:
        try:
            right = steps.accepted(matcher)
        except LimitError:  # the matcher makes room
            right = accepted(matcher)
        if not np.array_equal(mask, right):
            right = accepted(matcher)
    if not np.array_equal(mask, right):
        token = int(np.flatnonzero(mask != right)[0])
        raise MaskError(
            f"mask {bool(mask[token])}, accept {matcher.fork().accept(token)} of {vocabulary.tokens[token]!r} ({token})"
            f"; {np.count_nonzero(mask != right)} tokens differ, in {matcher!r}"
        )
    return mask
