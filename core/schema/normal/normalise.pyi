# Types of a compiled module (Cython in pure-Python mode).
from collections.abc import Collection, Sequence

from ..read.located import Located, SignedSchema
from ..read.resolve import Document
from .assertions import Assertions
from .conjunction import Conjunction, Formula, Goal
from .prune import Contradictions

COMPILED: bool
MAX_BRANCHES: int
MAX_COMPOUNDS: int
MAX_STEPS: int
MAX_TOTAL: int

class Normaliser(Assertions):
    steps: int
    one_of_as_union: int
    compared: int
    pairs: int
    contradictions: Contradictions
    expanded: dict[Goal, list[Conjunction]]
    excluded: dict[tuple[Goal, Goal, int], bool]
    def __init__(
        self,
        document: Document,
        unenforced: Collection[tuple[object, str]] = (),
        formats: bool = True,
        *,
        open_objects: bool = True,
    ) -> None: ...
    def branches(self, goal: Goal) -> list[Conjunction]: ...
    def overlaps(self, located: Located) -> list[frozenset[int]]: ...
    def denied(self, options: Sequence[SignedSchema]) -> list[Formula]: ...
