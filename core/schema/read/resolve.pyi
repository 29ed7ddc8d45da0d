# Types of a compiled module (Cython in pure-Python mode).
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import referencing

from .located import Located

COMPILED: bool
DIALECTS: dict[str, Any]
Registry = referencing.Registry

@dataclass(frozen=True)
class Scope:
    registry: Registry[Any] = field(compare=False)
    address: str
    previous: tuple[str, ...] = ()
    @cached_property
    def key(self) -> tuple[str, ...]: ...
    def lookup(self, reference: str) -> Any: ...
    def in_subresource(self, resource: referencing.Resource[Any]) -> Scope: ...
    def dynamic_scope(self) -> Iterator[tuple[str, Registry[Any]]]: ...

class Document:
    schema: Any
    registry: Registry[Any] | Mapping[str, Any] | None
    dynamic: bool
    age: int
    is_draft_3: bool
    ref_hides_siblings: bool
    contains_evaluates: bool
    root: Located
    entries: int
    has_common: bool
    users: dict[int, list[Any]]
    risky: list[Located]
    forking: list[int]
    disjoint: set[int]
    demanding: set[int]
    def __init__(
        self, schema: Any, registry: Registry[Any] | Mapping[str, Any] | None = None, dynamic: bool = False
    ) -> None: ...
    @property
    def dialect(self) -> Any: ...
    @property
    def address(self) -> str: ...
    def knows(self, keyword: str) -> bool: ...
    def reaching(self, parts: Iterable[int]) -> set[int]: ...
    def resolve(self, located: Located, keyword: str = "$ref") -> Located: ...
    def is_resource(self, schema: Mapping[str, Any]) -> bool: ...
    def enter(self, located: Located) -> Located: ...
