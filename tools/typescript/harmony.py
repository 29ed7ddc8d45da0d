"""Tools as the namespace that Harmony prompts declare: the notation that gpt-oss was trained on.

Comments are lines of ``//``, defaults follow the type, and there are no tags, so constraints beyond types and
listed values are not in the prompt: the grammar enforces them all the same. For a notation that loses nothing, see
`printer`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

from toolgrammar.core.json import unescape

from ..tool import Tool

_SIMPLE = {"string": "string", "number": "number", "integer": "number", "boolean": "boolean", "null": "null"}


def tools_to_harmony(tools: Iterable[Tool], namespace: str = "functions") -> str:
    """Return the tools as the body of a Harmony prompt's section of tools.

    Args:
        tools: the tools, or a `ToolSet`.
        namespace: the name under which a model calls them (``functions.NAME``).

    Law: `tools_from_typescript` reads back the same names, descriptions, properties and required properties.
    """
    parts = [f"namespace {namespace} {{\n"]
    for tool in tools:
        comment = "".join(f"// {line}\n" for line in tool.description.split("\n")) if tool.description else ""
        writer = _Writer(tool.parameters)
        schema = writer.resolved(tool.parameters)
        has_arguments = not isinstance(schema, Mapping) or schema.get("properties", True)
        parts.append(
            f"{comment}type {tool.name} = {f'(_: {writer.type(schema)})' if has_arguments else '()'} => any;\n"
        )
    return "\n".join([*parts, f"}} // namespace {namespace}"])


class _Writer:
    """Types of one tool; references are written out, and a type inside itself is ``any``."""

    def __init__(self, root: Mapping[str, Any]) -> None:
        self._root = root
        self._open: list[str] = []  # the references around the type that is written; "" for a type without one

    def resolved(self, schema: Any) -> Any:
        """Return a schema with the definition of the tool that it refers to in place of the reference; what stands
        beside the reference has precedence. Of a reference that leads to itself, anything: ``True``."""
        seen: set[str] = set()
        while isinstance(schema, Mapping) and (
            match := re.fullmatch(r"#/(\$defs|definitions)/(.+)", schema.get("$ref", ""))
        ):
            if match[0] in seen:
                return True
            seen.add(match[0])
            # `Tool` writes ``type`` beside a reference of the whole schema.
            rest = {key: value for key, value in schema.items() if key not in ("$ref", "type")}
            definition = self._root.get(match[1], {}).get(unescape(match[2]), {})
            if not isinstance(definition, Mapping):
                return definition
            schema = {**definition, **rest}
        return schema

    def type(self, schema: Any) -> str:
        """Return a type, nested objects over several lines."""
        reference = schema.get("$ref") if isinstance(schema, Mapping) else None
        if reference in self._open:
            return "any"
        self._open.append(reference or "")
        try:
            return self._type(self.resolved(schema))
        finally:
            self._open.pop()

    def _type(self, schema: Any) -> str:
        """Return the type of a schema without a reference: ``{"type": "integer"} -> number``; ``any`` for most."""
        if not isinstance(schema, Mapping):
            return "any"
        if "enum" in schema or "const" in schema:
            values = schema["enum"] if "enum" in schema else [schema["const"]]
            return " | ".join(json.dumps(value, ensure_ascii=False) for value in values)
        for key in ("anyOf", "oneOf"):
            if isinstance(schema.get(key), list):
                return " | ".join(dict.fromkeys(self.type(member) for member in schema[key]))
        kinds = schema.get("type")
        if isinstance(kinds, list):
            return " | ".join(dict.fromkeys(self._type({**schema, "type": kind}) for kind in kinds))
        if kinds == "array":
            items = self.type(schema.get("items", {}))
            return f"({items})[]" if " | " in items else f"{items}[]"
        if kinds == "object" or (kinds is None and "properties" in schema):
            return self._object(schema)
        return _SIMPLE.get(str(kinds), "any")

    def _object(self, schema: Mapping[str, Any]) -> str:
        """Return the type of an object: a property a line, its description above it and its default behind it."""
        properties = schema.get("properties")
        if not properties:
            extra = schema.get("additionalProperties")
            return f"Record<string, {self.type(extra)}>" if isinstance(extra, Mapping) and extra else "object"
        lines = ["{"]
        for name, sub in properties.items():
            about = self.resolved(sub)
            about = about if isinstance(about, Mapping) else {}
            lines += [f"// {line}" for line in str(about.get("description", "")).split("\n") if line]
            key = name if re.fullmatch(r"[A-Za-z_$][\w$]*", name) else json.dumps(name)
            optional = "" if name in schema.get("required", ()) else "?"
            default = ""
            if "default" in about:
                value = about["default"]
                plain = isinstance(value, str) and "enum" in about
                default = f" // default: {value if plain else json.dumps(value, ensure_ascii=False)}"
            lines.append(f"{key}{optional}: {self.type(sub)},{default}")
        return "\n".join([*lines, "}"])
