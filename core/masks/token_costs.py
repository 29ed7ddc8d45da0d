# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False, cdivision=True
"""Costs of tokens: for each token that a state allows, the number of tokens that complete the text after it.

Let s(q) be the shortest completion of a state q, and c(q) its minimum number of tokens. The cost of a token w is
c(q·w). With ``room`` tokens left, the tokens with a cost below ``room`` fit. A state has few successors by tokens (all
tokens that stay inside a free string lead to one state), so tokens are stored as spans of the trie's order, by cost,
and the mask of the tokens below a cost is made on first use.

s(q) may end a name, or a string in an array, that the text so far forbids because it is repeated (`unless_repeated`).
The string has *spare characters* if it may be extended without a change of its continuation: by three characters before
its closing quote, each any of 20 letters or digits. In an object of fewer than 8,000 names, one of these 20³ strings is
new. Then c(q) counts three more tokens for each such string of s(q), and is valid for every text. In all other cases
the number of tokens depends on the text: the token is *unsure*.

An ``atom`` is a position inside one, an integer (see ``automaton/encoding.py``); ``rest`` is the node of the text after
it. Compiled where that is possible; ``token_costs.pxd`` declares the C interface, and says what the fields hold.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from typing import TYPE_CHECKING

import numpy as np

from ..automaton.completion.texts import joined
from ..errors import LimitError
from ..language.node_kinds import REPEATED_NAMES
from .trie import GROUPS

try:
    import cython
except ImportError:  # interpreted, without Cython installed
    from ..compiled import standin as cython  # type: ignore[no-redef]

if not cython.compiled:  # else they are declared
    from ..automaton import encoding
    from ..automaton.states import Automaton
    from ..compiled.arrays import grown
    from .fewest_tokens import FewestTokens, Spelling
    from .subtrees import Subtrees
    from .trie import Trie

if TYPE_CHECKING:
    from ..automaton.completion.texts import Rope

#: The cost of an unsure token.
UNSURE = cython.declare(cython.int, -1)

#: The cost of a token that ends the text, which always fits.
FREE = cython.declare(cython.int, -2)

#: The letters and digits that are used as spare characters, the number of spare characters of a string, and the minimum
#: number of choices for each.
LETTERS = b"abcdefghijklmnopqrstuvwxyz0123456789"
SPARE = cython.declare(cython.int, 3)
FEW_LETTERS = cython.declare(cython.int, 20)

#: Maximum bytes of the costs of a store's states and of the memoised spellings; then all are dropped.
MAX_BYTES = cython.declare(cython.longlong, 16 * 2**20)

#: Maximum number of states whose number of tokens is memoised; then all are dropped.
MAX_STATES = cython.declare(cython.int, 65_536)

#: The groups of bytes that are not complete characters in a JSON string.
MARKS = cython.declare(cython.ulonglong, GROUPS[0x22] | GROUPS[0x5C] | GROUPS[0x80] | GROUPS[0])

#: Minimum number of trie nodes in a subtree for which the subtree test pays off.
SOME = cython.declare(cython.int, 16)


@cython.cclass
class Costs:
    """The costs of the tokens of one state.

    Attributes:
        longest: the highest cost, without unsure tokens.
        unsure: the unsure tokens, grouped by the state to which they lead.
        levels: the distinct costs, ascending.
        rest: the most frequent cost: that of all tokens outside of the spans.
        spans: begin and end in the trie's order, and cost, of the other tokens.
        alone: ids of control tokens and of end-of-text tokens, and their costs.
        masks: by a number n, the tokens with one of the n lowest costs, and all unsure ones, as bits.
    """


@cython.cclass
class TokenCosts:
    """The costs of the tokens of a store's states over a vocabulary, memoised.

    Args:
        program: the store.
        trie: the vocabulary's trie.
        subtrees: the subtree test of the store's row states.
        special: ids of control tokens by name.
        finals: ids that are allowed where the text may end.
    """

    def __init__(self, program, trie: Trie, subtrees: Subtrees, special, finals):
        self.program = program
        self.automaton = program.automaton
        self.trie = trie
        self.subtrees = subtrees
        self.special = special
        self.finals = tuple(finals)
        self.fewest = FewestTokens(trie, special)
        self.words = (trie.vocabulary + 31) // 32
        self.at_state = grown(None, "i", trie.longest + 2)
        self.at_atom = grown(None, "q", trie.longest + 2)
        self.at_rest = grown(None, "i", trie.longest + 2)
        self.at_class = grown(None, "i", trie.longest + 2)
        self.classes = {}
        self.span_array = grown(None, "i", 3 * 256)
        self.span = self.span_array
        self.span_count = 0
        self.canonical = {}
        self.is_before_dependent = {}
        self.clear_all()

    def clear_all(self) -> None:
        """Forget everything."""
        self.known = {}
        self.least = {}
        self.fewest.clear()
        self.held = 0

    def byte_count(self) -> int:
        """Return the bytes of the costs."""
        return self.held + self.fewest.held + 100 * (len(self.least) + len(self.known)) + 4_000

    # -- states ------------------------------------------------------------------------------------------------

    def tokens_left(self, state: cython.int, before: bytes = b"") -> int:
        """Return a number of tokens that write ``before`` and then complete the text, valid for every text in the
        state; `UNSURE` if it depends on the text, `NEVER` if no tokens write it. The caller holds the lock.

        Args:
            state: the state.
            before: bytes that are still to be written, and that the state has read already.
        """
        found = self.least.get(state)
        if before or found is None:
            spelling: Spelling = self._completion(state)
            found = UNSURE if spelling is None else spelling.least[0]
            self.least[state] = found
            if before and spelling is not None:
                return self.fewest.spell(self.fewest.codes((before,)), spelling).least[0]
        return found

    @cython.cfunc
    def _completion(self, state: cython.int) -> Spelling:
        """Return the spelling of a state's completion, with spare characters; None if it depends on the text."""
        plan: Rope = self.program.plan(state)
        if plan.is_certain:
            return self.fewest.of_text(plan)
        parts: list = []  # up to the last place where a string may be repeated; the rest is shared by many plans
        while not plan.is_certain and plan.right is not None:
            parts.extend(plan.left.pieces())
            plan = plan.right
        tail: Spelling = self.fewest.end
        if plan.is_certain:
            tail = self.fewest.of_text(plan)
        else:
            parts.extend(plan.pieces())
        spaced: list = self._with_spare(state, joined(parts))
        return None if spaced is None else self.fewest.spell(self.fewest.codes(spaced), tail)

    @cython.cfunc
    def _with_spare(self, state: cython.int, parts: list) -> list:
        """Return the parts of a completion, with the number of spare characters before each closing quote at which a
        name may be repeated; None if there is another dependent node, or if a string has no spare characters."""
        automaton: Automaton = self.automaton
        found: list = []
        reached: cython.int
        size: cython.int
        end: cython.int
        for part in parts:
            if isinstance(part, str):
                state = automaton.advance_special(state, self.program.specials.index(part))
                if automaton.open_threads(state):
                    return None
                found.append(part)
                continue
            data: bytes = part
            while data:
                reached = automaton.advance(state, data, False)
                if reached == encoding.REFUSED:
                    return None
                if reached >= 0:
                    state = reached
                    found.append(data)
                    break
                size = encoding.OPENED - reached  # a dependent node follows the quote at this index
                state = automaton.advance(state, data[:size], False)
                end = self._beyond(automaton.step(state, data[size]))
                if end < 0 or not self._has_spare(state, data[size], end):
                    return None
                found += [data[:size], SPARE, data[size : size + 1]]
                state = end
                data = data[size + 1 :]
        return found

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _has_spare(self, state: cython.int, quote: cython.int, end: cython.int) -> cython.bint:
        """Return True if the string that ends with ``quote``, in the state ``end``, has spare characters: from
        ``state``, at least `FEW_LETTERS` letters lead to one state, `SPARE` times in a row or without end, and the
        quote still leads to ``end``."""
        automaton: Automaton = self.automaton
        trie: Trie = self.trie
        node: cython.int
        _i: cython.int
        for _i in range(SPARE):
            counts: dict = {}
            for letter in LETTERS:
                node = trie.child[letter]
                if node >= 0 and trie.first[node + 1] > trie.first[node]:
                    target = automaton.step(state, letter)
                    counts[target] = counts.get(target, 0) + 1
            counts.pop(encoding.REFUSED, None)
            best = max(counts, key=counts.__getitem__, default=-1)
            if best < 0 or counts[best] < FEW_LETTERS:
                return False
            if best == state:
                return True
            state = best
            if self._beyond(automaton.step(state, quote)) != end:
                return False
        return True

    @cython.cfunc
    @cython.exceptval(-9, check=False)
    def _beyond(self, state: cython.int) -> cython.int:
        """Return the state after the dependent nodes of an open state at the end of a name, if the name is new;
        `REFUSED` if the state has other threads, or dependent nodes of another kind than `unless_repeated`.

        A state that is not open is returned unchanged. All nodes of `unless_repeated` forbid the same names, so none
        forbids a new one, and each is replaced by its static language.
        """
        automaton: Automaton = self.automaton
        while state >= 0:
            threads: list = automaton.open_threads(state)
            if not threads:
                break
            if len(threads) < automaton.state_count[state] or automaton.state_accepts[state]:
                return encoding.REFUSED
            replaced: dict = {}
            for atom, rest in threads:
                node, forbids = self.program.static(atom, rest)
                if forbids != REPEATED_NAMES:
                    return encoding.REFUSED
                replaced[atom, rest] = node
            state = automaton.resolve(state, replaced)
        return state

    # -- tokens by cost ----------------------------------------------------------------------------------------

    @cython.cfunc
    @cython.exceptval(-9, check=False)
    def _canonical(self, atom: cython.longlong, rest: cython.int) -> cython.longlong:
        """Return a position with the same costs as one in a counted string, which many positions share: with the same
        number of missing characters, and no maximum.

        The maximum length forbids tokens, but does not change the costs of the others. Before a dependent node it may,
        because the string may need spare characters: there the position itself is returned.
        """
        automaton: Automaton = self.automaton
        if self.is_before_dependent.get(rest) is None:
            automaton.next_count = 0
            automaton.next_accepts = False
            automaton._enter_node(rest)
            first: cython.int = automaton._intern()  # the state at the beginning of `rest`
            self.is_before_dependent[rest] = len(automaton.open_threads(first)) > 0
        if self.is_before_dependent[rest]:
            return atom
        number: cython.int = cython.cast(cython.int, (atom >> encoding.NUMBER_AT) & encoding.NUMBER_MASK)
        needed: cython.longlong = automaton.least[number] - ((atom >> encoding.WRITTEN_AT) & encoding.UNBOUNDED)
        if needed < 0:
            needed = 0
        string = self.canonical.get(needed)
        if string is None:
            string = self.canonical[needed] = automaton.add_counted(needed, -1)
        return cython.cast(cython.longlong, string) | (atom & encoding.LOCAL_MASK)

    @cython.cfunc
    @cython.exceptval(-9, check=False)
    def _state_of(self, atom: cython.longlong, rest: cython.int) -> cython.int:
        """Return the state of a single thread."""
        automaton: Automaton = self.automaton
        automaton.next_count = 0
        automaton.next_accepts = False
        automaton._push(atom, rest)
        return automaton._intern()

    @cython.cfunc
    def _arrive(self, depth: cython.int, state: cython.int) -> object:
        """Store the state at the current trie node; a single thread is stored as such, which is faster to follow."""
        automaton: Automaton = self.automaton
        at: cython.int = automaton.state_at[state]
        self.at_state[depth] = state
        self.at_class[depth] = -1
        if automaton.state_count[state] == 1 and not automaton.state_accepts[state]:
            tag: cython.longlong = automaton.thread_atom[at] >> encoding.TAG
            if tag == encoding.ROW or tag == encoding.COUNTED or tag == encoding.LITERAL:
                self.at_state[depth] = -1
                self.at_atom[depth] = automaton.thread_atom[at]
                self.at_rest[depth] = automaton.thread_rest[at]
                if tag == encoding.COUNTED:
                    self.at_atom[depth] = self._canonical(automaton.thread_atom[at], automaton.thread_rest[at])
        return None

    @cython.cfunc
    @cython.exceptval(-9, check=False)
    def _class_at(self, depth: cython.int) -> cython.int:
        """Return the class (see `_walk`) of the tokens that end at the current trie node. Classes are numbered when
        first met, and by the state; or, for a single thread, by its position and the node after it."""
        if self.at_class[depth] < 0:
            atom: cython.longlong = self.at_atom[depth]
            if self.at_state[depth] >= 0:
                key = self.at_state[depth]
            else:
                if (atom >> encoding.TAG) == encoding.COUNTED:
                    atom = self._canonical(atom, self.at_rest[depth])
                key = (atom, self.at_rest[depth])
            number = self.classes.get(key)
            if number is None:
                number = self.classes[key] = len(self.classes)
            self.at_class[depth] = number
        return self.at_class[depth]

    @cython.cfunc
    def _note(self, begin: cython.int, stop: cython.int, number: cython.int) -> object:
        """Record the class of the tokens in a range of the trie's order."""
        at: cython.int = self.span_count
        if begin == stop:
            return None
        if at and self.span[at - 1] == number and self.span[at - 2] == begin:
            self.span[at - 2] = stop
            return None
        if at + 3 > len(self.span_array):
            self.span_array = grown(self.span_array, "i", 2 * at)
            self.span = self.span_array
        self.span[at] = begin
        self.span[at + 1] = stop
        self.span[at + 2] = number
        self.span_count = at + 3
        return None

    @cython.cfunc
    def _walk(self, state: cython.int) -> object:
        """Divide the text tokens that a state allows into classes (``span``: begin and end in the trie's order, and
        class): the tokens of a class lead to one state, or to states with the same completion. Class 0 is that of
        tokens that reach a dependent node, or exceed a limit."""
        trie: Trie = self.trie
        automaton: Automaton = self.automaton
        subtrees: Subtrees = self.subtrees
        i: cython.int = 1
        stop: cython.int
        depth: cython.int
        byte: cython.int
        atom: cython.longlong
        target: cython.longlong
        row: cython.int
        self.classes = {None: 0}
        self.span_count = 0
        self._arrive(0, state)
        while i < trie.nodes:
            depth = trie.depth[i]
            stop = i + trie.size[i]
            byte = trie.byte[i]
            try:
                if self.at_state[depth - 1] < 0:  # a single thread: no state is made while it stays in its atom
                    atom = self.at_atom[depth - 1]
                    target = automaton.after(atom, byte)
                    if target < 0:
                        i = stop
                        continue
                    if not automaton.may_end(target) and target != encoding.DONE:
                        self.at_state[depth] = -1
                        self.at_atom[depth] = target
                        self.at_rest[depth] = self.at_rest[depth - 1]
                        self.at_class[depth] = self.at_class[depth - 1] if target == atom else -1
                        if stop - i > SOME and (target >> encoding.TAG) == encoding.ROW:
                            row = cython.cast(cython.int, target)
                            if trie.below[i] & subtrees.left_by(row) == 0:  # all tokens below lead to this row state
                                self._note(trie.first[i], trie.first[stop], self._class_at(depth))
                                i = stop
                                continue
                        elif (
                            target == atom
                            and (target >> encoding.TAG) == encoding.COUNTED
                            and (target & encoding.LOCAL_MASK) == encoding.LOCAL_BODY
                            and trie.below[i] & MARKS == 0
                        ):  # no characters are missing, and all bytes below are characters
                            self._note(trie.first[i], trie.first[stop], self._class_at(depth))
                            i = stop
                            continue
                        if trie.first[i + 1] > trie.first[i]:
                            self._note(trie.first[i], trie.first[i + 1], self._class_at(depth))
                        i += 1
                        continue
                    automaton.now_atom[0] = atom
                    automaton.now_rest[0] = self.at_rest[depth - 1]
                    automaton.now_count = 1
                else:
                    automaton._load(self.at_state[depth - 1])
                automaton.is_open = False
                automaton._advance(byte)
                if automaton.next_count == 0 and not automaton.next_accepts:
                    i = stop
                    continue
                target = automaton._intern()
                if automaton.is_open:
                    target = self._beyond(cython.cast(cython.int, target))
                if target >= 0:
                    self._arrive(depth, cython.cast(cython.int, target))
                    if trie.first[i + 1] > trie.first[i]:
                        self._note(trie.first[i], trie.first[i + 1], self._class_at(depth))
                    i += 1
                    continue
            except LimitError:
                pass
            self._note(trie.first[i], trie.first[stop], 0)  # all tokens below
            i = stop
        return None

    @cython.cfunc
    def _build(self, state: cython.int) -> Costs:
        """Return the costs of the tokens of a state: the cost of each class of `_walk` is the number of tokens that
        complete the text after it. The most frequent cost is not listed (``rest``); classes whose cost depends on the
        text are ``unsure``."""
        automaton: Automaton = self.automaton
        found: Costs = Costs.__new__(Costs)
        i: cython.int
        self._walk(state)
        costs: list = [UNSURE] * len(self.classes)  # by class
        for key, number in self.classes.items():
            if key is not None:
                try:
                    here = self._state_of(key[0], key[1]) if isinstance(key, tuple) else automaton.cut(key)
                    costs[number] = self.tokens_left(here)
                except LimitError:
                    pass
        found.alone = [(token, FREE) for token in self.finals] if automaton.state_accepts[state] else []
        for atom, _ in automaton.threads(state):
            if (atom >> encoding.TAG) == encoding.SPECIAL:
                number = atom & encoding.PAYLOAD
                token = self.special.get(self.program.specials[number])
                if token is not None:
                    here = automaton.advance_special(state, number)
                    found.alone.append((token, UNSURE if automaton.open_threads(here) else self.tokens_left(here)))
        sizes: dict = {cost: 0 for _, cost in found.alone}  # by cost, the number of text tokens
        unsure: dict = {
            None: [token for token, cost in found.alone if cost == UNSURE]
        }  # by class; None: control tokens
        for i in range(0, self.span_count, 3):
            cost = costs[self.span[i + 2]]
            sizes[cost] = sizes.get(cost, 0) + self.span[i + 1] - self.span[i]
            if cost == UNSURE:
                tokens: list = unsure.setdefault(self.span[i + 2], [])
                tokens.extend(self.trie.order[self.span[i] : self.span[i + 1]])
        found.unsure = [np.array(tokens, np.int64) for tokens in unsure.values() if tokens]
        found.rest = max(sizes, key=sizes.__getitem__, default=0)
        found.levels = sorted(sizes.keys() - {UNSURE, FREE})
        found.longest = max(found.levels, default=0)
        spans: list = []
        for i in range(0, self.span_count, 3):
            cost = costs[self.span[i + 2]]
            if cost != found.rest:
                spans += (self.span[i], self.span[i + 1], cost)
        found.spans = array("i", spans or [0])
        found.span_count = len(spans)
        found.masks = {}
        self.held += 500 + 4 * len(spans) + 8 * sum(map(len, found.unsure))
        return found

    def of(self, state: cython.int) -> Costs:
        """Return the costs of the tokens of a state, memoised; the caller holds the lock. States in a counted string
        share those of the state with the same missing characters (`_canonical`)."""
        found = self.known.get(state)
        if found is not None:
            return found
        if self.held + self.fewest.held > MAX_BYTES or len(self.least) > MAX_STATES:
            self.clear_all()
        automaton: Automaton = self.automaton
        like: cython.int = state
        if automaton.state_count[automaton.own(state)] == 1 and not automaton.state_accepts[state]:
            atom: cython.longlong = automaton.thread_atom[automaton.state_at[state]]
            if (atom >> encoding.TAG) == encoding.COUNTED:
                rest: cython.int = automaton.thread_rest[automaton.state_at[state]]
                like = self._state_of(self._canonical(atom, rest), rest)
        costs = self.known.get(like)
        if costs is None:
            costs = self.known[like] = self._build(like)
        self.known[state] = costs
        return costs

    @cython.cfunc
    def _fitting(self, costs: Costs, count: cython.int) -> object:
        """Return the tokens with one of the lowest ``count`` costs, and all unsure ones, as bits."""
        found = costs.masks.get(count)
        if found is not None:
            return found
        most: cython.int = costs.levels[count - 1] if count else UNSURE  # `FREE` and `UNSURE` are below all costs
        found = array("I", [0xFFFFFFFF if costs.rest <= most else 0]) * max(1, self.words)
        bits: cython.uint[::1] = found
        order: cython.int[::1] = self.trie.order
        i: cython.int
        j: cython.int
        for i in range(0, costs.span_count, 3):
            if (costs.spans[i + 2] <= most) != (costs.rest <= most):
                for j in range(costs.spans[i], costs.spans[i + 1]):
                    bits[order[j] >> 5] ^= cython.cast(cython.uint, 1) << (order[j] & 31)
        for token, cost in costs.alone:
            if (cost <= most) != (costs.rest <= most):
                bits[token >> 5] ^= cython.cast(cython.uint, 1) << (token & 31)
        costs.masks[count] = found
        self.held += 4 * self.words
        return found

    def narrow(self, costs: Costs, row: cython.uint[::1], room: cython.int) -> int:
        """Clear in a mask the tokens that cost ``room`` or more, except unsure ones. Return 0 or 1 if no or one token
        was cleared, else a number above 1: `Budget.narrow` asks no more. The caller holds the lock."""
        if costs.longest < room:
            return 0
        fitting: cython.uint[::1] = self._fitting(costs, bisect_left(costs.levels, room))
        lost: cython.uint
        cleared: cython.int = 0
        i: cython.int
        for i in range(self.words):
            lost = row[i] & (fitting[i] ^ 0xFFFFFFFF)
            if lost:
                cleared += 1 if lost & (lost - 1) == 0 else 2
                row[i] ^= lost
        return cleared
