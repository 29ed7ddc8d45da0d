"""TypeScript's types as JSON Schema, under TypeScript's own reading: which values of JSON does a type admit?

Every named type becomes an entry of ``$defs`` and is referred to, so recursion costs nothing. What joins or takes apart
objects (``extends``, ``&``, ``Pick``, ``keyof``, mapped types, ...) is worked out, so that the result has plain
properties. A type that JSON has no values for (functions, dates, symbols, ...) is refused with its line and column;
nothing becomes "any" unless the text says ``any`` or ``unknown``.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ..core.errors import LimitError
from . import jsdoc
from .typescript_names import Circle, Scope, Typed
from .typescript_objects import ObjectTypes
from .typescript_shapes import Shape, Template, joined, literal_schema, union_schema
from .typescript_source import child_of, only_child

if TYPE_CHECKING:
    from tree_sitter import Node

MAX_TYPE_DEPTH = 100
MAX_TYPE_ALTERNATIVES = 256

_UNREADABLE = {
    "function_type": ("a function is no JSON value", "leave it out, or give its result's type"),
    "constructor_type": ("a constructor is no JSON value", "leave it out"),
    "conditional_type": ("conditional types are not evaluated", "write the type that it comes to"),
    "infer_type": ("conditional types are not evaluated", "write the type that it comes to"),
    "type_query": ("there are no values to take the type of", "write the type itself"),
    "this_type": ("`this` is no JSON value", "use the interface's name"),
    "asserts": ("an assertion is no JSON value", "use boolean"),
    "type_predicate": ("a predicate is no JSON value", "use boolean"),
}


class TypeReader(ObjectTypes):
    """Type expressions of one text."""

    def type(self, node: Node, scope: Scope) -> Typed:
        """What a type expression comes to, with what the comment before it says."""
        comment = self.doc(node)
        self._depth += 1
        if self._depth > MAX_TYPE_DEPTH:
            raise LimitError(
                f"types are nested more than {MAX_TYPE_DEPTH} levels deep",
                hint="give inner types names of their own",
                place=self.source.place(node),
            )
        try:
            typed = self._type(node, scope)
        except Circle as circle:
            if self._open:  # whoever reads the named type may know better
                raise
            raise self.source.wrong(circle.node, str(circle), "break the circle") from None
        finally:
            self._depth -= 1
        return self.documented(typed, comment, node)

    def value(self, node: Node, scope: Scope, where: str) -> dict[str, Any] | bool:
        """A type whose value must be there."""
        typed = self.type(node, scope)
        if typed.undefined:
            raise self.source.refuse(node, f"JSON has no `undefined` {where}", "use null")
        return typed.schema

    # -- expressions -------------------------------------------------------------------------------------------

    def _type(self, node: Node, scope: Scope) -> Typed:
        kind = node.type
        readers: dict[str, Callable[[Node, Scope], Typed]] = {
            "predefined_type": self._predefined,
            "literal_type": self._literal_type,
            "array_type": self._array,
            "union_type": self._union,
            "intersection_type": self._intersection,
            "object_type": self._object,
            "tuple_type": self._tuple,
            "type_identifier": self._name,
            "nested_type_identifier": self._qualified,
            "generic_type": self._generic,
            "index_type_query": self._keyof,
            "lookup_type": self._lookup,
            "template_literal_type": self._template,
        }
        if kind in ("parenthesized_type", "readonly_type"):
            return self.type(only_child(node), scope)
        if kind in readers:
            return readers[kind](node, scope)
        reason, hint = _UNREADABLE.get(kind, ("this type is not known here", "write it with interfaces and unions"))
        raise self.source.refuse(node, reason, hint)

    def _predefined(self, node: Node, scope: Scope) -> Typed:
        name = self.source.text(node)
        if name in ("string", "number", "boolean", "object"):
            return Typed({"type": name})
        if name in ("any", "unknown"):
            return Typed({})
        if name == "never":
            return Typed(False)
        if name == "void":
            return Typed(False, undefined=True)
        raise self._no_json(node, "symbol" if "symbol" in name else name)

    def _literal_type(self, node: Node, scope: Scope) -> Typed:
        child = only_child(node)
        if child.type == "undefined":
            return Typed(False, undefined=True)
        value = self.literal(child)
        return Typed({"type": "null"} if value is None else literal_schema([value]))

    def _array(self, node: Node, scope: Scope) -> Typed:
        return Typed(_array_of(self.value(only_child(node), scope, "in an array")))

    def _union(self, node: Node, scope: Scope) -> Typed:
        members: list[Typed] = []
        for part in _operands(node):
            members.append(self.type(part, scope))
        return Typed(union_schema([typed.schema for typed in members]), any(typed.undefined for typed in members))

    def _intersection(self, node: Node, scope: Scope) -> Typed:
        parts = [self.type(part, scope) for part in _operands(node)]
        schemas = [typed.schema for typed in parts if typed.schema != {}]
        kinds = [self.kinds(schema) for schema in schemas]
        if any(kind != frozenset({"object"}) for kind in kinds):
            # `string & {}` keeps an editor from folding a union of literals into string; it means string.
            empty = {"type": "object", "properties": {}}
            schemas = [schema for schema in schemas if self._resolved(schema, node) != empty] or schemas
            kinds = [self.kinds(schema) for schema in schemas]
        undefined = all(typed.undefined for typed in parts)
        if len(schemas) < 2:
            return Typed(schemas[0] if schemas else {}, undefined)
        if all(kind == frozenset({"object"}) for kind in kinds):
            options = [self._shapes(schema, node) for schema in schemas]
            count = 1
            for option in options:
                count *= len(option)
            if count > MAX_TYPE_ALTERNATIVES:
                raise LimitError(
                    f"the intersection has more than {MAX_TYPE_ALTERNATIVES} alternatives",
                    hint="intersect smaller unions",
                    place=self.source.place(node),
                )
            merged = []
            for chosen in itertools.product(*options):
                merged.append(functools.reduce(Shape.join, chosen).schema())
            return Typed(union_schema(merged), undefined)
        if not frozenset.intersection(*kinds):
            raise self.source.refuse(
                node, "the intersection has no JSON values", "leave out the part that only marks the type"
            )
        return Typed(functools.reduce(joined, schemas), undefined)

    def _object(self, node: Node, scope: Scope) -> Typed:
        return Typed(self._members(node, scope).schema())

    def _tuple(self, node: Node, scope: Scope) -> Typed:
        items: list[Any] = []
        least: int | None = None
        rest: Any = None
        for element in node.named_children:
            if element.type == "comment":
                continue
            if rest is not None:
                raise self.source.refuse(
                    element, "items after the rest of a tuple have no place in JSON Schema", "put the rest last"
                )
            comment = self.doc(element) if element.type.endswith("_parameter") else jsdoc.Doc()
            inner, optional, spread, label = element, False, False, None
            if element.type in ("required_parameter", "optional_parameter"):
                optional = element.type == "optional_parameter"
                name = (
                    child_of(element, "name") if element.child_by_field_name("name") else child_of(element, "pattern")
                )
                spread = name.type == "rest_pattern"
                label = None if spread else self.source.text(name)
                inner = only_child(child_of(element, "type"))
            elif element.type in ("optional_type", "rest_type"):
                optional, spread = element.type == "optional_type", element.type == "rest_type"
                inner = only_child(element)
            if spread:
                rest = self._spread(inner, scope, items)
                continue
            schema = self.value(inner, scope, "in a tuple") if not optional else self.type(inner, scope).schema
            schema = self.documented(Typed(schema), comment, element).schema
            if label is not None and isinstance(schema, dict):
                schema = {"title": label, **schema}
            if optional and least is None:
                least = len(items)
            items.append(schema)
        least = len(items) if least is None else least
        if not items and rest is not None:
            return Typed(_array_of(rest))
        schema_: dict[str, Any] = {"type": "array"}
        if items:
            schema_["prefixItems"] = items
            if least:
                schema_["minItems"] = least
        if rest is None:
            schema_["maxItems"] = len(items)
        elif rest != {}:
            schema_["items"] = rest
        return Typed(schema_)

    def _spread(self, node: Node, scope: Scope, items: list[Any]) -> Any:
        """The items of ``...T[]``; a spread tuple of a fixed length is written out into ``items``."""
        schema = self._resolved(self.value(node, scope, "in a tuple"), node)
        if not isinstance(schema, dict) or schema.get("type") != "array":
            raise self.source.wrong(node, "only an array or a tuple can be spread", "write ...T[]")
        if "prefixItems" in schema:
            if schema.get("maxItems") != len(schema["prefixItems"]) or schema.get("minItems") != schema["maxItems"]:
                raise self.source.refuse(node, "a tuple of no fixed length cannot be spread", "write its items out")
            items += schema["prefixItems"]
            return None
        return schema.get("items", {})

    def _name(self, node: Node, scope: Scope) -> Typed:
        name = self.source.text(node)
        if name in scope:
            return scope[name]
        if name in self.source.declarations:
            return self.named(name, node)
        if name in _UTILITIES:
            raise self.source.wrong(node, f"{name} needs type arguments", f"write {name}<...>")
        raise self._no_json(node, name)

    def _qualified(self, node: Node, scope: Scope) -> Typed:
        owner, name = self.source.text(child_of(node, "module")), self.source.text(child_of(node, "name"))
        declaration = self.source.declarations.get(owner)
        if declaration is not None and declaration.kind == "enum":
            values = self._enum_values(declaration)
            if name not in values:
                raise self.source.wrong(node, f"the enum {owner} has no member {name}", "use one of its members")
            return Typed(literal_schema([values[name]]))
        if name in self.source.declarations:
            return self.named(name, node)
        raise self._no_json(node, f"{owner}.{name}")

    def _generic(self, node: Node, scope: Scope) -> Typed:
        name_node = child_of(node, "name")
        name = self.source.text(name_node).rpartition(".")[2]
        arguments = [child for child in child_of(node, "type_arguments").named_children if child.type != "comment"]
        if name in self.source.declarations:
            return self.named(name, node, tuple(self.type(argument, scope) for argument in arguments))
        if name not in _UTILITIES:
            raise self._no_json(node, name)
        count = _UTILITIES[name]
        if len(arguments) != count:
            raise self.source.wrong(
                node,
                f"{name} takes {count} type arguments, not {len(arguments)}",
                f"write {name}<{', '.join('KV'[:count])}>",
            )
        if name in ("Array", "ReadonlyArray"):
            return Typed(_array_of(self.value(arguments[0], scope, "in an array")))
        first = self.type(arguments[0], scope)
        if name == "Record":
            value = self.type(arguments[1], scope)
            keys = self._names_in(first.schema, arguments[0])
            return Typed(Shape.record(keys, value.schema, optional=value.undefined).schema())
        if name in ("Exclude", "Extract", "NonNullable"):
            return self._filtered(name, first, arguments, scope)
        if name in ("Pick", "Omit"):
            chosen = self._names_in(self.type(arguments[1], scope).schema, arguments[1])
            shape = self._one_shape(first.schema, arguments[0])
            if name == "Pick" and (missing := [key for key in chosen.names if not shape.has(key)]):
                raise self.source.wrong(arguments[1], f"there is no property {missing[0]!r} to pick", "check its name")
            return Typed((shape.pick(chosen) if name == "Pick" else shape.omit(chosen)).schema())
        shapes = self._shapes(first.schema, arguments[0])
        if name == "Partial":
            shapes = [shape.with_required(()) for shape in shapes]
        elif name == "Required":
            shapes = [shape.with_required(shape.properties) for shape in shapes]
        return Typed(union_schema([shape.schema() for shape in shapes]))

    def _filtered(self, name: str, first: Typed, arguments: list[Node], scope: Scope) -> Typed:
        """``Exclude``, ``Extract`` and ``NonNullable``: members of a union."""
        members = self._members_of(first.schema, arguments[0])
        if name == "NonNullable":
            return Typed(union_schema([member for member in members if member != {"type": "null"}]))
        other = self._members_of(self.type(arguments[1], scope).schema, arguments[1])

        def within(member: Any) -> bool:
            if any(member == one for one in other):
                return True
            if isinstance(member, dict) and "const" in member:
                return any(
                    isinstance(o, dict) and set(o) == {"type"} and self.kinds(member) <= self.kinds(o) for o in other
                )
            if self.kinds(member) & frozenset().union(*(self.kinds(o) for o in other)) and "const" not in member:
                raise self.source.refuse(arguments[1], f"{name} of such types is not evaluated", "write out the union")
            return False

        return Typed(union_schema([member for member in members if within(member) == (name == "Extract")]))

    def _keyof(self, node: Node, scope: Scope) -> Typed:
        inner = only_child(node)
        shape = self._one_shape(self.type(inner, scope).schema, inner)
        return Typed(shape.keys_schema())

    def _lookup(self, node: Node, scope: Scope) -> Typed:
        owner, index = (child for child in node.named_children if child.type != "comment")
        resolved = self._resolved(self.type(owner, scope).schema, owner)
        key = self.type(index, scope).schema
        if isinstance(resolved, dict) and resolved.get("type") == "array":
            parts = list(resolved.get("prefixItems", ()))
            if key == {"type": "number"}:
                extra = [resolved["items"]] if "items" in resolved else []
                return Typed(union_schema([*parts, *extra]) if parts or extra else {})
            position = key.get("const") if isinstance(key, dict) else None
            if isinstance(position, int) and 0 <= position < len(parts):
                return Typed(parts[position])
            raise self.source.wrong(index, "there is no such item", "use a position of the tuple, or number")
        shape = self._one_shape(resolved, owner)
        names = self._names_in(key, index)
        found = [shape.value_of(name) for name in names.names]
        if names.anything or names.patterns:
            found.append(shape.additional if shape.additional is not None else None)
        if any(value is None for value in found):
            raise self.source.wrong(index, "there is no such property", "check its name")
        return Typed(
            union_schema([value for value in found if value is not None]),
            any(name not in shape.required for name in names.names if name in shape.properties),
        )

    def _template(self, node: Node, scope: Scope) -> Typed:
        template = Template()
        at = node.start_byte + 1
        for child in node.named_children:
            if child.type != "template_type":
                continue
            template = template.then_text(self._raw(at, child.start_byte))
            inner = only_child(child)
            schema = self.type(inner, scope).schema
            part = Template.of([self._resolved(m, inner) for m in self._members_of(schema, inner)], self._patterns)
            if part is None:
                raise self.source.refuse(
                    inner, "this type cannot stand in a template", "use string, number, boolean or literals"
                )
            template = template.then(part)
            at = child.end_byte
        made = template.then_text(self._raw(at, node.end_byte - 1)).schema()
        self._patterns.add(made.get("pattern", ""))
        return Typed(made)

    def _raw(self, start: int, end: int) -> str:
        return self.source.bytes[start:end].decode("utf-8", "surrogatepass")


_UTILITIES = {
    "Array": 1, "ReadonlyArray": 1, "Record": 2, "Partial": 1, "Required": 1, "Readonly": 1, "Pick": 2, "Omit": 2,
    "Exclude": 2, "Extract": 2, "NonNullable": 1,
}  # fmt: skip


def _array_of(items: Any) -> dict[str, Any]:
    return {"type": "array", "items": items} if items != {} else {"type": "array"}


def _operands(node: Node) -> list[Node]:
    """The members of a union or intersection, in order; the tree nests to the left."""
    found: list[Node] = []
    waiting = [node]
    while waiting:
        current = waiting.pop()
        if current.type == node.type:
            waiting.extend(reversed([child for child in current.named_children if child.type != "comment"]))
        else:
            found.append(current)
    return found
