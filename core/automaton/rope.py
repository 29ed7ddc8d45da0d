"""Long texts as trees that share their parts."""

from __future__ import annotations

from typing import NamedTuple


class Rope(NamedTuple):
    """A long text as a tree that shares its parts: ``data`` or a control token, or ``left`` then ``right`` (both maybe
    many times). Its length is that of its bytes, and 1 for each control token."""

    length: int
    data: bytes = b""
    left: Rope | None = None
    right: Rope | None = None
    special: str = ""

    def parts(self) -> list[bytes | str]:
        """The text itself: runs of bytes, and the names of the control tokens between them."""
        found: list[bytes | str] = []
        run: list[bytes] = []
        stack: list[Rope] = [self]
        while stack:
            rope = stack.pop()
            if rope.special:
                found += [b"".join(run), rope.special]
                run.clear()
            run.append(rope.data)
            if rope.right is not None:
                stack.append(rope.right)
            if rope.left is not None:
                stack.append(rope.left)
        return [part for part in (*found, b"".join(run)) if part]


#: The empty text.
NO_TEXT = Rope(0)


def times(rope: Rope, count: int) -> Rope:
    """A text, so many times."""
    parts = rope.parts()
    if len(parts) <= 1 and not any(isinstance(part, str) for part in parts):
        data = b"".join(part for part in parts if isinstance(part, bytes)) * count
        return Rope(len(data), data)
    result = NO_TEXT
    for _ in range(count):
        result = Rope(result.length + rope.length, b"", result, rope)
    return result
