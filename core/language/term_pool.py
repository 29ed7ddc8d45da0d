# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False, cdivision=True
"""Where terms lie: hash-consed, in flat pools of integers, with the classes of characters and the words they name.

A term is a kind and a range of the pool of arguments; the same kind and arguments are the same term. What the kinds
mean is in `termkinds`; what is made of terms, in `termtable`.

Compiled where that is possible (Cython in pure-Python mode). What other compiled modules see of it in C stands in
``termpool.pxd``, which has the types of the attributes too.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ..errors import LimitError
from ..unicode.charset import CharSet

try:
    import cython
except ImportError:  # interpreted, without Cython installed
    from ..compiled import standin as cython  # type: ignore[no-redef]

if not cython.compiled:  # else they are declared
    from ..compiled.arrays import copied, grown
    from ..compiled.hashing import BASIS, mix
    from . import term_kinds

COMPILED: bool = bool(cython.compiled)


#: The remainder of a number, and one more digit, are an integer of 32 bits.
MOST_RESIDUES = (2**31 - 1) // 10

#: So many words are the same term as the same words elsewhere; more only as the same part of the same list.
FEW = cython.declare(cython.int, 16)
# Declared: else Cython computes with a number of more than 31 bits as an object.
BITS_32 = cython.declare(cython.ulonglong, 0xFFFFFFFF)


def plain_text(text: object) -> str:
    """A string as one of the builtin type itself: what users give may be of a class derived from it."""
    return text if type(text) is str else str.__str__(text)


@cython.cclass
class TermPool:
    """Terms, and what they are made of.

    ``flat`` is scratch: the arguments of the term that is made lie there.

    Args:
        room: how many terms the pool may hold.
    """

    def __init__(self, room):
        self.limit = room
        self.kind = grown(None, "B", 64)
        self.traits = grown(None, "B", 64)
        self.arg_at = grown(None, "i", 64)
        self.arg_count = grown(None, "i", 64)
        self.hashes = grown(None, "I", 64)
        self.args = grown(None, "i", 256)
        self.table = grown(None, "i", 128)
        self.count = self.arg_used = 0
        self.has_multiple = False
        self.sets, self.ranges_of, self.lists, self.spelled = {}, {}, [], {}
        self._scratch()
        self._make(term_kinds.EMPTY_KIND, 0, 0, False, True)
        self.traits[term_kinds.EMPTY] = term_kinds.REGULAR | term_kinds.DEAD
        self._make(term_kinds.EPSILON_KIND, 0, 0, True, True)
        self.chars(CharSet.full())

    @cython.cfunc
    def _scratch(self) -> object:
        self.flat = grown(None, "i", 64)
        self.bounds = grown(None, "i", 64)
        self.spare = grown(None, "i", 64)
        self.bound_count = 0
        return None

    @cython.cfunc
    def _copy_pool(self, other: TermPool) -> object:
        """Let a new pool begin with all terms so far, under the same numbers."""
        other.limit, other.count, other.arg_used = self.limit, self.count, self.arg_used
        other.kind = copied("B", self.kind)
        other.traits = copied("B", self.traits)
        other.arg_at = copied("i", self.arg_at)
        other.arg_count = copied("i", self.arg_count)
        other.hashes = copied("I", self.hashes)
        other.args = copied("i", self.args)
        other.table = copied("i", self.table)
        other.has_multiple = self.has_multiple
        other.sets, other.ranges_of = self.sets.copy(), self.ranges_of.copy()
        other.lists, other.spelled = self.lists.copy(), self.spelled.copy()
        other._scratch()
        return None

    def __len__(self) -> int:
        return self.count

    @property
    def room(self) -> int:
        """How many terms the pool may hold."""
        return self.limit

    @room.setter
    def room(self, room: int) -> None:
        self.limit = room

    # -- the store ---------------------------------------------------------------------------------------------

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _make(
        self, kind: cython.int, at: cython.int, n: cython.int, nullable: cython.bint, regular: cython.bint
    ) -> cython.int:
        """The term of a kind whose ``n`` arguments lie in ``flat`` from ``at`` on. ``regular``: built without
        intersection or complement, hence never empty unless it is `EMPTY`."""
        i: cython.int
        mixed: cython.ulonglong = mix(BASIS, kind)
        for i in range(at, at + n):
            mixed = mix(mixed, self.flat[i])
        short: cython.uint = mixed & BITS_32
        size: cython.uint = len(self.table)
        slot: cython.uint = short & (size - 1)
        found: cython.int = self.table[slot] - 1
        while found >= 0:
            if self.hashes[found] == short and self.kind[found] == kind and self.arg_count[found] == n:
                place: cython.int = self.arg_at[found] - at
                for i in range(at, at + n):
                    if self.args[place + i] != self.flat[i]:
                        break
                else:
                    return found
            slot = (slot + 1) & (size - 1)
            found = self.table[slot] - 1
        return self._add(kind, at, n, nullable, regular, short)

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _add(
        self,
        kind: cython.int,
        at: cython.int,
        n: cython.int,
        nullable: cython.bint,
        regular: cython.bint,
        short: cython.uint,
    ) -> cython.int:
        """A new term; ``short`` is its hash."""
        i: cython.int
        number: cython.int = self.count
        if number >= self.limit:
            raise LimitError(
                f"a pattern or enumeration needs more than {term_kinds.MAX_TERMS:,} automaton states",
                hint="simplify the pattern, or bound its repetitions",
            )
        if number == len(self.kind):
            self.traits = grown(self.traits, "B", 2 * number)
            self.arg_at = grown(self.arg_at, "i", 2 * number)
            self.arg_count = grown(self.arg_count, "i", 2 * number)
            self.hashes = grown(self.hashes, "I", 2 * number)
            self.table = grown(None, "i", 2 * len(self.table))  # always a power of two
            for i in range(number):
                self._enter(i)
            self.kind = grown(self.kind, "B", 2 * number)  # last: its length stands for all of them
        if self.arg_used + n > len(self.args):
            self.args = grown(self.args, "i", 2 * (self.arg_used + n))
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
        self.hashes[number] = short
        self.count += 1
        self._enter(number)
        return number

    @cython.cfunc
    @cython.exceptval(check=False)
    def _enter(self, term: cython.int) -> cython.int:
        """Put a term into the table."""
        size: cython.uint = len(self.table)
        slot: cython.uint = self.hashes[term] & (size - 1)
        while self.table[slot] != 0:
            slot = (slot + 1) & (size - 1)
        self.table[slot] = term + 1
        return 0

    @cython.cfunc
    @cython.exceptval(check=False)
    def _arg(self, term: cython.int, which: cython.int) -> cython.int:
        return self.args[self.arg_at[term] + which]

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _own(self, term: cython.int) -> cython.int:
        """A term that comes from outside, if it is one: what lies beyond the pool must not be read."""
        if term < 0 or term >= self.count:
            raise IndexError("no such term")
        return term

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _want(self, size: cython.int) -> cython.int:
        """Room for so many numbers in ``flat``."""
        if size > len(self.flat):
            self.flat = grown(self.flat, "i", 2 * size)
        return 0

    @cython.cfunc
    @cython.exceptval(check=False)
    def _flat_has(self, term: cython.int, n: cython.int) -> cython.bint:
        """Whether a term is among the first ``n`` numbers of ``flat``, which are in order."""
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
        """Sort the first ``n`` numbers of ``flat``, drop the repeated ones, and return how many are left."""
        i: cython.int
        j: cython.int
        k: cython.int
        value: cython.int
        if n > 64:
            ordered = sorted({self.flat[i] for i in range(n)})
            for i in range(len(ordered)):
                self.flat[i] = ordered[i]
            return len(ordered)
        left: cython.int = 0
        for i in range(n):
            value = self.flat[i]
            j = left
            while j > 0 and self.flat[j - 1] > value:
                j -= 1
            if j > 0 and self.flat[j - 1] == value:
                continue
            for k in range(left, j, -1):
                self.flat[k] = self.flat[k - 1]
            self.flat[j] = value
            left += 1
        return left

    # -- classes of characters ---------------------------------------------------------------------------------

    def chars(self, charset: CharSet) -> int:
        """Every one-character string whose character is in ``charset``."""
        found = self.sets.get(charset)
        if found is None:
            self.bound_count = 0
            for low, high in charset.ranges:
                self._bound(low)
                self._bound(high + 1)
            found = self.sets[charset] = self._class(0)
        return found

    def chars_of(self, flips: object) -> int:
        """The same of a set that is given by the sorted code points at which membership flips."""
        self.bound_count = 0
        for code in flips:
            self._bound(code)
        return self._class(0)

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _bound(self, code: cython.int) -> cython.int:
        """One more code point at which membership in the set in ``bounds`` flips."""
        if self.bound_count == len(self.bounds):
            self.spare = grown(self.spare, "i", 2 * self.bound_count)
            self.bounds = grown(self.bounds, "i", 2 * self.bound_count)
        self.bounds[self.bound_count] = code
        self.bound_count += 1
        return 0

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _class(self, at: cython.int) -> cython.int:
        """The characters of the set in ``bounds``; ``flat`` is free from ``at`` on."""
        i: cython.int
        if self.bound_count == 0:
            return term_kinds.EMPTY
        self._want(at + self.bound_count)
        for i in range(self.bound_count):
            self.flat[at + i] = self.bounds[i]
        return self._make(term_kinds.CHARS, at, self.bound_count, False, True)

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _meet_class(self, chars: cython.int, wanted: cython.int) -> cython.int:
        """The set in ``bounds`` united (``wanted`` 1) or intersected (2) with the characters of a term."""
        i: cython.int = 0
        j: cython.int = self.arg_at[chars]
        n: cython.int = self.bound_count
        stop: cython.int = j + self.arg_count[chars]
        begin: cython.int = j
        code: cython.int
        inside: cython.bint = False
        self.bounds, self.spare = self.spare, self.bounds
        self.bound_count = 0
        while i < n or j < stop:
            code = self.spare[i] if j == stop or (i < n and self.spare[i] < self.args[j]) else self.args[j]
            if i < n and self.spare[i] == code:
                i += 1
            if j < stop and self.args[j] == code:
                j += 1
            if ((i & 1) + ((j - begin) & 1) >= wanted) != inside:
                inside = not inside
                if self.bound_count == len(self.bounds):
                    self.bounds = grown(self.bounds, "i", 2 * self.bound_count)
                self.bounds[self.bound_count] = code
                self.bound_count += 1
        return 0

    def ranges(self, chars: cython.int) -> tuple:
        """The code points of a class of characters."""
        found = self.ranges_of.get(chars)
        if found is None:
            if self._own(chars) != term_kinds.EMPTY and self.kind[chars] != term_kinds.CHARS:
                raise ValueError("not a class of characters")
            at: cython.int = self.arg_at[chars]
            pairs = [(self.args[i], self.args[i + 1] - 1) for i in range(at, at + self.arg_count[chars], 2)]
            found = self.ranges_of[chars] = tuple(pairs)
        return found

    # -- words -------------------------------------------------------------------------------------------------

    def literal(self, text: object) -> int:
        """Exactly ``text``."""
        text = plain_text(text)
        found = self.spelled.get(text)
        if found is None:
            found = self.spelled[text] = self._list((text,))
        return found

    def words(self, texts: Iterable[str]) -> int:
        """Exactly these strings."""
        ordered = tuple(sorted({plain_text(each) for each in texts}))
        found = self.spelled.get(ordered)
        if found is None:
            found = self.spelled[ordered] = self._list(ordered) if ordered else term_kinds.EMPTY
        return found

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _list(self, ordered: tuple) -> cython.int:
        before: cython.int = self.count
        self.lists.append(ordered)
        term: cython.int = self._words(len(self.lists) - 1, 0, len(ordered), 0)
        if term < before:  # known: suffixes of other words
            self.lists.pop()
        return term

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _words(self, which: cython.int, first: cython.int, stop: cython.int, depth: cython.int) -> cython.int:
        """The words of a list from number ``first`` to ``stop``, each without its first ``depth`` characters."""
        words: tuple = self.lists[which]
        word: str = words[first]
        i: cython.int
        k: cython.int
        n: cython.int = stop - first
        nullable: cython.bint = len(word) == depth
        if n == 1 and nullable:
            return term_kinds.EPSILON
        self.flat[0], self.flat[1], self.flat[2], self.flat[3] = which, first, stop, depth
        if n > FEW:
            return self._make(term_kinds.WORDS, 0, 4, nullable, True)
        mixed: cython.ulonglong = mix(BASIS, term_kinds.WORDS)
        for i in range(first, stop):
            word = words[i]
            for k in range(depth, len(word)):
                mixed = mix(mixed, ord(word[k]))
            mixed = mix(mixed, -1)
        short: cython.uint = mixed & BITS_32
        size: cython.uint = len(self.table)
        slot: cython.uint = short & (size - 1)
        found: cython.int = self.table[slot] - 1
        while found >= 0:
            if self.hashes[found] == short and self.kind[found] == term_kinds.WORDS and self._same_words(found):
                return found
            slot = (slot + 1) & (size - 1)
            found = self.table[slot] - 1
        return self._add(term_kinds.WORDS, 0, 4, nullable, True, short)

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _same_words(self, term: cython.int) -> cython.bint:
        """Whether a term has the words that ``flat`` says."""
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

    def seq(self, left: cython.int, right: cython.int) -> int:
        """Concatenation."""
        return self._seq(self._own(left), self._own(right))

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _seq(self, left: cython.int, right: cython.int) -> cython.int:
        n: cython.int = 0
        if left == term_kinds.EMPTY or right == term_kinds.EMPTY:
            return term_kinds.EMPTY
        while self.kind[left] == term_kinds.SEQ:  # right-associated, so that equal languages meet
            self._want(n + 4)
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
        """Concatenation where ``left`` is none; ``flat`` is free from ``at`` on."""
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
        """Concatenation of many."""
        result: cython.int = term_kinds.EPSILON
        for part in reversed(parts):
            result = self._seq(self._own(part), result)
        return result

    def not_(self, part: cython.int) -> int:
        """Complement, relative to all strings."""
        return self._not(self._own(part))

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _not(self, part: cython.int) -> cython.int:
        if part == term_kinds.EMPTY:
            return term_kinds.ALL
        if part == term_kinds.ALL:
            return term_kinds.EMPTY
        if self.kind[part] == term_kinds.NOT:
            return self._arg(part, 0)
        self.flat[0] = part
        return self._make(term_kinds.NOT, 0, 1, not self.traits[part] & term_kinds.NULLABLE, False)

    def repeat(self, part: cython.int, least: int, most: int | None) -> int:
        """Between ``least`` and ``most`` copies (None: no upper bound)."""
        if most is not None and most < least:
            return term_kinds.EMPTY
        return self._copies(
            self._own(part),
            min(least, term_kinds.MANY),
            term_kinds.NONE if most is None or most > term_kinds.MANY else most,
            0,
        )

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _copies(self, part: cython.int, least: cython.int, most: cython.int, at: cython.int) -> cython.int:
        """`repeat`; ``flat`` is free from ``at`` on."""
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
        if self.kind[part] == term_kinds.REPEAT and least <= 1 and most == term_kinds.NONE:
            if self._arg(part, 2) == term_kinds.NONE and self._arg(part, 1) <= 1:
                return self._copies(self._arg(part, 0), min(least, self._arg(part, 1)), term_kinds.NONE, at)
        self._want(at + 4)
        self.flat[at], self.flat[at + 1], self.flat[at + 2] = part, least, most
        return self._make(term_kinds.REPEAT, at, 3, least == 0, (self.traits[part] & term_kinds.REGULAR) != 0)

    def multiples(self, of: int, places: int) -> int:
        """Unsigned decimal numbers, with or without a point, that are whole multiples of ``of / 10**places``."""
        if not 0 < of <= MOST_RESIDUES or places < 0:
            raise ValueError("remainders would not fit")
        self.has_multiple = True
        return self._multiple(of, places, 0, -1)

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _multiple(self, of: cython.int, places: cython.int, remainder: cython.int, behind: cython.int) -> cython.int:
        """What follows digits that leave a remainder; ``behind``: how many of them stand behind the point, -1 before
        it and before any digit, -2 before it."""
        missing: cython.int = places - max(behind, 0)
        power: cython.longlong = 1  # of ten, or more than `of`
        shifted: cython.longlong = remainder
        while missing > 0:
            missing -= 1
            shifted = shifted * 10 % of
            if power <= of:
                power *= 10
        if behind >= 0 and shifted != 0 and of - shifted >= power:
            return term_kinds.EMPTY  # the digits that are left cannot make up for it
        self.flat[0], self.flat[1], self.flat[2], self.flat[3] = of, places, remainder, behind
        return self._make(term_kinds.MULTIPLE, 0, 4, behind != -1 and shifted == 0, True)
