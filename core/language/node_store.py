# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False, cdivision=True
"""The store of grammar nodes: hash-consing, and their construction.

A node is a row of one array of integers, interned by a hash table; bytes, names and rules are entries of one list.
`node_kinds` lists the fields of a row by kind. This module makes nodes; `nodes` has the queries of their languages.
Compiled where that is possible (Cython in pure-Python mode). Walks from node to node use an explicit stack: grammars
may be thousands of levels deep."""

from __future__ import annotations

from ..basics.pauses import pause
from ..errors import LimitError

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

    def cell(nodes: NodeStore, node: int, column: int) -> int:
        """Return one of the integers of a node."""
        return nodes._cells[node * node_kinds.WIDTH + column]


#: Minimum number of entries for which duplicates are found by hashing, not pairwise.
_MANY = cython.declare(cython.int, 16)

#: Maximum depth to which `merged` merges continuations, and number of unions that it memoises.
_MAX_SHARED = cython.declare(cython.int, 200)
_MAX_MERGED = cython.declare(cython.int, 10_000)


@cython.cclass
class NodeStore:
    """The hash-consing store of grammar nodes. ``node_store.pxd`` says what the private arrays and dictionaries hold.

    Attributes:
        terms: the store of the terms used by TEXT nodes.
        EMPTY: the empty language.
        EPSILON: the language of the empty text.
        shorter: for LAZY nodes, a function that returns a node with a subset of their texts, a shortest one included.

    Args:
        terms: the store of terms; None: a new one.
    """

    def __init__(self, terms=None):
        self.terms = Terms() if terms is None else terms
        self._room = node_kinds.MAX_NODES
        self.shorter = {}
        self._merged = {}
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

    def __dealloc__(self):
        free(self._cells)
        free(self._parts)
        free(self._stack)
        free(self._follows)
        free(self._sums)

    def __len__(self):
        return self._count

    @cython.cfunc
    def _clear_nodes(self) -> object:
        """Forget all nodes, which breaks the reference cycles between the store and the functions of its rules."""
        for held in (self.shorter, self._merged, self._literals, self._specials, self._rules, self._places):
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
        """Add a new node and return its number; answers that its kind decides are set at once. Raise LimitError if the
        store is full."""
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
            # A dependent node is never nullable here: the text so far decides.
            self._cells[at + node_kinds.NULLABLE] = node_kinds.NO
        self._count = node + 1
        return node

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _enter(
        self, kind: cython.int, a: cython.int, b: cython.int, c: cython.int, hashed: cython.ulonglong
    ) -> cython.int:
        """Add a new node to the hash table and return it."""
        node: cython.int = self._new(kind, a, b, c)
        self._interned.add(hashed | 1, node)
        return node

    @cython.cfunc
    @cython.exceptval(-2, check=False)
    def _find(
        self, kind: cython.int, a: cython.int, b: cython.int, c: cython.int, hashed: cython.ulonglong
    ) -> cython.int:
        """Return the interned node with these arguments, or -1. The parts of an ALT are on the stack from index ``a``,
        ``b`` of them; the words of a WORDS are those from ``a`` to ``b`` of the words array, without ``c`` bytes."""
        slot: cython.int = self._interned.first(hashed | 1)  # 0 is no key of an `IntMap`
        node: cython.int
        at: cython.int
        known_a: cython.int
        known_b: cython.int
        known_c: cython.int
        while slot >= 0:
            node = self._interned.values[slot]
            at = node * node_kinds.WIDTH
            if self._cells[at + node_kinds.KIND] == kind:
                known_a = self._cells[at + node_kinds.A]
                known_b = self._cells[at + node_kinds.B]
                known_c = self._cells[at + node_kinds.C]
                if kind == node_kinds.ALT:
                    if self._same_parts(known_a, known_b, a, b):
                        return node
                elif kind == node_kinds.WORDS:
                    if known_c == c and self._same_words(known_a, known_b, a, b):
                        return node
                elif known_a == a and known_b == b and known_c == c:
                    return node
            slot = self._interned.after(slot)
        return -1

    @cython.cfunc
    @cython.exceptval(check=False)
    def _same_parts(self, at: cython.int, count: cython.int, start: cython.int, size: cython.int) -> cython.bint:
        """Return True if ``count`` parts from index ``at`` are the ``size`` nodes on the stack from ``start`` on."""
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
        """Return 1 if two ranges of the words array, ``[one, end)`` and ``[other, stop)``, have the same words, each
        followed by the same node; else 0."""
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
        """Return the node of a kind with these integer arguments."""
        hashed: cython.ulonglong = mix(mix(mix(mix(BASIS, kind), a), b), c)
        node: cython.int = self._find(kind, a, b, c, hashed)
        return node if node >= 0 else self._enter(kind, a, b, c, hashed)

    # -- construction ------------------------------------------------------------------------------------------

    @cython.ccall
    @cython.exceptval(-1, check=False)
    def literal(self, data: bytes) -> cython.int:
        """Return the language of exactly ``data``; equal bytes are one node, and no bytes are EPSILON."""
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
        return self._things[cell(self, node, node_kinds.A)]

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
        """Do `seq` without the check of arguments. Nested sequences are made right-nested, so that equal concatenations
        are one node; their parts are on the stack meanwhile, so that long ones need no recursion."""
        if left == node_kinds.EMPTY or right == node_kinds.EMPTY:
            return node_kinds.EMPTY
        if left == node_kinds.EPSILON:
            return right
        if right == node_kinds.EPSILON:
            return left
        start: cython.int = self._top
        while cell(self, left, node_kinds.KIND) == node_kinds.SEQ:
            self._push(cell(self, left, node_kinds.A))
            left = cell(self, left, node_kinds.B)
        try:
            right = self._pair(left, right)
            while self._top > start:
                self._top -= 1
                right = self._pair(self._stack[self._top], right)
        finally:
            self._top = start  # also if an error is raised, when the store is full
        return right

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _pair(self, left: cython.int, right: cython.int) -> cython.int:
        """Return the concatenation of two nodes, neither EMPTY nor EPSILON; the first is not a SEQ."""
        joined: cython.int
        if cell(self, left, node_kinds.KIND) == node_kinds.LITERAL:
            is_seq: cython.bint = cell(self, right, node_kinds.KIND) == node_kinds.SEQ
            joined = self._joined(self._bytes(left), cell(self, right, node_kinds.A) if is_seq else right)
            if joined >= 0:
                return self._make(node_kinds.SEQ, joined, cell(self, right, node_kinds.B), 0) if is_seq else joined
        return self._make(node_kinds.SEQ, left, right, 0)

    @cython.cfunc
    @cython.exceptval(-2, check=False)
    def _joined(self, data: bytes, follows: cython.int) -> cython.int:
        """Return the joined literal of two; -1 if it is not two literals, or longer than `MAX_JOINED` bytes (the
        closing brackets of deep nesting would become one literal for each depth)."""
        if cell(self, follows, node_kinds.KIND) != node_kinds.LITERAL:
            return -1
        more: bytes = self._bytes(follows)
        return self.literal(data + more) if len(data) + len(more) <= node_kinds.MAX_JOINED else -1

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
                if cell(self, part, node_kinds.KIND) == node_kinds.ALT:
                    for i in range(cell(self, part, node_kinds.B)):
                        self._push(self._parts[cell(self, part, node_kinds.A) + i])
                elif part != node_kinds.EMPTY:
                    self._push(part)
            self._distinct(start, 1)
            return self._alt(start)
        finally:
            self._top = start

    def merged(self, parts: list, depth: cython.int = 0):
        """Return the union of nodes, with common first nodes factored out to some depth: ``ab | ac`` is ``a(b | c)``.

        Continuations of ambiguous texts are sequences of the same few nodes. Factored, they take space linear in the
        length of the text, like a graph-structured stack (Tomita 1987); a list would double with each bracket.
        """
        node: cython.int
        first: cython.int
        rest: cython.int
        i: cython.int
        each: list = []
        for node in parts:
            if cell(self, node, node_kinds.KIND) == node_kinds.ALT:
                for i in range(cell(self, node, node_kinds.B)):
                    each.append(self._parts[cell(self, node, node_kinds.A) + i])
            else:
                each.append(node)
        key = tuple(sorted(set(each)))
        if len(key) < 2 or depth == _MAX_SHARED:  # nothing to factor out, or too deep
            return self.alt(key)
        found = self._merged.get(key)
        if found is not None:
            return found
        groups: dict = {}
        for node in key:
            first = node
            rest = node_kinds.EPSILON
            if cell(self, node, node_kinds.KIND) == node_kinds.SEQ:
                first = cell(self, node, node_kinds.A)
                rest = cell(self, node, node_kinds.B)
            groups.setdefault(first, []).append(rest)
        result = self.alt([self._seq(first, self.merged(rests, depth + 1)) for first, rests in groups.items()])
        if depth == 0 and len(self._merged) >= _MAX_MERGED:  # not in recursive calls, which need the shared parts again
            self._merged.clear()
        self._merged[key] = result
        return result

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _alt(self, start: cython.int) -> cython.int:
        """Return the union of the nodes on the stack above ``start``, as they are; the stack is unchanged."""
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
        """Return the union of distinct literals, each followed by its own node (``entries``: a dictionary, or pairs).
        Literals whose node is EMPTY are left out."""
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
                # Prefix sums, by which the hash of any range of words takes one subtraction.
                self._sums[end + 1] = self._sums[end] + (mix(mix(BASIS, hash(name)), node) >> 32)
                end += 1
        if end == first:
            return node_kinds.EMPTY
        if end == first + 1:
            return self._seq(self.literal(self._words.pop()), self._follows[first])
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
            expand: returns the node of the rule. It may have a method ``otherwise``, called if the rule exceeds a
                limit, which returns a subset of the rule's language as a node (empty only if the rule is), or None.
            as_empty_as: a node that is empty iff the rule is; emptiness is decided by it, without expanding the rule.
            as_short_as: returns a node of a subset of the rule's texts with a shortest one; the search for shortest
                texts uses it.
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

    @cython.ccall
    def lazy_each(self, family: object, numbers: list, as_empty_as: list) -> list:
        """Return the nodes of the rules of one family: the rule of ``number`` is ``family(number)``.

        They cost less than as many rules with keys, and are not shared: each call makes new ones.

        Args:
            family: returns the node of a rule, by its number.
            numbers: a number for each rule, not negative.
            as_empty_as: a node for each, as for `lazy`; -1: none; `UNASKED`: it is what ``family.as_empty_as(number)``
                returns when that is needed, a node or -1.
        """
        found: list = []
        number: cython.int
        instead: cython.int
        at: cython.int = len(self._things)
        self._things.append(family)
        for number, instead in zip(numbers, as_empty_as, strict=True):
            if instead >= 0:
                self._check(instead)
            found.append(self._new(node_kinds.LAZY, at, instead, -1 - number))
        return found

    def dynamic(self, key, static: cython.int, resolve, forbids: cython.int = 0):
        """Return a dependent node, which stands for the node ``resolve(text so far)``.

        Args:
            key: identifies it in this store.
            static: a node whose language includes all languages that ``resolve`` may return.
            resolve: a pure function of the text; for `ALL` with a method ``planned``, which returns the node from which
                completions are planned.
            forbids: which continuations it may forbid: one of `SOME`, `REPEATED_NAMES`, `ALL` and `RIVALS` of
                `node_kinds`; for `RIVALS` it is a `DistinctObjects`.
        """
        self._check(static)
        found = self._places.get(key)
        if found is None:
            found = self._places[key] = self._new(node_kinds.DYNAMIC, len(self._things), static, forbids)
            self._things.append(resolve)
        return found

    # -- parts of nodes ----------------------------------------------------------------------------------------

    def kind(self, node: cython.int):
        """Return the kind of a node."""
        self._check(node)
        return cell(self, node, node_kinds.KIND)

    def args(self, node: cython.int):
        """Return the arguments of the method that made a node, without keys; for WORDS, the sorted pairs and the number
        of bytes already read of each word; for DYNAMIC, ``(static, resolve, forbids)``."""
        self._check(node)
        kind: cython.int = cell(self, node, node_kinds.KIND)
        a: cython.int = cell(self, node, node_kinds.A)
        b: cython.int = cell(self, node, node_kinds.B)
        c: cython.int = cell(self, node, node_kinds.C)
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
