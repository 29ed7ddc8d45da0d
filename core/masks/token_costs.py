# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False, cdivision=True
"""Costs of tokens: for each token that a state allows, the number of tokens that complete the text after it.

The completion of a state is its shortest text, written in as few tokens as possible. A budget of ``room`` tokens allows
those tokens whose cost is less than ``room``. Most tokens of a state cost the same (those that stay inside a string,
say), so the costs of a state are a few lists of tokens beside the many. Compiled where that is possible;
``token_costs.pxd`` declares its C interface.

A completion may depend on the text so far. Mostly that is the name of a further member, which must not repeat another.
The cost of such a token is that of the name's shortest end, unless this makes it a repeated one: see
`TokenCosts.doubtful`. Tokens behind a name are in the mask only if it is none. All other tokens of this kind are
`UNSURE`.
"""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING

import numpy as np

from ..automaton.completion.texts import joined
from ..errors import DecodingError, LimitError
from .trie import GROUPS

try:
    import cython
except ImportError:  # interpreted, without Cython installed
    from ..compiled import standin as cython  # type: ignore[no-redef]

if not cython.compiled:  # else they are declared
    from ..automaton import encoding
    from ..automaton.states import Automaton
    from ..compiled.arrays import grown
    from .subtrees import Subtrees
    from .trie import Trie

if TYPE_CHECKING:
    import numpy.typing as npt

#: Costs: of a token after which the completion depends on more than the state; of one after which the vocabulary has no
#: tokens for it.
UNSURE = cython.declare(cython.int, -1)
NEVER = cython.declare(cython.int, 2**30)

#: Codes of control tokens in a text begin here; those below are bytes.
CONTROL = cython.declare(cython.int, 256)

#: Maximum bytes of the costs of a store's states, and of the completions that they rest on; then all are dropped.
MAX_BYTES = cython.declare(cython.longlong, 16 * 2**20)

#: The groups of the backslash and the quote (see `trie.GROUPS`).
BACKSLASH = cython.declare(cython.ulonglong, GROUPS[0x5C])
QUOTE = cython.declare(cython.ulonglong, GROUPS[0x22])

#: The groups of bytes that are not characters by themselves in a JSON string.
MARKS = cython.declare(cython.ulonglong, GROUPS[0x22] | GROUPS[0x5C] | GROUPS[0x80] | GROUPS[0])

#: Minimum number of trie nodes in a subtree for which the subtree test pays off.
SOME = cython.declare(cython.int, 16)


@cython.cclass
class Spelling:
    """A text in as few tokens as possible, from each of its places on.

    Attributes:
        codes: the bytes, and ``CONTROL + id`` for a control token.
        least: for each place and for the end, the number of tokens from there on.
        token: for each place, the first of them.
        size: for each place, its number of codes.
    """


@cython.cclass
class Costs:
    """The costs of the tokens of one state.

    Attributes:
        longest: the highest cost of a token that depends on the state alone.
        least: number of tokens that complete the text itself; `UNSURE` if that depends on more than the state.
        is_steady: after the first of these tokens, one less completes it.
        unsure_count: number of tokens after which the completion depends on more than the state.
        heads: the ends of names in the completions after tokens; a token whose name becomes a repeated one by it costs
            more than is said here. Empty if no token is inside of a name.
        own: the end of the name in the completion of the text itself, likewise; None if it is not inside of one.
        opened: of these tokens, those that begin the name: by their bytes from its quote on.
        escaped: of these tokens, those that hold a backslash: they may spell a name otherwise.
    """


@cython.cclass
class TokenCosts:
    """The costs of the tokens of a store's states over a vocabulary, memoised.

    Args:
        program: the store.
        trie: the vocabulary's trie.
        subtrees: the subtree test of the store's row states.
        tokens: the bytes of each token.
        special: ids of control tokens by name.
        finals: ids that are allowed where the text may end.
    """

    def __init__(self, program, trie: Trie, subtrees: Subtrees, tokens, special, finals):
        self.program = program
        self.automaton = program.automaton
        self.trie = trie
        self.subtrees = subtrees
        self.tokens = tokens
        self.special = special
        self.finals = tuple(finals)
        self.words = (trie.vocabulary + 31) // 32
        self.kept = array("I", [0]) * max(1, self.words)
        self.nothing = Spelling.__new__(Spelling)
        self.nothing.codes = self.nothing.token = self.nothing.size = array("i", [0])
        self.nothing.least = array("i", [0])
        self.nothing.length = 0
        self.at_state = grown(None, "i", trie.longest + 2)
        self.at_atom = grown(None, "q", trie.longest + 2)
        self.at_rest = grown(None, "i", trie.longest + 2)
        self.at_class = grown(None, "i", trie.longest + 2)
        self.classes = {}
        self.span_array = grown(None, "i", 3 * 256)
        self.span = self.span_array
        self.span_count = 0
        self.alike = {}
        self.clear_all()

    def clear_all(self) -> None:
        """Forget everything."""
        self.known = {}
        self.costs = {}
        self.heads = {}
        self.tails = {}
        self.held = 0

    def byte_count(self) -> int:
        """Return the bytes that the costs take."""
        return self.held + 100 * (len(self.costs) + len(self.known)) + 4_000

    # -- completions in tokens ---------------------------------------------------------------------------------

    @cython.cfunc
    def _spelled(self, codes: object, tail: Spelling) -> Spelling:
        """Spell a text that ends with another; the result has the places before that one alone."""
        trie: Trie = self.trie
        found: Spelling = Spelling.__new__(Spelling)
        count: cython.int = len(codes)
        found.length = count
        found.codes = codes if count else array("i", [0])
        found.least = grown(None, "i", count + 1)
        found.token = grown(None, "i", count + 1)
        found.size = grown(None, "i", count + 1)
        i: cython.int
        j: cython.int
        k: cython.int
        end: cython.int
        node: cython.int
        code: cython.int
        so_far: cython.int
        best: cython.int
        whole: cython.int = count + tail.length
        found.least[count] = tail.least[0]
        for i in range(count - 1, -1, -1):
            code = found.codes[i]
            best = NEVER
            if code >= CONTROL:
                found.token[i] = code - CONTROL
                found.size[i] = 1
                if found.least[i + 1] < NEVER:
                    best = found.least[i + 1] + 1
                found.least[i] = best
                continue
            node = trie.child[code]
            j = i + 1
            while node >= 0:
                so_far = found.least[j] if j <= count else tail.least[j - count]
                # Of equally few tokens, the longest comes first.
                if trie.first[node + 1] > trie.first[node] and so_far < NEVER and so_far + 1 <= best:
                    best = so_far + 1
                    found.token[i] = trie.order[trie.first[node]]
                    found.size[i] = j - i
                if j >= whole or trie.size[node] == 1:
                    break
                code = found.codes[j] if j < count else tail.codes[j - count]
                if code >= CONTROL:
                    break
                k = node + 1
                end = node + trie.size[node]
                while k < end and trie.byte[k] < code:
                    k += trie.size[k]
                node = k if k < end and trie.byte[k] == code else -1
                j += 1
            found.least[i] = best
        return found

    def spell(self, parts) -> list:
        """Return the tokens of a text, as few as possible.

        Args:
            parts: runs of bytes, and names of control tokens.

        Raises:
            DecodingError: the vocabulary cannot write it.
        """
        spelling: Spelling = self._spelled(self._codes(parts), self.nothing)
        if spelling.least[0] >= NEVER:
            raise DecodingError(
                "the vocabulary has no tokens for some text, so the output cannot be completed",
                hint="use a vocabulary with a token for each byte",
            )
        ids: list = []
        i: cython.int = 0
        while i < spelling.length:
            ids.append(spelling.token[i])
            i += spelling.size[i]
        return ids

    def _codes(self, parts) -> array:
        codes = array("i")
        for part in parts:
            if isinstance(part, bytes):
                codes.extend(part)
            else:
                # A name that the vocabulary lacks belongs to another grammar: no text of this one needs it.
                codes.append(CONTROL + self.special[part])
        return codes

    @cython.cfunc
    def _tail(self, rope: object) -> Spelling:
        """Return the spelling of a text that many completions share as their end."""
        found = self.tails.get(id(rope))
        if found is not None:
            return found[1]
        spelling: Spelling = self._spelled(self._codes(rope.pieces()), self.nothing)
        self.tails[id(rope)] = (rope, spelling)  # the text is held, so that no other has its id
        self.held += 16 * spelling.length + 400
        return spelling

    @cython.cfunc
    def _closing(self, plan: object) -> Spelling:
        """Return the spelling of a completion; its places end where a shared text begins."""
        if plan.right is None:
            return self._spelled(self._codes(plan.pieces()), self.nothing)
        return self._spelled(self._codes(plan.left.pieces()), self._tail(plan.right))

    @cython.cfunc
    @cython.exceptval(-9, check=False)
    def _cost(self, state: cython.int) -> cython.int:
        """Return the number of tokens that complete a text in a state; `UNSURE` if that depends on more than it."""
        known = self.costs.get(state)
        if known is not None:
            return known
        plan = self.program.plan(state)
        found: cython.int = UNSURE
        if not plan.is_certain:
            head = self._head(state, plan)
            if head is not None:
                self.heads[state] = head
        if plan.is_certain or state in self.heads:
            found = 0 if plan.length == 0 else self._closing(plan).least[0]
        self.costs[state] = found
        return found

    @cython.cfunc
    def _head(self, state: cython.int, plan: object) -> object:
        """Return the bytes of a completion up to the only place in it that depends on the text, if this is the end of a
        name that was begun, and forbids nothing but a repeated one; else None."""
        automaton: Automaton = self.automaton
        data = joined(plan.pieces())[0]
        if not isinstance(data, bytes):
            return None
        reached: cython.int = automaton.advance(state, data)
        if reached >= encoding.REFUSED:
            return None
        size: cython.int = encoding.OPENED - reached
        if 0x22 in data[:size]:  # a name of its own
            return None
        before: cython.int = automaton.advance(state, data[:size], False)
        then: cython.int = self._beyond(automaton.step(before, data[size]))
        if then < 0:
            return None
        rest = self.program.plan(then)
        return data[: size + 1] if rest.is_certain and rest.length == plan.length - size - 1 else None

    @cython.cfunc
    @cython.exceptval(-9, check=False)
    def _beyond(self, state: cython.int) -> cython.int:
        """Return the state behind the name that ends at an open state, if it is no repeated one; `REFUSED` if that is
        not all that the text decides. All such places forbid the same names (`unless_repeated`)."""
        automaton: Automaton = self.automaton
        while state >= 0:
            threads: list = automaton.open_threads(state)
            if not threads:
                break
            if len(threads) < automaton.state_count[state] or automaton.state_accepts[state]:
                return encoding.REFUSED
            replaced: dict = {}
            for atom, rest in threads:
                node, names_only = self.program.static(atom, rest)
                if not names_only:
                    return encoding.REFUSED
                replaced[atom, rest] = node
            state = automaton.resolve(state, replaced)
        return state

    @cython.cfunc
    @cython.exceptval(-9, check=False)
    def _after(self, state: cython.int, data: bytes) -> cython.int:
        """Return the state after some bytes, as if no name were a repeated one; `REFUSED` if the text decides more."""
        automaton: Automaton = self.automaton
        result: cython.int = automaton.advance(state, data)
        size: cython.int
        while result < encoding.REFUSED:
            size = encoding.OPENED - result
            state = self._beyond(automaton.step(automaton.advance(state, data[:size], False), data[size]))
            if state < 0:
                return encoding.REFUSED
            data = data[size + 1 :]
            result = automaton.advance(state, data) if data else automaton.cut(state)
        return result

    # -- tokens by cost ----------------------------------------------------------------------------------------

    @cython.cfunc
    def _alike_atom(self, atom: cython.longlong) -> cython.longlong:
        """Return, for a position in a counted string, the same one for all that need as many characters more.

        The bound on its length is left out: it forbids tokens, but changes no cost of the others.
        """
        automaton: Automaton = self.automaton
        number: cython.int = cython.cast(cython.int, (atom >> 40) & 0xFFFFF)
        needed: cython.longlong = automaton.least[number] - ((atom >> 8) & encoding.UNBOUNDED)
        if needed < 0:
            needed = 0
        twin = self.alike.get(needed)
        if twin is None:
            twin = self.alike[needed] = automaton.count(needed, -1)
        return cython.cast(cython.longlong, twin) | (atom & 0xFF)

    @cython.cfunc
    @cython.exceptval(-9, check=False)
    def _state_of(self, atom: cython.longlong, rest: cython.int) -> cython.int:
        """Return the state of one thread."""
        automaton: Automaton = self.automaton
        automaton.next_count = 0
        automaton.next_accepts = False
        automaton._push(atom, rest)
        return automaton._intern()

    @cython.cfunc
    def _arrive(self, depth: cython.int, state: cython.int) -> object:
        """Note the state at the present node: one thread by itself is quicker to follow."""
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
                    self.at_atom[depth] = self._alike_atom(automaton.thread_atom[at])
        return None

    @cython.cfunc
    @cython.exceptval(-9, check=False)
    def _class_at(self, depth: cython.int) -> cython.int:
        """Return the number of the class of tokens that end at the present node."""
        if self.at_class[depth] < 0:
            atom: cython.longlong = self.at_atom[depth]
            if self.at_state[depth] >= 0:
                key = self.at_state[depth]
            else:
                if (atom >> encoding.TAG) == encoding.COUNTED:
                    atom = self._alike_atom(atom)
                key = (atom, self.at_rest[depth])
            number = self.classes.get(key)
            if number is None:
                number = self.classes[key] = len(self.classes)
            self.at_class[depth] = number
        return self.at_class[depth]

    @cython.cfunc
    def _note(self, begin: cython.int, stop: cython.int, number: cython.int) -> object:
        """Note the class of the tokens from one index of the trie's order to another."""
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
        """Note the classes of all text tokens that a state allows: those of a class lead to one state, or to states
        with the same completion."""
        trie: Trie = self.trie
        automaton: Automaton = self.automaton
        subtrees: Subtrees = self.subtrees
        i: cython.int = 1
        stop: cython.int
        depth: cython.int
        byte: cython.int
        atom: cython.longlong
        then: cython.longlong
        row: cython.int
        self.classes = {None: 0}  # the tokens that reach a place that depends on the text
        self.span_count = 0
        self._arrive(0, state)
        while i < trie.nodes:
            depth = trie.depth[i]
            stop = i + trie.size[i]
            byte = trie.byte[i]
            try:
                if self.at_state[depth - 1] < 0:
                    atom = self.at_atom[depth - 1]
                    then = automaton.after(atom, byte)
                    if then < 0:
                        i = stop
                        continue
                    if not automaton.may_end(then) and then != encoding.DONE:
                        self.at_state[depth] = -1
                        self.at_atom[depth] = then
                        self.at_rest[depth] = self.at_rest[depth - 1]
                        self.at_class[depth] = self.at_class[depth - 1] if then == atom else -1
                        if stop - i > SOME and (then >> encoding.TAG) == encoding.ROW:
                            row = cython.cast(cython.int, then)
                            if trie.below[i] & subtrees.left_by(row) == 0:
                                self._note(trie.first[i], trie.first[stop], self._class_at(depth))
                                i = stop
                                continue
                        elif (
                            then == atom
                            and (then >> encoding.TAG) == encoding.COUNTED
                            and (then & 0xFF) == encoding.LOCAL_BODY
                            and trie.below[i] & MARKS == 0
                        ):  # nothing is counted any more, and all below are characters
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
                then = automaton._intern()
                if automaton.is_open:
                    then = self._beyond(cython.cast(cython.int, then))
                if then >= 0:
                    self._arrive(depth, cython.cast(cython.int, then))
                    if trie.first[i + 1] > trie.first[i]:
                        self._note(trie.first[i], trie.first[i + 1], self._class_at(depth))
                    i += 1
                    continue
            except LimitError:
                pass
            self._note(trie.first[i], trie.first[stop], 0)
            i = stop
        return None

    @cython.cfunc
    def _build(self, state: cython.int) -> Costs:
        """Find the costs of the tokens of a state."""
        automaton: Automaton = self.automaton
        order: cython.int[::1] = self.trie.order
        found: Costs = Costs.__new__(Costs)
        i: cython.int
        j: cython.int
        level: cython.int
        here: cython.int
        self._walk(state)
        # Where each class leads, and what it costs from there.
        keys: list = list(self.classes)
        states: cython.int[::1] = grown(None, "i", len(keys))
        costs: cython.int[::1] = grown(None, "i", len(keys))
        states[0] = -1
        costs[0] = UNSURE
        for i in range(1, len(keys)):
            costs[i] = UNSURE
            try:
                key = keys[i]
                here = self._state_of(key[0], key[1]) if isinstance(key, tuple) else automaton.cut(key)
                states[i] = here
                costs[i] = self._cost(here)
            except LimitError:
                states[i] = -1
        sizes: dict = {}
        for i in range(0, self.span_count, 3):
            j = costs[self.span[i + 2]]
            sizes[j] = sizes.get(j, 0) + self.span[i + 1] - self.span[i]
        # Control tokens, and the end.
        alone: list = [(token, 0, state) for token in self.finals] if automaton.state_accepts[state] else []
        for atom, _ in automaton.threads(state):
            if (atom >> encoding.TAG) == encoding.SPECIAL:
                token = self.special.get(self.program.specials[atom & 0xFFFFFFFF])
                if token is not None:
                    here = automaton.advance_special(state, atom & 0xFFFFFFFF)
                    alone.append((token, self._cost(here), here))
        for _, cost, _ in alone:
            sizes[cost] = sizes.get(cost, 0) + 1
        unsure_count = sizes.pop(UNSURE, 0)
        levels: list = sorted(sizes)
        found.levels = len(levels)
        found.longest = max(levels, default=0)
        found.cost = array("i", [*levels, NEVER])
        found.rest = levels.index(max(levels, key=sizes.__getitem__)) if levels else 0
        found.at = grown(None, "i", len(levels) + 1)
        found.dense = [None] * len(levels)
        place: cython.int[::1] = grown(None, "i", len(levels) + 1)
        size: cython.int = 0
        found.size = 400
        for level in range(found.levels):
            found.at[level] = place[level] = size
            if level != found.rest and sizes[levels[level]] > self.words:
                found.dense[level] = array("I", [0]) * self.words
                found.size += 4 * self.words
            elif level != found.rest:
                size += sizes[levels[level]]
        found.at[found.levels] = size
        found.ids = grown(None, "i", max(1, size))
        found.size += 4 * size + 8 * found.levels + 16 * unsure_count
        numbers: dict = {cost: level for level, cost in enumerate(levels)}
        level_of: cython.int[::1] = array("i", [numbers.get(cost, -1) for cost in costs])
        bits: cython.uint[::1]
        unsure: cython.longlong[::1] = grown(None, "q", max(1, unsure_count))
        leads: cython.longlong[::1] = grown(None, "q", max(1, unsure_count))
        here = 0
        for i in range(0, self.span_count, 3):
            level = level_of[self.span[i + 2]]
            if level == found.rest:
                continue
            if level < 0:
                for j in range(self.span[i], self.span[i + 1]):
                    unsure[here] = order[j]
                    leads[here] = states[self.span[i + 2]]
                    here += 1
            elif found.dense[level] is not None:
                bits = found.dense[level]
                for j in range(self.span[i], self.span[i + 1]):
                    bits[order[j] >> 5] |= cython.cast(cython.uint, 1) << (order[j] & 31)
            else:
                for j in range(self.span[i], self.span[i + 1]):
                    found.ids[place[level]] = order[j]
                    place[level] += 1
        for token, cost, then in alone:
            level = numbers.get(cost, -1)
            if level < 0:
                unsure[here] = token
                leads[here] = then
                here += 1
            elif level != found.rest:
                if found.dense[level] is not None:
                    found.dense[level][token >> 5] |= 1 << (token & 31)
                else:
                    found.ids[place[level]] = token
                    place[level] += 1
        ranks = np.argsort(np.asarray(leads)[:unsure_count], kind="stable")  # equal states side by side
        found.unsure_count = unsure_count
        found.unsure_ids = np.asarray(unsure)[ranks]
        found.unsure_states = np.asarray(leads)[ranks]
        found.least = self._cost(state)
        found.own = self.heads.get(state)
        heads: set = {self.heads[state] for state in states if state in self.heads}
        found.heads = list(heads)
        found.is_named = len(heads) > 0 or found.own is not None
        found.escaped = []
        found.opened = {}
        if heads:
            marks: cython.ulonglong[::1] = self.trie.marks
            for i in range(0, self.span_count, 3):
                if states[self.span[i + 2]] in self.heads:
                    for j in range(self.span[i], self.span[i + 1]):
                        if marks[j] & BACKSLASH:
                            found.escaped.append(order[j])
                        elif marks[j] & QUOTE:
                            data: bytes = self.tokens[order[j]]
                            found.opened.setdefault(data[data.rindex(b'"') :], []).append(order[j])
            found.size += 40 * len(found.escaped) + 200 * len(found.opened)
        found.is_steady = self._is_steady(state, found)
        return found

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _is_steady(self, state: cython.int, found: Costs) -> cython.bint:
        """Return True if the first token of the completion of a state leads to a completion of one token less."""
        if found.least <= 0 or found.least >= NEVER:
            return found.least == 0
        automaton: Automaton = self.automaton
        spelling: Spelling = self._closing(self.program.plan(state))
        if spelling.length == 0:
            return False
        then: cython.int = encoding.REFUSED
        if spelling.codes[0] < CONTROL:
            then = self._after(state, self.tokens[spelling.token[0]])
        else:
            for number, name in enumerate(self.program.specials):
                if self.special.get(name) == spelling.token[0]:
                    then = automaton.advance_special(state, number)
        if then < 0:
            return False
        left: cython.int = self._cost(then)
        return 0 <= left < found.least

    @cython.cfunc
    def of(self, state: cython.int) -> Costs:
        """Return the costs of the tokens of a state; the caller holds the lock."""
        found = self.known.get(state)
        if found is not None:
            return found
        if self.held > MAX_BYTES or len(self.costs) > 65_536:
            self.clear_all()
        automaton: Automaton = self.automaton
        like: cython.int = state
        costs: Costs
        if automaton.state_count[automaton.own(state)] == 1 and not automaton.state_accepts[state]:
            atom: cython.longlong = automaton.thread_atom[automaton.state_at[state]]
            if (atom >> encoding.TAG) == encoding.COUNTED:
                like = self._state_of(self._alike_atom(atom), automaton.thread_rest[automaton.state_at[state]])
        costs = self.known.get(like)
        if costs is None:
            costs = self._build(like)
            self.known[like] = costs
            self.held += costs.size
        self.known[state] = costs
        return costs

    @cython.cfunc
    def known_of(self, state: cython.int) -> Costs:
        """Return the costs of a state, if they are known; needs no lock."""
        return self.known.get(state)

    @cython.cfunc
    @cython.exceptval(check=False)
    def clear(self, costs: Costs, row: cython.uint[::1], room: cython.int) -> cython.int:
        """Clear in a mask the tokens that cost as much as a room, or more; return 0 if none of them was set, 1 if one
        was, and 2 if more were.

        Those that are `UNSURE` are left as they are. Nothing can interrupt it if this is compiled.
        """
        level: cython.int
        i: cython.int
        token: cython.int
        cleared: cython.int = 0
        lost: cython.uint
        bits: cython.uint[::1]
        words: cython.int = self.words
        if costs.longest < room:
            return 0
        if costs.cost[costs.rest] < room:  # the many fit
            level = costs.levels - 1
            while costs.cost[level] >= room:
                if costs.dense[level] is not None:
                    bits = costs.dense[level]
                    for i in range(words):
                        lost = row[i] & bits[i]
                        if lost:
                            cleared += 1 if lost & (lost - 1) == 0 else 2
                            row[i] ^= lost
                for i in range(costs.at[level], costs.at[level + 1]):
                    token = costs.ids[i]
                    if row[token >> 5] >> (token & 31) & 1:
                        cleared += 1
                        row[token >> 5] ^= cython.cast(cython.uint, 1) << (token & 31)
                level -= 1
            return min(cleared, 2)
        kept: cython.uint[::1] = self.kept
        for i in range(words):
            kept[i] = 0
        level = 0
        while costs.cost[level] < room:
            if costs.dense[level] is not None:
                bits = costs.dense[level]
                for i in range(words):
                    kept[i] |= bits[i]
            for i in range(costs.at[level], costs.at[level + 1]):
                token = costs.ids[i]
                kept[token >> 5] |= cython.cast(cython.uint, 1) << (token & 31)
            level += 1
        for i in range(costs.unsure_count):
            token = cython.cast(cython.int, costs.unsure_ids[i])
            kept[token >> 5] |= cython.cast(cython.uint, 1) << (token & 31)
        for i in range(words):
            lost = row[i] ^ (row[i] & kept[i])
            if lost:
                cleared += 1 if lost & (lost - 1) == 0 else 2
                row[i] ^= lost
        return min(cleared, 2)

    @cython.cfunc
    def doubtful(self, costs: Costs, endings: list, names: list) -> list:
        """Return the tokens that may cost more than is said, since they may lead to a repeated name.

        Args:
            costs: of the state.
            endings: what would make the present name a repeated one (see `Written.endings`).
            names: those that the next name must not repeat, as they are spelled.
        """
        found: list = []
        i: cython.int
        node: cython.int
        for head in costs.heads:
            for ending in endings:
                if len(ending) > len(head) and ending.endswith(head):
                    node = self.trie.find(ending[: len(ending) - len(head)])
                    if node > 0:
                        for i in range(self.trie.first[node], self.trie.first[node + 1]):
                            found.append(self.trie.order[i])
            for name in names:
                if name.endswith(head):
                    found += costs.opened.get(name[: len(name) - len(head)], ())
        return found + costs.escaped

    def unsure(self, costs: Costs, row: npt.NDArray[np.uint32]) -> npt.NDArray[np.int64]:
        """Return the `UNSURE` tokens that are set in a mask."""
        ids = np.asarray(costs.unsure_ids)[: costs.unsure_count]
        return ids[(row[ids >> 5] >> (ids & 31).astype(np.uint32) & 1).astype(bool)]

    @cython.cfunc
    def unsure_groups(self, costs: Costs, row: cython.uint[::1]) -> list:
        """Return, for each state that an `UNSURE` token leads to, the state and one such token that is set in a mask;
        -1 is the state of all those whose state the text decides."""
        found: list = []
        i: cython.int = 0
        token: cython.int
        state: cython.longlong
        while i < costs.unsure_count:
            state = costs.unsure_states[i]
            token = cython.cast(cython.int, costs.unsure_ids[i])
            i += 1
            if row[token >> 5] >> (token & 31) & 1:
                found.append((state, token))
                while i < costs.unsure_count and costs.unsure_states[i] == state:
                    i += 1
        return found

    @cython.cfunc
    def clear_unsure(self, costs: Costs, row: cython.uint[::1]) -> object:
        """Clear the `UNSURE` tokens in a mask."""
        i: cython.int
        token: cython.int
        for i in range(costs.unsure_count):
            token = cython.cast(cython.int, costs.unsure_ids[i])
            if row[token >> 5] >> (token & 31) & 1:
                row[token >> 5] ^= cython.cast(cython.uint, 1) << (token & 31)
        return None
