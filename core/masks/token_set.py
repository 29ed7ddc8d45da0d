# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False, cdivision=True
"""What an atom position allows, wherever it stands: a set of tokens, and where the atom may end.

Compiled where that is possible; ``table.pxd`` says what others see of it in C.
"""

from __future__ import annotations

from array import array

try:
    import cython
except ImportError:  # interpreted, without Cython installed
    from ..compiled import standin as cython  # type: ignore[no-redef]

if not cython.compiled:  # else they are declared
    from ..compiled.arrays import copied
    from .trie import Trie


@cython.cclass
class Table:
    """What an atom position allows, wherever it stands: tokens that stay inside, and where it may end.

    ``parts`` has one after the other: the trie nodes at which the atom may end (from there on the bytes belong to what
    follows); the tokens that end where the atom must end (the closing quote of a string); the bytes of the nodes'
    children, ascending; from where on the children of each byte are listed, and to where; these children.
    """

    def saved(self) -> tuple:
        """Arrays from which `load_table` makes the same table again."""
        inside = array("i")
        if self.is_dense:
            inside = copied("I", self.dense)
        elif self.count:
            inside = copied("i", self.ids)
        parts = copied("i", self.parts) if self.end_count else array("i")
        closing = parts[self.end_count : self.end_count + self.closing_count]
        return array("i", [self.is_dense, self.count]), inside, parts[: self.end_count], closing


@cython.cfunc
def new_table() -> Table:
    """A table of nothing; arrays that would be empty are left out."""
    table: Table = Table.__new__(Table)
    table.count = 0
    table.is_dense = False
    table.end_count = 0
    table.closing_count = 0
    table.exit_count = 0
    table.size = 400
    return table


@cython.cfunc
def set_parts(
    trie: Trie,
    table: Table,
    ends: cython.int[::1],
    closing: cython.int[::1],
    at: cython.int[::1],
) -> object:
    """Give a table its ends, closing tokens, and the ends' children sorted by byte (a counting sort).

    So many of the ends and tokens as the table says; ``at`` is room for 256 numbers.
    """
    n: cython.int = table.end_count
    i: cython.int
    j: cython.int
    stop: cython.int
    total: cython.int = 0
    groups: cython.int = 0
    for i in range(256):
        at[i] = 0
    for i in range(n):
        j = ends[i] + 1
        stop = ends[i] + trie.size[ends[i]]
        while j < stop:
            if at[trie.byte[j]] == 0:
                groups += 1
            at[trie.byte[j]] += 1
            total += 1
            j += trie.size[j]
    table.exit_count = groups
    if n == 0:
        return None
    here: cython.int = n + table.closing_count
    room: cython.int = here + 2 * groups + 1 + total
    parts: cython.int[::1] = array("i", [0]) * room
    for i in range(n):
        parts[i] = ends[i]
    for i in range(table.closing_count):
        parts[n + i] = closing[i]
    stop = here + 2 * groups + 1
    for i in range(256):
        if at[i]:
            parts[here] = i
            parts[here + groups] = stop
            here += 1
            stop += at[i]
            at[i] = stop - at[i]
    parts[here + groups] = stop
    for i in range(n):
        j = ends[i] + 1
        stop = ends[i] + trie.size[ends[i]]
        while j < stop:
            parts[at[trie.byte[j]]] = j
            at[trie.byte[j]] += 1
            j += trie.size[j]
    table.parts = parts
    table.size += 4 * room
    return None


def load_table(trie: Trie, saved: tuple) -> Table:
    """The table that `Table.saved` was asked of, over a trie of the same vocabulary."""
    kind, inside, ends, closing = saved
    table: Table = new_table()
    table.is_dense = kind[0]
    table.count = kind[1]
    if table.is_dense:
        table.dense = inside
    elif inside:
        table.ids = inside
    table.size += 4 * len(inside)
    table.end_count = len(ends)
    table.closing_count = len(closing)
    # A buffer may not be empty.
    set_parts(trie, table, ends or array("i", [0]), closing or array("i", [0]), array("i", [0]) * 256)
    return table


@cython.cfunc
def copied_bits(bits: cython.uint[::1], words: cython.int) -> cython.uint[::1]:
    """A copy of a set of tokens, so many words of bits."""
    new: cython.uint[::1] = array("I", [0]) * words
    i: cython.int
    for i in range(words):
        new[i] = bits[i]
    return new
