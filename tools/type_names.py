"""Names of types in tool descriptions as JSON Schema: ``str``, ``List[int]``, ``Dict[str, float]``, ``str, optional``.

The text is parsed as a Python expression and never evaluated.
"""

from __future__ import annotations

import ast
from typing import Any

_MAX_LENGTH = 1_000
_TYPES = {
    **{name: name for name in ("object", "array", "string", "number", "integer", "boolean", "null")},
    **dict.fromkeys(("dict", "map", "hashmap", "hashtable", "mapping"), "object"),
    **dict.fromkeys(
        ("list", "tuple", "set", "frozenset", "sequence", "iterable", "collection", "arraylist", "queue", "stack"),
        "array",
    ),
    **dict.fromkeys(("str", "char", "text"), "string"),
    **dict.fromkeys(("float", "double", "decimal"), "number"),
    **dict.fromkeys(("int", "long", "short", "byte", "bigint"), "integer"),
    "bool": "boolean",
    **dict.fromkeys(("none", "nonetype"), "null"),
}
_ANY = frozenset({"any", "type_unspecified"})


def schema_of_type(value: Any) -> dict[str, Any] | None:
    """Return the schema that the name of a type stands for, ``{}`` for any value; None if it is not the name of a type.

    Args:
        value: a name, or an expression of names.
    """
    if not isinstance(value, str):
        return None
    if value.lower() in _ANY:
        return {}
    if value.lower() in _TYPES:
        return {"type": _TYPES[value.lower()]}
    if len(value) > _MAX_LENGTH:
        return None
    try:
        return _read(ast.parse(value.strip(), mode="eval").body)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def is_optional_type(value: Any) -> bool:
    """Return True if a type is marked as optional, as in ``str, optional``."""
    return isinstance(value, str) and value.replace(" ", "").lower().endswith(",optional")


def _read(node: ast.expr) -> dict[str, Any] | None:
    """Return the schema of an expression of types; None if a part of it is no type."""
    if isinstance(node, ast.Tuple):  # "str, optional"
        marks = [part.id.lower() for part in node.elts[1:] if isinstance(part, ast.Name)]
        return _read(node.elts[0]) if node.elts and marks == ["optional"] * (len(node.elts) - 1) else None
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
        return _any_of([_read(node.left), _read(node.right)])
    if isinstance(node, ast.BoolOp) and isinstance(node.op, ast.Or):  # "int or str"
        return _any_of([_read(part) for part in node.values])
    if isinstance(node, ast.Constant) and (node.value is None or isinstance(node.value, str)):
        return {"type": "null"} if node.value is None else schema_of_type(node.value)
    name = _name(node)
    if name is not None:
        return {} if name in _ANY else ({"type": _TYPES[name]} if name in _TYPES else None)
    if isinstance(node, ast.Subscript):
        inner = list(node.slice.elts) if isinstance(node.slice, ast.Tuple) else [node.slice]
        return _subscript(_name(node.value), inner)
    return None


def _subscript(name: str | None, inner: list[ast.expr]) -> dict[str, Any] | None:
    """Return the schema of ``name[inner]``, with the name in lower case: of a generic type, ``optional``, ``union`` or
    ``literal``."""
    if name == "literal":
        values = [part.value for part in inner if isinstance(part, ast.Constant)]
        return {"enum": values} if len(values) == len(inner) and all(map(_is_json, values)) else None
    if name == "tuple" and not (len(inner) == 2 and _is_ellipsis(inner[1])):
        parts = [_read(part) for part in inner]
        if None in parts:
            return None
        return {"type": "array", "prefixItems": parts, "items": False, "minItems": len(parts)}
    parts = [_read(part) for part in inner if not _is_ellipsis(part)]
    if name is None or None in parts:
        return None
    if name == "optional" and len(parts) == 1:
        return _any_of([parts[0], {"type": "null"}])
    if name == "union":
        return _any_of(parts)
    kind = _TYPES.get(name)
    if kind == "array" and len(parts) == 1:
        return {"type": "array", "items": parts[0]}
    if kind == "object" and len(parts) == 2:
        return {"type": "object", "additionalProperties": parts[1]}
    return None


def _any_of(parts: list[dict[str, Any] | None]) -> dict[str, Any] | None:
    """Return the union of schemas: of types if they are nothing else."""
    schemas = [part for part in parts if part is not None]
    if len(schemas) < len(parts):
        return None
    if {} in schemas:
        return {}
    if all(set(part) == {"type"} for part in schemas):
        types = [
            kind for part in schemas for kind in (part["type"] if isinstance(part["type"], list) else [part["type"]])
        ]
        types = list(dict.fromkeys(types))
        return {"type": types if len(types) > 1 else types[0]}
    return {"anyOf": schemas}


def _name(node: ast.expr) -> str | None:
    """Return a name, in lower case and without the module before it (``typing.List``)."""
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        return node.attr.lower()
    return node.id.lower() if isinstance(node, ast.Name) else None


def _is_ellipsis(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is Ellipsis


def _is_json(value: object) -> bool:
    return value is None or isinstance(value, (str, int, bool))
