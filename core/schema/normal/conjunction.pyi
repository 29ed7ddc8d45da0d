# Types of a compiled module (Cython in pure-Python mode).
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from ...text_grammars.strings import StringGrammar
from ..read.located import Located, SignedSchema
from ..scalars.numbers import NumberRange

COMPILED: bool

class AnyOf:
    parts: Final[tuple[Formula, ...]]
    def __init__(self, parts: tuple[Formula, ...]) -> None: ...

class AllOf:
    parts: Final[tuple[Formula, ...]]
    def __init__(self, parts: tuple[Formula, ...]) -> None: ...

@dataclass(frozen=True)
class IfThenElse:
    condition: Formula
    then: Formula
    otherwise: Formula

class ObjectPart:
    properties: Final[Mapping[str, Formula]]
    patterns: Final[Mapping[str, Formula]]
    additional: Final[Formula | None]
    names_properties: Final[bool]
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

class Exists:
    formula: Final[Formula]
    name: Final[str | None]
    pattern: Final[str | None]
    beside: Final[tuple[ObjectPart, ...] | None]
    failing: Final[Formula | None]
    def __init__(
        self,
        formula: Formula,
        name: str | None = None,
        pattern: str | None = None,
        beside: tuple[ObjectPart, ...] | None = None,
        failing: Formula | None = None,
    ) -> None: ...

class AnyExists:
    options: Final[tuple[Exists, ...]]
    absent: Final[frozenset[str]]
    def __init__(self, options: tuple[Exists, ...], absent: frozenset[str] = ...) -> None: ...

class ArrayPart:
    prefix: Final[tuple[Formula, ...]]
    items: Final[Formula | None]
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
    least: Final[int]
    most: Final[int | None]
    patterns: Final[tuple[str | StringGrammar, ...]]
    formats: Final[tuple[str, ...]]
    not_patterns: Final[tuple[str | StringGrammar, ...]]
    not_formats: Final[tuple[str, ...]]
    def __init__(
        self,
        least: int = 0,
        most: int | None = None,
        patterns: tuple[str | StringGrammar, ...] = (),
        formats: tuple[str, ...] = (),
        not_patterns: tuple[str | StringGrammar, ...] = (),
        not_formats: tuple[str, ...] = (),
    ) -> None: ...
    def with_patterns(self, patterns: tuple[str | StringGrammar, ...]) -> Strings: ...

class Findings:
    members: dict[str, Any]
    is_void: bool | None
    excluded: dict[tuple[str, int], bool]
    def __init__(self) -> None: ...

class Objects:
    parts: Final[tuple[ObjectPart, ...]]
    unevaluated: Final[tuple[UnevaluatedProperties, ...]]
    exists: Final[tuple[Exists, ...]]
    names: Final[tuple[Formula, ...]]
    required: Final[tuple[str, ...]]
    absent: Final[frozenset[str]]
    least: Final[int]
    most: Final[int | None]
    any_exists: Final[tuple[AnyExists, ...]]
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
    only_named: Final[frozenset[str] | None]
    findings: Final[Findings]
    def replace(self, **changes: Any) -> Objects: ...

class Arrays:
    parts: Final[tuple[ArrayPart, ...]]
    unevaluated: Final[tuple[UnevaluatedItems, ...]]
    contains: Final[tuple[Contains, ...]]
    least: Final[int]
    most: Final[int | None]
    unique: Final[bool]
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
    types: Final[frozenset[str]]
    values: Final[tuple[Any, ...] | None]
    not_values: Final[tuple[Any, ...]]
    numbers: Final[NumberRange]
    strings: Final[Strings]
    arrays: Final[Arrays]
    objects: Final[Objects]
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
