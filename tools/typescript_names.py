"""Named types: what a name in a TypeScript text refers to, and what the comments there say of it.

Every named type becomes an entry of ``$defs`` and is referred to, so recursion costs nothing; a generic type becomes
one entry for each list of arguments.
"""

from __future__ import annotations

import itertools
import json
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..core.errors import InvalidSchemaError, LimitError, SchemaError
from . import jsdoc
from .typescript_shapes import Shape, literal_schema, schema_of
from .typescript_source import Declaration, Source, child_of

if TYPE_CHECKING:
    from tree_sitter import Node

MAX_TYPE_INSTANCES = 500

_NO_JSON = {
    "Date": "a string with the tag @format date-time",
    "Map": "Record<string, ...>",
    "Set": "an array with the tag @uniqueItems",
    "RegExp": "a string",
    "URL": "a string with the tag @format uri",
    "Buffer": "a string with the tag @contentEncoding base64",
    "Uint8Array": "a string with the tag @contentEncoding base64",
    "Blob": "a string with the tag @contentEncoding base64",
    "Promise": "the type inside it",
    "bigint": "a number with the tag @integer",
    "symbol": "a string",
    "Function": "nothing: a call's arguments are JSON",
    "integer": "a number with the tag @integer",
    "int": "a number with the tag @integer",
    "float": "number",
    "String": "string",
    "Number": "number",
    "Boolean": "boolean",
    "Object": "object",
}


@dataclass(frozen=True)
class Typed:
    """What a type comes to.

    Attributes:
        schema: its JSON values.
        undefined: it may be ``undefined`` too, which JSON has no word for: a property may be left out.
    """

    schema: dict[str, Any] | bool
    undefined: bool = False


Scope = Mapping[str, Typed]


class NamedTypes(ABC):
    """The named types of one text. ``definitions`` grows as types are met.

    Args:
        source: the parsed text.
    """

    def __init__(self, source: Source) -> None:
        self.source = source
        self.definitions: dict[str, dict[str, Any] | bool] = {}
        self._undefined: set[str] = set()
        self._open: set[str] = set()
        self._reopened: set[str] = set()
        self._instances: dict[str, tuple[Declaration, Scope]] = {}
        self._keys: dict[str, str] = {}
        self._patterns: set[str] = set()  # of templates: these may be parts of larger ones
        self._depth = 0

    @abstractmethod
    def type(self, node: Node, scope: Scope) -> Typed:
        """What a type expression comes to, with what the comment before it says."""

    @abstractmethod
    def _members(self, body: Node, scope: Scope) -> Shape:
        """The members between the braces of an object type."""

    @abstractmethod
    def _one_shape(self, schema: Any, node: Node) -> Shape:
        """The object that a type is."""

    def named(self, name: str, node: Node, arguments: tuple[Typed, ...] = ()) -> Typed:
        """A reference to a declared type."""
        declaration = self.source.declarations[name]
        scope = self._scope(declaration, arguments, node)
        key = self._key(declaration, scope)
        if key not in self.definitions and key not in self._open:
            self._open.add(key)
            try:
                typed = self._body(key)
            except Circle as found:
                raise self.source.wrong(found.node, str(found), "break the circle") from None
            self._open.discard(key)
            if (circle := _circle_in(typed.schema)) is not None:
                raise circle
            self.definitions[key] = typed.schema
            if typed.undefined:
                self._undefined.add(key)
        return Typed({"$ref": f"#/$defs/{key}"}, key in self._undefined)

    def doc(self, node: Node) -> jsdoc.Doc:
        """What the comment before a node says."""
        comment = self.source.comment_before(node)
        if comment is None:
            return jsdoc.Doc()
        if isinstance(comment, str):
            return jsdoc.Doc(description=comment)
        try:
            return jsdoc.parse(self.source.text(comment))
        except jsdoc.JsDocError as error:
            raise self.source.wrong(comment, str(error), "see docs/tools.md for the tags") from None

    def documented(self, typed: Typed, doc: jsdoc.Doc, node: Node) -> Typed:
        """A type with what a comment says of it."""
        if not doc.constrains and not doc.description:
            return typed
        schema: dict[str, Any] = dict(schema_of(typed.schema))
        if doc.integer:
            kinds = schema.get("type")
            if kinds != "number" and not (isinstance(kinds, list) and "number" in kinds):
                raise self.source.wrong(node, "@integer speaks of numbers, and here is none", "put it before a number")
            schema["type"] = "integer" if kinds == "number" else [k if k != "number" else "integer" for k in kinds]
        if doc.one_of:
            if "anyOf" not in schema:
                raise self.source.wrong(node, "@oneOf speaks of unions, and here is none", "put it before a union")
            schema["oneOf"] = schema.pop("anyOf")
        kinds = self.kinds(schema)
        for keyword, value in doc.keywords.items():
            about = jsdoc.CONSTRAINTS.get(keyword)
            if about is not None and not kinds.intersection(about):
                raise self.source.wrong(
                    node,
                    f"@{keyword} speaks of {about[0]}s, and here is {' or '.join(sorted(kinds)) or 'nothing'}",
                    "put it before what it constrains, for example (/** @minLength 1 */ string)[]",
                )
            if keyword == "default" and kinds == {"string"} and not isinstance(value, str):
                value = json.dumps(value)
            if about is not None and keyword in schema and keyword != "additionalProperties":
                schema.setdefault("allOf", []).append({keyword: value})
            else:
                schema[keyword] = value
        if doc.description:
            schema["description"] = doc.description
        schema.update(doc.schema)
        if "$defs" not in doc.schema:
            self._name_references(doc.schema, node)
        return Typed(schema, typed.undefined)

    def _name_references(self, schema: Any, node: Node) -> None:
        """Read the types that ``@schema`` refers to."""
        if isinstance(schema, list):
            for item in schema:
                self._name_references(item, node)
        elif isinstance(schema, dict):
            for value in schema.values():
                self._name_references(value, node)
            reference = schema.get("$ref")
            if isinstance(reference, str) and reference.removeprefix("#/$defs/") in self.source.declarations:
                self.named(reference.removeprefix("#/$defs/"), node)

    def kinds(self, schema: Any, seen: frozenset[str] = frozenset()) -> frozenset[str]:
        """The JSON types that a schema's values may have; ``integer`` counts as ``number``."""
        everything = frozenset({"object", "array", "string", "number", "boolean", "null"})
        if schema is False:
            return frozenset()
        if not isinstance(schema, dict):
            return everything
        result = everything
        if "type" in schema:
            names = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
            result = frozenset("number" if name == "integer" else name for name in names)
        reference = schema.get("$ref")
        if isinstance(reference, str) and reference not in seen:
            result &= self.kinds(self.definitions.get(reference.removeprefix("#/$defs/"), True), seen | {reference})
        for part in schema.get("allOf", ()):
            result &= self.kinds(part, seen)
        for key in ("anyOf", "oneOf"):
            if key in schema:
                result &= frozenset().union(*(self.kinds(part, seen) for part in schema[key]))
        return result

    def was_read(self, declaration: Declaration) -> bool:
        """Whether anything asked for it."""
        return declaration.kind == "function" or any(d is declaration for d, _ in self._instances.values())

    # -- named types -------------------------------------------------------------------------------------------

    def _scope(self, declaration: Declaration, arguments: tuple[Typed, ...], node: Node) -> Scope:
        parameters = declaration.nodes[0].child_by_field_name("type_parameters")
        given = list(parameters.named_children) if parameters is not None else []
        given = [parameter for parameter in given if parameter.type == "type_parameter"]
        if len(arguments) > len(given):
            raise self.source.wrong(
                node, f"{declaration.name!r} takes {len(given)} type arguments, not {len(arguments)}", "leave some out"
            )
        scope: dict[str, Typed] = {}
        for index, parameter in enumerate(given):
            name = self.source.text(child_of(parameter, "name"))
            if index < len(arguments):
                scope[name] = arguments[index]
                continue
            default = parameter.child_by_field_name("value")
            if default is None:
                raise self.source.wrong(
                    node, f"{declaration.name!r} needs a type for its parameter {name}", f"{declaration.name}<...>"
                )
            scope[name] = self.type(default.named_children[-1], dict(scope))
        return scope

    def _key(self, declaration: Declaration, scope: Scope) -> str:
        """The name of an instance in ``$defs``."""
        identity = json.dumps([declaration.name, [[t.schema, t.undefined] for t in scope.values()]])
        known = self._keys.get(identity)
        if known is not None:
            return known
        if len(self._keys) >= MAX_TYPE_INSTANCES:
            raise LimitError(
                f"more than {MAX_TYPE_INSTANCES} types come of this text",
                hint="a generic type must not refer to itself with ever larger arguments",
                place=self.source.place(declaration.nodes[0]),
            )
        name = "_".join([declaration.name, *(_label(typed.schema) for typed in scope.values())])
        taken = {*self._instances, *(self.source.declarations if scope else ())}
        key = next(k for k in itertools.chain([name], (f"{name}_{i}" for i in itertools.count(2))) if k not in taken)
        self._keys[identity] = key
        self._instances[key] = (declaration, scope)
        return key

    def _body(self, key: str) -> Typed:
        declaration, scope = self._instances[key]
        typed = {"interface": self._interface, "enum": self._enum, "type": self._alias}[declaration.kind](
            declaration, scope
        )
        for statement in declaration.statements:
            typed = self.documented(typed, self.doc(statement), statement)
        self._check_grounded(key, typed.schema, declaration)
        return typed

    def _alias(self, declaration: Declaration, scope: Scope) -> Typed:
        return self.type(child_of(declaration.nodes[0], "value"), scope)

    def _interface(self, declaration: Declaration, scope: Scope) -> Typed:
        whole = Shape()
        for node in declaration.nodes:
            for clause in node.named_children:
                if clause.type == "extends_type_clause":
                    for base in clause.named_children:
                        if base.type != "comment":
                            whole = whole.join(self._one_shape(self.type(base, scope).schema, base))
        for node in declaration.nodes:
            whole = whole.override(self._members(child_of(node, "body"), scope))
        return Typed(whole.schema())

    def _enum(self, declaration: Declaration, scope: Scope) -> Typed:
        return Typed(literal_schema(list(self._enum_values(declaration).values())))

    def _enum_values(self, declaration: Declaration) -> dict[str, Any]:
        values: dict[str, Any] = {}
        following: int | None = 0
        for member in child_of(declaration.nodes[0], "body").named_children:
            if member.type == "comment":
                continue
            name = member if member.type != "enum_assignment" else child_of(member, "name")
            if member.type == "enum_assignment":
                value = self.literal(child_of(member, "value"))
                if isinstance(value, bool) or value is None:
                    raise self.source.wrong(member, "an enum's values are strings and numbers", "change the value")
            elif following is None:
                raise self.source.wrong(member, "this member of the enum needs a value", "give it one")
            else:
                value = following
            values[self._property_name(name)] = value
            following = value + 1 if isinstance(value, int) else None
        return values

    def _check_grounded(self, key: str, schema: Any, declaration: Declaration) -> None:
        """A type that is itself, or itself or something else, says nothing."""
        waiting, seen = [schema], set()
        while waiting:
            part = waiting.pop()
            if not isinstance(part, dict):
                continue
            waiting += [*part.get("anyOf", ()), *part.get("oneOf", ()), *part.get("allOf", ())]
            reference = part.get("$ref")
            if isinstance(reference, str) and reference not in seen:
                seen.add(reference)
                name = reference.removeprefix("#/$defs/")
                if name == key:
                    node = declaration.nodes[0]
                    raise self.source.wrong(node, f"the type {key!r} is defined by itself", "put it inside an object")
                waiting.append(self.definitions.get(name))

    def _resolved(self, schema: Any, node: Node) -> Any:
        """The schema behind a reference."""
        seen: set[str] = set()
        while isinstance(schema, dict) and "$ref" in schema:
            key = schema["$ref"].removeprefix("#/$defs/")
            if key in seen:
                raise Circle(f"the type {key!r} is defined by itself", node)
            seen.add(key)
            if key in self.definitions:
                schema = self.definitions[key]
            elif key in self._reopened:
                raise Circle(f"the type {key!r} is defined by itself", node)
            else:  # still being read, further up: its own members are needed now
                self._reopened.add(key)
                try:
                    schema = self._body(key).schema
                finally:
                    self._reopened.discard(key)
        return schema

    # -- literals ----------------------------------------------------------------------------------------------

    def _no_json(self, node: Node, name: str) -> SchemaError:
        if name in _NO_JSON:
            return self.source.refuse(node, f"JSON has no values of the type {name!r}", f"use {_NO_JSON[name]}")
        return self.source.wrong(node, f"the type {name!r} is not declared in this text", "add its declaration")

    def literal(self, node: Node) -> Any:
        """The value of a literal: a string, a number, true, false or null."""
        text = self.source.text(node)
        if node.type == "string":
            return self.source.string(node)
        if node.type in ("true", "false", "null"):
            return json.loads(text)
        sign = 1
        if node.type == "unary_expression" and text[0] in "+-":
            sign = -1 if text[0] == "-" else 1
            node = child_of(node, "argument")
            text = self.source.text(node)
        if node.type == "number":
            digits = text.replace("_", "")
            try:
                number = int(digits, 0) if digits[:2].lower() in ("0x", "0o", "0b") else float(digits)
            except ValueError:
                raise self._no_json(node, "bigint") from None
            return sign * (int(number) if number == int(number) and abs(number) < 2**53 else number)
        raise self.source.refuse(node, f"{text[:40]!r} is not a literal", "write the value itself")

    def data(self, node: Node) -> Any:
        """The value of an expression made of literals; None for any other (and for null)."""
        if node.type == "array":
            items = [self.data(child) for child in node.named_children if child.type != "comment"]
            return items if None not in items else None
        if node.type == "object":
            pairs = [child for child in node.named_children if child.type != "comment"]
            if any(pair.type != "pair" or child_of(pair, "key").type == "computed_property_name" for pair in pairs):
                return None
            found = {self._property_name(child_of(pair, "key")): self.data(child_of(pair, "value")) for pair in pairs}
            return found if None not in found.values() else None
        simple = ("string", "number", "true", "false", "unary_expression")
        try:
            return self.literal(node) if node.type in simple else None
        except SchemaError:
            return None

    def _property_name(self, node: Node) -> str:
        text = self.source.text(node)
        if node.type == "string":
            return self.source.string(node)
        if node.type == "number":
            return number_text(self.literal(node))
        if node.type in ("property_identifier", "identifier"):
            return text
        raise self.source.refuse(
            node, f"the name {text!r} is not known before the program runs", "write the name itself"
        )


class Circle(Exception):
    """A type whose members are needed to find its members."""

    def __init__(self, message: str, node: Node) -> None:
        super().__init__(message)
        self.node = node


def _circle_in(schema: Any) -> InvalidSchemaError | None:
    """The error that waits in a property which was taken from a type while it was being read."""
    waiting = [schema]
    while waiting:
        part = waiting.pop()
        if isinstance(part, dict):
            found: InvalidSchemaError | None = part.get("$circle")
            if isinstance(found, InvalidSchemaError):
                return found
            waiting += part.values()
        elif isinstance(part, list):
            waiting += part
    return None


def _label(schema: Any) -> str:
    if isinstance(schema, dict) and set(schema) == {"$ref"}:
        return str(schema["$ref"]).removeprefix("#/$defs/")
    if isinstance(schema, dict) and isinstance(schema.get("type"), str):
        return str(schema["type"])
    return "T"


def number_text(value: float) -> str:
    """A number as JavaScript spells it as a key."""
    return str(value) if isinstance(value, int) else repr(value)
