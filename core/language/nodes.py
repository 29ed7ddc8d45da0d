"""Languages of *written* text: hash-consed grammar nodes over bytes, expanded lazily.

A node is a small integer; equal nodes are the same integer. The kinds:

========= =======================================================================================
EMPTY     no text at all
EPSILON   the empty text
LITERAL   exactly these bytes
TEXT      a regular language of decoded text (a term), spelled as UTF-8 or as a JSON string
COUNTED   a JSON string of between so many and so many characters (counted, not unrolled)
SPECIAL   a control token, by name; it has no bytes
SEQ       concatenation of two nodes
ALT       union
REPEAT    bounded repetition
WORDS     many literals, each with its own continuation, kept sorted (enumerations, property names)
LAZY      a reference to a rule, expanded when first met, so recursion costs nothing until then;
          *stateful* bodies (objects, arrays) are rules whose key says what was already written
DYNAMIC   a place without text of its own, at which what follows is computed from the text so far
========= =======================================================================================

Questions: `nullable`, `is_empty` (short-circuited: it looks no further than it must), `heads` (Antimirov's
partial derivatives, in head normal form: what a text may begin with, and what then remains) and `shortest`.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Hashable, Iterable, Mapping, Sequence
from typing import Any

from ..errors import GrammarError, LimitError
from .terms import Terms

EMPTY_KIND, EPSILON_KIND, LITERAL, TEXT, COUNTED, SPECIAL, SEQ, ALT, REPEAT, WORDS, LAZY, DYNAMIC = range(12)

#: Kinds of DYNAMIC places, by what they may forbid. AFTER_NAME: nothing but a name that was just repeated. BEYOND: not
#: what was just written, but something of what follows. HERE: both.
AFTER_NAME, BEYOND, HERE = 1, 2, 3

#: Neighbouring literals are joined up to this many bytes.
MAX_JOINED = 128

#: Stands for a control token in the text so far: a byte that no text in UTF-8 has.
CONTROL = b"\xff"

#: How many nodes one store may hold.
MAX_NODES = 300_000

#: How much more a store may hold that many grammars share: what others left there is nobody's limit.
SHARED_ROOM = 200_000


#: One way a text may begin: an atomic node (LITERAL, TEXT, COUNTED, SPECIAL, DYNAMIC), then another node.
Head = tuple[int, int]


class Nodes:
    """The hash-consing store of grammar nodes.

    Attributes:
        terms: the store of the terms used by TEXT nodes.
        EMPTY: the empty language.
        EPSILON: the language of the empty text.
        known: nodes of what many grammars share, by whatever stands for it.
        weight: bytes that builders and their documents take (estimated by those who add them).

    Args:
        terms: the store of terms; None: a new one.
        shared: many grammars will share the store: it may hold ``SHARED_ROOM`` more than one grammar may need.
    """

    def __init__(self, terms: Terms | None = None, *, shared: bool = False) -> None:
        self.terms = Terms() if terms is None else terms
        self._room = MAX_NODES + (SHARED_ROOM if shared else 0)
        self.terms.room += SHARED_ROOM if shared else 0
        self.known: dict[Hashable, int] = {}
        self.weight = 0
        self.kind: list[int] = []
        self.args: list[tuple[Any, ...]] = []
        self._index: dict[tuple[Any, ...], int] = {}
        self._empty: list[bool | None] = []
        self._heads: dict[int, tuple[Head, ...]] = {}
        self._nullable: dict[int, bool] = {}
        self._expanded: dict[int, int] = {}
        self._opening: set[int] = set()
        self._instead: dict[int, int] = {}
        #: Who builds nodes here, by what they build: the parts of one grammar that are equal share their rules. They
        #: have a method ``release``, which lets go of whatever knows them.
        self.builders: dict[Hashable, Any] = {}
        self.EMPTY = self._make(EMPTY_KIND, ())
        self._empty[self.EMPTY] = True
        self.EPSILON = self._make(EPSILON_KIND, ())
        self._empty[self.EPSILON] = False

    def __len__(self) -> int:
        return len(self.kind)

    def clear(self) -> None:
        """Forget everything, once nobody asks any more: builders know the store that knows them."""
        for builder in self.builders.values():
            builder.release()
        for held in (self.builders, self.known, self.args, self._index, self._heads, self._expanded):
            held.clear()

    # -- construction ------------------------------------------------------------------------------------------

    def _make(self, kind: int, args: tuple[Any, ...]) -> int:
        key = (kind, *args)
        found = self._index.get(key)
        if found is not None:
            return found
        number = len(self.kind)
        if number >= self._room:
            raise LimitError(f"the grammar needs more than {MAX_NODES:,} states", hint="split the schema")
        self._index[key] = number
        self.kind.append(kind)
        self.args.append(args)
        self._empty.append(None)
        return number

    def literal(self, data: bytes) -> int:
        """Exactly ``data``."""
        if not data:
            return self.EPSILON
        number = self._make(LITERAL, (data,))
        self._empty[number] = False
        return number

    def text(self, term: int) -> int:
        """The strings of ``term``, written as UTF-8."""
        if self.terms.is_empty(term):
            return self.EMPTY
        if term == self.terms.EPSILON:
            return self.EPSILON
        number = self._make(TEXT, (term, False))
        self._empty[number] = False
        return number

    def json_string(self, term: int) -> int:
        """JSON strings (quotes included, any escapes) whose decoded value is in ``term``."""
        bounds = self.terms.length_bounds(term)
        if bounds is not None and bounds != (0, None):
            return self.counted(*bounds)
        if self.terms.is_empty(term):
            return self.EMPTY
        number = self._make(TEXT, (term, True))
        self._empty[number] = False
        return number

    def counted(self, least: int, most: int | None) -> int:
        """JSON strings of between ``least`` and ``most`` characters."""
        if most is not None and least > most:
            return self.EMPTY
        if most is not None and most >= 2**31:  # longer than any text that will ever be written
            most = None
        number = self._make(COUNTED, (least, most))
        self._empty[number] = False
        return number

    def special(self, name: str) -> int:
        """The control token called ``name``."""
        number = self._make(SPECIAL, (name,))
        self._empty[number] = False
        return number

    def seq(self, left: int, right: int) -> int:
        """Concatenation of two nodes."""
        if left == self.EMPTY or right == self.EMPTY:
            return self.EMPTY
        if left == self.EPSILON:
            return right
        if right == self.EPSILON:
            return left
        kind = self.kind[left]
        if kind == SEQ:
            first, second = self.args[left]
            return self.seq(first, self.seq(second, right))
        if kind == LITERAL:  # "ab" "cd" is "abcd", unless that grows without end (the closing brackets of deep nesting)
            follows = self.args[right][0] if self.kind[right] == SEQ else right
            if self.kind[follows] == LITERAL and len(self.args[left][0]) + len(self.args[follows][0]) <= MAX_JOINED:
                joined = self.literal(self.args[left][0] + self.args[follows][0])
                return joined if follows == right else self._make(SEQ, (joined, self.args[right][1]))
        return self._make(SEQ, (left, right))

    def sequence(self, parts: Sequence[int]) -> int:
        """Concatenation of many nodes."""
        result = self.EPSILON
        for part in reversed(parts):
            result = self.seq(part, result)
        return result

    def alt(self, parts: Iterable[int]) -> int:
        """Union of many nodes; the order is kept, since it is the order in which heads are listed."""
        flat: dict[int, None] = {}
        for part in parts:
            if self.kind[part] == ALT:
                flat.update(dict.fromkeys(self.args[part]))
            elif part != self.EMPTY:
                flat[part] = None
        if not flat:
            return self.EMPTY
        if len(flat) == 1:
            return next(iter(flat))
        return self._make(ALT, tuple(flat))

    def repeat(self, part: int, least: int, most: int | None) -> int:
        """Between ``least`` and ``most`` copies (None: no upper bound)."""
        if most is not None and most < least:
            return self.EMPTY
        if most == 0 or part == self.EPSILON:
            return self.EPSILON
        if part == self.EMPTY:
            return self.EPSILON if least == 0 else self.EMPTY
        if least == 1 and most == 1:
            return part
        return self._make(REPEAT, (part, least, most))

    def words(self, entries: Mapping[bytes, int] | Iterable[tuple[bytes, int]]) -> int:
        """Each ``data`` followed by its own node; ``data`` must be distinct."""
        pairs = sorted(entries.items() if isinstance(entries, Mapping) else entries)
        pairs = [(data, node) for data, node in pairs if node != self.EMPTY]
        if not pairs:
            return self.EMPTY
        if len(pairs) == 1:
            return self.seq(self.literal(pairs[0][0]), pairs[0][1])
        return self._make(WORDS, (tuple(pairs), 0))

    def lazy(self, key: Hashable, expand: Callable[[], int], *, as_empty_as: int | None = None) -> int:
        """A rule. ``key`` identifies it in this store; ``expand`` is called once, when first needed.

        ``as_empty_as``: a node that is empty iff the rule is; it is looked into instead.
        """
        number = self._index.get((LAZY, key))
        if number is None:
            number = self._make(LAZY, (key,))
            self.args[number] = (key, expand)
            if as_empty_as is not None:
                self._instead[number] = as_empty_as
        return number

    def dynamic(self, key: Hashable, static: int, resolve: Callable[[bytes], int], kind: int) -> int:
        """A place at which ``resolve(text so far)`` is the node that follows.

        Args:
            key: identifies it in this store.
            static: a node whose language holds that of everything that ``resolve`` may return.
            resolve: a pure function of the text.
            kind: `AFTER_NAME`, `BEYOND` or `HERE`.
        """
        number = self._index.get((DYNAMIC, key))
        if number is None:
            number = self._make(DYNAMIC, (key,))
            self.args[number] = (static, resolve, kind)
        return number

    # -- questions ---------------------------------------------------------------------------------------------

    def expand(self, node: int) -> int:
        """What a LAZY node stands for (never itself LAZY).

        Raises:
            GrammarError: the rule refers to itself before anything is written (left recursion).
        """
        found = self._expanded.get(node)
        if found is not None:
            return found
        chain = [node]
        if node in self._opening:
            raise GrammarError("a rule refers to itself without writing anything", hint="remove the circular reference")
        self._opening.add(node)
        try:
            current: int = self.args[node][1]()
            while self.kind[current] == LAZY:
                known = self._expanded.get(current)
                if known is not None:
                    current = known
                    break
                if current in chain:
                    raise GrammarError(
                        "a rule refers to itself without writing anything", hint="remove the circular reference"
                    )
                chain.append(current)
                current = self.args[current][1]()
        finally:
            self._opening.discard(node)
        for each in chain:
            self._expanded[each] = current
            self.args[each] = (self.args[each][0], None)  # free what the closure holds
        return current

    def nullable(self, node: int) -> bool:
        """Whether the empty text is in the language."""
        found = self._nullable.get(node)
        if found is not None:
            return found
        kind, args = self.kind[node], self.args[node]
        if kind in (EPSILON_KIND, EMPTY_KIND):
            result = kind == EPSILON_KIND
        elif kind in (LITERAL, SPECIAL, COUNTED, DYNAMIC):
            result = False  # a DYNAMIC place is never skipped: the text decides when it gets there
        elif kind == TEXT:
            result = not args[1] and self.terms.nullable(args[0])
        elif kind == SEQ:
            result = self.nullable(args[0]) and self.nullable(args[1])
        elif kind == ALT:
            result = any(self.nullable(part) for part in args)
        elif kind == REPEAT:
            result = args[1] == 0 or self.nullable(args[0])
        elif kind == WORDS:
            result = any(data == b"" and self.nullable(rest) for data, rest in args[0][:1])
        else:
            result = self.nullable(self.expand(node))
        self._nullable[node] = result
        return result

    def heads(self, node: int) -> tuple[Head, ...]:
        """Every way a text of ``node`` may begin. Law: the language is the union of ``atom rest`` over the
        heads, and the empty text if `nullable`; no head leads to an empty language."""
        found = self._heads.get(node)
        if found is not None:
            return found
        kind, args = self.kind[node], self.args[node]
        result: dict[Head, None] = {}
        if kind in (LITERAL, TEXT, COUNTED, SPECIAL, DYNAMIC):
            result[(node, self.EPSILON)] = None
        elif kind == SEQ:
            left, right = args
            if not self.is_empty(right):
                for atom, rest in self.heads(left):
                    result[(atom, self.seq(rest, right))] = None
                if self.nullable(left):
                    result.update(dict.fromkeys(self.heads(right)))
        elif kind == ALT:
            for part in args:
                if not self.is_empty(part):
                    result.update(dict.fromkeys(self.heads(part)))
        elif kind == REPEAT:
            part, least, most = args
            if not self.is_empty(part):
                remaining = self.repeat(part, max(least - 1, 0), None if most is None else most - 1)
                for atom, rest in self.heads(part):
                    result[(atom, self.seq(rest, remaining))] = None
        elif kind == WORDS:
            for head in self._word_heads(*args):
                result[head] = None
        elif kind == LAZY:
            result.update(dict.fromkeys(self.heads(self.expand(node))))
        heads = tuple(result)
        self._heads[node] = heads
        return heads

    def _word_heads(self, pairs: tuple[tuple[bytes, int], ...], depth: int) -> Iterable[Head]:
        """One head per next byte: the longest common prefix of the group, then the rest of the group."""
        index = 0
        if len(pairs[0][0]) == depth:
            if not self.is_empty(pairs[0][1]):
                yield from self.heads(pairs[0][1])
            index = 1
        while index < len(pairs):
            first = pairs[index][0][depth]
            low, high = index + 1, len(pairs)  # pairs are sorted: bisect for the end of the group
            while low < high:
                middle = (low + high) // 2
                if pairs[middle][0][depth] == first:
                    low = middle + 1
                else:
                    high = middle
            group = pairs[index:low]
            index = low
            if len(group) == 1:
                data, rest = group[0]
                if not self.is_empty(rest):
                    joined = self.seq(self.literal(data[depth:]), rest)
                    yield from self.heads(joined) if self.kind[joined] == SEQ else ((joined, self.EPSILON),)
                continue
            shortest, longest = group[0][0], group[-1][0]
            common = depth + 1
            while common < len(shortest) and shortest[common] == longest[common]:
                common += 1
            rest = self._make(WORDS, (group, common))
            if not self.is_empty(rest):
                yield (self.literal(shortest[depth:common]), rest)

    def is_empty(self, node: int) -> bool:
        """Whether the language has no text at all.

        Looks no further than it must: an optional part is never visited, the first non-empty alternative
        decides. Recursion is the least fixpoint (a rule that can only finish through itself is empty).
        """
        known = self._empty[node]
        if known is None:
            known = self._empty[node] = self._seen_empty(node)
        if known is not None:
            return known
        # Depth-first with an explicit stack (schemas may be thousands of levels deep). `depth_of` marks nodes in
        # progress, which count as empty; a verdict "empty" that leaned on one of them further up is provisional.
        depth_of: dict[int, int] = {}
        frames: list[list[Any]] = []

        def push(child: int) -> None:
            depth_of[child] = len(frames)
            frames.append([child, self._obligations(child), len(frames), None])

        push(node)
        verdict = True
        while frames:
            frame = frames[-1]
            current, questions, lowest = frame[0], frame[1], frame[2]
            try:
                child = questions.send(frame[3])
                while True:
                    answer = self._empty[child]
                    if answer is None and child in depth_of:
                        answer = True
                        frame[2] = lowest = min(lowest, depth_of[child])
                    if answer is None:
                        break
                    child = questions.send(answer)
                push(child)
                continue
            except StopIteration as stop:
                verdict = stop.value
            frames.pop()
            del depth_of[current]
            if not verdict or lowest >= len(frames):
                self._empty[current] = verdict
            if frames:
                frames[-1][3] = verdict
                if verdict:
                    frames[-1][2] = min(frames[-1][2], lowest)
        return verdict

    def _seen_empty(self, node: int) -> bool | None:
        """Whether a language is empty, if that is known of its parts."""
        kind = self.kind[node]
        if kind == LAZY:
            instead = self._instead.get(node)
            return None if instead is None else self._empty[instead]
        if kind != SEQ:
            return None
        left, right = self.args[node]
        parts = self._empty[left], self._empty[right]
        return True if True in parts else None if None in parts else False

    def _obligations(self, node: int) -> Generator[int, bool, bool]:
        """Asks whether children are empty, as few as possible; returns whether ``node`` is."""
        kind, args = self.kind[node], self.args[node]
        if kind == SEQ:
            if (yield args[0]):
                return True
            return (yield args[1])
        if kind == ALT:
            for part in args:
                if not (yield part):
                    return False
            return True
        if kind == REPEAT:
            return args[1] > 0 and (yield args[0])
        if kind == WORDS:
            for _, rest in args[0]:
                if not (yield rest):
                    return False
            return True
        if kind == LAZY:
            instead = self._instead.get(node)
            return (yield self.expand(node) if instead is None else instead)
        if kind == DYNAMIC:
            return (yield args[0])
        return False
