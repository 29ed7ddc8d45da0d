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

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from toolgrammar.core.errors import LimitError, Place, SchemaError, ToolGrammarError
from toolgrammar.core.schema import KEYWORDS

from ..tool import Tool, with_tool
from . import jsdoc
from .model import UNKNOWN, At, Keyword, Literal, Object, Property, Refused, Scope, Type
from .modules import Declaration, Program
from .schemas import SchemaWriter
from .source import child_of, only_child, parts, walk
from .types import TypeReader
from .values import data

if TYPE_CHECKING:
    from tree_sitter import Node


def tools_from_typescript(
    text: str, names: Iterable[str] | None = None, *, files: Mapping[str, str] | None = None
) -> list[Tool]:
    """Return the tools that a TypeScript text declares, in its order.

    Args:
        text: declarations: interfaces, types, enums, function signatures; also inside a namespace.
        names: only these, in this order; None for the rule at the top of this module.
        files: the texts that this one may import, by their path from it (``"lib/types.ts"``) or by module name. It may
            itself be one of them: then paths are those from the folder around all.

    Raises:
        InvalidSchemaError: a syntax error, an undeclared type, a malformed tag; with line and column.
        UnsupportedSchemaError: something that JSON has no values for, or that is not evaluated; with line and column.
        SchemaError: there is no declaration, or none of a given name.
        LimitError: types are nested too deep, or are infinitely recursive.
        MissingDependencyError: the extra ``typescript`` is not installed.
    """
    with _bounded():
        return _Text(text, files).tools(names)


def schema_from_typescript(
    text: str, name: str | None = None, *, files: Mapping[str, str] | None = None
) -> dict[str, Any] | bool:
    """Return the JSON Schema of one declared type: for a JSON answer rather than a call.

    Args:
        text: declarations.
        name: which type, with its namespaces if the name alone is not enough (``Customer.Address``); None for the only
            exported one, or the only one that no other refers to.
        files: the texts that this one may import, by their path from it or by module name.

    Raises:
        SchemaError: there is no declaration, or none of the name, or the name is needed and not given.
        InvalidSchemaError, UnsupportedSchemaError, LimitError, MissingDependencyError: as for `tools_from_typescript`.
    """
    with _bounded():
        return _Text(text, files).schema(name)


@contextmanager
def _bounded() -> Iterator[None]:
    """Raise our error for Python's recursion limit, should a text reach that first."""
    try:
        yield
    except RecursionError:
        raise LimitError(
            "types of this text are nested too deeply, or are infinitely recursive",
            hint="a generic type must not refer to itself with ever larger arguments",
        ) from None


class _Function(NamedTuple):
    """A function that a text declares."""

    name: str
    signature: Node  # with the parameters
    commented: Node  # the node behind its comment


class _Text:
    """One text: its declarations, and the tools and schemas made of them."""

    def __init__(self, text: str, files: Mapping[str, str] | None = None) -> None:
        self.program = Program(text, files)
        self.source = self.program.main.source
        self.reader = TypeReader(self.program)
        self.writer = SchemaWriter(self.reader)
        if not self.program.declarations:
            hint = "for example: declare function get_weather(city: string): string"
            for node in self.program.ignored:
                what = f"{self.source.shown(node)} is not a type or a function signature"
                raise self.source.refuse(node, what, hint)
            raise SchemaError("the text has no declarations", hint=hint, place=Place(line=1, column=1))

    def tools(self, names: Iterable[str] | None) -> list[Tool]:
        """Return the tools of the declarations of these names; None: of all functions, or if there are none, of the
        object types that the text is about (`_roots`)."""
        if names is not None:
            chosen = [self._declared(name) for name in names]
        else:  # constants that hold a function are tools only by name
            chosen = [d for d in self.program.declarations if d.kind != "const" and self._functions(d)] or self._roots()
        if not chosen and names is None:
            raise SchemaError(
                "the text declares no arguments: no function, no interface, no object type",
                hint="for example: declare function get_weather(city: string): string",
            )
        made = [tool for declaration in chosen for tool in self._tools(declaration)]
        self._check_comments()
        return made

    def schema(self, name: str | None) -> dict[str, Any] | bool:
        """Return the schema of the type of a name; None: of the only one that the text may mean."""
        if name is None:
            roots = self._roots(objects=False)
            if len(roots) != 1:
                raise SchemaError(
                    f"the text declares {len(roots)} types that may be meant: {', '.join(d.path for d in roots)}",
                    hint="give the name of one",
                )
            (declaration,) = roots
        else:
            declaration = self._declared(name, types=True)
        at = self._at(declaration)
        if declaration.kind in ("function", "const"):
            what = "function" if declaration.kind == "function" else "value"
            raise self.source.wrong(at.node, f"{declaration.name!r} is a {what}, not a type", "name a type")
        schema = self.writer.schema(self.reader.named(declaration, (), at), at)
        self._check_comments()
        whole: dict[str, Any] | bool = self._self_contained(schema)
        return whole

    # -- choosing ----------------------------------------------------------------------------------------------

    def _declared(self, name: str, *, types: bool = False) -> Declaration:
        """Return the declaration of a name: a function before a type, unless a type is asked for."""
        declarations = self.program.declarations
        matching = [d for d in declarations if d.path == name] or [d for d in declarations if d.name == name]
        values = ("function", "const")
        matching.sort(key=lambda d: (d.kind in values) if types else (d.kind not in values))
        if not matching:
            names = ", ".join(declaration.path for declaration in declarations[:50])
            raise SchemaError(f"the text does not declare {name!r}", hint=f"it declares {names}")
        if len({d.path for d in matching}) > 1:
            raise SchemaError(
                f"the text declares {name!r} {len(matching)} times",
                hint=f"name one: {', '.join(d.path for d in matching)}",
            )
        return matching[0]

    def _roots(self, *, objects: bool = True) -> list[Declaration]:
        """Return the exported types that need no type arguments; if there are none, those that nothing else uses.

        Args:
            objects: only types of objects.
        """
        kinds = ("interface", "type") if objects else ("interface", "type", "enum", "class")
        types = [d for d in self.program.declarations if d.kind in kinds and not self._needs_type_arguments(d)]
        exported = [d for d in types if d.exported]
        if objects:
            exported = [d for d in exported if self._is_object(d)]
        if exported:
            return exported
        used = {name for d in self.program.declarations for name in self._names_in(d) if name != d.name}
        free = [d for d in types if d.name not in used and (not objects or self._is_object(d))]
        # Types that only refer to each other in a circle: the first stands for them.
        return free or [d for d in types if not objects or self._is_object(d)][:1]

    def _is_object(self, declaration: Declaration) -> bool:
        """Return True if all values of a declared type are objects; also if that is not known of an interface or class:
        the error comes where the type is needed."""
        if declaration.kind not in ("type", "interface", "class"):
            return False
        with _naming(declaration.name):
            at = self._at(declaration)
            type_ = self.reader.named(declaration, (), at)
            if isinstance(self.reader.bare(type_), Refused):
                return declaration.kind != "type"
            return self.writer.kinds(type_) == {"object"}

    def _at(self, declaration: Declaration) -> At:
        return At(declaration.space.source, declaration.node)

    def _needs_type_arguments(self, declaration: Declaration) -> bool:
        """Return True if a type has a type parameter without a default."""
        parameters = declaration.node.child_by_field_name("type_parameters")
        return parameters is not None and any(
            parameter.child_by_field_name("value") is None for parameter in parts(parameters)
        )

    def _names_in(self, declaration: Declaration) -> Iterator[str]:
        """Yield every name in a declaration."""
        for node in declaration.nodes:
            for inner in walk(node):
                if inner.type in ("type_identifier", "identifier"):
                    yield self.source.text(inner)

    def _functions(self, declaration: Declaration) -> list[_Function]:
        """Return the functions that it declares: itself, or the methods of an object type that has nothing else."""
        node, statement = declaration.node, declaration.statements[0]
        if declaration.kind == "function":
            return [_Function(declaration.name, node, statement)]
        if declaration.kind == "const":
            annotation = node.child_by_field_name("type")
            value = only_child(annotation) if annotation is not None else node.child_by_field_name("value")
            if value is None or value.type not in ("function_type", "arrow_function", "function_expression"):
                return []
            return [_Function(declaration.name, value, statement)]
        if declaration.kind == "type":
            value = child_of(node, "value")
            if value.type == "function_type":
                return [_Function(declaration.name, value, statement)]
            is_plain = value.type == "object_type" and not self._needs_type_arguments(declaration)
            return self._methods([value]) if is_plain else []
        if declaration.kind == "interface" and not self._needs_type_arguments(declaration):
            if any(child.type == "extends_type_clause" for part in declaration.nodes for child in part.named_children):
                return []
            return self._methods([child_of(part, "body") for part in declaration.nodes])
        return []

    def _methods(self, bodies: list[Node]) -> list[_Function]:
        """Return the methods of an object type; none if it has other members, too."""
        methods = []
        for member in (member for body in bodies for member in parts(body)):
            signature, name = _method(member), member.child_by_field_name("name")
            if signature is None or name is None:
                return []
            methods.append(_Function(self.source.text(name).strip("\"'"), signature, member))
        return methods

    # -- making ------------------------------------------------------------------------------------------------

    def _tools(self, declaration: Declaration) -> Iterator[Tool]:
        """Yield the tools of a declaration: its functions, or the object itself."""
        functions = self._functions(declaration)
        scope = Scope(declaration.space)
        self.reader.needed.add(declaration)
        overloads = [node for node in declaration.nodes[1:] if node.type == "function_signature"]
        if declaration.kind == "function" and overloads:
            functions = [_Function(declaration.name, overloads[0], overloads[0]), *functions]
        signatures = Counter(function.name for function in functions)
        for function in functions:
            with _naming(function.name):
                if signatures[function.name] > 1:
                    raise self.source.refuse(
                        function.signature,
                        f"the function {function.name!r} has overloads",
                        "declare each signature under its own name, or name the declarations that you want",
                    )
                yield self._function(function, scope)
        if not functions:
            with _naming(declaration.name):
                yield self._object(declaration)

    def _object(self, declaration: Declaration) -> Tool:
        """Return the tool whose arguments are of an object type."""
        at = self._at(declaration)
        if declaration.kind in ("enum", "const") or not self._is_object(declaration):
            raise self.source.wrong(at.node, "arguments are always an object", "put the value into an interface")
        schema = self.writer.schema(self.reader.named(declaration, (), at), at)
        # The name of a tool that is not an identifier is in a tag of its comment.
        docs = [self.source.doc(statement) for statement in declaration.statements]
        name = next((doc.name for doc in docs if doc.name), declaration.name)
        return self._tool(name, "", self._self_contained(schema))

    def _function(self, function: _Function, scope: Scope) -> Tool:
        """Return a function as a tool, with the name that its comment gives (``@name``), or its own."""
        name, signature, commented = function
        if signature.child_by_field_name("type_parameters") is not None:
            raise self.source.refuse(signature, "a generic function has many signatures", "write out one of them")
        doc = self.source.doc(commented)
        properties: dict[str, Any] = {}
        required: list[str] = []
        types: dict[str, Type] = {}
        unnamed: list[tuple[Type, Any]] = []  # types and schemas of parameters that are all arguments
        for parameter in parts(child_of(signature, "parameters")):
            pattern = parameter.child_by_field_name("pattern")
            label = self.source.text(pattern) if pattern is not None else "?"
            at = scope.at(parameter)
            with _naming(name, label):
                type_, schema = self._parameter(parameter, pattern, label, scope)
                if pattern is not None and (pattern.type == "object_pattern" or label == "_"):
                    unnamed.append((type_, schema))
                    continue
                if label in properties:
                    raise self.source.wrong(parameter, f"the parameter {label!r} is declared twice", "rename it")
                tag = doc.parameters.pop(label, None)  # `@param`
                trailing = self.source.comment_after(parameter)
                for said in (tag, jsdoc.Doc(description=trailing) if trailing is not None else None):
                    schema = self.writer.documented(type_, schema, said, at)
                properties[label], types[label] = schema, type_
                optional = parameter.type == "optional_parameter" or parameter.child_by_field_name("value") is not None
                if not optional and not self.reader.may_be_undefined(type_):
                    required.append(label)
        if unnamed and (properties or len(unnamed) > 1):
            raise self.source.refuse(
                signature, "a parameter without a name would be all arguments", "give every parameter a name"
            )
        at = scope.at(commented)
        arguments: Type = Object(tuple(Property(label, type_) for label, type_ in types.items()))
        if unnamed:
            arguments, made = unnamed[0]
            schema = self._self_contained(made)
        else:
            schema = {"type": "object", "properties": properties, **({"required": required} if required else {})}
            schema = self._with_definitions(schema)
        self._apply_tags_of_parameters(doc, arguments, schema, at)
        extra = replace(doc, description="", parameters={}, name=None)
        schema = self.writer.documented(arguments, schema, extra, at)
        return self._tool(doc.name or name, doc.description, schema)

    def _parameter(self, node: Node, pattern: Node | None, label: str, scope: Scope) -> tuple[Type, Any]:
        """Return the type of a parameter and its schema, constrained by the comment before it."""
        if pattern is None or pattern.type == "this" or label == "this":
            raise self.source.refuse(node, "`this` cannot be given by name", "remove it from the signature")
        if pattern.type == "rest_pattern":
            raise self.source.refuse(node, f"{label} has unnamed arguments", "take one array: items: string[]")
        if pattern.type not in ("identifier", "object_pattern"):
            raise self.source.refuse(node, "this parameter has no name", "give it one")
        doc = self.source.doc(node)
        annotation = node.child_by_field_name("type")
        default = node.child_by_field_name("value")
        type_: Type | None = None
        if annotation is not None:
            type_ = self.reader.type(only_child(annotation), scope)
        if default is not None and pattern.type == "identifier":
            value = data(default, scope)
            if value is not None:  # a default that is computed at run time is not part of the signature
                doc.keywords.setdefault("default", value)
            if type_ is None and isinstance(value, (bool, str, int, float)):
                type_ = Keyword(Literal.of(value).kind)
        if type_ is None:
            raise self.source.wrong(node, f"the parameter {label!r} has no type", f"write {label}: type")
        at = scope.at(node)
        return type_, self.writer.documented(type_, self.writer.schema(type_, at), doc, at)

    def _apply_tags_of_parameters(self, doc: jsdoc.Doc, arguments: Type, schema: Any, at: At) -> None:
        """Apply ``@param options.city`` to a property inside a parameter that is written out in the signature.

        Args:
            doc: the comment of the function, without the tags of whole parameters.
            arguments: the type of the arguments.
            schema: their schema, which is changed.
            at: the place of the function.
        """
        for path, said in doc.parameters.items():
            first, *rest = path.split(".")
            properties = schema.get("properties", {})
            # The parameter that is the arguments themselves has any name in a comment: `options` in `options.city`.
            names = [first, *rest] if first in properties or not rest else rest
            inner: Any = None  # the schema of the names so far, and its type, if that is known
            type_: Type | None = arguments
            for name in names:
                inner, holder = properties.get(name), properties
                if not isinstance(inner, dict):
                    raise self.source.wrong(
                        at.node, f"@param {path}: there is no such parameter", "correct the comment"
                    )
                properties = inner.get("properties", {})
                shape = self.reader.bare(type_) if type_ is not None else None
                found = shape.get(name) if isinstance(shape, Object) else None
                type_ = found.type if found is not None else None
            holder[names[-1]] = self.writer.documented(type_ or UNKNOWN, inner, said, at)

    def _tool(self, name: str, description: str, schema: Any) -> Tool:
        """Return a tool; a description of its arguments as a whole is part of its own."""
        if isinstance(schema, dict):
            schema = dict(schema)
            inner = schema.pop("description", "")
            if not (inner or description) and "$ref" in schema:
                # A type that refers to itself: its comment is the tool's.
                inner = schema["$defs"][schema["$ref"].removeprefix("#/$defs/")].get("description", "")
            description = "\n".join(part for part in (description, inner) if part)
        return Tool(name, description, schema)

    def _self_contained(self, schema: Any) -> Any:
        """Return a schema with what it refers to in its ``$defs``; one that is a reference becomes its definition, if
        that is not recursive and no keyword stands beside the reference and in it."""
        if isinstance(schema, dict) and "$ref" in schema:
            key = schema["$ref"].removeprefix("#/$defs/")
            definition = self.writer.definitions[key]
            siblings = {name: value for name, value in schema.items() if name != "$ref"}
            if not isinstance(definition, dict):
                return self._with_definitions(schema) if siblings else definition
            in_both = (set(siblings) & set(definition)) - KEYWORDS.annotations
            if key not in self._reachable(definition) and not in_both:
                return self._self_contained({**definition, **siblings})
        return self._with_definitions(schema)

    def _with_definitions(self, schema: Any) -> Any:
        """Return a schema with the definitions that it refers to."""
        keys = self._reachable(schema)
        if not keys:
            return schema
        return {**schema, "$defs": {key: body for key, body in self.writer.definitions.items() if key in keys}}

    def _reachable(self, schema: Any) -> set[str]:
        """Return the names of the definitions that a schema refers to, directly or not."""
        reached: set[str] = set()
        waiting = [schema]
        while waiting:
            for part in KEYWORDS.every_schema(waiting.pop()):
                key = str(part.get("$ref")).removeprefix("#/$defs/")
                if key in self.writer.definitions and key not in reached:
                    reached.add(key)
                    waiting.append(self.writer.definitions[key])
        return reached

    def _check_comments(self) -> None:
        """Refuse a tag where nothing reads it: it would be lost in silence."""
        for declaration in self.program.declarations:
            if declaration not in self.reader.needed or declaration.kind == "const":
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
                        "this comment constrains nothing here",
                        "put it directly before a property, a parameter, a type or a declaration",
                    )


def _method(member: Node) -> Node | None:
    """Return the signature of a member that is a function."""
    if member.type == "method_signature":
        is_accessor = any(child.type in ("get", "set") for child in member.children)
        return None if is_accessor else member
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
