# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False, cdivision=True
"""How grammar nodes are made and kept: equal ones are the same small integer.

Compiled where that is possible (Cython in pure-Python mode; ``nodetable.pxd`` says what `nodes` sees of it in C).
Nodes are rows of one array of integers, found again by a hash table over them; what is no integer (bytes, names, rules)
stands in one list.
"""

from __future__ import annotations

from ..errors import LimitError
from .terms import Terms

try:
    import cython
except ImportError:  # interpreted, without Cython installed
    from ..compiled import standin as cython  # type: ignore[no-redef]

if not cython.compiled:  # else they are declared
    from ..compiled.arrays import grown
    from ..compiled.hashing import BASIS, mix
    from . import node_kinds

#: Whether this module was compiled when it was installed.
COMPILED: bool = bool(cython.compiled)


#: From how many entries on duplicates are found by hashing.
_MANY = cython.declare(cython.int, 16)


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _folded(mixed: cython.ulonglong) -> cython.int:
    """A hash as it is kept: positive."""
    return cython.cast(cython.int, (mixed ^ (mixed >> 33)) & 0x3FFFFFFF) + 1


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _cell(table: NodeTable, node: cython.int, column: cython.int) -> cython.int:
    return table._cells[node * node_kinds.WIDTH + column]


@cython.cclass
class NodeTable:
    """Nodes, and the ways to make them; see `Nodes`."""

    def __init__(self, terms, shared):
        self.terms = Terms() if terms is None else terms
        self.is_shared = shared
        self._room = node_kinds.MAX_NODES + (node_kinds.SHARED_ROOM if shared else 0)
        self.terms.room += node_kinds.SHARED_ROOM if shared else 0
        self.known = {}
        self.builders = {}
        self.weight = 0
        self._cells_array = grown(None, "i", node_kinds.WIDTH * 128)
        self._cells = self._cells_array
        self._table = grown(None, "i", 256)
        self._things = []
        self._literals = {}
        self._specials = {}
        self._rules = {}
        self._places = {}
        self._parts_array = grown(None, "i", 128)
        self._parts = self._parts_array
        self._words = []
        self._follows_array = grown(None, "i", 32)
        self._follows = self._follows_array
        self._sums_array = grown(None, "q", 33)
        self._sums = self._sums_array
        self._stack_array = grown(None, "i", 64)
        self._stack = self._stack_array
        self._count = self._parts_used = self._top = self._slot = 0
        self.EMPTY = self._new(node_kinds.EMPTY_KIND, 0, 0, 0, 0)
        self.EPSILON = self._new(node_kinds.EPSILON_KIND, 0, 0, 0, 0)
        self._learn(node_kinds.EMPTY, node_kinds.NO, node_kinds.NO)
        self._learn(node_kinds.EPSILON, node_kinds.YES, node_kinds.YES)

    def __len__(self):
        return self._count

    def clear(self):
        """Forget everything, once nobody asks any more: builders know the store that knows them."""
        for builder in self.builders.values():
            builder.release()
        for held in (self.builders, self.known, self._literals, self._specials, self._rules, self._places):
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
        if self._top == len(self._stack):
            self._stack_array = grown(self._stack_array, "i", 2 * self._top)
            self._stack = self._stack_array
        self._stack[self._top] = value
        self._top += 1
        return 0

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _new(self, kind: cython.int, a: cython.int, b: cython.int, c: cython.int, mixed: cython.int) -> cython.int:
        """A new node."""
        node: cython.int = self._count
        if node >= self._room:
            raise LimitError(f"the grammar needs more than {node_kinds.MAX_NODES:,} states", hint="split the schema")
        at: cython.int = node * node_kinds.WIDTH
        if at + node_kinds.WIDTH > len(self._cells):
            self._cells_array = grown(self._cells_array, "i", 2 * len(self._cells))
            self._cells = self._cells_array
        self._cells[at + node_kinds.KIND] = kind
        self._cells[at + node_kinds.A] = a
        self._cells[at + node_kinds.B] = b
        self._cells[at + node_kinds.C] = c
        self._cells[at + node_kinds.HASH] = mixed
        if kind <= node_kinds.SPECIAL:
            self._cells[at + node_kinds.HAS_TEXT] = node_kinds.YES
        if kind <= node_kinds.DYNAMIC and kind != node_kinds.TEXT:
            # A DYNAMIC place is never skipped: the text decides when it gets there.
            self._cells[at + node_kinds.NULLABLE] = node_kinds.NO
        self._count = node + 1
        return node

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _enter(self, kind: cython.int, a: cython.int, b: cython.int, c: cython.int, mixed: cython.int) -> cython.int:
        """A new node, in the slot of the table where it was looked for."""
        node: cython.int = self._new(kind, a, b, c, mixed)
        slot: cython.int
        self._table[self._slot] = node + 1
        size: cython.int = len(self._table)
        if 2 * node > size:
            self._table = grown(None, "i", 2 * size)
            size *= 2
            for node in range(self._count):
                mixed = _cell(self, node, node_kinds.HASH)
                if mixed:  # only these are looked for here
                    slot = mixed & (size - 1)
                    while self._table[slot]:
                        slot = (slot + 1) & (size - 1)
                    self._table[slot] = node + 1
            return self._count - 1
        return node

    @cython.cfunc
    @cython.exceptval(-2, check=False)
    def _find(self, kind: cython.int, a: cython.int, b: cython.int, c: cython.int, mixed: cython.int) -> cython.int:
        """The node that is equal to this, or -1 (the parts of an ALT stand on the stack, from ``a`` on)."""
        size: cython.int = len(self._table)
        slot: cython.int = mixed & (size - 1)
        node: cython.int
        at: cython.int
        one: cython.int
        two: cython.int
        three: cython.int
        while True:
            node = self._table[slot] - 1
            if node < 0:
                self._slot = slot
                return -1
            at = node * node_kinds.WIDTH
            if self._cells[at + node_kinds.HASH] == mixed and self._cells[at + node_kinds.KIND] == kind:
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
            slot = (slot + 1) & (size - 1)

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
        """The node of a kind whose arguments are integers."""
        mixed: cython.int = _folded(mix(mix(mix(mix(BASIS, kind), a), b), c))
        node: cython.int = self._find(kind, a, b, c, mixed)
        return node if node >= 0 else self._enter(kind, a, b, c, mixed)

    # -- construction ------------------------------------------------------------------------------------------

    def literal(self, data: bytes):
        """Exactly ``data``."""
        return self._literal(data)

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _literal(self, data: bytes) -> cython.int:
        found = self._literals.get(data)
        if found is not None:
            return found
        if not data:
            return node_kinds.EPSILON
        node: cython.int = self._new(node_kinds.LITERAL, len(self._things), 0, 0, 0)
        self._things.append(data)
        self._literals[data] = node
        return node

    @cython.cfunc
    def _bytes(self, node: cython.int) -> bytes:
        return self._things[_cell(self, node, node_kinds.A)]

    def text(self, term: int):
        """The strings of ``term``, written as UTF-8."""
        if self.terms.is_empty(term):
            return node_kinds.EMPTY
        return node_kinds.EPSILON if term == self.terms.EPSILON else self._make(node_kinds.TEXT, term, 0, 0)

    def json_string(self, term: int):
        """JSON strings (quotes included, any escapes) whose decoded value is in ``term``."""
        bounds = self.terms.length_bounds(term)
        if bounds is not None and bounds != (0, None):
            return self.counted(*bounds)
        return node_kinds.EMPTY if self.terms.is_empty(term) else self._make(node_kinds.TEXT, term, 1, 0)

    def counted(self, least, most):
        """JSON strings of between ``least`` and ``most`` characters."""
        if most is not None and least > most:
            return node_kinds.EMPTY
        endless = most is None or most > node_kinds.ENDLESS
        return self._make(node_kinds.COUNTED, 0, min(least, node_kinds.ENDLESS), -1 if endless else most)

    def special(self, name: str):
        """The control token called ``name``."""
        found = self._specials.get(name)
        if found is None:
            found = self._specials[name] = self._new(node_kinds.SPECIAL, len(self._things), 0, 0, 0)
            self._things.append(name)
        return found

    def seq(self, left: cython.int, right: cython.int):
        """Concatenation of two nodes."""
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
            self._top = start  # also where the store is full: others have their nodes further down
        return right

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _pair(self, left: cython.int, right: cython.int) -> cython.int:
        """Concatenation of two nodes that are more than the empty text, the first of them no SEQ."""
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
        """ "ab" "cd" as "abcd", unless that grows without end (the closing brackets of deep nesting); else -1."""
        if _cell(self, follows, node_kinds.KIND) != node_kinds.LITERAL:
            return -1
        more: bytes = self._bytes(follows)
        return self._literal(data + more) if len(data) + len(more) <= node_kinds.MAX_JOINED else -1

    def sequence(self, parts):
        """Concatenation of many nodes."""
        result: cython.int = node_kinds.EPSILON
        part: cython.int
        for part in reversed(parts):
            self._check(part)
            result = self._seq(part, result)
        return result

    def alt(self, parts):
        """Union of many nodes; the order is kept, since it is the order in which heads are listed."""
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

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _alt(self, start: cython.int) -> cython.int:
        """Union of the nodes on the stack, from ``start`` on."""
        count: cython.int = self._top - start
        i: cython.int
        if count == 0:
            return node_kinds.EMPTY
        if count == 1:
            return self._stack[start]
        hashed: cython.ulonglong = mix(BASIS, node_kinds.ALT)
        for i in range(count):
            hashed = mix(hashed, self._stack[start + i])
        mixed: cython.int = _folded(hashed)
        node: cython.int = self._find(node_kinds.ALT, start, count, 0, mixed)
        if node >= 0:
            return node
        if self._parts_used + count > len(self._parts):
            self._parts_array = grown(self._parts_array, "i", 2 * self._parts_used + count)
            self._parts = self._parts_array
        node = self._enter(node_kinds.ALT, self._parts_used, count, 0, mixed)
        for i in range(count):
            self._parts[self._parts_used + i] = self._stack[start + i]
        self._parts_used += count
        return node

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _distinct(self, start: cython.int, width: cython.int) -> cython.int:
        """Drop what was pushed twice since ``start``, as single nodes or pairs."""
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
        """Between ``least`` and ``most`` copies (None: no upper bound)."""
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

    def words(self, entries):
        """Each ``data`` followed by its own node; ``data`` must be distinct."""
        known: dict = entries if type(entries) is dict else dict(entries)
        names: list = sorted(known)
        first: cython.int = len(self._words)
        end: cython.int = first
        node: cython.int
        name: bytes
        if first + len(names) > len(self._follows):
            self._sums_array = grown(self._sums_array, "q", 2 * first + len(names) + 1)
            self._sums = self._sums_array
            self._follows_array = grown(self._follows_array, "i", 2 * first + len(names))
            self._follows = self._follows_array
        for name in names:
            node = known[name]
            self._check(node)
            if node != node_kinds.EMPTY:
                self._words.append(name)
                self._follows[end] = node
                self._sums[end + 1] = self._sums[end] + _folded(mix(mix(BASIS, hash(name)), node))
                end += 1
        if end == first:
            return node_kinds.EMPTY
        if end == first + 1:
            return self._seq(self._literal(self._words.pop()), self._follows[first])
        before: cython.int = self._count
        node = self._list(first, end, 0)
        if self._count == before:  # they are there already
            del self._words[first:]
        return node

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _list(self, first: cython.int, end: cython.int, depth: cython.int) -> cython.int:
        """The WORDS node of some neighbouring words, without their first bytes."""
        hashed: cython.ulonglong = mix(mix(BASIS, node_kinds.WORDS), depth)
        mixed: cython.int = _folded(mix(hashed, self._sums[end] - self._sums[first]))
        node: cython.int = self._find(node_kinds.WORDS, first, end, depth, mixed)
        return node if node >= 0 else self._enter(node_kinds.WORDS, first, end, depth, mixed)

    def lazy(self, key, expand, *, as_empty_as=None):
        """A rule. ``key`` identifies it in this store; ``expand`` is called once, when first needed.

        ``as_empty_as``: a node that is empty iff the rule is; it is looked into instead.
        """
        found = self._rules.get(key)
        if found is None:
            instead: cython.int = -1
            if as_empty_as is not None:
                instead = as_empty_as
                self._check(instead)
            found = self._rules[key] = self._new(node_kinds.LAZY, len(self._things), instead, 0, 0)
            self._things.append(expand)
        return found

    def dynamic(self, key, static: cython.int, resolve, kind: cython.int):
        """A place at which ``resolve(text so far)`` is the node that follows.

        Args:
            key: identifies it in this store.
            static: a node whose language holds that of everything that ``resolve`` may return.
            resolve: a pure function of the text.
            kind: `AFTER_NAME`, `BEYOND` or `HERE`.
        """
        self._check(static)
        found = self._places.get(key)
        if found is None:
            found = self._places[key] = self._new(node_kinds.DYNAMIC, len(self._things), static, kind, 0)
            self._things.append(resolve)
        return found

    # -- what nodes are ----------------------------------------------------------------------------------------

    def kind(self, node: cython.int):
        """The kind of a node."""
        self._check(node)
        return _cell(self, node, node_kinds.KIND)

    def args(self, node: cython.int):
        """What a node was made of: the arguments of the method of its kind, but for keys; of WORDS the sorted pairs and
        how many bytes of each word are left out, of DYNAMIC ``(static, resolve, kind)``."""
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
        return (b, self._things[a], c) if kind == node_kinds.DYNAMIC else ()
