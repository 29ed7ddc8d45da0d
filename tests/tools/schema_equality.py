"""Whether two schemas say the same, up to spelling: what round trips through other notations are judged by."""

from __future__ import annotations

import json
from typing import Any

_MAPS = ("properties", "patternProperties", "dependentSchemas")
_LISTS = ("anyOf", "oneOf", "allOf", "prefixItems")
_ONE = ("items", "additionalProperties", "not", "contains", "propertyNames", "if", "then", "else")
_OBJECT = ("properties", "required", "additionalProperties", "patternProperties", "minProperties", "maxProperties")
_ARRAY = ("items", "prefixItems", "minItems", "maxItems", "uniqueItems")


def spelled(schema: Any) -> str:
    """One text for all spellings of a schema: two schemas say the same if their texts are equal."""
    names: dict[str, str] = {}
    bodies: list[str] = []

    def refer(reference: str) -> str:
        if reference not in names:
            names[reference] = f"#{len(names)}"
            place = len(bodies)
            bodies.append("")
            bodies[place] = json.dumps(walk(_resolve(schema, reference)), sort_keys=True)
        return names[reference]

    def walk(part: Any) -> Any:
        if part is True or part == {"not": {}}:
            return {} if part is True else False
        if not isinstance(part, dict):
            return part
        result = {key: value for key, value in part.items() if key not in ("$defs", "definitions", "$schema")}
        if "const" in result and "enum" not in result:
            result["enum"] = [result.pop("const")]
        if "enum" in result:
            unique = {json.dumps(value, sort_keys=True): value for value in result["enum"]}
            result["enum"] = [unique[key] for key in sorted(unique)]
            if "type" in result and all(_is(value, result["type"]) for value in result["enum"]):
                del result["type"]
        if isinstance(result.get("type"), list):
            kinds = set(result["type"])
            result["type"] = sorted(kinds - {"integer"} if "number" in kinds else kinds)
            if len(result["type"]) == 1:
                result["type"] = result["type"][0]
        if result.get("required") == []:
            del result["required"]
        if "required" in result:
            result["required"] = sorted(set(result["required"]))
        if "prefixItems" in result and result.get("items") is False:
            result["maxItems"] = min(result.get("maxItems", 10**9), len(result["prefixItems"]))
        if "prefixItems" in result and result.get("maxItems", 10**9) <= len(result["prefixItems"]):
            result.pop("items", None)
        if result.get("minItems") == 0:
            del result["minItems"]
        if result.get("items") in ({}, True):
            del result["items"]
        if result.get("properties") == {} and result.get("additionalProperties") not in (None, False):
            del result["properties"]
        for key in _MAPS:
            if key in result:
                result[key] = {name: walk(sub) for name, sub in result[key].items()}
        for key in _LISTS:
            if key in result:
                result[key] = [walk(sub) for sub in result[key]]
        for key in _ONE:
            if key in result:
                result[key] = walk(result[key])
        if "$ref" in result:
            result["$ref"] = refer(result["$ref"])
        if isinstance(result.get("type"), list) and any(key in result for key in (*_OBJECT, *_ARRAY)):
            about = {"object": _OBJECT, "array": _ARRAY}
            members = []
            for kind in result.pop("type"):
                own = {key: result[key] for key in about.get(kind, ()) if key in result}
                members.append({"type": kind, **own})
            result = {key: value for key, value in result.items() if key not in (*_OBJECT, *_ARRAY)}
            result["anyOf"] = members
        for key in ("anyOf", "oneOf"):
            if key in result and "type" not in result:
                _merge(result, key)
        return result

    root = dict(schema) if isinstance(schema, dict) else schema
    while isinstance(root, dict) and "$ref" in root:
        # A root that only refers is what it refers to.
        target = _resolve(schema, root["$ref"])
        siblings = {key: value for key, value in root.items() if key not in ("$ref", "$defs", "definitions", "$schema")}
        clash = set(siblings) & set(target) - {"title", "description", "default", "examples"} - {"type"}
        if clash:
            break
        root = {**target, **siblings}
    return json.dumps([walk(root), bodies], sort_keys=True)


def _merge(result: dict[str, Any], key: str) -> None:
    """A union whose members are told apart by type or value needs no ``oneOf``, and may be a list of types."""
    members = []
    for member in result[key]:
        nested = isinstance(member, dict) and set(member) == {"anyOf"}
        for inner in member["anyOf"] if nested else [member]:
            if isinstance(inner, dict) and set(inner) == {"type"} and isinstance(inner["type"], list):
                members += [{"type": kind} for kind in inner["type"]]
            elif isinstance(inner, dict) and set(inner) == {"enum"}:
                members += [{"enum": [value]} for value in inner["enum"]]
            elif inner is not False and inner not in members:
                members.append(inner)
    members = [{"enum": [None]} if member == {"type": "null"} else member for member in members]
    kinds = [member.get("type") if isinstance(member, dict) else None for member in members]
    apart = (
        None not in kinds and len({str(kind) for kind in kinds}) == len(kinds) and {"integer", "number"} - set(kinds)
    )
    null = [{"enum": [None]}]
    apart = apart or (len(kinds) == 2 and null[0] in members and sum(kind is not None for kind in kinds) == 1)
    if {} in members and key == "anyOf":
        del result[key]
        return
    if all(set(member) == {"type"} or member in null for member in members) and (key == "anyOf" or apart):
        # Plain types: the list of them.
        del result[key]
        result["type"] = sorted({"null" if member in null else member["type"] for member in members})
        return
    members.sort(key=lambda member: json.dumps(member, sort_keys=True))
    del result[key]
    result["anyOf" if key == "anyOf" or apart else "oneOf"] = members


def _is(value: Any, kinds: Any) -> bool:
    names = kinds if isinstance(kinds, list) else [kinds]
    if isinstance(value, bool):
        return "boolean" in names
    kind = {str: "string", int: "integer", float: "number", dict: "object", list: "array"}.get(type(value), "null")
    whole = isinstance(value, float) and value == int(value) and "integer" in names
    return kind in names or (kind == "integer" and "number" in names) or whole


def _resolve(schema: Any, reference: str) -> Any:
    found = schema
    for step in reference.removeprefix("#").split("/")[1:]:
        step = step.replace("~1", "/").replace("~0", "~")
        found = found[int(step)] if isinstance(found, list) else found[step]
    return found
