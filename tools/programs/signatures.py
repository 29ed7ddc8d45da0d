"""The types of tools, as programs of calls use them: of parameters and of results, read from their schemas."""

from __future__ import annotations

import json
import keyword
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from toolgrammar.core.basics import cached_property
from toolgrammar.core.json import resolve_local

from ..policy.grounded import named_types, result_schema
from ..tool import Tool

#: Maximum depth of the fields of a result that a program can reach.
MAX_DEPTH = 5
#: Maximum number of schemas that are read of all tools; what is beyond is anything.
MAX_READ = 4_000
#: Keywords of a tool's parameters that make no argument depend on another one.
_PLAIN = {"type", "properties", "required", "additionalProperties", "title", "description", "default", "examples"}
_PLAIN |= {"$defs", "definitions", "$schema", "$id", "x-type"}
#: Keywords that do not restrict values.
SAID = {"title", "description", "default", "examples", "x-type", "x-trusted", "deprecated", "readOnly"}
_DEFINITIONS = ("$defs", "definitions")


@dataclass(frozen=True)
class Type:
    """The type of a value.

    Attributes:
        schema: its schema, without references; ``{}``: anything.
        name: its named type, or empty.
        fields: the types of an object's fields.
        items: the type of a list's items, or None.
        title: the name of an object's class.
    """

    schema: Mapping[str, Any]
    name: str = ""
    fields: Mapping[str, Type] = field(default_factory=dict)
    items: Type | None = None
    title: str = ""

    @cached_property
    def key(self) -> str:
        """Text that is equal for equal types."""
        parts: list[Any] = [self.name, self.title, {name: one.key for name, one in self.fields.items()}]
        parts += [self.items and self.items.key, {} if self.fields or self.items else self.schema]
        return json.dumps(parts, sort_keys=True, default=str)


@dataclass(frozen=True)
class Parameter:
    """A parameter: its name, type and necessity."""

    name: str
    type: Type
    is_required: bool


@dataclass(frozen=True)
class Function:
    """A tool as a function of a program.

    Attributes:
        name: its name in programs.
        tool: the tool.
        parameters: the required ones first.
        result: the type of what it returns.
    """

    name: str
    tool: Tool
    parameters: tuple[Parameter, ...]
    result: Type


class _Classes:
    """The classes of objects so far, whose names differ.

    Attributes:
        read: the number of schemas that were read.
    """

    def __init__(self) -> None:
        self.read = 0
        self._keys: dict[str, str] = {}

    def named_once(self, kind: Type) -> Type:
        """Return the type of an object under a name that no other class has."""
        made, number = kind, 1
        while self._keys.setdefault(made.title, made.key) != made.key:
            number += 1
            made = replace(kind, title=f"{kind.title}{number}")
        return made


class Signatures:
    """The functions of programs over some tools.

    Attributes:
        functions: by name.
        left_out: why a tool cannot be called in a program, by its name.
    """

    def __init__(self, tools: Sequence[Tool]) -> None:
        self.functions: dict[str, Function] = {}
        self.left_out: dict[str, str] = {}
        classes = _Classes()
        for tool in tools:
            name = re.sub(r"\W", "_", tool.name, flags=re.ASCII)
            reason = self._unusable(name, tool)
            if reason is None:
                self.functions[name] = _function(name, tool, classes)
            else:
                self.left_out[tool.name] = reason

    def _unusable(self, name: str, tool: Tool) -> str | None:
        """Return why a tool cannot be a function of this name; None if it can."""
        schema = tool.parameters
        if not name.isidentifier() or keyword.iskeyword(name) or name == "print":
            return f"{tool.name!r} is no name of a function"
        if name in self.functions:
            return f"{self.functions[name].tool.name!r} has the same name in a program"
        if beside := schema.keys() - _PLAIN:
            why = "a policy restricts its arguments" if tool.is_restricted else "its arguments depend on each other"
            return f"{why} ({min(beside)})"
        hidden = [
            key for key in schema.get("required", ()) if not _is_name(key) or key not in schema.get("properties", ())
        ]
        return f"the argument {hidden[0]!r} has no name in a program" if hidden else None


def _is_name(text: str) -> bool:
    """Return True for an ASCII identifier of Python that is no keyword."""
    return text.isidentifier() and text.isascii() and not keyword.iskeyword(text)


class _TypeReader:
    """The types of the values of one schema.

    Args:
        root: the schema, for references.
        names: the named types, by the steps that lead to them (`named_types`).
        item: the step of an item in these steps; None: items have no step.
        classes: the classes of objects so far.
    """

    def __init__(self, root: Any, names: Mapping[tuple[str, ...], str], item: str | None, classes: _Classes) -> None:
        self._root, self._names, self._classes = root, names, classes
        self._item = () if item is None else (item,)

    def read(self, schema: Any, steps: tuple[str, ...] = (), title: str = "", depth: int = MAX_DEPTH) -> Type:
        """Return the type of a schema.

        Args:
            schema: the schema.
            steps: what leads to it.
            title: the name of the class if it is an object: that of its schema or of its definition comes first.
            depth: how many levels of fields are read; below is anything.
        """
        resolved, title = self._resolved(schema, title)
        self._classes.read += 1
        if not isinstance(resolved, Mapping) or depth == 0 or self._classes.read > MAX_READ:
            return Type({})
        keywords = {key: one for key, one in resolved.items() if key not in SAID and key not in _DEFINITIONS}
        whole = self._with_definitions(keywords)
        if keywords.get("type") == "object" and keywords.get("properties"):
            title = re.sub(r"\W", "", str(resolved.get("title") or title), flags=re.ASCII)
            title = title if _is_name(title) else "Result"
            fields = {
                key: self.read(inner, (*steps, key), title + key.title().replace("_", ""), depth - 1)
                for key, inner in keywords["properties"].items()
                if _is_name(key)
            }
            return self._classes.named_once(Type(whole, fields=fields, title=title))
        if keywords.get("type") == "array" and isinstance(keywords.get("items"), Mapping):
            return Type(whole, items=self.read(keywords["items"], (*steps, *self._item), title or "Item", depth - 1))
        return Type(whole, self._names.get(steps, ""))

    def _resolved(self, schema: Any, title: str) -> tuple[Any, str]:
        """Return the schema to which a reference leads, and a title for it: the name of its definition.

        A schema without a reference stays, and so does the title if the definition has no name of Python. A reference
        to nothing leads to ``{}``.
        """
        for _ in range(MAX_DEPTH):
            if not isinstance(schema, Mapping) or set(schema) - SAID != {"$ref"}:
                break
            reference = str(schema["$ref"])
            name = reference.rpartition("/")[2]
            title = name if _is_name(name) else title
            try:
                schema = resolve_local(self._root, reference)
            except LookupError:
                return {}, title
        return schema, title

    def _with_definitions(self, schema: Mapping[str, Any]) -> dict[str, Any]:
        """Return a schema with the definitions that it may refer to."""
        if '"$ref"' not in json.dumps(schema, default=str):
            return dict(schema)
        return {**schema, **{key: self._root[key] for key in _DEFINITIONS if key in self._root}}


def _function(name: str, tool: Tool, classes: _Classes) -> Function:
    """Return a tool as a function of programs: named parameters, the required ones first, and its result."""
    arguments, results = named_types(tool)
    required = set(tool.parameters.get("required", ()))
    reader = _TypeReader(tool.parameters, arguments, "*", classes)
    parameters = [
        Parameter(key, reader.read(schema, (key,)), key in required)
        for key, schema in tool.parameters.get("properties", {}).items()
        if _is_name(key)
    ]
    schema = result_schema(tool)
    title = "".join(part.title() for part in name.split("_"))  # get_user -> GetUser
    result = _TypeReader(schema, results, None, classes).read(schema, title=title)
    return Function(name, tool, tuple(sorted(parameters, key=lambda one: not one.is_required)), result)
