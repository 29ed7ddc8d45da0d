# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False, cdivision=True
"""Byte trie of a vocabulary, in flat arrays in pre-order. Compiled where that is possible."""

from __future__ import annotations

from array import array

try:
    import cython
except ImportError:  # interpreted, without Cython installed
    from ..compiled import standin as cython  # type: ignore[no-redef]

if not cython.compiled:  # else they are declared
    from ..automaton import encoding
    from ..compiled.arrays import copied, grown


def _byte_groups() -> array:
    """Return the group of each byte, as a bit.

    A group is one small letter, one mark of punctuation or the space, or several bytes together: the digits; A to F; G
    to Z; two rare marks; all bytes that are not ASCII; all others.
    """
    members = [bytes((byte,)) for byte in range(0x61, 0x7B)]
    members += [b"0123456789", b"ABCDEF", b"GHIJKLMNOPQRSTUVWXYZ", b"^`"]
    members += [bytes((byte,)) for byte in b" !\"#$%&'()*+,-./:;<=>?@[\\]_{|}~"]
    members.append(bytes(range(0x80, 256)))
    groups = array("Q", [encoding.OTHER]) * 256
    for number, group in enumerate(members):
        for byte in group:
            groups[byte] = 1 << number
    return groups


#: The group of each byte, as a bit.
GROUPS = _byte_groups()


@cython.cfunc
@cython.exceptval(check=False)
def is_space(code: cython.int) -> cython.bint:
    """Return True for a non-ASCII character that is white space, or a line end, in some flavor of patterns."""
    if code < 0x2000:
        return code == 0x85 or code == 0xA0 or code == 0x1680 or code == 0x180E
    if code < 0x2100:
        return code <= 0x200B or code == 0x2028 or code == 0x2029 or code == 0x202F or code == 0x205F or code == 0x2060
    return code == 0x3000 or code == 0xFEFF


@cython.cfunc
@cython.exceptval(check=False)
def first_from(ordered: cython.int[::1], size: cython.int, node: cython.int) -> cython.int:
    """Return the index of the first of ``size`` ascending nodes that is at least ``node`` (binary search)."""
    low: cython.int = 0
    high: cython.int = size
    middle: cython.int
    while low < high:
        middle = (low + high) >> 1
        if ordered[middle] < node:
            low = middle + 1
        else:
            high = middle
    return low


@cython.cclass
class Trie:
    """A vocabulary as a byte trie in flat pre-order arrays.

    Node 0 is the root; the subtree of node ``i`` is the nodes ``[i, i + size[i])``. Tokens with equal bytes are
    chained. Empty tokens are omitted, because no mask allows them. ``order`` lists all tokens in pre-order; those of
    the nodes ``[i, j)`` are ``order[first[i] : first[j]]``. By node, ``below`` has the groups of the bytes (see
    `GROUPS`) in its subtree, without its own, with OTHER for bytes that UTF-8 does not allow there, and ``height`` the
    number of levels. ``marks`` has the groups of each token's bytes, in the order of ``order``.

    Args:
        tokens: the bytes of each token id, None for ids that are not text.
        saved: the result of `saved` of a trie of the same tokens; None: sort the tokens.

    Raises:
        ValueError: ``saved`` belongs to other tokens.
    """

    def __init__(self, tokens, saved=None):
        self.vocabulary = len(tokens)
        self.same = array("i", [-1]) * max(1, len(tokens))
        self.child = array("i", [-1]) * 256
        if saved is None:
            self._sort(tokens)
        else:
            self.byte, self.depth, self.token, self.same = saved
            self.nodes = len(self.byte)
            if not len(self.depth) == len(self.token) == self.nodes or len(self.same) != max(1, len(tokens)):
                raise ValueError("this is the trie of another vocabulary")
        self._link()

    @cython.cfunc
    def _sort(self, tokens) -> object:
        """Set bytes, depths and tokens, in pre-order: of the sorted tokens, each adds the nodes for its bytes after the
        prefix that it has in common with the one before."""
        order = sorted([number for number, data in enumerate(tokens) if data], key=tokens.__getitem__)
        pieces = [tokens[number] for number in order]
        # One buffer is faster to read than many objects; with a spare byte, because a buffer may not be empty.
        text: cython.uchar[::1] = bytearray(b"".join(pieces) + b"-")
        room: cython.int = len(text)
        rooms = [grown(None, code, room) for code in "BHi"]
        self.byte, self.depth, self.token = rooms
        # By depth, the nodes of the token before; its length, and where it begins in the text.
        path: cython.int[::1] = array("i", [0]) * (2 + max([len(data) for data in pieces], default=0))
        open_depth: cython.int = 0
        before: cython.int = 0
        self.token[0] = -1
        nodes: cython.int = 1
        at: cython.int = 0
        number: cython.int
        common: cython.int
        length: cython.int
        i: cython.int
        for number, data in zip(order, pieces):  # noqa: B905 (they are equally many)
            length = len(data)
            common = 0
            while common < open_depth and common < length and text[at + common] == text[before + common]:
                common += 1
            for i in range(common, length):
                self.byte[nodes] = text[at + i]
                self.depth[nodes] = i + 1
                self.token[nodes] = -1
                path[i + 1] = nodes
                nodes += 1
            open_depth = length
            i = path[length]
            if self.token[i] < 0:
                self.token[i] = number
            else:  # the same bytes again: chain
                self.same[number] = self.same[self.token[i]]
                self.same[self.token[i]] = number
            before = at
            at += length
        # The arrays were allocated for all bytes of all tokens: release the memory that shared prefixes save.
        self.byte, self.depth, self.token = [each[:nodes] for each in rooms]
        self.nodes = nodes
        return None

    @cython.cfunc
    def _link(self) -> object:
        """Derive all other arrays from bytes, depths and tokens of the nodes, by one pass in pre-order: subtree sizes,
        parents, the root's children, the order of the tokens, and the groups of bytes by subtree and by token. Raise
        ValueError if these are not a trie of the vocabulary."""
        nodes: cython.int = self.nodes
        here: cython.int = 0  # the depth of the last node on the current path
        depth: cython.int
        i: cython.int
        self.longest = 0
        for i in range(nodes):
            if self.depth[i] > self.longest:
                self.longest = self.depth[i]
        self.size = grown(None, "i", nodes)
        self.parent = grown(None, "i", nodes)
        self.order = grown(None, "i", self.vocabulary + 1)
        self.first = grown(None, "i", nodes + 1)
        self.below = grown(None, "Q", nodes)
        self.height = grown(None, "H", nodes)
        self.marks = grown(None, "Q", self.vocabulary + 1)
        groups: cython.ulonglong[::1] = GROUPS
        # By depth on the current path: the nodes, their own groups, all groups up to them, the number of missing bytes
        # of their characters, and the bits of these characters so far.
        path: cython.int[::1] = grown(None, "i", self.longest + 1)
        own: cython.ulonglong[::1] = grown(None, "Q", self.longest + 1)
        marks: cython.ulonglong[::1] = grown(None, "Q", self.longest + 1)
        lack: cython.int[::1] = grown(None, "i", self.longest + 1)
        code: cython.int[::1] = grown(None, "i", self.longest + 1)
        tokens: cython.int = 0
        token: cython.int
        for i in range(1, nodes):
            depth = self.depth[i]
            if not 1 <= depth <= here + 1 or not -1 <= self.token[i] < self.vocabulary:
                raise ValueError("this is not a trie in pre-order")
            while here >= depth:  # their subtrees are complete
                self.size[path[here]] = i - path[here]
                self._add_to_parent(path[here - 1], path[here], own[here])
                here -= 1
            self.parent[i] = path[here]
            lack[depth] = self._lacks(i, lack[here])
            own[depth] = groups[self.byte[i]] if lack[depth] >= 0 else encoding.OTHER
            if lack[here] > 0:
                code[depth] = code[here] << 6 | self.byte[i] & 0x3F
                if lack[depth] == 0 and is_space(code[depth]):
                    own[depth] |= encoding.SEPARATOR
            elif lack[depth] > 0:
                code[depth] = self.byte[i] & (0x3F >> lack[depth])
            marks[depth] = marks[here] | own[depth]
            path[depth] = i
            here = depth
            if depth == 1:
                self.child[self.byte[i]] = i
            self.first[i] = tokens
            token = self.token[i]
            while token >= 0:
                if tokens == self.vocabulary or token >= self.vocabulary:
                    raise ValueError("these are not the tokens of a vocabulary")
                self.order[tokens] = token
                self.marks[tokens] = marks[depth]
                tokens += 1
                token = self.same[token]
        self.first[nodes] = tokens
        while here >= 0:
            self.size[path[here]] = nodes - path[here]
            if here > 0:
                self._add_to_parent(path[here - 1], path[here], own[here])
            here -= 1
        return None

    @cython.cfunc
    @cython.exceptval(check=False)
    def _add_to_parent(self, parent: cython.int, node: cython.int, own: cython.ulonglong) -> cython.void:
        """Add the groups and height of a child, whose byte is in group ``own``, to its parent."""
        self.below[parent] |= self.below[node] | own
        if self.height[parent] < self.height[node] + 1:
            self.height[parent] = self.height[node] + 1

    @cython.cfunc
    @cython.exceptval(check=False)
    def _lacks(self, node: cython.int, before: cython.int) -> cython.int:
        """Return the number of missing bytes of a character after the byte of a node, from the number before it; -1 if
        UTF-8 (RFC 3629) does not allow the byte there."""
        byte: cython.int = self.byte[node]
        if before < 0:
            return -1
        if before == 0:
            if byte < 0x80:
                return 0
            if byte < 0xC2 or byte > 0xF4:
                return -1
            return 1 if byte < 0xE0 else 2 if byte < 0xF0 else 3
        lead: cython.int = self.byte[self.parent[node]]
        low: cython.int = 0xA0 if lead == 0xE0 else 0x90 if lead == 0xF0 else 0x80
        high: cython.int = 0x9F if lead == 0xED else 0x8F if lead == 0xF4 else 0xBF
        return before - 1 if low <= byte <= high else -1

    def find(self, data: bytes) -> int:
        """Return the node of a non-empty path of bytes; -1 if no token begins with them."""
        node: cython.int = 0
        at: cython.Py_ssize_t
        byte: cython.uchar
        for at in range(len(data)):
            byte = data[at]  # by index, because iteration over bytes gives signed values in C
            node = self.child_by(node, byte)
            if node < 0:
                break
        return node

    @cython.cfunc
    @cython.exceptval(check=False)
    def child_by(self, node: cython.int, byte: cython.int) -> cython.int:
        """Return the child of a node by a byte; -1 if there is none."""
        if node == 0:
            return self.child[byte]
        i: cython.int = node + 1
        end: cython.int = node + self.size[node]
        while i < end and self.byte[i] < byte:
            i += self.size[i]
        return i if i < end and self.byte[i] == byte else -1

    def saved(self) -> tuple:
        """Return arrays (bytes, depths, tokens, chains) from which `Trie` makes the same trie without sorting."""
        return array("B", bytes(self.byte)), copied("H", self.depth), copied("i", self.token), copied("i", self.same)

    def byte_count(self) -> int:
        """Return the size of the trie in bytes."""
        return 29 * self.nodes + 4 * len(self.same) + 12 * len(self.order)
