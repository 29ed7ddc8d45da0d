"""Notation of policies: from the data of a file to rules, with errors that have a place and a hint."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any, NoReturn

from toolgrammar.core.errors import Place, PolicyError
from toolgrammar.core.json import escape, unescape

from .schema import FIELD, SCHEMA, UNITS, WORDS

_FILE = SCHEMA["properties"]
_ROLE = _FILE["roles"]["additionalProperties"]["properties"]
_SOURCE = SCHEMA["$defs"]["source"]["properties"]

_RULE = 'for example user, {"seen": "list_orders.id"}, {"values": [...]}, or a list of these'


@dataclass(frozen=True)
class Field:
    """A field of the results of a tool: a name at any depth, names with dots, or a path from the root (``/a/b``);
    ``**`` is each."""

    tool: str
    name: str = "**"

    def __str__(self) -> str:
        return self.tool if self.name == "**" else self.tool + ("" if self.name[0] == "/" else ".") + self.name


@dataclass(frozen=True, eq=False)
class Source:
    """One origin of values. What it names holds together.

    Attributes:
        user: unit of copies from messages of the user; None: it is not asked for.
        seen: values of these fields; empty: not asked for.
        copied: words of these fields; empty: not asked for.
        values: one of these; None: not asked for.
        schema: values of a JSON Schema (True: any), for the argument as a whole unless an origin is asked for.
        is_whole: ``values`` are for the argument as a whole, not for its items.
        asks: a person decides.
    """

    user: str | None = None
    seen: tuple[Field, ...] = ()
    copied: tuple[Field, ...] = ()
    values: tuple[Any, ...] | None = None
    schema: Any = True
    is_whole: bool = False
    asks: bool = False

    @property
    def has_origin(self) -> bool:
        """True if values come from the conversation."""
        return self.user is not None or bool(self.seen or self.copied)

    @property
    def is_open(self) -> bool:
        """True if it takes each value."""
        return not self.has_origin and self.values is None and self.schema is True

    @property
    def is_in_parts(self) -> bool:
        """True if it judges each string and number in a list or an object by itself."""
        return self.has_origin or (self.values is not None and not self.is_whole)


#: The sources of an argument, of which one suffices; none: it may not be written.
Rule = tuple[Source, ...]


@dataclass(frozen=True, eq=False)
class ToolRule:
    """What a layer says of a tool: the rules of arguments by their steps (``*``: each other member, or each item)."""

    arguments: Mapping[tuple[str, ...], Rule] = field(default_factory=dict)
    asks: bool = False


@dataclass(frozen=True, eq=False)
class Layer:
    """What one policy says of one role.

    Attributes:
        tools: the rules of tools by their names, or patterns of them; None: the tool is not allowed.
        repeats: patterns of tools whose calls may repeat after a result; None: those of all tools may.
        untrusted: fields whose values do not count as seen, nor those below them.
        trusted: fields that count although the schema of a result says that they are not trusted.
    """

    tools: Mapping[str, ToolRule | None]
    repeats: tuple[str, ...] | None = None
    untrusted: tuple[Field, ...] = ()
    trusted: tuple[Field, ...] = ()

    def rule_of(self, name: str) -> ToolRule | None:
        """Return the rule of a tool: that of its name, or of the longest pattern that matches it; None: the tool is not
        allowed."""
        if name in self.tools:
            return self.tools[name]
        found = [pattern for pattern in self.tools if fnmatchcase(name, pattern)]
        return self.tools[max(found, key=len)] if found else None

    def may_repeat(self, name: str) -> bool:
        """Return True if a call of a tool may be made again after its result."""
        return self.repeats is None or any(fnmatchcase(name, pattern) for pattern in self.repeats)


def roles_of(data: Any) -> dict[str, Layer]:
    """Return the layer of each role of a policy; the name of the only one is empty if the policy has no roles.

    Raises:
        PolicyError: the data are no policy; with the place in them.
    """
    policy = _mapping(data, "", _FILE)
    version = policy.get("policy", 1)
    if version != 1 or isinstance(version, bool):
        _refuse("/policy", f"version {version!r} is not known", "write policy: 1")
    if ("roles" in policy) == ("tools" in policy):
        _refuse("", "a policy has either roles or tools", "write tools: {...}, or roles: {name: {tools: {...}}}")
    untrusted = _fields(policy.get("untrusted", ()), "/untrusted")
    trusted = _fields(policy.get("trusted", ()), "/trusted")
    repeats = policy.get("repeats", "allow")
    if "tools" in policy:
        return {"": Layer(_tools(policy["tools"], "/tools"), _repeats(repeats, "/repeats"), untrusted, trusted)}
    roles: dict[str, Layer] = {}
    for name, data_of_role in _mapping(policy["roles"], "/roles").items():
        pointer = f"/roles/{escape(name)}"
        role = _mapping(data_of_role, pointer, _ROLE)
        own_repeats = _repeats(role.get("repeats", repeats), pointer + "/repeats")
        roles[name] = Layer(_tools(role.get("tools", {}), pointer + "/tools"), own_repeats, untrusted, trusted)
    if not all(roles) or not roles:
        _refuse("/roles", "there are no roles, or one without a name", "write roles: {name: {tools: {...}}}")
    return roles


def _refuse(pointer: str, problem: str, hint: str) -> NoReturn:
    raise PolicyError(problem, hint=hint, place=Place(pointer=pointer or None))


def _mapping(value: Any, pointer: str, members: Collection[str] | None = None) -> Mapping[str, Any]:
    """Return a value if it is an object with no other members than these (None: any), else raise `PolicyError`."""
    if not isinstance(value, Mapping) or not all(isinstance(name, str) for name in value):
        _refuse(pointer, f"an object is needed, not {type(value).__name__}", "write {name: ...}")
    unknown = sorted(set(value) - set(members)) if members is not None else []
    if unknown:
        _refuse(
            f"{pointer}/{escape(unknown[0])}", f"unknown member {unknown[0]!r}", f"known: {', '.join(members or ())}"
        )
    return value


def _fields(value: Any, pointer: str) -> tuple[Field, ...]:
    """Return the fields of a list, or of one field without a list."""
    return tuple(_field(each, pointer) for each in (value if isinstance(value, (list, tuple)) else [value]))


def _some_fields(source: Mapping[str, Any], name: str, pointer: str) -> tuple[Field, ...]:
    """Return the fields in a member of a source, at least one; none if the source does not have the member."""
    found = _fields(source.get(name, ()), f"{pointer}/{name}")
    if name in source and not found:  # an empty list would be no condition
        _refuse(f"{pointer}/{name}", "there is no field", "name one, or write never")
    return found


def _field(value: Any, pointer: str) -> Field:
    """Return a field of results: ``"list.id"``, ``"list/users/id"``, or ``{"tool": "list", "field": "id"}``.

    Raises:
        PolicyError: the value is no field.
    """
    if isinstance(value, str) and re.fullmatch(FIELD, value):
        tool = re.split("[./]", value, maxsplit=1)[0]
        return Field(tool, value[len(tool) :].removeprefix(".") or "**")
    if isinstance(value, Mapping) and set(value) <= {"tool", "field"}:
        tool, name = value.get("tool"), value.get("field", "**")
        if tool and name and isinstance(tool, str) and isinstance(name, str):
            return Field(tool, name)
    _refuse(
        pointer, f"{value!r} is no field of a result", 'write "tool.field", "tool/path/of/names", or "tool" for all'
    )


def _repeats(value: Any, pointer: str) -> tuple[str, ...] | None:
    """Return `Layer.repeats` of ``"allow"``, ``"refuse"``, or ``{"except": [patterns of tools]}``."""
    if value in ("allow", "refuse"):
        return None if value == "allow" else ()
    names = _mapping(value, pointer, ["except"]).get("except", ())
    if not isinstance(names, (list, tuple)) or not all(isinstance(name, str) for name in names):
        _refuse(pointer, "except is a list of names of tools", 'write repeats: {"except": ["poll"]}')
    return tuple(names)


def _tools(value: Any, pointer: str) -> dict[str, ToolRule | None]:
    return {name: _tool(rule, f"{pointer}/{escape(name)}") for name, rule in _mapping(value, pointer).items()}


def _tool(value: Any, pointer: str) -> ToolRule | None:
    """Return the rule of a tool, by names or pointers of its arguments; None: it may never be called."""
    if value == "never":
        return None
    if value in ("free", "ask") or value is None:
        return ToolRule(asks=value == "ask")
    if isinstance(value, str):
        _refuse(pointer, f"{value!r} says nothing of a tool", "write free, ask, never, or {argument: rule}")
    arguments: dict[tuple[str, ...], Rule] = {}
    for name, rule in _mapping(value, pointer).items():
        is_pointer = name.startswith("/")
        steps = tuple(map(unescape, name[1:].split("/"))) if is_pointer else (name,)
        arguments[steps] = rule_of(rule, f"{pointer}/{escape(name)}")
    return ToolRule(arguments)


def rule_of(value: Any, pointer: str = "") -> Rule:
    """Return the rule that is written as a word, an object, or a list of these.

    ``"user"``, ``{"seen": "list.id"}``, ``["user", {"values": ["a", "b"]}]``.

    Raises:
        PolicyError: the value is no rule; with the place.
    """
    if isinstance(value, (list, tuple)):
        if not value:
            _refuse(pointer, "a rule without sources", "write never")
        return tuple(source for number, each in enumerate(value) for source in rule_of(each, f"{pointer}/{number}"))
    if isinstance(value, str):
        if value not in WORDS:
            _refuse(pointer, f"unknown source {value!r}", f"a word is one of {', '.join(WORDS)}; {_RULE}")
        if value == "never":
            return ()
        return (Source(user="words" if value == "user" else None, asks=value == "ask"),)
    if not isinstance(value, Mapping):
        _refuse(pointer, f"{value!r} is no rule", _RULE)
    return (_source(_mapping(value, pointer, _SOURCE), pointer),)


def _source(source: Mapping[str, Any], pointer: str) -> Source:
    """Return the source that is written as an object with some members of `Source`.

    Raises:
        PolicyError: the object is no source; with the place.
    """
    if not source:
        _refuse(pointer, "a source without a member", _RULE)
    if "ask" in source and (source["ask"] is not True or len(source) > 1):
        _refuse(pointer + "/ask", "ask stands alone", "write ask as one source of a list")
    unit = source.get("user")
    unit = "words" if unit is True else unit
    if "user" in source and unit not in UNITS:
        _refuse(pointer + "/user", f"unknown unit {unit!r}", f"write true, or one of {', '.join(UNITS)}")
    is_constant = "constant" in source
    values = [source["constant"]] if is_constant else source.get("values")
    if "values" in source and (is_constant or not isinstance(values, (list, tuple)) or not values):
        _refuse(pointer + "/values", "values are a list that is not empty, without constant", 'write {"values": ["a"]}')
    schema = source.get("schema", True)
    if not isinstance(schema, (Mapping, bool)):
        _refuse(pointer + "/schema", "a schema is an object or a bool", 'for example {"schema": {"maximum": 100}}')
    return Source(
        user=unit,
        seen=_some_fields(source, "seen", pointer),
        copied=_some_fields(source, "copied", pointer),
        values=None if values is None else tuple(values),
        schema=schema,
        is_whole=is_constant,
        asks="ask" in source,
    )
