"""Shortest texts of grammar nodes, as ropes (trees with shared parts)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from heapq import heappop, heappush
from itertools import count
from typing import NamedTuple, Protocol

from ...dependent.resolution import planned_language
from ...language.node_kinds import (
    ALT,
    COUNTED,
    EPSILON_KIND,
    LAZY,
    LITERAL,
    REPEAT,
    SEQ,
    SPECIAL,
    TEXT,
    WORDS,
)
from ...language.nodes import Nodes
from .strings import fewest_chars

#: Maximum number of nodes that a search for a shortest text visits, and that number while nodes are scarce or after a
#: search was given up. Above it, any text will do.
MAX_SEARCHED, FEW_SEARCHED = 10_000, 500

#: Maximum depth of parts that `ShortestTexts.least_length` inspects.
MAX_DEPTH = 20

#: In a sequence, the text of every 16th node is memoised; adjacent pieces of up to 64 bytes are joined, so that
#: thousands of closing brackets are few pieces.
KEPT_EACH, LONGEST_PIECE = 16, 64

#: A length above that of any text, for nodes without a text.
NEVER = 2**62


class Rope(NamedTuple):
    """A long text as a tree with shared parts: a leaf (``data`` or ``special``), or ``left`` then ``right``.

    Attributes:
        length: in bytes; a control token counts as 1.
        is_certain: it passes no dependent node that can forbid it.
    """

    length: int
    data: bytes = b""
    left: Rope | None = None
    right: Rope | None = None
    special: str = ""
    is_certain: bool = True

    def __add__(self, other: Rope) -> Rope:  # type: ignore[override]
        """Return the concatenation of two texts; adjacent short pieces are joined."""
        if not other.length and other.is_certain:
            return self
        if not self.length and self.is_certain:
            return other
        are_certain = self.is_certain and other.is_certain
        left: Rope = self
        right: Rope | None = other
        near = other if other.data else other.left  # the piece next to this one
        if near is not None and self.data and near.data and self.length + near.length <= LONGEST_PIECE:
            left, right = Rope(self.length + near.length, self.data + near.data), other.right
            if right is None:
                return left if are_certain else left._replace(is_certain=False)
        parts = self.length + other.length, b"", left, right, "", are_certain
        return tuple.__new__(Rope, parts)  # faster than `Rope(*parts)`: there may be thousands

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
    result: list[bytes | str] = []
    run: list[bytes] = []
    for piece in pieces:
        if isinstance(piece, bytes):
            run.append(piece)
            continue
        if run:
            result.append(b"".join(run))
            run.clear()
        result.append(piece)
    return [*result, b"".join(run)] if run else result


#: The empty text.
NO_TEXT = Rope(0)


def _of(data: bytes) -> Rope:
    return Rope(len(data), data)


def _run_before(run: list[bytes], text: Rope) -> Rope:
    """Return some bytes, which are given from last to first, and the text after them."""
    return _of(b"".join(reversed(run))) + text if run else text


def _flat(text: Rope) -> Rope:
    """Return a text as one piece; the text itself if it has control tokens."""
    pieces = joined(text.pieces())
    if len(pieces) == 1 and isinstance(pieces[0], bytes):
        return text._replace(data=pieces[0], left=None, right=None)
    return text


def times(rope: Rope, count: int) -> Rope:
    """Return a text repeated ``count`` times."""
    if count > 1 and 0 < rope.length <= LONGEST_PIECE // 2 and (flat := _flat(rope)).data:
        run = min(count, LONGEST_PIECE // rope.length)
        piece = flat._replace(length=run * rope.length, data=run * flat.data)
        return times(piece, count // run) + times(flat, count % run)
    result, power = NO_TEXT, rope
    while count:
        if count & 1:
            result = power + result
        count >>= 1
        power = power + power
    return result


class Source(Protocol):
    """The part of a `LazyAutomaton` that shortest texts use."""

    nodes: Nodes

    def atom(self, node: int) -> int:
        """Return the position at which an atomic node begins."""

    def finish_atom(self, atom: int) -> bytes:
        """Return the shortest bytes that complete an atom, from a position; not for control tokens."""


#: A part of a node, and the bytes before it. A text of a SEQ has all parts in order; of other kinds, one of them.
Part = tuple[int, bytes]


class ShortestTexts:
    """Memoised shortest texts of nodes, as if dependent nodes forbade nothing.

    Args:
        source: the store of the nodes.

    Attributes:
        visited: number of nodes that searches visited: a deterministic count of work.
    """

    def __init__(self, source: Source) -> None:
        self._source = source
        self.nodes = source.nodes
        self._known: dict[int, Rope | None] = {}
        self._least: dict[int, int] = {}
        self._gave_up = False
        self.visited = 0

    def shortest(self, node: int, limit: int = NEVER) -> Rope | None:
        """Return the shortest text of a node; None if it has none, or if none is shorter than ``limit``. Sequences
        inside sequences, such as many closing brackets, are followed without recursion."""
        nodes, known = self.nodes, self._known
        spine: list[tuple[int, int]] = []  # sequences, from the outermost on, each with its first part
        left = limit  # for the last part
        while node not in known and nodes.kind(node) == SEQ:
            whole = node
            first, node = nodes.args(node)
            spine.append((whole, first))
            if limit < NEVER:
                left -= self.least_length(first)
        result = self._search(node, left) if self.least_length(node) < left else None
        if limit < NEVER and (result is None or result.length >= left):
            return None
        run: list[bytes] = []  # texts that are not yet in `result`, from last to first
        for whole, first in reversed(spine):
            text = known.get(first)
            if text is None:
                text = self._search(first)
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
                result = _run_before(run, result)
            else:
                result = text + _run_before(run, result)
            known[whole] = result
            run.clear()
        if run and result is not None:
            result = known[spine[0][0]] = _run_before(run, result)
        # `left` was computed from lower bounds of the first parts.
        return None if result is not None and result.length >= limit else result

    def _search(self, root: int, limit: int = NEVER, *, is_hasty: bool = False) -> Rope | None:
        """Return `shortest` of a node that may be recursive; a longer text only if a search would visit more than
        `MAX_SEARCHED` nodes.

        A* search for the lightest derivation (Felzenszwalb and McAllester 2007): nodes are visited, and their texts
        become final, in the order of a lower bound of the length of the root's text around them. So a rule is expanded
        only if a text shorter than the result may contain it.

        Args:
            root: the node.
            limit: texts of this length or more count as none.
            is_hasty: any text will do: nodes are visited depth-first, as in the search for emptiness.
        """
        if root in self._known:
            return self._known[root]
        nodes, known = self.nodes, self._known
        if limit < NEVER:  # rounded up to a power of 4: a limit of one more byte does not repeat the search
            limit = 1 << ((limit - 1).bit_length() + 1 & ~1)
        most = FEW_SEARCHED if nodes.is_scarce or self._gave_up else MAX_SEARCHED
        numbers = count()  # tie-breakers
        around: dict[int, int] = {}  # for each visited node, a lower bound of the length of the text around it
        users: dict[int, list[tuple[int, bytes]]] = {}  # the nodes that have a node as a part, with the bytes before it
        texts: dict[int, Rope] = {}  # the shortest so far
        final: dict[int, Rope] = {}
        # Entries: a lower bound of the length of the root's text; 0 if a text becomes final, 1 if a node is visited; a
        # tie-breaker; the node; its text, or None; and of a visit the length around the node, and the node that has it
        # as a part.
        heap: list[tuple[int, int, int, int, Rope | None, int, int]] = [(0, 1, 0, root, None, 0, -1)]
        is_cut = False  # a candidate was dropped because of the limit

        def offer(node: int, text: Rope, *, again: bool = False) -> None:
            """Keep a text of a node if it is the shortest so far; it becomes final when it leaves the heap. ``again``:
            it is kept already, and the text around the node is shorter than before."""
            nonlocal is_cut
            if again or node not in texts or text.length < texts[node].length:
                texts[node] = text
                bound = text.length + (-NEVER if is_hasty else around[node])  # hasty: before all visits
                is_cut = is_cut or bound >= limit
                if bound < limit:
                    heappush(heap, (bound, 0, next(numbers), node, text, 0, -1))

        while heap and root not in final:
            _, _, _, node, text, outside, user = heappop(heap)
            if node in final:
                continue
            if text is not None:
                final[node] = text
                for each, before in users.get(node, ()):
                    if each not in final:
                        self._combine(each, before, text, final, offer)
                continue
            if outside >= around.get(node, NEVER) or user in final:
                continue
            # A visit: the node is new, or the text around it is shorter than before.
            is_new = node not in around
            around[node] = outside
            if is_new and len(around) > most and not is_hasty:
                self._gave_up = True  # a search from the next state would visit mostly the same nodes
                known.update(final)
                return self._search(root, is_hasty=True)
            if node in texts:
                offer(node, texts[node], again=True)
            if node in known:
                if (text := known[node]) is not None:
                    offer(node, text)
                continue
            if (text := self._atom_text(node)) is not None:
                offer(node, text)
                continue
            self.visited += is_new
            kind, parts = nodes.kind(node), self._parts(node)
            lengths = [self.least_length(part) for part, _ in parts]
            if kind == LAZY:
                self._least[node] = max(self.least_length(node), lengths[0])
            all_parts = sum(lengths) if kind == SEQ else 0
            copies = nodes.args(node)[1] if kind == REPEAT else 1
            due = list(zip(parts, lengths, strict=True))
            for (part, before), length in reversed(due) if is_hasty else due:  # hasty: the last one pushed comes first
                if is_new:
                    users.setdefault(part, []).append((node, before))
                if part in final:
                    self._combine(node, before, final[part], final, offer)
                elif max(all_parts, length) < NEVER:  # else this part has no text
                    beside = outside + len(before) + max(all_parts - length, 0) + (copies - 1) * length
                    if is_hasty:
                        heappush(heap, (0, 1, -next(numbers), part, None, 0, node))
                    elif beside + length < limit:
                        heappush(heap, (beside + length, 1, next(numbers), part, None, beside, node))
                    else:
                        is_cut = True
        known.update(final)
        if root not in final:
            for node in around.keys() - final.keys():
                if is_cut:
                    self._least[node] = max(self.least_length(node), limit - around[node])
                else:
                    known[node] = None
        return final.get(root)

    def _combine(
        self, node: int, before: bytes, text: Rope, final: dict[int, Rope], offer: Callable[[int, Rope], None]
    ) -> None:
        """Offer a text of a node, since that of one of its parts (``before`` and ``text``, see `Part`) became final: of
        a SEQ when both parts are final, of a REPEAT the copies, of all others the text of the part alone."""
        kind = self.nodes.kind(node)
        if kind == SEQ:
            first, rest = self.nodes.args(node)
            if first in final and rest in final:
                offer(node, final[first] + final[rest])
        elif kind == REPEAT:
            offer(node, times(text, self.nodes.args(node)[1]))
        elif before:
            offer(node, _of(before) + text)
        else:
            offer(node, text if planned_language(self.nodes, node)[1] else text._replace(is_certain=False))

    def _atom_text(self, node: int) -> Rope | None:
        """Return the shortest text of a node without parts; None if it has parts, or no text."""
        kind, args = self.nodes.kind(node), self.nodes.args(node)
        if kind == EPSILON_KIND or (kind == REPEAT and args[1] == 0):
            return NO_TEXT
        if kind == SPECIAL:
            self._source.atom(node)  # registers the control token
            return Rope(1, special=args[0])
        if kind == LITERAL:
            return _of(args[0])
        if kind in (TEXT, COUNTED):
            return _of(self._source.finish_atom(self._source.atom(node)))
        return None

    def _parts(self, node: int) -> list[Part]:
        """Return the parts of a node, each with the bytes before it (of WORDS). A LAZY node is expanded, or replaced by
        a smaller node that has a shortest text; a dependent one by its planned language."""
        nodes = self.nodes
        kind, args = nodes.kind(node), nodes.args(node)
        if kind == WORDS:
            return [(rest, data[args[1] :]) for data, rest in args[0]]
        if kind in (SEQ, ALT):
            return [(part, b"") for part in args]
        if kind == LAZY:
            shorter = nodes.shorter.get(node)
            return [(nodes.expand(node) if shorter is None else shorter(), b"")]
        if kind == REPEAT:
            return [(args[0], b"")]
        planned, _ = planned_language(nodes, node)
        return [(planned, b"")] if planned >= 0 else []

    def least_length(self, node: int, depth: int = 0) -> int:
        """Return a lower bound in bytes of a node's texts, without expanding rules; `NEVER` if it has no text."""
        nodes, least = self.nodes, self._least
        spine: list[int] = []
        while node not in self._known and node not in least and nodes.kind(node) == SEQ:
            spine.append(node)
            node = nodes.args(node)[1]
        if node in self._known:
            text = self._known[node]
            length = NEVER if text is None else text.length
        elif node in least:
            length = least[node]
        else:
            kind, args = nodes.kind(node), nodes.args(node)
            length = 0
            if kind == LITERAL:
                length = len(args[0])
            elif kind == TEXT:
                length = fewest_chars(nodes.terms, args[0]) + (2 if args[1] else 0)
            elif kind == COUNTED:
                length = 2 + args[0]
            elif kind == SPECIAL:
                length = 1
            elif depth < MAX_DEPTH and kind not in (LAZY, EPSILON_KIND):
                lengths = [len(before) + self.least_length(part, depth + 1) for part, before in self._parts(node)]
                length = min(lengths, default=NEVER)
                if kind == REPEAT and length < NEVER:
                    length = min(length * args[1], NEVER - 1)
            if kind != LAZY:  # not memoised for LAZY: the rule may be expanded later
                least[node] = length
        for whole in reversed(spine):
            first = self.least_length(nodes.args(whole)[0], depth + 1)
            length = NEVER if NEVER in (first, length) else min(first + length, NEVER - 1)
            least[whole] = length
        return length

    def longest_part(self, root: int) -> int:
        """Return the largest `least_length` of a node and the first `MAX_SEARCHED` of its parts, rules not expanded;
        that of a part without a text counts as 0."""
        nodes, longest, seen, pending = self.nodes, 0, {root}, [root]
        while pending:
            node = pending.pop()
            length = self.least_length(node)
            longest = max(longest, 0 if length == NEVER else length)
            if nodes.kind(node) in (SEQ, ALT, REPEAT) and len(seen) < MAX_SEARCHED:
                parts = [part for part, _ in self._parts(node) if part not in seen]
                seen.update(parts)
                pending += parts
        return longest
