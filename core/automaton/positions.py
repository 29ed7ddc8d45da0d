# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False, cdivision=True
"""Positions in atoms (byte rows, literals, counted strings), and the transition by one byte.

A position is one 64-bit integer, its top bits a tag (see `encoding`). Compiled where that is possible;
``positions.pxd`` declares its C interface.
"""

from __future__ import annotations

try:
    import cython
except ImportError:  # interpreted, without Cython installed
    from ..compiled import standin as cython  # type: ignore[no-redef]

if not cython.compiled:  # else they are declared
    from ..compiled.memory import free, longs, more, shorts
    from . import encoding
    from .blocks import row_item
    from .byte_rows import ByteRows


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _position(tag: cython.longlong, at: cython.longlong) -> cython.longlong:
    return (tag << encoding.TAG) | at


@cython.cclass
class Positions:
    """The positions in atoms, and the transition by one byte; base of `Automaton`.

    Args:
        byte_rows: the row states (see ``byte_rows.py``); their rows are derived on demand.
        local: the transition table of the free JSON string (see ``free_string.py``), for COUNTED atoms.
    """

    def __init__(self, byte_rows: ByteRows, local):
        self.byte_rows = byte_rows
        self.local = local
        self.base_count = byte_rows.base_count
        self.pool_room, self.pool = 256, shorts(256)
        self.pool_used = 0
        self.counted_room, self.least, self.most = 16, longs(16), longs(16)
        self.counted_used = 0
        self.faults = 0

    def __dealloc__(self):
        free(self.pool)
        free(self.least)
        free(self.most)

    def add_literal(self, data: bytes) -> int:
        """Add a literal to the pool; return its position."""
        size: cython.int = len(data)
        if self.pool_used + size + 1 > self.pool_room:
            room: cython.int = max(2 * self.pool_room, self.pool_used + size + 1)
            self.pool = more(self.pool, self.pool_room, room)
            self.pool_room = room
        at: cython.int = self.pool_used
        i: cython.int
        for i in range(size):
            self.pool[at + i] = data[i]
        self.pool[at + size] = encoding.POOL_END
        self.pool_used = at + size + 1
        return _position(encoding.LITERAL, at)

    def add_counted(self, least: int, most: int) -> int:
        """Add the bounds of a JSON string (``most`` -1: unbounded); return the position before its opening quote."""
        number: cython.int = self.counted_used
        if number == self.counted_room:
            self.least = more(self.least, number, 2 * number)
            self.most = more(self.most, number, 2 * number)
            self.counted_room = 2 * number
        self.least[number] = least
        self.most[number] = encoding.UNBOUNDED if most < 0 else most
        self.counted_used = number + 1
        return _position(encoding.COUNTED, cython.cast(cython.longlong, number) << encoding.NUMBER_AT)

    @cython.cfunc
    @cython.exceptval(-9, check=False)
    def _row_index(self, state: cython.int) -> cython.longlong:
        """Return the index of the row of a state whose row is not shared; derive it on first use."""
        at: cython.int = encoding.FACTS * state + encoding.ROW_AT
        if self.byte_rows.facts[at] < 0:
            self.faults += 1
            self.byte_rows.derive(state)
        return self.byte_rows.facts[at]

    @cython.cfunc
    @cython.exceptval(-9, check=False)
    def after(self, atom: cython.longlong, byte: cython.int) -> cython.longlong:
        """Return the position after one byte: DEAD, DONE (the atom is complete, and no byte can follow in it), or
        another."""
        tag: cython.longlong = atom >> encoding.TAG
        at: cython.int
        if tag == encoding.ROW:
            state: cython.int = cython.cast(cython.int, atom)
            if state < self.base_count:
                return self.byte_rows.base[state * 256 + byte]
            at = cython.cast(cython.int, self._row_index(state))
            return row_item(self.byte_rows.rows, at + byte)
        if tag == encoding.LITERAL:
            at = cython.cast(cython.int, atom & encoding.PAYLOAD)
            if self.pool[at] != byte:
                return encoding.DEAD
            return encoding.DONE if self.pool[at + 1] == encoding.POOL_END else atom + 1
        if tag == encoding.COUNTED:
            here: cython.int = cython.cast(cython.int, atom & encoding.LOCAL_MASK)
            then: cython.int = self.local[here * 256 + byte]
            if then == encoding.DEAD:
                return encoding.DEAD
            number: cython.int = cython.cast(cython.int, (atom >> encoding.NUMBER_AT) & encoding.NUMBER_MASK)
            written: cython.longlong = (atom >> encoding.WRITTEN_AT) & encoding.UNBOUNDED
            if then == encoding.LOCAL_DONE:
                return encoding.DONE if written >= self.least[number] else encoding.DEAD
            if here == encoding.LOCAL_BODY:  # the first byte of a character
                if written >= self.most[number]:
                    return encoding.DEAD
            if then == encoding.LOCAL_BODY and here != 0:  # the last byte of a character (0: of the opening quote)
                # Above the minimum of an unbounded string the count has no effect: omit it, for fewer states.
                if self.most[number] != encoding.UNBOUNDED or written < self.least[number]:
                    written += 1
            return _position(
                encoding.COUNTED,
                (cython.cast(cython.longlong, number) << encoding.NUMBER_AT) | (written << encoding.WRITTEN_AT) | then,
            )
        return encoding.DEAD

    @cython.cfunc
    @cython.exceptval(-9, check=False)
    def row_at(self, state: cython.int) -> cython.longlong:
        """Return the index of a state's row in ``byte_rows.rows``; for shared rows, -256 minus the index in
        ``byte_rows.base``. Long walks use rows directly, which costs less than `after`."""
        return -256 * (state + 1) if state < self.base_count else self._row_index(state)

    @cython.cfunc
    @cython.inline
    @cython.exceptval(check=False)
    def may_end(self, atom: cython.longlong) -> cython.bint:
        """Return True if the atom may end at this position."""
        return (atom >> encoding.TAG) == encoding.ROW and (
            atom == encoding.DONE or self.byte_rows.fact(cython.cast(cython.int, atom), encoding.MAY_END) != 0
        )

    @cython.cfunc
    @cython.exceptval(-9, check=False)
    def _only_byte(self, atom: cython.longlong) -> cython.int:
        """Return the only possible next byte at a position, or `SEVERAL`."""
        byte: cython.int
        only: cython.int = encoding.SEVERAL
        for byte in range(256):
            if self.after(atom, byte) >= 0:
                if only >= 0:
                    return encoding.SEVERAL
                only = byte
        return only

    def unpack(self, atom: cython.longlong) -> tuple:
        """Return a position decoded: ``("row", state)``, ``("literal", remaining bytes)``, ``("counted", local state,
        characters so far, least)`` or ``("special", number)``."""
        tag: cython.longlong = atom >> encoding.TAG
        at: cython.int
        if tag == encoding.ROW:
            return ("row", atom)
        if tag == encoding.LITERAL:
            at = cython.cast(cython.int, atom & encoding.PAYLOAD)
            end: cython.int = at
            while self.pool[end] != encoding.POOL_END:
                end += 1
            return ("literal", bytes([self.pool[i] for i in range(at, end)]))
        if tag == encoding.COUNTED:
            number: cython.int = cython.cast(cython.int, (atom >> encoding.NUMBER_AT) & encoding.NUMBER_MASK)
            return (
                "counted",
                atom & encoding.LOCAL_MASK,
                (atom >> encoding.WRITTEN_AT) & encoding.UNBOUNDED,
                self.least[number],
            )
        return ("special", atom & encoding.PAYLOAD)
