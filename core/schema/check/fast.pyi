from ..read.options import SchemaOptions
from ..read.resolve import Document

COMPILED: bool

def is_surely_sound(document: Document, options: SchemaOptions) -> bool: ...
