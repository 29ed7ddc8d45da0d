"""Long texts as trees that share their parts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple


class Rope(NamedTuple):
    """A long text as a tree that shares its parts: ``data`` or a control token, or ``left`` then ``right`` (both maybe
    many times).

    Attributes:
        length: that of its bytes, and 1 for each control token.
        is_certain: no DYNAMIC place on its way may forbid it.
    """

    length: int
    data: bytes = b""
    left: Rope | None = None
    right: Rope | None = None
    special: str = ""
    is_certain: bool = True

    def __add__(self, other: Rope) -> Rope:  # type: ignore[override]
        """A text and then another."""
        return Rope(self.length + other.length, b"", self, other, "", self.is_certain and other.is_certain)

    def pieces(self) -> Iterator[bytes | str]:
        """The text from its beginning on: bytes, and the names of control tokens."""
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
    """Pieces of a text with neighbouring bytes joined: runs of bytes, and the names of the control tokens between."""
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
    """A text, so many times."""
    result, power = NO_TEXT, rope
    while count:
        if count & 1:
            result = power + result
        count >>= 1
        power = power + power
    return result
