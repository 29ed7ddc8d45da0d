# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False, cdivision=True
"""Trie walk: the tokens that an automaton can read, across the ends of atoms and DYNAMIC places.

Compiled where that is possible; ``trie_walk.pxd`` says what others see of it in C.
"""

from __future__ import annotations

from heapq import heappop, heappush

try:
    import cython
except ImportError:  # interpreted, without Cython installed
    from ..compiled import standin as cython  # type: ignore[no-redef]

if not cython.compiled:  # else they are declared
    from ..automaton import encoding
    from ..automaton.states import Automaton
    from ..compiled.memory import free, ints, longs, more
    from .token_set import TokenSet
    from .trie import Trie


#: Length of an entry of the list of places from which the walk goes on (see `_push`).
_PLACE = cython.declare(cython.int, 5)

#: Number of places from which the walk goes on as they come; then it goes in the order of the trie.
_MANY = cython.declare(cython.int, 10_000)


@cython.cclass
class TrieWalk:
    """Walk of a vocabulary's trie along an automaton: emits the tokens whose bytes can follow.

    A token may cross as many atoms as it has bytes, so the places to go on from are kept in a list (``todo``), not on
    the call stack. Behind a DYNAMIC place, a token is emitted as if the place allowed everything, and noted in
    ``unsure`` or ``named`` if the text so far may forbid it (see `Mask`): ``crossed`` is the weight of the DYNAMIC
    places that the walk is behind (1 for one whose tokens ``watched`` covers, else 2), and ``grave`` the number of
    those that may forbid more than a repeated name.

    Args:
        automaton: the automaton.
        trie: the vocabulary's trie.
    """

    def __init__(self, automaton: Automaton, trie: Trie):
        self.automaton = automaton
        self.trie = trie
        self.out_room, self.out = 256, ints(256)
        self.stack = longs(trie.longest + 2)
        self.todo_room, self.todo = 64 * _PLACE, longs(64 * _PLACE)
        self.unsure = set()
        self.named = set()
        self.statics = {}
        self.visited = 0
        self.todo_count = 0
        self.begin()

    def __dealloc__(self):
        free(self.out)
        free(self.stack)
        free(self.todo)

    @cython.cfunc
    def begin(self) -> object:
        """Begin a new walk: forget the tokens of the last."""
        self.out_count = 0
        self.todo_count = 0  # an error may have left some
        if self.unsure or self.named:
            self.unsure, self.named = set(), set()
        self.watched = False
        self.crossed = 0
        self.grave = 0
        return None

    @cython.cfunc
    def emit(self, token: cython.int) -> object:
        """Emit a token, and those of the same bytes."""
        while token >= 0:
            self.emit_one(token)
            token = self.trie.same[token]
        return None

    @cython.cfunc
    def _emit_at(self, node: cython.int) -> object:
        """Emit the tokens that end at a trie node: from ``order``, whose neighbours are met one after the other."""
        i: cython.int
        for i in range(self.trie.first[node], self.trie.first[node + 1]):
            self.emit_one(self.trie.order[i])
        return None

    @cython.cfunc
    def emit_one(self, token: cython.int) -> object:
        """Emit one token."""
        if self.crossed > 1:
            (self.unsure if self.grave else self.named).add(token)
        if self.out_count == self.out_room:
            self.out = more(self.out, self.out_room, 2 * self.out_room)
            self.out_room *= 2
        self.out[self.out_count] = token
        self.out_count += 1
        return None

    @cython.cfunc
    def emit_all(self, begin: cython.int, stop: cython.int) -> object:
        """Emit the tokens from index ``begin`` to ``stop`` in the trie's order."""
        i: cython.int
        if self.out_count + stop - begin > self.out_room:
            room: cython.int = 2 * (self.out_count + stop - begin)
            self.out = more(self.out, self.out_room, room)
            self.out_room = room
        for i in range(begin, stop):
            self.out[self.out_count + i - begin] = self.trie.order[i]
        self.out_count += stop - begin
        return None

    @cython.cfunc
    def _cross(self, node: cython.int, rest: cython.int) -> object:
        """Emit the tokens below trie ``node`` that go on with ``rest``."""
        automaton: Automaton = self.automaton
        # Also where no token goes on: a token that ends here is in doubt if what follows begins with a DYNAMIC place.
        automaton.need_heads(rest)
        if self.trie.size[node] == 1 and not automaton.node_null[rest] & 2:
            return None
        at: cython.int = automaton.head_at[rest]
        i: cython.int
        for i in range(at, at + automaton.head_count[rest]):
            self._push(node, automaton.head_atom[i], automaton.head_rest[i])
        return None

    @cython.cfunc
    def _push(self, node: cython.int, atom: cython.longlong, rest: cython.int) -> object:
        """Note a place to go on from: below trie ``node`` with ``atom rest``, behind the same DYNAMIC places as now."""
        at: cython.int = self.todo_count
        if at + _PLACE > self.todo_room:
            self.todo = more(self.todo, self.todo_room, 2 * self.todo_room)
            self.todo_room *= 2
        self.todo[at] = node
        self.todo[at + 1] = atom
        self.todo[at + 2] = rest
        self.todo[at + 3] = self.crossed
        self.todo[at + 4] = self.grave
        self.todo_count = at + _PLACE
        return None

    @cython.cfunc
    def _drain(self) -> object:
        """Go on from all noted places."""
        crossed: cython.int = self.crossed
        grave: cython.int = self.grave
        at: cython.int
        left: cython.int = _MANY
        while self.todo_count > 0:
            left -= 1
            if left == 0:
                self._drain_in_order()
                break
            at = self.todo_count - _PLACE
            self.todo_count = at
            self.crossed = cython.cast(cython.int, self.todo[at + 3])
            self.grave = cython.cast(cython.int, self.todo[at + 4])
            node: cython.int = cython.cast(cython.int, self.todo[at])
            rest: cython.int = cython.cast(cython.int, self.todo[at + 2])
            self._step(node, self.todo[at + 1], rest)
        self.crossed = crossed
        self.grave = grave
        return None

    @cython.cfunc
    def _drain_in_order(self) -> object:
        """Go on from all noted places in the order of the trie, and join those that differ only in what follows: where
        a token can be read in many ways, their number doubles with each byte otherwise."""
        rests_of: dict = {}
        order: list = []
        at: cython.int
        while True:
            while self.todo_count > 0:
                at = self.todo_count - _PLACE
                self.todo_count = at
                place: tuple = (self.todo[at], self.todo[at + 1], self.todo[at + 3], self.todo[at + 4])
                if place not in rests_of:
                    rests_of[place] = []
                    heappush(order, place)
                rests_of[place].append(self.todo[at + 2])
            if not order:
                return None
            place = heappop(order)
            rests: list = rests_of.pop(place)
            self.crossed = place[2]
            self.grave = place[3]
            self._step(place[0], place[1], rests[0] if len(rests) == 1 else self.automaton.nodes.merged(rests))

    @cython.cfunc
    def _static(self, atom: cython.longlong, rest: cython.int) -> tuple:
        """Return, for a DYNAMIC place, the node of everything that it may allow, and its kind (see
        `node_kinds.AFTER_NAME`)."""
        found = self.statics.get((atom, rest))
        if found is None:
            found = self.statics[atom, rest] = self.automaton.source.static(atom & 0xFFFFFFFF, rest)
        return found

    @cython.cfunc
    def _doubt(self, node: cython.int, kind: cython.int, whole: cython.bint) -> object:
        """Note the tokens that end at a DYNAMIC place, if the place may forbid them and `watched` does not cover them.

        Args:
            node: the trie node of the tokens.
            kind: the kind of the place.
            whole: True if the tokens may hold the whole name.
        """
        i: cython.int
        # A whole name within one token cannot be watched for.
        if self.crossed > 0 or kind == 3 or (kind == 1 and whole):
            for i in range(self.trie.first[node], self.trie.first[node + 1]):
                (self.unsure if self.grave or kind != 1 else self.named).add(self.trie.order[i])
        return None

    @cython.cfunc
    def _walk_dynamic(self, node: cython.int, atom: cython.longlong, rest: cython.int) -> object:
        """Go on below trie ``node`` behind a DYNAMIC place, as if it allowed everything that it may allow."""
        beyond, kind = self._static(atom, rest)
        self._doubt(node, kind, True)
        grave: cython.int = 0 if kind == 1 else 1
        self.crossed += 2
        self.grave += grave
        self._cross(node, beyond)
        self.grave -= grave
        self.crossed -= 2
        return None

    @cython.cfunc
    def walk(self, node: cython.int, atom: cython.longlong, rest: cython.int) -> object:
        """Emit the tokens below trie ``node`` that go on with ``atom rest``."""
        self._step(node, atom, rest)
        self._drain()
        return None

    @cython.cfunc
    def _read_literal(self, node: cython.int, atom: cython.longlong, rest: cython.int) -> object:
        """Do `_step` in a literal: there is one path, and no need to look at siblings."""
        trie: Trie = self.trie
        automaton: Automaton = self.automaton
        byte: cython.int
        i: cython.int
        end: cython.int
        while trie.size[node] > 1:
            byte = automaton.pool[cython.cast(cython.int, atom & 0x7FFFFFFF)]
            if node == 0:
                i = trie.child[byte]
                if i < 0:
                    return None
            else:
                i = node + 1
                end = node + trie.size[node]
                while i < end and trie.byte[i] < byte:
                    i += trie.size[i]
                if i >= end or trie.byte[i] != byte:
                    return None
            atom = automaton.after(atom, byte)
            self._emit_at(i)
            if automaton.may_end(atom):
                self._cross(i, rest)
            if atom == encoding.DONE:
                return None
            node = i
        return None

    @cython.cfunc
    def _step(self, node: cython.int, atom: cython.longlong, rest: cython.int) -> object:
        """Do `walk` up to the end of the atom."""
        trie: Trie = self.trie
        automaton: Automaton = self.automaton
        tag: cython.longlong = atom >> encoding.TAG
        i: cython.int = node + 1
        end: cython.int = node + trie.size[node]
        if tag == encoding.SPECIAL:
            return None
        if tag == encoding.DYNAMIC:
            return self._walk_dynamic(node, atom, rest)
        if tag == encoding.LITERAL:
            return self._read_literal(node, atom, rest)
        base: cython.int = trie.depth[node]
        depth: cython.int
        then: cython.longlong
        while i < end:
            self.visited += 1
            depth = trie.depth[i]
            then = automaton.after(atom if depth == base + 1 else self.stack[depth - 1], trie.byte[i])
            if then < 0:
                i += trie.size[i]
                continue
            self._emit_at(i)
            if automaton.may_end(then):
                self._cross(i, rest)
                if then == encoding.DONE:
                    i += trie.size[i]
                    continue
            self.stack[depth] = then
            i += 1
        return None

    @cython.cfunc
    def _arrive(self, node: cython.int, atom: cython.longlong, rest: cython.int) -> object:
        """Emit the token of trie ``node``, which a walk has just read at ``atom``, and go on below."""
        if atom < 0:
            return None
        self._emit_at(node)
        if self.automaton.may_end(atom):
            self._cross(node, rest)
        if atom != encoding.DONE and self.trie.size[node] > 1:
            self._push(node, atom, rest)
        return None

    @cython.cfunc
    def cross_set(self, token_set: TokenSet, rest: cython.int) -> object:
        """Emit the tokens that cross the end of a token set's atom into ``rest``."""
        automaton: Automaton = self.automaton
        if token_set.end_count == 0:
            return None
        automaton.need_heads(rest)
        start: cython.int = automaton.head_at[rest]
        h: cython.int
        i: cython.int
        k: cython.int
        byte: cython.int
        only: cython.int
        groups: cython.int = token_set.exit_count
        first: cython.int = token_set.end_count + token_set.closing_count
        atom: cython.longlong
        then: cython.longlong
        for h in range(start, start + automaton.head_count[rest]):
            atom = automaton.head_atom[h]
            only = -1
            if (atom >> encoding.TAG) == encoding.SPECIAL:
                continue
            if (atom >> encoding.TAG) == encoding.DYNAMIC:
                self._cross_set_dynamic(token_set, atom, automaton.head_rest[h])
                continue
            if (atom >> encoding.TAG) == encoding.LITERAL:
                only = automaton.pool[cython.cast(cython.int, atom & 0x7FFFFFFF)]
            for k in range(first, first + groups):
                byte = token_set.parts[k]
                if only >= 0 and byte != only:
                    continue
                then = automaton.after(atom, byte)
                if then < 0:
                    continue
                for i in range(token_set.parts[k + groups], token_set.parts[k + groups + 1]):
                    self._arrive(token_set.parts[i], then, automaton.head_rest[h])
        self._drain()
        return None

    @cython.cfunc
    def _cross_set_dynamic(self, token_set: TokenSet, atom: cython.longlong, rest: cython.int) -> object:
        """Do `cross_set` for a DYNAMIC place."""
        beyond, kind = self._static(atom, rest)
        i: cython.int
        if self.crossed > 0 or kind == 3:
            for i in range(token_set.end_count):
                self._doubt(token_set.parts[i], kind, False)
        weight: cython.int = 1 if kind == 1 else 2
        if kind == 1:
            self.watched = True
        self.crossed += weight
        self.grave += weight - 1
        self.cross_set(token_set, beyond)
        self.grave -= weight - 1
        self.crossed -= weight
        return None
