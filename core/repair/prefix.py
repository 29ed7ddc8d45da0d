"""`Prefix`: a node of the search for the nearest text."""

from __future__ import annotations

from dataclasses import dataclass

from .edits import Change


@dataclass(eq=False)
class Prefix:
    """A prefix of a repaired text.

    Attributes:
        state: the state of the automaton after it.
        at: the first byte of the broken text that was not read.
        cost: the cost of all edits.
        parent: the shorter prefix that it continues.
        text: the text added to the parent.
        change: the edit in ``text``; None for the first node.
        is_whole: it is a text of the grammar.
    """

    state: int
    at: int
    cost: float
    parent: Prefix | None = None
    text: bytes = b""
    change: Change | None = None
    is_whole: bool = False

    def _path(self) -> list[Prefix]:
        """Return the nodes that lead here, the first one first."""
        path = [self]
        while path[-1].parent is not None:
            path.append(path[-1].parent)
        return path[::-1]

    def written(self) -> bytes:
        """Return the whole prefix."""
        return b"".join([node.text for node in self._path()])

    def changes(self) -> list[Change]:
        """Return its edits, in order."""
        return [node.change for node in self._path() if node.change is not None]
