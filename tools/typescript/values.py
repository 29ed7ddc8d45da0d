"""Values of TypeScript as far as types need them: literals, enums, constants that stand in the text."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any

from toolgrammar.core.errors import SchemaError

from . import model as ts
from .source import Source, child_of, has_word, parts

if TYPE_CHECKING:
    from tree_sitter import Node

    from .modules import Declaration

_LITERALS = ("string", "number", "true", "false", "unary_expression")


def literal(node: Node, source: Source) -> Any:
    """Return the value of a literal: a string, a number, true, false or null.

    Raises:
        UnsupportedSchemaError: it is no literal, or a number that JSON has not.
    """
    text = source.text(node)
    if node.type == "string":
        return source.string(node)
    if node.type in ("true", "false", "null"):
        return json.loads(text)
    sign = 1
    if node.type == "unary_expression" and text[0] in "+-":
        sign = -1 if text[0] == "-" else 1
        node = child_of(node, "argument")
        text = source.text(node)
    if node.type == "number":
        digits = text.replace("_", "")
        try:
            number = int(digits, 0) if digits[:2].lower() in ("0x", "0o", "0b") else float(digits)
        except ValueError:
            hint = "use a number with the tag @integer"
            raise source.refuse(node, "JSON has no values of the type 'bigint'", hint) from None
        if not math.isfinite(number):
            raise source.refuse(node, f"{text} is too large for JSON", "write a smaller number")
        return sign * (int(number) if number == int(number) and abs(number) < 2**53 else number)
    raise source.refuse(node, f"{source.shown(node)} is not a literal", "write the value itself")


def property_name(node: Node, source: Source) -> str:
    """Return the name of a property.

    Raises:
        UnsupportedSchemaError: it is in brackets, or a number that is not whole or not exact as a double.
    """
    if node.type == "computed_property_name":
        reason = f"the name {source.text(node)!r} is in brackets, as one that is computed"
        raise source.refuse(node, reason, "write the name itself")
    if node.type == "string":
        return source.string(node)
    if node.type != "number":
        return source.text(node)
    number = literal(node, source)
    if isinstance(number, float):
        raise source.refuse(node, "a name that is a number is whole and below 2**53 here", "write the name as a string")
    return str(number)


def constant(node: Node, scope: ts.Scope, *, fixed: bool = False) -> ts.Type:
    """Return the type of the expression that a constant is declared with.

    Args:
        node: the expression.
        scope: its scope.
        fixed: it is under ``as const``, so that objects and arrays keep their values.
    """
    source, at = scope.source, scope.at(node)
    if node.type in ("parenthesized_expression", "as_expression", "satisfies_expression"):
        # `(x)`, `x as const` and `x satisfies T` are of the type of `x`; that of `x as T` is not evaluated.
        inner, *cast = parts(node)
        if not cast or has_word(node, "const", "satisfies"):
            return constant(inner, scope, fixed=fixed or has_word(node, "const"))
    if node.type == "null":
        return ts.NULL
    if node.type in _LITERALS:
        return ts.Literal.of(literal(node, source))
    if node.type == "array" and fixed:
        return ts.Tuple(tuple(ts.Element(constant(one, scope, fixed=True), at=scope.at(one)) for one in parts(node)))
    if node.type == "object" and fixed and all(one.type == "pair" for one in parts(node)):
        return ts.Object(
            tuple(
                ts.Property(
                    property_name(child_of(one, "key"), source),
                    constant(child_of(one, "value"), scope, fixed=True),
                    doc=source.doc(one),
                    at=scope.at(one),
                )
                for one in parts(node)
            )
        )
    if node.type in ("array", "object") and not fixed:
        return ts.unknown(f"{source.shown(node)} may change when the program runs", "write `as const` after it", at)
    return ts.unknown(f"{source.shown(node)} is worked out when the program runs", "write its type", at)


def data(node: Node, scope: ts.Scope) -> Any:
    """Return the value of an expression made of literals; None for any other (and for null)."""
    try:
        return _value(constant(node, scope, fixed=True))
    except SchemaError:
        return None


def _value(type_: ts.Type) -> Any:
    """Return the value of a type that has one value alone; None for others."""
    if isinstance(type_, ts.Literal):
        return type_.value
    if isinstance(type_, ts.Tuple):
        items = [_value(one.type) for one in type_.elements]
        return None if None in items else items
    if isinstance(type_, ts.Object):
        members = {one.name: _value(one.type) for one in type_.properties}
        return None if None in members.values() else members
    return None


def enum_values(declaration: Declaration) -> dict[str, Any]:
    """Return the values of an enum by the names of its members.

    Raises:
        UnsupportedSchemaError: one is computed.
    """
    values: dict[str, Any] = {}
    source = declaration.space.source
    for node in declaration.nodes:
        following: int | None = 0
        for member in parts(child_of(node, "body")):
            source.doc(member)  # a member's comment has no place in a schema of values
            source.comment_after(member)
            name, value = member, following  # without a value, it is one more than the one before
            if member.type == "enum_assignment":
                name, value = child_of(member, "name"), literal(child_of(member, "value"), source)
            if value is None:
                raise source.wrong(member, "this member of the enum needs a value", "give it one")
            if isinstance(value, bool):
                raise source.wrong(member, "an enum's values are strings and numbers", "change the value")
            values[property_name(name, source)] = value
            following = value + 1 if isinstance(value, int) else None
    return values
