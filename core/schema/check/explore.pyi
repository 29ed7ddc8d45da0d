# Types of a compiled module (Cython in pure-Python mode).
from ..lower.lowering import Lowering

COMPILED: bool
MAX_GOALS: int
MAX_STEPS: int

def explore(lowering: Lowering) -> None: ...
