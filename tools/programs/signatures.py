"""The types of tools, as programs of calls use them: parameters, results, and which result fits which parameter.

A type is a JSON Schema. A value fits a parameter if its schema is a subset of the parameter's, which is proved
(`Grammar.compare`), and if it has the parameter's named type (``x-type``, a `NewType`; see `policy.grounded`). What is
not proved does not fit.
"""

from __future__ import annotations

import json
import keyword
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

from toolgrammar.core.basics import cached_property
from toolgrammar.core.errors import ToolGrammarError
from toolgrammar.core.grammar import Grammar
from toolgrammar.core.json import resolve_local

from ..policy.grounded import named_types, result_schema
from ..tool import Tool

#: Maximum depth of the fields of a result that a program can reach.
MAX_DEPTH = 5
#: Maximum number of schemas that are read of all tools; what is beyond is anything.
MAX_READ = 4_000
#: Maximum number of characters of a literal's rules that are tried as a regular expression.
MAX_RULES = 1_500
#: Keywords of a tool's parameters that say nothing of more than one argument.
_PLAIN = {"type", "properties", "required", "additionalProperties", "title", "description", "default", "examples"}
_PLAIN |= {"$defs", "definitions", "$schema", "$id", "x-type"}
#: Keywords that do not restrict values.
_SAID = {"title", "description", "default", "examples", "x-type", "x-trusted", "deprecated", "readOnly"}
#: A word that may be an id: it has a digit or a mark.
_LIKE_ID = r"[!#-&(-\[\]-~]*[0-9_@/#:-][!#-&(-\[\]-~]*"


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


class _Classes(dict[str, str]):
    """The classes of results so far, by name, and the number of schemas that were read."""

    read = 0


class Signatures:
    """The functions of programs over some tools.

    Attributes:
        functions: by name.
        left_out: why a tool cannot be called in a program, by its name.
    """

    def __init__(self, tools: Sequence[Tool]) -> None:
        self.functions: dict[str, Function] = {}
        self.left_out: dict[str, str] = {}
        titles = _Classes()
        for tool in tools:
            name = re.sub(r"\W", "_", tool.name, flags=re.ASCII)
            reason = self._unusable(name, tool)
            if reason is None:
                self.functions[name] = _function(name, tool, titles)
            else:
                self.left_out[tool.name] = reason

    def _unusable(self, name: str, tool: Tool) -> str | None:
        schema = tool.parameters
        if not name.isidentifier() or keyword.iskeyword(name) or name == "print":
            return f"{tool.name!r} is no name of a function"
        if name in self.functions:
            return f"{self.functions[name].tool.name!r} has the same name in a program"
        if beside := schema.keys() - _PLAIN:
            return f"its arguments depend on each other ({min(beside)})"
        hidden = [
            key for key in schema.get("required", ()) if not _is_name(key) or key not in schema.get("properties", ())
        ]
        return f"the argument {hidden[0]!r} has no name in a program" if hidden else None

    def definition(self, words: Sequence[str] | None, *, statements: int, nested: int) -> str:
        """Return the definition of the grammar of programs, as ``read_programs`` takes it.

        Args:
            words: the ids that a program may write as literals; None: any word that may be one.
            statements: greatest number of statements.
            nested: greatest number of calls inside of each other.
        """
        return _Definition(words).text(self.functions, statements, nested)


def _is_name(text: str) -> bool:
    return text.isidentifier() and text.isascii() and not keyword.iskeyword(text)


def _function(name: str, tool: Tool, titles: _Classes) -> Function:
    arguments, results = named_types(tool)
    needed = set(tool.parameters.get("required", ()))
    parameters = [
        Parameter(key, _type(schema, tool.parameters, arguments, (key,), "*", "", titles), key in needed)
        for key, schema in tool.parameters.get("properties", {}).items()
        if _is_name(key)
    ]
    schema = result_schema(tool) or {}
    title = "".join(part.title() for part in name.split("_"))
    result = _type(schema, schema, results, (), None, title, titles)
    return Function(name, tool, tuple(sorted(parameters, key=lambda one: not one.is_required)), result)


def _type(
    schema: Any, root: Any, names: Mapping[tuple[str, ...], str], steps: tuple[str, ...], item: str | None, title: str,
    titles: _Classes, depth: int = MAX_DEPTH,
) -> Type:  # fmt: skip
    """Return the type of a schema.

    Args:
        schema: the schema.
        root: the schema around it, for references.
        names: the named types, by the steps that lead to them.
        steps: what leads to this schema.
        item: the step of an item; None: none.
        title: the name of the class, if it is an object that says none.
        titles: the classes so far, by name.
        depth: how many levels of fields are read.
    """
    resolved = schema
    for _ in range(MAX_DEPTH):
        if not isinstance(resolved, Mapping) or set(resolved) - _SAID != {"$ref"}:
            break
        reference = str(resolved["$ref"])
        title = reference.rpartition("/")[2] if _is_name(reference.rpartition("/")[2]) else title
        try:
            resolved = resolve_local(root, reference)
        except LookupError:
            return Type({})
    titles.read += 1
    if not isinstance(resolved, Mapping) or depth == 0 or titles.read > MAX_READ:
        return Type({})
    own = {key: one for key, one in resolved.items() if key not in _SAID and key not in ("$defs", "definitions")}
    name = names.get(steps, "")
    kind = own.get("type")

    def below(inner: Any, more: tuple[str, ...], label: str) -> Type:
        return _type(inner, root, names, (*steps, *more), item, label, titles, depth - 1)

    if kind == "object" and own.get("properties"):
        title = str(resolved.get("title") or title)
        title = title if _is_name(title) else re.sub(r"\W", "", title) or "Result"
        fields = {
            key: below(inner, (key,), title + key.title().replace("_", ""))
            for key, inner in own["properties"].items()
            if _is_name(key)
        }
        return _named_once(Type(_whole(own, root), "", fields, title=title), titles)
    if kind == "array" and isinstance(own.get("items"), Mapping):
        return Type(_whole(own, root), items=below(own["items"], (item,) if item else (), title or "Item"))
    return Type(_whole(own, root), name)


def _named_once(kind: Type, titles: _Classes) -> Type:
    """Return the type of an object under a name that no other class has."""
    made, number = kind, 1
    while titles.setdefault(made.title, made.key) != made.key:
        number += 1
        made = replace(kind, title=f"{kind.title}{number}")
    return made


def _whole(schema: Mapping[str, Any], root: Any) -> dict[str, Any]:
    """Return a schema with the definitions that it refers to."""
    if '"$ref"' not in json.dumps(schema, default=str):
        return dict(schema)
    return {**schema, **{key: root[key] for key in ("$defs", "definitions") if key in root}}


class _Definition:
    """A definition that is being made: the types and slots so far."""

    def __init__(self, words: Sequence[str] | None) -> None:
        self._words = words
        self._types: dict[str, tuple[str, Type]] = {}
        self._slots: dict[str, tuple[str, Type]] = {}

    def text(self, functions: Mapping[str, Function], statements: int, nested: int) -> str:
        """Return it."""
        constants = [(self._literal(Type(schema)), self._type(Type(schema))) for schema in _CONSTANTS]
        made = {
            name: {
                "parameters": [[one.name, self._slot(one.type), one.is_required] for one in function.parameters],
                "result": self._type(function.result),
            }
            for name, function in functions.items()
        }
        data = {
            "functions": made,
            "slots": {name: self._filled(wanted) for name, wanted in list(self._slots.values())},
            "types": {name: self._parts(kind) for name, kind in list(self._types.values()) if self._parts(kind)},
            "constants": [[literal, kind] for literal, kind in constants if literal is not None],
            "statements": statements,
            "nested": nested,
        }
        return json.dumps(data)

    def _type(self, kind: Type) -> str:
        key = kind.key
        if key not in self._types:
            self._types[key] = f"t{len(self._types)}", kind
            self._parts(kind)
        return self._types[key][0]

    def _parts(self, kind: Type) -> dict[str, str]:
        parts = {name: self._type(one) for name, one in kind.fields.items()}
        return parts if kind.items is None else {"[]": self._type(kind.items)}

    def _slot(self, wanted: Type) -> str:
        key = json.dumps([wanted.name, wanted.schema, wanted.items and wanted.items.key], sort_keys=True, default=str)
        if key not in self._slots:
            self._slots[key] = f"s{len(self._slots)}", wanted
            if _is_list(wanted) and wanted.items is not None:
                self._slot(wanted.items)
        return self._slots[key][0]

    def _filled(self, wanted: Type) -> dict[str, Any]:
        items = self._slot(wanted.items) if _is_list(wanted) and wanted.items is not None else None
        takes = [name for name, kind in self._types.values() if fits(kind, wanted)]
        return {"literal": None if items else self._literal(wanted), "takes": takes, "items": items}

    def _literal(self, wanted: Type) -> dict[str, str] | None:
        """Return the grammar of the literals of a type; None: there are none, or they cannot be written exactly."""
        if wanted.name:
            return self._id(wanted)
        return literal_grammar(wanted.schema)

    def _id(self, wanted: Type) -> dict[str, str] | None:
        """Return the grammar of the ids of a named type that may stand as literals."""
        is_text = wanted.schema.get("type") == "string"
        if self._words is None:
            like: dict[str, Any] = {"pattern": f"^(?:{_LIKE_ID})$"} if is_text else {"minimum": 0}
        else:
            ids = [word for word in self._words if is_text or re.fullmatch(r"0|[1-9]\d{0,17}", word)]
            like = {"enum": [word if is_text else int(word) for word in ids]}
        return literal_grammar({"allOf": [wanted.schema, like]})


#: What ``name = literal`` may bind.
_CONSTANTS: tuple[Mapping[str, Any], ...] = tuple({"type": kind} for kind in ("string", "integer", "boolean"))


def _is_list(kind: Type) -> bool:
    """Return True for lists of values of any number."""
    return kind.items is not None and not kind.schema.keys() - {"type", "items", "$defs", "definitions"}


def literal_grammar(schema: Mapping[str, Any]) -> dict[str, str] | None:
    """Return the grammar of the values of a schema as Python's literals; None if it has no exact text."""
    text = _literal_text(_canonical(schema))
    return None if text is None else {"syntax": text[0], "definition": text[1]}


@lru_cache(maxsize=1_024)  # shared by the process and bounded: a pure function
def _literal_text(schema: str) -> tuple[str, str] | None:
    try:
        grammar = Grammar.python_literal(json.loads(schema))
        rules = grammar.to_gbnf()
        if grammar.unenforced or grammar.narrowed or rules.unsaid:
            return None
    except ToolGrammarError:
        return None
    if len(rules.text) <= MAX_RULES:
        with suppress(ToolGrammarError):
            return "regex", grammar.to_regex().text  # one term, of which masks know more than of rules
    return "gbnf", rules.text


def fits(given: Type, wanted: Type) -> bool:
    """Return True if it is proved that a value of a type may be given where another one is wanted."""
    if wanted.name:
        return given.name == wanted.name and not _may_be_null(given)
    if not wanted.schema.keys() - _SAID:
        return True
    if not given.schema or given.fields or any(_objects(given)):
        return False  # of a class of its own
    if given.items is not None and wanted.items is not None and _is_list(wanted) and _is_list(given):
        return fits(given.items, wanted.items)
    return _is_subset(_canonical(given.schema), _canonical(wanted.schema))


def _objects(kind: Type) -> Iterator[Type]:
    if kind.items is not None:
        yield from [kind.items] if kind.items.fields else _objects(kind.items)


def _may_be_null(kind: Type) -> bool:
    return not _is_subset(_canonical(kind.schema), '{"not": {"type": "null"}}')


def _canonical(schema: Mapping[str, Any]) -> str:
    return json.dumps(schema, sort_keys=True, default=str)


@lru_cache(maxsize=8_192)  # shared by the process and bounded: a pure function
def _is_subset(given: str, wanted: str) -> bool:
    """Return True if it is proved that a schema allows no more than another one."""
    first, second = json.loads(given), json.loads(wanted)
    if given == wanted:
        return True
    kinds = first.get("type"), second.get("type")
    if all(isinstance(kind, str) for kind in kinds) and kinds[0] != kinds[1] and kinds != ("integer", "number"):
        return False
    try:
        return Grammar.from_json_schema(first).compare(Grammar.from_json_schema(second)).covers is True
    except ToolGrammarError:
        return False
