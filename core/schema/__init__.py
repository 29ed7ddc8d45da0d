"""JSON Schema as a language: exactly, or refused by name.

`compile_schema` checks a schema (`every_problem` lists all that is wrong with it) and gives a `CompiledSchema`, which
lowers itself lazily into a node store. Two passes: `Normaliser` brings a subschema to a union of typed conjunctions,
and `Lowering` turns those into grammar nodes when a text reaches them.

Use `toolgrammar.core.Grammar.from_json_schema` unless you build a grammar layer of your own. What cannot be enforced
exactly raises `UnsupportedSchemaError` with its JSON pointer; nothing is ignored silently.
"""

from .compile import CompiledSchema, compile_schema, every_problem
from .read.options import SchemaOptions

__all__ = ["CompiledSchema", "SchemaOptions", "compile_schema", "every_problem"]
