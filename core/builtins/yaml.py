"""YAML that versions 1.1 and 1.2 read alike."""

from __future__ import annotations

from typing import Any

from ..schema.compile import compile_schema
from ..schema.read.options import SchemaOptions
from ..schema.scalars.value_syntax import Arguments, YamlSyntax
from ..text_grammars.expressions import Expression, Literal, Part, Reference, Repeat, choice, pattern, sequence
from ..text_grammars.rules import ReadGrammar
from .typed import TypedValues, read_grammar, schema_of

#: Maximum nesting of blocks without a schema; deeper values are in flow style.
MAX_DEPTH = 8

#: Names without quotes: none that YAML 1.1 takes for a truth value or null.
_NAME = r"(?!(?:[yY]|[nN]|(?i:yes|no|on|off|true|false|null))$)[A-Za-z_][A-Za-z0-9_\-]{0,99}"
#: Texts without quotes: neither a colon nor a hash, and no word that is not a string.
_PLAIN = r"(?!(?:[yY]|[nN]|(?i:yes|no|on|off|true|false|null))$)[A-Za-z](?:[A-Za-z0-9_.,()\/ \-]*[A-Za-z0-9_.,()\/\-])?"


def yaml_grammar(schema: Any) -> ReadGrammar:
    """Return YAML documents; with a schema, those of its values."""
    if schema is None:
        return read_grammar("yaml", {}, _blocks())
    schema = schema_of(schema)
    values = TypedValues.of(schema)
    arguments: dict[str, Any] = {"schema": schema}
    if not (isinstance(schema, dict) and schema.get("type") == "object" and schema.get("required")):
        return values.read("yaml", arguments, {"root": _ended(values.value("", YamlSyntax(), scalar=False))})
    mapping = Arguments(names=_NAME, after_name=((": ", False),), separator=(("\n", False),))
    options = SchemaOptions(syntax=YamlSyntax(), arguments=mapping, additional_properties=False, plain_integers=True)
    compiled = compile_schema(schema, options)
    values.problems += compiled.problems
    values.narrowed += compiled.narrowed
    return values.read("yaml", arguments, {"root": _ended(Part(compiled))})


def _ended(expression: Expression) -> Expression:
    return sequence(expression, Repeat(Literal("\n"), 0, 1))


def _blocks() -> dict[str, Expression]:
    """Return the rules of block mappings and sequences, each indentation with its own."""
    name = choice(pattern(_NAME), pattern(r'"[ !#-\[\]-~]{1,100}"'))
    flow = choice(Part(compile_schema(True, SchemaOptions(syntax=YamlSyntax()))), pattern(_PLAIN))
    rules: dict[str, Expression] = {"root": _ended(choice(Reference("map 0"), Reference("list 0"), Reference("flow")))}
    rules["flow"] = flow
    for depth in range(MAX_DEPTH):
        indent = Literal("  " * depth)
        tails: list[Expression] = [sequence(Literal(" "), Reference("flow"))]
        if depth + 1 < MAX_DEPTH:
            deeper = choice(Reference(f"map {depth + 1}"), Reference(f"list {depth + 1}"))
            tails.append(sequence(Literal("\n"), deeper))
        entry = sequence(indent, name, Literal(":"), choice(*tails))
        item = sequence(indent, Literal("-"), choice(*tails))
        for kind, line in (("map", entry), ("list", item)):
            rules[f"{kind} {depth}"] = sequence(line, Repeat(sequence(Literal("\n"), line), 0, None))
    return rules
