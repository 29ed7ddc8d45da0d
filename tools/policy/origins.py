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
            rule: the rule of the tool.
            arguments: the arguments of the call.
            names: the names of members that the tool's parameters declare; other names are data.
        """
        found: Origins = {}
        for pointer, value, own_rule in _with_rules(arguments, "", rule.arguments):
            if own_rule is None:
                found.setdefault(pointer, (Origin("ask" if rule.asks else "free"),))
                continue
            for inner_pointer, origins in self._of_value(value, pointer, own_rule, names).items():
                # The rules of an argument and of the objects around it all hold: each has to give an origin.
                earlier = found.get(inner_pointer)
                is_refused = earlier == () or not origins
                found[inner_pointer] = () if is_refused else (*(earlier or ()), *origins)
        return found

    def _of_value(self, value: Any, pointer: str, rule: Rule, names: frozenset[str]) -> Origins:
        """Return the origins of a value by pointer: of the whole if a source has it, else of its parts.

        Args:
            value: the value, or a part of it.
            pointer: where it is.
            rule: the sources that it may have.
            names: the names of members that the schema declares; others are data, and have origins (at pointer ``#``).
        """
        has_parts = isinstance(value, (Mapping, list, tuple)) and any(source.is_in_parts for source in rule)
        # An open source (a person, say) is asked for the parts that no other source has, not for the whole.
        sources = [source for source in rule if not (has_parts and source.is_open)]
        of_whole = tuple(origin for source in sources for origin in self._of_source(value, source))
        if of_whole:
            return {pointer: of_whole}
        if not has_parts:
            carries_no_text = value is None or isinstance(value, bool)
            is_free = carries_no_text and any(source.has_origin for source in rule)
            return {pointer: (Origin("free"),) if is_free else ()}
        found: Origins = {}
        for name, inner in _members(value):
            inner_pointer = f"{pointer}/{escape(name)}"
            if isinstance(value, Mapping) and name not in names:
                origins = [origin for source in rule for origin in self._of_source(name, source)]
                found[f"{inner_pointer}#"] = tuple(origins)
            found |= self._of_value(inner, inner_pointer, rule, names)
        return found

    def _of_source(self, value: Any, source: Source) -> tuple[Origin, ...]:
        """Return the origins of a value by one source; empty: the source does not have the value."""
        if source.is_open:
            return (Origin("ask" if source.asks else "free"),)
        one_of_values = True if source.values is None else {"enum": list(source.values)}
        for schema in (one_of_values, source.schema):
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
        needed = (source.user is not None) + bool(source.seen) + bool(source.copied)
        if len({origin.source for origin in found}) < needed:  # all conditions of a source hold together
            return ()
        return tuple(found) or (Origin("values" if source.values is not None else "schema"),)

    def _in_words(self, value: Any, unit: str) -> Iterator[Origin]:
        """Yield the messages of the user that have a value as a copy of whole units."""
        for index, message in enumerate(self._messages):
            at = _copy_at(value, message.text, unit) if message.role == "user" else None
            if at is not None:
                yield Origin("user", index, at)


def _with_rules(
    value: Any, pointer: str, rules: Mapping[tuple[str, ...], Rule]
) -> Iterator[tuple[str, Any, Rule | None]]:
    """Yield the pointer, value and rule of each value that has a rule, and of each scalar without one (None).

    Args:
        value: the value.
        pointer: where it is.
        rules: the rules of the value (of no steps) and of values in it, by the steps from here.
    """
    has_own_rule = () in rules
    if has_own_rule:
        yield pointer, value, rules[()]
    if not isinstance(value, (Mapping, list, tuple)) or not value:
        if not has_own_rule:
            yield pointer, value, None
        return
    named = {steps[0] for steps in rules if steps and steps[0] != "*"} if isinstance(value, Mapping) else set()
    for name, inner in _members(value):
        step = name if name in named else "*"
        below = {steps[1:]: rule for steps, rule in rules.items() if steps and steps[0] == step}
        if below or not has_own_rule:  # parts without rules are judged with the whole
            yield from _with_rules(inner, f"{pointer}/{escape(name)}", below)


def _members(value: Any) -> Iterator[tuple[str, Any]]:
    """Yield the members of an object with their names, or the items of a list with their indices as text."""
    yield from value.items() if isinstance(value, Mapping) else ((str(n), each) for n, each in enumerate(value))


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _is_one_of(value: Any, forms: Sequence[Any]) -> bool:
    """Return True if a string or number is one of these; ``"1"`` is not 1."""
    return (isinstance(value, str) or _is_number(value)) and any(
        isinstance(each, str) == isinstance(value, str) and each == value for each in forms
    )


def _copy_at(value: Any, text: Any, unit: str) -> int | None:
    """Return the index at which a text has a string or number as a copy of whole units; None: it has none."""
    return Copied(unit=unit).index_in(value, text) if isinstance(value, str) or _is_number(value) else None


def _is_copy(value: Any, seen: Any) -> bool:
    return isinstance(seen, str) and _copy_at(value, seen, "words") is not None
