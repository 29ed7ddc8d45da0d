"""Origins of the values of a finished call: by which source of a policy each stands there, and where it was found.

This is read from rules directly, not from the schemas that they become (`compiled.py`), so tests compare the two.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from toolgrammar.core.conversation import Copied, Message, Seen
from toolgrammar.core.json import escape
from toolgrammar.core.validation import Validator

from .compiled import untrusted
from .notation import Layer, Rule, Source, ToolRule


@dataclass(frozen=True)
class Origin:
    """Why a value may stand in a call.

    Attributes:
        source: ``"user"``, ``"seen"``, ``"copied"``, ``"values"``, ``"schema"``, ``"ask"`` (a person decides), or
            ``"free"`` (no rule restricts it).
        message: index of the message that has it, or None.
        at: the index of its first character in a message of the user, or its JSON pointer in a result.
        tool: the tool of that result.
    """

    source: str
    message: int | None = None
    at: int | str | None = None
    tool: str | None = None


#: Of each value of a call, by its pointer: its origins; none: nothing allows it.
Origins = dict[str, tuple[Origin, ...]]


class OriginsOf:
    """Finds the origins of values in a conversation.

    Args:
        messages: the conversation before the call.
        layer: what is trusted.
        results: schemas of results, by names of tools.
    """

    def __init__(self, messages: Sequence[Message], layer: Layer, results: Mapping[str, Any]) -> None:
        self._messages, self._layer, self._results = messages, layer, results

    def of_call(self, rule: ToolRule, arguments: Mapping[str, Any], names: frozenset[str]) -> Origins:
        """Return the origins of the values of a call: of its strings and numbers, and of others that have a rule.

        Args:
            rule: that of the tool.
            arguments: the call's.
            names: those that the tool's parameters give to members.
        """
        found: Origins = {}
        for pointer, value, rules in _ruled(arguments, "", rule.arguments):
            for each in rules:
                for at, origins in self._of_value(value, pointer, each, names).items():
                    # The rules of an argument and of what is around it all hold: each has to give an origin.
                    is_refused = found.get(at) == () or not origins
                    found[at] = () if is_refused else (*found.get(at, ()), *origins)
            if not rules:
                found.setdefault(pointer, (Origin("ask" if rule.asks else "free"),))
        return found

    def _of_value(self, value: Any, pointer: str, rule: Rule, names: frozenset[str]) -> Origins:
        """Return the origins of a value by pointer: of the whole where a source has it, else of its parts.

        Args:
            value: the value, or a part of it.
            pointer: where it is.
            rule: the sources that it may have.
            names: names of members that the schema declares; others have origins of their own.
        """
        has_parts = isinstance(value, (Mapping, list, tuple)) and any(source.is_in_parts for source in rule)
        # An open source (a person, say) is asked for the parts that no other source has, not for the whole.
        wanted = [source for source in rule if not (has_parts and source.is_open)]
        here = tuple(origin for source in wanted for origin in self._of_source(value, source))
        if here or not has_parts:
            if not here and (value is None or isinstance(value, bool)) and any(source.has_origin for source in rule):
                here = (Origin("free"),)
            return {pointer: here}
        found: Origins = {}
        for name, inner in _members(value):
            if isinstance(value, Mapping) and name not in names:
                found[f"{pointer}/{escape(name)}#"] = tuple(o for source in rule for o in self._of_source(name, source))
            found |= self._of_value(inner, f"{pointer}/{escape(name)}", rule, names)
        return found

    def _of_source(self, value: Any, source: Source) -> tuple[Origin, ...]:
        """Return the origins of a value by one source, or none."""
        if source.is_open:
            return (Origin("ask" if source.asks else "free"),)
        listed = True if source.values is None else {"enum": list(source.values)}
        for schema in (listed, source.schema):
            if schema is not True and next(Validator(schema, formats=True).problems(value), None) is not None:
                return ()
        found: list[Origin] = []
        if source.user is not None:
            found += self._in_words(value, source.user)
        for kind, fields in (("seen", source.seen), ("copied", source.copied)):
            for field in fields:
                without = untrusted(field.tool, self._layer, self._results)
                for each in Seen.fields(self._messages, field.name, field.tool, without):
                    if _is_one_of(value, each.forms) if kind == "seen" else _is_copy(value, each.value):
                        found.append(Origin(kind, each.index, each.pointer, field.tool))
        kinds = (source.user is not None) + bool(source.seen) + bool(source.copied)
        if len({origin.source for origin in found}) < kinds:  # all that a source names holds together
            return ()
        return tuple(found) or (Origin("values" if source.values is not None else "schema"),)

    def _in_words(self, value: Any, unit: str) -> Iterator[Origin]:
        for index, message in enumerate(self._messages):
            at = _copy_at(value, message.text, unit) if message.role == "user" else None
            if at is not None:
                yield Origin("user", index, at)


def _ruled(
    value: Any, pointer: str, rules: Mapping[tuple[str, ...], Rule]
) -> Iterator[tuple[str, Any, tuple[Rule, ...]]]:
    """Yield each value that a rule is for, and each scalar that none is for, with its pointer and the rules."""
    if () in rules:
        yield pointer, value, (rules[()],)
    deeper = any(rules.keys())
    is_inner = isinstance(value, (Mapping, list, tuple))
    if not is_inner or not value:
        if () not in rules:
            yield pointer, value, ()
        return
    if () in rules and not deeper:
        return
    exact = {steps[0] for steps in rules if steps and steps[0] != "*"} if isinstance(value, Mapping) else set()
    for name, inner in _members(value):
        step = name if name in exact else "*"
        below = {steps[1:]: rule for steps, rule in rules.items() if steps and steps[0] == step}
        if below or () not in rules:
            yield from _ruled(inner, f"{pointer}/{escape(name)}", below)


def _members(value: Any) -> Iterator[tuple[str, Any]]:
    yield from value.items() if isinstance(value, Mapping) else ((str(n), each) for n, each in enumerate(value))


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _is_one_of(value: Any, forms: Sequence[Any]) -> bool:
    return (isinstance(value, str) or _is_number(value)) and any(
        isinstance(each, str) == isinstance(value, str) and each == value for each in forms
    )


def _copy_at(value: Any, text: Any, unit: str) -> int | None:
    return Copied(unit=unit).index_in(value, text) if isinstance(value, str) or _is_number(value) else None


def _is_copy(value: Any, seen: Any) -> bool:
    return isinstance(seen, str) and _copy_at(value, seen, "words") is not None
