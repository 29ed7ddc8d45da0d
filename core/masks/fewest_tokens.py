# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False, cdivision=True
"""Encoding of a text in the fewest tokens: a dynamic program over the vocabulary's trie, from the end of the text.

Compiled where that is possible; ``fewest_tokens.pxd`` declares its C interface.
"""

from __future__ import annotations

from array import array

from ..errors import DecodingError
from ..language.node_kinds import RESERVED

try:
    import cython
except ImportError:  # interpreted, without Cython installed
    from ..compiled import standin as cython  # type: ignore[no-redef]

if not cython.compiled:  # else they are declared
    from ..compiled.arrays import grown
    from .trie import Trie

#: The number of tokens of a text that the vocabulary cannot write.
NEVER = cython.declare(cython.int, 2**30)

#: The first code of control tokens; smaller codes are bytes.
CONTROL = cython.declare(cython.int, 256)


@cython.cclass
class Spelling:
    """The fewest tokens of a text, from each of its offsets.

    Attributes:
        codes: its bytes, and ``CONTROL + id`` for a control token.
        length: their number.
        tail: the spelling of the text after it; None at the end.
        least: for each offset, ``length`` included, the number of tokens to the end of all tails; `NEVER` if the
            vocabulary cannot write that.
        token: for each offset, the first of these tokens.
        size: the number of its codes.
    """


@cython.cclass
class FewestTokens:
    """Encoder of texts in the fewest tokens; of equally few, the first token is as long as possible.

    Args:
        trie: the vocabulary's trie.
        special: ids of control tokens by name.
    """

    def __init__(self, trie: Trie, special):
        self.trie = trie
        self.special = special
        self.end = Spelling.__new__(Spelling)
        self.end.length, self.end.tail = 0, None
        self.end.codes = self.end.token = self.end.size = self.end.least = array("i", [0])
        self.clear()

    def clear(self) -> None:
        """Forget the memoised tails."""
        self.tails = {}
        self.held = 0

    def codes(self, parts) -> array:
        """Return the codes of a text (see `Spelling`).

        Args:
            parts: runs of bytes, names of control tokens, and numbers n, which stand for n tokens of any bytes.
        """
        codes = array("i")
        for part in parts:
            if isinstance(part, bytes):
                codes.extend(part)
            elif isinstance(part, int):
                codes.extend([CONTROL] * part)
            elif part == RESERVED:
                codes.append(CONTROL)
            else:
                # A name that is not in the vocabulary belongs to another grammar of the store, so no text here has it.
                codes.append(CONTROL + self.special[part])
        return codes

    @cython.cfunc
    def spell(self, codes: object, tail: Spelling) -> Spelling:
        """Return the spelling of a text (its codes) that ``tail`` follows. From the last offset to the first, each
        prefix of the rest that is a token is tried, and one that leaves the fewest tokens is kept, the longest of
        several. Tokens may reach into the tail."""
        trie: Trie = self.trie
        found: Spelling = Spelling.__new__(Spelling)
        count: cython.int = len(codes)
        found.length = count
        found.tail = tail
        found.codes = codes if count else array("i", [0])
        found.least = grown(None, "i", count + 1)
        found.token = grown(None, "i", count + 1)
        found.size = grown(None, "i", count + 1)
        found.least[count] = tail.least[0]
        part: Spelling
        i: cython.int
        at: cython.int
        size: cython.int
        node: cython.int
        code: cython.int
        least: cython.int
        for i in range(count - 1, -1, -1):
            found.least[i] = NEVER
            if found.codes[i] >= CONTROL:
                found.token[i] = found.codes[i] - CONTROL
                found.size[i] = 1
                found.least[i] = min(NEVER, found.least[i + 1] + 1)
                continue
            part = found
            at = i
            size = 0
            node = 0
            while True:
                while at == part.length and part.tail is not None:  # into the tail
                    part = part.tail
                    at = 0
                code = part.codes[at] if at < part.length else CONTROL  # a token goes no further than the text
                node = trie.child_by(node, code) if code < CONTROL else -1
                if node < 0:
                    break
                at += 1
                size += 1
                least = part.least[at] + 1
                if trie.first[node + 1] > trie.first[node] and least <= found.least[i] and least < NEVER:
                    found.least[i] = least
                    found.token[i] = trie.order[trie.first[node]]
                    found.size[i] = size
                if trie.size[node] == 1:
                    break
        return found

    @cython.cfunc
    def of_text(self, rope: object) -> Spelling:
        """Return the spelling of a text (a `Rope`). Its suffixes, which other ropes may share, are memoised."""
        spine: list = []
        found: Spelling = self.end
        while True:
            known = self.tails.get(id(rope))
            if known is not None:
                found = known[1]
                break
            spine.append(rope)
            if rope.right is None:
                break
            rope = rope.right
        at: cython.Py_ssize_t
        for at in range(len(spine) - 1, -1, -1):
            rope = spine[at]
            found = self.spell(self.codes((rope if rope.right is None else rope.left).pieces()), found)
            if at:  # not the whole text, which is not a suffix of another
                self.tails[id(rope)] = (rope, found)  # keeps the rope alive, so that its id stays unique
                self.held += 16 * found.length + 400
        return found

    def tokens(self, parts) -> list:
        """Return the fewest tokens of a text.

        Args:
            parts: runs of bytes, and names of control tokens.

        Raises:
            DecodingError: the vocabulary cannot write it.
        """
        spelling: Spelling = self.spell(self.codes(parts), self.end)
        if spelling.least[0] >= NEVER:
            raise DecodingError(
                "the vocabulary has no token with which the text could be completed",
                hint="the vocabulary must have a token for every single byte",
            )
        ids: list = []
        at: cython.int = 0
        while at < spelling.length:
            ids.append(spelling.token[at])
            at += spelling.size[at]
        return ids
