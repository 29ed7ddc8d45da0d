"""Closed reading of argument schemas: objects take only the properties that their schema names.

JSON Schema lets an object have any property that the schema does not mention. For tool arguments that is nearly always
an oversight, so a tool set reads schemas *closed* by default:

* an object schema with ``properties`` or ``patternProperties``, and without ``additionalProperties`` or
  ``unevaluatedProperties``, takes no other properties;
* with ``allOf`` and ``$ref``, the named properties are the properties of all parts together; with ``anyOf`` and
  ``oneOf``, they are the properties of the schema itself and of the chosen branch;
* an object schema that names no property, like ``{"type": "object"}``, is a free-form map and stays open;
* the schemas of ``not`` and ``if`` are conditions, not values, and do not change.

`Grammar.from_json_schema` follows this reading with ``additional_properties=False``. `close_objects` writes it out, so
that any validator follows it. Where JSON Schema cannot express it, the result accepts more, never less: with
properties beside ``anyOf``, those of several branches together; in objects that properties and patterns describe, or
that an array contains beside its ``items``, any names; below ``allOf``, anything, if all that it joins might name
nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from toolgrammar.core.errors import LimitError
from toolgrammar.core.json import escape, resolve_local
from toolgrammar.core.schema import KEYWORDS, Role, Shape

_NAMING = ("properties", "patternProperties")
_LISTS = frozenset(KEYWORDS.named(shapes=(Shape.ALTERNATIVES,)))
#: Keywords whose schemas are about the same value, conditions (``not``, ``if``) aside.
_IN_PLACE = frozenset(
    row.name
    for row in KEYWORDS.values()
    if row.role in (Role.REFERENCE, Role.SAME_VALUE)
    and not row.negates
    and row.shape not in (Shape.DEPENDENCIES, Shape.REQUIREMENTS)
)
#: Keywords whose schemas are about the values in an object or array.
_INSIDE = frozenset(KEYWORDS.named(roles=(Role.PARTS, Role.REMAINDER))) - {"propertyNames"}
#: Keywords whose schemas an item follows besides that of ``contains``.
_ITEMS = frozenset({"items", "prefixItems", "unevaluatedItems"})


def close_objects(schema: dict[str, Any] | bool) -> dict[str, Any] | bool:
    """Return the schema with the closed reading written out; the input is not changed.

    Args:
        schema: Draft 2020-12, as `to_json_schema` returns it.

    Law: every instance of the result is an instance of ``schema``; a schema that mentions ``additionalProperties``
    in every object comes back equal.

    Raises:
        LimitError: nested too deeply.
    """
    if isinstance(schema, bool):
        return schema
    try:
        closed: dict[str, Any] = _Closer(schema).close(schema)
    except RecursionError:
        raise LimitError(
            "the schema is nested too deeply to be closed", hint="use $ref for recursive structures"
        ) from None
    return closed


class _Closer:
    """Closes one schema.

    A schema is a *part* if it describes an object together with other schemas: below ``allOf``, or beside properties. A
    part stays open, since the other schemas may name further properties. A definition that is a part somewhere stays
    open, and the schemas that refer to it are closed instead.

    Attributes:
        root: the schema, for references.
        definitions: the definitions, by their pointers.
        anchors: the pointers of definitions with a dynamic anchor, by the references to them.
        naming: ids of the schemas that name properties, themselves or through their parts.
        demanding: ids of the schemas that name properties in every branch, or allow no object.
        parts: the pointers of the definitions that are parts.
    """

    def __init__(self, root: Mapping[str, Any]) -> None:
        self.root = root
        self.definitions = {
            f"#/{key}/{escape(name)}": sub
            for key in KEYWORDS.definitions
            for name, sub in (root.get(key) or {}).items()
        }
        self.anchors: dict[str, str] = {}
        for pointer, definition in self.definitions.items():
            if isinstance(definition, dict) and "$dynamicAnchor" in definition:
                self.anchors.setdefault(f"#{definition['$dynamicAnchor']}", pointer)
        self.naming, self.demanding = self._facts()
        self.parts: set[str] = set()
        self._find_parts(root, is_part=False)
        for definition in self.definitions.values():
            self._find_parts(definition, is_part=False)
        done: set[str] = set()
        while new := (self.parts & self.definitions.keys()) - done:
            done |= new
            for pointer in new:  # what a part refers to is a part, too
                self._find_parts(self.definitions[pointer], is_part=True)

    # -- closing -----------------------------------------------------------------------------------------------

    def close(self, schema: Any) -> Any:
        """Return a schema that describes a whole value, closed."""
        if not isinstance(schema, dict):
            return schema
        # All properties are named in the branches of a union, or below a single allOf: close these.
        union = _union(schema)
        if union and "additionalProperties" not in schema and not self._names_beside(schema, union):
            result = self._open(_without(schema, union))
            result[union] = [self.close(branch) for branch in schema[union]]
            return {key: result[key] for key in schema}
        if len(schema.get("allOf", ())) == 1 and not self._names_beside(schema, "allOf"):
            result = self._open(_without(schema, "allOf"))
            result["allOf"] = [self.close(schema["allOf"][0])]
            return {key: result[key] for key in schema}
        result = self._open(schema)
        if "unevaluatedProperties" in schema or self._may_name_nothing(schema):
            return result
        # Only unevaluatedProperties counts the properties that parts name. A reference alone to a definition that is
        # closed itself needs neither.
        composed = _IN_PLACE & schema.keys()
        if not composed:
            result.setdefault("additionalProperties", False)
        elif composed != {"$ref"} or any(key in schema for key in _NAMING) or self._stays_open(schema["$ref"]):
            result["unevaluatedProperties"] = False
        return result

    def _open(self, schema: Any) -> Any:
        """Return a schema that is a part of a larger one: its own object open, the objects inside it closed."""
        if not isinstance(schema, dict):
            return schema
        result = dict(schema)
        for key, value in schema.items():
            if key in _INSIDE and not self._has_companion(schema, key):
                result[key] = KEYWORDS.map_subschemas(key, value, lambda sub, *_: self.close(sub))
            elif key in _INSIDE or key in _IN_PLACE:
                result[key] = KEYWORDS.map_subschemas(key, value, lambda sub, *_: self._open(sub))
            elif key in KEYWORDS.definitions and isinstance(value, dict):
                result[key] = {name: self._definition(f"#/{key}/{escape(name)}", sub) for name, sub in value.items()}
        return result

    def _definition(self, pointer: str, schema: Any) -> Any:
        return self._open(schema) if pointer in self.parts else self.close(schema)

    def _stays_open(self, reference: Any) -> bool:
        return isinstance(reference, str) and reference in self.parts

    # -- looking -----------------------------------------------------------------------------------------------

    def _has_companion(self, schema: Mapping[str, Any], key: str) -> bool:
        """Return True if a value inside may follow another schema too, and have the properties that it names."""
        if key in _NAMING:
            return _may_overlap(schema)
        if key == "contains":
            return not _ITEMS.isdisjoint(schema)
        return key in _ITEMS and self._names(schema.get("contains"))

    def _facts(self) -> tuple[set[int], set[int]]:
        """Return `naming` and `demanding`.

        Both follow from facts about the parts of a schema (Horn clauses: a fact, and those from which it follows). Each
        schema is visited once, as there may be exponentially many paths to it.
        """
        names: list[tuple[int, list[int]]] = []
        demands: list[tuple[int, list[int]]] = [(id(False), [])]  # the schema false allows no object
        seen: set[int] = set()
        waiting: list[Any] = [self.root]
        while waiting:
            schema = waiting.pop()
            if not isinstance(schema, dict) or id(schema) in seen:
                continue
            seen.add(id(schema))
            kind = schema.get("type", "object")
            if any(key in schema for key in _NAMING):
                names.append((id(schema), []))
                demands.append((id(schema), []))
            elif kind != "object" and "object" not in kind:
                demands.append((id(schema), []))
            reference = self._reference(schema)
            if reference is not None:
                target = self._resolve(reference)
                waiting.append(target)
                names.append((id(schema), [id(target)]))
                demands.append((id(schema), [id(target)]))
            for key, value in schema.items():
                inner = [sub for _, sub in KEYWORDS.subschemas(key, value)] if key in KEYWORDS else []
                waiting += inner
                if key in _IN_PLACE:
                    names += [(id(schema), [id(sub)]) for sub in inner]
                if key == "allOf":
                    demands += [(id(schema), [id(sub)]) for sub in inner]
                elif key in ("anyOf", "oneOf") and isinstance(value, list):
                    demands.append((id(schema), [id(sub) for sub in inner]))
        return _consequences(names), _consequences(demands)

    def _names(self, schema: Any) -> bool:
        """Return True if an object schema names properties, itself or through its parts."""
        return id(schema) in self.naming

    def _names_beside(self, schema: Mapping[str, Any], *keys: str) -> bool:
        """Return True if an object schema would name properties without these keywords, so beside them."""
        rest = _without(schema, *keys)
        reference = self._reference(rest)
        return (
            any(key in rest for key in _NAMING)
            or (reference is not None and self._names(self._resolve(reference)))
            or any(
                self._names(sub) for key in _IN_PLACE & rest.keys() for _, sub in KEYWORDS.subschemas(key, rest[key])
            )
        )

    def _may_name_nothing(self, schema: Any) -> bool:
        """Return True if an object may follow the schema through branches none of which names a property."""
        return id(schema) not in self.demanding

    def _find_parts(self, schema: Any, *, is_part: bool) -> None:
        """Add the definitions to `parts` that this schema uses as parts; ``is_part``: it is one itself."""
        if not isinstance(schema, dict):
            return
        reference = self._reference(schema)
        if reference is not None and (is_part or self._names_beside(schema, "$ref", "$dynamicRef")):
            self.parts.add(reference)
        for key, value in schema.items():
            if key in _LISTS:
                inner_is_part = is_part or self._names_beside(schema, key) or (key == "allOf" and len(value) > 1)
            elif key in _IN_PLACE:
                inner_is_part = True
            elif key in _INSIDE:
                inner_is_part = self._has_companion(schema, key)
            else:
                continue
            for _, sub in KEYWORDS.subschemas(key, value):
                self._find_parts(sub, is_part=inner_is_part)

    def _reference(self, schema: Mapping[str, Any]) -> str | None:
        """Return the pointer that a schema refers to; of a dynamic one, the definition with that anchor."""
        dynamic = schema.get("$dynamicRef")
        if isinstance(dynamic, str) and dynamic in self.anchors:
            return self.anchors[dynamic]
        reference = schema.get("$ref")
        return reference if isinstance(reference, str) else None

    def _resolve(self, reference: str) -> Any:
        """Return the schema that a local reference names; None for other references, which a validator refuses."""
        try:
            return resolve_local(self.root, reference)
        except LookupError:
            return None


def _consequences(rules: Iterable[tuple[int, list[int]]]) -> set[int]:
    """Return all that follows from Horn clauses, in linear time: ``(head, body)`` says that the head holds if all facts
    of the body do. So ``[(1, []), (2, [1]), (3, [1, 4])] -> {1, 2}``."""
    holding: set[int] = set()
    users: dict[int, list[int]] = {}  # by fact: the numbers of the clauses whose body has it
    heads: list[int] = []
    missing: list[int] = []  # by clause: the number of facts of its body that do not hold yet
    waiting: list[int] = []
    for number, (head, body) in enumerate(rules):
        heads.append(head)
        missing.append(len(body))
        for fact in body:
            users.setdefault(fact, []).append(number)
        if not body:
            waiting.append(head)
    while waiting:
        fact = waiting.pop()
        if fact in holding:
            continue
        holding.add(fact)
        for number in users.get(fact, ()):
            missing[number] -= 1
            if not missing[number]:
                waiting.append(heads[number])
    return holding


def _union(schema: Mapping[str, Any]) -> str | None:
    """Return the one keyword of this schema that lists alternatives."""
    unions = [key for key in ("anyOf", "oneOf") if isinstance(schema.get(key), list)]
    return unions[0] if len(unions) == 1 else None


def _may_overlap(schema: Mapping[str, Any]) -> bool:
    """Return True if a property may have a pattern's schema besides its own, or that of another pattern."""
    patterns = schema.get("patternProperties") or ()
    return len(patterns) > 1 or (len(patterns) == 1 and bool(schema.get("properties")))


def _without(schema: Mapping[str, Any], *keys: str) -> dict[str, Any]:
    return {name: value for name, value in schema.items() if name not in keys}
