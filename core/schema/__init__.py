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
    from .compile import (
        CompiledSchema as CompiledSchema,
        compile_arguments as compile_arguments,
        compile_schema as compile_schema,
        every_problem as every_problem,
    )
    from .findings import Findings as Findings
    from .keywords.refusals import CHECK_LATER as CHECK_LATER
    from .lower.arguments_object import READINGS as READINGS
    from .lower.nested_arguments import Reading as Reading
    from .pydantic.discriminator import require_tags as require_tags
    from .pydantic.schema import PydanticJsonSchema as PydanticJsonSchema, json_schema_of as json_schema_of
    from .read.dated import names_a_day as names_a_day, of_today as of_today
    from .read.keywords import GRAMMAR as GRAMMAR, KEYWORDS as KEYWORDS, TYPES as TYPES, Role as Role, Shape as Shape
    from .read.options import SchemaOptions as SchemaOptions
    from .read.reasoning_order import reasoning_first as reasoning_first
    from .read.unread import (
        Unread as Unread,
        unread as unread,
        warn_of_misspelt as warn_of_misspelt,
    )
    from .scalars.formats import ENFORCED as ENFORCED
    from .scalars.value_syntax import (
        Arguments as Arguments,
        BareSyntax as BareSyntax,
        NestedTags as NestedTags,
        PythonSyntax as PythonSyntax,
        ValueSyntax as ValueSyntax,
        cannot_write_name as cannot_write_name,
        mark as mark,
        size_of as size_of,
    )

if not TYPE_CHECKING:
    __getattr__, __dir__, __all__ = lazy(
        __name__,
        {
            "compile": "CompiledSchema compile_arguments compile_schema every_problem",
            "findings": "Findings",
            "keywords.refusals": "CHECK_LATER",
            "lower.arguments_object": "READINGS",
            "lower.nested_arguments": "Reading",
            "pydantic.discriminator": "require_tags",
            "pydantic.schema": "PydanticJsonSchema json_schema_of",
            "read.dated": "names_a_day of_today",
            "read.keywords": "GRAMMAR KEYWORDS Role Shape TYPES",
            "read.options": "SchemaOptions",
            "read.reasoning_order": "reasoning_first",
            "read.unread": "Unread unread warn_of_misspelt",
            "scalars.formats": "ENFORCED",
            "scalars.value_syntax": (
                "Arguments BareSyntax NestedTags PythonSyntax ValueSyntax cannot_write_name mark size_of"
            ),
        },
    )
