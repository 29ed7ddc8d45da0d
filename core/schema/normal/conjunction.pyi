# Types of a compiled module (Cython in pure-Python mode).
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from ..read.located import Located, SignedSchema
from ..scalars.numbers import NumberRange

COMPILED: bool

class AnyOf:
    @property
    def parts(self) -> tuple[Formula, ...]: ...
    def __init__(self, parts: tuple[Formula, ...]) -> None: ...

class AllOf:
    @property
    def parts(self) -> tuple[Formula, ...]: ...
    def __init__(self, parts: tuple[Formula, ...]) -> None: ...

@dataclass(frozen=True)
class IfThenElse:
    condition: Formula
    then: Formula
    otherwise: Formula

class ObjectPart:
    @property
    def properties(self) -> Mapping[str, Formula]: ...
    @property
    def patterns(self) -> Mapping[str, Formula]: ...
    @property
    def additional(self) -> Formula | None: ...
    @property
    def names_properties(self) -> bool: ...
    def __init__(
        self,
        properties: Mapping[str, Formula] | None = None,
        patterns: Mapping[str, Formula] | None = None,
        additional: Formula | None = None,
        names_properties: bool = False,
    ) -> None: ...

@dataclass(frozen=True)
class UnevaluatedProperties:
    parts: tuple[ObjectPart, ...]
    formula: Formula

@dataclass(frozen=True)
class Exists:
    formula: Formula
    name: str | None = None
    pattern: str | None = None
    beside: tuple[ObjectPart, ...] | None = None
    failing: Formula | None = None

@dataclass(frozen=True)
class AnyExists:
    options: tuple[Exists, ...]
    absent: frozenset[str] = ...

class ArrayPart:
    @property
    def prefix(self) -> tuple[Formula, ...]: ...
    @property
    def items(self) -> Formula | None: ...
    def __init__(self, prefix: tuple[Formula, ...] = (), items: Formula | None = None) -> None: ...

@dataclass(frozen=True)
class Contains:
    formula: Formula
    first: int = 0
    end: int | None = None
    least: int = 1
    most: int | None = None

@dataclass(frozen=True)
class UnevaluatedItems:
    parts: tuple[ArrayPart, ...]
    found: tuple[Formula, ...]
    formula: Formula

class Strings:
    @property
    def least(self) -> int: ...
    @property
    def most(self) -> int | None: ...
    @property
    def patterns(self) -> tuple[str, ...]: ...
    @property
    def formats(self) -> tuple[str, ...]: ...
    @property
    def not_patterns(self) -> tuple[str, ...]: ...
    @property
    def not_formats(self) -> tuple[str, ...]: ...
    def __init__(
        self,
        least: int = 0,
        most: int | None = None,
        patterns: tuple[str, ...] = (),
        formats: tuple[str, ...] = (),
        not_patterns: tuple[str, ...] = (),
        not_formats: tuple[str, ...] = (),
    ) -> None: ...

class Findings:
    members: dict[str, Any]
    is_void: bool | None
    excluded: dict[tuple[str, int], bool]
    def __init__(self) -> None: ...

class Objects:
    @property
    def parts(self) -> tuple[ObjectPart, ...]: ...
    @property
    def unevaluated(self) -> tuple[UnevaluatedProperties, ...]: ...
    @property
    def exists(self) -> tuple[Exists, ...]: ...
    @property
    def names(self) -> tuple[Formula, ...]: ...
    @property
    def required(self) -> tuple[str, ...]: ...
    @property
    def absent(self) -> frozenset[str]: ...
    @property
    def least(self) -> int: ...
    @property
    def most(self) -> int | None: ...
    @property
    def any_exists(self) -> tuple[AnyExists, ...]: ...
    def __init__(
        self,
        parts: tuple[ObjectPart, ...] = (),
        unevaluated: tuple[UnevaluatedProperties, ...] = (),
        exists: tuple[Exists, ...] = (),
        names: tuple[Formula, ...] = (),
        required: tuple[str, ...] = (),
        absent: frozenset[str] = ...,
        least: int = 0,
        most: int | None = None,
        any_exists: tuple[AnyExists, ...] = (),
    ) -> None: ...
    @property
    def needed(self) -> frozenset[str]: ...
    @property
    def named(self) -> frozenset[str]: ...
    @property
    def only_named(self) -> frozenset[str] | None: ...
    @property
    def findings(self) -> Findings: ...
    def replace(self, **changes: Any) -> Objects: ...

class Arrays:
    @property
    def parts(self) -> tuple[ArrayPart, ...]: ...
    @property
    def unevaluated(self) -> tuple[UnevaluatedItems, ...]: ...
    @property
    def contains(self) -> tuple[Contains, ...]: ...
    @property
    def least(self) -> int: ...
    @property
    def most(self) -> int | None: ...
    @property
    def unique(self) -> bool: ...
    def __init__(
        self,
        parts: tuple[ArrayPart, ...] = (),
        unevaluated: tuple[UnevaluatedItems, ...] = (),
        contains: tuple[Contains, ...] = (),
        least: int = 0,
        most: int | None = None,
        unique: bool = False,
    ) -> None: ...
    def replace(self, **changes: Any) -> Arrays: ...

class Conjunction:
    @property
    def types(self) -> frozenset[str]: ...
    @property
    def values(self) -> tuple[Any, ...] | None: ...
    @property
    def not_values(self) -> tuple[Any, ...]: ...
    @property
    def numbers(self) -> NumberRange: ...
    @property
    def strings(self) -> Strings: ...
    @property
    def arrays(self) -> Arrays: ...
    @property
    def objects(self) -> Objects: ...
    def __init__(
        self,
        types: frozenset[str] = ...,
        values: tuple[Any, ...] | None = None,
        not_values: tuple[Any, ...] = (),
        numbers: NumberRange = ...,
        strings: Strings = ...,
        arrays: Arrays = ...,
        objects: Objects = ...,
    ) -> None: ...
    def of_types(self, types: frozenset[str]) -> Conjunction: ...
    def replace(self, **changes: Any) -> Conjunction: ...

@dataclass(frozen=True)
class OnlyKeywordFails:
    located: Located
    keyword: str

Formula = SignedSchema | AnyOf | AllOf | IfThenElse | OnlyKeywordFails | Conjunction
Goal = tuple[Formula, ...]

TRUE: AllOf
FALSE: AnyOf
EVERY: Conjunction

def negated(formula: Formula) -> Formula: ...
def is_deniable(formula: Formula) -> bool: ...
def fact(kind: str | Iterable[str], **what: Any) -> Conjunction: ...
def meet(left: Conjunction, right: Conjunction) -> Conjunction | None: ...
def type_of(value: Any) -> str: ...
def in_both(left: tuple[Any, ...], right: tuple[Any, ...]) -> tuple[Any, ...]: ...
def same_value(left: Any, right: Any) -> bool: ...
def flat(goal: Iterable[Formula]) -> Goal: ...
