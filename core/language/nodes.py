# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False, cdivision=True
"""Languages of *written* text: hash-consed grammar nodes over bytes, expanded lazily.

A node is a small integer; equal nodes are the same integer. What kinds there are says ``kinds.py``.

Questions: `nullable`, `is_empty` (short-circuited: it looks no further than it must) and `heads` (Antimirov's partial
derivatives, in head normal form: what a text may begin with, and what then remains).

Compiled where that is possible (Cython in pure-Python mode). Nodes are rows of one array of integers, found again by a
hash table over them; what is no integer (bytes, names, rules) stands in one list. Whatever goes from node to node does
so on a stack of its own: grammars may be thousands of levels deep.
"""

from __future__ import annotations

from array import array

from ..errors import GrammarError, LimitError
from . import kinds
from .terms import Terms

try:
    import cython
except ImportError:  # interpreted, without Cython installed
    from .. import cython_standin as cython  # type: ignore[no-redef]

#: Whether this module was compiled when it was installed.
COMPILED: bool = bool(cython.compiled)

#: One way a text may begin: an atomic node (LITERAL, TEXT, COUNTED, SPECIAL, DYNAMIC), then another node.
Head = tuple[int, int]

# The kinds and limits once more, as constants of C.
_LITERAL = cython.declare(cython.int, kinds.LITERAL)
_TEXT = cython.declare(cython.int, kinds.TEXT)
_COUNTED = cython.declare(cython.int, kinds.COUNTED)
_SPECIAL = cython.declare(cython.int, kinds.SPECIAL)
_DYNAMIC = cython.declare(cython.int, kinds.DYNAMIC)
_EMPTY_KIND = cython.declare(cython.int, kinds.EMPTY_KIND)
_EPSILON_KIND = cython.declare(cython.int, kinds.EPSILON_KIND)
_SEQ = cython.declare(cython.int, kinds.SEQ)
_ALT = cython.declare(cython.int, kinds.ALT)
_REPEAT = cython.declare(cython.int, kinds.REPEAT)
_WORDS = cython.declare(cython.int, kinds.WORDS)
_LAZY = cython.declare(cython.int, kinds.LAZY)
_MAX_JOINED = cython.declare(cython.int, kinds.MAX_JOINED)

# The columns of a node's row: its kind; its arguments (by kind: LITERAL, SPECIAL, LAZY and DYNAMIC: where its bytes,
# name or rule stand; SEQ: two nodes; ALT: where its parts begin, and how many; REPEAT and COUNTED: part, least, most or
# -1; WORDS: first and last word, and from which byte on; LAZY: the node that is empty iff it is or -1, and what it
# expands to plus one; DYNAMIC: its static node, and its own kind); its hash; whether it has a text, and the empty text
# (0: not known yet); where its heads begin plus one (0: not known yet, -1: being looked for); where it is in a search.
_KIND = cython.declare(cython.int, 0)
_A = cython.declare(cython.int, 1)
_B = cython.declare(cython.int, 2)
_C = cython.declare(cython.int, 3)
_HASH = cython.declare(cython.int, 4)
_HAS_TEXT = cython.declare(cython.int, 5)
_NULLABLE = cython.declare(cython.int, 6)
_HEADS = cython.declare(cython.int, 7)
_MARK = cython.declare(cython.int, 8)
_WIDTH = cython.declare(cython.int, 9)

_NO = cython.declare(cython.int, 1)
_YES = cython.declare(cython.int, 2)
_EMPTY = cython.declare(cython.int, 0)
_EPSILON = cython.declare(cython.int, 1)

#: From how many entries on duplicates are found by hashing.
_MANY = cython.declare(cython.int, 16)

_FNV_BASIS = cython.declare(cython.ulonglong, 14695981039346656037)
_FNV_PRIME = cython.declare(cython.ulonglong, 1099511628211)


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _mix(mixed: cython.ulonglong, value: cython.longlong) -> cython.ulonglong:
    """A hash (FNV-1a, by words), gone on with."""
    mixed = (mixed ^ cython.cast(cython.ulonglong, value)) * _FNV_PRIME
    if not cython.compiled:
        mixed &= 0xFFFFFFFFFFFFFFFF
    return mixed ^ (mixed >> 29)


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _folded(mixed: cython.ulonglong) -> cython.int:
    """A hash as it is kept: positive."""
    return cython.cast(cython.int, (mixed ^ (mixed >> 33)) & 0x3FFFFFFF) + 1


def _wider(old, size: int):
    """A copy of an array with room for ``size`` items, zero-filled."""
    new = array(old.typecode, bytes(size * old.itemsize))
    new[: len(old)] = old
    return new


def _left_recursion() -> GrammarError:
    return GrammarError("a rule refers to itself without writing anything", hint="remove the circular reference")


@cython.cclass
class Nodes:
    """The hash-consing store of grammar nodes.

    Attributes:
        terms: the store of the terms used by TEXT nodes.
        EMPTY: the empty language.
        EPSILON: the language of the empty text.
        known: nodes of what many grammars share, by whatever stands for it.
        builders: who builds nodes here, by what they build: the parts of one grammar that are equal share their rules.
            They have a method ``release``, which lets go of whatever knows them.
        weight: bytes that builders and their documents take (estimated by those who add them).
        head_pool: where `lay_heads` lays heads; another array when it has grown.

    Args:
        terms: the store of terms; None: a new one.
        shared: many grammars will share the store: it may hold ``SHARED_ROOM`` more than one grammar may need.
    """

    terms = cython.declare(object, visibility="readonly")
    known = cython.declare(object, visibility="readonly")
    builders = cython.declare(object, visibility="readonly")
    weight = cython.declare(object, visibility="public")
    head_pool = cython.declare(object, visibility="readonly")
    EMPTY = cython.declare(cython.int, visibility="readonly")
    EPSILON = cython.declare(cython.int, visibility="readonly")
    _room: cython.int
    _count: cython.int
    _cells: cython.int[::1]
    _cells_array: object
    _table: cython.int[::1]
    _slot: cython.int
    # what is no integer: bytes, names, rules until they are expanded, what resolves a place; and where it is found
    _things: list
    _literals: dict
    _specials: dict
    _rules: dict
    _places: dict
    _opening: set
    # the parts of ALT nodes
    _parts: cython.int[::1]
    _parts_array: object
    _parts_used: cython.int
    # the lists of WORDS nodes, one after the other: words, what follows, and sums of hashes up to there
    _words: list
    _follows: cython.int[::1]
    _follows_array: object
    _sums: cython.longlong[::1]
    _sums_array: object
    # heads: their number, then for each an atomic node and what remains
    _heads: cython.int[::1]
    _heads_used: cython.int
    # what is at work: frames of searches, and lists that are being made
    _stack: cython.int[::1]
    _stack_array: object
    _top: cython.int

    def __init__(self, terms=None, *, shared=False):
        self.terms = Terms() if terms is None else terms
        self._room = kinds.MAX_NODES + (kinds.SHARED_ROOM if shared else 0)
        self.terms.room += kinds.SHARED_ROOM if shared else 0
        self.known = {}
        self.builders = {}
        self.weight = 0
        self._cells_array = array("i", bytes(4 * _WIDTH * 128))
        self._cells = self._cells_array
        self._table = array("i", bytes(4 * 256))
        self._things = []
        self._literals = {}
        self._specials = {}
        self._rules = {}
        self._places = {}
        self._opening = set()
        self._parts_array = array("i", bytes(4 * 128))
        self._parts = self._parts_array
        self._words = []
        self._follows_array = array("i", bytes(4 * 32))
        self._follows = self._follows_array
        self._sums_array = array("q", bytes(8 * 33))
        self._sums = self._sums_array
        self.head_pool = array("i", bytes(4 * 256))
        self._heads = self.head_pool
        self._heads_used = 1  # no heads: the same for all that have none
        self._stack_array = array("i", bytes(4 * 64))
        self._stack = self._stack_array
        self._count = self._parts_used = self._top = self._slot = 0
        self.EMPTY = self._new(_EMPTY_KIND, 0, 0, 0, 0)
        self.EPSILON = self._new(_EPSILON_KIND, 0, 0, 0, 0)
        self._learn(_EMPTY, _NO, _NO)
        self._learn(_EPSILON, _YES, _YES)
        self._cells[_EMPTY * _WIDTH + _HEADS] = self._cells[_EPSILON * _WIDTH + _HEADS] = 1

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
    @cython.inline
    @cython.exceptval(check=False)
    def _cell(self, node: cython.int, column: cython.int) -> cython.int:
        return self._cells[node * _WIDTH + column]

    @cython.cfunc
    @cython.inline
    @cython.exceptval(-1, check=False)
    def _check(self, node: cython.int) -> cython.int:
        if node < 0 or node >= self._count:
            raise IndexError("no such node")
        return 0

    @cython.cfunc
    @cython.inline
    @cython.exceptval(check=False)
    def _learn(self, node: cython.int, has_text: cython.int, nullable: cython.int) -> cython.void:
        self._cells[node * _WIDTH + _HAS_TEXT] = has_text
        self._cells[node * _WIDTH + _NULLABLE] = nullable

    @cython.cfunc
    @cython.inline
    @cython.exceptval(-1, check=False)
    def _push(self, value: cython.int) -> cython.int:
        if self._top == len(self._stack):
            self._stack_array = _wider(self._stack_array, 2 * self._top)
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
            raise LimitError(f"the grammar needs more than {kinds.MAX_NODES:,} states", hint="split the schema")
        at: cython.int = node * _WIDTH
        if at + _WIDTH > len(self._cells):
            self._cells_array = _wider(self._cells_array, 2 * len(self._cells))
            self._cells = self._cells_array
        self._cells[at + _KIND] = kind
        self._cells[at + _A] = a
        self._cells[at + _B] = b
        self._cells[at + _C] = c
        self._cells[at + _HASH] = mixed
        if kind <= _SPECIAL:
            self._cells[at + _HAS_TEXT] = _YES
        if kind <= _DYNAMIC and kind != _TEXT:
            self._cells[at + _NULLABLE] = _NO  # a DYNAMIC place is never skipped: the text decides when it gets there
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
            self._table = array("i", bytes(8 * size))
            size *= 2
            for node in range(self._count):
                mixed = self._cell(node, _HASH)
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
        while True:
            node = self._table[slot] - 1
            if node < 0:
                self._slot = slot
                return -1
            at = node * _WIDTH
            if self._cells[at + _HASH] == mixed and self._cells[at + _KIND] == kind:
                if kind == _ALT:
                    if self._same_parts(self._cells[at + _A], self._cells[at + _B], a, b):
                        return node
                elif kind == _WORDS:
                    if self._cells[at + _C] == c and self._same_words(self._cells[at + _A], self._cells[at + _B], a, b):
                        return node
                elif self._cells[at + _A] == a and self._cells[at + _B] == b and self._cells[at + _C] == c:
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
    @cython.inline
    @cython.exceptval(-1, check=False)
    def _make(self, kind: cython.int, a: cython.int, b: cython.int, c: cython.int) -> cython.int:
        """The node of a kind whose arguments are integers."""
        mixed: cython.int = _folded(_mix(_mix(_mix(_mix(_FNV_BASIS, kind), a), b), c))
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
            return _EPSILON
        node: cython.int = self._new(_LITERAL, len(self._things), 0, 0, 0)
        self._things.append(data)
        self._literals[data] = node
        return node

    @cython.cfunc
    @cython.inline
    def _bytes(self, node: cython.int) -> bytes:
        return self._things[self._cell(node, _A)]

    def text(self, term: int):
        """The strings of ``term``, written as UTF-8."""
        if self.terms.is_empty(term):
            return _EMPTY
        return _EPSILON if term == self.terms.EPSILON else self._make(_TEXT, term, 0, 0)

    def json_string(self, term: int):
        """JSON strings (quotes included, any escapes) whose decoded value is in ``term``."""
        bounds = self.terms.length_bounds(term)
        if bounds is not None and bounds != (0, None):
            return self.counted(*bounds)
        return _EMPTY if self.terms.is_empty(term) else self._make(_TEXT, term, 1, 0)

    def counted(self, least, most):
        """JSON strings of between ``least`` and ``most`` characters."""
        if most is not None and least > most:
            return _EMPTY
        endless = most is None or most > kinds.ENDLESS
        return self._make(_COUNTED, 0, min(least, kinds.ENDLESS), -1 if endless else most)

    def special(self, name: str):
        """The control token called ``name``."""
        found = self._specials.get(name)
        if found is None:
            found = self._specials[name] = self._new(_SPECIAL, len(self._things), 0, 0, 0)
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
        if left == _EMPTY or right == _EMPTY:
            return _EMPTY
        if left == _EPSILON:
            return right
        if right == _EPSILON:
            return left
        start: cython.int = self._top
        while self._cell(left, _KIND) == _SEQ:  # nested to the right, whatever the order in which parts come together
            self._push(self._cell(left, _A))
            left = self._cell(left, _B)
        right = self._pair(left, right)
        while self._top > start:
            self._top -= 1
            right = self._pair(self._stack[self._top], right)
        return right

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _pair(self, left: cython.int, right: cython.int) -> cython.int:
        """Concatenation of two nodes that are more than the empty text, the first of them no SEQ."""
        joined: cython.int
        if self._cell(left, _KIND) == _LITERAL:
            is_seq: cython.bint = self._cell(right, _KIND) == _SEQ
            joined = self._joined(self._bytes(left), self._cell(right, _A) if is_seq else right)
            if joined >= 0:
                return self._make(_SEQ, joined, self._cell(right, _B), 0) if is_seq else joined
        return self._make(_SEQ, left, right, 0)

    @cython.cfunc
    @cython.exceptval(-2, check=False)
    def _joined(self, data: bytes, follows: cython.int) -> cython.int:
        """ "ab" "cd" as "abcd", unless that grows without end (the closing brackets of deep nesting); else -1."""
        if self._cell(follows, _KIND) != _LITERAL:
            return -1
        more: bytes = self._bytes(follows)
        return self._literal(data + more) if len(data) + len(more) <= _MAX_JOINED else -1

    def sequence(self, parts):
        """Concatenation of many nodes."""
        result: cython.int = _EPSILON
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
                if self._cell(part, _KIND) == _ALT:
                    for i in range(self._cell(part, _B)):
                        self._push(self._parts[self._cell(part, _A) + i])
                elif part != _EMPTY:
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
            return _EMPTY
        if count == 1:
            return self._stack[start]
        hashed: cython.ulonglong = _mix(_FNV_BASIS, _ALT)
        for i in range(count):
            hashed = _mix(hashed, self._stack[start + i])
        mixed: cython.int = _folded(hashed)
        node: cython.int = self._find(_ALT, start, count, 0, mixed)
        if node >= 0:
            return node
        node = self._enter(_ALT, self._parts_used, count, 0, mixed)
        if self._parts_used + count > len(self._parts):
            self._parts_array = _wider(self._parts_array, 2 * self._parts_used + count)
            self._parts = self._parts_array
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
            return _EMPTY
        endless = most is None or most > kinds.ENDLESS
        return self._repeat(part, min(least, kinds.ENDLESS), -1 if endless else most)

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _repeat(self, part: cython.int, least: cython.int, most: cython.int) -> cython.int:
        if most == 0 or part == _EPSILON:
            return _EPSILON
        if part == _EMPTY:
            return _EPSILON if least == 0 else _EMPTY
        return part if least == 1 and most == 1 else self._make(_REPEAT, part, least, most)

    def words(self, entries):
        """Each ``data`` followed by its own node; ``data`` must be distinct."""
        known: dict = entries if type(entries) is dict else dict(entries)
        names: list = sorted(known)
        first: cython.int = len(self._words)
        end: cython.int = first
        node: cython.int
        if first + len(names) > len(self._follows):
            self._follows_array = _wider(self._follows_array, 2 * first + len(names))
            self._follows = self._follows_array
            self._sums_array = _wider(self._sums_array, 2 * first + len(names) + 1)
            self._sums = self._sums_array
        for name in names:
            node = known[name]
            self._check(node)
            if node != _EMPTY:
                self._words.append(name)
                self._follows[end] = node
                self._sums[end + 1] = self._sums[end] + _folded(_mix(_mix(_FNV_BASIS, hash(name)), node))
                end += 1
        if end == first:
            return _EMPTY
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
        hashed: cython.ulonglong = _mix(_mix(_FNV_BASIS, _WORDS), depth)
        mixed: cython.int = _folded(_mix(hashed, self._sums[end] - self._sums[first]))
        node: cython.int = self._find(_WORDS, first, end, depth, mixed)
        return node if node >= 0 else self._enter(_WORDS, first, end, depth, mixed)

    def lazy(self, key, expand, *, as_empty_as=None):
        """A rule. ``key`` identifies it in this store; ``expand`` is called once, when first needed.

        ``as_empty_as``: a node that is empty iff the rule is; it is looked into instead.
        """
        found = self._rules.get(key)
        if found is None:
            instead: cython.int = -1 if as_empty_as is None else as_empty_as
            found = self._rules[key] = self._new(_LAZY, len(self._things), instead, 0, 0)
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
            found = self._places[key] = self._new(_DYNAMIC, len(self._things), static, kind, 0)
            self._things.append(resolve)
        return found

    # -- what nodes are ----------------------------------------------------------------------------------------

    def kind(self, node: cython.int):
        """The kind of a node."""
        self._check(node)
        return self._cell(node, _KIND)

    def args(self, node: cython.int):
        """What a node was made of: the arguments of the method of its kind, but for keys; of WORDS the sorted pairs and
        how many bytes of each word are left out, of DYNAMIC ``(static, resolve, kind)``."""
        self._check(node)
        kind: cython.int = self._cell(node, _KIND)
        a: cython.int = self._cell(node, _A)
        b: cython.int = self._cell(node, _B)
        c: cython.int = self._cell(node, _C)
        if kind == _LITERAL or kind == _SPECIAL:
            return (self._things[a],)
        if kind == _TEXT:
            return (a, b == 1)
        if kind == _COUNTED:
            return (b, None if c < 0 else c)
        if kind == _SEQ:
            return (a, b)
        if kind == _ALT:
            return tuple([self._parts[a + i] for i in range(b)])
        if kind == _REPEAT:
            return (a, b, None if c < 0 else c)
        if kind == _WORDS:
            return tuple([(self._words[i], self._follows[i]) for i in range(a, b)]), c
        return (b, self._things[a], c) if kind == _DYNAMIC else ()

    # -- questions ---------------------------------------------------------------------------------------------

    def expand(self, node: cython.int):
        """What a LAZY node stands for (never itself LAZY).

        Raises:
            GrammarError: the rule refers to itself before anything is written (left recursion).
        """
        self._check(node)
        return self._expand(node)

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _expand(self, node: cython.int) -> cython.int:
        current: cython.int = self._cell(node, _C) - 1
        if current >= 0:
            return current
        if node in self._opening:
            raise _left_recursion()
        chain: list = []
        current = node
        self._opening.add(node)
        try:
            while self._cell(current, _KIND) == _LAZY:
                if self._cell(current, _C):
                    current = self._cell(current, _C) - 1
                    break
                if current in chain:
                    raise _left_recursion()
                chain.append(current)
                current = self._things[self._cell(current, _A)]()
                self._check(current)
        finally:
            self._opening.discard(node)
        for each in chain:
            node = each
            self._cells[node * _WIDTH + _C] = current + 1
            self._things[self._cell(node, _A)] = None  # free what the closure holds
        return current

    def nullable(self, node: cython.int):
        """Whether the empty text is in the language."""
        self._check(node)
        return self._answer(node, _NULLABLE) == _YES

    def is_empty(self, node: cython.int):
        """Whether the language has no text at all.

        Looks no further than it must: an optional part is never visited, the first non-empty alternative
        decides. Recursion is the least fixpoint (a rule that can only finish through itself is empty).
        """
        self._check(node)
        return self._answer(node, _HAS_TEXT) == _NO

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _answer(self, node: cython.int, question: cython.int) -> cython.int:
        """Whether a language has a text, or the empty text."""
        known: cython.int = self._cell(node, question)
        if known:
            return known
        if question == _HAS_TEXT:  # known of its parts?
            part: cython.int = self._cell(node, _B)
            if self._cell(node, _KIND) == _LAZY:
                known = 0 if part < 0 else self._cell(part, _HAS_TEXT)
            elif self._cell(node, _KIND) == _SEQ:
                known = self._cell(part, _HAS_TEXT)
                part = self._cell(self._cell(node, _A), _HAS_TEXT)
                known = _NO if known == _NO or part == _NO else _YES if known and part else 0
            if known:
                self._cells[node * _WIDTH + question] = known
                return known
        start: cython.int = self._top
        try:
            return self._search(node, question)
        finally:
            while self._top > start:  # left by an error
                self._leave()

    @cython.cfunc
    @cython.exceptval(check=False)
    def _leave(self) -> cython.void:
        """Take the last node in progress from the stack."""
        self._top -= 4
        self._cells[self._stack[self._top] * _WIDTH + _MARK] = self._stack[self._top + 3]

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _meet(self, node: cython.int) -> cython.int:
        """Put a node on the stack: the node, which of its children is next, the lowest node in progress that it leaned
        on, and where the node stands in a search that this one interrupts."""
        at: cython.int = self._top
        self._push(node)
        self._push(0)
        self._push(at)
        self._push(self._cell(node, _MARK))
        self._cells[node * _WIDTH + _MARK] = at + 1
        return 0

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _search(self, node: cython.int, question: cython.int) -> cython.int:
        """Depth-first on the stack. Nodes in progress count as "no"; a "no" that leaned on one of them further up is
        provisional."""
        start: cython.int = self._top
        at: cython.int
        child: cython.int
        mark: cython.int
        lowest: cython.int
        verdict: cython.int
        answer: cython.int = 0  # of the child that was asked last
        self._meet(node)
        while True:
            at = self._top - 4
            node = self._stack[at]
            verdict = 0
            while not verdict:
                if answer and answer == (_YES if self._is_any(node) else _NO):
                    verdict = answer
                    break
                answer = 0
                child = self._child(node, self._stack[at + 1], question)
                if child < 0:  # no more children: -1 for "no", -2 for "yes"
                    verdict = -child
                    break
                self._stack[at + 1] += 1
                answer = self._cell(child, question)
                if not answer:
                    mark = self._cell(child, _MARK) - 1
                    if mark < start:
                        self._meet(child)
                        break
                    answer = _NO
                    if mark < self._stack[at + 2]:
                        self._stack[at + 2] = mark
            if not verdict:
                continue
            answer = verdict
            lowest = self._stack[at + 2]
            self._leave()
            if verdict == _YES or lowest >= at:
                self._cells[node * _WIDTH + question] = verdict
            if at == start:
                return verdict
            if verdict == _NO and lowest < self._stack[at - 2]:
                self._stack[at - 2] = lowest

    @cython.cfunc
    @cython.inline
    @cython.exceptval(check=False)
    def _is_any(self, node: cython.int) -> cython.bint:
        """Whether one child that says yes decides; else one that says no does."""
        return self._cell(node, _KIND) == _ALT or self._cell(node, _KIND) == _WORDS

    @cython.cfunc
    @cython.exceptval(-3, check=False)
    def _child(self, node: cython.int, number: cython.int, question: cython.int) -> cython.int:
        """The child that is to be asked, or the answer without one: -1 for "no", -2 for "yes"."""
        kind: cython.int = self._cell(node, _KIND)
        a: cython.int = self._cell(node, _A)
        b: cython.int = self._cell(node, _B)
        if kind == _SEQ:
            return a if number == 0 else b if number == 1 else -2
        if kind == _ALT:
            return self._parts[a + number] if number < b else -1
        if kind == _WORDS:
            if question == _NULLABLE:
                return self._follows[a] if number == 0 and self._is_whole(a, self._cell(node, _C)) else -1
            return self._follows[a + number] if a + number < b else -1
        if number:
            return -2
        if kind == _REPEAT:
            return -2 if b == 0 else a
        if kind == _LAZY:
            return self._expand(node) if question == _NULLABLE or b < 0 else b
        if kind == _DYNAMIC:
            return b
        return -2 if b == 0 and self.terms.nullable(a) else -1  # TEXT

    @cython.cfunc
    @cython.inline
    @cython.exceptval(check=False)
    def _is_whole(self, word: cython.int, depth: cython.int) -> cython.bint:
        return len(cython.cast(bytes, self._words[word])) == depth

    # -- heads -------------------------------------------------------------------------------------------------

    def heads(self, node: cython.int):
        """Every way a text of ``node`` may begin, as `Head` pairs. Law: the language is the union of ``atom rest`` over
        the heads, and the empty text if `nullable`; no head leads to an empty language."""
        self._check(node)
        self._need_heads(node)
        at: cython.int = self._cell(node, _HEADS)
        count: cython.int = self._heads[at - 1]
        return tuple([(self._heads[at + 2 * i], self._heads[at + 2 * i + 1]) for i in range(count)])

    def lay_heads(self, node: cython.int):
        """Where in `head_pool` the heads of ``node`` are: their number, then for each its atom and what remains."""
        self._check(node)
        self._need_heads(node)
        return self._cell(node, _HEADS) - 1

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _need_heads(self, node: cython.int) -> cython.int:
        """Make sure that the heads of a node are known: first those of what it begins with."""
        start: cython.int = self._top
        at: cython.int
        child: cython.int
        if self._cell(node, _HEADS) > 0:
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
            while self._top > start:  # left by an error
                self._top -= 2
                if self._cell(self._stack[self._top], _HEADS) < 0:
                    self._cells[self._stack[self._top] * _WIDTH + _HEADS] = 0
        return 0

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _begin(self, node: cython.int) -> cython.int:
        if self._cell(node, _HEADS) < 0:
            raise _left_recursion()
        self._push(node)
        self._push(0)
        self._cells[node * _WIDTH + _HEADS] = -1
        return 0

    @cython.cfunc
    @cython.exceptval(-2, check=False)
    def _first(self, node: cython.int, at: cython.int) -> cython.int:
        """The next of the nodes with which ``node`` may begin whose heads are not known yet, or -1."""
        kind: cython.int = self._cell(node, _KIND)
        a: cython.int = self._cell(node, _A)
        b: cython.int = self._cell(node, _B)
        child: cython.int
        number: cython.int
        while True:
            number = self._stack[at + 1]
            self._stack[at + 1] = number + 1
            if kind == _ALT:
                if number == b:
                    return -1
                child = self._parts[a + number]
            elif kind == _SEQ:
                if number == 2 or self._answer(b, _HAS_TEXT) == _NO:
                    return -1
                if number == 1 and self._answer(a, _NULLABLE) == _NO:
                    return -1
                child = b if number else a
            elif number or kind <= _DYNAMIC:
                return -1
            elif kind == _REPEAT:
                child = a
            elif kind == _LAZY:
                child = self._expand(node)
            elif self._is_whole(a, self._cell(node, _C)):
                child = self._follows[a]
            else:
                return -1
            if self._cell(child, _KIND) > _DYNAMIC and self._cell(child, _HEADS) <= 0:
                if kind == _LAZY or self._answer(child, _HAS_TEXT) == _YES:
                    return child

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _gather(self, node: cython.int) -> cython.int:
        """Lay the heads of a node, once those of what it begins with are known."""
        kind: cython.int = self._cell(node, _KIND)
        a: cython.int = self._cell(node, _A)
        b: cython.int = self._cell(node, _B)
        start: cython.int = self._top
        i: cython.int
        if kind == _LAZY:
            a = self._expand(node)
            if self._cell(a, _KIND) > _DYNAMIC:
                self._cells[node * _WIDTH + _HEADS] = self._cell(a, _HEADS)
                return 0
            self._add(a, _EPSILON)
        elif kind == _SEQ:
            if self._answer(b, _HAS_TEXT) == _YES:
                self._add(a, b)
                if self._answer(a, _NULLABLE) == _YES:
                    self._add(b, _EPSILON)
                    self._distinct(start, 2)
        elif kind == _ALT:
            for i in range(a, a + b):
                self._add(self._parts[i], _EPSILON)
            self._distinct(start, 2)
        elif kind == _REPEAT:
            i = self._cell(node, _C)
            self._add(a, self._repeat(a, b - 1 if b else 0, -1 if i < 0 else i - 1))
        elif kind == _WORDS:
            self._add_words(a, b, self._cell(node, _C))
        else:
            self._push(node)
            self._push(_EPSILON)
        size: cython.int = self._top - start
        at: cython.int = self._heads_used
        if size == 0:
            self._cells[node * _WIDTH + _HEADS] = 1
            return 0
        if at + size + 1 > len(self._heads):
            self.head_pool = _wider(self.head_pool, 2 * at + size)
            self._heads = self.head_pool
        self._heads[at] = size // 2
        for i in range(size):
            self._heads[at + 1 + i] = self._stack[start + i]
        self._cells[node * _WIDTH + _HEADS] = at + 1
        self._heads_used = at + 1 + size
        self._top = start
        return 0

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _add(self, node: cython.int, right: cython.int) -> cython.int:
        """Push the heads of a node, if it has a text, followed by what is not empty."""
        i: cython.int
        if self._answer(node, _HAS_TEXT) == _NO:
            return 0
        if self._cell(node, _KIND) <= _DYNAMIC:
            self._push(node)
            self._push(right)
            return 0
        at: cython.int = self._cell(node, _HEADS)
        for i in range(at, at + 2 * self._heads[at - 1], 2):
            self._push(self._heads[i])
            self._push(self._seq(self._heads[i + 1], right))
        return 0

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _add_words(self, first: cython.int, end: cython.int, depth: cython.int) -> cython.int:
        """One head per next byte: the longest common prefix of the group, then the rest of the group."""
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
            self._add(self._follows[first], _EPSILON)
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
            if self._answer(rest, _HAS_TEXT) == _YES:
                if common == len(word) and low == first + 1:  # a single word: it joins what follows, as in `seq`
                    is_seq: cython.bint = self._cell(rest, _KIND) == _SEQ
                    joined = self._joined(word[depth:], self._cell(rest, _A) if is_seq else rest)
                    if joined >= 0:
                        self._push(joined)
                        self._push(self._cell(rest, _B) if is_seq else _EPSILON)
                        first = low
                        continue
                self._push(self._literal(word[depth:common]))
                self._push(rest)
            first = low
        return 0
