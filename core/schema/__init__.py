"""JSON Schema as a language: exactly, or refused by name.

`compile_schema` checks a schema (`every_problem` lists all that is wrong with it) and gives a `CompiledSchema`, which
lowers itself lazily into a node store. Two passes: `Normaliser` brings a subschema to a union of typed conjunctions,
and `Lowering` turns those into grammar nodes when a text reaches them.

Use `toolgrammar.core.Grammar.from_json_schema` unless you build a grammar layer of your own. What cannot be enforced
exactly raises `UnsupportedSchemaError` with its JSON pointer; nothing is ignored silently.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..faces import lazy

if TYPE_CHECKING:
    from .compile import CompiledSchema, compile_schema, every_problem
    from .findings import Findings
    from .keywords.refusals import CHECK_LATER
    from .lower.arguments_object import READINGS
    from .lower.nested_arguments import Reading
    from .normal.conjunction import type_of
    from .pydantic.discriminator import require_tags
    from .pydantic.schema import PydanticJsonSchema, json_schema_of
    from .read.dated import names_a_day, of_today, today
    from .read.keywords import GRAMMAR, KEYWORDS, TYPES, Role, Shape
    from .read.options import SchemaOptions
    from .read.reasoning_order import reasoning_first
    from .read.unread import OTHER_ANNOTATIONS, Unread, unread, warn_of_misspelt
    from .scalars.formats import ENFORCED
    from .scalars.value_syntax import (
        Arguments,
        BareSyntax,
        NestedTags,
        PythonSyntax,
        ValueSyntax,
        cannot_write_name,
        mark,
        python_string,
        size_of,
    )

__all__ = [
    "CHECK_LATER",
    "ENFORCED",
    "GRAMMAR",
    "KEYWORDS",
    "OTHER_ANNOTATIONS",
    "READINGS",
    "TYPES",
    "Arguments",
    "BareSyntax",
    "CompiledSchema",
    "Findings",
    "NestedTags",
    "PydanticJsonSchema",
    "PythonSyntax",
    "Reading",
    "Role",
    "SchemaOptions",
    "Shape",
    "Unread",
    "ValueSyntax",
    "cannot_write_name",
    "compile_schema",
    "every_problem",
    "json_schema_of",
    "mark",
    "names_a_day",
    "of_today",
    "python_string",
    "reasoning_first",
    "require_tags",
    "size_of",
    "today",
    "type_of",
    "unread",
    "warn_of_misspelt",
]

if not TYPE_CHECKING:
    __getattr__, __dir__ = lazy(
        __name__,
        {
            "compile": "CompiledSchema compile_schema every_problem",
            "findings": "Findings",
            "keywords.refusals": "CHECK_LATER",
            "lower.arguments_object": "READINGS",
            "lower.nested_arguments": "Reading",
            "normal.conjunction": "type_of",
            "pydantic.discriminator": "require_tags",
            "pydantic.schema": "PydanticJsonSchema json_schema_of",
            "read.dated": "names_a_day of_today today",
            "read.keywords": "GRAMMAR KEYWORDS Role Shape TYPES",
            "read.options": "SchemaOptions",
            "read.reasoning_order": "reasoning_first",
            "read.unread": "OTHER_ANNOTATIONS Unread unread warn_of_misspelt",
            "scalars.formats": "ENFORCED",
            "scalars.value_syntax": (
                "Arguments BareSyntax NestedTags PythonSyntax ValueSyntax cannot_write_name mark python_string size_of"
            ),
        },
    )
