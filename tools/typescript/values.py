"""Values of TypeScript as far as types need them: literals, enums, constants of ``typeof``."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from toolgrammar.core.errors import SchemaError

from . import model as ts
from .context import Evaluator
from .modules import Declaration, Missing, names_in
from .source import Source, child_of, has_word, only_child, parts, unescape

if TYPE_CHECKING:
    from tree_sitter import Node


_FUNCTIONS = ("arrow_function", "function_expression", "function", "generator_function")


class ConstantValues:
    """Constant values of one program.

    Args:
        reader: what evaluates the types among them.
    """

    def __init__(self, reader: Evaluator) -> None:
        self.reader = reader
        self._enums: dict[Declaration, dict[str, Any]] = {}
        self._open: set[Declaration] = set()

    # -- literals ----------------------------------------------------------------------------------------------

    def literal(self, node: Node, source: Source) -> Any:
        """Return the value of a literal: a string, a number, true, false or null."""
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
                raise source.refuse(
                    node, "JSON has no values of the type 'bigint'", "use a number with the tag @integer"
                ) from None
            if not math.isfinite(number):
                raise source.refuse(node, f"{text} is too large for JSON", "write a smaller number")
            return sign * (int(number) if number == int(number) and abs(number) < 2**53 else number)
        raise source.refuse(node, f"{source.shown(node)} is not a literal", "write the value itself")

    def data(self, node: Node, source: Source) -> Any:
        """Return the value of an expression made of literals; None for any other (and for null)."""
        if node.type == "array":
            items = [self.data(child, source) for child in parts(node)]
            return items if None not in items else None
        if node.type == "object":
            pairs = parts(node)
            if any(pair.type != "pair" or child_of(pair, "key").type == "computed_property_name" for pair in pairs):
                return None
            data = {
                self._plain_name(child_of(pair, "key"), source): self.data(child_of(pair, "value"), source)
                for pair in pairs
            }
            return data if None not in data.values() else None
        simple = ("string", "number", "true", "false", "unary_expression")
        try:
            return self.literal(node, source) if node.type in simple else None
        except SchemaError:
            return None

    def property_name(self, node: Node, scope: ts.Scope) -> tuple[str, ts.Literal | None]:
        """Return the name of a property, and its `Property.key`."""
        if node.type == "computed_property_name":
            inner = only_child(node)
            names = ("string", "number", "identifier", "member_expression", "subscript_expression", "template_string")
            value: ts.Type = ts.UNDEFINED
            if inner.type in names and not scope.source.text(inner).startswith("Symbol."):
                value = self.reader.bare(self.constant(inner, scope))
            if not isinstance(value, ts.Literal) or value.kind == "boolean":
                raise scope.source.refuse(
                    node,
                    f"the name {scope.source.text(node)!r} is not known before the program runs",
                    "write the name itself",
                )
            return ts.text_of(value) or "", ts.key_of(value)
        number = ts.Literal.of(self.literal(node, scope.source)) if node.type == "number" else None
        return self._plain_name(node, scope.source), number

    def _plain_name(self, node: Node, source: Source) -> str:
        if node.type == "string":
            return source.string(node)
        if node.type == "number":
            return ts.number_text(self.literal(node, source))
        return source.text(node)

    # -- enums -------------------------------------------------------------------------------------------------

    def enum(self, declaration: Declaration) -> ts.Type:
        """Return the values of an enum."""
        return ts.union(ts.Literal.of(value, declaration) for value in self.enum_values(declaration).values())

    def enum_values(self, declaration: Declaration) -> dict[str, Any]:
        """Return the values of an enum by the names of its members."""
        if declaration in self._enums:
            return self._enums[declaration]
        values: dict[str, Any] = {}
        scope = ts.Scope(declaration.space)
        source = scope.source
        for node in declaration.nodes:
            following: int | None = 0
            for member in parts(child_of(node, "body")):
                self.reader.doc(member, source)  # a member's comment has no place in a schema of values
                source.comment_after(member)
                name = member if member.type != "enum_assignment" else child_of(member, "name")
                if member.type == "enum_assignment":
                    expression = child_of(member, "value")
                    value = self._constant_value(expression, values, declaration, scope)
                    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
                        raise source.wrong(member, "an enum's values are strings and numbers", "change the value")
                elif following is None:
                    raise source.wrong(member, "this member of the enum needs a value", "give it one")
                else:
                    value = following
                values[self._plain_name(name, source)] = value
                following = value + 1 if isinstance(value, int) else None
        self._enums[declaration] = values
        return values

    def _constant_value(self, node: Node, values: dict[str, Any], declaration: Declaration, scope: ts.Scope) -> Any:
        """Return the value of a constant expression in an enum."""
        source = scope.source

        def inner(child: Node) -> Any:
            return self._constant_value(child, values, declaration, scope)

        with self.reader.nested(scope.at(node)):
            if node.type == "parenthesized_expression":
                return inner(only_child(node))
            if node.type in ("identifier", "member_expression", "subscript_expression"):
                path = names_in(source, node)
                if node.type == "identifier" and path[0] in values:
                    return values[path[0]]
                if len(path) == 2 and path[0] == declaration.name and path[1] in values:
                    return values[path[1]]
                type_ = self.reader.bare(self.constant(node, scope))
                if isinstance(type_, ts.Literal):
                    return type_.value
            elif node.type == "template_string":
                return self._template(node, source, lambda child: _text(inner(child)))
            elif node.type == "unary_expression":
                sign = source.text(node)[0]
                value = inner(child_of(node, "argument"))
                if isinstance(value, (int, float)) and sign in "+-":
                    return -value if sign == "-" else value
            elif node.type != "binary_expression":
                return self.literal(node, source)
        raise source.refuse(node, f"{source.shown(node)} is worked out when the program runs", "write the value itself")

    def _template(self, node: Node, source: Source, inner: Callable[[Node], str]) -> str:
        made, start = "", node.start_byte + 1
        for child in node.named_children:
            if child.type == "template_substitution":
                made += unescape(source.bytes[start : child.start_byte].decode("utf-8", "surrogatepass"))
                made += inner(only_child(child))
                start = child.end_byte
        return made + unescape(source.bytes[start : node.end_byte - 1].decode("utf-8", "surrogatepass"))

    # -- typeof ------------------------------------------------------------------------------------------------

    def typeof(self, node: Node, scope: ts.Scope) -> ts.Type:
        """Return the type of a value that is named in ``typeof name``."""
        if node.type in ("identifier", "member_expression", "subscript_expression"):
            return self.constant(node, scope)
        reason = "the type of this is not evaluated"
        return ts.unknown(reason, "write the type itself", scope.at(node))

    def constant(self, node: Node, scope: ts.Scope) -> ts.Type:
        """Return the type of a name of a value, or of a member of it."""
        at = scope.at(node)
        source = scope.source
        if node.type == "identifier":
            if source.text(node) == "undefined":
                return ts.UNDEFINED
            return self._declared(names_in(source, node), at, scope)
        if node.type == "member_expression":
            path = names_in(source, node)
            target = self.reader.program.find(path, scope.space, values=True)
            if isinstance(target, (Declaration, Missing)):
                return self._declared(path, at, scope)
            owner = self.constant(parts(node)[0], scope)
            key: ts.Type = ts.Literal.of(source.text(parts(node)[-1]))
        elif node.type == "subscript_expression":
            owner = self.constant(parts(node)[0], scope)
            key = self.expression(parts(node)[-1], scope, constant=True)
        else:
            return self.expression(node, scope, constant=True)
        return self.reader.objects.lookup(owner, key, at, at)

    def _declared(self, path: tuple[str, ...], at: ts.At, scope: ts.Scope) -> ts.Type:
        name = ".".join(path)
        declaration = self.reader.program.find(path, scope.space, values=True)
        if isinstance(declaration, Missing):
            return self.reader.missing(declaration, name, at)
        if not isinstance(declaration, Declaration):
            raise at.source.wrong(
                at.node,
                f"there are no values to take the type of: {name!r} is not declared in this text",
                "write the type itself",
            )
        if declaration in self._open:
            raise at.source.wrong(at.node, f"the value {name!r} is defined by itself", "write the type itself")
        self._open.add(declaration)
        self.reader.read.add(declaration)
        try:
            return self._of(declaration)
        finally:
            self._open.discard(declaration)

    def _of(self, declaration: Declaration) -> ts.Type:
        scope, node = ts.Scope(declaration.space), declaration.node
        at = scope.at(node)
        if declaration.kind == "function":
            return ts.Function(declaration.nodes[-1], scope, overloaded=len(declaration.nodes) > 1)
        if declaration.kind == "enum":
            values = self.enum_values(declaration)
            return ts.Object(
                tuple(ts.Property(name, ts.Literal.of(value, declaration), at=at) for name, value in values.items())
            )
        if declaration.kind == "class":
            return ts.unknown("the type of a class itself is not a JSON value", "use the name of the class", at)
        annotation, value = node.child_by_field_name("type"), node.child_by_field_name("value")
        if annotation is not None:
            return self.reader.type(only_child(annotation), scope)
        if value is None:
            return ts.ANY
        fixed = node.parent is not None and has_word(node.parent, "const")
        return self.expression(value, scope, constant=False, literal=fixed)

    def widened(self, node: Node, scope: ts.Scope) -> ts.Type:
        """Return the type of a variable that is declared with this value."""
        return self.expression(node, scope)

    def expression(
        self, node: Node, scope: ts.Scope, *, constant: bool = False, literal: bool = False, like: ts.Type | None = None
    ) -> ts.Type:
        """Return the type of an expression.

        Args:
            node: the expression.
            scope: what names mean there.
            constant: it is under ``as const``.
            literal: a literal keeps its own type, as in ``const x = "a"``.
            like: the type after ``satisfies``.
        """
        source = scope.source
        with self.reader.nested(scope.at(node)):
            kind = node.type
            if kind == "parenthesized_expression":
                return self.expression(only_child(node), scope, constant=constant, literal=literal, like=like)
            if kind == "non_null_expression":
                return self.reader.relations.without_null(self.expression(only_child(node), scope))
            if kind == "as_expression":
                if has_word(node, "const"):
                    return self.expression(parts(node)[0], scope, constant=True)
                return self.reader.type(parts(node)[1], scope)
            if kind == "satisfies_expression":
                value, wanted = parts(node)
                return self.expression(
                    value, scope, constant=constant, literal=literal, like=self.reader.type(wanted, scope)
                )
            if kind in ("string", "number", "true", "false", "unary_expression", "template_string"):
                return self._plain(node, scope, constant or literal, like)
            if kind == "null":
                return ts.NULL
            if kind == "object":
                return self._object(node, scope, constant, like)
            if kind == "array":
                return self._array(node, scope, constant, like)
            if kind in ("identifier", "member_expression", "subscript_expression"):
                type_ = self.constant(node, scope)
                widen = not (constant or literal) and isinstance(type_, ts.Literal)
                return self._widened(type_) if widen else type_
            if kind in _FUNCTIONS:
                return ts.Function(node, scope)
            reason = f"{source.shown(node)} is worked out when the program runs"
            return ts.unknown(reason, "write its type", scope.at(node))

    def _plain(self, node: Node, scope: ts.Scope, literal: bool, like: ts.Type | None) -> ts.Type:
        source = scope.source
        type_: ts.Type
        if node.type == "template_string":
            if any(child.type == "template_substitution" for child in node.named_children):
                return ts.STRING
            type_ = ts.Literal.of(self._template(node, source, lambda child: ""))
        elif node.type == "unary_expression" and source.text(node)[0] not in "+-":
            return ts.BOOLEAN if source.text(node)[0] == "!" else ts.NUMBER
        elif node.type == "unary_expression" and child_of(node, "argument").type != "number":
            return ts.NUMBER
        else:
            type_ = ts.Literal.of(self.literal(node, source))
        if literal or (like is not None and not self._takes(like, _keyword(type_))):
            return type_
        return self._widened(type_)

    def _takes(self, like: ts.Type, type_: ts.Type) -> bool:
        return any(self.reader.relations.narrower(type_, member) for member in self.reader.members(like))

    def _widened(self, type_: ts.Type) -> ts.Type:
        """Return the type of a variable that may be given another value of the kind."""
        if isinstance(type_, ts.Literal) and type_.enum is not None:
            return self.reader.named(type_.enum, (), ts.At(type_.enum.space.source, type_.enum.node))
        return _keyword(type_)

    def _like(self, like: ts.Type | None, name: str) -> ts.Type | None:
        bare = self.reader.bare(like) if like is not None else None
        return self.reader.objects.value(bare, name) if isinstance(bare, ts.Object) else None

    def _object(self, node: Node, scope: ts.Scope, constant: bool, like: ts.Type | None) -> ts.Type:
        properties: dict[str, ts.Property] = {}
        at = scope.at(node)
        for member in parts(node):
            if member.type == "spread_element":
                spread = self.expression(only_child(member), scope, constant=constant)
                for one in self.reader.objects.of(spread, scope.at(member)).properties:
                    properties[one.name] = one
                continue
            if member.type == "shorthand_property_identifier":
                name = scope.source.text(member)
                type_ = self._declared((name,), scope.at(member), scope)
                properties[name] = ts.Property(name, type_ if constant else self._widened(type_), at=at)
                continue
            if member.type == "method_definition":
                name, key = self.property_name(child_of(member, "name"), scope)
                properties[name] = ts.Property(name, ts.Function(member, scope), method=True, key=key, at=at)
                continue
            name, key = self.property_name(child_of(member, "key"), scope)
            value = child_of(member, "value")
            type_ = self.expression(value, scope, constant=constant, like=self._like(like, name))
            doc = self.reader.doc(member, scope.source)
            properties[name] = ts.Property(name, type_, key=key, doc=doc, at=scope.at(member))
        return ts.Object(tuple(properties.values()))

    def _array(self, node: Node, scope: ts.Scope, constant: bool, like: ts.Type | None) -> ts.Type:
        bare = self.reader.bare(like) if like is not None else None
        inner = bare.item if isinstance(bare, ts.Array) else None
        elements: list[ts.Element] = []
        for child in parts(node):
            if child.type == "spread_element":
                spread = self.reader.bare(self.expression(only_child(child), scope, constant=constant))
                if isinstance(spread, ts.Tuple):
                    elements += spread.elements
                elif isinstance(spread, ts.Array):
                    elements.append(ts.Element(spread.item, rest=True, at=scope.at(child)))
                else:
                    raise scope.source.refuse(child, "only an array or a tuple can be spread", "write its items out")
            else:
                type_ = self.expression(child, scope, constant=constant, like=inner)
                elements.append(ts.Element(type_, at=scope.at(child)))
        if constant:
            return ts.Tuple(tuple(elements), readonly=True)
        return ts.Array(ts.union([one.type for one in elements]), scope.at(node))


def _keyword(type_: ts.Type) -> ts.Type:
    """Return the type of a variable that may be given another value of the kind."""
    return (
        {"string": ts.STRING, "number": ts.NUMBER, "boolean": ts.BOOLEAN}[type_.kind]
        if isinstance(type_, ts.Literal)
        else type_
    )


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ts.number_text(value)
