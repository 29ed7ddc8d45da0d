# What `rowtable` calls in C.

from ..arrays cimport grown
from ..hashing cimport BASIS, mix
from . cimport layout
from .blocks cimport row_item
