# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False, cdivision=True
"""The store of terms: hash-consing, and the laws by which equal languages become the same term.

A term is a kind (see `term_kinds`) and a range of one pool of arguments, and is interned by a hash table. This module
makes terms, bottom-up; `terms` has their derivatives. ``term_store.pxd`` says what the private arrays and tables hold.

The arguments of a new term are put into scratch space, ``flat``. A parameter ``at`` is the first index that a function
may overwrite there. Parts are sorted by their numbers, so `EMPTY` (0) and `EPSILON` (1) come first.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..basics.argument_checks import plain_text
from ..basics.pauses import pause
from ..errors import LimitError
from ..unicode.charset import CharSet

try:
    import cython
except ImportError:  # interpreted, without Cython installed
    from ..compiled import standin as cython  # type: ignore[no-redef]

if not cython.compiled:  # else they are declared
    from ..compiled.hashing import BASIS, mix
    from ..compiled.int_map import IntMap
    from ..compiled.memory import free, ints, more, octets, twin
    from . import term_kinds

#: Maximum divisor of `TermStore.multiples`: a remainder followed by one more digit fits in 32 bits.
MAX_RESIDUES = (2**31 - 1) // 10

#: Maximum number of words that are compared one by one; longer ranges are equal only if they are the same range.
FEW = cython.declare(cython.int, 16)
#: Maximum number of repetitions in a union that are compared pairwise; of more, all are kept.
MAX_ALIKE = cython.declare(cython.int, 64)
#: Additional capacity, in terms and in arguments, of a new copy of a store.
SPARE = cython.declare(cython.int, 256)


@cython.cfunc
@cython.exceptval(check=False)
def _is_one_count(low: cython.longlong, high: cython.longlong, least: cython.int, most: cython.int) -> cython.bint:
    """Return True if ``(x{low,high}){least,most}`` equals ``x{low*least,high*most}``. The numbers of x in k copies, up
    to high*k, and in k + 1, from low*(k + 1), must leave no gap; it is widest for the smallest k, ``least``."""
    if least == most:
        return True
    if high == term_kinds.NONE:
        return least > 0 or low <= 1
    return (high - low) * least + 1 >= low


@cython.cclass
class TermStore:
    """The hash-consing store of terms.

    Laws (all property-tested): `alt` is union, `and_` intersection, `not_` complement relative to all strings,
    `seq` concatenation, `repeat` bounded repetition.

    Attributes:
        EMPTY, EPSILON: the empty language, and that of the empty string.
        ALL, ANY: every string, and every string of one character.
        room: maximum number of terms in the store.
        memo: a dictionary for callers, by keys of their own.
    """

    EMPTY = term_kinds.EMPTY
    EPSILON = term_kinds.EPSILON
    ANY = term_kinds.ANY
    ALL = term_kinds.ALL

    def __init__(self) -> None:
        self.room = term_kinds.MAX_TERMS
        self.term_room, self.kind, self.traits = 64, octets(64), octets(64)
        self.arg_at, self.arg_count = ints(64), ints(64)
        self.row_at, self.row_count = ints(64), ints(64)
        self.arg_room, self.args = 256, ints(256)
        self.interned, self.seeded = IntMap(), None
        self.count = self.arg_used = self.listed = 0
        self.has_multiple = False
        self.sets, self.ranges_of, self.lists, self.spelled = {}, {}, [], {}
        self.keys, self.builders, self.memo = {}, {}, {}
        self._scratch()
        self._make(term_kinds.EMPTY_KIND, 0, 0, False, True)
        self.traits[term_kinds.EMPTY] = term_kinds.REGULAR | term_kinds.DEAD
        self._make(term_kinds.EPSILON_KIND, 0, 0, True, True)
        self.chars(CharSet.full())  # ANY
        self._copies(term_kinds.ANY, 0, term_kinds.NONE, 0)  # ALL

    @cython.cfunc
    def _scratch(self) -> object:
        """Allocate scratch space."""
        self.flat_room, self.flat = 64, ints(64)
        self.bound_room, self.bounds = 64, ints(64)
        self.spare_room, self.spare = 64, ints(64)
        self.bound_count = 0

    def __dealloc__(self) -> None:
        free(self.kind)
        free(self.traits)
        free(self.arg_at)
        free(self.arg_count)
        free(self.row_at)
        free(self.row_count)
        free(self.args)
        free(self.flat)
        free(self.bounds)
        free(self.spare)

    @cython.cfunc
    def _copy_terms(self, other: TermStore) -> object:
        """Copy all terms of this store, under the same numbers, into an empty one; this store must not change later."""
        if self.seeded is not None:
            raise ValueError("a copy of a store is not copied again")
        room: cython.int = self.count + SPARE
        other.room, other.count, other.term_room = self.room, self.count, room
        other.kind, other.traits = twin(self.kind, self.count, room), twin(self.traits, self.count, room)
        other.arg_at, other.arg_count = twin(self.arg_at, self.count, room), twin(self.arg_count, self.count, room)
        other.row_at, other.row_count = twin(self.row_at, self.count, room), twin(self.row_count, self.count, room)
        other.arg_used, other.arg_room = self.arg_used, self.arg_used + SPARE
        other.args = twin(self.args, self.arg_used, other.arg_room)
        other.interned, other.seeded = IntMap(), self.interned
        other.has_multiple, other.listed = self.has_multiple, 0
        other.sets, other.ranges_of = self.sets.copy(), self.ranges_of.copy()
        other.lists, other.spelled = self.lists.copy(), self.spelled.copy()
        other.keys, other.builders, other.memo = self.keys.copy(), self.builders.copy(), self.memo.copy()
        other._scratch()

    def __len__(self) -> int:
        return self.count

    def byte_count(self) -> int:
        """Return the bytes of the terms: those of arrays exactly, those of objects by their number (measured)."""
        held: cython.longlong = 18 * self.term_room + 4 * self.arg_room + self.interned.byte_count()
        held += 8 * self.listed + 200 * (len(self.sets) + len(self.ranges_of) + len(self.spelled))
        return held + 300 * (len(self.keys) + len(self.builders) + len(self.memo))

    # -- the store ---------------------------------------------------------------------------------------------

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _make(
        self, kind: cython.int, at: cython.int, n: cython.int, nullable: cython.bint, regular: cython.bint
    ) -> cython.int:
        """Return the term of a kind whose ``n`` arguments are ``flat[at : at + n]``. ``regular``: built without
        intersection or complement, hence never empty unless it is `EMPTY`."""
        i: cython.int
        hashed: cython.ulonglong = mix(BASIS, kind)
        for i in range(at, at + n):
            hashed = mix(hashed, self.flat[i])
        hashed |= 1  # 0 is no key of an `IntMap`
        term: cython.int = self._find(self.interned, kind, at, n, hashed)
        if term < 0 and self.seeded is not None:
            term = self._find(self.seeded, kind, at, n, hashed)
        return term if term >= 0 else self._add(kind, at, n, nullable, regular, hashed)

    @cython.cfunc
    @cython.exceptval(-2, check=False)
    def _find(
        self, table: IntMap, kind: cython.int, at: cython.int, n: cython.int, hashed: cython.ulonglong
    ) -> cython.int:
        """Return the interned term with the arguments of `_make`; -1 if there is none."""
        i: cython.int
        slot: cython.int = table.first(hashed)
        while slot >= 0:
            term: cython.int = table.values[slot]
            if self.kind[term] == kind and self.arg_count[term] == n:
                place: cython.int = self.arg_at[term] - at
                for i in range(at, at + n):
                    if self.args[place + i] != self.flat[i]:
                        break
                else:
                    return term
            slot = table.after(slot)
        return -1

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _add(
        self,
        kind: cython.int,
        at: cython.int,
        n: cython.int,
        nullable: cython.bint,
        regular: cython.bint,
        hashed: cython.ulonglong,
    ) -> cython.int:
        """Add a new term and return it; ``hashed`` is its key in ``interned``."""
        i: cython.int
        number: cython.int = self.count
        if number >= self.room:
            raise LimitError(
                f"a pattern or enumeration needs more than {term_kinds.MAX_TERMS:,} automaton states",
                hint="simplify the pattern, or bound its repetitions",
            )
        if not number & 1023:
            pause()
        if number == self.term_room:
            self.kind = more(self.kind, number, 2 * number)
            self.traits = more(self.traits, number, 2 * number)
            self.arg_at = more(self.arg_at, number, 2 * number)
            self.arg_count = more(self.arg_count, number, 2 * number)
            self.row_at = more(self.row_at, number, 2 * number)
            self.row_count = more(self.row_count, number, 2 * number)
            self.term_room = 2 * number
        if self.arg_used + n > self.arg_room:
            self.args = more(self.args, self.arg_room, 2 * (self.arg_used + n))
            self.arg_room = 2 * (self.arg_used + n)
        self.kind[number] = kind
        self.traits[number] = (
            (term_kinds.NULLABLE if nullable else 0)
            | (term_kinds.REGULAR if regular else 0)
            | (term_kinds.LIVE if nullable or regular else 0)
        )
        self.arg_at[number] = self.arg_used
        self.arg_count[number] = n
        for i in range(n):
            self.args[self.arg_used + i] = self.flat[at + i]
        self.arg_used += n
        self.count += 1
        self.interned.add(hashed, number)
        return number

    @cython.cfunc
    @cython.exceptval(check=False)
    def _arg(self, term: cython.int, which: cython.int) -> cython.int:
        return self.args[self.arg_at[term] + which]

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _own(self, term: cython.int) -> cython.int:
        """Return a term given by a caller; raise IndexError if it is out of bounds."""
        if term < 0 or term >= self.count:
            raise IndexError("no such term")
        return term

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _reserve(self, size: cython.int) -> cython.int:
        """Ensure that ``flat`` has room for ``size`` numbers."""
        if size > self.flat_room:
            self.flat = more(self.flat, self.flat_room, 2 * size)
            self.flat_room = 2 * size
        return 0

    @cython.cfunc
    @cython.exceptval(check=False)
    def _flat_has(self, term: cython.int, n: cython.int) -> cython.bint:
        """Return True if a term is in ``flat[:n]``, which is sorted."""
        low: cython.int = 0
        high: cython.int = n
        middle: cython.int
        while low < high:
            middle = (low + high) >> 1
            if self.flat[middle] < term:
                low = middle + 1
            else:
                high = middle
        return low < n and self.flat[low] == term

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _in_order(self, n: cython.int) -> cython.int:
        """Sort ``flat[:n]``, drop duplicates, and return the number that remains."""
        i: cython.int
        j: cython.int
        k: cython.int
        value: cython.int
        if n > 64:  # else by insertion
            ordered = sorted({self.flat[i] for i in range(n)})
            for i in range(len(ordered)):
                self.flat[i] = ordered[i]
            return len(ordered)
        kept: cython.int = 0
        for i in range(n):
            value = self.flat[i]
            j = kept
            while j > 0 and self.flat[j - 1] > value:
                j -= 1
            if j > 0 and self.flat[j - 1] == value:
                continue
            for k in range(kept, j, -1):
                self.flat[k] = self.flat[k - 1]
            self.flat[j] = value
            kept += 1
        return kept

    # -- classes of characters ---------------------------------------------------------------------------------

    def chars(self, charset: CharSet) -> int:
        """Return the language of the one-character strings whose character is in ``charset``."""
        found = self.sets.get(charset)
        if found is None:
            self.bound_count = 0
            for low, high in charset.ranges:
                self._bound(low)
                self._bound(high + 1)
            found = self.sets[charset] = self._class(0)
        return found

    @cython.ccall
    @cython.exceptval(-1, check=False)
    def chars_of(self, flips: object) -> cython.int:
        """Return `chars` of the set with these flips: the sorted code points at which membership changes."""
        self.bound_count = 0
        for code in flips:
            self._bound(code)
        return self._class(0)

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _bound(self, code: cython.int) -> cython.int:
        """Append a flip to the set in ``bounds``."""
        if self.bound_count == self.bound_room:
            self.bounds = more(self.bounds, self.bound_room, 2 * self.bound_room)
            self.bound_room *= 2
        self.bounds[self.bound_count] = code
        self.bound_count += 1
        return 0

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _class(self, at: cython.int) -> cython.int:
        """Return the CHARS term of the set in ``bounds``."""
        i: cython.int
        if self.bound_count == 0:
            return term_kinds.EMPTY
        self._reserve(at + self.bound_count)
        for i in range(self.bound_count):
            self.flat[at + i] = self.bounds[i]
        return self._make(term_kinds.CHARS, at, self.bound_count, False, True)

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _meet_class(self, chars: cython.int, wanted: cython.int) -> cython.int:
        """Unite (``wanted`` 1) or intersect (``wanted`` 2) the set in ``bounds`` with a CHARS term: keep the characters
        that are in at least ``wanted`` of both."""
        i: cython.int = 0
        j: cython.int = self.arg_at[chars]
        n: cython.int = self.bound_count
        stop: cython.int = j + self.arg_count[chars]
        begin: cython.int = j
        code: cython.int
        inside: cython.bint = False
        self.bounds, self.spare = self.spare, self.bounds
        self.bound_room, self.spare_room = self.spare_room, self.bound_room
        self.bound_count = 0
        while i < n or j < stop:
            code = self.spare[i] if j == stop or (i < n and self.spare[i] < self.args[j]) else self.args[j]
            if i < n and self.spare[i] == code:
                i += 1
            if j < stop and self.args[j] == code:
                j += 1
            if ((i & 1) + ((j - begin) & 1) >= wanted) != inside:  # in a set: after an odd number of its flips
                inside = not inside
                self._bound(code)
        return 0

    def ranges(self, chars: cython.int) -> tuple:
        """Return the ranges of code points of a class of characters, as pairs of the first and the last."""
        found = self.ranges_of.get(chars)
        if found is None:
            if self._own(chars) != term_kinds.EMPTY and self.kind[chars] != term_kinds.CHARS:
                raise ValueError("not a class of characters")
            at: cython.int = self.arg_at[chars]
            pairs = [(self.args[i], self.args[i + 1] - 1) for i in range(at, at + self.arg_count[chars], 2)]
            found = self.ranges_of[chars] = tuple(pairs)
        return found

    # -- words -------------------------------------------------------------------------------------------------

    @cython.ccall
    @cython.exceptval(-1, check=False)
    def literal(self, text: object) -> cython.int:
        """Return the language of exactly ``text``."""
        text = text if type(text) is str else plain_text(text)
        found = self.spelled.get(text)
        if found is None:
            found = self.spelled[text] = self._list((text,))
        return found

    @cython.ccall
    @cython.exceptval(-1, check=False)
    def words(self, texts: object) -> cython.int:
        """Return the language of these strings."""
        ordered = tuple(sorted({plain_text(each) for each in texts}))
        found = self.spelled.get(ordered)
        if found is None:
            found = self.spelled[ordered] = self._list(ordered) if ordered else term_kinds.EMPTY
        return found

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _list(self, ordered: tuple) -> cython.int:
        """Return the WORDS term of all these words, which are sorted."""
        before: cython.int = self.count
        self.lists.append(ordered)
        self.listed += len(ordered)
        term: cython.int = self._words(len(self.lists) - 1, 0, len(ordered), 0)
        if term < before:  # interned before: suffixes of other words
            self.lists.pop()
            self.listed -= len(ordered)
        return term

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _words(self, which: cython.int, first: cython.int, stop: cython.int, depth: cython.int) -> cython.int:
        """Return the WORDS term of ``lists[which][first:stop]`` without the first ``depth`` characters of each."""
        words: tuple = self.lists[which]
        word: str = words[first]
        i: cython.int
        k: cython.int
        n: cython.int = stop - first
        nullable: cython.bint = len(word) == depth  # the words are sorted: the shortest is the first
        if n == 1 and nullable:
            return term_kinds.EPSILON
        self.flat[0], self.flat[1], self.flat[2], self.flat[3] = which, first, stop, depth
        if n > FEW:  # else it is known by the words themselves
            return self._make(term_kinds.WORDS, 0, 4, nullable, True)
        hashed: cython.ulonglong = mix(BASIS, term_kinds.WORDS)
        for i in range(first, stop):
            word = words[i]
            for k in range(depth, len(word)):
                hashed = mix(hashed, ord(word[k]))
            hashed = mix(hashed, -1)  # the end of a word
        hashed |= 1  # 0 is no key of an `IntMap`
        term: cython.int = self._find_words(self.interned, hashed)
        if term < 0 and self.seeded is not None:
            term = self._find_words(self.seeded, hashed)
        return term if term >= 0 else self._add(term_kinds.WORDS, 0, 4, nullable, True, hashed)

    @cython.cfunc
    @cython.exceptval(-2, check=False)
    def _find_words(self, table: IntMap, hashed: cython.ulonglong) -> cython.int:
        """Return the interned WORDS term of the arguments in ``flat``; -1 if there is none."""
        slot: cython.int = table.first(hashed)
        while slot >= 0:
            term: cython.int = table.values[slot]
            if self.kind[term] == term_kinds.WORDS and self._same_words(term):
                return term
            slot = table.after(slot)
        return -1

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _same_words(self, term: cython.int) -> cython.bint:
        """Return True if a WORDS term has the same words as the arguments (of `_words`) in ``flat``."""
        place: cython.int = self.arg_at[term]
        n: cython.int = self.flat[2] - self.flat[1]
        if self.args[place + 2] - self.args[place + 1] != n:
            return False
        mine: tuple = self.lists[self.flat[0]]
        theirs: tuple = self.lists[self.args[place]]
        depth: cython.int = self.flat[3]
        other: cython.int = self.args[place + 3]
        i: cython.int
        k: cython.int
        length: cython.int
        for i in range(n):
            word: str = mine[self.flat[1] + i]
            known: str = theirs[self.args[place + 1] + i]
            length = len(word) - depth
            if len(known) - other != length:
                return False
            for k in range(length):
                if word[depth + k] != known[other + k]:
                    return False
        return True

    # -- concatenation, complement, repetition, multiples ------------------------------------------------------

    @cython.ccall
    @cython.exceptval(-1, check=False)
    def seq(self, left: cython.int, right: cython.int) -> cython.int:
        """Return the concatenation."""
        return self._seq(self._own(left), self._own(right))

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _seq(self, left: cython.int, right: cython.int) -> cython.int:
        """Do `seq` without the check of arguments. The result is right-nested, so that equal languages are one term;
        the parts of ``left`` are in ``flat`` meanwhile."""
        n: cython.int = 0
        if left == term_kinds.EMPTY or right == term_kinds.EMPTY:
            return term_kinds.EMPTY
        while self.kind[left] == term_kinds.SEQ:
            self._reserve(n + 4)
            self.flat[n] = self._arg(left, 0)
            left = self._arg(left, 1)
            n += 1
        right = self._pair(left, right, n)
        while n > 0:
            n -= 1
            right = self._pair(self.flat[n], right, n + 1)
        return right

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _pair(self, left: cython.int, right: cython.int, at: cython.int) -> cython.int:
        """Return the concatenation; ``left`` is not a SEQ."""
        if left == term_kinds.EPSILON:
            return right
        if right == term_kinds.EPSILON:
            return left
        if left == term_kinds.ALL and right == term_kinds.ALL:
            return term_kinds.ALL
        self.flat[at], self.flat[at + 1] = left, right
        both: cython.int = self.traits[left] & self.traits[right]
        return self._make(term_kinds.SEQ, at, 2, (both & term_kinds.NULLABLE) != 0, (both & term_kinds.REGULAR) != 0)

    def sequence(self, parts: Sequence[int]) -> int:
        """Return the concatenation of many."""
        result: cython.int = term_kinds.EPSILON
        for part in reversed(parts):
            result = self._seq(self._own(part), result)
        return result

    @cython.ccall
    @cython.exceptval(-1, check=False)
    def not_(self, part: cython.int) -> cython.int:
        """Return the complement, relative to all strings."""
        return self._not(self._own(part))

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _not(self, part: cython.int) -> cython.int:
        """Do `not_` without the check of its argument; a double complement is the term itself."""
        if part == term_kinds.EMPTY:
            return term_kinds.ALL
        if part == term_kinds.ALL:
            return term_kinds.EMPTY
        if self.kind[part] == term_kinds.NOT:
            return self._arg(part, 0)
        self.flat[0] = part
        return self._make(term_kinds.NOT, 0, 1, not self.traits[part] & term_kinds.NULLABLE, False)

    @cython.ccall
    @cython.exceptval(-1, check=False)
    def repeat(self, part: cython.int, least: object, most: object) -> cython.int:
        """Return between ``least`` and ``most`` copies (None: no upper bound)."""
        if most is not None and most < least:
            return term_kinds.EMPTY
        upper: cython.int = term_kinds.NONE if most is None or most > term_kinds.MANY else most
        return self._copies(self._own(part), min(least, term_kinds.MANY), upper, 0)

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _copies(self, part: cython.int, least: cython.int, most: cython.int, at: cython.int) -> cython.int:
        """Do `repeat` without the check of arguments, with NONE for no upper bound."""
        if most != term_kinds.NONE and most < least:
            return term_kinds.EMPTY
        if most == 0:
            return term_kinds.EPSILON
        if part == term_kinds.EMPTY:
            return term_kinds.EPSILON if least == 0 else term_kinds.EMPTY
        if part == term_kinds.EPSILON:
            return term_kinds.EPSILON
        if self.traits[part] & term_kinds.NULLABLE:
            least = 0
        if least == 1 and most == 1:
            return part
        if part == term_kinds.ALL:
            return term_kinds.ALL
        if self.kind[part] == term_kinds.REPEAT:
            low: cython.longlong = self._arg(part, 1)
            high: cython.longlong = self._arg(part, 2)
            if _is_one_count(low, high, least, most):
                low *= least
                high = term_kinds.NONE if high < 0 or most < 0 else high * most
                if low <= term_kinds.MANY and high <= term_kinds.MANY:
                    return self._copies(self._arg(part, 0), low, high, at)
        self._reserve(at + 4)
        self.flat[at], self.flat[at + 1], self.flat[at + 2] = part, least, most
        return self._make(term_kinds.REPEAT, at, 3, least == 0, (self.traits[part] & term_kinds.REGULAR) != 0)

    def multiples(self, of: int, places: int) -> int:
        """Return the unsigned decimal numbers, with or without a point, that are whole multiples of ``of /
        10**places``."""
        if not 0 < of <= MAX_RESIDUES or places < 0:
            raise ValueError("remainders would not fit")
        self.has_multiple = True
        return self._multiple(of, places, 0, term_kinds.NO_DIGITS)

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _multiple(self, of: cython.int, places: cython.int, remainder: cython.int, decimals: cython.int) -> cython.int:
        """Return the continuations of a decimal number whose digits so far have this remainder and ``decimals`` digits
        after the point (before the point: `NO_DIGITS` or `NO_POINT`)."""
        missing: cython.int = places - max(decimals, 0)
        power: cython.longlong = 1  # 10**missing, capped above `of`
        shifted: cython.longlong = remainder  # the remainder after `missing` zeros
        while missing > 0:
            missing -= 1
            shifted = shifted * 10 % of
            if power <= of:
                power *= 10
        if decimals >= 0 and shifted != 0 and of - shifted >= power:
            return term_kinds.EMPTY  # the missing digits add less than `power`, which reaches no multiple
        self.flat[0], self.flat[1], self.flat[2], self.flat[3] = of, places, remainder, decimals
        return self._make(term_kinds.MULTIPLE, 0, 4, decimals != term_kinds.NO_DIGITS and shifted == 0, True)

    # -- operations --------------------------------------------------------------------------------------------

    @cython.ccall
    @cython.exceptval(-1, check=False)
    def alt(self, parts: object) -> cython.int:
        """Return the union."""
        n: cython.int = 0
        for part in list(parts):
            n = self._spread(term_kinds.ALT, self._own(part), n)
        return self._alt(n)

    @cython.ccall
    @cython.exceptval(-1, check=False)
    def and_(self, parts: object) -> cython.int:
        """Return the intersection."""
        n: cython.int = 0
        for part in list(parts):
            n = self._spread(term_kinds.AND, self._own(part), n)
        return self._and(n)

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _spread(self, kind: cython.int, part: cython.int, n: cython.int) -> cython.int:
        """Append the parts of a term to the parts ``flat[:n]`` of a union or intersection; return the new ``n``."""
        i: cython.int
        if self.kind[part] != kind:
            if part == (term_kinds.EMPTY if kind == term_kinds.ALT else term_kinds.ALL):
                return n
            self._reserve(n + 4)
            self.flat[n] = part
            return n + 1
        at: cython.int = self.arg_at[part]
        many: cython.int = self.arg_count[part]
        self._reserve(n + many + 4)
        for i in range(many):
            self.flat[n + i] = self.args[at + i]
        return n + many

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _alt(self, n: cython.int) -> cython.int:
        """Return the union of the parts ``flat[:n]``, simplified so that equal languages more often are one term:
        classes of characters are united, included repetitions dropped."""
        i: cython.int
        kept: cython.int = 0
        classes: cython.int = 0
        nullable: cython.bint = False
        regular: cython.bint = True
        if n > 1:
            n = self._in_order(n)
        if n == 0:
            return term_kinds.EMPTY
        if n == 1:
            return self.flat[0]
        if self._flat_has(term_kinds.ALL, n):
            return term_kinds.ALL
        for i in range(n):
            if self.kind[self.flat[i]] == term_kinds.CHARS:
                classes += 1
        if classes > 1:  # [a] | [b] is [ab]
            self.bound_count = 0
            for i in range(n):
                if self.kind[self.flat[i]] == term_kinds.CHARS:
                    self._meet_class(self.flat[i], 1)
                else:
                    self.flat[kept] = self.flat[i]
                    kept += 1
            self.flat[kept] = self._class(kept + 1)
            n = self._in_order(kept + 1)
        n = _drop_included(self, n)
        for i in range(n):
            if self.traits[self.flat[i]] & term_kinds.NULLABLE and self.flat[i] != term_kinds.EPSILON:
                nullable = True
            if not self.traits[self.flat[i]] & term_kinds.REGULAR:
                regular = False
        if self.flat[0] == term_kinds.EPSILON:
            if nullable:  # another part has the empty string: EPSILON is dropped
                n -= 1
                for i in range(n):
                    self.flat[i] = self.flat[i + 1]
            nullable = True
        return self.flat[0] if n == 1 else self._make(term_kinds.ALT, 0, n, nullable, regular)

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _and(self, n: cython.int) -> cython.int:
        """Return the intersection of the parts ``flat[:n]``."""
        i: cython.int
        runs: cython.int
        nullable: cython.bint = True
        while True:
            if n > 1:
                n = self._in_order(n)
            if n == 0:
                return term_kinds.ALL
            if self.flat[0] == term_kinds.EMPTY:
                return term_kinds.EMPTY
            if n == 1:
                return self.flat[0]
            nullable = True
            for i in range(n):
                if not self.traits[self.flat[i]] & term_kinds.NULLABLE:
                    nullable = False
                    break
            if self.flat[0] == term_kinds.EPSILON:
                return term_kinds.EPSILON if nullable else term_kinds.EMPTY
            runs = 0
            for i in range(n):
                if self.kind[self.flat[i]] == term_kinds.NOT:
                    if self._flat_has(self._arg(self.flat[i], 0), n):
                        return term_kinds.EMPTY
                elif self._is_run(self.flat[i]):
                    runs += 1
            if runs < 2:
                return self._make(term_kinds.AND, 0, n, nullable, False)
            n = self._common_run(n)  # [ab]{2,} and [bc]{0,9} is [b]{2,9}

    @cython.cfunc
    def _is_run(self, term: cython.int) -> cython.bint:
        """Return True if a term is a *run*: a class of characters, or a bounded repetition of one."""
        return self.kind[_counted(self, term)] == term_kinds.CHARS

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _common_run(self, n: cython.int) -> cython.int:
        """Replace the runs in ``flat[:n]`` (see `_is_run`) by their intersection; return the new ``n``."""
        i: cython.int
        part: cython.int
        kept: cython.int = 0
        least: cython.int = 0
        most: cython.int = term_kinds.NONE
        low: cython.int
        high: cython.int
        self.bound_count = 0
        self._bound(0)  # all characters, to be intersected
        self._bound(term_kinds.END)
        for i in range(n):
            part = self.flat[i]
            if not self._is_run(part):
                self.flat[kept] = part
                kept += 1
                continue
            low = high = 1
            if self.kind[part] == term_kinds.REPEAT:
                low, high = self._arg(part, 1), self._arg(part, 2)
                part = self._arg(part, 0)
            self._meet_class(part, 2)
            least = max(least, low)
            if high != term_kinds.NONE:
                most = high if most == term_kinds.NONE else min(most, high)
        part = self._copies(self._class(kept), least, most, kept)
        return self._spread(term_kinds.AND, part, kept)

    def deferred(self, key: object, build: Callable[..., int], *, loops: bool = False, least: int = 1) -> int:
        """Return a term that is built by ``build(store)`` when its derivative is needed.

        It must not be empty, contain the empty string, or use intersection or complement. ``key`` identifies it in this
        store; ``loops``: it may contain itself; ``least``: a lower bound of the length of its strings."""
        found = self.keys.get(key)
        if found is None:
            self.flat[0], self.flat[1] = len(self.keys), least
            term: cython.int = self._make(term_kinds.DEFERRED, 0, 2, False, True)
            self.keys[key] = found = term
            self.builders[term] = build
            if loops:
                self.traits[term] = self.traits[term] & ~term_kinds.REGULAR
        return found

    # -- shapes ------------------------------------------------------------------------------------------------

    @cython.ccall
    @cython.exceptval(-1, check=False)
    def nullable(self, term: cython.int) -> cython.bint:
        """Return True if the empty string is in the language."""
        return (self.traits[self._own(term)] & term_kinds.NULLABLE) != 0

    @cython.ccall
    def run_bounds(self, term: cython.int) -> object:
        """Return ``(class, least, most)`` if the term is a bounded repetition of a class of characters (a term); else
        None."""
        if self.kind[self._own(term)] == term_kinds.CHARS:
            return term, 1, 1
        if not self._is_run(term):
            return None
        most: cython.int = self._arg(term, 2)
        return self._arg(term, 0), self._arg(term, 1), None if most == term_kinds.NONE else most

    def shape(self, term: cython.int) -> tuple:
        """Return the kind of a term (see `term_kinds`) and its arguments: for CHARS the ranges, for WORDS the words,
        for DEFERRED the lower bound of its lengths (see `made`)."""
        kind, at = self.kind[self._own(term)], self.arg_at[term]
        if kind == term_kinds.CHARS:
            return kind, self.ranges(term)
        if kind == term_kinds.DEFERRED:
            return kind, (self.args[at + 1],)
        if kind == term_kinds.WORDS:
            words: tuple = self.lists[self.args[at]]
            return kind, tuple([each[self.args[at + 3] :] for each in words[self.args[at + 1] : self.args[at + 2]]])
        return kind, tuple([self.args[i] for i in range(at, at + self.arg_count[term])])

    def made(self, term: cython.int) -> int:
        """Return the built term of a DEFERRED term."""
        return int(self.builders[term](self))

    def known(self, term: cython.int) -> int:
        """Return the known traits of a term as bits (see `term_kinds`). Here REGULAR excludes multiples."""
        return self.traits[self._own(term)] & ~(term_kinds.REGULAR if self.has_multiple else 0)

    @cython.ccall
    def length_bounds(self, term: cython.int) -> object:
        """Return ``(least, most)`` if the language is every string of a length between these bounds; else None."""
        bounds = self.run_bounds(term)
        return bounds[1:] if bounds is not None and bounds[0] == term_kinds.ANY else None


# -- unions with fewer parts -----------------------------------------------------------------------------------


@cython.cfunc
@cython.exceptval(check=False)
def _factor(terms: TermStore, part: cython.int) -> cython.int:
    """Return the first factor of a concatenation; the term itself if it is not one."""
    return terms._arg(part, 0) if terms.kind[part] == term_kinds.SEQ else part


@cython.cfunc
@cython.exceptval(check=False)
def _counted(terms: TermStore, term: cython.int) -> cython.int:
    """Return the repeated term of a repetition; the term itself if it is not one."""
    return terms._arg(term, 0) if terms.kind[term] == term_kinds.REPEAT else term


@cython.cfunc
@cython.exceptval(check=False)
def _is_included(terms: TermStore, part: cython.int, whole: cython.int) -> cython.bint:
    """Return True if two concatenations differ only in the bounds of repetitions, and those of ``part`` are within
    those of ``whole``; then ``part`` is a subset of ``whole``."""
    while part != whole:
        first: cython.int = _factor(terms, part)
        other: cython.int = _factor(terms, whole)
        if first != other:
            if terms.kind[first] != term_kinds.REPEAT or terms.kind[other] != term_kinds.REPEAT:
                return False
            most: cython.int = terms._arg(other, 2)
            if terms._arg(first, 0) != terms._arg(other, 0) or terms._arg(first, 1) < terms._arg(other, 1):
                return False
            if most != term_kinds.NONE:
                if terms._arg(first, 2) == term_kinds.NONE or terms._arg(first, 2) > most:
                    return False
        if terms.kind[part] != term_kinds.SEQ or terms.kind[whole] != term_kinds.SEQ:
            return terms.kind[part] == terms.kind[whole]  # else one of them goes on
        part = terms._arg(part, 1)
        whole = terms._arg(whole, 1)
    return True


@cython.cfunc
@cython.exceptval(-1, check=False)
def _drop_included(terms: TermStore, n: cython.int) -> cython.int:
    """Drop from the parts ``flat[:n]`` of a union repetitions that other parts include; return the number that remains.

    For example, a derivative of ``([a-z]{1,9}-?){1,9}`` after several letters has a part for each group that may be the
    current one and each number of letters that it may have read; two of these parts include all others.
    """
    i: cython.int
    part: cython.int
    count: cython.int = 0
    kept: cython.int = 0
    for i in range(n):
        count += terms.kind[_factor(terms, terms.flat[i])] == term_kinds.REPEAT
    if count < 2:
        return n
    alike: dict = {}  # parts by the first two factors, without bounds
    for i in range(n):
        part = terms.flat[i]
        if terms.kind[_factor(terms, part)] == term_kinds.REPEAT:
            second: cython.int = -1
            if terms.kind[part] == term_kinds.SEQ:
                second = _counted(terms, _factor(terms, terms._arg(part, 1)))
            alike.setdefault((_counted(terms, _factor(terms, part)), second), []).append(part)
    dropped: set = set()
    for parts in alike.values():
        if len(parts) > MAX_ALIKE:
            continue
        for one in parts:
            for other in parts:
                if one != other and other not in dropped and _is_included(terms, one, other):
                    dropped.add(one)
                    break
    if not dropped:
        return n
    for i in range(n):
        if terms.flat[i] not in dropped:
            terms.flat[kept] = terms.flat[i]
            kept += 1
    return kept
