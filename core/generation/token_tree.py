"""Tree of token sequences: what a model reads to score several texts, their common beginnings once."""

from __future__ import annotations

from collections.abc import Iterable


class TokenTree:
    """Sequences of tokens that follow one context, as a tree.

    Args:
        paths: the sequences; an empty one adds nothing.

    Attributes:
        token_ids: one token for each node, in the order of a walk along the branches: each after its parent.
        parents: for each node the index of its parent; -1: it follows the context.
        depths: for each node the number of tokens up to it.
    """

    def __init__(self, paths: Iterable[tuple[int, ...]]) -> None:
        ordered = sorted({path[:length] for path in paths for length in range(1, len(path) + 1)})
        self._index = {(): -1, **{path: index for index, path in enumerate(ordered)}}
        self.token_ids = tuple(path[-1] for path in ordered)
        self.parents = tuple(self._index[path[:-1]] for path in ordered)
        self.depths = tuple(map(len, ordered))

    def index(self, path: tuple[int, ...]) -> int:
        """Return the node at which a beginning of one of the sequences ends; -1 for the empty one."""
        return self._index[path]
