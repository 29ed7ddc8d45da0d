"""How decoded text is spelled in bytes: derivative rows of terms through UTF-8 and JSON escaping.

A *row state* is a small integer; its row says, for each of the 256 bytes, which row state follows (-1: no valid
text goes on so). The spelling is exact: UTF-8 has no overlong forms and no surrogates (RFC 3629); a JSON string
(RFC 8259 section 7) may spell a character raw or escaped, ``\\uD83D\\uDE00`` is one character, and a lone surrogate
escape is not a character. One spelling is left out: in a string that is constrained (by a pattern, say), printable
ASCII is not written as ``\\u0041``. A row only ever leads to states from which the text can still be finished.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Hashable

from ..language.terms import END, Segments, Terms

DEAD = -1

#: The row state in which the text is complete and nothing can follow.
DONE = 0

_SHORT_ESCAPES = {0x22: 0x22, 0x5C: 0x5C, 0x2F: 0x2F, 0x62: 8, 0x66: 12, 0x6E: 10, 0x72: 13, 0x74: 9}
_HEX = tuple((ord(digit), int(digit, 16)) for digit in "0123456789abcdefABCDEF")


#: Lead bytes of UTF-8 from, to (exclusive), how many bytes follow, and the first code point they could spell.
_LEADS = ((0xC2, 0xE0, 1, 0x80), (0xE0, 0xF0, 2, 0), (0xF0, 0xF5, 3, 0))

#: Lead bytes after which not every byte may follow (no overlong forms, no surrogates, nothing beyond U+10FFFF: RFC
#: 3629), and the code points from, to (exclusive) that they do spell.
_PARTIAL = {0xE0: (0x800, 0x1000), 0xED: (0xD000, 0xD800), 0xF0: (0x10000, 0x40000), 0xF4: (0x100000, END)}

#: Lead bytes from, to (exclusive), how many bytes follow, and the one segment that holds all they can spell; None when
#: that is not one segment (then it is one byte).
_Lead = tuple[int, int, int, int | None]

_MAX_PLANS = 1000
_MAX_RECENT = 64

#: More characters than any token has.
_MANY = 2**30


class Rows:
    """The store of row states.

    States are keyed by what remains: ``("body", term, quoted)`` between two characters, ``("open", term)`` before
    the opening quote, and, inside a character, the piecewise constant function from what its remaining bytes may
    say to the body that follows (so that equal remainders meet, whatever the bytes before).
    """

    def __init__(self, terms: Terms) -> None:
        self.terms = terms
        #: How many of the first states are the same in every store that began as a copy of one seed.
        self.seeded = 0
        self._index: dict[Hashable, int] = {("done",): DONE}
        self._key: list[tuple[object, ...]] = [("done",)]
        self._path: dict[int, bytes] = {}
        self._plans: dict[tuple[int, ...], list[_Lead]] = {}
        self._partial: dict[tuple[int, int, bool], int] = {}
        self._recent: dict[tuple[int, bool], Segments] = {}
        self._classes: list[int] = []
        self._class_number: dict[int, int] = {}
        self._wide: dict[int, bool] = {}

    def __len__(self) -> int:
        return len(self._key)

    def copy(self, terms: Terms) -> Rows:
        """Another store over a copy of the terms, in which all states so far have the same numbers."""
        other = Rows(terms)
        for name in ("_index", "_key", "_path", "_plans", "_partial", "_classes", "_class_number", "_wide"):
            setattr(other, name, getattr(self, name).copy())
        other.seeded = len(self._key)
        return other

    def _state(self, key: tuple[object, ...]) -> int:
        found = self._index.get(key)
        if found is None:
            found = len(self._key)
            self._index[key] = found
            self._key.append(key)
        return found

    def start(self, term: int, quoted: bool) -> int:
        """The state before a text of ``term``, which is written as a JSON string if ``quoted``, else raw."""
        return self._state(("open", term) if quoted else ("body", term, False))

    def body(self, term: int, quoted: bool) -> int:
        """The state between two characters."""
        if not quoted and term == self.terms.EPSILON:
            return DONE
        return self._state(("body", term, quoted))

    def nullable(self, state: int) -> bool:
        """Whether the text may end in this state."""
        key = self._key[state]
        return state == DONE or (key[0] == "body" and not key[2] and self.terms.nullable(key[1]))  # type: ignore

    def row(self, state: int) -> list[int]:
        """The 256 successors of a state. The kernel keeps them, so they are not kept here."""
        return self._derive(state)

    def shared(self, state: int) -> tuple[Hashable | None, int | None, int]:
        """What the tokens that stay inside a JSON string may be taken from.

        Returns:
            A key that is the same in every store, for the states of the free string and of a seed; for other states
            between two characters of a JSON string, the state of the free string there, and the number of a class of
            nearly all characters of which any may follow (-1: there is none).
        """
        key = self._key[state]
        if key[0] in ("open", "body") and key[1] == self.terms.ALL:
            return key, None, -1
        if state < self.seeded:
            return ("seed", state), None, -1
        if key[0] == "body" and key[2]:
            chars = self.terms.open_class(key[1])  # type: ignore[arg-type]
            number = -1 if chars is None or not self._is_wide(chars) else self._number(chars)
            return None, self.body(self.terms.ALL, True), number
        return None, None, -1

    def _is_wide(self, chars: int) -> bool:
        """Whether a class has nearly all characters, so that only few tokens leave it."""
        found = self._wide.get(chars)
        if found is None:
            ranges = self.terms.ranges(chars)
            ascii_letters = sum(max(0, min(high, 0x7E) - max(low, 0x20) + 1) for low, high in ranges)
            everything = sum(high - low + 1 for low, high in ranges)
            found = self._wide[chars] = ascii_letters >= 90 and everything >= 0x100000
        return found

    def _number(self, chars: int) -> int:
        number = self._class_number.get(chars)
        if number is None:
            number = self._class_number[chars] = len(self._classes)
            self._classes.append(chars)
        return number

    def run(self, state: int) -> tuple[int, int, int] | None:
        """``(class, least, most)`` if between ``least`` and ``most`` (-1: any number) characters of one class follow,
        then the closing quote."""
        key = self._key[state]
        if key[0] != "body" or not key[2]:
            return None
        bounds = self.terms.run_bounds(key[1])  # type: ignore[arg-type]
        # Only the free string spells printable ASCII as escapes: those of any characters, but so many, are no part of
        # its runs.
        if bounds is None or (bounds[0] == self.terms.ANY and key[1] != self.terms.ALL):
            return None
        chars, least, most = bounds
        return self._number(chars), min(least, _MANY), -1 if most is None else min(most, _MANY)

    def character_class(self, number: int) -> tuple[Hashable, int]:
        """A key of a class that is the same in every store, and the state inside a string of any number of its
        characters."""
        chars = self._classes[number]
        return self.terms.ranges(chars), self.body(self.terms.repeat(chars, 0, None), True)

    def shortest(self, state: int) -> bytes:
        """The shortest bytes that complete the text.

        Raises:
            LimitError: see `Terms.shortest`.
        """
        known = self._path.get(state)
        if known is None:
            known = self._path[state] = self._find_shortest(state)
        return known

    def _find_shortest(self, state: int) -> bytes:
        if self.nullable(state):
            return b""
        key = self._key[state]
        if key[0] == "open":
            return b'"' + self.shortest(self.body(key[1], True))  # type: ignore[arg-type]
        if key[0] == "body":
            closing = b'"' if key[2] else b""
            return self.terms.shortest(key[1], _spell_quoted if key[2] else _spell_raw) + closing  # type: ignore
        # Inside a character: a few bytes from the next place between two characters.
        first: dict[int, int] = {}
        for byte, target in enumerate(self.row(state)):
            if target != DEAD:
                first.setdefault(target, byte)
        options = [bytes((byte,)) + self.shortest(target) for target, byte in first.items()]
        return min(options, key=lambda option: (len(option), option))

    # -- derivation --------------------------------------------------------------------------------------------

    def _derive(self, state: int) -> list[int]:
        key = self._key[state]
        row = [DEAD] * 256
        kind = key[0]
        if kind == "open":
            row[0x22] = self.body(key[1], True)  # type: ignore[arg-type]
        elif kind == "body":
            self._derive_body(row, key[1], bool(key[2]))  # type: ignore[arg-type]
        elif kind == "escape":
            self._derive_escape(row, key[1])  # type: ignore[arg-type]
        elif kind == "utf8":
            _, count, segments, quoted = key
            size = 1 << (6 * (count - 1))  # type: ignore[operator]
            if len(segments[0]) == 1:  # type: ignore[index]
                row[0x80:0xC0] = [self._inside("utf8", count - 1, segments, 0, size, quoted)] * 64  # type: ignore
            else:
                for byte in range(64):
                    target = self._inside("utf8", count - 1, segments, byte * size, size, quoted)  # type: ignore
                    row[0x80 + byte] = target
        elif kind == "hex":
            _, count, segments = key
            size = 1 << (4 * (count - 1))  # type: ignore[operator]
            if len(segments[0]) == 1:  # type: ignore[index]
                target = self._inside("hex", count - 1, segments, 0, size, True)  # type: ignore
                for byte, _ in _HEX:
                    row[byte] = target
            else:
                for byte, digit in _HEX:
                    row[byte] = self._inside("hex", count - 1, segments, digit * size, size, True)  # type: ignore
        elif kind == "low":  # a high surrogate was written: `\uDC00` to `\uDFFF` must follow
            row[0x5C] = self._state(("low u", key[1]))
        elif kind == "low u":
            row[0x75] = self._state(("hex", 4, _place(((0xDC00, key[1]),), 0xE000)))  # type: ignore[arg-type]
        return row

    def _bodies(self, term: int, quoted: bool) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """The derivative row of a term, with row states for targets and the dead ones pruned."""
        known = self._recent.get((term, quoted))  # asked for twice, for the row and for the escapes
        if known is not None:
            return known
        starts, targets = self.terms.segments(term)
        is_empty = self.terms.is_empty
        memo: dict[int, int] = {}
        states = []
        for target in targets:
            state = memo.get(target)
            if state is None:
                state = memo[target] = DEAD if is_empty(target) else self.body(target, quoted)
            states.append(state)
        if len(self._recent) == _MAX_RECENT:
            self._recent.clear()
        self._recent[term, quoted] = found = starts, tuple(states)
        return found

    def _derive_body(self, row: list[int], term: int, quoted: bool) -> None:
        starts, states = self._bodies(term, quoted)
        for index, start in enumerate(starts):
            if start > 0x7F:
                break
            end = min(starts[index + 1] if index + 1 < len(starts) else END, 0x80)
            row[start:end] = [states[index]] * (end - start)
        skipped = bisect_right(starts, 0x80) - 1  # the segment of the first character beyond ASCII
        if skipped < len(starts) - 1 or states[skipped] != DEAD:
            for lead, stop, count, which in self._leads(starts[skipped:]):
                if which is None:
                    row[lead] = self._lead(count, starts, states, lead, quoted)
                elif lead in _PARTIAL:
                    target = states[skipped + which]
                    if target != DEAD:
                        state = self._partial.get((lead, target, quoted))
                        if state is None:
                            state = self._lead(count, starts, states, lead, quoted)
                            self._partial[lead, target, quoted] = state
                        row[lead] = state
                elif states[skipped + which] != DEAD:
                    whole: Segments = ((0,), (states[skipped + which],))
                    row[lead:stop] = [self._state(("utf8", count, whole, quoted))] * (stop - lead)
        if quoted:
            row[:0x20] = [DEAD] * 0x20
            row[0x22] = DONE if self.terms.nullable(term) else DEAD
            row[0x5C] = self._state(("escape", term)) if self._has_escape(term, starts, states) else DEAD

    def _has_escape(self, term: int, starts: tuple[int, ...], states: tuple[int, ...]) -> bool:
        """Whether some next character can be written with a backslash (see `_derive_escape`)."""
        everything = term == self.terms.ALL
        for index, state in enumerate(states):
            if state == DEAD:
                continue
            low, high = starts[index], (starts[index + 1] if index + 1 < len(starts) else END) - 1
            if everything or low < 0x20 or high > 0x7E:
                if not (low >= 0xD800 and high <= 0xDFFF):
                    return True
            elif any(low <= code <= high for code in _SHORT_ESCAPES.values()):
                return True
        return False

    def _leads(self, starts: tuple[int, ...]) -> list[_Lead]:
        """How the lead bytes of UTF-8 meet the segments that begin at ``starts``: see `_Lead`.

        Derivatives of one pattern have the same few boundaries again and again, so this is remembered.
        """
        known = self._plans.get(starts)
        if known is not None:
            return known
        plan: list[_Lead] = []
        for first, stop, count, begin in _LEADS:
            size = 1 << (6 * count)
            for lead in range(first, stop):
                low, high = _PARTIAL.get(lead, (begin + (lead - first) * size, begin + (lead - first + 1) * size))
                which = bisect_right(starts, low) - 1
                if which + 1 < len(starts) and starts[which + 1] < high:
                    plan.append((lead, lead + 1, count, None))
                elif (
                    plan
                    and plan[-1][1:] == (lead, count, which)
                    and lead not in _PARTIAL
                    and plan[-1][0] not in _PARTIAL
                ):
                    plan[-1] = (plan[-1][0], lead + 1, count, which)
                else:
                    plan.append((lead, lead + 1, count, which))
        if len(self._plans) == _MAX_PLANS:
            self._plans.clear()
        self._plans[starts] = plan
        return plan

    def _lead(self, count: int, starts: tuple[int, ...], states: tuple[int, ...], lead: int, quoted: bool) -> int:
        """The state after a lead byte of a UTF-8 sequence with ``count`` more bytes, when several segments meet it."""
        size = 1 << (6 * count)
        base = (lead & (0x3F >> count)) * size
        low, high = ((0x80, 0x800), (0x800, 0x10000), (0x10000, END))[count - 1]
        clipped = _slice(starts, states, base, size)
        if base < low:  # overlong forms
            clipped = _kill(clipped, 0, low - base, size)
        if base + size > high:
            clipped = _kill(clipped, high - base, size, size)
        if base <= 0xD800 < base + size:  # surrogates have no UTF-8 form
            clipped = _kill(clipped, 0xD800 - base, 0xE000 - base, size)
        if clipped[1] == (DEAD,):
            return DEAD
        return self._state(("utf8", count, clipped, quoted))

    def _inside(self, kind: str, count: int, segments: Segments, base: int, size: int, quoted: bool) -> int:
        """The state after one more byte of a character: ``segments`` narrowed to ``[base, base + size)``."""
        narrowed = _slice(segments[0], segments[1], base, size)
        if narrowed[1] == (DEAD,):
            return DEAD
        if count == 0:
            return narrowed[1][0]
        return self._state((kind, count, narrowed, quoted) if kind == "utf8" else (kind, count, narrowed))

    def _derive_escape(self, row: list[int], term: int) -> None:
        starts, states = self._bodies(term, True)
        for byte, code in _SHORT_ESCAPES.items():
            row[byte] = states[bisect_right(starts, code) - 1]
        # A high surrogate stands for 0x400 characters; what its low partner may be is what remains of them.
        highs: list[tuple[int, Segments]] = []
        bounds = {0x10000} | {start & ~0x3FF for start in starts if start > 0x10000}
        bounds |= {(start + 0x3FF) & ~0x3FF for start in starts if start > 0x10000}
        for bound in sorted(bounds):
            if bound < END:
                part = _slice(starts, states, bound, 0x400)
                state = DEAD if part[1] == (DEAD,) else self._state(("low", part))
                highs.append((0xD800 + ((bound - 0x10000) >> 10), ((0,), (state,))))
        dead: Segments = ((0,), (DEAD,))
        below: tuple[tuple[int, Segments], ...]
        if term == self.terms.ALL:
            below = ((0, _slice(starts, states, 0, 0xD800)),)
        else:  # a constrained string spells printable ASCII as itself: a model needs no other way
            control, other = _slice(starts, states, 0, 0x20), _slice(starts, states, 0x7F, 0xD800 - 0x7F)
            below = (0, control), (0x20, dead), (0x7F, other)
        above = _slice(starts, states, 0xE000, 0x2000)
        segments = _place((*below, *highs, (0xDC00, dead), (0xE000, above)), None)
        if segments[1] != (DEAD,):
            row[0x75] = self._state(("hex", 4, segments))


def _joined(starts: tuple[int, ...], states: tuple[int, ...]) -> Segments:
    """Normal form: neighbours with equal targets are one."""
    out_starts, out_states = [starts[0]], [states[0]]
    for start, state in zip(starts[1:], states[1:], strict=True):
        if start == out_starts[-1]:
            out_states[-1] = state
        elif state != out_states[-1]:
            out_starts.append(start)
            out_states.append(state)
    return tuple(out_starts), tuple(out_states)


def _slice(starts: tuple[int, ...], states: tuple[int, ...], base: int, size: int) -> Segments:
    """The function on ``[base, base + size)``, counted from 0."""
    first = bisect_right(starts, base) - 1
    last = bisect_left(starts, base + size)
    if last - first == 1:
        return (0,), (states[first],)
    return _joined((0, *(start - base for start in starts[first + 1 : last])), states[first:last])


def _place(parts: tuple[tuple[int, Segments], ...], end: int | None) -> Segments:
    """One function from several, each shifted to its offset; dead before the first, and from ``end`` on."""
    starts: list[int] = [0]
    states: list[int] = [DEAD]
    for offset, segments in parts:
        starts.extend(offset + start for start in segments[0])
        states.extend(segments[1])
    if end is not None:
        starts.append(end)
        states.append(DEAD)
    return _joined(tuple(starts), tuple(states))


def _kill(segments: Segments, low: int, high: int, size: int) -> Segments:
    """The same function on ``[0, size)``, but dead on ``[low, high)``."""
    parts = []
    if low > 0:
        parts.append((0, _slice(segments[0], segments[1], 0, low)))
    parts.append((low, ((0,), (DEAD,))))
    if high < size:
        parts.append((high, _slice(segments[0], segments[1], high, size - high)))
    return _place(tuple(parts), None)


#: Which characters read best where any would do.
_PLEASANT = (range(0x61, 0x7B), range(0x30, 0x3A), range(0x41, 0x5B), range(0x20, 0x7F))


def _spell_raw(low: int, high: int) -> bytes:
    """The shortest UTF-8 of a character between two code points, a pleasant one if there is a choice."""
    for span in _PLEASANT:
        first = max(low, span.start)
        if first <= min(high, span.stop - 1):
            return bytes((first,))
    if low in range(0xD800, 0xE000):
        low = 0xE000
    return chr(low).encode()


def _spell_quoted(low: int, high: int) -> bytes:
    """The same inside a JSON string, where some characters must be escaped."""
    for span in _PLEASANT:
        for code in range(max(low, span.start), min(high, span.stop - 1) + 1):
            if code not in (0x22, 0x5C):
                return bytes((code,))
    if high > 0x7E and low < 0x800:
        return chr(max(low, 0x7F)).encode()
    for letter, code in _SHORT_ESCAPES.items():
        if low <= code <= high:
            return bytes((0x5C, letter))
    return b"\\u%04x" % low if low < 0x20 else _spell_raw(low, high)
