# Types of a compiled module (Cython in pure-Python mode).
from collections.abc import Hashable
from typing import Any, Final

from .node_search import NodeSearch
from .terms import Terms

COMPILED: bool

Head = tuple[int, int]

class Nodes(NodeSearch):
    known: Final[dict[Hashable, int]]
    builders: Final[dict[Hashable, Any]]
    is_shared: Final[bool]
    @property
    def is_scarce(self) -> bool: ...
    weight: int
    plenty: int
    def __init__(self, terms: Terms | None = None, *, shared: bool = False) -> None: ...
    def grow(self) -> None: ...
    def hurry(self) -> None: ...
    def clear(self) -> None: ...
    def heads(self, node: int) -> tuple[Head, ...]: ...
    def head_index(self, node: int) -> int: ...
