"""Shortest completions: the shortest text of each grammar node, as trees that share their parts."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Sequence
from heapq import heappop, heappush
from itertools import count
from typing import NamedTuple, Protocol

from ..language.node_kinds import (
    ALT,
    COUNTED,
    DYNAMIC,
    EMPTY_KIND,
    EPSILON_KIND,
    LAZY,
    LITERAL,
    REPEAT,
    SEQ,
    SPECIAL,
    TEXT,
    WORDS,
)
from ..language.nodes import Nodes

#: Maximum number of steps of the search for a shortest text; after them `_lightest` takes over. And the number of nodes
#: that it looks at; beyond them the first text that is found will do.
MAX_SEARCH, MAX_WEIGHED = 5_000, 10_000


class Rope(NamedTuple):
    """A long text as a tree with shared parts: ``data`` or a control token, or ``left`` then ``right``.

    Attributes:
        length: in bytes; a control token counts as 1.
        is_certain: it passes no DYNAMIC place, which could forbid it.
    """

    length: int
    data: bytes = b""
    left: Rope | None = None
    right: Rope | None = None
    special: str = ""
    is_certain: bool = True

    def __add__(self, other: Rope) -> Rope:  # type: ignore[override]
        """Return the concatenation of two texts."""
        return Rope(self.length + other.length, b"", self, other, "", self.is_certain and other.is_certain)

    def pieces(self) -> Iterator[bytes | str]:
        """Yield the pieces of the text in order: bytes, and the names of control tokens."""
        stack: list[Rope] = [self]
        while stack:
            rope = stack.pop()
            if rope.special or rope.data:
                yield rope.special or rope.data
            if rope.right is not None:
                stack.append(rope.right)
            if rope.left is not None:
                stack.append(rope.left)


def joined(pieces: Iterable[bytes | str]) -> list[bytes | str]:
    """Return pieces of a text with neighbouring bytes joined."""
    found: list[bytes | str] = []
    run: list[bytes] = []
    for piece in pieces:
        if isinstance(piece, bytes):
            run.append(piece)
            continue
        if run:
            found.append(b"".join(run))
            run.clear()
        found.append(piece)
    return [*found, b"".join(run)] if run else found


#: The empty text.
NO_TEXT = Rope(0)


def times(rope: Rope, count: int) -> Rope:
    """Return a text repeated ``count`` times."""
    result, power = NO_TEXT, rope
    while count:
        if count & 1:
            result = power + result
        count >>= 1
        power = power + power
    return result


class Source(Protocol):
    """The store of the nodes, and the completion of atoms."""

    nodes: Nodes

    def atom(self, node: int) -> int:
        """Return the position at which an atomic node begins."""

    def finish_atom(self, atom: int) -> bytes:
        """Return the shortest bytes that complete an atom other than a control token."""


class ShortestTexts:
    """Memoised shortest texts of nodes, as if DYNAMIC places forbade nothing.

    The text of a node is put together of those of its parts, so what is left of it is never shorter than the text of
    the state that a beginning of it leads to. That holds also where the search was given up for any text.

    Args:
        source: the store of the nodes.
    """

    def __init__(self, source: Source) -> None:
        self._source = source
        self.nodes = source.nodes
        self._known: dict[int, Rope | None] = {}
        self._least: dict[int, int] = {}
        self._gave_up = False

    def shortest(self, node: int) -> Rope | None:
        """Return the shortest text of a node; None if it has none."""
        before: list[int] = []  # closing brackets of a deep text, say: each is shared
        while node not in self._known and self.nodes.kind(node) == SEQ:
            before.append(node)
            node = self.nodes.args(node)[1]
        result = self._search_from(node)
        for whole in reversed(before):
            first = None if result is None else self._search_from(self.nodes.args(whole)[0])
            result = None if first is None or result is None else first + result
            self._known[whole] = result
        return result

    def _search_from(self, node: int, *, is_hasty: bool = False) -> Rope | None:
        """Return `shortest` of a node that may be recursive.

        Knuth's generalisation of Dijkstra's algorithm (1977), run depth-first on a stack of its own (grammars may be
        thousands of rules deep): an alternative that cannot be shorter than the best so far is pruned, and a value that
        depends on a rule in progress is not kept.

        ``is_hasty``: any text will do. The first alternative that has one is taken, as where emptiness is searched.
        """
        if node in self._known:
            return self._known[node]
        is_hasty = is_hasty or self.nodes.is_scarce
        opened: dict[int, int] = {}  # rules in progress, and their depth
        stack = [(node, self._search(node, opened, 0, is_hasty))]
        answer: tuple[Rope | None, int] | None = None
        steps = 0
        while True:
            steps += 1
            if steps > MAX_SEARCH and not is_hasty:  # mutually recursive rules may be searched again and again
                return self._lightest(node)
            current, search = stack[-1]
            try:
                wanted = search.send(answer) if answer is not None else next(search)
            except StopIteration as stop:
                answer = stop.value
                assert answer is not None
                stack.pop()
                opened.pop(current, None)
                # It depends on no rule in progress, or need not be shortest.
                if answer[1] >= len(stack) or (is_hasty and answer[0] is not None):
                    self._known[current] = answer[0]
                if not stack:
                    return answer[0]
                continue
            if wanted in self._known:
                answer = self._known[wanted], len(stack)
            elif wanted in opened:
                answer = None, opened[wanted]
            else:
                stack.append((wanted, self._search(wanted, opened, len(stack), is_hasty)))
                answer = None

    def _search(
        self, node: int, opened: dict[int, int], depth: int, is_hasty: bool
    ) -> Generator[int, tuple[Rope | None, int], tuple[Rope | None, int]]:
        """Yield children whose shortest texts are needed; return the node's, and the depth of the outermost rule in
        progress that it depends on."""
        nodes = self.nodes
        kind, args = nodes.kind(node), nodes.args(node)
        lowest = depth
        if node in self._known:
            return self._known[node], depth
        result = self._text(node)
        if result is not None or kind == EMPTY_KIND:
            pass
        elif kind == REPEAT:
            result, lowest = yield args[0]
            if result is not None:
                result = times(result, args[1])
        elif kind == SEQ:
            result, lowest = yield args[0]
            if result is not None:
                tail, low = yield args[1]
                lowest = min(lowest, low)
                result = None if tail is None else result + tail
        elif kind in (LAZY, DYNAMIC):
            opened[node] = depth
            (part,) = self._parts(node)
            result, lowest = yield part
            if kind == DYNAMIC and result is not None:
                result = result._replace(is_certain=False)
        else:
            parts = self._parts(node)
            for part in parts if is_hasty else sorted(parts, key=self.least_length):
                if result is not None and (is_hasty or self.least_length(part) >= result.length):
                    break
                found, low = yield part
                lowest = min(lowest, low)
                if found is not None and (result is None or found.length < result.length):
                    result = found
        return result, min(lowest, depth)

    def _lightest(self, root: int) -> Rope | None:
        """Return `shortest`, bottom-up as Knuth does: each rule is decided once, in the order of lengths. Only rules
        that texts of a limited length may contain are expanded; the limit doubles until there is a text. If they are
        too many, return some text.
        """
        limit = 8
        found: bool | None = False
        while found is False and not self._gave_up:
            found = self._weighed(root, limit)
            limit *= 2
        if found:
            return self._known[root]
        self._gave_up = True  # what it would look at from the next state is much the same
        return self._search_from(root, is_hasty=True)

    def _weighed(self, root: int, limit: int) -> bool | None:
        """Find the shortest texts of the nodes in texts of a root within a length; return True if the root has one, and
        None if there are more than `MAX_WEIGHED` nodes."""
        nodes, known = self.nodes, self._known
        numbers = count()  # decide ties
        parts: dict[int, Sequence[int]] = {}
        uses: dict[int, list[int]] = {}
        outside: dict[int, int] = {}  # minimum length of the text around a node
        heap: list[tuple[int, int, int, Rope]] = []  # length, number, node, text

        def offer(node: int, text: Rope) -> None:
            heappush(heap, (text.length, next(numbers), node, text))

        is_whole = True
        todo = [(0, 0, root, 0)]  # minimum length of the whole, number, node, minimum length around it
        while todo:
            least, _, node, around = heappop(todo)
            if node in outside:
                continue
            if least > limit:
                is_whole = False
                break
            if len(outside) >= MAX_WEIGHED:
                return None
            outside[node] = around
            parts[node] = ()
            text = known[node] if node in known else self._text(node)
            if text is not None:
                offer(node, text)
            elif node not in known:
                parts[node] = self._parts(node)
                lengths = [self.least_length(part) for part in parts[node]]
                for part, length in zip(parts[node], lengths, strict=True):
                    uses.setdefault(part, []).append(node)
                    beside = around + (sum(lengths) - length if nodes.kind(node) == SEQ else 0)
                    heappush(todo, (beside + length, next(numbers), part, beside))
        done: dict[int, Rope] = {}
        while heap:
            _, _, node, text = heappop(heap)
            if node in done:
                continue
            done[node] = text
            if is_whole or outside[node] + text.length <= limit:  # else a shorter one may exist
                known[node] = text
            for user in uses.get(node, ()):
                if user not in done:
                    kind = nodes.kind(user)
                    if kind == REPEAT:
                        offer(user, times(text, nodes.args(user)[1]))
                    elif kind == DYNAMIC:
                        offer(user, text._replace(is_certain=False))
                    elif kind != SEQ:
                        offer(user, text)
                    elif all(part in done for part in parts[user]):
                        first, second = (done[part] for part in parts[user])
                        offer(user, first + second)
        if is_whole:
            known.setdefault(root, None)
        return root in known

    def _text(self, node: int) -> Rope | None:
        """Return the shortest text of a node that has no parts; None if it has some, or no text."""
        kind, args = self.nodes.kind(node), self.nodes.args(node)
        if kind == EPSILON_KIND or (kind == REPEAT and args[1] == 0):
            return NO_TEXT
        if kind == SPECIAL:
            self._source.atom(node)  # it gets a number
            return Rope(1, special=args[0])
        if kind == LITERAL:
            return Rope(len(args[0]), args[0])
        if kind in (TEXT, COUNTED):
            data = self._source.finish_atom(self._source.atom(node))
            return Rope(len(data), data)
        return None

    def _parts(self, node: int) -> Sequence[int]:
        """Return the parts of a node: it has a text if all of them (SEQ), or one of them (others), have one."""
        nodes = self.nodes
        kind, args = nodes.kind(node), nodes.args(node)
        if kind == EMPTY_KIND:
            return ()
        if kind in (SEQ, ALT):
            return tuple(args)
        if kind == LAZY:
            shorter = nodes.shorter.get(node)
            return (nodes.expand(node) if shorter is None else shorter(),)
        if kind in (DYNAMIC, REPEAT):
            return (args[0],)
        return [nodes.seq(nodes.literal(data[args[1] :]), rest) for data, rest in args[0]]

    def least_length(self, node: int) -> int:
        """Return a lower bound of the length of a node's texts, without expanding anything."""
        nodes, known = self.nodes, self._least
        before: list[int] = []
        while node not in known and nodes.kind(node) == SEQ:
            before.append(node)
            node = nodes.args(node)[1]
        length = known.get(node)
        if length is None:
            kind, args = nodes.kind(node), nodes.args(node)
            length = 0
            if kind == LITERAL:
                length = len(args[0])
            elif kind == TEXT:
                length = 2 if args[1] else 0 if nodes.terms.nullable(args[0]) else 1
            elif kind == COUNTED:
                length = 2 + args[0]
            elif kind == WORDS:
                length = min(len(data) for data, _ in args[0]) - args[1]
            known[node] = length
        for whole in reversed(before):
            length += self.least_length(nodes.args(whole)[0])
            known[whole] = length
        return length
