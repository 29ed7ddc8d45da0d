# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False, cdivision=True
"""Trie walk: the tokens below a trie node that an automaton reads, across the ends of atoms and dependent nodes.

An ``atom`` is a position inside one, an integer (see ``automaton/encoding.py``); ``rest`` is the node of the text after
it. Compiled where that is possible; ``trie_walk.pxd`` declares the C interface, and says what the fields hold.
"""

from __future__ import annotations

from heapq import heappop, heappush

from ..language.node_kinds import ALL, REPEATED_NAMES, RIVALS

try:
    import cython
except ImportError:  # interpreted, without Cython installed
    from ..compiled import standin as cython  # type: ignore[no-redef]

if not cython.compiled:  # else they are declared
    from ..automaton import encoding
    from ..automaton.states import Automaton
    from ..compiled.memory import free, ints, longs, more
    from ..language import node_kinds
    from ..language.node_store import cell
    from ..language.nodes import Nodes
    from .token_set import TokenSet
    from .trie import Trie


#: Number of integers in an entry of the work list: a trie node, an atom, the node after the atom, and the values of
#: ``crossed`` and ``unnamed`` there.
_ENTRY = cython.declare(cython.int, 5)

#: Number of entries after which the work list is processed in trie order instead of last in, first out.
_MANY = cython.declare(cython.int, 10_000)

#: Maximum number of words that are walked one by one; a trie is walked beside more of them.
_FEW_WORDS = cython.declare(cython.int, 8)

#: What a dependent node adds to ``crossed`` while the walk is beyond its end. The text may forbid a token that goes
#: beyond such a node, so from `_NOTED` on, each token is recorded (``unsure`` or ``named``). A name that was begun
#: before the token adds only `_COVERED`: if nothing else was crossed, the tokens that complete a repeated name are
#: found from the text instead (`Doubts.watched`), and need no record; so are those that give a member the string of a
#: rival (`Doubts.deciding`).
_COVERED = cython.declare(cython.int, 1)
_NOTED = cython.declare(cython.int, 2)

#: See `node_kinds`.
_REPEATED_NAMES = cython.declare(cython.int, REPEATED_NAMES)
_ALL = cython.declare(cython.int, ALL)
_RIVALS = cython.declare(cython.int, RIVALS)


@cython.cclass
class TrieWalk:
    """Walk of a vocabulary's trie along an automaton, which emits the tokens that may follow.

    A token may cross as many atoms as it has bytes, so pending entries are in a work list (``todo``), not on the call
    stack. After a dependent node, tokens are emitted as if the node allowed all of its static language, and recorded in
    ``unsure`` or ``named`` if the text so far may forbid them (see `Doubts`). ``crossed`` is the sum of the weights of
    the crossed dependent nodes, and ``unnamed`` the number of those that forbid more than a repeated name.

    Args:
        automaton: the automaton.
        trie: the vocabulary's trie.
    """

    def __init__(self, automaton: Automaton, trie: Trie):
        self.automaton = automaton
        self.trie = trie
        self.out_room, self.out = 256, ints(256)
        self.stack = longs(trie.longest + 2)
        self.todo_room, self.todo = 64 * _ENTRY, longs(64 * _ENTRY)
        self.unsure = set()
        self.named = set()
        self.deciding = []
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
        """Begin a new walk, without the tokens of the last."""
        self.out_count = 0
        self.todo_count = 0  # not empty after an error
        if self.unsure or self.named:
            self.unsure, self.named = set(), set()
        if self.deciding:
            self.deciding = []
        self.watched = False
        self.crossed = 0
        self.unnamed = 0
        return None

    @cython.cfunc
    def emit(self, token: cython.int) -> object:
        """Emit a token, and all tokens of the same bytes."""
        while token >= 0:
            self.emit_one(token)
            token = self.trie.same[token]
        return None

    @cython.cfunc
    def _emit_at(self, node: cython.int) -> object:
        """Emit the tokens that end at a trie node (from ``order``, for locality)."""
        i: cython.int
        for i in range(self.trie.first[node], self.trie.first[node + 1]):
            self.emit_one(self.trie.order[i])
        return None

    @cython.cfunc
    def emit_one(self, token: cython.int) -> object:
        """Emit one token."""
        if self.crossed >= _NOTED:
            (self.unsure if self.unnamed else self.named).add(token)
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
        """Emit the tokens below a trie node that continue with ``rest``."""
        automaton: Automaton = self.automaton
        nodes: Nodes = automaton.nodes
        # Of many words, the tokens below a node begin few: heads are only made for what follows these, unless all were
        # made before.
        if node and cell(nodes, rest, node_kinds.KIND) == node_kinds.WORDS and not automaton.knows_heads(rest):
            first: cython.int = cell(nodes, rest, node_kinds.A)
            end: cython.int = cell(nodes, rest, node_kinds.B)
            if end - first > _FEW_WORDS:
                return self._read_words(node, first, end, cell(nodes, rest, node_kinds.C))
        # Also without children: a token that ends here is in doubt if a dependent node follows.
        automaton.need_heads(rest)
        if self.trie.size[node] == 1 and not automaton.node_null[rest] & 2:  # 2: it may begin with a dependent node
            return None
        at: cython.int = automaton.head_at[rest]
        i: cython.int
        for i in range(at, at + automaton.head_count[rest]):
            self._push(node, automaton.head_atom[i], automaton.head_rest[i])
        return None

    @cython.cfunc
    def _read_words(self, node: cython.int, first: cython.int, end: cython.int, depth: cython.int) -> object:
        """Emit the tokens below a trie node that continue with some words of a WORDS node, from ``depth`` on.

        Words and trie are both sorted, so the work is their common prefixes. Nodes and positions are only made for what
        follows a whole word: most of what a token may begin is never written.
        """
        trie: Trie = self.trie
        nodes: Nodes = self.automaton.nodes
        if nodes._is_whole(first, depth):
            self._cross(node, nodes._follows[first])
            first += 1
        i: cython.int = node + 1
        stop: cython.int = node + trie.size[node]
        high: cython.int
        follow: cython.int
        byte: cython.int
        word: bytes
        while i < stop and first < end:
            word = nodes._words[first]
            byte = word[depth]
            if trie.byte[i] < byte:
                i += trie.size[i]
            elif trie.byte[i] > byte:
                first = nodes._words_before(first, end, depth, trie.byte[i])
            else:
                high = nodes._words_before(first, end, depth, byte + 1)
                follow = first
                while follow < high and nodes._answer(nodes._follows[follow], node_kinds.HAS_TEXT) == node_kinds.NO:
                    follow += 1
                if follow < high:  # else no word can be completed
                    self._emit_at(i)
                    self._read_words(i, first, high, depth + 1)
                first = high
                i += trie.size[i]
        return None

    @cython.cfunc
    def _push(self, node: cython.int, atom: cython.longlong, rest: cython.int) -> object:
        """Add an entry to the work list: continue below a trie node with ``atom rest``, after the dependent nodes
        crossed so far."""
        at: cython.int = self.todo_count
        if at + _ENTRY > self.todo_room:
            self.todo = more(self.todo, self.todo_room, 2 * self.todo_room)
            self.todo_room *= 2
        self.todo[at] = node
        self.todo[at + 1] = atom
        self.todo[at + 2] = rest
        self.todo[at + 3] = self.crossed
        self.todo[at + 4] = self.unnamed
        self.todo_count = at + _ENTRY
        return None

    @cython.cfunc
    def _drain(self) -> object:
        """Process the work list until it is empty. If that takes more than `_MANY` steps, the rest is processed in trie
        order (`_drain_in_order`)."""
        crossed: cython.int = self.crossed
        unnamed: cython.int = self.unnamed
        at: cython.int
        left: cython.int = _MANY
        while self.todo_count > 0:
            left -= 1
            if left == 0:
                self._drain_in_order()
                break
            at = self.todo_count - _ENTRY
            self.todo_count = at
            self.crossed = cython.cast(cython.int, self.todo[at + 3])
            self.unnamed = cython.cast(cython.int, self.todo[at + 4])
            node: cython.int = cython.cast(cython.int, self.todo[at])
            rest: cython.int = cython.cast(cython.int, self.todo[at + 2])
            self._step(node, self.todo[at + 1], rest)
        self.crossed = crossed
        self.unnamed = unnamed
        return None

    @cython.cfunc
    def _drain_in_order(self) -> object:
        """Process the work list in trie order, and join entries that differ only in ``rest``. Without joining, the
        number of entries of an ambiguous grammar may double with each byte."""
        rests_of: dict = {}  # by node, atom, crossed and unnamed
        order: list = []  # a heap of its keys: trie order is that of the nodes
        at: cython.int
        while True:
            while self.todo_count > 0:
                at = self.todo_count - _ENTRY
                self.todo_count = at
                key: tuple = (self.todo[at], self.todo[at + 1], self.todo[at + 3], self.todo[at + 4])
                if key not in rests_of:
                    rests_of[key] = []
                    heappush(order, key)
                rests_of[key].append(self.todo[at + 2])
            if not order:
                return None
            node, atom, self.crossed, self.unnamed = key = heappop(order)
            rests: list = rests_of.pop(key)
            self._step(node, atom, rests[0] if len(rests) == 1 else self.automaton.nodes.merged(rests))

    @cython.cfunc
    def _static(self, atom: cython.longlong, rest: cython.int) -> tuple:
        """Return the static language of a dependent node, followed by ``rest``, as a node; and the continuations that
        the dependent node may forbid (see `node_kinds`)."""
        found = self.statics.get((atom, rest))
        if found is None:
            found = self.statics[atom, rest] = self.automaton.source.static(atom & encoding.PAYLOAD, rest)
        return found

    @cython.cfunc
    def _doubt(self, node: cython.int, forbids: cython.int, whole: cython.bint) -> object:
        """Record the tokens that end at a dependent node, if it may forbid them and they are not found from the text
        (`Doubts.watched`, `Doubts.deciding`), as the ends of names that were begun before the token are.

        Args:
            node: the trie node of the tokens.
            forbids: the continuations that the dependent node may forbid.
            whole: the tokens may have the whole name.
        """
        i: cython.int
        names_only: cython.bint = forbids == _REPEATED_NAMES
        if self.crossed > 0 or forbids == _ALL or (whole and (names_only or forbids == _RIVALS)):
            for i in range(self.trie.first[node], self.trie.first[node + 1]):
                (self.named if names_only and not self.unnamed else self.unsure).add(self.trie.order[i])
        return None

    @cython.cfunc
    def _walk_dependent(self, node: cython.int, atom: cython.longlong, rest: cython.int) -> object:
        """Continue below a trie node after a dependent node, as if it allowed all of its static language."""
        static, forbids = self._static(atom, rest)
        self._doubt(node, forbids, True)
        unnamed: cython.int = 0 if forbids == _REPEATED_NAMES else 1
        self.crossed += _NOTED
        self.unnamed += unnamed
        self._cross(node, static)
        self.unnamed -= unnamed
        self.crossed -= _NOTED
        return None

    @cython.cfunc
    def walk(self, node: cython.int, atom: cython.longlong, rest: cython.int) -> object:
        """Emit the tokens below a trie node that continue with ``atom rest``."""
        self._step(node, atom, rest)
        self._drain()
        return None

    @cython.cfunc
    def _read_literal(self, node: cython.int, atom: cython.longlong, rest: cython.int) -> object:
        """Do `_step` in a literal, which is a single path."""
        trie: Trie = self.trie
        automaton: Automaton = self.automaton
        byte: cython.int
        while trie.size[node] > 1:
            byte = automaton.pool[cython.cast(cython.int, atom & encoding.PAYLOAD)]
            node = trie.child_by(node, byte)
            if node < 0:
                return None
            atom = automaton.after(atom, byte)
            self._emit_at(node)
            if automaton.may_end(atom):
                self._cross(node, rest)
            if atom == encoding.DONE:
                return None
        return None

    @cython.cfunc
    def _step(self, node: cython.int, atom: cython.longlong, rest: cython.int) -> object:
        """Emit the tokens below a trie node that stay inside ``atom``; where it may end, add entries to the work list
        that continue with ``rest``."""
        trie: Trie = self.trie
        automaton: Automaton = self.automaton
        tag: cython.longlong = atom >> encoding.TAG
        i: cython.int = node + 1
        end: cython.int = node + trie.size[node]
        if tag == encoding.SPECIAL:
            return None
        if tag == encoding.DYNAMIC:
            return self._walk_dependent(node, atom, rest)
        if tag == encoding.LITERAL:
            return self._read_literal(node, atom, rest)
        base: cython.int = trie.depth[node]
        depth: cython.int
        target: cython.longlong
        while i < end:
            self.visited += 1
            depth = trie.depth[i]
            target = automaton.after(atom if depth == base + 1 else self.stack[depth - 1], trie.byte[i])
            if target < 0:
                i += trie.size[i]
                continue
            self._emit_at(i)
            if automaton.may_end(target):
                self._cross(i, rest)
                if target == encoding.DONE:
                    i += trie.size[i]
                    continue
            self.stack[depth] = target
            i += 1
        return None

    @cython.cfunc
    def _arrive(self, node: cython.int, atom: cython.longlong, rest: cython.int) -> object:
        """Emit the tokens at a trie node, after which the walk is at ``atom``, and continue below."""
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
        """Emit the tokens below E(q) of a token set that continue with ``rest``. The children of all nodes of E(q) are
        grouped by byte (`TokenSet.parts`), so each head of ``rest`` makes one transition for each byte, not for each
        node."""
        automaton: Automaton = self.automaton
        if token_set.end_count == 0:
            return None
        automaton.need_heads(rest)
        start: cython.int = automaton.head_at[rest]
        head: cython.int
        i: cython.int
        group: cython.int
        byte: cython.int
        only: cython.int  # the next byte of a literal; -1: another atom
        groups: cython.int = token_set.exit_count
        first: cython.int = token_set.end_count + token_set.closing_count
        atom: cython.longlong
        target: cython.longlong
        for head in range(start, start + automaton.head_count[rest]):
            atom = automaton.head_atom[head]
            only = -1
            if (atom >> encoding.TAG) == encoding.SPECIAL:
                continue
            if (atom >> encoding.TAG) == encoding.DYNAMIC:
                self._cross_set_dependent(token_set, atom, automaton.head_rest[head])
                continue
            if (atom >> encoding.TAG) == encoding.LITERAL:
                only = automaton.pool[cython.cast(cython.int, atom & encoding.PAYLOAD)]
            for group in range(first, first + groups):
                byte = token_set.parts[group]
                if only >= 0 and byte != only:
                    continue
                target = automaton.after(atom, byte)
                if target < 0:
                    continue
                for i in range(token_set.parts[group + groups], token_set.parts[group + groups + 1]):
                    self._arrive(token_set.parts[i], target, automaton.head_rest[head])
        self._drain()
        return None

    @cython.cfunc
    def _cross_set_dependent(self, token_set: TokenSet, atom: cython.longlong, rest: cython.int) -> object:
        """Do `cross_set` for a dependent node, by its static language, which bounds it for any text.

        Tokens that end where the node ends (the nodes of E(q), first in ``token_set.parts``) are recorded if the text
        may forbid them; tokens that go beyond are recorded by `emit_one`, as ``crossed`` says.
        """
        static, forbids = self._static(atom, rest)
        i: cython.int
        if self.crossed > 0 or forbids == _ALL:
            for i in range(token_set.end_count):
                self._doubt(token_set.parts[i], forbids, False)
        weight: cython.int = _NOTED
        unnamed: cython.int = 1
        if forbids == _REPEATED_NAMES or forbids == _RIVALS:
            weight = _COVERED
            unnamed = 0
            if forbids == _REPEATED_NAMES:
                self.watched = True
            else:
                _, distinct, _ = self.automaton.nodes.args(atom & encoding.PAYLOAD)
                self.deciding.append(distinct)
        self.crossed += weight
        self.unnamed += unnamed
        self.cross_set(token_set, static)
        self.unnamed -= unnamed
        self.crossed -= weight
        return None
