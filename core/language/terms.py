"""Regular languages of *decoded* text: hash-consed terms over Unicode code points, with derivatives.

A term is a small integer; equal terms are the same integer, so a derivative automaton closes by itself
(Brzozowski 1964; Owens, Reppy, Turon 2009, "Regular-expression derivatives re-examined"). Intersection and
complement are first-class. How a term is spelled in bytes (UTF-8, JSON escapes) is not decided here: see
``toolgrammar.core.automaton.rows``.

A whole derivative row at once is a `Segments` value: a piecewise constant function from code points to terms.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Hashable, Iterable, Sequence
from heapq import heappop, heappush
from typing import Any

from ..errors import LimitError
from .charset import CharSet

#: A piecewise constant function: ``targets[i]`` holds on ``starts[i] <= code point < starts[i + 1]``.
Segments = tuple[tuple[int, ...], tuple[int, ...]]

END = 0x110000
SURROGATES = (0xD800, 0xDFFF)

#: How many distinct terms one store may hold: some hundred MB, and seconds of work.
MAX_TERMS = 200_000

#: How many states the search for a shortest string may visit.
MAX_SEARCHED = 20_000


_EMPTY, _EPSILON, _CHARS, _SEQ, _ALT, _AND, _NOT, _REPEAT, _WORDS, _MULTIPLE, _DEFERRED = range(11)


class Terms:
    """The hash-consing store of terms.

    Laws (all property-tested): `alt` is union, `and_` intersection, `not_` complement relative to all strings,
    `seq` concatenation, `repeat` bounded repetition; ``nullable(derivative(t, c))`` iff the one-character string
    ``c`` is in ``t``; `is_empty` is exact.

    Attributes:
        EMPTY: the empty language.
        EPSILON: the language of the empty string.
        ALL: every string.
        ANY: every string of one character.
        room: how many terms the store may hold.
        memo: terms that were made here before, by what they were made of; for those who make them.
    """

    def __init__(self) -> None:
        self.room = MAX_TERMS
        self.memo: dict[Hashable, int] = {}
        self._index: dict[tuple[object, ...], int] = {}
        self._kind: list[int] = []
        self._args: list[tuple[Any, ...]] = []
        self._nullable: list[bool] = []
        self._segments: list[Segments | None] = []
        self._live: list[bool | None] = []
        self._regular: list[bool] = []
        self._cofinite: dict[int, bool] = {}
        self._has_multiple = False
        self._deferred: dict[int, Callable[[], int]] = {}
        self.EMPTY = self._make(_EMPTY, (), False, True)
        self._live[self.EMPTY] = False
        self.EPSILON = self._make(_EPSILON, (), True, True)
        self.ANY = self.chars(CharSet.full())
        self.ALL = self._make(_REPEAT, (self.ANY, 0, None), True, True)

    def __len__(self) -> int:
        return len(self._kind)

    def copy(self) -> Terms:
        """Another store in which all terms so far have the same numbers; what was learnt of them is known there."""
        other = Terms.__new__(Terms)
        other.room = self.room
        for name in ("_index", "_kind", "_args", "_nullable", "_segments", "_live", "_regular", "_cofinite", "memo"):
            setattr(other, name, getattr(self, name).copy())
        other._has_multiple = self._has_multiple
        other._deferred = self._deferred.copy()
        other.EMPTY, other.EPSILON, other.ANY, other.ALL = self.EMPTY, self.EPSILON, self.ANY, self.ALL
        return other

    # -- construction ------------------------------------------------------------------------------------------

    def _make(self, kind: int, args: tuple[object, ...], nullable: bool, simple: bool) -> int:
        """``simple``: built without intersection or complement, hence never empty unless it is `EMPTY`."""
        key = (kind, *args)
        found = self._index.get(key)
        if found is not None:
            return found
        number = len(self._kind)
        if number >= self.room:
            raise LimitError(
                f"a pattern or enumeration needs more than {MAX_TERMS:,} automaton states",
                hint="simplify the pattern, or bound its repetitions",
            )
        self._index[key] = number
        self._kind.append(kind)
        self._args.append(args)
        self._nullable.append(nullable)
        self._segments.append(None)
        self._live.append(True if simple or nullable else None)
        self._regular.append(simple)
        return number

    def chars(self, charset: CharSet) -> int:
        """Every one-character string whose character is in ``charset``."""
        if not charset:
            return self.EMPTY
        return self._make(_CHARS, (charset.ranges,), False, True)

    def literal(self, text: str) -> int:
        """Exactly ``text``."""
        return self.words((text,))

    def words(self, texts: Iterable[str]) -> int:
        """Exactly these strings."""
        ordered = tuple(sorted(set(texts)))
        return self._words(ordered, 0) if ordered else self.EMPTY

    def _words(self, ordered: tuple[str, ...], depth: int) -> int:
        if len(ordered) == 1 and len(ordered[0]) == depth:
            return self.EPSILON
        suffixes = ordered if depth == 0 else tuple(word[depth:] for word in ordered)
        return self._make(_WORDS, (suffixes,), not suffixes[0], True)

    def seq(self, left: int, right: int) -> int:
        """Concatenation."""
        if left == self.EMPTY or right == self.EMPTY:
            return self.EMPTY
        if left == self.EPSILON:
            return right
        if right == self.EPSILON:
            return left
        if self._kind[left] == _SEQ:  # right-associated, so that equal languages meet
            first, second = self._args[left]
            return self.seq(first, self.seq(second, right))
        if left == self.ALL and right == self.ALL:
            return self.ALL
        return self._make(
            _SEQ,
            (left, right),
            self._nullable[left] and self._nullable[right],
            self._regular[left] and self._regular[right],
        )

    def sequence(self, parts: Sequence[int]) -> int:
        """Concatenation of many."""
        result = self.EPSILON
        for part in reversed(parts):
            result = self.seq(part, result)
        return result

    def alt(self, parts: Iterable[int]) -> int:
        """Union."""
        flat: set[int] = set()
        ranges: list[CharSet] = []
        for part in parts:
            kind = self._kind[part]
            if kind == _ALT:
                flat.update(self._args[part])
            elif kind == _CHARS:
                ranges.append(CharSet(self._args[part][0]))
                flat.add(part)
            else:
                flat.add(part)
        flat.discard(self.EMPTY)
        if self.ALL in flat:
            return self.ALL
        if len(ranges) > 1:  # [a] | [b] is [ab]
            flat -= {self.chars(each) for each in ranges}
            merged = ranges[0]
            for each in ranges[1:]:
                merged = merged | each
            flat.add(self.chars(merged))
        if self.EPSILON in flat and any(self._nullable[part] for part in flat if part != self.EPSILON):
            flat.discard(self.EPSILON)
        if not flat:
            return self.EMPTY
        if len(flat) == 1:
            return next(iter(flat))
        ordered = tuple(sorted(flat))
        return self._make(
            _ALT, ordered, any(self._nullable[p] for p in ordered), all(self._regular[p] for p in ordered)
        )

    def and_(self, parts: Iterable[int]) -> int:
        """Intersection."""
        flat: set[int] = set()
        for part in parts:
            if self._kind[part] == _AND:
                flat.update(self._args[part])
            else:
                flat.add(part)
        flat.discard(self.ALL)
        if self.EMPTY in flat:
            return self.EMPTY
        if not flat:
            return self.ALL
        if len(flat) == 1:
            return next(iter(flat))
        if self.EPSILON in flat:
            return self.EPSILON if all(self._nullable[part] for part in flat) else self.EMPTY
        for part in flat:
            if self._kind[part] == _NOT and self._args[part][0] in flat:
                return self.EMPTY
        runs = [part for part in flat if self.run_bounds(part) is not None]
        if len(runs) > 1:  # [ab]{2,} and [bc]{0,9} is [b]{2,9}
            flat.difference_update(runs)
            return self.and_([*flat, self._common_run(runs)])
        ordered = tuple(sorted(flat))
        return self._make(_AND, ordered, all(self._nullable[p] for p in ordered), False)

    def _common_run(self, parts: Sequence[int]) -> int:
        """The intersection of terms that are "so many characters of a class" each."""
        charset, least, most = CharSet.full(), 0, None
        for part in parts:
            bounds = self.run_bounds(part)
            assert bounds is not None
            charset = charset & CharSet(self.ranges(bounds[0]))
            least = max(least, bounds[1])
            if bounds[2] is not None:
                most = bounds[2] if most is None else min(most, bounds[2])
        return self.repeat(self.chars(charset), least, most)

    def not_(self, part: int) -> int:
        """Complement, relative to all strings."""
        if part == self.EMPTY:
            return self.ALL
        if part == self.ALL:
            return self.EMPTY
        if self._kind[part] == _NOT:
            inner: int = self._args[part][0]
            return inner
        return self._make(_NOT, (part,), not self._nullable[part], False)

    def repeat(self, part: int, least: int, most: int | None) -> int:
        """Between ``least`` and ``most`` copies (None: no upper bound)."""
        if most is not None and most < least:
            return self.EMPTY
        if most == 0:
            return self.EPSILON
        if part == self.EMPTY:
            return self.EPSILON if least == 0 else self.EMPTY
        if part == self.EPSILON:
            return self.EPSILON
        if self._nullable[part]:
            least = 0
        if least == 1 and most == 1:
            return part
        if part == self.ALL:
            return self.ALL
        if self._kind[part] == _REPEAT and least <= 1 and most is None:
            inner, low, high = self._args[part]
            if high is None and low <= 1:
                return self.repeat(inner, min(least, low), None)
        return self._make(_REPEAT, (part, least, most), least == 0, self._regular[part])

    def multiples(self, of: int, places: int) -> int:
        """Unsigned decimal numbers, with or without a point, that are whole multiples of ``of / 10**places``."""
        self._has_multiple = True
        return self._multiple(of, places, 0, -1)

    def deferred(self, key: object, build: Callable[[], int], *, loops: bool = False) -> int:
        """What ``build`` makes once it is looked into: not empty, without the empty string, and without intersection
        and complement. ``key`` identifies it in this store; ``loops``: what is built may hold the term itself."""
        term = self._make(_DEFERRED, (key,), False, True)
        self._regular[term] = not loops
        self._deferred.setdefault(term, build)
        return term

    def _multiple(self, of: int, places: int, remainder: int, behind: int) -> int:
        """What follows digits that leave a remainder; ``behind``: how many of them stand behind the point, -1 before
        it and before any digit, -2 before it."""
        missing = places - max(behind, 0)
        if behind >= 0 and -remainder * 10**missing % of >= 10**missing:
            return self.EMPTY  # the digits that are left cannot make up for it
        whole = behind != -1 and (remainder * 10**missing) % of == 0
        return self._make(_MULTIPLE, (of, places, remainder, behind), whole, True)

    # -- questions ---------------------------------------------------------------------------------------------

    def nullable(self, term: int) -> bool:
        """Whether the empty string is in the language."""
        return self._nullable[term]

    def length_bounds(self, term: int) -> tuple[int, int | None] | None:
        """``(least, most)`` when the language is "every string of so many characters", else None."""
        if term == self.ANY:
            return 1, 1
        if self._kind[term] == _REPEAT and self._args[term][0] == self.ANY:
            return self._args[term][1], self._args[term][2]
        return None

    def run_bounds(self, term: int) -> tuple[int, int, int | None] | None:
        """``(class, least, most)`` when the language is "so many characters of this class, each any of them"; the class
        as a term. Else None."""
        if self._kind[term] == _CHARS:
            return term, 1, 1
        if self._kind[term] == _REPEAT and self._kind[self._args[term][0]] == _CHARS:
            chars, least, most = self._args[term]
            return chars, least, most
        return None

    def ranges(self, chars: int) -> tuple[tuple[int, int], ...]:
        """The code points of a class of characters."""
        found: tuple[tuple[int, int], ...] = self._args[chars][0]
        return found

    def derivative(self, term: int, code_point: int) -> int:
        """What may follow after one character."""
        starts, targets = self.segments(term)
        return targets[bisect_right(starts, code_point) - 1]

    def segments(self, term: int) -> Segments:
        """The whole derivative row of ``term``."""
        known = self._segments[term]
        if known is None:
            known = self._derive(term)
            self._segments[term] = known
        return known

    def matches(self, term: int, text: str) -> bool:
        """Whether ``text`` is in the language."""
        for char in text:
            term = self.derivative(term, ord(char))
            if term == self.EMPTY:
                return False
        return self._nullable[term]

    def is_empty(self, term: int) -> bool:
        """Whether no string is in the language. Exact, also under intersection and complement."""
        live = self._live[term]
        if live is None:
            live = self._search_live(term)
        return not live

    def is_cofinite(self, term: int) -> bool:
        """Whether all but finitely many strings are in the language, seen from the term's shape (False: not known).

        Every string is then the beginning of one in the language.
        """
        known = self._cofinite.get(term)
        if known is None:
            kind, args = self._kind[term], self._args[term]
            if kind == _NOT:
                known = self._is_finite(args[0])
            elif kind == _REPEAT:
                known = args[0] == self.ANY and args[2] is None
            elif kind == _AND:
                known = all(self.is_cofinite(part) for part in args)
            elif kind == _ALT:
                known = any(self.is_cofinite(part) for part in args)
            else:
                known = False
            self._cofinite[term] = known
        return known

    def open_class(self, term: int) -> int | None:
        """A class of characters such that every string of them is the beginning of one in the language, seen from the
        term's shape; None: none known.

        So it is for patterns that may match anywhere (any characters), for ``.+:[0-9]`` (any but ends of lines), and
        for languages that lack finitely many strings. Derivatives by characters of the class have it too.
        """
        kind, args = self._kind[term], self._args[term]
        if kind == _SEQ:
            part, follows = args
            if self._kind[part] != _REPEAT or self._args[part][2] is not None or self.is_empty(follows):
                return None
            chars: int = self._args[part][0]
            return chars if self._kind[chars] == _CHARS else None
        if kind == _ALT:
            found = [each for each in map(self.open_class, args) if each is not None]
            return max(found, key=self._width, default=None)
        if kind == _AND:  # what has endlessly many ways to go on can lose finitely many
            rest = [part for part in args if not self.is_cofinite(part)]
            return self.ANY if not rest else self.open_class(rest[0]) if len(rest) == 1 else None
        return self.ANY if self.is_cofinite(term) else None

    def _width(self, chars: int) -> int:
        return sum(high - low for low, high in self._args[chars][0])

    def _is_finite(self, term: int) -> bool:
        kind, args = self._kind[term], self._args[term]
        if kind in (_EMPTY, _EPSILON, _CHARS, _WORDS):
            return True
        if kind in (_SEQ, _ALT):
            return all(self._is_finite(part) for part in args)
        return kind == _REPEAT and args[2] is not None and self._is_finite(args[0])

    def shortest(self, term: int, spell: Callable[[int, int], bytes]) -> bytes:
        """The shortest spelling of a string of a non-empty language.

        Args:
            term: the language.
            spell: the shortest spelling of any character between two code points.

        Raises:
            LimitError: too many states to search (an intersection or complement that is hard to satisfy).
        """
        if self._nullable[term]:
            return b""
        if self._regular[term] and not self._has_multiple:
            return self._shortest_by_shape(term, spell)
        # Dijkstra's algorithm over derivatives.
        heap: list[tuple[int, bytes, int]] = [(0, b"", term)]
        done: set[int] = set()
        while heap:
            length, path, state = heappop(heap)
            if self._nullable[state]:
                return path
            if state in done:
                continue
            done.add(state)
            if len(done) > MAX_SEARCHED:
                break
            if self._regular[state] and not self._has_multiple:
                tail = self._shortest_by_shape(state, spell)
                heappush(heap, (length + len(tail), path + tail, self.EPSILON))
                continue
            starts, targets = self.segments(state)
            best: dict[int, bytes] = {}
            for index, target in enumerate(targets):
                if target in done or self._live[target] is False:
                    continue
                char = spell(starts[index], (starts[index + 1] if index + 1 < len(starts) else END) - 1)
                if target not in best or (len(char), char) < (len(best[target]), best[target]):
                    best[target] = char
            for target, char in best.items():
                heappush(heap, (length + len(char), path + char, target))
        raise LimitError(
            f"no string of a pattern was found among {MAX_SEARCHED:,} states", hint="simplify the pattern or its length"
        )

    def _shortest_by_shape(self, term: int, spell: Callable[[int, int], bytes]) -> bytes:
        """`shortest` of a term without intersection and complement, read off its shape."""
        result = b""
        while self._kind[term] == _SEQ:
            head, term = self._args[term]
            result += self._shortest_by_shape(head, spell)
        kind, args = self._kind[term], self._args[term]
        if self._nullable[term]:
            return result
        if kind == _DEFERRED:
            return result + self._shortest_by_shape(self._deferred[term](), spell)
        if kind == _CHARS:
            chars = [spell(low, high) for low, high in args[0]]
            return result + min(chars, key=lambda char: (len(char), char))
        if kind == _WORDS:
            words = [b"".join(spell(ord(char), ord(char)) for char in word) for word in args[0]]
            return result + min(words, key=lambda word: (len(word), word))
        if kind == _REPEAT:
            copies: int = args[1]
            return result + self._shortest_by_shape(args[0], spell) * copies
        options = [self._shortest_by_shape(part, spell) for part in args]
        return result + min(options, key=lambda option: (len(option), option))

    def _search_live(self, term: int) -> bool:
        """Breadth-first search for a nullable derivative; marks what it learns on the way."""
        parent: dict[int, int] = {term: -1}
        queue = [term]
        for state in queue:
            for target in dict.fromkeys(self.segments(state)[1]):
                live = self._live[target]
                if live is False:
                    continue
                if live:
                    step = state
                    while step != -1:
                        self._live[step] = True
                        step = parent[step]
                    return True
                if target not in parent:
                    parent[target] = state
                    queue.append(target)
        for state in queue:
            self._live[state] = False
        return False

    # -- derivatives -------------------------------------------------------------------------------------------

    def _derive(self, term: int) -> Segments:
        kind, args = self._kind[term], self._args[term]
        empty = self.EMPTY
        if kind in (_EMPTY, _EPSILON):
            return (0,), (empty,)
        if kind == _CHARS:
            starts, targets = [0], [empty]
            for low, high in args[0]:
                if low == starts[-1]:
                    targets[-1] = self.EPSILON
                else:
                    starts.append(low)
                    targets.append(self.EPSILON)
                if high + 1 < END:
                    starts.append(high + 1)
                    targets.append(empty)
            return tuple(starts), tuple(targets)
        if kind == _WORDS:
            return self._derive_words(args[0])
        if kind == _DEFERRED:
            return self.segments(self._deferred[term]())
        if kind == _MULTIPLE:
            return self._derive_multiple(*args)
        if kind == _SEQ:
            left, right = args
            row = self._mapped(left, lambda each: self.seq(each, right))
            if not self._nullable[left]:
                return row
            return self._merge([row, self.segments(right)], self.alt)
        if kind == _REPEAT:
            part, least, most = args
            rest = self.repeat(part, max(least - 1, 0), None if most is None else most - 1)
            return self._mapped(part, lambda each: self.seq(each, rest))
        if kind == _NOT:
            return self._mapped(args[0], self.not_)
        rows = [self.segments(part) for part in args]
        return self._merge(rows, self.alt if kind == _ALT else self.and_)

    def _mapped(self, term: int, change: Callable[[int], int]) -> Segments:
        """The derivative row of a term with every target changed."""
        starts, targets = self.segments(term)
        return _normal(starts, [change(target) for target in targets])

    def _derive_words(self, suffixes: tuple[str, ...]) -> Segments:
        starts, targets = [0], [self.EMPTY]
        index = 1 if not suffixes[0] else 0
        while index < len(suffixes):
            first = suffixes[index][0]
            end = index + 1
            while end < len(suffixes) and suffixes[end][0] == first:
                end += 1
            code = ord(first)
            target = self._words(tuple(word[1:] for word in suffixes[index:end]), 0)
            if end - index == 1 and len(suffixes[index]) == 1:
                target = self.EPSILON
            if starts[-1] == code:
                targets[-1] = target
            else:
                starts.append(code)
                targets.append(target)
            starts.append(code + 1)
            targets.append(self.EMPTY)
            index = end
        return _normal(tuple(starts), targets)

    def _derive_multiple(self, of: int, places: int, remainder: int, behind: int) -> Segments:
        starts, targets = [0], [self.EMPTY]
        if behind == -2:
            starts += [0x2E, 0x2F]
            targets += [self._multiple(of, places, remainder, 0), self.EMPTY]
        for digit in range(10):
            if behind == places:  # beyond the last place that counts: zeros
                target = self._multiple(of, places, remainder, behind) if digit == 0 else self.EMPTY
            else:
                after = -2 if behind < 0 else behind + 1
                target = self._multiple(of, places, (remainder * 10 + digit) % of, after)
            starts.append(0x30 + digit)
            targets.append(target)
        return _normal([*starts, 0x3A], [*targets, self.EMPTY])

    def _merge(self, rows: Sequence[Segments], combine: Callable[[tuple[int, ...]], int]) -> Segments:
        """Pointwise ``combine`` of several rows, by one sweep over all their boundaries."""
        bounds = sorted({start for starts, _ in rows for start in starts})
        cursors = [0] * len(rows)
        targets = []
        memo: dict[tuple[int, ...], int] = {}
        for bound in bounds:
            current = []
            for which, (starts, values) in enumerate(rows):
                cursor = cursors[which]
                while cursor + 1 < len(starts) and starts[cursor + 1] <= bound:
                    cursor += 1
                cursors[which] = cursor
                current.append(values[cursor])
            key = tuple(current)
            value = memo.get(key)
            if value is None:
                value = memo[key] = combine(key)
            targets.append(value)
        return _normal(tuple(bounds), targets)


def _normal(starts: Sequence[int], targets: Sequence[int]) -> Segments:
    """Join neighbouring segments with the same target."""
    out_starts = [starts[0]]
    out_targets = [targets[0]]
    for start, target in zip(starts[1:], targets[1:], strict=True):
        if target != out_targets[-1]:
            out_starts.append(start)
            out_targets.append(target)
    return tuple(out_starts), tuple(out_targets)
