# Declarations of `byte_rows` for other compiled modules.

from ..compiled.arrays cimport grown
from ..compiled.hashing cimport BASIS, mix
from . cimport encoding
from .blocks cimport row_item
