"""Python literals: what ``ast.literal_eval`` reads."""

from __future__ import annotations

from functools import cache
from typing import Any

from ..schema.scalars.value_syntax import PythonSyntax
from ..text_grammars.lark import read_lark
from ..text_grammars.rules import ReadGrammar
from .typed import TypedValues, read_grammar, schema_of

#: Literals without a schema. Keys of dictionaries and items of sets can be hashed: no lists, dictionaries or sets.
#: Calls of ``set()`` and sums of complex numbers are left out, and so are ``\N{...}`` and raw strings.
_GRAMMAR = r"""
start: value
value: SCALAR | list | dict | set | tuple
list: "[" _S [value (_C value)* [_C]] _S "]"
dict: "{" _S [pair (_C pair)* [_C]] _S "}"
pair: hashable _S ":" _S value
set: "{" _S hashable (_C hashable)* [_C] _S "}"
tuple: "(" _S [value (_C [value (_C value)* [_C]])] _S ")"
hashable: SCALAR | "(" _S [hashable (_C [hashable (_C hashable)* [_C]])] _S ")"
_S: / ?/
_C: / ?, ?/
SCALAR: "None" | "True" | "False" | NUMBER | TEXT | BYTES
NUMBER: /[+-]?/ (FLOAT | DECIMAL | /0[xX](_?[0-9a-fA-F]){1,30}/ | /0[oO](_?[0-7]){1,30}/ | /0[bB](_?[01]){1,99}/)
DECIMAL: /(0|[1-9](_?[0-9]){0,99})[jJ]?/
FLOAT: /(([0-9](_?[0-9]){0,30})?\.[0-9](_?[0-9]){0,30}|[0-9](_?[0-9]){0,30}\.)([eE][+-]?[0-9]{1,3})?[jJ]?/
TEXT: DOUBLE | SINGLE
DOUBLE: "\"" (/[^"\\\r\n\x00]/ | ESCAPE)* "\""
SINGLE: "'" (/[^'\\\r\n\x00]/ | ESCAPE)* "'"
ESCAPE: /\\([\\'"abfnrtv\n]|[0-3]?[0-7]{1,2}|x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U000[0-9a-fA-F]{5}|U0010[0-9a-fA-F]{4})/
BYTES: /[bB]/ ("\"" (/[ !#-\[\]-~]/ | BYTE_ESCAPE)* "\"" | "'" (/[ -&(-\[\]-~]/ | BYTE_ESCAPE)* "'")
BYTE_ESCAPE: /\\([\\'"abfnrtv]|[0-3]?[0-7]{1,2}|x[0-9a-fA-F]{2})/
"""


@cache
def _any_literal() -> ReadGrammar:
    return read_lark(_GRAMMAR)


def python_grammar(schema: Any) -> ReadGrammar:
    """Return Python literals; with a schema, those of its values."""
    if schema is None:
        rules = _any_literal().rules
        return read_grammar("python_literal", {}, {**rules.rules, "root": rules.rules["start"]})
    schema = schema_of(schema)
    values = TypedValues.of(schema)
    whole = values.value("", PythonSyntax(), scalar=False)
    return values.read("python_literal", {"schema": schema}, {"root": whole})
