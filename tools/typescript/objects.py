"""Object types of TypeScript: interfaces, classes, ``keyof`` and indexed access."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from . import jsdoc
from . import model as ts
from .context import Evaluator
from .intersections import Intersections
from .source import child_of, has_word, only_child, parts

if TYPE_CHECKING:
    from tree_sitter import Node

    from .modules import Declaration


#: What to write instead of a mapped type.
MAPPED = "write Record<Keys, T>, Partial<T>, Required<T>, Pick<T, Keys>, or the properties themselves"

_METHODS = ("method_signature", "method_definition", "abstract_method_signature")


class ObjectTypes:
    """Object types of one program.

    Args:
        reader: evaluator of the types inside them.

    Attributes:
        intersections: intersections of such types.
    """

    def __init__(self, reader: Evaluator) -> None:
        self.reader = reader
        self.intersections = Intersections(reader)

    # -- what is written ---------------------------------------------------------------------------------------

    def literal(self, node: Node, scope: ts.Scope) -> ts.Type:
        """Return the type of ``{ ... }``.

        Raises:
            UnsupportedSchemaError: it is a mapped type.
        """
        for member in parts(node):
            if any(child.type == "mapped_type_clause" for child in member.named_children):
                raise scope.source.refuse(node, "mapped types are not evaluated here", MAPPED)
        return self._body(parts(node), scope, declared=False)

    def declared(self, declaration: Declaration, scope: ts.Scope) -> ts.Type:
        """Return the type of an interface or of a class's instances, with what they inherit."""
        bases: list[tuple[ts.Type, ts.At]] = []
        bodies: list[Node] = []
        for node in declaration.nodes:
            for clause in node.named_children:
                if clause.type == "extends_type_clause":
                    bases += [(self.reader.type(base, scope), scope.at(base)) for base in parts(clause)]
                elif clause.type == "class_heritage":
                    bases += [
                        (self._base(inner, scope), scope.at(inner))
                        for inner in parts(clause)
                        if inner.type == "extends_clause"
                    ]
            bodies.append(child_of(node, "body"))
        own = ts.Object(declared=True)
        for body in bodies:
            own = _override(own, self._body(parts(body), scope, declared=True))
        whole = ts.Object(declared=True)
        for base, at in bases:
            bare = self.reader.bare(base, at)
            more = bool(own.properties or own.indexes or len(bases) > 1)
            if isinstance(bare, ts.Refused):
                return ts.unknown(bare.reason, bare.hint, bare.at) if more else bare
            if isinstance(bare, (ts.Array, ts.Tuple)):
                if more:
                    return ts.unknown(
                        f"{declaration.name!r} is an array with properties, which JSON has no values for",
                        "use the array alone",
                        at,
                    )
                return base
            whole = self.intersections.objects([whole, self.of(base, at)])
        return replace(_override(whole, own), declared=True)

    def _base(self, clause: Node, scope: ts.Scope) -> ts.Type:
        """Return the type of ``extends Base<T>`` of a class."""
        value = child_of(clause, "value")
        arguments = clause.child_by_field_name("type_arguments")
        given = tuple(self.reader.type(one, scope) for one in parts(arguments)) if arguments is not None else ()
        if scope.source.text(value) in ("Array", "ReadonlyArray") and len(given) == 1:
            return ts.Array(given[0], scope.at(value), scope.source.text(value) == "ReadonlyArray")
        if value.type in ("identifier", "member_expression"):
            return self.reader.reference(scope.source.text(value), given, scope.at(value), scope)
        reason = "what this class extends is worked out when the program runs"
        return ts.unknown(reason, "extend a class that is declared in the text", scope.at(value))

    def _body(self, members: list[Node], scope: ts.Scope, *, declared: bool) -> ts.Object:
        properties: dict[str, ts.Property] = {}
        indexes: list[ts.Index] = []
        call: ts.Function | None = None
        for member in members:
            if member.type in ("property_signature", "public_field_definition"):
                made = self._property(member, scope)
                if made is None:
                    continue
                if made.name in properties:
                    raise scope.source.wrong(
                        member, f"the property {made.name!r} is declared twice", "remove one of the two"
                    )
                properties[made.name] = made
            elif member.type == "index_signature":
                indexes += self._index(member, scope)
            elif member.type in _METHODS:
                for made in self._method(member, scope):
                    if made.name in properties and isinstance(made.type, ts.Function):
                        made = replace(made, type=replace(made.type, overloaded=True))
                    properties[made.name] = made
            elif member.type in ("call_signature", "construct_signature"):
                call = ts.Function(member, scope, member.type == "construct_signature", overloaded=call is not None)
        return ts.Object(tuple(properties.values()), tuple(indexes), call, declared)

    def _property(self, node: Node, scope: ts.Scope) -> ts.Property | None:
        """Return a property; None for one that is not part of the values: static, private."""
        source = scope.source
        name_node = child_of(node, "name")
        access = next((child for child in node.named_children if child.type == "accessibility_modifier"), None)
        hidden = access is not None and source.text(access) != "public"
        if hidden or has_word(node, "static") or name_node.type == "private_property_identifier":
            source.leave_out(node)
            return None
        name, key = self.reader.values.property_name(name_node, scope)
        annotation = node.child_by_field_name("type")
        value = node.child_by_field_name("value")
        doc = self.reader.doc(node, source)
        type_: ts.Type
        if annotation is not None:
            type_ = self.reader.later(only_child(annotation), scope)
        elif value is not None:
            type_ = self.reader.values.widened(value, scope)
        elif node.type == "public_field_definition":
            type_ = ts.ANY
        else:
            raise source.wrong(node, f"the property {name!r} has no type", f"write {name}: type")
        comment = source.comment_after(node)
        if comment is not None:
            if comment.startswith("default:"):
                doc.keywords.setdefault("default", jsdoc.json_or_text(comment[len("default:") :].strip()))
            else:
                doc.description = "\n".join(part for part in (doc.description, comment) if part)
        return ts.Property(name, type_, has_word(node, "?"), key=key, doc=doc, at=scope.at(node))

    def _method(self, node: Node, scope: ts.Scope) -> list[ts.Property]:
        """Return a method, or the properties that a constructor declares with its parameters."""
        source = scope.source
        name_node = child_of(node, "name")
        if source.text(name_node) == "constructor" and node.type != "method_signature":
            return [made for child in parts(child_of(node, "parameters")) if (made := self._parameter(child, scope))]
        source.leave_out(node)
        access = next((child for child in node.named_children if child.type == "accessibility_modifier"), None)
        hidden = access is not None and source.text(access) != "public"
        if hidden or has_word(node, "static") or name_node.type == "private_property_identifier":
            return []
        if name_node.type == "computed_property_name":
            return []
        name, key = self.reader.values.property_name(name_node, scope)
        if has_word(node, "get", "set"):
            result = node.child_by_field_name("return_type")
            in_class = node.parent is not None and node.parent.type == "class_body"
            if has_word(node, "get") and result is not None and not in_class:
                return [ts.Property(name, self.reader.later(only_child(result), scope), key=key, at=scope.at(node))]
            return [ts.Property(name, ts.ANY, method=True, at=scope.at(node))] if in_class else []
        return [ts.Property(name, ts.Function(node, scope), has_word(node, "?"), method=True, at=scope.at(node))]

    def _parameter(self, node: Node, scope: ts.Scope) -> ts.Property | None:
        """Return the property that a constructor's parameter declares (``constructor(public x: number)``)."""
        access = next((child for child in node.named_children if child.type == "accessibility_modifier"), None)
        shown = scope.source.text(access) == "public" if access is not None else has_word(node, "readonly")
        pattern, annotation = node.child_by_field_name("pattern"), node.child_by_field_name("type")
        if not shown or pattern is None or pattern.type != "identifier":
            return None
        value = node.child_by_field_name("value")
        type_: ts.Type = ts.ANY
        if annotation is not None:
            type_ = self.reader.later(only_child(annotation), scope)
        elif value is not None:
            type_ = self.reader.values.widened(value, scope)
        doc = self.reader.doc(node, scope.source)
        return ts.Property(
            scope.source.text(pattern), type_, node.type == "optional_parameter", doc=doc, at=scope.at(node)
        )

    def _index(self, node: Node, scope: ts.Scope) -> list[ts.Index]:
        if node.child_by_field_name("index_type") is None:
            raise scope.source.wrong(node, "an interface cannot be a mapped type", MAPPED)
        annotation = node.child_by_field_name("type")
        if annotation is None:
            raise scope.source.wrong(node, "the index signature has no type", "write [key: string]: type")
        key = self.reader.type(child_of(node, "index_type"), scope)
        doc = self.reader.doc(node, scope.source)
        value = self.reader.later(only_child(annotation), scope)
        made: list[ts.Index] = []
        for one in self.reader.members(key):
            bare = self.reader.bare(one)
            if bare in (ts.STRING, ts.NUMBER) or isinstance(bare, ts.Template):
                made.append(ts.Index(self.key(one), value, doc, scope.at(node)))
            elif bare != ts.SYMBOL:  # JSON has no such names
                raise scope.source.refuse(node, "a key is a string", "use string, number or a template")
        return made

    # -- operators ---------------------------------------------------------------------------------------------

    def alternatives(self, type_: ts.Type, at: ts.At) -> list[ts.Object]:
        """Return the objects that a type is, one for each member of a union.

        Raises:
            UnsupportedSchemaError: one is not an object, or a comment constrains it as a whole.
        """
        objects: list[ts.Object] = []
        for member in self.reader.members(type_, at):
            bare = self.reader.resolve(member, at)
            additional: bool | None = None
            while isinstance(bare, ts.Documented):
                constraints = {name for name in bare.doc.keywords if jsdoc.CONSTRAINTS.get(name) is not None}
                if constraints - {"additionalProperties"} or bare.doc.schema:
                    raise at.source.refuse(
                        at.node, "the tags of the comment on this object would be lost", "write the result out"
                    )
                additional = bare.doc.keywords.get("additionalProperties", additional)
                bare = self.reader.resolve(bare.type, at)
            if isinstance(bare, ts.Object):
                if additional is not None:
                    bare = replace(bare, indexes=(ts.Index(ts.STRING, ts.ANY),) if additional else ())
                objects.append(bare)
            elif bare == ts.OBJECT:
                objects.append(ts.Object())
            elif isinstance(bare, ts.Refused):
                raise bare.at.source.refuse(bare.at.node, bare.reason, bare.hint)
            else:
                raise at.source.refuse(
                    at.node, "this needs an object of known properties", "use an interface, or write the result out"
                )
        return objects

    def of(self, type_: ts.Type, at: ts.At) -> ts.Object:
        """Return the one object that a type is."""
        shapes = self.alternatives(type_, at)
        if len(shapes) != 1:
            raise at.source.refuse(at.node, "this is not evaluated for a union", "write the result out")
        return shapes[0]

    def keyof(self, type_: ts.Type, at: ts.At) -> ts.Type:
        """Return the names of an object's properties as a type; of a union, those that all members have."""
        bare = self.reader.bare(type_, at)
        if bare in (ts.ANY, ts.NEVER):
            return ts.union([ts.STRING, ts.NUMBER, ts.SYMBOL])
        if bare == ts.UNKNOWN:
            return ts.NEVER
        if isinstance(bare, (ts.Array, ts.Tuple)):
            return ts.unknown("the keys of an array are its methods too", "use number", at)
        names_by_member: list[list[ts.Type]] = []
        for shape in self.alternatives(bare, at):
            names: list[ts.Type] = [one.key or ts.Literal.of(one.name) for one in shape.properties]
            for index in shape.indexes:
                names += [ts.STRING, ts.NUMBER] if self.reader.bare(index.key) == ts.STRING else [index.key]
            names_by_member.append(names)
        if not names_by_member:
            return ts.NEVER
        return ts.union(
            [name for name in names_by_member[0] if all(_has(other, name) for other in names_by_member[1:])]
        )

    def lookup(self, type_: ts.Type, key: ts.Type, at: ts.At, index: ts.At) -> ts.Type:
        """Return the type of ``T[K]``; of a union, that of each member."""
        types: list[ts.Type] = []
        for member in self.reader.members(type_, at):
            bare = self.reader.bare(member, at)
            for name in self.reader.members(key, index):
                types.append(self._one(bare, self.reader.bare(name, index), at, index))
        return ts.union(types)

    def _one(self, owner: ts.Type, key: ts.Type, at: ts.At, index: ts.At) -> ts.Type:
        if owner == ts.ANY:
            return ts.ANY
        if isinstance(owner, ts.Refused):
            return owner
        if isinstance(key, ts.Refused):
            return key
        if isinstance(owner, (ts.Array, ts.Tuple)):
            return self._item(owner, key, index)
        shape = self.of(owner, at)
        if isinstance(key, ts.Literal):
            property_ = shape.get(_text(key))
            if property_ is not None:
                type_ = ts.documented(self.reader.settled(property_.type), property_.doc, property_.at)
                return ts.union([type_, ts.UNDEFINED]) if property_.optional else type_
            extra = self.indexed(shape, _text(key))
            if extra is not None:
                return self.reader.settled(extra)
        for one in shape.indexes:
            if self.reader.bare(one.key) in (key, ts.STRING):
                return self.reader.settled(one.type)
        raise index.source.wrong(index.node, "there is no such property", "check its name")

    def _item(self, owner: ts.Array | ts.Tuple, key: ts.Type, index: ts.At) -> ts.Type:
        name = _text(key) if isinstance(key, ts.Literal) else None
        if name == "length":
            fixed = isinstance(owner, ts.Tuple) and not any(one.rest or one.optional for one in owner.elements)
            return ts.Literal.of(len(owner.elements)) if fixed and isinstance(owner, ts.Tuple) else ts.NUMBER
        position = int(name) if name is not None and re.fullmatch("0|[1-9][0-9]{0,8}", name) else None
        if isinstance(owner, ts.Array):
            if key == ts.NUMBER or position is not None:
                return owner.item
        elif key == ts.NUMBER:
            return ts.union([ts.element_type(one) for one in owner.elements])
        elif position is not None:
            for at, one in enumerate(owner.elements):
                if one.rest or at == position:
                    return ts.element_type(one)
        raise index.source.wrong(index.node, "there is no such item", "use a position of the tuple, or number")

    def value(self, shape: ts.Object, name: str) -> ts.Type | None:
        """Return the type of the property of a name, also by an index signature; None if there is none."""
        property_ = shape.get(name)
        return property_.type if property_ is not None else self.indexed(shape, name)

    def indexed(self, shape: ts.Object, name: str) -> ts.Type | None:
        """Return the type that an index signature gives to the property of a name."""
        for index in shape.indexes:
            key = self.reader.bare(index.key)
            if key == ts.STRING or (key == ts.NUMBER and re.search(ts.NUMBER_NAME, name)):
                return index.type
            if isinstance(key, ts.Template) and self.reader.relations.narrower(ts.Literal.of(name), key):
                return index.type
        return None

    def keys(self, type_: ts.Type, at: ts.At) -> list[ts.Type]:
        """Return the members of a type of keys: string and number literals, ``string``, ``number``, templates."""
        keys: list[ts.Type] = []
        for member in self.reader.members(type_, at):
            bare = self.reader.bare(member, at)
            if isinstance(bare, ts.Refused):
                raise bare.at.source.refuse(bare.at.node, bare.reason, bare.hint)
            number_or_text = isinstance(bare, ts.Literal) and bare.kind != "boolean"
            if bare in (ts.STRING, ts.NUMBER, ts.SYMBOL) or number_or_text or isinstance(bare, ts.Template):
                keys.append(self.key(member))
            elif bare == ts.ANY:
                keys.append(ts.STRING)
            else:
                raise at.source.refuse(at.node, "a key is a string", "use string, or a union of string literals")
        return keys

    def key(self, type_: ts.Type) -> ts.Type:
        """Return a type of keys, with the comment that constrains it; without its name and other comments."""
        resolved = self.reader.resolve(type_)
        if isinstance(resolved, ts.Documented) and any(jsdoc.CONSTRAINTS.get(name) for name in resolved.doc.keywords):
            return resolved
        return self.reader.bare(type_)

    def pick(self, type_: ts.Type, keys: list[ts.Type], at: ts.At, where: ts.At) -> ts.Object:
        """Return the object with only these properties; of a union, the properties that all members have.

        Args:
            type_: the object.
            keys: as `keys` returns them.
            at: the place of the object.
            where: the place of the keys.
        """
        shapes = self.alternatives(type_, at)
        texts = {ts.text_of(key) for key in keys}
        kept = [one for one in self._common(shapes) if one.name in texts or ts.STRING in keys]
        names = {one.name for one in kept}
        indexes: list[ts.Index] = []
        for key in keys:
            if not isinstance(key, ts.Literal):
                indexes += [one for one in shapes[0].indexes if one.key == key]
            elif _text(key) not in names:
                extra = self.indexed(shapes[0], _text(key)) if len(shapes) == 1 else None
                if extra is None:
                    raise where.source.wrong(
                        where.node, f"there is no property {_text(key)!r} to pick", "check its name"
                    )
                kept.append(ts.Property(_text(key), extra, at=at))
        return ts.Object(tuple(kept), tuple(indexes))

    def omit(self, type_: ts.Type, keys: list[ts.Type], at: ts.At) -> ts.Object:
        """Return the object without these properties; of a union, what all members have."""
        shapes = self.alternatives(type_, at)
        narrower = self.reader.relations.narrower
        kept = [
            one
            for one in self._common(shapes)
            if not any(narrower(one.key or ts.Literal.of(one.name), key) for key in keys)
        ]
        indexes = [one for one in shapes[0].indexes if one.key not in keys] if len(shapes) == 1 else []
        return ts.Object(tuple(kept), () if ts.STRING in keys else tuple(indexes))

    def _common(self, shapes: list[ts.Object]) -> list[ts.Property]:
        """Return the properties that all of these objects have, with the types of all."""
        properties: list[ts.Property] = []
        for first in shapes[0].properties if shapes else ():
            same = [one for shape in shapes if (one := shape.get(first.name)) is not None]
            if len(same) == len(shapes) == 1:
                properties.append(first)
            elif len(same) == len(shapes):
                kinds = [ts.documented(one.type, one.doc, one.at) for one in same]
                optional = any(one.optional for one in same)
                properties.append(replace(first, type=ts.union(kinds), optional=optional, doc=None))
        return properties


def _override(base: ts.Object, own: ts.Object) -> ts.Object:
    """Return the object ``interface own extends base``: a property declared again replaces the inherited one."""
    properties = {one.name: one for one in base.properties} | {one.name: one for one in own.properties}
    indexes = {one.key: one for one in base.indexes} | {one.key: one for one in own.indexes}
    return ts.Object(tuple(properties.values()), tuple(indexes.values()), own.call or base.call, own.declared)


def _text(key: ts.Type) -> str:
    """Return a literal as the name of a property."""
    return ts.text_of(key) or ""


def _has(names: Iterable[ts.Type], name: ts.Type) -> bool:
    return any(one == name or (one == ts.STRING and isinstance(name, ts.Literal)) for one in names)
