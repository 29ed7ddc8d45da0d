from .options import SchemaOptions
from .resolve import Document

COMPILED: bool

def is_surely_sound(document: Document, options: SchemaOptions) -> bool: ...
