"""BAML's coercion of text to types, for ``repair.py``: tools as BAML classes, and the calls that BAML reads in a text.

A call is a class of ``name`` (a literal) and ``arguments`` (a class of the tool's parameters); a tool set is a function
that returns a list of their union. What BAML's types cannot say (formats, bounds) is left out; validation judges it.
"""

from __future__ import annotations

import json
import types
from typing import Any

import pydantic

from toolgrammar.core import ParseError, ToolCall
from toolgrammar.tools import ToolSet

_HEAD = 'client<llm> Nobody {\n  provider openai\n  options {\n    model "none"\n    api_key "none"\n  }\n}\n'
_HEAD += "type AnyJson = string | int | float | bool | null | AnyJson[] | map<string, AnyJson>\n"
_SCALARS = {"string": "string", "integer": "int", "number": "float", "boolean": "bool", "null": "null"}


class BamlReader:
    """Reads calls of a tool set.

    Args:
        tools: the tools.

    Raises:
        ImportError: baml-py is not installed.
        baml_py.BamlError: BAML refuses the types.
    """

    def __init__(self, tools: ToolSet) -> None:
        import baml_py

        self._tools = tools
        self._classes: list[str] = []
        self._names: list[str] = []  # of the members of all classes: BAML's names are their numbers
        calls = [self._call(tool.name, tool.parameters) for tool in tools]
        source = _HEAD + "".join(self._classes)
        source += f'function Calls() -> ({" | ".join(calls)})[] {{\n  client Nobody\n  prompt #"none"#\n}}\n'
        self._runtime = baml_py.BamlRuntime.from_files(".", {"tools.baml": source}, {})
        # What BAML finds comes as instances of the classes of a module: models that take any members.
        self._module = types.ModuleType("baml_types")
        for name in (f"C{number}" for number in range(len(self._classes))):
            config = pydantic.ConfigDict(extra="allow")
            setattr(self._module, name, type(name, (pydantic.BaseModel,), {"model_config": config}))

    def calls(self, text: str) -> list[ToolCall]:
        """Return the valid calls in a text.

        Raises:
            ParseError: there are none.
            baml_py.BamlError: BAML cannot read the text as calls.
            InvalidArgumentsError: what it reads is not valid.
        """
        module = self._module
        context = self._runtime.create_context_manager()
        found = self._runtime.parse_llm_response("Calls", text, module, module, module, False, context, None, None, {})
        read = [self._plain(one) for one in found]
        calls = [self._tools.validate(ToolCall("", one["name"], one.get("arguments", {}))) for one in read]
        if not calls:
            raise ParseError("no call")
        return calls

    def _call(self, name: str, parameters: Any) -> str:
        """Add the classes of a tool; return the name of its call's."""
        members = {"properties": {"name": {"enum": [name]}, "arguments": parameters}, "required": ["name", "arguments"]}
        return self._type({"type": "object", **members})

    def _type(self, schema: Any) -> str:
        """Return the BAML type of a schema; classes that it needs are added."""
        if "enum" in schema:
            values = [value for value in schema["enum"] if isinstance(value, (str, bool, int))]
            return f"({' | '.join(json.dumps(value, ensure_ascii=False) for value in values)})" if values else "AnyJson"
        kind = schema.get("type")
        if isinstance(kind, list):
            return f"({' | '.join(self._type({**schema, 'type': one}) for one in kind)})"
        if kind == "array":
            return f"{self._type(schema.get('items', {}))}[]"
        if kind == "object" and schema.get("properties"):
            return self._class(schema)
        return "map<string, AnyJson>" if kind == "object" else _SCALARS.get(kind, "AnyJson")

    def _class(self, schema: Any) -> str:
        lines = []
        for member, inner in schema["properties"].items():
            optional = "" if member in schema.get("required", ()) else "?"
            kind, alias = self._type(inner), json.dumps(member, ensure_ascii=False)
            lines.append(f"  m{len(self._names)} {kind}{optional} @alias({alias})\n")
            self._names.append(member)
        self._classes.append(f"class C{len(self._classes)} {{\n{''.join(lines)}}}\n")
        return f"C{len(self._classes) - 1}"

    def _plain(self, value: Any) -> Any:
        """Return what BAML found as JSON: optional members that it did not find are left out."""
        if isinstance(value, list):
            return [self._plain(item) for item in value]
        if not isinstance(value, (dict, pydantic.BaseModel)):
            return value
        members = dict(value).items()  # of a class, or of a map
        return {self._name(key): self._plain(inner) for key, inner in members if inner is not None}

    def _name(self, key: str) -> str:
        """Return the name that a member has in the schema; a key of a map stays as it is."""
        number = key[1:]
        return self._names[int(number)] if key[:1] == "m" and number.isdigit() else key
