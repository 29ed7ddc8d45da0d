# Types of a compiled module (Cython in pure-Python mode).

from ...errors import LimitError, SchemaError
from ..normal.normalise import Normaliser
from ..read.located import Located
from ..read.options import SchemaOptions
from ..read.resolve import Document

COMPILED: bool
MAX_LEAST_LENGTH: int
MAX_LEAST_ITEMS: int
MAX_LEAST_PROPERTIES: int
MAX_LOOSE: int

class DynamicReferences(Exception): ...

def problems(
    document: Document, options: SchemaOptions, normaliser: Normaliser | None = None
) -> list[tuple[Located, SchemaError | LimitError]]: ...
