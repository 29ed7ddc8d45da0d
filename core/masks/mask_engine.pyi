# Types of a compiled module (Cython in pure-Python mode).
from threading import RLock
from typing import Final

from ..automaton.lazy_dfa import LazyAutomaton
from ..vocabulary.vocabulary import Vocabulary
from .masks import Masks

BRIEF: Final[int]
MASK_MEMORY: Final[int]

class MaskEngine:
    def __init__(self, program: LazyAutomaton, vocabulary: Vocabulary, mask_memory: int) -> None: ...
    program: Final[LazyAutomaton]
    masks: Final[Masks]
    lock: Final[RLock]
    def special_number(self, token_id: int) -> int | None: ...
    def byte_count(self) -> int: ...

class SharedEngine:
    engine: MaskEngine | None
    def __init__(self, vocabulary: Vocabulary) -> None: ...
    def of(self, store: LazyAutomaton, vocabulary: Vocabulary, mask_memory: int) -> MaskEngine: ...
    def release(self) -> None: ...

def engine_of(store: LazyAutomaton, vocabulary: Vocabulary, mask_memory: int) -> MaskEngine: ...
