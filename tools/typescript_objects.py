"""Object types: their members, mapped types, and the shapes that TypeScript's operators work on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from . import jsdoc
from .typescript_names import Circle, NamedTypes, Scope, Typed, number_text
from .typescript_shapes import ANNOTATIONS, Keys, Shape, literal_schema
from .typescript_source import child_of, only_child

if TYPE_CHECKING:
    from tree_sitter import Node


class ObjectTypes(NamedTypes):
    """Object types of one text."""

    def _members(self, body: Node, scope: Scope) -> Shape:
        shape = Shape()
        for member in body.named_children:
            if member.type == "comment":
                continue
            if member.type == "property_signature":
                self._property(member, scope, shape)
            elif member.type == "index_signature":
                shape = self._index(member, scope, shape)
            elif member.type == "method_signature":
                name = self.source.text(child_of(member, "name"))
                raise self.source.refuse(
                    member,
                    f"{name!r} is a method, and a function is no JSON value",
                    "leave it out, or make it a property",
                )
            else:
                raise self.source.refuse(
                    member, "this member of an object is no JSON value", "declare properties: name: type"
                )
        return shape

    def _property(self, node: Node, scope: Scope, shape: Shape) -> None:
        name = self._property_name(child_of(node, "name"))
        annotation = node.child_by_field_name("type")
        if annotation is None:
            raise self.source.wrong(node, f"the property {name!r} has no type", f"write {name}: type")
        if name in shape.properties:
            raise self.source.wrong(node, f"the property {name!r} is declared twice", "remove one of the two")
        doc = self.doc(node)
        try:
            typed = self.type(only_child(annotation), scope)
        except Circle as circle:
            # `interface Tree { root: Pick<Tree, "value"> }`: fine, as long as nobody picks `root` itself.
            error = self.source.wrong(circle.node, str(circle), "break the circle")
            if not self._reopened:
                raise error from None
            typed = Typed({"$circle": error})
        behind = self.source.comment_behind(node)
        if behind is not None:
            if behind.startswith("default:"):
                doc.keywords.setdefault("default", jsdoc.json_or_text(behind[len("default:") :].strip()))
            else:
                doc.description = "\n".join(part for part in (doc.description, behind) if part)
        shape.properties[name] = self.documented(typed, doc, node).schema
        if not typed.undefined and not any(child.type == "?" for child in node.children):
            shape.required.append(name)

    def _index(self, node: Node, scope: Scope, shape: Shape) -> Shape:
        mapped = next((child for child in node.named_children if child.type == "mapped_type_clause"), None)
        annotation = node.child_by_field_name("type")
        if annotation is None:
            raise self.source.wrong(node, "the index signature has no type", "write [key: string]: type")
        inner = only_child(annotation)
        if mapped is not None:
            return self._mapped(node, mapped, annotation, inner, scope)
        keys = self._names_in(self.type(child_of(node, "index_type"), scope).schema, node)
        doc = self.doc(node)
        value = self.documented(self.type(inner, scope), doc, node)
        extra = Shape.record(keys, value.schema)
        shape.patterns.update(extra.patterns)
        shape.additional = extra.additional if shape.additional is None else shape.additional
        return shape

    def _mapped(self, node: Node, clause: Node, annotation: Node, inner: Node, scope: Scope) -> Shape:
        if any(child.type == "as" for child in clause.children):
            raise self.source.refuse(clause, "renamed keys are not evaluated", "write out the properties")
        name, over = self.source.text(child_of(clause, "name")), child_of(clause, "type")
        original = Shape()
        if over.type == "index_type_query":
            target = only_child(over)
            original = self._one_shape(self.type(target, scope).schema, target)
            keys = original.keys()
        else:
            keys = self._names_in(self.type(over, scope).schema, over)
        if keys.anything or keys.patterns:
            value = self.type(inner, {**scope, name: Typed({"type": "string"})})
            shape = Shape.record(Keys((), keys.anything, keys.patterns), value.schema)
        else:
            shape = Shape()
        for key in keys.names:
            value = self.type(inner, {**scope, name: Typed(literal_schema([key]))})
            shape.properties[key] = value.schema
            optional = annotation.type == "opting_type_annotation" or (
                annotation.type != "omitting_type_annotation"
                and (value.undefined or (key in original.properties and key not in original.required))
            )
            if not optional:
                shape.required.append(key)
        return shape

    def _names_in(self, schema: Any, node: Node) -> Keys:
        """The keys that a type of keys has."""
        names: list[str] = []
        anything, patterns = False, []
        for member in self._members_of(schema, node):
            plain = {key: value for key, value in member.items() if key not in ANNOTATIONS} if member else {}
            if "const" in plain and self.kinds(plain) <= {"string", "number"}:
                value = plain["const"]
                names.append(value if isinstance(value, str) else number_text(value))
            elif plain == {"type": "string"}:
                anything = True
            elif plain == {"type": "number"}:
                patterns.append(Keys.NUMBER)
            elif set(plain) == {"type", "pattern"}:
                patterns.append(plain["pattern"])
            else:
                raise self.source.refuse(node, "a key is a string", "use string, or a union of string literals")
        return Keys(tuple(dict.fromkeys(names)), anything, tuple(patterns))

    def _shapes(self, schema: Any, node: Node) -> list[Shape]:
        """The objects that a type is, one for each alternative of a union."""
        resolved = self._resolved(schema, node)
        if isinstance(resolved, dict):
            union = [key for key in ("anyOf", "oneOf") if key in resolved]
            if union and not set(resolved) - {*union, *ANNOTATIONS}:
                return [shape for part in resolved[union[0]] for shape in self._shapes(part, node)]
            shape = Shape.read(resolved)
            if shape is not None:
                return [shape]
        raise self.source.refuse(
            node, "this needs an object of known properties", "use an interface, or write the result out"
        )

    def _one_shape(self, schema: Any, node: Node) -> Shape:
        shapes = self._shapes(schema, node)
        if len(shapes) != 1:
            raise self.source.refuse(node, "this is not evaluated for a union", "write the result out")
        return shapes[0]

    def _members_of(self, schema: Any, node: Node) -> list[Any]:
        """The members of a union, literals one by one."""
        resolved = self._resolved(schema, node)
        if not isinstance(resolved, dict):
            return [resolved] if resolved else []
        if "anyOf" in resolved:
            return [member for part in resolved["anyOf"] for member in self._members_of(part, node)]
        if "enum" in resolved:
            return [literal_schema([v]) if v is not None else {"type": "null"} for v in resolved["enum"]]
        if isinstance(resolved.get("type"), list) and not set(resolved) - {"type", *ANNOTATIONS}:
            return [{"type": kind} for kind in resolved["type"]]
        return [schema if self.kinds(resolved) == {"object"} else resolved]
