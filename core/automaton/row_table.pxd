# What `rowtable` calls in C.

from ..compiled.arrays cimport grown
from ..compiled.hashing cimport BASIS, mix
from . cimport encoding
from .blocks cimport row_item
