"""What a policy lets reach the arguments of tools, and whether a call can ever be written: before anything runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from toolgrammar.core.grammar import Grammar
from toolgrammar.core.json import to_pointer
from toolgrammar.core.live import LiveSchema

from ..closed_schema import close_objects
from .compiled import same_value
from .notation import OPEN, Rule, Source

#: Maximum number of members above a value that is listed, and of values that are.
MAX_DEPTH, MAX_LISTED = 6, 12


@dataclass(frozen=True)
class Reach:
    """What may reach one argument.

    Attributes:
        tool: the tool.
        argument: JSON pointer of the argument; ``*`` is each item of a list. Empty: the tool as a whole.
        sources: what may stand there, for each layer of the policy; all of them hold.
        is_open: values of any origin may, and these are not finitely many.
    """

    tool: str
    argument: str
    sources: tuple[str, ...]
    is_open: bool = False


def reach_of(policy: Any, tools: Any) -> list[Reach]:
    """Return what may reach each argument of some tools, the open ones first.

    Raises:
        PolicyError: as of `ToolSet.under`.
    """
    allowed = tools.under(policy)
    rows: list[Reach] = []
    for tool in tools:
        if tool.name not in allowed:
            rows.append(Reach(tool.name, "", ("never",)))
            continue
        rules = policy.rules(tool.name) or []
        if any(rule.asks for rule, _ in rules):
            rows.append(Reach(tool.name, "", ("a person confirms the call",)))
        arguments = list(_arguments(tool.parameters, tool.parameters, (), 0))
        if not arguments:
            rows.append(Reach(tool.name, "", ("no arguments",)))
        for steps, schema in arguments:
            by_layer = [found for rule, _ in rules if (found := _rules_at(rule.arguments, steps))]
            by_rule = tuple(" and ".join(map(_shown, each)) for each in by_layer)
            by_schema = _by_schema(schema)
            is_finite = by_schema is not None and by_schema.startswith(_FINITE)
            is_open = not is_finite and all(any(map(_is_open, each)) for each in by_layer or [[OPEN]])
            shown = (*by_rule, *(() if by_schema is None and by_rule else (by_schema or "free text",)))
            rows.append(Reach(tool.name, to_pointer(steps), shown, is_open))
    return sorted(rows, key=lambda row: not row.is_open)


#: What begins the words for finitely many values.
_FINITE = ("one of", "true or false")


def _is_open(rule: Rule) -> bool:
    """Return True if a rule has a source that takes each value, without a person's word."""
    return any(source.is_open and not source.asks for source in rule)


def _shown(rule: Rule) -> str:
    return " or ".join(map(_source, rule)) or "never"


def _source(source: Source) -> str:
    if source.is_open:
        return "what a person confirms" if source.asks else "free text"
    said = [] if source.user is None else [f"{source.user} of the user"]
    said += [f"values of {', '.join(map(str, source.seen))}"] if source.seen else []
    said += [f"words of {', '.join(map(str, source.copied))}"] if source.copied else []
    said += [_listed(source.values)] if source.values is not None else []
    said += [f"the schema {source.schema}"] if source.schema is not True else []
    return " with ".join(said)


def _listed(values: Sequence[Any]) -> str:
    more = ["..."] if len(values) > MAX_LISTED else []
    return f"one of {', '.join([*map(repr, values[:MAX_LISTED]), *more])}"


def _rules_at(rules: Mapping[tuple[str, ...], Rule], steps: tuple[str, ...]) -> list[Rule]:
    """Return the rules that hold for a value: its own, and those of what is around it."""
    found = [rules[()]] if () in rules else []
    if not steps:
        return found
    name = steps[0] if any(each[:1] == steps[:1] for each in rules) else "*"
    below = {each[1:]: rule for each, rule in rules.items() if each[:1] == (name,)}
    return [*found, *(_rules_at(below, steps[1:]) if below else ())]


def _arguments(schema: Any, root: Any, steps: tuple[str, ...], depth: int) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Yield the arguments in a schema that are no objects or lists of known members, by their steps."""
    parts = list(_parts(schema, root, 0))
    inner = {name: each for part in parts for name, each in (part.get("properties") or {}).items()}
    items = [
        part[key] for part in parts for key in ("items", "additionalProperties") if isinstance(part.get(key), dict)
    ]
    if depth >= MAX_DEPTH or not (inner or items):
        if steps:
            yield steps, {key: value for part in parts for key, value in part.items()}
        return
    for name, each in inner.items():
        yield from _arguments(each, root, (*steps, name), depth + 1)
    for each in items[:1]:
        yield from _arguments(each, root, (*steps, "*"), depth + 1)


def _parts(schema: Any, root: Any, depth: int) -> Iterator[Mapping[str, Any]]:
    if isinstance(schema, Mapping) and depth < MAX_DEPTH:
        yield schema
        for inner in same_value(schema, root):
            yield from _parts(inner, root, depth + 1)


def _by_schema(schema: Mapping[str, Any]) -> str | None:
    """Return what the schema of an argument allows, if that is less than free text."""
    if "enum" in schema or "const" in schema:
        return _listed(schema.get("enum", [schema.get("const")]))
    kinds = schema.get("type")
    kinds = {kinds} if isinstance(kinds, str) else set(kinds or ())
    if kinds and not kinds - {"boolean", "null"}:
        return "true or false"
    if kinds and not kinds - {"boolean", "null", "integer", "number"}:
        return "a number"
    for key in ("pattern", "format"):
        if kinds == {"string"} and key in schema:
            return f"the {key} {schema[key]}"
    return None


@dataclass(frozen=True)
class Possible:
    """Whether some call can ever be written, in any conversation.

    Attributes:
        call: a smallest one, ``{"name": ..., "arguments": {...}}``, as JSON text; None: there is none, or this is not
            decided.
        undecided: why; None: it is decided. If there is no call either, it is proved that none exists.
    """

    call: str | None = None
    undecided: str | None = None


def possible(policy: Any, tools: Any, schema: Any) -> Possible:
    """Return whether a call of a schema can be written under a policy: of ``{"name": ..., "arguments": {...}}``.

    Values of a conversation (the user's words, results) may be any here, so what cannot be written in this way cannot
    be written in any conversation.

    Raises:
        PolicyError: as of `ToolSet.under`.
        SchemaError: the schema is malformed.
    """
    undecided = None
    for tool in tools.under(policy):
        parameters = close_objects(LiveSchema(tool.parameters).plain())
        call = {
            "type": "object",
            "properties": {"name": {"const": tool.name}, "arguments": {"$ref": "urn:toolgrammar:arguments"}},
            "required": ["name", "arguments"],
            "additionalProperties": False,
        }
        definitions = {"arguments": {"$id": "urn:toolgrammar:arguments", **_object(parameters)}}
        if isinstance(schema, Mapping):
            definitions["asked"] = {"$id": "urn:toolgrammar:asked", **schema}
        asked = {"$ref": "urn:toolgrammar:asked"} if isinstance(schema, Mapping) else schema
        both = Grammar.from_json_schema({"$defs": definitions, "allOf": [call, asked]})
        found = both.compare(Grammar.from_json_schema({"not": {}})).lost
        if found.text is not None:
            return Possible(found.text)
        undecided = undecided or (str(found.undecided) if found.undecided else None)
    return Possible(undecided=undecided)


def _object(schema: Any) -> dict[str, Any]:
    return dict(schema) if isinstance(schema, Mapping) else {} if schema else {"not": {}}
