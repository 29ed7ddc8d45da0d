# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False, cdivision=True
"""Languages of *written* text: hash-consed grammar nodes over bytes, expanded lazily.

A node is a small integer; equal nodes are the same integer. ``node_kinds.py`` lists the kinds. A node is a row of one
array of integers, interned by a hash table; bytes, names and rules lie in one list.

Queries: `nullable`, `is_empty` (short-circuited) and `heads` (Antimirov's partial derivatives, in head normal form: the
atom with which a text may begin, and the node of the rest).

Compiled where that is possible (Cython in pure-Python mode). Walks from node to node use an explicit stack: grammars
may be thousands of levels deep."""

from __future__ import annotations

from ..basics.pauses import pause
from ..errors import GrammarError, LimitError
from .terms import MAX_TERMS

try:
    import cython
except ImportError:  # interpreted, without Cython installed
    from ..compiled import standin as cython  # type: ignore[no-redef]

if not cython.compiled:  # else they are declared
    from ..compiled.hashing import BASIS, mix
    from ..compiled.int_map import IntMap
    from ..compiled.memory import free, ints, longs, more
    from . import node_kinds
    from .terms import Terms

#: True if this module is compiled.
COMPILED: bool = bool(cython.compiled)

#: Minimum number of entries among which duplicates are found by hashing.
_MANY = cython.declare(cython.int, 16)

#: Minimum share of a store's terms with which a rule counts as too large, whatever others take.
_ITS_SHARE = 0.7

#: Maximum depth to which continuations are merged, and number of unions that are remembered.
_MAX_SHARED = cython.declare(cython.int, 200)
_MAX_MERGED = cython.declare(cython.int, 10_000)

#: Number of integers in a frame of a search.
_FRAME = cython.declare(cython.int, 5)

#: Maximum number of exceeded limits that are remembered.
_MAX_LIMITS = cython.declare(cython.int, 100)

#: One way a text may begin: an atomic node (LITERAL, TEXT, COUNTED, SPECIAL, DYNAMIC), then another node.
Head = tuple[int, int]


def _left_recursion() -> GrammarError:
    return GrammarError("a rule refers to itself without writing anything", hint="remove the circular reference")


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _cell(nodes: Nodes, node: cython.int, column: cython.int) -> cython.int:
    return nodes._cells[node * node_kinds.WIDTH + column]


@cython.cclass
class Nodes:
    """The hash-consing store of grammar nodes.

    Attributes:
        terms: the store of the terms used by TEXT nodes.
        is_shared: many grammars share the store.
        EMPTY: the empty language.
        EPSILON: the language of the empty text.
        known: nodes of the parts that many grammars share, by the parts.
        builders: the builders of nodes in this store, by what they build: equal parts of one grammar share their rules.
            They have a method ``release``, which breaks reference cycles.
        limits: the limits that texts met: what exceeds them is left out (a rule that does when it is expanded has no
            text).
        plenty: number of nodes above which they are scarce.
        weight: bytes that builders and their documents take (estimated by those who add them).
        met: number of nodes that searches met: a count of work.

    Args:
        terms: the store of terms; None: a new one.
        shared: many grammars will share the store: it may hold ``SHARED_ROOM`` more than one grammar may need.
    """

    def __init__(self, terms=None, *, shared=False):
        self.terms = Terms() if terms is None else terms
        self.is_shared = shared
        self._room = node_kinds.MAX_NODES + (node_kinds.SHARED_ROOM if shared else 0)
        self.terms.room += node_kinds.SHARED_ROOM if shared else 0
        self.known = {}
        self.builders = {}
        self.shorter = {}
        self._merged = {}
        self.limits = []
        self.weight = 0
        self.plenty = self._room
        self._cells_room, self._cells = 128, ints(node_kinds.WIDTH * 128)
        self._interned = IntMap()
        self._things = []
        self._literals = {}
        self._specials = {}
        self._rules = {}
        self._places = {}
        self._parts_room, self._parts = 128, ints(128)
        self._stack_room, self._stack = 64, ints(64)
        self._words_room, self._follows, self._sums = 64, ints(64), longs(65)
        self._words = []
        self._count = self._parts_used = self._top = 0
        self.EMPTY = self._new(node_kinds.EMPTY_KIND, 0, 0, 0)
        self.EPSILON = self._new(node_kinds.EPSILON_KIND, 0, 0, 0)
        self._learn(node_kinds.EMPTY, node_kinds.NO, node_kinds.NO)
        self._learn(node_kinds.EPSILON, node_kinds.YES, node_kinds.YES)
        self._opening = set()
        self._provisional = []
        self._groups = []
        self.met = 0
        self._heads_room, self._heads = 256, ints(256)
        self._heads_used = 1  # 0 is shared by all nodes without heads
        for node in (node_kinds.EMPTY, node_kinds.EPSILON):
            self._cells[node * node_kinds.WIDTH + node_kinds.HEADS] = 1

    def __dealloc__(self):
        free(self._cells)
        free(self._parts)
        free(self._stack)
        free(self._follows)
        free(self._sums)
        free(self._heads)

    def __len__(self):
        return self._count

    @property
    def is_scarce(self):
        """True if few nodes are left: alternatives that take many are to be left out."""
        return self._count > self.plenty

    def grow(self):
        """Let the store have as many more nodes and terms as it may have."""
        self._room += node_kinds.MAX_NODES
        self.terms.room += MAX_TERMS

    def hurry(self):
        """From now on, leave out what takes a long search to be known to have a text."""
        self.terms.is_hurried = True

    def clear(self):
        """Forget everything, which breaks the reference cycles between the store and its builders."""
        for builder in self.builders.values():
            builder.release()
        for held in (
            self.builders,
            self.shorter,
            self._merged,
            self.known,
            self._literals,
            self._specials,
            self._rules,
            self._places,
        ):
            held.clear()
        self._things.clear()
        self._words.clear()
        self._count = 0

    # -- the arrays --------------------------------------------------------------------------------------------

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _check(self, node: cython.int) -> cython.int:
        if node < 0 or node >= self._count:
            raise IndexError("no such node")
        return 0

    @cython.cfunc
    @cython.exceptval(check=False)
    def _learn(self, node: cython.int, has_text: cython.int, nullable: cython.int) -> cython.void:
        self._cells[node * node_kinds.WIDTH + node_kinds.HAS_TEXT] = has_text
        self._cells[node * node_kinds.WIDTH + node_kinds.NULLABLE] = nullable

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _push(self, value: cython.int) -> cython.int:
        if self._top == self._stack_room:
            self._stack = more(self._stack, self._top, 2 * self._top)
            self._stack_room = 2 * self._top
        self._stack[self._top] = value
        self._top += 1
        return 0

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _new(self, kind: cython.int, a: cython.int, b: cython.int, c: cython.int) -> cython.int:
        """Add a new node and return it."""
        node: cython.int = self._count
        if node >= self._room:
            raise LimitError(f"the grammar needs more than {node_kinds.MAX_NODES:,} states", hint="split the schema")
        if not node & 1023:
            pause()
        at: cython.int = node * node_kinds.WIDTH
        if node == self._cells_room:
            self._cells = more(self._cells, at, 2 * at)
            self._cells_room = 2 * node
        self._cells[at + node_kinds.KIND] = kind
        self._cells[at + node_kinds.A] = a
        self._cells[at + node_kinds.B] = b
        self._cells[at + node_kinds.C] = c
        if kind <= node_kinds.SPECIAL:
            self._cells[at + node_kinds.HAS_TEXT] = node_kinds.YES
        if kind <= node_kinds.DYNAMIC and kind != node_kinds.TEXT:
            # A dependent node is never skipped: the text so far decides.
            self._cells[at + node_kinds.NULLABLE] = node_kinds.NO
        self._count = node + 1
        return node

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _enter(
        self, kind: cython.int, a: cython.int, b: cython.int, c: cython.int, hashed: cython.ulonglong
    ) -> cython.int:
        """Add a new node that `_find` is to find, and return it."""
        node: cython.int = self._new(kind, a, b, c)
        self._interned.add(hashed | 1, node)
        return node

    @cython.cfunc
    @cython.exceptval(-2, check=False)
    def _find(
        self, kind: cython.int, a: cython.int, b: cython.int, c: cython.int, hashed: cython.ulonglong
    ) -> cython.int:
        """Return the node that is equal to this, or -1 (the parts of an ALT lie on the stack, from ``a`` on)."""
        slot: cython.int = self._interned.first(hashed | 1)
        node: cython.int
        at: cython.int
        one: cython.int
        two: cython.int
        three: cython.int
        while slot >= 0:
            node = self._interned.values[slot]
            at = node * node_kinds.WIDTH
            if self._cells[at + node_kinds.KIND] == kind:
                one = self._cells[at + node_kinds.A]
                two = self._cells[at + node_kinds.B]
                three = self._cells[at + node_kinds.C]
                if kind == node_kinds.ALT:
                    if self._same_parts(one, two, a, b):
                        return node
                elif kind == node_kinds.WORDS:
                    if three == c and self._same_words(one, two, a, b):
                        return node
                elif one == a and two == b and three == c:
                    return node
            slot = self._interned.after(slot)
        return -1

    @cython.cfunc
    @cython.exceptval(check=False)
    def _same_parts(self, at: cython.int, count: cython.int, start: cython.int, size: cython.int) -> cython.bint:
        i: cython.int
        if count != size:
            return False
        for i in range(count):
            if self._parts[at + i] != self._stack[start + i]:
                return False
        return True

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _same_words(self, one: cython.int, end: cython.int, other: cython.int, stop: cython.int) -> cython.int:
        i: cython.int
        if end - one != stop - other:
            return 0
        if one == other:
            return 1
        for i in range(end - one):
            if self._follows[one + i] != self._follows[other + i] or self._words[one + i] != self._words[other + i]:
                return 0
        return 1

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _make(self, kind: cython.int, a: cython.int, b: cython.int, c: cython.int) -> cython.int:
        """Return the node of a kind whose arguments are integers."""
        hashed: cython.ulonglong = mix(mix(mix(mix(BASIS, kind), a), b), c)
        node: cython.int = self._find(kind, a, b, c, hashed)
        return node if node >= 0 else self._enter(kind, a, b, c, hashed)

    # -- construction ------------------------------------------------------------------------------------------

    @cython.ccall
    @cython.exceptval(-1, check=False)
    def literal(self, data: bytes) -> cython.int:
        """Return the language of exactly ``data``."""
        return self._literal(data)

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _literal(self, data: bytes) -> cython.int:
        found = self._literals.get(data)
        if found is not None:
            return found
        if not data:
            return node_kinds.EPSILON
        node: cython.int = self._new(node_kinds.LITERAL, len(self._things), 0, 0)
        self._things.append(data)
        self._literals[data] = node
        return node

    @cython.cfunc
    def _bytes(self, node: cython.int) -> bytes:
        return self._things[_cell(self, node, node_kinds.A)]

    @cython.ccall
    @cython.exceptval(-1, check=False)
    def text(self, term: cython.int) -> cython.int:
        """Return the strings of ``term``, written as UTF-8."""
        if self.terms.is_empty(term):
            return node_kinds.EMPTY
        return node_kinds.EPSILON if term == self.terms.EPSILON else self._make(node_kinds.TEXT, term, 0, 0)

    @cython.ccall
    @cython.exceptval(-1, check=False)
    def json_string(self, term: cython.int) -> cython.int:
        """Return the JSON strings (quotes included, any escapes) whose decoded value is in ``term``."""
        bounds = self.terms.length_bounds(term)
        if bounds is not None and bounds != (0, None):
            return self.counted(*bounds)
        return node_kinds.EMPTY if self.terms.is_empty(term) else self._make(node_kinds.TEXT, term, 1, 0)

    def counted(self, least, most):
        """Return the JSON strings of between ``least`` and ``most`` characters."""
        if most is not None and least > most:
            return node_kinds.EMPTY
        endless = most is None or most > node_kinds.ENDLESS
        return self._make(node_kinds.COUNTED, 0, min(least, node_kinds.ENDLESS), -1 if endless else most)

    def special(self, name: str):
        """Return the control token called ``name``."""
        found = self._specials.get(name)
        if found is None:
            found = self._specials[name] = self._new(node_kinds.SPECIAL, len(self._things), 0, 0)
            self._things.append(name)
        return found

    @cython.ccall
    @cython.exceptval(-1, check=False)
    def seq(self, left: cython.int, right: cython.int) -> cython.int:
        """Return the concatenation of two nodes."""
        self._check(left)
        self._check(right)
        return self._seq(left, right)

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _seq(self, left: cython.int, right: cython.int) -> cython.int:
        if left == node_kinds.EMPTY or right == node_kinds.EMPTY:
            return node_kinds.EMPTY
        if left == node_kinds.EPSILON:
            return right
        if right == node_kinds.EPSILON:
            return left
        start: cython.int = self._top
        # Nested to the right, whatever the order in which parts come together.
        while _cell(self, left, node_kinds.KIND) == node_kinds.SEQ:
            self._push(_cell(self, left, node_kinds.A))
            left = _cell(self, left, node_kinds.B)
        try:
            right = self._pair(left, right)
            while self._top > start:
                self._top -= 1
                right = self._pair(self._stack[self._top], right)
        finally:
            self._top = start  # also in a full store, where the nodes of others follow
        return right

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _pair(self, left: cython.int, right: cython.int) -> cython.int:
        """Return the concatenation of two nodes, neither EMPTY nor EPSILON, the first of them no SEQ."""
        joined: cython.int
        if _cell(self, left, node_kinds.KIND) == node_kinds.LITERAL:
            is_seq: cython.bint = _cell(self, right, node_kinds.KIND) == node_kinds.SEQ
            joined = self._joined(self._bytes(left), _cell(self, right, node_kinds.A) if is_seq else right)
            if joined >= 0:
                return self._make(node_kinds.SEQ, joined, _cell(self, right, node_kinds.B), 0) if is_seq else joined
        return self._make(node_kinds.SEQ, left, right, 0)

    @cython.cfunc
    @cython.exceptval(-2, check=False)
    def _joined(self, data: bytes, follows: cython.int) -> cython.int:
        """Return two literals as one, up to `MAX_JOINED` bytes (closing brackets of deep nesting would add up); else
        -1."""
        if _cell(self, follows, node_kinds.KIND) != node_kinds.LITERAL:
            return -1
        more: bytes = self._bytes(follows)
        return self._literal(data + more) if len(data) + len(more) <= node_kinds.MAX_JOINED else -1

    @cython.ccall
    @cython.exceptval(-1, check=False)
    def sequence(self, parts: object) -> cython.int:
        """Return the concatenation of many nodes."""
        result: cython.int = node_kinds.EPSILON
        part: cython.int
        for part in reversed(parts):
            self._check(part)
            result = self._seq(part, result)
        return result

    @cython.ccall
    @cython.exceptval(-1, check=False)
    def alt(self, parts: object) -> cython.int:
        """Return the union of many nodes; heads keep their order."""
        start: cython.int = self._top
        part: cython.int
        i: cython.int
        try:
            for part in parts:
                self._check(part)
                if _cell(self, part, node_kinds.KIND) == node_kinds.ALT:
                    for i in range(_cell(self, part, node_kinds.B)):
                        self._push(self._parts[_cell(self, part, node_kinds.A) + i])
                elif part != node_kinds.EMPTY:
                    self._push(part)
            self._distinct(start, 1)
            return self._alt(start)
        finally:
            self._top = start

    def merged(self, parts: list, depth: cython.int = 0):
        """Return the union of nodes; those that begin with the same node share it, to a limited depth.

        Continuations of ambiguous texts are sequences of the same few nodes. So written they take as much room as the
        text is long, like a graph-structured stack (Tomita 1987), where a list of them would double with each bracket.
        """
        node: cython.int
        first: cython.int
        rest: cython.int
        i: cython.int
        each: list = []
        for node in parts:
            if _cell(self, node, node_kinds.KIND) == node_kinds.ALT:
                for i in range(_cell(self, node, node_kinds.B)):
                    each.append(self._parts[_cell(self, node, node_kinds.A) + i])
            else:
                each.append(node)
        key = tuple(sorted(set(each)))
        found = self._merged.get(key) if len(key) > 1 and depth < _MAX_SHARED else self.alt(key)
        if found is not None:
            return found
        groups: dict = {}
        for node in key:
            first = node
            rest = node_kinds.EPSILON
            if _cell(self, node, node_kinds.KIND) == node_kinds.SEQ:
                first = _cell(self, node, node_kinds.A)
                rest = _cell(self, node, node_kinds.B)
            groups.setdefault(first, []).append(rest)
        result = self.alt([self._seq(first, self.merged(rests, depth + 1)) for first, rests in groups.items()])
        if depth == 0 and len(self._merged) >= _MAX_MERGED:  # not before: shared parts are met again and again
            self._merged.clear()
        self._merged[key] = result
        return result

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _alt(self, start: cython.int) -> cython.int:
        """Return the union of the nodes on the stack, from ``start`` on."""
        count: cython.int = self._top - start
        i: cython.int
        if count == 0:
            return node_kinds.EMPTY
        if count == 1:
            return self._stack[start]
        hashed: cython.ulonglong = mix(BASIS, node_kinds.ALT)
        for i in range(count):
            hashed = mix(hashed, self._stack[start + i])
        node: cython.int = self._find(node_kinds.ALT, start, count, 0, hashed)
        if node >= 0:
            return node
        if self._parts_used + count > self._parts_room:
            room: cython.int = 2 * self._parts_used + count
            self._parts = more(self._parts, self._parts_room, room)
            self._parts_room = room
        node = self._enter(node_kinds.ALT, self._parts_used, count, 0, hashed)
        for i in range(count):
            self._parts[self._parts_used + i] = self._stack[start + i]
        self._parts_used += count
        return node

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _distinct(self, start: cython.int, width: cython.int) -> cython.int:
        """Drop repeated nodes, or pairs of nodes (``width`` 2), from the stack above ``start``."""
        i: cython.int
        j: cython.int
        end: cython.int = start
        second: cython.int
        is_new: cython.bint
        seen = set() if self._top - start > _MANY * width else None
        i = start
        while i < self._top:
            second = self._stack[i + 1] if width == 2 else 0
            if seen is not None:
                key = (cython.cast(cython.longlong, self._stack[i]) << 32) | second
                is_new = key not in seen
                seen.add(key)
            else:
                is_new = True
                j = start
                while j < end and is_new:
                    is_new = self._stack[j] != self._stack[i] or (width == 2 and self._stack[j + 1] != second)
                    j += width
            if is_new:
                self._stack[end] = self._stack[i]
                if width == 2:
                    self._stack[end + 1] = second
                end += width
            i += width
        self._top = end
        return 0

    def repeat(self, part: cython.int, least, most):
        """Return between ``least`` and ``most`` copies (None: no upper bound)."""
        self._check(part)
        if most is not None and most < least:
            return node_kinds.EMPTY
        endless = most is None or most > node_kinds.ENDLESS
        return self._repeat(part, min(least, node_kinds.ENDLESS), -1 if endless else most)

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _repeat(self, part: cython.int, least: cython.int, most: cython.int) -> cython.int:
        if most == 0 or part == node_kinds.EPSILON:
            return node_kinds.EPSILON
        if part == node_kinds.EMPTY:
            return node_kinds.EPSILON if least == 0 else node_kinds.EMPTY
        return part if least == 1 and most == 1 else self._make(node_kinds.REPEAT, part, least, most)

    @cython.ccall
    @cython.exceptval(-1, check=False)
    def words(self, entries: object) -> cython.int:
        """Return the union of distinct literals, each followed by its own node."""
        known: dict = entries if type(entries) is dict else dict(entries)
        names: list = sorted(known)
        first: cython.int = len(self._words)
        end: cython.int = first
        node: cython.int
        name: bytes
        if first + len(names) > self._words_room:
            room: cython.int = 2 * first + len(names)
            self._sums = more(self._sums, self._words_room + 1, room + 1)
            self._follows = more(self._follows, self._words_room, room)
            self._words_room = room
        for name in names:
            node = known[name]
            self._check(node)
            if node != node_kinds.EMPTY:
                self._words.append(name)
                self._follows[end] = node
                self._sums[end + 1] = self._sums[end] + (mix(mix(BASIS, hash(name)), node) >> 32)
                end += 1
        if end == first:
            return node_kinds.EMPTY
        if end == first + 1:
            return self._seq(self._literal(self._words.pop()), self._follows[first])
        before: cython.int = self._count
        node = self._list(first, end, 0)
        if self._count == before:  # the list exists already
            del self._words[first:]
        return node

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _list(self, first: cython.int, end: cython.int, depth: cython.int) -> cython.int:
        """Return the WORDS node of neighbouring words without their first ``depth`` bytes."""
        hashed: cython.ulonglong = mix(mix(mix(BASIS, node_kinds.WORDS), depth), self._sums[end] - self._sums[first])
        node: cython.int = self._find(node_kinds.WORDS, first, end, depth, hashed)
        return node if node >= 0 else self._enter(node_kinds.WORDS, first, end, depth, hashed)

    @cython.ccall
    @cython.exceptval(-1, check=False)
    def lazy(self, key: object, expand: object, as_empty_as: object = None, as_short_as: object = None) -> cython.int:
        """Return the node of a rule that is expanded once, when first needed.

        Args:
            key: identifies the rule in this store.
            expand: returns the node of the rule.
            as_empty_as: a node that is empty iff the rule is; it is inspected instead.
            as_short_as: returns a node whose texts are some of the rule's, a shortest one among them; shortest texts
                are searched there.
        """
        found = self._rules.get(key)
        if found is None:
            instead: cython.int = -1
            if as_empty_as is not None:
                instead = as_empty_as
                self._check(instead)
            found = self._rules[key] = self._new(node_kinds.LAZY, len(self._things), instead, 0)
            self._things.append(expand)
            if as_short_as is not None:
                self.shorter[found] = as_short_as
        return found

    def dynamic(self, key, static: cython.int, resolve, names_only: cython.bint = False):
        """Return a dependent node: ``resolve(text so far)`` is the node that it stands for.

        Args:
            key: identifies it in this store.
            static: a node whose language holds that of everything that ``resolve`` may return.
            resolve: a pure function of the text.
            names_only: it forbids the name (or the string in an array) just written if that is a repeated one, and
                nothing else. False: it forbids some continuations, and others are left.
        """
        self._check(static)
        found = self._places.get(key)
        if found is None:
            found = self._places[key] = self._new(node_kinds.DYNAMIC, len(self._things), static, names_only)
            self._things.append(resolve)
        return found

    # -- parts of nodes ----------------------------------------------------------------------------------------

    def kind(self, node: cython.int):
        """Return the kind of a node."""
        self._check(node)
        return _cell(self, node, node_kinds.KIND)

    def args(self, node: cython.int):
        """Return the arguments of the method that made a node, without keys; of WORDS the sorted pairs and the number
        of bytes that are left out of each word, of DYNAMIC ``(static, resolve, names_only)``."""
        self._check(node)
        kind: cython.int = _cell(self, node, node_kinds.KIND)
        a: cython.int = _cell(self, node, node_kinds.A)
        b: cython.int = _cell(self, node, node_kinds.B)
        c: cython.int = _cell(self, node, node_kinds.C)
        if kind == node_kinds.LITERAL or kind == node_kinds.SPECIAL:
            return (self._things[a],)
        if kind == node_kinds.TEXT:
            return (a, b == 1)
        if kind == node_kinds.COUNTED:
            return (b, None if c < 0 else c)
        if kind == node_kinds.SEQ:
            return (a, b)
        if kind == node_kinds.ALT:
            return tuple([self._parts[a + i] for i in range(b)])
        if kind == node_kinds.REPEAT:
            return (a, b, None if c < 0 else c)
        if kind == node_kinds.WORDS:
            return tuple([(self._words[i], self._follows[i]) for i in range(a, b)]), c
        return (b, self._things[a], c == 1) if kind == node_kinds.DYNAMIC else ()

    # -- queries ---------------------------------------------------------------------------------------------

    @cython.ccall
    @cython.exceptval(-1, check=False)
    def expand(self, node: cython.int) -> cython.int:
        """Return the expansion of a LAZY node, which is never LAZY itself.

        Raises:
            GrammarError: the rule refers to itself before anything is written (left recursion).
        """
        self._check(node)
        return self._expand(node)

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _expand(self, node: cython.int) -> cython.int:
        current: cython.int = _cell(self, node, node_kinds.C) - 1
        if current >= 0:
            return current
        if node in self._opening:
            raise _left_recursion()
        chain: list = []
        current = node
        self._opening.add(node)
        try:
            while _cell(self, current, node_kinds.KIND) == node_kinds.LAZY:
                if _cell(self, current, node_kinds.C):
                    current = _cell(self, current, node_kinds.C) - 1
                    break
                if current in chain:
                    raise _left_recursion()
                chain.append(current)
                before = len(self.terms)
                try:
                    current = self._things[_cell(self, current, node_kinds.A)]()
                except LimitError as error:
                    current = self._without(current, error, before)
                self._check(current)
        finally:
            self._opening.discard(node)
        for each in chain:
            node = each
            self._cells[node * node_kinds.WIDTH + node_kinds.C] = current + 1
            self._things[_cell(self, node, node_kinds.A)] = None  # release the closure
        return current

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _without(self, node: cython.int, error, before: cython.int) -> cython.int:
        """Return the empty language for a rule that exceeded a limit; raise the error if the rule is known to have a
        text, or if the store is full of others.

        No text leads there: that a rule has one is only known from its expansion, or from another node (`lazy`).

        Args:
            node: the rule.
            error: the limit.
            before: the number of terms before the rule was expanded.
        """
        if self._count >= self._room or _cell(self, node, node_kinds.B) >= 0:
            raise error
        is_its_own: cython.bint = self.terms.is_hurried or len(self.terms) < self.terms.room
        if not is_its_own and len(self.terms) - before < _ITS_SHARE * self.terms.room:
            raise error
        self.exceed(error)
        return node_kinds.EMPTY

    def exceed(self, error) -> object:
        """Remember a limit for which something is left out of the language."""
        if len(self.limits) < _MAX_LIMITS and all(error.message != each.message for each in self.limits):
            self.limits.append(error.with_traceback(None))
        return None

    @cython.ccall
    @cython.exceptval(-1, check=False)
    def nullable(self, node: cython.int) -> cython.bint:
        """Return True if the empty text is in the language."""
        self._check(node)
        return self._answer(node, node_kinds.NULLABLE) == node_kinds.YES

    @cython.ccall
    @cython.exceptval(-1, check=False)
    def is_empty(self, node: cython.int) -> cython.bint:
        """Return True if the language has no text at all.

        Short-circuited: an optional part is never visited, the first non-empty alternative decides. Recursion is the
        least fixpoint (a rule that can only finish through itself is empty).
        """
        self._check(node)
        return self._answer(node, node_kinds.HAS_TEXT) == node_kinds.NO

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _answer(self, node: cython.int, question: cython.int) -> cython.int:
        """Return True if a language has a text, or the empty text."""
        known: cython.int = _cell(self, node, question)
        if known:
            return known
        if question == node_kinds.HAS_TEXT:  # do its parts decide?
            part: cython.int = _cell(self, node, node_kinds.B)
            if _cell(self, node, node_kinds.KIND) == node_kinds.LAZY:
                known = 0 if part < 0 else _cell(self, part, node_kinds.HAS_TEXT)
            elif _cell(self, node, node_kinds.KIND) == node_kinds.SEQ:
                known = _cell(self, part, node_kinds.HAS_TEXT)
                part = _cell(self, _cell(self, node, node_kinds.A), node_kinds.HAS_TEXT)
                if known == node_kinds.NO or part == node_kinds.NO:
                    known = node_kinds.NO
                else:
                    known = node_kinds.YES if known and part else 0
            if known:
                self._cells[node * node_kinds.WIDTH + question] = known
                return known
        start: cython.int = self._top
        first: cython.Py_ssize_t = len(self._provisional)
        try:
            return self._search(node, question)
        finally:
            while self._top > start:  # left by an error
                self._leave()
            self._settle(first, 0, question)

    @cython.cfunc
    @cython.exceptval(check=False)
    def _leave(self) -> cython.void:
        """Take the last node in progress from the stack."""
        self._top -= _FRAME
        self._cells[self._stack[self._top] * node_kinds.WIDTH + node_kinds.MARK] = self._stack[self._top + 3]

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _meet(self, node: cython.int) -> cython.int:
        """Push the frame of a node: the node, the number of its next child, the lowest frame on which its answer
        depends, its mark in the search that this one interrupts, and the number of provisional answers before it."""
        at: cython.int = self._top
        self._push(node)
        self._push(0)
        self._push(at)
        self._push(_cell(self, node, node_kinds.MARK))
        self._push(len(self._provisional))
        self._cells[node * node_kinds.WIDTH + node_kinds.MARK] = at + 1
        self.met += 1
        return 0

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _settle(self, first: cython.Py_ssize_t, verdict: cython.int, question: cython.int) -> cython.int:
        """Take the provisional answers from a number on away; a verdict above 0 is their final answer."""
        node: cython.int
        while len(self._provisional) > first:
            node, mark = self._provisional.pop()
            self._cells[node * node_kinds.WIDTH + node_kinds.MARK] = mark
            if verdict:
                self._cells[node * node_kinds.WIDTH + question] = verdict
        while self._groups and self._groups[len(self._groups) - 1][0] >= first:
            self._groups.pop()
        return 0

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _postpone(self, node: cython.int, lowest: cython.int, first: cython.Py_ssize_t) -> cython.int:
        """Keep a "no" of a node that was left, and those from a number on that were found inside, until the lowest
        frame on which they depend has an answer."""
        while self._groups and self._groups[len(self._groups) - 1][0] >= first:
            self._groups.pop()
        self._groups.append((first, lowest))
        self._provisional.append((node, _cell(self, node, node_kinds.MARK)))
        self._cells[node * node_kinds.WIDTH + node_kinds.MARK] = -len(self._provisional)
        return 0

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _depends(self, number: cython.Py_ssize_t) -> cython.int:
        """Return the lowest frame on which a provisional answer depends."""
        low: cython.Py_ssize_t = 0
        high: cython.Py_ssize_t = len(self._groups)
        while low < high:  # the last group that begins at the answer or before
            middle: cython.Py_ssize_t = (low + high) // 2
            if self._groups[middle][0] <= number:
                low = middle + 1
            else:
                high = middle
        return self._groups[low - 1][1]

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _search(self, node: cython.int, question: cython.int) -> cython.int:
        """Search depth-first. Nodes in progress count as "no"; a "no" that depends on one of them is provisional.

        Provisional answers are kept until the lowest of these nodes has its answer: they are final if it is "no", and
        dropped if it is "yes". Each "yes" is final, so that a search takes polynomial time.
        """
        start: cython.int = self._top
        first: cython.Py_ssize_t = len(self._provisional)
        at: cython.int
        child: cython.int
        mark: cython.int
        lowest: cython.int
        verdict: cython.int
        answer: cython.int = 0  # the answer of the last child
        self._meet(node)
        while True:
            at = self._top - _FRAME
            node = self._stack[at]
            verdict = 0
            while not verdict:
                if answer and answer == (node_kinds.YES if self._is_any(node) else node_kinds.NO):
                    verdict = answer
                    break
                answer = 0
                child = self._child(node, self._stack[at + 1], question)
                if child < 0:  # no child is left to decide
                    verdict = -child
                    break
                self._stack[at + 1] += 1
                answer = _cell(self, child, question)
                if not answer:
                    mark = _cell(self, child, node_kinds.MARK)
                    if mark > start:
                        mark -= 1
                    elif mark < -first:
                        mark = self._depends(-mark - 1)
                    else:  # of no search, or of one that this one interrupts
                        self._meet(child)
                        break
                    answer = node_kinds.NO
                    if mark < self._stack[at + 2]:
                        self._stack[at + 2] = mark
            if not verdict:
                continue
            answer = verdict
            lowest = self._stack[at + 2]
            before: cython.Py_ssize_t = self._stack[at + 4]
            self._leave()
            if verdict == node_kinds.YES or lowest >= at:
                self._cells[node * node_kinds.WIDTH + question] = verdict
                if len(self._provisional) > before:
                    self._settle(before, verdict if verdict == node_kinds.NO else 0, question)
            else:
                self._postpone(node, lowest, before)
            if at == start:
                return verdict
            if verdict == node_kinds.NO and lowest < self._stack[at - _FRAME + 2]:
                self._stack[at - _FRAME + 2] = lowest

    @cython.cfunc
    @cython.exceptval(check=False)
    def _is_any(self, node: cython.int) -> cython.bint:
        """Return True if one child with a "yes" decides; else one with a "no" does."""
        return (
            _cell(self, node, node_kinds.KIND) == node_kinds.ALT
            or _cell(self, node, node_kinds.KIND) == node_kinds.WORDS
        )

    @cython.cfunc
    @cython.exceptval(-3, check=False)
    def _child(self, node: cython.int, number: cython.int, question: cython.int) -> cython.int:
        """Return the child that decides next, or the answer without one: `ANSWER_NO` or `ANSWER_YES`."""
        kind: cython.int = _cell(self, node, node_kinds.KIND)
        a: cython.int = _cell(self, node, node_kinds.A)
        b: cython.int = _cell(self, node, node_kinds.B)
        if kind == node_kinds.SEQ:
            return a if number == 0 else b if number == 1 else node_kinds.ANSWER_YES
        if kind == node_kinds.ALT:
            return self._parts[a + number] if number < b else node_kinds.ANSWER_NO
        if kind == node_kinds.WORDS:
            if question == node_kinds.NULLABLE:
                is_whole: cython.bint = number == 0 and self._is_whole(a, _cell(self, node, node_kinds.C))
                return self._follows[a] if is_whole else node_kinds.ANSWER_NO
            return self._follows[a + number] if a + number < b else node_kinds.ANSWER_NO
        if number:
            return node_kinds.ANSWER_YES
        if kind == node_kinds.REPEAT:
            return node_kinds.ANSWER_YES if b == 0 else a
        if kind == node_kinds.LAZY:
            return self._expand(node) if question == node_kinds.NULLABLE or b < 0 else b
        if kind == node_kinds.DYNAMIC:
            return b
        return node_kinds.ANSWER_YES if b == 0 and self.terms.nullable(a) else node_kinds.ANSWER_NO  # TEXT

    @cython.cfunc
    @cython.exceptval(check=False)
    def _is_whole(self, word: cython.int, depth: cython.int) -> cython.bint:
        return len(cython.cast(bytes, self._words[word])) == depth

    # -- heads -------------------------------------------------------------------------------------------------

    def heads(self, node: cython.int):
        """Return the head normal form of ``node``. Law: the language is the union of ``atom rest`` over the heads, and
        the empty text if `nullable`; no head leads to an empty language."""
        self._check(node)
        self._need_heads(node)
        at: cython.int = _cell(self, node, node_kinds.HEADS)
        count: cython.int = self._heads[at - 1]
        return tuple([(self._heads[at + 2 * i], self._heads[at + 2 * i + 1]) for i in range(count)])

    @cython.ccall
    @cython.exceptval(-1, check=False)
    def lay_heads(self, node: cython.int) -> cython.int:
        """Return the index in ``_heads`` of the heads of ``node``: their number, then for each its atom and the node
        of the rest."""
        self._check(node)
        self._need_heads(node)
        return _cell(self, node, node_kinds.HEADS) - 1

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _need_heads(self, node: cython.int) -> cython.int:
        """Derive the heads of a node, after those of the nodes that it begins with."""
        start: cython.int = self._top
        at: cython.int = start
        child: cython.int
        if _cell(self, node, node_kinds.HEADS) > 0:
            return 0
        try:
            self._begin(node)
            while self._top > start:
                at = self._top - 2
                node = self._stack[at]
                child = self._first(node, at)
                if child >= 0:
                    self._begin(child)
                else:
                    self._gather(node)
                    self._top = at
        finally:
            if self._top > at + 2:  # heads that an error left unfinished
                self._top = at + 2
            while self._top > start:  # left by an error
                self._top -= 2
                if _cell(self, self._stack[self._top], node_kinds.HEADS) == node_kinds.SEARCHED:
                    self._cells[self._stack[self._top] * node_kinds.WIDTH + node_kinds.HEADS] = 0
        return 0

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _begin(self, node: cython.int) -> cython.int:
        if _cell(self, node, node_kinds.HEADS) == node_kinds.SEARCHED:
            raise _left_recursion()
        self._push(node)
        self._push(0)
        self._cells[node * node_kinds.WIDTH + node_kinds.HEADS] = node_kinds.SEARCHED
        return 0

    @cython.cfunc
    @cython.exceptval(-2, check=False)
    def _first(self, node: cython.int, at: cython.int) -> cython.int:
        """Return the next node with which ``node`` may begin and whose heads are not derived yet; -1 if there is
        none."""
        kind: cython.int = _cell(self, node, node_kinds.KIND)
        a: cython.int = _cell(self, node, node_kinds.A)
        b: cython.int = _cell(self, node, node_kinds.B)
        child: cython.int
        number: cython.int
        while True:
            number = self._stack[at + 1]
            self._stack[at + 1] = number + 1
            if kind == node_kinds.ALT:
                if number == b:
                    return -1
                child = self._parts[a + number]
            elif kind == node_kinds.SEQ:
                if number == 2 or self._answer(b, node_kinds.HAS_TEXT) == node_kinds.NO:
                    return -1
                if number == 1 and self._answer(a, node_kinds.NULLABLE) == node_kinds.NO:
                    return -1
                child = b if number else a
            elif number or kind <= node_kinds.DYNAMIC:
                return -1
            elif kind == node_kinds.REPEAT:
                child = a
            elif kind == node_kinds.LAZY:
                child = self._expand(node)
            elif self._is_whole(a, _cell(self, node, node_kinds.C)):
                child = self._follows[a]
            else:
                return -1
            if _cell(self, child, node_kinds.KIND) > node_kinds.DYNAMIC and _cell(self, child, node_kinds.HEADS) <= 0:
                if kind == node_kinds.LAZY or self._answer(child, node_kinds.HAS_TEXT) == node_kinds.YES:
                    return child

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _gather(self, node: cython.int) -> cython.int:
        """Lay the heads of a node, after those of the nodes that it begins with."""
        kind: cython.int = _cell(self, node, node_kinds.KIND)
        a: cython.int = _cell(self, node, node_kinds.A)
        b: cython.int = _cell(self, node, node_kinds.B)
        start: cython.int = self._top
        i: cython.int
        if kind == node_kinds.LAZY:
            a = self._expand(node)
            if _cell(self, a, node_kinds.KIND) > node_kinds.DYNAMIC:
                self._cells[node * node_kinds.WIDTH + node_kinds.HEADS] = _cell(self, a, node_kinds.HEADS)
                return 0
            self._add(a, node_kinds.EPSILON)
        elif kind == node_kinds.SEQ:
            if self._answer(b, node_kinds.HAS_TEXT) == node_kinds.YES:
                self._add(a, b)
                if self._answer(a, node_kinds.NULLABLE) == node_kinds.YES:
                    self._add(b, node_kinds.EPSILON)
                    self._distinct(start, 2)
        elif kind == node_kinds.ALT:
            for i in range(a, a + b):
                self._add(self._parts[i], node_kinds.EPSILON)
            self._distinct(start, 2)
        elif kind == node_kinds.REPEAT:
            i = _cell(self, node, node_kinds.C)
            self._add(a, self._repeat(a, b - 1 if b else 0, -1 if i < 0 else i - 1))
        elif kind == node_kinds.WORDS:
            self._add_words(a, b, _cell(self, node, node_kinds.C))
        else:
            self._push(node)
            self._push(node_kinds.EPSILON)
        size: cython.int = self._top - start
        at: cython.int = self._heads_used
        if size == 0:
            self._cells[node * node_kinds.WIDTH + node_kinds.HEADS] = 1
            return 0
        if at + size + 1 > self._heads_room:
            room: cython.int = 2 * at + size
            self._heads = more(self._heads, self._heads_room, room)
            self._heads_room = room
        self._heads[at] = size // 2
        for i in range(size):
            self._heads[at + 1 + i] = self._stack[start + i]
        self._cells[node * node_kinds.WIDTH + node_kinds.HEADS] = at + 1
        self._heads_used = at + 1 + size
        self._top = start
        return 0

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _add(self, node: cython.int, right: cython.int) -> cython.int:
        """Push the heads of a node, each followed by ``right``; none if the node has no text."""
        i: cython.int
        if self._answer(node, node_kinds.HAS_TEXT) == node_kinds.NO:
            return 0
        if _cell(self, node, node_kinds.KIND) <= node_kinds.DYNAMIC:
            self._push(node)
            self._push(right)
            return 0
        at: cython.int = _cell(self, node, node_kinds.HEADS)
        for i in range(at, at + 2 * self._heads[at - 1], 2):
            self._push(self._heads[i])
            self._push(self._seq(self._heads[i + 1], right))
        return 0

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _add_words(self, first: cython.int, end: cython.int, depth: cython.int) -> cython.int:
        """Push one head for each next byte: the longest common prefix of its words, then their rests."""
        low: cython.int
        high: cython.int
        middle: cython.int
        common: cython.int
        rest: cython.int
        joined: cython.int
        byte: cython.int
        word: bytes
        other: bytes
        if self._is_whole(first, depth):
            self._add(self._follows[first], node_kinds.EPSILON)
            first += 1
        while first < end:
            word = self._words[first]
            byte = word[depth]
            low = first + 1
            high = end
            while low < high:  # words are sorted: bisect for the end of the group
                middle = (low + high) // 2
                other = self._words[middle]
                if other[depth] == byte:
                    low = middle + 1
                else:
                    high = middle
            rest = self._follows[first]
            common = len(word)
            if low > first + 1:
                other = self._words[low - 1]
                byte = depth + 1
                while byte < common and word[byte] == other[byte]:
                    byte += 1
                common = byte
                rest = self._list(first, low, common)
            if self._answer(rest, node_kinds.HAS_TEXT) == node_kinds.YES:
                if common == len(word) and low == first + 1:  # a single word: it joins what follows, as in `seq`
                    is_seq: cython.bint = _cell(self, rest, node_kinds.KIND) == node_kinds.SEQ
                    joined = self._joined(word[depth:], _cell(self, rest, node_kinds.A) if is_seq else rest)
                    if joined >= 0:
                        self._push(joined)
                        self._push(_cell(self, rest, node_kinds.B) if is_seq else node_kinds.EPSILON)
                        first = low
                        continue
                self._push(self._literal(word[depth:common]))
                self._push(rest)
            first = low
        return 0
