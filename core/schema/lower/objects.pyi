# Types of a compiled module (Cython in pure-Python mode).
from collections.abc import Iterable
from typing import Any

from ...language.nodes import Nodes
from ..normal.conjunction import Goal, Objects
from .context import GoalNodes, MemberSyntax
from .merged_objects import MergedObjects, ObjectShape

COMPILED: bool
MAX_REMEMBERED: int

class ObjectLowering:
    lowering: GoalNodes
    nodes: Nodes
    any_order: bool
    def __init__(self, lowering: GoalNodes, merged: MergedObjects, members: MemberSyntax | None = None) -> None: ...
    def shape(self, objects: Objects) -> ObjectShape: ...
    def node(self, objects: Objects, excluded: frozenset[str] = ...) -> int: ...
    def goals(self, objects: Objects, names: Iterable[str]) -> dict[str, Goal]: ...
    def holds(self, objects: Objects, value: dict[str, Any]) -> bool: ...

def spelled_name(name: str) -> bytes: ...
