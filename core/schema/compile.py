"""Checking and compiling a schema document."""

from __future__ import annotations

import json
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from ..errors import InvalidSchemaError, LimitError, Place, SchemaError
from ..language.nodes import Nodes
from .lower import Lowering
from .options import SchemaOptions
from .resolve import Document
from .scan import problems


@dataclass(frozen=True)
class CompiledSchema:
    """A schema that can be enforced.

    Attributes:
        document: the schema.
        options: how it is read.
    """

    document: Document
    options: SchemaOptions

    def build(self, nodes: Nodes) -> int:
        """The root node in a store; everything below is lowered when it is met."""
        lowering = nodes.builders.get(self.key)
        if lowering is None:
            lowering = nodes.builders[self.key] = Lowering(self.document, self.options, nodes)
        root: int = lowering.root()
        return root

    @cached_property
    def key(self) -> Hashable:
        """Equal for equal schemas and options (schemas too deep or cyclic for JSON are only equal to themselves)."""
        try:
            return json.dumps(self.document.schema, ensure_ascii=False), self.options
        except (RecursionError, ValueError, TypeError):
            return _Same(self.document.schema), self.options


class _Same:
    """Equality by identity, for a value that is kept alive."""

    def __init__(self, value: object) -> None:
        self._value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and other._value is self._value

    def __hash__(self) -> int:
        return id(self._value)


def check(schema: Any, options: SchemaOptions | None = None) -> list[SchemaError | LimitError]:
    """Every place of a schema that is malformed or cannot be enforced exactly; empty when all is well."""
    return list(problems(_document(schema)))


def compile_schema(schema: Any, options: SchemaOptions | None = None) -> CompiledSchema:
    """Check a schema and make it ready to be lowered.

    Raises:
        InvalidSchemaError: it is malformed.
        UnsupportedSchemaError: it cannot be enforced exactly.
    """
    document = _document(schema)
    for problem in problems(document):
        raise problem
    return CompiledSchema(document, options or SchemaOptions())


def _document(schema: Any) -> Document:
    if not isinstance(schema, (Mapping, bool)):
        raise InvalidSchemaError(
            f"a schema must be an object or a boolean, not {type(schema).__name__}",
            hint="give a dict; a Pydantic model has model_json_schema()",
            place=Place(pointer=""),
        )
    return Document(schema)
