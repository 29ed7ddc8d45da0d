"""Object types of TypeScript as they are declared: interfaces, classes, ``{ ... }``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from . import jsdoc
from . import model as ts
from .algebra import TypeAlgebra, index, override
from .source import child_of, has_word, only_child, parts
from .values import property_name

if TYPE_CHECKING:
    from tree_sitter import Node

    from .modules import Declaration


#: What to write instead of a mapped type.
MAPPED = "write Record<Keys, T>, Partial<T>, Required<T>, Pick<T, Keys>, or the properties themselves"

_METHODS = ("method_signature", "method_definition", "abstract_method_signature")


class ObjectReader(TypeAlgebra):
    """Object types of one program, read from their syntax."""

    def type(self, node: Node, scope: ts.Scope) -> ts.Type:
        """Evaluate a type expression; by the class that reads all of them."""
        raise NotImplementedError

    def later(self, node: Node, scope: ts.Scope) -> ts.Deferred:
        """Return a type expression to be evaluated when it is needed."""
        scope.source.postpone(node)
        return ts.Deferred(node, scope)

    def literal_object(self, node: Node, scope: ts.Scope) -> ts.Type:
        """Return the type of ``{ ... }``.

        Raises:
            UnsupportedSchemaError: it is a mapped type.
        """
        for member in parts(node):
            if any(child.type == "mapped_type_clause" for child in member.named_children):
                raise scope.source.refuse(node, "mapped types are not evaluated here", MAPPED)
        return self._body(parts(node), scope)

    def declared_object(self, declaration: Declaration, scope: ts.Scope) -> ts.Type:
        """Return the type of an interface or of a class's instances, with what they inherit."""
        bases: list[Node] = []
        own = ts.Object()
        for node in declaration.nodes:
            for clause in node.named_children:
                if clause.type == "extends_type_clause":
                    bases += parts(clause)
                elif has_word(clause, "extends_clause"):  # of a class
                    reason = "the members that a class inherits are not read here"
                    return ts.unknown(reason, "write an interface", scope.at(clause))
            own = override(own, self._body(parts(child_of(node, "body")), scope))
        is_base_alone = len(bases) == 1 and not (own.properties or own.index)
        inherited = ts.Object()
        for node in bases:
            at = scope.at(node)
            base = self.type(node, scope)
            bare = self.bare(base, at)
            if isinstance(bare, ts.Refused):
                return bare if is_base_alone else ts.unknown(bare.reason, bare.hint, bare.at)
            if isinstance(bare, (ts.Array, ts.Tuple)):
                if is_base_alone:
                    return base
                reason = f"{declaration.name!r} is an array with properties, which JSON has no values for"
                return ts.unknown(reason, "use the array alone", at)
            inherited = self.both_objects([inherited, self.object(base, at)])
        return override(inherited, own)

    def _body(self, members: list[Node], scope: ts.Scope) -> ts.Object:
        """Return the type of the members between braces."""
        properties: dict[str, ts.Property] = {}
        index: ts.Index | None = None
        call: ts.Function | None = None
        read = {scope.source.text(child_of(one, "name")) for one in members if has_word(one, "get")}
        for member in members:
            if member.type in ("property_signature", "public_field_definition", *_METHODS):
                if has_word(member, "set") and scope.source.text(child_of(member, "name")) in read:
                    continue  # the getter tells the type
                is_method = member.type in _METHODS
                made = self._method(member, scope) if is_method else self._property(member, scope)
                if made is None:
                    continue
                earlier = properties.get(made.name)
                if earlier is not None and not (earlier.method and made.method):  # methods may be overloaded
                    raise scope.source.wrong(
                        member, f"the property {made.name!r} is declared twice", "remove one of the two"
                    )
                properties[made.name] = made
            elif member.type == "index_signature":
                index = self._index(member, scope) or index
            elif member.type in ("call_signature", "construct_signature"):
                call = ts.Function(member, scope, member.type == "construct_signature")
        return ts.Object(tuple(properties.values()), index, call)

    def _is_hidden(self, node: Node, scope: ts.Scope) -> bool:
        """Return True if a member is not part of the values: static, private, protected."""
        access = next((child for child in node.named_children if child.type == "accessibility_modifier"), None)
        return (
            (access is not None and scope.source.text(access) != "public")
            or has_word(node, "static")
            or child_of(node, "name").type == "private_property_identifier"
        )

    def _property(self, node: Node, scope: ts.Scope) -> ts.Property | None:
        """Return a property; None for one that is not part of the values."""
        source = scope.source
        if self._is_hidden(node, scope):
            source.leave_out(node)
            return None
        name = property_name(child_of(node, "name"), source)
        annotation = node.child_by_field_name("type")
        if annotation is None:
            raise source.wrong(node, f"the property {name!r} has no type", f"write {name}: type")
        return self._described(node, name, annotation, scope)

    def _described(self, node: Node, name: str, annotation: Node, scope: ts.Scope) -> ts.Property:
        """Return a property with the comments on it: before it, and behind it on its line."""
        source = scope.source
        doc = source.doc(node)
        type_ = self.later(only_child(annotation), scope)
        comment = source.comment_after(node)
        if comment is not None:
            if comment.startswith("default:"):  # as in Harmony's notation
                doc.keywords.setdefault("default", jsdoc.json_or_text(comment[len("default:") :].strip()))
            else:
                doc.description = "\n".join(part for part in (doc.description, comment) if part)
        return ts.Property(name, type_, has_word(node, "?"), doc=doc, at=scope.at(node))

    def _method(self, node: Node, scope: ts.Scope) -> ts.Property | None:
        """Return a method or an accessor; None for a constructor, and for what is hidden or has a computed name.

        In an interface, ``get x(): T`` is the property ``x: T``, and so is ``set x(value: T)``; in a class both are
        code.
        """
        source = scope.source
        name_node = child_of(node, "name")
        in_class = node.parent is not None and node.parent.type == "class_body"
        is_computed = name_node.type == "computed_property_name"
        accessed = None if in_class or is_computed else _accessed(node)
        if accessed is not None:
            return self._described(node, property_name(name_node, source), accessed, scope)
        source.leave_out(node)  # no schema has it
        name = "" if is_computed else property_name(name_node, source)
        if in_class and name == "constructor":
            for parameter in parts(child_of(node, "parameters")):
                if has_word(parameter, "accessibility_modifier", "readonly"):
                    reason = "properties that a constructor's parameters declare are not read here"
                    raise source.refuse(parameter, reason, "declare them as fields of the class")
            return None
        if self._is_hidden(node, scope) or is_computed:
            return None
        is_accessor = has_word(node, "get", "set")
        if is_accessor and not in_class:  # without a type
            return None
        type_ = ts.ANY if is_accessor else ts.Function(node, scope)
        return ts.Property(name, type_, has_word(node, "?"), method=True, at=scope.at(node))

    def _index(self, node: Node, scope: ts.Scope) -> ts.Index | None:
        """Return the index signature ``[key: K]: T``; None if JSON has no such keys."""
        if node.child_by_field_name("index_type") is None:
            raise scope.source.wrong(node, "an interface cannot be a mapped type", MAPPED)
        annotation = node.child_by_field_name("type")
        if annotation is None:
            raise scope.source.wrong(node, "the index signature has no type", "write [key: string]: type")
        keys, at = self.type(child_of(node, "index_type"), scope), scope.at(node)
        doc, value = scope.source.doc(node), self.later(only_child(annotation), scope)
        return index([self.plain(key, at) for key in self.members(keys)], value, doc, at)


def _accessed(node: Node) -> Node | None:
    """Return the annotation with the type of an accessor; None if it has none, or is a method."""
    if has_word(node, "get"):
        return node.child_by_field_name("return_type")
    parameters = parts(child_of(node, "parameters")) if has_word(node, "set") else []
    return parameters[0].child_by_field_name("type") if len(parameters) == 1 else None
