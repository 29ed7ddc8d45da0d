"""Parts of reading grammars: marks, and schemas with marks (see ``core/language/reading_marks.py``)."""

from __future__ import annotations

from typing import Any

from ..grammar import Grammar
from ..language.reading_marks import ReadingMark
from ..schema import SchemaOptions, compile_schema


def marked_place(what: ReadingMark) -> Grammar:
    """Return the grammar of a mark."""
    return Grammar(what.node, ("mark", what), sure=lambda: True)


def marked_json(schema: Any, **options: Any) -> Grammar:
    """Return the JSON texts of a schema with marks; arguments and errors as of `SchemaOptions`, `compile_schema`."""
    compiled = compile_schema(schema, SchemaOptions(plain_integers=True, is_marked=True, **options))
    return Grammar(compiled.build, ("schema", compiled))
