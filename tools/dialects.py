"""Conversion of foreign schema dialects to JSON Schema Draft 2020-12.

`to_json_schema` is a pure function: its input is never changed and nothing of it is lost. It knows

* the types of the Berkeley Function Calling Leaderboard and of programming languages (``dict``, ``float``, ``tuple``,
  ``any``, ``HashMap``, ``List[int]``, ``str, optional``, ...) and Gemini's upper-case ones (``OBJECT``);
* ``param_type``, ``parameter_type`` and ``type_`` for ``type``, and the snake case of Gemini's Python packages
  (``any_of``, ``max_items``);
* keywords whose value is null, as ``model_dump()`` writes what was not given;
* ``optional`` on a property or on an object, and Draft 3's ``required: true`` on a property;
* OpenAPI 3.0's ``nullable``, and ``discriminator``, whose property must be there;
* Gemini's numbers written as strings (``"minItems": "1"``) and its ``propertyOrdering``;
* the spellings of Draft 4 to 7 that Draft 2020-12 changed (``items`` as a list, boolean ``exclusiveMinimum``,
  ``dependencies``, ``$ref`` hiding its siblings);
* Python dicts that contain themselves, which become ``$ref``.

Only keywords are converted, never names of properties or data: a property called ``type`` or an enum value ``"dict"``
stays. Schemas that no value satisfies (``{"type": "boolean", "enum": ["True"]}`` is common) are kept literally.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping
from typing import Any

from toolgrammar.core.errors import InvalidSchemaError, LimitError, Place
from toolgrammar.core.json import to_pointer
from toolgrammar.core.schema import KEYWORDS, Shape, require_tags

from .type_names import is_optional_type, schema_of_type

MAX_DEPTH = 150

_ONE_SCHEMA = KEYWORDS.one_schema - {"additionalItems"}  # which counts beside a list of items only
_NUMBERS = KEYWORDS.named(shapes=(Shape.LOWER_COUNT, Shape.UPPER_COUNT, Shape.BOUND, Shape.STEP))
#: Names of keywords in other systems. The first that is there counts, and the keyword itself before them.
_RENAMED = {
    **dict.fromkeys(("type_", "param_type", "parameter_type"), "type"),
    "format_": "format",
    "defs": "$defs",
    "ref": "$ref",
    "any_of": "anyOf",
    "one_of": "oneOf",
    "all_of": "allOf",
    "prefix_items": "prefixItems",
    "additional_properties": "additionalProperties",
    "property_ordering": "propertyOrdering",
    "exclusive_minimum": "exclusiveMinimum",
    "exclusive_maximum": "exclusiveMaximum",
    "multiple_of": "multipleOf",
    "unique_items": "uniqueItems",
    **{
        f"{bound}_{what}": f"{bound}{what.title()}"
        for bound in ("min", "max")
        for what in ("length", "items", "properties")
    },
}
#: Gemini's types as protocol buffers number them.
_NUMBERED = ("TYPE_UNSPECIFIED", "STRING", "NUMBER", "INTEGER", "BOOLEAN", "ARRAY", "OBJECT", "NULL")
_ZEROS: tuple[Any, ...] = (None, False, 0, "", "0", [], {})
#: Keywords that never have the value null: ``model_dump()`` writes it for a field that was not given.
_NEVER_NULL = (frozenset(KEYWORDS) - (KEYWORDS.data - {"enum"})) | {"optional", "propertyOrdering"}
#: Texts that ``required`` may have on one property.
_FLAGS = ("true", "false", "")
#: The way to a subschema: names of keywords and properties, and indices.
_Steps = tuple[object, ...]
_OLD_DRAFTS = ("draft-03", "draft-04", "draft-06", "draft-07")


def to_json_schema(schema: Any) -> dict[str, Any] | bool:
    """Return a schema of any dialect as Draft 2020-12.

    Args:
        schema: a schema in any of the dialects above; a plain Draft 2020-12 schema comes back as an equal copy.

    Raises:
        InvalidSchemaError: a type name that no dialect knows, or something other than a schema where one must be.
        LimitError: nested more than 150 levels deep.

    Law: ``to_json_schema(to_json_schema(s)) == to_json_schema(s)``.
    """
    declared = schema.get("$schema") if isinstance(schema, Mapping) else None
    old = isinstance(declared, str) and any(draft in declared for draft in _OLD_DRAFTS)
    try:
        converted: dict[str, Any] | bool = require_tags(_Converter(old).convert(schema, ()))
        return converted
    except RecursionError:  # the caller's own stack was deep already, or the nesting is in an enum or default
        raise LimitError("the schema is nested too deeply", hint="use $ref for recursive structures") from None


def is_type_name(name: str) -> bool:
    """Return True if a ``type`` keyword of some dialect may have this value."""
    return schema_of_type(name) is not None


def is_finite(value: Any) -> bool:
    """Return True if JSON can write every number in a value."""
    if isinstance(value, float):
        return math.isfinite(value)
    if isinstance(value, Mapping):
        return all(map(is_finite, value.values()))
    return not isinstance(value, (list, tuple)) or all(map(is_finite, value))


class _Converter:
    """One conversion: knows which dicts it is inside of, to turn cycles into references."""

    def __init__(self, old_draft: bool) -> None:
        self.old_draft = old_draft
        self.open: dict[int, _Steps] = {}

    def convert(self, schema: Any, steps: _Steps) -> dict[str, Any] | bool:
        """Return a schema in JSON Schema 2020-12; one that contains itself refers to its place.

        Args:
            schema: in any of the dialects.
            steps: its place in the whole schema.
        """
        if isinstance(schema, bool):
            return schema
        if not isinstance(schema, Mapping):
            raise InvalidSchemaError(
                f"expected a schema (object or boolean), found {type(schema).__name__}",
                place=_place(steps),
            )
        if id(schema) in self.open:
            return {"$ref": "#" + to_pointer(self.open[id(schema)])}
        if len(self.open) >= MAX_DEPTH:
            raise LimitError(
                f"the schema is nested more than {MAX_DEPTH} levels deep",
                hint="use $ref for recursive structures",
                place=_place(steps),
            )
        self.open[id(schema)] = steps
        try:
            return self._object(schema, steps)
        finally:
            del self.open[id(schema)]

    def _object(self, schema: Mapping[str, Any], steps: _Steps) -> dict[str, Any] | bool:
        """Return a schema that is an object, keyword by keyword."""
        for key in schema:
            if not isinstance(key, str):
                raise InvalidSchemaError(f"the key {key!r} is not a string", place=_place(steps))
        schema = _by_the_standard(schema)
        if self.old_draft and "$ref" in schema:
            # Before Draft 2019-09 everything beside $ref is ignored; definitions are still reachable by pointer.
            keep = ("$ref", "definitions", "$defs", "description", "title", "default", "examples")
            schema = {key: schema[key] for key in schema if key in keep}
        result: dict[str, Any] = {}
        for key, value in schema.items():
            here = (*steps, key)
            if key == "type":
                self._type(value, schema, result, here)
            elif key in _ONE_SCHEMA:
                result[key] = self.convert(value, here)
            elif key in KEYWORDS.schema_lists:
                result[key] = self._list(value, here)
            elif key in KEYWORDS.schema_maps:
                result[key] = self._map(value, here)
            elif key == "items":
                self._items(schema, result, steps)
            elif key == "dependencies":
                self._dependencies(value, result, steps)
            elif key in ("required", "optional", "nullable", "additionalItems") or (
                key == "$schema" and self.old_draft
            ):
                continue  # dealt with below, or with "items"
            elif key in ("exclusiveMinimum", "exclusiveMaximum") and isinstance(value, bool):
                bound = "minimum" if key == "exclusiveMinimum" else "maximum"
                if value and bound in schema:
                    result[key] = schema[bound]
            elif key in _NUMBERS and isinstance(value, str):
                result[key] = _number(value)
            else:
                result[key] = copy.deepcopy(value)
                if not is_finite(value):
                    raise InvalidSchemaError(
                        f"{key} contains an infinity or NaN, which JSON cannot represent",
                        hint="leave it out",
                        place=_place(here),
                    )
        _order_properties(schema.get("propertyOrdering"), result)
        self._required(schema, result)
        return _nullable(result) if schema.get("nullable") is True else result

    def _type(self, value: Any, schema: Mapping[str, Any], result: dict[str, Any], steps: _Steps) -> None:
        """Add ``type`` to a result; a name that stands for more than a type of JSON adds its other keywords."""
        names = value if isinstance(value, (list, tuple)) else [value]
        types: list[str] = []
        others: list[dict[str, Any]] = []
        for name in names:
            named = schema_of_type(name)
            if named is None:
                raise InvalidSchemaError(
                    f"unknown type {name!r}",
                    hint="JSON types are object, array, string, number, integer, boolean and null",
                    place=_place(steps, keyword="type"),
                )
            if not named:
                return  # any value
            if set(named) == {"type"}:
                types += named["type"] if isinstance(named["type"], list) else [named["type"]]
            else:
                others.append(named)
        types = list(dict.fromkeys(types))
        if not others:
            result["type"] = types if isinstance(value, (list, tuple)) or len(types) > 1 else types[0]
            return
        if types or len(others) > 1:
            others = [{"anyOf": [*({"type": name} for name in types), *others]}]
        if "anyOf" in others[0] and "anyOf" in schema:
            raise InvalidSchemaError(
                f"the type {value!r} and anyOf are in one schema",
                hint="write the type as a part of anyOf",
                place=_place(steps, keyword="type"),
            )
        # What the type's name states of its parts counts where the schema has no keyword for it.
        result.update({key: part for key, part in others[0].items() if key == "type" or key not in schema})

    def _items(self, schema: Mapping[str, Any], result: dict[str, Any], steps: _Steps) -> None:
        """Add ``items`` to a result; a list of schemas is ``prefixItems``, and ``additionalItems`` then ``items``."""
        value = schema["items"]
        if isinstance(value, (list, tuple)):
            if value:
                result["prefixItems"] = self._list(value, (*steps, "prefixItems"))
            if "additionalItems" in schema:
                result["items"] = self.convert(schema["additionalItems"], (*steps, "items"))
        else:
            result["items"] = self.convert(value, (*steps, "items"))

    def _list(self, value: Any, steps: _Steps) -> list[Any]:
        if not isinstance(value, (list, tuple)):
            raise InvalidSchemaError("expected a list of schemas", place=_place(steps))
        return [self.convert(item, (*steps, index)) for index, item in enumerate(value)]

    def _map(self, value: Any, steps: _Steps) -> dict[str, Any]:
        if not isinstance(value, Mapping):
            raise InvalidSchemaError("expected an object of schemas", place=_place(steps))
        return {name: self.convert(sub, (*steps, name)) for name, sub in value.items()}

    def _dependencies(self, value: Any, result: dict[str, Any], steps: _Steps) -> None:
        """Add ``dependencies`` to a result: names as ``dependentRequired``, schemas as ``dependentSchemas``."""
        if not isinstance(value, Mapping):
            raise InvalidSchemaError("expected an object", place=_place(steps, keyword="dependencies"))
        for name, sub in value.items():
            if isinstance(sub, (list, tuple)):
                result.setdefault("dependentRequired", {})[name] = list(sub)
            else:
                result.setdefault("dependentSchemas", {})[name] = self.convert(sub, (*steps, "dependentSchemas", name))

    def _required(self, schema: Mapping[str, Any], result: dict[str, Any]) -> None:
        """Add ``required`` to a result: the names that the object or its properties require, but for the optional ones.

        ``required`` and ``optional`` are lists of names on the object, or true on a property. A value of ``required``
        that no dialect knows stays as it is, so that a later check refuses it.
        """
        stated = schema.get("required")
        required = list(stated) if isinstance(stated, (list, tuple)) else []
        listed = schema.get("optional")
        optional = {name for name in listed if isinstance(name, str)} if isinstance(listed, (list, tuple)) else set()
        properties = schema.get("properties")
        for name, sub in properties.items() if isinstance(properties, Mapping) else ():
            if isinstance(sub, Mapping):
                if _is_true(sub.get("required")) and name not in required:
                    required.append(name)
                if _is_true(sub.get("optional")) or is_optional_type(sub.get("type")):
                    optional.add(name)
        required = [name for name in required if not isinstance(name, str) or name not in optional]
        if required or isinstance(stated, (list, tuple)):
            result["required"] = required
        elif stated is not None and not isinstance(stated, bool) and str(stated).lower() not in _FLAGS:
            result["required"] = copy.deepcopy(stated)


def _order_properties(order: Any, result: dict[str, Any]) -> None:
    """Put the properties of a result in the order of Gemini's ``propertyOrdering``; those not in it come last."""
    if isinstance(order, (list, tuple)) and isinstance(result.get("properties"), dict):
        properties = result["properties"]
        first = [name for name in order if isinstance(name, str) and name in properties]
        result["properties"] = {name: properties[name] for name in dict.fromkeys([*first, *properties])}


def _place(steps: _Steps, keyword: str | None = None) -> Place:
    return Place(pointer=to_pointer(steps), keyword=keyword)


def _by_the_standard(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the schema with the standard's names of keywords, without those that are null.

    Of several names for a keyword, the standard's own counts, else the first: ``{"type_": ..., "param_type": ...}`` has
    the type of ``type_``.
    """
    if "type_" in schema:
        # A protocol buffer as a dict: what was not given has its type's zero value.
        kind = schema["type_"]
        kind = _NUMBERED[kind] if isinstance(kind, int) and 0 <= kind < len(_NUMBERED) else kind
        kept = ("type_", "properties") if kind == "OBJECT" else ("type_",)  # an object without properties is one
        schema = {key: value for key, value in schema.items() if key in kept or value not in _ZEROS} | {"type_": kind}
    if not any(key in _RENAMED or (value is None and key in _NEVER_NULL) for key, value in schema.items()):
        return schema
    result: dict[str, Any] = {}
    for key, value in schema.items():
        name = _RENAMED.get(key, key)
        if key == "ref" and isinstance(value, str) and value.startswith("#/defs/"):
            value = "#/$defs/" + value.removeprefix("#/defs/")
        if value is None and (name in _NEVER_NULL or key in ("default", "example")):
            continue  # in a dialect with other names or nulls, a default of null was not given either
        is_first = schema.get(name) is None and name not in result
        if name == key or is_first:
            result[name] = value
    return result


def _nullable(schema: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of the same values and null; changes the given one.

    With a type alone, null is one more type, and one more value of ``enum``. Other keywords may refuse null, so the
    schema is one of two alternatives, with its annotations and definitions outside.
    """
    kind = schema.get("type")
    may_refuse_null = any(key in schema for key in ("const", "allOf", "anyOf", "oneOf", "not", "$ref", "if"))
    if kind is None or may_refuse_null:
        outside: dict[str, Any] = {
            key: schema.pop(key) for key in ("title", "description", "default", "$defs", "definitions") if key in schema
        }
        return {**outside, "anyOf": [schema, {"type": "null"}]} if schema else outside
    types = kind if isinstance(kind, list) else [kind]
    schema["type"] = [*types, *(["null"] if "null" not in types else [])]
    if isinstance(schema.get("enum"), list) and None not in schema["enum"]:
        schema["enum"] = [*schema["enum"], None]
    return schema


def _number(text: str) -> Any:
    """Return the number that a string spells, as protocol buffers write large integers; else the string itself."""
    try:
        return int(text)
    except ValueError:
        pass
    try:
        number = float(text)
    except ValueError:
        return text
    return number if math.isfinite(number) else text


def _is_true(value: Any) -> bool:
    return value is True or (isinstance(value, str) and value.lower() == "true")


def response_schema_of(source: Any) -> dict[str, Any] | bool:
    """Return the schema of a JSON answer: a class's, or the schema itself."""
    if hasattr(source, "model_json_schema"):
        from toolgrammar.core.schema import json_schema_of  # which imports Pydantic

        source = json_schema_of(source, is_written=True)
    return to_json_schema(source)
