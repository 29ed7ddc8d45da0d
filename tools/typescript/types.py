"""Evaluation of TypeScript's type expressions."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from toolgrammar.core.errors import LimitError

from . import model as ts
from .modules import Declaration, Missing, Program, Space, names_in
from .objects import ObjectReader
from .source import child_of, has_word, only_child, operands, parts
from .values import constant, enum_values, literal

if TYPE_CHECKING:
    from tree_sitter import Node

MAX_TYPE_INSTANCES = 500

#: Types of TypeScript's library that JSON has no values for, and what to write instead.
_NO_JSON = {
    "Date": "a string with the tag @format date-time",
    "Map": "Record<string, ...>",
    "ReadonlyMap": "Record<string, ...>",
    "WeakMap": "Record<string, ...>",
    "Set": "an array with the tag @uniqueItems",
    "ReadonlySet": "an array with the tag @uniqueItems",
    "WeakSet": "an array with the tag @uniqueItems",
    "Iterable": "an array",
    "Iterator": "an array",
    "AsyncIterable": "an array",
    "ArrayLike": "an array",
    "RegExp": "a string",
    "URL": "a string with the tag @format uri",
    "Buffer": "a string with the tag @contentEncoding base64",
    "Uint8Array": "a string with the tag @contentEncoding base64",
    "ArrayBuffer": "a string with the tag @contentEncoding base64",
    "Blob": "a string with the tag @contentEncoding base64",
    "File": "a string with the tag @contentEncoding base64",
    "FormData": "an object",
    "Headers": "Record<string, string>",
    "Request": "an object",
    "Response": "an object",
    "ReadableStream": "a string",
    "AbortSignal": "nothing: a call is JSON",
    "Error": "an object with a message",
    "Promise": "the type inside it",
    "PromiseLike": "the type inside it",
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
#: What to do about a type that is computed from others.
_WRITE_OUT = "write out the result: an editor shows it over the name, and `tsc` with `--declaration` for a value"

#: Number of type arguments of the utility types.
_UTILITIES = {
    "Array": 1, "ReadonlyArray": 1, "Record": 2, "Partial": 1, "Required": 1, "Readonly": 1, "Pick": 2, "Omit": 2,
}  # fmt: skip
#: Utility types that select members of unions, or are computed from functions or texts.
_COMPUTED = frozenset(
    {
        "Exclude", "Extract", "NonNullable", "ReturnType", "Parameters", "ConstructorParameters", "InstanceType",
        "Awaited", "NoInfer", "ThisParameterType", "OmitThisParameter", "ThisType", "Uppercase", "Lowercase",
        "Capitalize", "Uncapitalize",
    }
)  # fmt: skip
#: Parts of a tuple that may be absent, or are any number of items.
_NOT_ONE_ITEM = ("optional_parameter", "optional_type", "rest_type")
_UNREADABLE = {
    "asserts": ("an assertion is not a JSON value", "use boolean"),
    "type_predicate": ("a predicate is not a JSON value", "use boolean"),
    "conditional_type": ("conditional types are not evaluated here", _WRITE_OUT),
    "template_literal_type": ("template types are not evaluated here", "use a string with the tag @pattern"),
    "infer_type": ("`infer` is not evaluated here", _WRITE_OUT),
    "this_type": ("`this` is not evaluated here", "use the name of the interface"),
    "member_expression": ("a type of `import(...)` is not read here", 'write: import { Name } from "..."'),
}


class TypeReader(ObjectReader):
    """The types of one program.

    Args:
        program: the parsed texts.
    """

    def __init__(self, program: Program) -> None:
        super().__init__()
        self.program = program
        self.needed: set[Declaration] = set()  # declarations that something asked for
        self._enums: dict[Declaration, dict[str, Any]] = {}
        self._instances = 0
        self._readers: dict[str, Callable[[Node, ts.Scope], ts.Type]] = {
            "predefined_type": self._predefined,
            "literal_type": self._literal,
            "array_type": lambda node, scope: ts.Array(self.type(only_child(node), scope), scope.at(only_child(node))),
            "union_type": lambda node, scope: ts.union([self.type(part, scope) for part in operands(node)]),
            "intersection_type": lambda node, scope: ts.Both(
                tuple(self.type(part, scope) for part in operands(node)), scope.at(node)
            ),
            "object_type": self.literal_object,
            "tuple_type": self._tuple,
            "readonly_type": lambda node, scope: self.type(only_child(node), scope),
            "type_identifier": lambda node, scope: self.applied(node, [], node, scope),
            "identifier": lambda node, scope: self.applied(node, [], node, scope),
            "nested_type_identifier": lambda node, scope: self.applied(node, [], node, scope),
            "generic_type": lambda node, scope: self.applied(
                child_of(node, "name"), parts(child_of(node, "type_arguments")), node, scope
            ),
            "index_type_query": lambda node, scope: self.keyof(
                self.type(only_child(node), scope), scope.at(only_child(node))
            ),
            "lookup_type": self._lookup,
            "type_query": lambda node, scope: self._typeof(only_child(node), scope),
            "function_type": lambda node, scope: ts.Function(node, scope),
            "constructor_type": lambda node, scope: ts.Function(node, scope, construct=True),
        }

    # -- expressions -------------------------------------------------------------------------------------------

    def type(self, node: Node, scope: ts.Scope) -> ts.Type:
        """Evaluate a type expression, with the comment before it."""
        while node.type == "parenthesized_type":
            doc = scope.source.doc(node)
            if doc.constrains or doc.description:
                return ts.documented(self.type(only_child(node), scope), doc, scope.at(node))
            node = only_child(node)
        doc = scope.source.doc(node)
        with self.nested(scope.at(node)):
            reader = self._readers.get(node.type)
            if reader is None:
                refusal = _UNREADABLE.get(node.type)
                reason, hint = refusal or ("this type is not known here", "write it with interfaces and unions")
                raise scope.source.refuse(node, reason, hint)
            return ts.documented(reader(node, scope), doc, scope.at(node))

    # -- names -------------------------------------------------------------------------------------------------

    def named(self, declaration: Declaration, arguments: tuple[ts.Type, ...], at: ts.At) -> ts.Type:
        """Return a declared type, its type arguments completed by their defaults."""
        scope = self._scope(declaration, arguments, at)
        self.needed.add(declaration)
        return ts.Named(declaration, tuple(scope.types.values()), at)

    def _scope(self, declaration: Declaration, arguments: tuple[ts.Type, ...], at: ts.At) -> ts.Scope:
        """Return the type parameters of a declaration, bound to their arguments."""
        own = declaration.space.source
        listed = declaration.node.child_by_field_name("type_parameters")
        children = listed.named_children if listed is not None else []
        parameters = [child for child in children if child.type == "type_parameter"]
        if len(arguments) > len(parameters):
            raise at.source.wrong(
                at.node,
                f"{declaration.name!r} takes {len(parameters)} type arguments, not {len(arguments)}",
                "remove items",
            )
        scope = ts.Scope(declaration.space)
        for index, parameter in enumerate(parameters):
            name = own.text(child_of(parameter, "name"))
            default = parameter.child_by_field_name("value")
            if index < len(arguments):
                value = arguments[index]
            elif default is not None:
                value = self.type(parts(default)[-1], scope)
            else:
                raise at.source.wrong(
                    at.node, f"{declaration.name!r} needs a type for its parameter {name}", f"{declaration.name}<...>"
                )
            scope = scope.with_types({name: value})
        return scope

    def evaluated(self, type_: ts.Named | ts.Deferred) -> ts.Type:
        """Evaluate a name or an expression."""
        if isinstance(type_, ts.Deferred):
            type_.scope.source.begin(type_.node)
            return self.type(type_.node, type_.scope)
        declaration = type_.declaration
        at = ts.At(declaration.space.source, declaration.node)
        self._instances += bool(type_.arguments)
        if self._instances > MAX_TYPE_INSTANCES:
            raise LimitError(
                f"more than {MAX_TYPE_INSTANCES} instances of generic types come of this text",
                hint="a generic type must not refer to itself with ever larger arguments",
                place=at.source.place(at.node),
            )
        scope = self._scope(declaration, type_.arguments, at)
        docs = [at.source.doc(statement) for statement in declaration.statements]
        with self.nested(at):
            if declaration.kind == "enum":
                body = ts.union(ts.Literal.of(value, declaration) for value in self._values(declaration).values())
            elif declaration.kind == "type":
                body = self.type(child_of(declaration.node, "value"), scope)
            else:
                body = self.declared_object(declaration, scope)
        for doc, statement in zip(docs, declaration.statements, strict=True):
            body = ts.documented(body, doc, ts.At(at.source, statement))
        return body

    def applied(self, name: Node, given: list[Node], node: Node, scope: ts.Scope) -> ts.Type:
        """Return the type that a name means: a type parameter, a declared type, a member of an enum, or one of the
        library.

        Args:
            name: the name, which may have dots.
            given: its type arguments.
            node: the whole expression, ``name<given>``.
            scope: its scope.
        """
        path, at = names_in(scope.source, name), scope.at(node)
        text = ".".join(path)
        if text in scope.types:
            return scope.types[text]
        target = self.program.find(path, scope.space)
        if target is not None:
            return self._declared(target, text, tuple(self.type(one, scope) for one in given), at)
        owner = self.program.find(path[:-1], scope.space) if len(path) > 1 else None
        if isinstance(owner, Declaration) and owner.kind == "enum":
            values = self._values(owner)
            if path[-1] not in values:
                reason = f"the enum {'.'.join(path[:-1])} has no member {path[-1]}"
                raise scope.source.wrong(node, reason, "use one of its members")
            self.needed.add(owner)
            return ts.Literal.of(values[path[-1]], owner)
        if text in _UTILITIES:
            return self._utility(text, given, node, scope)
        if text in _COMPUTED:
            raise scope.source.refuse(node, f"{text} is not evaluated here", _WRITE_OUT)
        return self._library_type(text, at)

    def _declared(
        self, found: Declaration | Space | Missing, name: str, arguments: tuple[ts.Type, ...], at: ts.At
    ) -> ts.Type:
        """Return the type of a name that was found, with type arguments.

        Raises:
            InvalidSchemaError: it is no type.
        """
        if isinstance(found, Missing):
            return self._missing(found, name, at)
        if isinstance(found, Space) or found.kind in ("function", "const"):
            raise at.source.wrong(at.node, f"{name!r} is not a type", "name an interface, a type, a class or an enum")
        return self.named(found, arguments, at)

    def _library_type(self, name: str, at: ts.At) -> ts.Refused:
        """Return a type of TypeScript's library: JSON has no values for it, so a schema that needs it is refused.

        Raises:
            InvalidSchemaError: there is no such type.
        """
        if name not in _NO_JSON:
            raise at.source.wrong(at.node, f"the type {name!r} is not declared in this text", "add its declaration")
        return ts.Refused(name, f"JSON has no values of the type {name!r}", f"use {_NO_JSON[name]}", at)

    def _missing(self, found: Missing, name: str, at: ts.At) -> ts.Refused:
        """Return a type whose file was not given."""
        return ts.Refused(
            f"{found.module} {name}",
            f"{name!r} comes from {found.module!r}, which was not given",
            f"give its text, files={{{found.module + '.ts'!r}: ...}}, or put the declaration into this text",
            at,
            unknown=at,
        )

    def _utility(self, name: str, given: list[Node], node: Node, scope: ts.Scope) -> ts.Type:
        """Evaluate ``name<given>``."""
        count = _UTILITIES[name]
        if not given:
            raise scope.source.wrong(node, f"{name} needs type arguments", f"write {name}<...>")
        if len(given) != count:
            reason = f"{name} takes {count} type arguments, not {len(given)}"
            raise scope.source.wrong(node, reason, f"write {name}<{', '.join('KV'[:count])}>")
        first, *rest = (self.type(one, scope) for one in given)
        at, *where = (scope.at(one) for one in given)
        if name in ("Array", "ReadonlyArray"):
            return ts.Array(first, at)
        if name == "Readonly":  # a value in JSON is not changed
            return first
        if name == "Record":
            return self.record(first, rest[0], scope.at(node), at)
        if name == "Pick":
            return self.pick(first, rest[0], at, where[0])
        if name == "Omit":
            return self.omit(first, rest[0], at, where[0])
        return self.partial(first, at, optional=name == "Partial")

    # -- kinds of expressions ----------------------------------------------------------------------------------

    def _predefined(self, node: Node, scope: ts.Scope) -> ts.Type:
        name = scope.source.text(node)
        if "symbol" in name:
            return ts.SYMBOL if name == "symbol" else self._library_type("symbol", scope.at(node))
        return ts.Keyword(name)

    def _literal(self, node: Node, scope: ts.Scope) -> ts.Type:
        """Return the type of a literal."""
        child = only_child(node)
        if child.type == "undefined":
            return ts.UNDEFINED
        if child.type == "null":
            return ts.NULL
        if child.type == "number" and scope.source.text(child).endswith("n"):
            return self._library_type("bigint", scope.at(child))
        return ts.Literal.of(literal(child, scope.source))

    def _lookup(self, node: Node, scope: ts.Scope) -> ts.Type:
        owner, index = parts(node)
        target = self.type(owner, scope)
        return self.lookup(target, self.type(index, scope), scope.at(owner), scope.at(index))

    def _tuple(self, node: Node, scope: ts.Scope) -> ts.Type:
        """Return the type of ``[A, B]`` or ``[a: A, b: B]``.

        Raises:
            UnsupportedSchemaError: an item may be absent (``B?``), or there may be more of them (``...C[]``).
        """
        elements: list[ts.Element] = []
        for child in parts(node):
            inner, label, doc = child, None, None
            if child.type == "required_parameter":
                inner, label = only_child(child_of(child, "type")), scope.source.text(child.children[0])
                doc = scope.source.doc(child)
            if child.type in _NOT_ONE_ITEM or (label is not None and label.startswith("...")):
                hint = 'write T[], or the tag @schema {"prefixItems": [...]}'
                raise scope.source.refuse(child, "optional and further items of a tuple are not evaluated here", hint)
            elements.append(ts.Element(self.type(inner, scope), label, doc, scope.at(child)))
        return ts.Tuple(tuple(elements))

    # -- values ------------------------------------------------------------------------------------------------

    def _values(self, declaration: Declaration) -> dict[str, Any]:
        if declaration not in self._enums:
            self._enums[declaration] = enum_values(declaration)
        return self._enums[declaration]

    def _typeof(self, node: Node, scope: ts.Scope) -> ts.Type:
        """Return the type of ``typeof a.b``: of a declared value, or of a property of one."""
        at = scope.at(node)
        path = names_in(scope.source, node)
        if node.type not in ("identifier", "member_expression"):
            return ts.unknown("the type of this is not evaluated", "write the type itself", at)
        found = self.program.find(path, scope.space, values=True)
        if isinstance(found, Missing):
            return self._missing(found, ".".join(path), at)
        if not isinstance(found, Declaration):
            if node.type == "member_expression":  # no namespace has that value: `b` is a property of `a`
                owner, name = parts(node)
                return self.lookup(self._typeof(owner, scope), ts.Literal.of(scope.source.text(name)), at, at)
            reason = f"there are no values to take the type of: {path[0]!r} is not declared in this text"
            raise at.source.wrong(at.node, reason, "write the type itself")
        return self._of_value(found, ".".join(path))

    def _of_value(self, declaration: Declaration, name: str) -> ts.Type:
        """Return the type of a declared value: as it is annotated, or that of the expression of a ``const``."""
        self.needed.add(declaration)
        scope, node = ts.Scope(declaration.space), declaration.node
        if declaration.kind == "function":
            return ts.Function(declaration.nodes[-1], scope)
        if declaration.kind != "const":
            what = "an enum" if declaration.kind == "enum" else "a class"
            return ts.unknown(f"the type of {what} itself is not evaluated", "use its name", scope.at(node))
        annotation, value = node.child_by_field_name("type"), node.child_by_field_name("value")
        if annotation is not None:
            return self.type(only_child(annotation), scope)
        if value is not None and value.type in ("arrow_function", "function_expression"):
            return ts.Function(value, scope)
        if value is None or node.parent is None or not has_word(node.parent, "const"):  # `let` or `var`
            return ts.unknown(f"the value of {name!r} may change", "write its type", scope.at(node))
        return constant(value, scope)
