# Types of a compiled module (Cython in pure-Python mode).
from .conjunction import AnyExists, Conjunction
from .prune import Contradictions

COMPILED: bool
MAX_CLAUSES: int

def clauses(ways: tuple[Conjunction, ...], open_objects: bool) -> list[AnyExists] | None: ...
def simplified(known: Conjunction, contradictions: Contradictions) -> Conjunction | None: ...
