# Types of a compiled module (Cython in pure-Python mode).
from typing import Any

from ..normal.conjunction import Goal
from .merged_objects import Meets, Member, ObjectShape, Region

COMPILED: bool
UNKNOWN: int

class ObjectPlan:
    members: tuple[Member, ...]
    size: int
    names: list[str]
    required: int
    others: tuple[Region, ...]
    demands: int
    absent: list[int]
    open_to: list[int]
    least: int
    most: int | None
    plain: bool
    sure: list[int]
    words: list[tuple[bytes, ...] | None]
    values: list[int]
    follow: dict[Any, int]
    following: list[int]
    region_names: list[int]
    places: dict[Any, int]
    start: int
    skeleton: int | None
    endless: int | None
    def __init__(self, shape: ObjectShape) -> None: ...
    def without_idle(self, at: int, open: int) -> tuple[int, int]: ...
    def goal(self, number: int) -> Goal: ...
    def meets(self, number: int) -> Meets: ...
