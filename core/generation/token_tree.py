"""Tree of token sequences, in which a model scores several texts and reads common prefixes once."""

from __future__ import annotations

from collections.abc import Iterable


class TokenTree:
    """Sequences of tokens after one context, as a tree.

    Args:
        paths: the sequences; an empty one adds nothing.

    Attributes:
        token_ids: the token of each node, in depth-first order, so each is after its parent.
        parents: the index of the parent of each node; -1: it follows the context.
        depths: for each node the number of tokens up to it.
    """

    def __init__(self, paths: Iterable[tuple[int, ...]]) -> None:
        ordered = sorted({path[:length] for path in paths for length in range(1, len(path) + 1)})
        self._index = {(): -1, **{path: index for index, path in enumerate(ordered)}}
        self.token_ids = tuple(path[-1] for path in ordered)
        self.parents = tuple(self._index[path[:-1]] for path in ordered)
        self.depths = tuple(map(len, ordered))

    def index(self, path: tuple[int, ...]) -> int:
        """Return the node of a prefix of one of the sequences; -1 for the empty prefix."""
        return self._index[path]
