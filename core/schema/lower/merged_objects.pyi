# Types of a compiled module (Cython in pure-Python mode).
from typing import Final

from ...language.nodes import Nodes
from ..normal.conjunction import Formula, Goal, Objects
from .context import GoalNodes

COMPILED: bool
MAX_REGIONS: int
MAX_DEMANDS: dict[bool, int]
MAX_SUBSETS: int
MAX_WAYS: int
MAX_SIMPLE: int
MAX_NAMES: int

Meets = tuple[tuple[int, Formula], ...]

class Member:
    name: Final[str]
    goal: Final[Goal]
    required: Final[bool]
    meets: Final[Meets]
    def __init__(self, name: str, goal: Goal, required: bool, meets: Meets = ()) -> None: ...

class Region:
    names: Final[int]
    goal: Final[Goal]
    meets: Final[Meets]
    roomy: Final[bool]
    def __init__(self, names: int, goal: Goal, meets: Meets, roomy: bool) -> None: ...

class ObjectShape:
    members: Final[tuple[Member, ...]]
    others: Final[tuple[Region, ...]]
    demands: Final[tuple[frozenset[str], ...]]
    least: Final[int]
    most: Final[int | None]
    def __init__(
        self,
        members: tuple[Member, ...],
        others: tuple[Region, ...],
        demands: tuple[frozenset[str], ...],
        least: int,
        most: int | None,
    ) -> None: ...

class MergedObjects:
    lowering: GoalNodes
    nodes: Nodes
    def __init__(self, lowering: GoalNodes) -> None: ...
    def of(self, objects: Objects) -> ObjectShape: ...
    def meeting(self, goal: Goal, meets: Meets, open: int) -> list[tuple[int, Goal]]: ...
