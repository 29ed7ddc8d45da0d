"""Evaluation of TypeScript's type expressions.

Evaluation is lazy: a named type, a property's type and an intersection are evaluated when something looks into them, so
`interface Tree { root: Pick<Tree, "value"> }` is not a circle, and a type that is not needed costs nothing
and is never refused.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from toolgrammar.core.errors import LimitError, SchemaError

from . import jsdoc
from . import model as ts
from .modules import Declaration, Missing, Program, Space, names_in
from .objects import ObjectTypes
from .relations import Relations
from .source import Source, child_of, only_child, operands, parts
from .utilities import UTILITIES, Utilities
from .values import ConstantValues

if TYPE_CHECKING:
    from tree_sitter import Node

MAX_TYPE_DEPTH = 100
MAX_TYPE_INSTANCES = 500
MAX_TEMPLATE_VALUES = 64

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

#: Utility types that are computed from functions or texts.
_COMPUTED = frozenset(
    {
        "ReturnType", "Parameters", "ConstructorParameters", "InstanceType", "Awaited", "NoInfer", "ThisParameterType",
        "OmitThisParameter", "ThisType", "Uppercase", "Lowercase", "Capitalize", "Uncapitalize",
    }
)  # fmt: skip
_UNREADABLE = {
    "asserts": ("an assertion is not a JSON value", "use boolean"),
    "type_predicate": ("a predicate is not a JSON value", "use boolean"),
    "conditional_type": ("conditional types are not evaluated here", _WRITE_OUT),
    "infer_type": ("`infer` is not evaluated here", _WRITE_OUT),
}


class TypeReader:
    """The types of one program.

    Args:
        program: the parsed texts.
    """

    def __init__(self, program: Program) -> None:
        self.program = program
        self.objects = ObjectTypes(self)
        self.relations = Relations(self)
        self.values = ConstantValues(self)
        self.utilities = Utilities(self)
        self.read: set[Declaration] = set()  # declarations that something asked for
        self._known: dict[ts.Type, ts.Type] = {}
        self._open: set[ts.Type] = set()
        self._instances = 0
        self._depth = 0
        self._readers: dict[str, Callable[[Node, ts.Scope], ts.Type]] = {
            "predefined_type": self._predefined,
            "literal_type": self._literal,
            "array_type": lambda node, scope: ts.Array(self.type(only_child(node), scope), scope.at(only_child(node))),
            "union_type": lambda node, scope: ts.union([self.type(part, scope) for part in operands(node)]),
            "intersection_type": self._intersection,
            "object_type": self.objects.literal,
            "tuple_type": self._tuple,
            "readonly_type": lambda node, scope: self.utilities.readonly(self.type(only_child(node), scope)),
            "type_identifier": self._name,
            "identifier": self._name,
            "nested_type_identifier": self._qualified,
            "member_expression": self._member,
            "generic_type": self._generic,
            "index_type_query": lambda node, scope: self.objects.keyof(
                self.type(only_child(node), scope), scope.at(only_child(node))
            ),
            "lookup_type": self._lookup,
            "template_literal_type": self._template,
            "type_query": lambda node, scope: self.values.typeof(only_child(node), scope),
            "this_type": self._this,
            "function_type": lambda node, scope: ts.Function(node, scope),
            "constructor_type": lambda node, scope: ts.Function(node, scope, construct=True),
        }

    # -- expressions -------------------------------------------------------------------------------------------

    def type(self, node: Node, scope: ts.Scope) -> ts.Type:
        """Evaluate a type expression, with the comment before it."""
        while node.type == "parenthesized_type":
            doc = self.doc(node, scope.source)
            if doc.constrains or doc.description:
                return ts.documented(self.type(only_child(node), scope), doc, scope.at(node))
            node = only_child(node)
        doc = self.doc(node, scope.source)
        with self.nested(scope.at(node)):
            reader = self._readers.get(node.type)
            if reader is None:
                refusal = _UNREADABLE.get(node.type)
                reason, hint = refusal or ("this type is not known here", "write it with interfaces and unions")
                raise scope.source.refuse(node, reason, hint)
            return ts.documented(reader(node, scope), doc, scope.at(node))

    def later(self, node: Node, scope: ts.Scope) -> ts.Deferred:
        """Return a type expression to be evaluated when it is needed."""
        scope.source.postpone(node)
        return ts.Deferred(node, scope)

    def doc(self, node: Node, source: Source) -> jsdoc.Doc:
        """Return the comment before a node, parsed."""
        comment = source.comment_before(node)
        if comment is None:
            return jsdoc.Doc()
        if isinstance(comment, str):
            return jsdoc.Doc(description=comment)
        try:
            return jsdoc.parse(source.text(comment))
        except jsdoc.JsDocError as error:
            raise source.wrong(comment, str(error), "see docs/tools.md for the tags") from None

    @contextmanager
    def nested(self, at: ts.At) -> Iterator[None]:
        """Count one level of nesting.

        Raises:
            LimitError: there are too many.
        """
        if self._depth >= MAX_TYPE_DEPTH:
            raise LimitError(
                f"types are nested more than {MAX_TYPE_DEPTH} levels deep",
                hint="give inner types names; a type must not be infinitely recursive",
                place=at.source.place(at.node),
            )
        self._depth += 1
        try:
            yield
        finally:
            self._depth -= 1

    # -- evaluation --------------------------------------------------------------------------------------------

    def resolve(self, type_: ts.Type, at: ts.At | None = None) -> ts.Type:
        """Follow names and expressions that are not evaluated yet to the type.

        Args:
            type_: any type.
            at: where it is needed, for the error that it is defined by itself.
        """
        seen: set[ts.Type] = set()
        while isinstance(type_, (ts.Named, ts.Deferred, ts.Both)):
            if type_ in seen or type_ in self._open:
                raise self._circle(type_, at)
            seen.add(type_)
            type_ = self.step(type_)
        return type_

    def step(self, type_: ts.Named | ts.Deferred | ts.Both) -> ts.Type:
        """Follow a name or an expression by one step."""
        result = self._known.get(type_)
        if result is None:
            self._open.add(type_)
            try:
                result = self._known[type_] = self._evaluated(type_)
            finally:
                self._open.discard(type_)
        return result

    def bare(self, type_: ts.Type, at: ts.At | None = None) -> ts.Type:
        """Follow names and comments to the type."""
        type_ = self.resolve(type_, at)
        while isinstance(type_, ts.Documented):
            type_ = self.resolve(type_.type, at)
        return type_

    def settled(self, type_: ts.Type) -> ts.Type:
        """Return a property's type evaluated as far as the next name, so that equal types are found to be equal."""
        while isinstance(type_, ts.Deferred) and type_ not in self._open:
            type_ = self.step(type_)
        return type_

    def members(self, type_: ts.Type, at: ts.At | None = None) -> list[ts.Type]:
        """Return the members of a union, each a name or comment still where it is one alone; ``boolean`` is two."""
        members: list[ts.Type] = []
        bare = self.bare(type_, at)
        if isinstance(bare, ts.Union):
            for member in bare.members:
                members += self.members(member, at)
            return members
        if bare == ts.NEVER:
            return []
        if bare == ts.Keyword("boolean"):
            return [ts.Literal.of(True), ts.Literal.of(False)]
        return [type_]

    def distributed(self, type_: ts.Type, at: ts.At | None = None) -> list[ts.Type]:
        """Return the members of a union for TypeScript, which drops the literals beside ``string`` or ``number``."""
        members = self.members(type_, at)
        wide = {bare.name for one in members if isinstance(bare := self._named(one), ts.Keyword)}
        return [
            one
            for one in members
            if not (isinstance(bare := self.bare(one), ts.Literal) and bare.kind in wide)
            and not (isinstance(bare, ts.Object) and self.impossible(bare))
        ]

    def impossible(self, type_: ts.Object) -> bool:
        """Return True if an intersection has contradicting values for a property: it is ``never`` then."""
        for one in type_.properties:
            if (
                isinstance(one.type, ts.Both)
                and not one.type.indexed
                and not one.optional
                and one.type not in self._open
            ):
                parts_ = [self.bare(member) for part in one.type.members for member in self.members(part)]
                if self.bare(one.type) == ts.NEVER and any(isinstance(part, ts.Literal) for part in parts_):
                    return True
        return False

    def _named(self, type_: ts.Type) -> ts.Type:
        """Follow names and comments to the type, but not into an intersection, since ``string & {}`` keeps literals."""
        while isinstance(type_, (ts.Named, ts.Deferred, ts.Documented)):
            type_ = type_.type if isinstance(type_, ts.Documented) else self.step(type_)
        return type_

    def undefined(self, type_: ts.Type) -> bool:
        """Return True if a value may be ``undefined``, which JSON has no word for."""
        bare = self.bare(type_)
        if isinstance(bare, ts.Union):
            return any(self.undefined(member) for member in bare.members)
        return bare in (ts.UNDEFINED, ts.VOID)

    def named(self, declaration: Declaration, arguments: tuple[ts.Type, ...], at: ts.At) -> ts.Type:
        """Return a declared type, its type arguments completed by their defaults."""
        scope = self._scope(declaration, arguments, at)
        self.read.add(declaration)
        return ts.Named(declaration, tuple(scope.types.values()), at)

    def _scope(self, declaration: Declaration, arguments: tuple[ts.Type, ...], at: ts.At) -> ts.Scope:
        """Return the type parameters of a declaration, bound to their arguments."""
        own = declaration.space.source
        given = [
            child
            for node in declaration.nodes[:1]
            if (parameters := node.child_by_field_name("type_parameters")) is not None
            for child in parameters.named_children
            if child.type == "type_parameter"
        ]
        if len(arguments) > len(given):
            raise at.source.wrong(
                at.node,
                f"{declaration.name!r} takes {len(given)} type arguments, not {len(arguments)}",
                "remove items",
            )
        scope = ts.Scope(declaration.space)
        for index, parameter in enumerate(given):
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

    def _evaluated(self, type_: ts.Named | ts.Deferred | ts.Both) -> ts.Type:
        if isinstance(type_, ts.Both):
            with self.nested(type_.at):
                return self.objects.intersections.evaluated(type_)
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
        docs = [self.doc(statement, at.source) for statement in declaration.statements]
        with self.nested(at):
            if declaration.kind == "enum":
                body = self.values.enum(declaration)
            elif declaration.kind == "type":
                body = self.type(child_of(declaration.node, "value"), scope)
            else:
                body = self.objects.declared(declaration, scope.with_types({"this": type_}))
        for doc, statement in zip(docs, declaration.statements, strict=True):
            body = ts.documented(body, doc, ts.At(at.source, statement))
        return body

    def _circle(self, type_: ts.Type, at: ts.At | None) -> SchemaError:
        if isinstance(type_, ts.Named):
            name = repr(type_.declaration.name)
            at = at or ts.At(type_.declaration.space.source, type_.declaration.node)
        else:
            name = "here"
            if at is None:
                at = type_.at if isinstance(type_, ts.Both) else type_.scope.at(type_.node)  # type: ignore[union-attr]
        return at.source.wrong(at.node, f"the type {name} is defined by itself", "break the circle")

    # -- kinds of expressions ----------------------------------------------------------------------------------

    def _predefined(self, node: Node, scope: ts.Scope) -> ts.Type:
        name = scope.source.text(node)
        if "symbol" in name:
            return ts.SYMBOL if name == "symbol" else self.no_json("symbol", scope.at(node))
        return ts.Keyword(name)

    def _literal(self, node: Node, scope: ts.Scope) -> ts.Type:
        child = only_child(node)
        if child.type == "undefined":
            return ts.UNDEFINED
        if child.type == "null":
            return ts.NULL
        if child.type == "number" and scope.source.text(child).endswith("n"):
            return self.no_json("bigint", scope.at(child))
        return ts.Literal.of(self.values.literal(child, scope.source))

    def _name(self, node: Node, scope: ts.Scope) -> ts.Type:
        name = scope.source.text(node)
        if name in scope.types:
            return scope.types[name]
        target = self.program.find((name,), scope.space)
        if target is not None:
            return self._found(target, name, (), scope.at(node))
        if name in UTILITIES:
            raise scope.source.wrong(node, f"{name} needs type arguments", f"write {name}<...>")
        if name == "undefined":
            return ts.UNDEFINED
        return self.no_json(name, scope.at(node))

    def _qualified(self, node: Node, scope: ts.Scope) -> ts.Type:
        return self._dotted(names_in(scope.source, node), (), node, scope)

    def _member(self, node: Node, scope: ts.Scope) -> ts.Type:
        """Evaluate ``import("./file").Name``."""
        names: list[str] = []
        while node.type == "member_expression":
            names.insert(0, scope.source.text(parts(node)[-1]))
            node = parts(node)[0]
        call = parts(node)
        if node.type == "call_expression" and call[0].type == "import" and call[1].type == "arguments":
            specifier = scope.source.string(only_child(call[1]))
            module = self.program.module(specifier, scope.space)
            target = Missing(specifier) if module is None else self.program.inside(module, tuple(names))
            if target is not None:
                return self._found(target, names[-1], (), scope.at(node))
        raise scope.source.refuse(node, "this type is not known here", "write the type itself")

    def _dotted(self, path: tuple[str, ...], arguments: tuple[ts.Type, ...], node: Node, scope: ts.Scope) -> ts.Type:
        target = self.program.find(path, scope.space)
        if target is None:
            owner = self.program.find(path[:-1], scope.space)
            if isinstance(owner, Declaration) and owner.kind == "enum":
                values = self.values.enum_values(owner)
                if path[-1] not in values:
                    raise scope.source.wrong(
                        node, f"the enum {'.'.join(path[:-1])} has no member {path[-1]}", "use one of its members"
                    )
                self.read.add(owner)
                return ts.Literal.of(values[path[-1]], owner)
            return self.no_json(".".join(path), scope.at(node))
        return self._found(target, ".".join(path), arguments, scope.at(node))

    def _found(
        self, found: Declaration | Space | Missing, name: str, arguments: tuple[ts.Type, ...], at: ts.At
    ) -> ts.Type:
        if isinstance(found, Missing):
            return self.missing(found, name, at)
        if isinstance(found, Space) or found.kind in ("function", "const"):
            raise at.source.wrong(at.node, f"{name!r} is not a type", "name an interface, a type, a class or an enum")
        return self.named(found, arguments, at)

    def _generic(self, node: Node, scope: ts.Scope) -> ts.Type:
        path = names_in(scope.source, child_of(node, "name"))
        given = parts(child_of(node, "type_arguments"))
        name = ".".join(path)
        target = self.program.find(path, scope.space)
        if target is not None:
            return self._found(target, name, tuple(self.type(one, scope) for one in given), scope.at(node))
        if name in UTILITIES:
            return self.utilities.apply(name, given, node, scope)
        if name in _COMPUTED:
            raise scope.source.refuse(node, f"{name} is not evaluated here", _WRITE_OUT)
        return self.no_json(name, scope.at(node), tuple(self.type(one, scope) for one in given))

    def reference(self, name: str, arguments: tuple[ts.Type, ...], at: ts.At, scope: ts.Scope) -> ts.Type:
        """Return the type of a dotted name, with its type arguments."""
        target = self.program.find(tuple(name.split(".")), scope.space)
        return self._found(target, name, arguments, at) if target is not None else self.no_json(name, at, arguments)

    def no_json(self, name: str, at: ts.At, arguments: tuple[ts.Type, ...] = ()) -> ts.Refused:
        """Return a type of TypeScript's library that JSON has no values for.

        Raises:
            InvalidSchemaError: there is no such type.
        """
        if name not in _NO_JSON:
            raise at.source.wrong(at.node, f"the type {name!r} is not declared in this text", "add its declaration")
        return ts.Refused(name, f"JSON has no values of the type {name!r}", f"use {_NO_JSON[name]}", at, arguments)

    def missing(self, found: Missing, name: str, at: ts.At) -> ts.Refused:
        """Return a type whose file was not given."""
        return ts.Refused(
            f"{found.module} {name}",
            f"{name!r} comes from {found.module!r}, which was not given",
            f"give its text, files={{{found.module + '.ts'!r}: ...}}, or put the declaration into this text",
            at,
            unknown=at,
        )

    def _lookup(self, node: Node, scope: ts.Scope) -> ts.Type:
        owner, index = parts(node)
        target = self.type(owner, scope)
        return self.objects.lookup(target, self.type(index, scope), scope.at(owner), scope.at(index))

    def _this(self, node: Node, scope: ts.Scope) -> ts.Type:
        if "this" not in scope.types:
            raise scope.source.refuse(node, "`this` is not a JSON value", "use the interface's name")
        return scope.types["this"]

    def _intersection(self, node: Node, scope: ts.Scope) -> ts.Type:
        return ts.Both(tuple(self.type(part, scope) for part in operands(node)), scope.at(node))

    def _tuple(self, node: Node, scope: ts.Scope) -> ts.Type:
        elements: list[ts.Element] = []
        for child in parts(node):
            at = scope.at(child)
            doc = self.doc(child, scope.source) if child.type.endswith("_parameter") else None
            inner, optional, spread, label = child, False, False, None
            if child.type in ("required_parameter", "optional_parameter"):
                optional = child.type == "optional_parameter"
                name = child.child_by_field_name("name") or child_of(child, "pattern")
                spread = name.type == "rest_pattern"
                label = None if spread else scope.source.text(name)
                inner = only_child(child_of(child, "type"))
            elif child.type in ("optional_type", "rest_type"):
                optional, spread = child.type == "optional_type", child.type == "rest_type"
                inner = only_child(child)
            type_ = self.type(inner, scope)
            if spread:
                elements += self._spread(type_, at, scope.at(inner))
            else:
                elements.append(ts.Element(type_, optional, False, label, doc, at))
        if len(elements) == 1 and elements[0].rest:
            return ts.Array(elements[0].type, elements[0].at)
        return ts.Tuple(tuple(elements))

    def _spread(self, type_: ts.Type, at: ts.At, inner: ts.At) -> list[ts.Element]:
        """Return the elements of ``...T`` in a tuple."""
        bare = self.bare(type_, inner)
        if isinstance(bare, ts.Tuple):
            return list(bare.elements)
        if isinstance(bare, ts.Array):
            return [ts.Element(bare.item, rest=True, at=at)]
        if bare == ts.ANY:
            return [ts.Element(bare, rest=True, at=at)]
        raise inner.source.wrong(inner.node, "only an array or a tuple can be spread", "write ...T[]")

    def _template(self, node: Node, scope: ts.Scope) -> ts.Type:
        made: list[str | ts.Type] = []
        start = node.start_byte + 1
        for child in node.named_children:
            if child.type == "template_type":
                made.append(scope.source.bytes[start : child.start_byte].decode("utf-8", "surrogatepass"))
                made.append(self.type(only_child(child), scope))
                start = child.end_byte
        made.append(scope.source.bytes[start : node.end_byte - 1].decode("utf-8", "surrogatepass"))
        return self.template(made, scope.at(node))

    def template(self, made: list[str | ts.Type], at: ts.At) -> ts.Type:
        """Return the strings of a template; literals while they are few."""
        flat: list[str | ts.Type] = []
        choices: list[list[str]] = []
        finite = True
        for part in made:
            if isinstance(part, str):
                flat.append(part)
                choices.append([part])
                continue
            members = [self.bare(member) for member in self.members(part, at)]
            if len(members) == 1 and isinstance(members[0], ts.Template):
                flat += members[0].parts
                finite = False
                continue
            flat.append(part)
            texts = [ts.text_of(member) for member in members]
            if None in texts:
                finite = False
            else:
                choices.append([text for text in texts if text is not None])
        count = 1
        for choice in choices:
            count *= len(choice)
        if finite and count <= MAX_TEMPLATE_VALUES:
            return ts.union(ts.Literal.of("".join(chosen)) for chosen in itertools.product(*choices))
        if flat == ["", ts.STRING, ""]:
            return ts.STRING
        return ts.Template(tuple(part for part in flat if part != ""), at)
