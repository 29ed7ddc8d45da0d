# Declarations of `byte_rows` for other compiled modules.

from ..compiled.arrays cimport grown
from ..compiled.int_map cimport IntMap
from ..language.terms cimport Terms
from . cimport encoding
from .blocks cimport row_item
