# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False, cdivision=True
"""Byte rows: derivatives of terms (over characters) as transitions over the bytes of UTF-8 and of JSON strings.

A *row state* is a small integer; its row has the next row state for each of the 256 bytes (-1: no valid text continues
with this byte). The spelling is exact: UTF-8 has no overlong forms and no surrogates (RFC 3629); a JSON string
(RFC 8259 section 7) may spell a character raw or escaped, ``\\uD83D\\uDE00`` is one character, and a lone surrogate
escape is not a character. One spelling is omitted: in a string that is constrained by more than its length, printable
ASCII is not written as ``\\u0041``. A row leads only to states from which the text can be completed.

Compiled where that is possible (Cython in pure-Python mode): rows are derived while texts are written.
"""

from __future__ import annotations

import re
from collections.abc import Hashable

from ..language.queries import excluded_words, open_class
from ..language.term_kinds import END
from .completion.strings import preference, shortest
from .encoding import DEAD, DONE, FACTS, OPEN, QUOTED, RAW
from .escapes import SHORT_ESCAPES, spell_quoted, spell_raw
from .length_bounds import without_bound

try:
    import cython
except ImportError:  # interpreted, without Cython installed
    from ..compiled import standin as cython  # type: ignore[no-redef]

if not cython.compiled:  # else they are declared
    from ..compiled.int_map import IntMap
    from ..compiled.memory import as_bytes, free, ints, more, read_bytes, twin
    from ..language.terms import Terms
    from . import encoding
    from .blocks import row_item

_DEAD = cython.declare(cython.int, DEAD)
_END = cython.declare(cython.int, END)

# Kinds of states inside a character: after a backslash; after the escape of a high surrogate; after that and a
# backslash; with 1 to 3 bytes of UTF-8 to come (`_UTF8` plus their number), or 1 to 4 hexadecimal digits (`_HEX` plus).
# So one byte further the kind is smaller by one, and at `_UTF8` or `_HEX` itself the character is complete.
_COMPLETE = cython.declare(cython.int, 0)
_RAW = cython.declare(cython.int, RAW)
_QUOTED = cython.declare(cython.int, QUOTED)
_ESCAPE = cython.declare(cython.int, 4)
_LOW = cython.declare(cython.int, 5)
_LOW_U = cython.declare(cython.int, 6)
_UTF8 = cython.declare(cython.int, 7)
_HEX = cython.declare(cython.int, 11)

# The private facts of a state: its kind, its rest, and a state with the same row for the bytes from 0x80.
_FACTS = cython.declare(cython.int, FACTS)
_KIND = cython.declare(cython.int, 5)
_REST = cython.declare(cython.int, 6)
_SAME_LEADS = cython.declare(cython.int, 7)

_LOW_BITS = cython.declare(cython.ulonglong, 2**32 - 1)  # a literal of this size would be a Python object
_MANY = cython.declare(cython.int, 2**30)  # more characters than any token has

#: Finds a character with several spellings in a constrained string: all but printable ASCII without a short escape.
_MANY_SPELLINGS = re.compile(r'[^ -~]|["/\\]').search

#: The code points at which membership flips in the class of all characters but the last noncharacter.
NEARLY_ANY = (0, 0xD800, 0xE000, 0x10FFFF)

#: Additional capacity, in states, of a new copy of a store.
SPARE = cython.declare(cython.int, 64)

#: Maximum length of a shortest text that is memoised for its state.
MAX_PATH = 1_000

#: Minimum numbers of characters, of printable ASCII and in all, in a class that counts as wide.
_WIDE_ASCII, _WIDE = 90, 0x100000


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _key(kind: cython.int, rest: cython.int) -> cython.ulonglong:
    """Return the key of a state in `ByteRows.numbers`."""
    return (cython.cast(cython.ulonglong, kind + 1) << 32) | (cython.cast(cython.ulonglong, rest) & _LOW_BITS)


@cython.cclass
class ByteRows:
    """The store of row states, and of their rows, derived on demand.

    A state is a pair of a kind and a rest. Between two characters, the rest is a term. Inside a character, it is the
    piecewise constant function from the remaining bits of the code point to the next state; so states after different
    bytes are equal if their functions are. Equal states are the same number. Functions are interned as numbers too; a
    constant function is encoded as ``-1 - state``. For example, after the byte C3 of ``[é-ü]`` in a raw text, the kind
    is ``_UTF8 + 1``, and the rest maps the six bits of the next byte: 0x29 to 0x3C to `DONE`, all others to `DEAD`.

    Most rows lead to states that no text reaches, so a state without a row takes a few bytes; `derive` makes the row.

    Args:
        terms: the store of the terms.

    Attributes:
        terms: the same.
    """

    def __init__(self, terms: Terms) -> None:
        self._set_unshared(terms)
        self.count = self.base_count = self.base_functions = 0
        self.room, self.facts = 64, ints(_FACTS * 64)
        self.seed = None
        self.functions, self.function_numbers, self.class_numbers = [], {}, {}
        self._add(_COMPLETE, 0)

    @cython.cfunc
    def _set_unshared(self, terms: Terms) -> object:
        """Set the attributes that a copy does not take over from its original: the store of terms, empty memos, no
        rows.

        Three growing arrays of pairs ``(first code point, row state)`` are scratch space, valid within one derivation:
        ``bound`` has the ``bounds`` pieces of a term's derivatives, ``part`` those of a function that is read, and
        ``cut`` the ``cuts`` pieces of a function under construction.
        """
        self.paths, self.raw_firsts, self.quoted_firsts, self.wide, self.lengths = {}, {}, {}, {}, {}
        self.terms = terms
        self.nothing = terms.EMPTY
        self.epsilon = terms.EPSILON
        self.numbers = IntMap()
        self.block_count = self.block_room = self.used = self.bounds = self.cuts = 0
        self.owns_base = False
        if not cython.compiled:  # else they begin as null pointers
            self.rows, self.block, self.base = [], ints(0), ints(0)
        self.bound_room, self.bound = 64, ints(64)
        self.part_room, self.part = 64, ints(64)
        self.cut_room, self.cut = 64, ints(64)

    def __dealloc__(self) -> None:
        number: cython.int
        for number in range(self.block_count):
            free(cython.cast(cython.p_int, cython.cast(cython.size_t, self.rows[number])))
        free(self.rows)
        free(self.facts)
        free(self.bound)
        free(self.part)
        free(self.cut)
        if self.owns_base:  # not `seed is None`: the garbage collector may have cleared `seed`
            free(self.base)

    def __len__(self) -> int:
        return self.count

    def copy(self, terms) -> ByteRows:
        """Return a store over a copy of the terms, with all states so far under the same numbers.

        The rows must have been derived in the order of the numbers, and this store must not derive more later.
        """
        number: cython.int
        if not self.base_count:  # copy the rows into one array
            self.base, self.owns_base = ints(self.used), True
            for number in range(self.used):
                self.base[number] = row_item(self.rows, number)
            self.base_count = self.used // 256
        other: ByteRows = ByteRows.__new__(ByteRows)
        other._set_unshared(terms)
        other.seed = self
        other.base, other.base_count, other.base_functions = self.base, self.base_count, len(self.functions)
        other.count, other.room = self.count, self.count + SPARE
        other.facts = twin(self.facts, _FACTS * self.count, _FACTS * other.room)
        other.functions, other.function_numbers = self.functions.copy(), self.function_numbers.copy()
        other.class_numbers = self.class_numbers.copy()
        return other

    def seeded(self) -> int:
        """Return the number of states whose rows all copies share."""
        return self.base_count

    def byte_count(self) -> int:
        """Return the bytes that the store takes, without shared memory."""
        size: cython.int = (self.block_count << encoding.BLOCK) + _FACTS * (self.room - self.base_count)
        size += self.cut_room + self.bound_room + self.part_room
        return 4 * size + self.numbers.byte_count() + 300 * (len(self.functions) - self.base_functions)  # measured

    # -- states ------------------------------------------------------------------------------------------------

    @cython.cfunc
    @cython.exceptval(check=False)
    def _find(self, kind: cython.int, rest: cython.int) -> cython.int:
        """Return the number of a state; -1 if there is none yet."""
        found: cython.int = self.numbers.get(_key(kind, rest), -1)
        return found if found >= 0 or self.seed is None else self.seed.numbers.get(_key(kind, rest), -1)

    @cython.cfunc
    @cython.exceptval(-9, check=False)
    def _state(self, kind: cython.int, rest: cython.int) -> cython.int:
        """Return the number of the state of a kind and a rest, which is added if it is new."""
        found: cython.int = self._find(kind, rest)
        return found if found >= 0 else self._add(kind, rest)

    @cython.cfunc
    @cython.exceptval(-9, check=False)
    def _add(self, kind: cython.int, rest: cython.int) -> cython.int:
        """Add the state of a kind and a rest, which must be new, and return its number. Its row is derived when first
        needed; its other facts are set here: if the text may end, and of a JSON string C{least,most} the class C and
        both bounds."""
        null: cython.bint = kind == _COMPLETE
        number: cython.int = 0
        least: cython.int = 0
        most: cython.int = 0
        if kind == _RAW:
            null = self.terms.nullable(rest)
        elif kind == _QUOTED:
            run = self.terms.run_bounds(rest)
            if run is not None:
                number = self.class_number(run[0]) + 1
                least = min(run[1], _MANY)
                most = -1 if run[2] is None else min(run[2], _MANY)
        state: cython.int = self.count
        if state == self.room:
            self.facts = more(self.facts, _FACTS * state, 2 * _FACTS * state)
            self.room = 2 * state
        at: cython.int = _FACTS * state
        self.facts[at + _KIND] = kind
        self.facts[at + _REST] = rest
        self.facts[at + encoding.ROW_AT] = -1
        self.facts[at + encoding.MAY_END] = null
        self.facts[at + encoding.CLASS] = number
        self.facts[at + encoding.LEAST] = least
        self.facts[at + encoding.MOST] = most
        self.facts[at + _SAME_LEADS] = -1
        self.numbers.add(_key(kind, rest), state)
        self.count = state + 1
        return state

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _checked(self, state: cython.int) -> cython.int:
        """Return ``state`` unchanged if it is a state of this store; else raise IndexError. For numbers that callers
        give."""
        if state < 0 or state >= self.count:
            raise IndexError("no such row state")
        return state

    def state(self, kind: cython.int, rest: cython.int) -> int:
        """Return the state of a kind (between two characters, or before the opening quote) and a term."""
        if kind < encoding.OPEN or kind > _QUOTED:
            raise ValueError("no such kind of row states")
        return self._state(kind, rest)

    def what(self, state: cython.int) -> tuple:
        """Return the kind of a state and its rest (a term, between two characters or before the opening quote)."""
        self._checked(state)
        return self.facts[_FACTS * state + _KIND], self.facts[_FACTS * state + _REST]

    def nullable(self, state: cython.int) -> bool:
        """Return True if the text may end in this state."""
        return self.facts[_FACTS * self._checked(state) + encoding.MAY_END] != 0

    def class_number(self, chars: cython.int) -> int:
        """Return the number of a class of characters in this store."""
        return self.class_numbers.setdefault(chars, len(self.class_numbers))

    def class_term(self, number: cython.int) -> int:
        """Return the class of characters (a term) with a number."""
        if number < 0 or number >= len(self.class_numbers):
            raise IndexError("no such class of characters")
        return list(self.class_numbers)[number]

    # -- functions ---------------------------------------------------------------------------------------------

    @cython.cfunc
    @cython.exceptval(-9, check=False)
    def _put(self, start: cython.int, state: cython.int) -> cython.int:
        """Append a piece to the function under construction (``cut``): from code point ``start`` on it has the value
        ``state``. Pieces are put in ascending order; adjacent ones with equal states are joined."""
        if self.cuts and self.cut[2 * self.cuts - 1] == state:
            return 0
        if 2 * self.cuts == self.cut_room:
            self.cut = more(self.cut, self.cut_room, 2 * self.cut_room)
            self.cut_room *= 2
        self.cut[2 * self.cuts] = start
        self.cut[2 * self.cuts + 1] = state
        self.cuts += 1
        return 0

    @cython.cfunc
    @cython.exceptval(-9, check=False)
    def _put_part(
        self, source: cython.p_int, count: cython.int, low: cython.int, high: cython.int, shift: cython.int
    ) -> cython.int:
        """Append the part of a function (of ``count`` pieces) on ``[low, high)``, moved by ``shift``."""
        first: cython.int = 0
        last: cython.int = count
        middle: cython.int
        while last - first > 1:
            middle = (first + last) >> 1
            if source[2 * middle] <= low:
                first = middle
            else:
                last = middle
        self._put(low + shift, source[2 * first + 1])
        first += 1
        while first < count and source[2 * first] < high:
            self._put(source[2 * first] + shift, source[2 * first + 1])
            first += 1
        return 0

    @cython.cfunc
    @cython.exceptval(-9, check=False)
    def _function_state(self, kind: cython.int) -> cython.int:
        """Return the state of a kind, inside a character, whose rest is the function under construction (``cut``). A
        constant function has the next state itself for its value: it is returned if it is `DEAD`, or if the character
        is complete."""
        if self.cuts > 1:
            key = as_bytes(self.cut, 2 * self.cuts)  # bytes are not tracked by the garbage collector
            number = self.function_numbers.get(key)
            if number is None:
                number = self.function_numbers[key] = len(self.functions)
                self.functions.append(key)
            return self._state(kind, number)
        target: cython.int = self.cut[1]
        if target == _DEAD or kind == _UTF8 or kind == _HEX:  # the character is complete
            return target
        return self._state(kind, -1 - target)

    # -- derivation --------------------------------------------------------------------------------------------

    @cython.cfunc
    @cython.inline
    @cython.exceptval(check=False)
    def fact(self, state: cython.int, which: cython.int) -> cython.int:
        """Return a fact of a state (see `encoding`)."""
        return self.facts[_FACTS * state + which]

    @cython.ccall
    @cython.exceptval(-1, check=False)
    def derive(self, state: cython.int) -> cython.int:
        """Derive the row of a state, once."""
        if self._checked(state) >= self.base_count and self.facts[_FACTS * state + encoding.ROW_AT] < 0:
            if self.used >> encoding.BLOCK == self.block_count:
                self._add_block()
            self._derive(state, self.block, self.used & encoding.IN_BLOCK)
            self.facts[_FACTS * state + encoding.ROW_AT] = self.used
            self.used += 256
        return 0

    @cython.cfunc
    def _add_block(self) -> object:
        """Add a block of rows; the other blocks do not move."""
        block: cython.p_int
        if cython.compiled:
            if self.block_count == self.block_room:
                self.rows = more(self.rows, self.block_room, 2 * self.block_room + 4)
                self.block_room = 2 * self.block_room + 4
            block = ints(encoding.IN_BLOCK + 1)
            self.rows[self.block_count] = cython.cast(cython.longlong, cython.cast(cython.size_t, block))
        else:
            block = ints(encoding.IN_BLOCK + 1)
            self.rows.append(block)
        self.block = block
        self.block_count += 1

    def row(self, state: cython.int) -> list:
        """Return the 256 successors of a state, without storing a row that is not derived yet."""
        at: cython.int = self.facts[_FACTS * self._checked(state) + encoding.ROW_AT]
        if at >= 0 and state >= self.base_count:
            return [row_item(self.rows, i) for i in range(at, at + 256)]
        made: cython.p_int = ints(256)  # also for a shared row, which is in `base`: this is not called often
        try:
            self._derive(state, made, 0)
            return [made[i] for i in range(256)]
        finally:
            free(made)

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _read_function(self, rest: cython.int) -> cython.int:
        """Load the pieces of a function into ``part``; return their number."""
        data: bytes = self.functions[rest]
        count: cython.int = len(data) // 8
        if 2 * count + 1 > self.part_room:
            self.part = more(self.part, self.part_room, 4 * count)
            self.part_room = 4 * count
        read_bytes(self.part, data)
        self.part[2 * count] = _END
        return count

    @cython.cfunc
    def _derive(self, state: cython.int, row: cython.p_int, at: cython.int) -> object:
        """Write the row of a state, its 256 successors, to ``row`` from index ``at``. The kind decides: before the
        opening quote, between two characters, after a backslash, or inside a character (UTF-8 bytes, hexadecimal
        digits)."""
        kind: cython.int = self.facts[_FACTS * state + _KIND]
        rest: cython.int = self.facts[_FACTS * state + _REST]
        target: cython.int = _DEAD
        pieces: cython.int = self._read_function(rest) if kind > _ESCAPE and rest >= 0 else 0
        i: cython.int
        for i in range(at, at + 256):
            row[i] = _DEAD
        if kind == encoding.OPEN:
            row[at + 0x22] = self._state(_QUOTED, rest)
        elif kind == _RAW or kind == _QUOTED:
            self._derive_body(state, row, at)
        elif kind == _ESCAPE:
            self._derive_escape(rest, row, at)
        elif kind == _LOW:  # after a high surrogate: `\uDC00` to `\uDFFF` must follow
            row[at + 0x5C] = self._state(_LOW_U, rest)
        elif kind == _LOW_U:
            self.cuts = 0
            self._put(0, _DEAD)
            if rest < 0:
                self._put(0xDC00, -1 - rest)
            else:
                self._put_part(self.part, pieces, 0, 0x400, 0xDC00)
            self._put(0xE000, _DEAD)
            row[at + 0x75] = self._function_state(_HEX + 4)
        elif kind > _HEX:
            for i in range(16):
                if i == 0 or rest >= 0:  # of a constant function, all digits lead to one state
                    target = self._after_bits(kind, rest, pieces, i, 4 * (kind - _HEX - 1))
                if i < 10:
                    row[at + 0x30 + i] = target
                else:
                    row[at + 0x41 - 10 + i] = row[at + 0x61 - 10 + i] = target
        elif kind > _UTF8:
            for i in range(64):
                if i == 0 or rest >= 0:
                    target = self._after_bits(kind, rest, pieces, i, 6 * (kind - _UTF8 - 1))
                row[at + 0x80 + i] = target

    @cython.cfunc
    @cython.exceptval(-9, check=False)
    def _after_bits(
        self, kind: cython.int, rest: cython.int, pieces: cython.int, number: cython.int, bits: cython.int
    ) -> cython.int:
        """Return the state after a byte inside a character, from the state before it.

        That has a kind, and a function ``rest`` with so many pieces in ``part`` (if it is not constant). The byte has
        the bits ``number`` of the code point, and ``bits`` more come after them.
        """
        self.cuts = 0
        if rest < 0:
            self._put(0, -1 - rest)
        else:
            low: cython.int = number << bits
            self._put_part(self.part, pieces, low, low + (1 << bits), -low)
        return self._function_state(kind - 1)

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _reserve(self, count: cython.int) -> cython.int:
        """Ensure that ``bound`` has room for ``count`` pieces."""
        if 2 * count + 1 > self.bound_room:
            self.bound = more(self.bound, self.bound_room, 4 * count)
            self.bound_room = 4 * count
        return 0

    @cython.cfunc
    @cython.exceptval(-9, check=False)
    def _load(self, term: cython.int, kind: cython.int) -> cython.int:
        """Load the derivatives of a term into ``bound``: ``bounds`` pairs of the first code point and the row state of
        kind ``kind`` after it, which is `DEAD` if no text is left, `DONE` if raw text must end there."""
        terms: Terms = self.terms
        first: cython.int = terms.row_of(term)
        count: cython.int = terms.row_count[term]
        self._reserve(count)
        i: cython.int
        for i in range(count):  # a copy, because the loop below may derive more rows
            self.bound[2 * i] = terms.starts[first + i]
            self.bound[2 * i + 1] = terms.targets[first + i]
        self.bound[2 * count] = _END
        target: cython.int
        state: cython.int
        dead: cython.int = self.nothing  # the last target without a text: adjacent classes often share one
        for i in range(1, 2 * count, 2):
            target = self.bound[i]
            if target == self.nothing or target == dead:
                state = _DEAD
            elif kind == _RAW and target == self.epsilon:
                state = encoding.DONE
            else:
                state = self._find(kind, target)
                if state < 0:
                    if terms.seems_dead(target):
                        dead = target
                        state = _DEAD
                    else:
                        state = self._add(kind, target)
            self.bound[i] = state
        self.bounds = count
        return 0

    @cython.cfunc
    def _derive_body(self, state: cython.int, row: cython.p_int, at: cython.int) -> object:
        """Write the row of a state between two characters: ASCII from the term's derivatives; the lead bytes of UTF-8;
        in a JSON string also the closing quote and the backslash.

        Lead bytes are the costly part. If all non-ASCII characters lead to one state, their part of the row is copied
        from another state for which they lead to the same one (`_SAME_LEADS`).
        """
        kind: cython.int = self.facts[_FACTS * state + _KIND]
        term: cython.int = self.facts[_FACTS * state + _REST]
        i: cython.int = 0
        j: cython.int
        target: cython.int
        self._load(term, kind)
        while self.bound[2 * i] < 0x80:
            stop: cython.int = min(self.bound[2 * i + 2], 0x80)
            target = self.bound[2 * i + 1]
            for j in range(self.bound[2 * i], stop):
                row[at + j] = target
            i += 1
        if self.bound[2 * i] > 0x80:
            i -= 1
        # Now i is the piece that has U+0080.
        if i < self.bounds - 1:
            self._derive_leads(i, row, at)
        elif self.bound[2 * i + 1] != _DEAD:  # common: all non-ASCII characters lead to one state
            target = self.bound[2 * i + 1]
            same: cython.int = self.facts[_FACTS * target + _SAME_LEADS]
            if same < 0 or self.facts[_FACTS * same + encoding.ROW_AT] < 0:
                self._derive_leads(i, row, at)
                self.facts[_FACTS * target + _SAME_LEADS] = state
            elif same < self.base_count:
                for j in range(0x80, 0x100):
                    row[at + j] = self.base[256 * same + j]
            else:
                stop = self.facts[_FACTS * same + encoding.ROW_AT]
                for j in range(0x80, 0x100):
                    row[at + j] = row_item(self.rows, stop + j)
        if kind == _QUOTED:
            for i in range(at, at + 0x20):
                row[i] = _DEAD
            row[at + 0x22] = encoding.DONE if self.terms.nullable(term) else _DEAD
            row[at + 0x5C] = self._escape(self.terms.length_bounds(term) is not None)

    @cython.cfunc
    def _derive_leads(self, piece: cython.int, row: cython.p_int, at: cython.int) -> object:
        """Write the lead bytes of UTF-8 to a row: each leads to the state inside a character whose rest is the part of
        ``bound`` that the byte selects. ``piece`` is the piece of ``bound`` that has U+0080."""
        lead: cython.int
        low: cython.int
        # Adjacent lead bytes often have all their characters in one piece: then they lead to one state, `found`. It
        # holds for lead bytes with `last` bytes after them.
        found: cython.int = _DEAD
        last: cython.int = -1
        for lead in range(0xC2, 0xF5):
            count: cython.int = 1 if lead < 0xE0 else 2 if lead < 0xF0 else 3  # bytes after it
            size: cython.int = 1 << (6 * count)  # characters that begin with it: [begin, begin + size)
            begin: cython.int = (lead & (0x3F >> count)) * size
            low = begin
            high: cython.int = begin + size
            # No overlong forms, no surrogates, nothing beyond U+10FFFF (RFC 3629).
            if lead == 0xE0:
                low = 0x800
            elif lead == 0xED:
                high = 0xD800
            elif lead == 0xF0:
                low = 0x10000
            elif lead == 0xF4:
                high = _END
            while self.bound[2 * piece + 2] <= low:
                piece += 1
                last = -1
            if high - low == size and self.bound[2 * piece + 2] >= high:  # one piece has all of them
                if last != count:
                    last = count
                    found = self.bound[2 * piece + 1]
                    if found != _DEAD:
                        found = self._state(_UTF8 + count, -1 - found)
                row[at + lead] = found
                continue
            self.cuts = 0
            if low > begin:
                self._put(0, _DEAD)
            self._put_part(self.bound, self.bounds, low, high, -begin)
            if high < begin + size:
                self._put(high - begin, _DEAD)
            row[at + lead] = self._function_state(_UTF8 + count)

    @cython.cfunc
    @cython.exceptval(-9, check=False)
    def _escape(self, is_free: cython.bint) -> cython.int:
        """Return the state after a backslash for the loaded term. Its rest is the function on the escapable characters,
        so that terms which differ in other characters share it."""
        self.cuts = 0
        if is_free:
            self._put_part(self.bound, self.bounds, 0, 0xD800, 0)
        else:  # in a constrained string, printable ASCII without a short escape is not escaped
            self._put_part(self.bound, self.bounds, 0, 0x20, 0)
            self._put(0x20, _DEAD)
            for code in (0x22, 0x2F, 0x5C):
                self._put_part(self.bound, self.bounds, code, code + 1, 0)
                self._put(code + 1, _DEAD)
            self._put_part(self.bound, self.bounds, 0x7F, 0xD800, 0)
        self._put(0xD800, _DEAD)
        self._put_part(self.bound, self.bounds, 0xE000, _END, 0)
        return self._function_state(_ESCAPE)

    @cython.cfunc
    def _derive_escape(self, rest: cython.int, row: cython.p_int, at: cython.int) -> object:
        """Write the row of the state after a backslash: the short escapes, and ``u`` with four hexadecimal digits.
        ``rest`` is the function on the escapable characters (`_escape`). The function on the digits has the character
        itself for a code unit of one character, and for a high surrogate the state that expects the low one."""
        data: bytes = self.functions[rest]
        i: cython.int
        self.bounds = len(data) // 8
        self._reserve(self.bounds)
        read_bytes(self.bound, data)
        self.bound[2 * self.bounds] = _END
        for byte, code in SHORT_ESCAPES.items():
            i = 0
            while self.bound[2 * i + 2] <= code:  # to the piece that has the character
                i += 1
            row[at + cython.cast(cython.int, byte)] = self.bound[2 * i + 1]
        # A high surrogate begins 0x400 characters; the rest is the function on the low surrogate.
        i = 0
        begin: cython.int = 0x10000
        highs: list = []
        while begin < _END:
            self.cuts = 0
            self._put_part(self.bound, self.bounds, begin, begin + 0x400, -begin)
            highs.append((0xD800 + ((begin - 0x10000) >> 10), self._function_state(_LOW)))
            begin += 0x400
            if self.cuts == 1:  # constant up to the beginning of the next piece
                while self.bound[2 * i] < begin:
                    i += 1
                begin = self.bound[2 * i] & ~0x3FF
        i = 0
        while self.bound[2 * i + 2] <= 0x41:
            i += 1
        self.cuts = 0
        if self.bound[2 * i + 1] != _DEAD:  # `_escape` of a string that is constrained at most by its length
            self._put_part(self.bound, self.bounds, 0, 0xD800, 0)
        else:
            self._put_part(self.bound, self.bounds, 0, 0x20, 0)
            self._put(0x20, _DEAD)
            self._put_part(self.bound, self.bounds, 0x7F, 0xD800, 0)
        for unit, state in highs:
            self._put(unit, state)
        self._put(0xDC00, _DEAD)
        self._put_part(self.bound, self.bounds, 0xE000, 0x10000, 0)
        row[at + 0x75] = self._function_state(_HEX + 4)

    # -- states of terms -----------------------------------------------------------------------------------

    def start(self, term: int, quoted: bool) -> int:
        """Return the state at the beginning of a text of a non-empty term: a JSON string if ``quoted``, else raw."""
        return self.state(OPEN if quoted else RAW, term)

    def body(self, term: int, quoted: bool) -> int:
        """Return the state of a term between two characters."""
        if not quoted and term == self.terms.EPSILON:
            return DONE
        return self.state(QUOTED if quoted else RAW, term)

    def shared(self, state: int) -> tuple[Hashable | None, int | None]:
        """Return two sources of the token set of a state.

        Returns:
            A key that is the same in every store, if the state is one of the free string or of a seed, else None; and
            the corresponding state of the free string, if the state is before the opening quote of a JSON string or
            between two of its characters and has no key, else None.
        """
        kind, term = self.what(state)
        if OPEN <= kind <= QUOTED and term == self.terms.ALL:
            return free_key(kind), None
        key = ("seed", state) if state < self.seeded() else None
        return key, self.state(kind, self.terms.ALL) if kind in (OPEN, QUOTED) else None

    def free_body(self) -> int:
        """Return the state between two characters of the free JSON string."""
        return self.state(QUOTED, self.terms.ALL)

    def excluded(self, state: int) -> list[bytes] | None:
        """Return the words W if the continuations of a state (before the opening quote of a JSON string or between two
        of its characters) are all strings except W, and each word has one spelling; else None."""
        kind, term = self.what(state)
        is_asked: cython.bint = OPEN <= kind <= QUOTED and not self.terms.is_hurried  # else rows may lack more
        words = excluded_words(self.terms, term) if is_asked else None
        if words is None or _MANY_SPELLINGS("".join(words)):
            return None
        return [word.encode() for word in words]

    def open_class(self, state: int) -> int | None:
        """Return the number of a wide class C such that every string of C* may follow a state between two characters of
        a JSON string that is constrained by more than its length; None if there is none."""
        kind, term = self.what(state)
        chars = open_class(self.terms, term) if kind == QUOTED and not self.terms.is_hurried else None
        if chars == self.terms.ANY:  # the survey would be of a free string, which has more spellings
            chars = self.terms.chars_of(NEARLY_ANY)
        return None if chars is None or not self._is_wide(chars) else self.class_number(chars)

    def without_bound(self, state: int) -> tuple[int, int, int] | None:
        """Return ``(A, least, n)`` for a state between two characters of a JSON string of bounded length, else None.

        A is the state without the bound; the string needs at least ``least`` more characters; and every continuation
        that A allows, of up to n characters, can be completed within the bound (see ``length_bounds.py``)."""
        kind, term = self.what(state)
        if kind != QUOTED or self.terms.is_hurried:
            return None
        found = without_bound(self.terms, term, self.lengths)
        if found is None:
            return None
        return self.state(QUOTED, found.unbounded), found.least, found.most - found.margin

    def _is_wide(self, chars: int) -> bool:
        """Return True if a class has nearly all characters, so that few tokens leave it."""
        found = self.wide.get(chars)
        if found is None:
            ranges = self.terms.ranges(chars)
            printable_ascii = sum(max(0, min(high, 0x7E) - max(low, 0x20) + 1) for low, high in ranges)
            in_all = sum(high - low + 1 for low, high in ranges)
            found = self.wide[chars] = printable_ascii >= _WIDE_ASCII and in_all >= _WIDE
        return found

    def character_class(self, number: int) -> tuple[Hashable, int]:
        """Return a key of a class C that is the same in every store, and the state between two characters of a JSON
        string of C*."""
        chars = self.class_term(number)
        return self.terms.ranges(chars), self.body(self.terms.repeat(chars, 0, None), True)

    def shortest(self, state: int) -> bytes:
        """Return the shortest bytes that complete the text; if a search was given up, some bytes
        (`completion.strings`)."""
        known = self.paths.get(state)
        if known is None:
            known = self._find_shortest(state)
            if len(known) <= MAX_PATH:
                self.paths[state] = known
        return known

    def _find_shortest(self, state: int) -> bytes:
        """Return `shortest` of a state that is not memoised: by its term between two characters; inside a character, by
        the bytes of its row."""
        if self.nullable(state):
            return b""
        kind, term = self.what(state)
        if kind == OPEN:
            return b'"' + self.shortest(self.body(term, True))
        if kind == RAW:
            return shortest(self.terms, term, spell_raw, self.raw_firsts)
        if kind == QUOTED:
            return shortest(self.terms, term, spell_quoted, self.quoted_firsts) + b'"'
        # Inside a character, of which at most a few bytes are missing.
        first: dict[int, int] = {}
        for byte, target in enumerate(self.row(state)):
            if target != DEAD:
                first.setdefault(target, byte)
        options = [bytes((byte,)) + self.shortest(target) for target, byte in first.items()]
        return min(options, key=preference)


def free_key(kind: int) -> Hashable:
    """Return the key of a state of the free string (see `ByteRows.shared`).

    Args:
        kind: `OPEN` before the opening quote, `QUOTED` or `RAW` between two characters.
    """
    return "free", kind
