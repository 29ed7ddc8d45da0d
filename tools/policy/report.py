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
from .notation import Rule, Source

#: Maximum number of members and items on the way to an argument; what is below is one argument.
MAX_DEPTH = 6

#: Maximum number of values that are listed for an argument.
MAX_LISTED = 12


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
            words = [" and ".join(map(_shown, rules_of_layer)) for rules_of_layer in by_layer]
            words_of_schema = _by_schema(schema)
            if words_of_schema is not None or not words:
                words.append(words_of_schema or "free text")
            is_finite = words_of_schema is not None and words_of_schema.startswith(_FINITE)
            is_open = not is_finite and all(any(map(_is_open, rules_of_layer)) for rules_of_layer in by_layer)
            rows.append(Reach(tool.name, to_pointer(steps), tuple(words), is_open))
    return sorted(rows, key=lambda row: not row.is_open)  # stable: else in the order of the tools


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
    conditions = []
    if source.user is not None:
        conditions.append(f"{source.user} of the user")
    if source.seen:
        conditions.append(f"values of {', '.join(map(str, source.seen))}")
    if source.copied:
        conditions.append(f"words of {', '.join(map(str, source.copied))}")
    if source.values is not None:
        conditions.append(_listed(source.values))
    if source.schema is not True:
        conditions.append(f"the schema {source.schema}")
    return " with ".join(conditions)


def _listed(values: Sequence[Any]) -> str:
    more = ["..."] if len(values) > MAX_LISTED else []
    return f"one of {', '.join([*map(repr, values[:MAX_LISTED]), *more])}"


def _rules_at(rules: Mapping[tuple[str, ...], Rule], steps: tuple[str, ...]) -> list[Rule]:
    """Return the rules that hold for the value at some steps: its own, and those of the values around it."""
    found = [rules[()]] if () in rules else []
    if not steps:
        return found
    step = steps[0] if any(each[:1] == steps[:1] for each in rules) else "*"
    below = {each[1:]: rule for each, rule in rules.items() if each[:1] == (step,)}
    return [*found, *_rules_at(below, steps[1:])]


def _arguments(schema: Any, root: Any, steps: tuple[str, ...], depth: int) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Yield the values in a schema that have no described members or items: their steps, and the keywords of their
    schemas. At `MAX_DEPTH`, yield objects and lists as they are."""
    parts = list(_parts(schema, root, 0))
    members = {name: each for part in parts for name, each in (part.get("properties") or {}).items()}
    items = [
        part[key] for part in parts for key in ("items", "additionalProperties") if isinstance(part.get(key), dict)
    ]
    if depth >= MAX_DEPTH or not (members or items):
        if steps:
            yield steps, {key: value for part in parts for key, value in part.items()}
        return
    for name, each in members.items():
        yield from _arguments(each, root, (*steps, name), depth + 1)
    if items:
        yield from _arguments(items[0], root, (*steps, "*"), depth + 1)


def _parts(schema: Any, root: Any, depth: int) -> Iterator[Mapping[str, Any]]:
    """Yield a schema and those that it applies to the same value, at any depth."""
    if isinstance(schema, Mapping) and depth < MAX_DEPTH:
        yield schema
        for inner in same_value(schema, root):
            yield from _parts(inner, root, depth + 1)


def _by_schema(schema: Mapping[str, Any]) -> str | None:
    """Return words for what the schema of an argument allows, such as ``"one of 'a', 'b'"``; None: any text."""
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
        call: a smallest one, ``{"name": ..., "arguments": {...}}``, as JSON text; None: none was found.
        undecided: why a search for a call was not finished; None: it was finished, so if there is no call, it is proved
            that none exists.
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
        parameters = close_objects(LiveSchema(tool.parameters).plain())  # without the conversation's values
        # Schemas with an $id of their own: references inside of them lead into them.
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
        calls = Grammar.from_json_schema({"$defs": definitions, "allOf": [call, asked]})
        nothing = Grammar.from_json_schema({"not": {}})
        found = calls.compare(nothing).lost  # a shortest text of the calls, as all of them are lost
        if found.text is not None:
            return Possible(found.text)
        undecided = undecided or (str(found.undecided) if found.undecided else None)
    return Possible(undecided=undecided)


def _object(schema: Any) -> dict[str, Any]:
    """Return a schema as an object: True -> ``{}``, False -> ``{"not": {}}``."""
    return dict(schema) if isinstance(schema, Mapping) else {} if schema else {"not": {}}
