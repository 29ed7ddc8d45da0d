# Types of a compiled module (Cython in pure-Python mode).
from typing import Any

from ...language.nodes import Nodes
from ..normal.conjunction import Arrays
from .context import GoalNodes

COMPILED: bool
MAX_SPECIAL: int

class ArrayLowering:
    lowering: GoalNodes
    nodes: Nodes
    def __init__(self, lowering: GoalNodes) -> None: ...
    def node(self, arrays: Arrays, excluded: frozenset[str] = ...) -> int: ...
    def holds(self, arrays: Arrays, value: list[Any]) -> bool: ...
