"""Typed values of built-in grammars: the columns of a schema, and scalars in other syntaxes than JSON."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NoReturn

from ..basics.argument_checks import checked_names
from ..errors import GrammarError, Place, ToolGrammarError, UnsupportedSchemaError
from ..json import escape
from ..schema.compile import compile_schema
from ..schema.read.options import SchemaOptions
from ..schema.scalars.value_syntax import Arguments, ValueSyntax
from ..text_grammars.expressions import Expression, Part
from ..text_grammars.rules import ReadGrammar, Rules

#: JSON types whose values have no parts.
SCALARS = frozenset({"string", "number", "boolean", "null"})

#: A syntax of arguments that can write every name.
_ANY = Arguments(names=r"[\s\S]*")

#: The name of a member that no schema declares.
_MEMBER = "\0"


def schema_of(schema: Any) -> Any:
    """Return a JSON Schema; of a Pydantic class its own."""
    return schema.model_json_schema() if hasattr(schema, "model_json_schema") else schema


def refuse(message: str, *, pointer: str = "", hint: str | None = None) -> NoReturn:
    """Raise an error about a place in the schema of a built-in grammar."""
    raise GrammarError(message, hint=hint, place=Place(pointer=pointer))


def columns_of(schema: Any) -> dict[str, str]:
    """Return the columns of a table, each with the JSON pointer of its schema.

    Raises:
        GrammarError: the schema names no properties.
    """
    properties = schema.get("properties") if isinstance(schema, Mapping) else None
    if not isinstance(properties, Mapping) or not properties:
        refuse(
            "the columns of a table are the properties of a schema, and this schema has none",
            hint='pass {"properties": {"name": {"type": "string"}}}, a Pydantic class, or a list of names',
        )
    return {str(name): f"/properties/{escape(str(name))}" for name in properties}


def table_schema(columns: Any) -> Any:
    """Return the schema of a table's rows: a list of names means columns of strings."""
    if isinstance(columns, str) or not isinstance(columns, Iterable) or isinstance(columns, (Mapping, type)):
        return schema_of(columns)
    return {"type": "object", "properties": {name: {"type": "string"} for name in checked_names(columns, "columns")}}


@dataclass
class TypedValues:
    """The values of a schema's parts, and what had to be left out of them.

    Attributes:
        schema: the whole schema, to which pointers and references belong.
    """

    schema: Any
    problems: list[ToolGrammarError] = field(default_factory=list)
    narrowed: list[UnsupportedSchemaError] = field(default_factory=list)

    @classmethod
    def of(cls, schema: Any) -> TypedValues:
        """Return the values of a schema, which may be a bool."""
        return cls(schema if isinstance(schema, dict) else {"allOf": [schema]})

    def value(self, pointer: str, syntax: ValueSyntax | None, *, scalar: bool = True) -> Expression:
        """Return the texts of the values at a place of the schema.

        Args:
            pointer: JSON pointer of a subschema.
            syntax: how values are written; None: as JSON.
            scalar: refuse arrays and objects.

        Raises:
            GrammarError: arrays and objects are valid there.
            SchemaError: the schema is refused.
        """
        part = {key: value for key, value in self.schema.items() if key in ("$defs", "definitions", "$schema", "$id")}
        part |= {"properties": self.schema.get("properties", {}), "$ref": f"#{pointer}"} if pointer else self.schema
        if scalar:  # the JSON types at the place are those of a member that refers to it
            of_member = {**part, "properties": {**part.get("properties", {}), _MEMBER: {"$ref": f"#{pointer}"}}}
            of_member.pop("$ref", None)
            options = SchemaOptions(on_unsupported="validate", arguments=_ANY)
            kinds = compile_schema(of_member, options).member_kinds(_MEMBER) if pointer else SCALARS
            if not kinds <= SCALARS:
                compound = ", ".join(sorted(kinds - SCALARS))
                refuse(
                    f"a value may have the type {compound}, which a cell cannot contain",
                    pointer=pointer,
                    hint="give the schema a type: string, number, integer, boolean or null",
                )
        compiled = compile_schema(part, SchemaOptions(syntax=syntax, additional_properties=False, plain_integers=True))
        self.problems += compiled.problems
        self.narrowed += compiled.narrowed
        return Part(compiled)

    def read(self, maker: str, arguments: Mapping[str, Any], rules: Mapping[str, Expression]) -> ReadGrammar:
        """Return the grammar of rules, of which ``root`` is the first.

        Args:
            maker: the name of the maker.
            arguments: its arguments, as values of JSON.
            rules: the rules.
        """
        return read_grammar(maker, arguments, rules, self.problems, self.narrowed)


def read_grammar(
    maker: str,
    arguments: Mapping[str, Any],
    rules: Mapping[str, Expression],
    problems: Iterable[ToolGrammarError] = (),
    narrowed: Iterable[UnsupportedSchemaError] = (),
) -> ReadGrammar:
    """Return the grammar of rules, whose identity is the maker and its arguments.

    Raises:
        GrammarError: an argument is no value of JSON.
    """
    try:
        key = json.dumps(arguments, ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise GrammarError(f"an argument of {maker}() is not valid JSON: {error}", hint="pass plain data") from None
    found = Rules((maker, key), rules, "root")
    found.check()
    return ReadGrammar(found, tuple(problems), tuple(narrowed))
