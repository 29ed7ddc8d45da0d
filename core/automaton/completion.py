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
from ..language.shortest import least_length

#: Maximum number of steps of the search for a shortest text; after them `_lightest` takes over. And the number of nodes
#: that it looks at; beyond them the first text that is found will do, and also after `FEW_SEARCH` steps where nodes are
#: scarce.
MAX_SEARCH, MAX_WEIGHED, FEW_SEARCH = 5_000, 10_000, 500

#: Maximum depth in which the parts of a node are looked at for a bound of its length.
MAX_DEPTH = 20

#: Of nodes that follow one another, each of so many has its text kept; and texts up to a number of bytes are made one
#: piece, so that thousands of closing brackets are few pieces.
KEPT_EACH, LONGEST_PIECE = 16, 64

#: More than the length of any text: there is none.
NEVER = 2**62


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
        parts = self[0] + other[0], b"", self, other, "", self[5] and other[5]
        return tuple.__new__(Rope, parts)  # as `Rope(*parts)`, in less time: there may be thousands

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


def _piece(run: list[bytes]) -> Rope:
    """Return bytes as a text, given from the last to the first."""
    data = b"".join(reversed(run))
    return Rope(len(data), data)


def _flat(text: Rope) -> Rope:
    """Return a text as one piece; the text itself if it has control tokens."""
    pieces = joined(text.pieces())
    if len(pieces) == 1 and isinstance(pieces[0], bytes):
        return text._replace(data=pieces[0], left=None, right=None)
    return text


def times(rope: Rope, count: int) -> Rope:
    """Return a text repeated ``count`` times."""
    result, power = NO_TEXT, rope
    while count:
        if count & 1:
            result = power + result
        count >>= 1
        power = power + power
    return result


class _Answer(NamedTuple):
    """What a search found out about a node.

    Attributes:
        text: the shortest text that was looked at; None if there is none.
        beyond: a lower bound of the lengths of texts that were passed over because of a limit.
        around: the same of texts that were passed over because they hold a rule in progress.
        outermost: the depth of the outermost such rule.
    """

    text: Rope | None
    beyond: int = NEVER
    around: int = NEVER
    outermost: int = NEVER


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

    def shortest(self, node: int, limit: int = NEVER) -> Rope | None:
        """Return the shortest text of a node; None if it has none, or if none is shorter than a limit."""
        nodes, known = self.nodes, self._known
        before: list[tuple[int, int]] = []  # with their first parts; closing brackets of a deep text, say: all shared
        left = limit
        while node not in known and nodes.kind(node) == SEQ:
            whole = node
            first, node = nodes.args(node)
            before.append((whole, first))
            if limit < NEVER:
                left -= self.least_length(first)
        result = self._search_from(node, left) if self.least_length(node) < left else None
        if limit < NEVER and (result is None or result.length >= left):
            return None
        # Texts of some of them are kept: from the others, those are near.
        run: list[bytes] = []
        for whole, first in reversed(before):
            text = known.get(first)
            if text is None:
                text = self._search_from(first)
            if text is not None and not text.data and 0 < text.length <= LONGEST_PIECE:
                text = known[first] = _flat(text)
            if text is None or result is None:
                result = known[whole] = None
                run.clear()
                continue
            if text.is_certain and (text.data or not text.length):
                run.append(text.data)
                if len(run) < KEPT_EACH:
                    continue
                result = _piece(run) + result
            else:
                result = text + (_piece(run) + result if run else result)
            known[whole] = result
            run.clear()
        if run and result is not None:
            result = known[before[0][0]] = _piece(run) + result
        # The limit for the last part was of lower bounds of the others.
        return None if result is not None and result.length >= limit else result

    def _search_from(self, node: int, limit: int = NEVER, *, is_hasty: bool = False) -> Rope | None:
        """Return `shortest` of a node that may be recursive.

        Knuth's generalisation of Dijkstra's algorithm (1977), run depth-first on a stack of its own (grammars may be
        thousands of rules deep), with bounds: a node is asked for a text below a limit, and what cannot be below it is
        not looked at. A text that holds a rule in progress is not looked at either. An answer is kept if no text that
        was passed over could be shorter; else the bound is kept.

        ``is_hasty``: any text will do. The first alternative that has one is taken, as where emptiness is searched.
        """
        if node in self._known:
            return self._known[node]
        most = MAX_SEARCH if not self.nodes.is_scarce else FEW_SEARCH
        limit = NEVER if is_hasty else limit
        opened: dict[int, int] = {}  # rules in progress, and their depth
        stack = [(node, self._search(node, opened, 0, limit, is_hasty))]
        answer: _Answer | None = None
        steps = 0
        while True:
            steps += 1
            if steps > most and not is_hasty:  # mutually recursive rules may be searched again and again
                return self._lightest(node) if most == MAX_SEARCH else self._search_from(node, is_hasty=True)
            current, search = stack[-1]
            try:
                wanted, limit = search.send(answer) if answer is not None else next(search)
            except StopIteration as stop:
                answer = stop.value
                assert answer is not None
                stack.pop()
                opened.pop(current, None)
                if len(stack) <= answer.outermost < NEVER:  # a shortest text does not hold another of the same rule
                    answer = _Answer(answer.text, answer.beyond)
                bound = min(answer.beyond, answer.around)
                length = NEVER if answer.text is None else answer.text.length
                if length <= bound or (is_hasty and answer.text is not None):
                    self._known[current] = answer.text
                else:
                    self._least[current] = max(self.least_length(current), bound)
                if not stack:
                    return answer.text
                continue
            least = self.least_length(wanted)
            if wanted in self._known:
                answer = _Answer(self._known[wanted])
            elif wanted in opened:
                answer = _Answer(None, around=least, outermost=opened[wanted])
            elif least >= limit:
                answer = _Answer(None, beyond=least)
            else:
                stack.append((wanted, self._search(wanted, opened, len(stack), limit, is_hasty)))
                answer = None

    def _search(
        self, node: int, opened: dict[int, int], depth: int, limit: int, is_hasty: bool
    ) -> Generator[tuple[int, int], _Answer, _Answer]:
        """Yield children whose shortest texts are needed, and below which length; return the node's."""
        nodes = self.nodes
        kind, args = nodes.kind(node), nodes.args(node)
        if node in self._known:
            return _Answer(self._known[node])
        text = self._text(node)
        if text is not None or kind == EMPTY_KIND:
            return _Answer(text)
        if kind == SEQ:
            tails, parts = [node], [args[0]]
            rest = args[1]
            while nodes.kind(rest) == SEQ and rest not in self._known:
                tails.append(rest)
                part, rest = nodes.args(rest)
                parts.append(part)
            parts.append(rest)
            lengths = [self.least_length(part) for part in parts]
            left = sum(lengths)
            size, beyond, around, outermost = 0, NEVER, NEVER, NEVER
            texts = []
            for part, least in zip(parts, lengths, strict=True):
                left -= least
                text = self._text(part)
                if text is None:
                    found = yield part, limit - size - left
                    text = found.text
                    beyond = min(beyond, size - least + found.beyond)
                    around = min(around, size - least + found.around)
                    outermost = min(outermost, found.outermost)
                beyond += least
                around += least
                if text is None:
                    return _Answer(None, beyond + left, around + left, outermost)
                texts.append(text)
                size += text.length
            text = texts.pop()
            for tail, before in zip(reversed(tails), reversed(texts), strict=True):
                text = before + text
                if is_hasty or (size <= beyond and size <= around):
                    self._known[tail] = text
            return _Answer(text, beyond, around, outermost)
        if kind == REPEAT:
            found = yield args[0], -(-limit // args[1])
            text = None if found.text is None else times(found.text, args[1])
            return _Answer(text, found.beyond * args[1], found.around * args[1], found.outermost)
        if kind in (LAZY, DYNAMIC):
            opened[node] = depth
            (part,) = self._parts(node)
            self._least[node] = max(self.least_length(node), self.least_length(part))
            # A power of 4, so that it is not asked again and again for a byte more.
            found = yield part, 1 << ((limit - 1).bit_length() + 1 & ~1)
            if kind == DYNAMIC and found.text is not None:
                return found._replace(text=found.text._replace(is_certain=False))
            return found
        ranked = self._ranked(node, is_hasty)
        # Low limits first: an alternative that needs more than another costs little.
        room = NEVER if is_hasty or len(ranked) == 1 else max(16, 2 * ranked[0][0])
        while True:
            room = min(room, limit)
            text, beyond, around, outermost = None, NEVER, NEVER, NEVER
            for least, data, part in ranked:
                below = room if text is None else min(room, text.length)
                if least >= below:
                    beyond = min(beyond, least)
                    continue
                if is_hasty and text is not None:
                    break
                found = yield nodes.seq(nodes.literal(data), part), below
                if text is None or (found.text is not None and found.text.length < text.length):
                    text = found.text
                beyond = min(beyond, found.beyond)
                around = min(around, found.around)
                outermost = min(outermost, found.outermost)
            if (NEVER if text is None else text.length) <= beyond or room == limit or is_hasty:
                return _Answer(text, beyond, around, outermost)
            room = 16 * max(room, beyond)

    def _ranked(self, node: int, is_hasty: bool) -> list[tuple[int, bytes, int]]:
        """Return the alternatives of a node, those whose texts look shortest first: a lower bound of the length, the
        bytes that each begins with, and the node of the rest."""
        nodes = self.nodes
        if nodes.kind(node) == WORDS:
            words, written = nodes.args(node)
            found = [(len(data) - written + self.least_length(rest), data[written:], rest) for data, rest in words]
            return found if is_hasty else sorted(found)
        ranked = []
        for part in nodes.args(node):
            kind = nodes.kind(part)
            if kind == LAZY and not is_hasty and part not in self._least and part not in self._known:
                self._least[part] = self.least_length(*self._parts(part))
            least = self.least_length(part)
            # What is still to be looked at needs two brackets more, mostly.
            ranked.append((least + 2 * (part not in self._known and kind in (SEQ, LAZY)), least, part))
        return [(least, b"", part) for _, least, part in (ranked if is_hasty else sorted(ranked))]

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

    def least_length(self, node: int, depth: int = 0) -> int:
        """Return a lower bound of the length of a node's texts, without expanding anything; `NEVER` if it has none."""
        nodes, known = self.nodes, self._least
        before: list[int] = []
        while node not in self._known and node not in known and nodes.kind(node) == SEQ:
            before.append(node)
            node = nodes.args(node)[1]
        kept = known.get(node)
        if node in self._known:
            text = self._known[node]
            length = NEVER if text is None else text.length
        elif kept is not None:
            length = kept
        else:
            kind, args = nodes.kind(node), nodes.args(node)
            length = 0
            if kind == LITERAL:
                length = len(args[0])
            elif kind == TEXT:
                length = least_length(nodes.terms, args[0]) + (2 if args[1] else 0)
            elif kind == COUNTED:
                length = 2 + args[0]
            elif kind == SPECIAL:
                length = 1
            elif depth == MAX_DEPTH:
                pass
            elif kind == WORDS:
                length = min(len(data) + self.least_length(rest, depth + 1) for data, rest in args[0]) - args[1]
            elif kind == ALT:
                length = min(self.least_length(part, depth + 1) for part in args)
            elif kind == REPEAT:
                length = args[1] * self.least_length(args[0], depth + 1)
            elif kind == DYNAMIC:
                length = self.least_length(args[0], depth + 1)
            if kind != LAZY:  # it may be expanded later
                known[node] = length
        for whole in reversed(before):
            length += self.least_length(nodes.args(whole)[0], depth + 1)
            known[whole] = length
        return length
