"""Tools and schemas from TypeScript declarations.

What becomes a tool, in this order:

1. with ``names``: the declarations of these names;
2. if the text has function signatures (``declare function f(...)``, ``type f = (...) => T``, an interface whose members
   are all methods): each of them, one tool for each function;
3. else the exported interfaces and object types; if none is exported, those that no other declaration refers to.

A function's parameters are the properties of its arguments. A parameter without a name of its own (``_``, or a
destructured one) *is* the arguments object, as in ``type f = (_: { city: string }) => any``. What a function returns is
not read: a model does not write it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ..core.errors import Place, SchemaError, ToolGrammarError
from . import jsdoc
from .tool import Tool, with_tool
from .typescript_names import Typed
from .typescript_shapes import ANNOTATIONS
from .typescript_source import Declaration, Source
from .typescript_types import TypeReader

if TYPE_CHECKING:
    from tree_sitter import Node


def tools_from_typescript(text: str, names: Iterable[str] | None = None) -> list[Tool]:
    """The tools that a TypeScript text declares, in its order.

    Args:
        text: declarations: interfaces, types, enums, function signatures; also inside a namespace.
        names: only these, in this order; None for the rule at the top of this module.

    Raises:
        InvalidSchemaError: a syntax error, an undeclared type, a malformed tag; with line and column.
        UnsupportedSchemaError: something that JSON has no values for, or that is not evaluated; with line and column.
        SchemaError: there is no declaration, or none of a given name.
        MissingDependencyError: the extra ``typescript`` is not installed.
    """
    return _Text(text).tools(names)


def schema_from_typescript(text: str, name: str | None = None) -> dict[str, Any] | bool:
    """The JSON Schema of one declared type: for a JSON answer rather than a call.

    Args:
        text: declarations.
        name: which type; None for the only exported one, or the only one that no other refers to.

    Raises:
        SchemaError: as `tools_from_typescript`, and where ``name`` is needed and not given.
    """
    return _Text(text).schema(name)


class _Text:
    """One text and what is made of it."""

    def __init__(self, text: str) -> None:
        self.source = Source(text)
        self.types = TypeReader(self.source)
        if not self.source.declarations:
            raise SchemaError(
                "the text declares nothing",
                hint="for example: declare function get_weather(city: string): string",
                place=Place(line=1, column=1),
            )

    def tools(self, names: Iterable[str] | None) -> list[Tool]:
        declarations = self.source.declarations
        if names is None:
            chosen = [d for d in declarations.values() if self._functions(d)] or self._roots()
        else:
            chosen = [self._declared(name) for name in names]
        if not chosen and names is None:
            raise SchemaError(
                "the text declares no arguments: no function, no interface, no object type",
                hint="for example: declare function get_weather(city: string): string",
            )
        made = [tool for declaration in chosen for tool in self._tools(declaration)]
        self._check_comments()
        return made

    def schema(self, name: str | None) -> dict[str, Any] | bool:
        if name is None:
            roots = self._roots(objects=False)
            if len(roots) != 1:
                raise SchemaError(
                    f"the text declares {len(roots)} types that may be meant: {', '.join(d.name for d in roots)}",
                    hint="give the name of one",
                )
            (declaration,) = roots
        else:
            declaration = self._declared(name)
        if declaration.kind == "function":
            raise self.source.wrong(
                declaration.nodes[0], f"{declaration.name!r} is a function, not a type", "name a type"
            )
        typed = self.types.named(declaration.name, declaration.nodes[0])
        self._check_comments()
        rooted: dict[str, Any] | bool = self._rooted(typed.schema)
        return rooted

    # -- choosing ----------------------------------------------------------------------------------------------

    def _declared(self, name: str) -> Declaration:
        declarations = self.source.declarations
        found = declarations.get(f"{name}()") or declarations.get(name)
        if found is None:
            known = ", ".join(declaration.name for declaration in declarations.values())
            raise SchemaError(f"the text does not declare {name!r}", hint=f"it declares {known}")
        return found

    def _roots(self, *, objects: bool = True) -> list[Declaration]:
        types = [d for d in self.source.declarations.values() if d.kind != "function" and not self._generic(d)]
        exported = [d for d in types if d.exported]
        if objects:
            exported = [d for d in exported if self._is_object(d)]
        if exported:
            return exported
        used = {name for d in self.source.declarations.values() for name in self._used(d) if name != d.name}
        free = [d for d in types if d.name not in used and (not objects or self._is_object(d))]
        # Types that only refer to each other in a circle: the first stands for them.
        return free or [d for d in types if not objects or self._is_object(d)][:1]

    def _is_object(self, declaration: Declaration) -> bool:
        if declaration.kind != "type":
            return declaration.kind == "interface"
        with _naming(declaration.name):
            return self.types.kinds(self.types.named(declaration.name, declaration.nodes[0]).schema) == {"object"}

    def _generic(self, declaration: Declaration) -> bool:
        return declaration.nodes[0].child_by_field_name("type_parameters") is not None

    def _used(self, declaration: Declaration) -> Iterator[str]:
        waiting = list(declaration.nodes)
        while waiting:
            node = waiting.pop()
            waiting.extend(node.children)
            if node.type in ("type_identifier", "identifier"):
                yield self.source.text(node)

    def _functions(self, declaration: Declaration) -> list[tuple[str, Node, Node]]:
        """Name, signature and commented node of each function that it declares."""
        node = declaration.nodes[0]
        if declaration.kind == "function":
            return [(declaration.name, node, declaration.statements[0])]
        if declaration.kind == "type":
            value = node.child_by_field_name("value")
            if value is not None and value.type == "function_type":
                return [(declaration.name, value, declaration.statements[0])]
        if declaration.kind == "interface":
            found = []
            for part in declaration.nodes:
                body = part.child_by_field_name("body")
                for member in body.named_children if body is not None else ():
                    if member.type == "comment":
                        continue
                    signature = _method(member)
                    name = member.child_by_field_name("name")
                    if signature is None or name is None:
                        return []
                    found.append((self.source.text(name).strip("\"'"), signature, member))
            return found
        return []

    # -- making ------------------------------------------------------------------------------------------------

    def _tools(self, declaration: Declaration) -> Iterator[Tool]:
        functions = self._functions(declaration)
        for name, signature, commented in functions:
            with _naming(name):
                yield self._function(name, signature, commented)
        if not functions:
            with _naming(declaration.name):
                yield self._object(declaration)

    def _object(self, declaration: Declaration) -> Tool:
        node = declaration.nodes[0]
        if declaration.kind == "enum" or not self._is_object(declaration):
            raise self.source.wrong(node, "arguments are always an object", "put the value into an interface")
        typed = self.types.named(declaration.name, node)
        # The name of a tool that is no identifier stands in a tag of its comment.
        name = next((doc.name for doc in map(self.types.doc, declaration.statements) if doc.name), declaration.name)
        return self._tool(name, "", self._rooted(typed.schema))

    def _function(self, name: str, signature: Node, commented: Node) -> Tool:
        if signature.child_by_field_name("type_parameters") is not None:
            raise self.source.refuse(signature, "a generic function has many signatures", "write out one of them")
        doc = self.types.doc(commented)
        properties: dict[str, Any] = {}
        required: list[str] = []
        whole: list[Any] = []
        parameters = signature.child_by_field_name("parameters")
        assert parameters is not None  # every function has them
        for parameter in parameters.named_children:
            if parameter.type == "comment":
                continue
            pattern = parameter.child_by_field_name("pattern")
            label = self.source.text(pattern) if pattern is not None else "?"
            with _naming(name, label):
                typed = self._parameter(parameter, pattern, label)
                if pattern is not None and (pattern.type == "object_pattern" or label == "_"):
                    whole.append(typed.schema)
                    continue
                if label in properties:
                    raise self.source.wrong(parameter, f"the parameter {label!r} is declared twice", "rename it")
                said = doc.parameters.pop(label, None)
                if said is not None:
                    typed = self.types.documented(typed, said, parameter)
                behind = self.source.comment_behind(parameter)
                if behind is not None:
                    typed = self.types.documented(typed, jsdoc.Doc(description=behind), parameter)
                properties[label] = typed.schema
                optional = parameter.type == "optional_parameter" or parameter.child_by_field_name("value") is not None
                if not optional and not typed.undefined:
                    required.append(label)
        if whole and (properties or len(whole) > 1):
            raise self.source.refuse(
                signature, "a parameter without a name stands for all arguments", "give every parameter a name"
            )
        if whole:
            schema: Any = self._rooted(whole[0])
        else:
            schema = {"type": "object", "properties": properties, **({"required": required} if required else {})}
            schema = self._with_definitions(schema)
        self._nested(doc, schema, commented)
        extra = replace(doc, description="", parameters={}, name=None)
        if extra.constrains:
            schema = self.types.documented(Typed(schema), extra, commented).schema
        return self._tool(doc.name or name, doc.description, schema)

    def _parameter(self, node: Node, pattern: Node | None, label: str) -> Typed:
        if pattern is None or pattern.type == "this" or label == "this":
            raise self.source.refuse(node, "`this` cannot be given by name", "remove it from the signature")
        if pattern.type == "rest_pattern":
            raise self.source.refuse(
                node, f"{label} takes arguments that have no names", "take one array: items: string[]"
            )
        if pattern.type not in ("identifier", "object_pattern"):
            raise self.source.refuse(node, "this parameter has no name", "give it one")
        doc = self.types.doc(node)
        annotation = node.child_by_field_name("type")
        default = node.child_by_field_name("value")
        typed: Typed | None = None
        if annotation is not None:
            typed = self.types.type(next(c for c in annotation.named_children if c.type != "comment"), {})
        if default is not None and pattern.type == "identifier":
            value = self.types.data(default)
            if value is not None:  # what is worked out when the function runs is no part of the signature
                doc.keywords.setdefault("default", value)
            if typed is None and isinstance(value, (bool, str, int, float)):
                kind = "boolean" if isinstance(value, bool) else "string" if isinstance(value, str) else "number"
                typed = Typed({"type": kind})
        if typed is None:
            raise self.source.wrong(node, f"the parameter {label!r} has no type", f"write {label}: type")
        return self.types.documented(typed, doc, node)

    def _nested(self, doc: jsdoc.Doc, schema: Any, node: Node) -> None:
        """``@param options.city``: about a property inside a parameter that is written out in the signature."""
        for path, said in doc.parameters.items():
            first, *rest = path.split(".")
            properties = schema.get("properties", {})
            steps = [first, *rest] if first in properties or not rest else rest
            target: Any = None
            for step in steps:
                target, holder = properties.get(step), properties
                if not isinstance(target, dict):
                    raise self.source.wrong(node, f"@param {path}: there is no such parameter", "correct the comment")
                properties = target.get("properties", {})
            holder[steps[-1]] = self.types.documented(Typed(target), said, node).schema

    def _tool(self, name: str, description: str, schema: Any) -> Tool:
        if isinstance(schema, dict):
            schema = dict(schema)
            inner = schema.pop("description", "")
            if (
                not (inner or description) and "$ref" in schema
            ):  # a type that refers to itself: its comment is the tool's
                inner = schema["$defs"][schema["$ref"].removeprefix("#/$defs/")].get("description", "")
            description = "\n".join(part for part in (description, inner) if part)
        return Tool(name, description, schema)

    def _rooted(self, schema: Any) -> Any:
        """A schema that stands alone, with what it refers to in its ``$defs``."""
        if isinstance(schema, dict) and "$ref" in schema:
            key = schema["$ref"].removeprefix("#/$defs/")
            body = self.types.definitions[key]
            siblings = {name: value for name, value in schema.items() if name != "$ref"}
            if not isinstance(body, dict):
                return self._with_definitions(schema) if siblings else body
            if key not in self._reachable(body) and not set(siblings) & set(body) - ANNOTATIONS:
                return self._rooted({**body, **siblings})
        return self._with_definitions(schema)

    def _with_definitions(self, schema: Any) -> Any:
        keys = self._reachable(schema)
        if not keys:
            return schema
        return {**schema, "$defs": {key: body for key, body in self.types.definitions.items() if key in keys}}

    def _reachable(self, schema: Any) -> set[str]:
        found: set[str] = set()
        waiting = [schema]
        while waiting:
            part = waiting.pop()
            if isinstance(part, list):
                waiting += part
            elif isinstance(part, dict):
                waiting += part.values()
                reference = part.get("$ref")
                key = reference.removeprefix("#/$defs/") if isinstance(reference, str) else None
                if key in self.types.definitions and key not in found:
                    found.add(key)
                    waiting.append(self.types.definitions[key])
        return found

    def _check_comments(self) -> None:
        """A tag that stands where nothing reads it would be lost in silence."""
        for declaration in self.source.declarations.values():
            if not self.types.was_read(declaration):
                continue
            for comment in self.source.unread(declaration.nodes):
                text = self.source.text(comment)
                try:
                    constrains = text.startswith("/**") and jsdoc.parse(text).constrains
                except jsdoc.JsDocError:  # a malformed tag is one that means something
                    constrains = True
                if constrains:
                    raise self.source.wrong(
                        comment,
                        "this comment constrains nothing where it stands",
                        "put it directly before a property, a parameter, a type or a declaration",
                    )


def _method(member: Node) -> Node | None:
    """The signature of a member that is a function."""
    if member.type == "method_signature":
        accessor = any(child.type in ("get", "set") for child in member.children)
        return None if accessor else member
    annotation = member.child_by_field_name("type") if member.type == "property_signature" else None
    if annotation is not None:
        inner = next((child for child in annotation.named_children if child.type != "comment"), None)
        if inner is not None and inner.type == "function_type":
            return inner
    return None


class _naming:
    """Errors raised inside also name the tool and the parameter."""

    def __init__(self, tool: str, parameter: str | None = None) -> None:
        self.tool, self.parameter = tool, parameter

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: Any, error: BaseException | None, traceback: Any) -> None:
        if isinstance(error, ToolGrammarError) and error.place.tool is None:
            named = with_tool(error, self.tool)
            if self.parameter is not None:
                place = replace(named.place, parameter=self.parameter)
                named = type(named)(named.message, hint=named.hint, place=place)
            raise named from None
