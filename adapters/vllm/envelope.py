"""The envelope: the tools of one request and the rules of their calls, as a text that engines hand on unread.

vLLM hands ``structured_outputs.grammar`` to its backend as it came, so that is where the envelope travels. It is a JSON
object; ``toolgrammar`` is its version, and unknown fields are refused, so that nothing that was asked for is ignored.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from toolgrammar.core.basics import ENVELOPE_VERSION, memoised_if_short
from toolgrammar.core.conversation import of_conversation, require_formed
from toolgrammar.core.errors import GrammarError, ToolGrammarError
from toolgrammar.core.generation import OutputParser
from toolgrammar.core.grammar import Grammar
from toolgrammar.core.live import LiveSchema
from toolgrammar.core.vocabulary import Vocabulary
from toolgrammar.tools import ToolSet
from toolgrammar.tools.formats import choose_format
from toolgrammar.tools.toolset import MAX_CALLS

from .. import _shared

#: Maximum number of tool sets that are kept, so that the requests of an agent share one.
_TOOL_SETS = 256

#: The fields of an envelope beside its version, and their defaults.
_FIELDS: Mapping[str, Any] = {
    "tools": None,
    "tool_choice": "auto",
    "parallel_tool_calls": True,
    "format": None,
    "response_schema": None,
    "thinking": "none",
    "max_calls": MAX_CALLS,
}


#: What ``thinking`` may be.
THINKING = ("none", "optional", "opened")


@dataclass(frozen=True)
class Tokens:
    """What the wire format of a model depends on.

    Attributes:
        chat_template: the template of its conversations; empty if there is none.
        vocabulary: the bytes of its tokens; None if they are not known yet.
    """

    chat_template: str = ""
    vocabulary: Vocabulary | None = None


@dataclass(frozen=True)
class Wanted:
    """What a request asks for.

    Attributes:
        grammar: the language of the answer.
        make_parser: makes a parser of tool calls; None if the answer has none.
        is_json: a text answer is JSON.
        make_answer: makes the language of an answer without calls, where that is JSON beside calls; else None.
    """

    grammar: Grammar
    make_parser: Callable[[], OutputParser] | None = None
    is_json: bool = False
    make_answer: Callable[[], Grammar] | None = None


def envelope(
    tools: Sequence[Mapping[str, Any]] | ToolSet,
    *,
    tool_choice: Any = "auto",
    parallel_tool_calls: bool = True,
    format: str | None = None,
    response_schema: Any = None,
    thinking: str = "none",
) -> str:
    """Return the envelope of a request, for ``structured_outputs.grammar``.

    Args:
        tools: OpenAI-style dicts, or a tool set, as it is in its conversation and under its policy.
        tool_choice: ``"auto"``, ``"required"``, ``"none"``, a tool's name, or OpenAI's dict of a choice.
        parallel_tool_calls: several calls in a turn.
        format: the wire format; None: the one that the chat template of the served model shows.
        response_schema: JSON Schema of an answer that calls no tool; None: such an answer is free text.
        thinking: ``"none"``; ``"optional"``: reasoning between the format's markers may come first; ``"opened"``: the
            prompt has opened it. Leave it out where vLLM has a reasoning parser: the grammar then begins behind it.

    Raises:
        GrammarError: a tool or the schema is no JSON, or nested too deeply.
        PolicyError: the tools have a policy and no conversation, or the policy lets a person confirm calls.
        UnsupportedSchemaError: a callable gives values of a parameter of the tool set.
    """
    max_calls: int | None = MAX_CALLS
    if isinstance(tools, ToolSet):
        max_calls = tools.max_calls
        tools = _shared.settled(tools)
    given = {
        "tools": list(tools),
        "tool_choice": tool_choice,
        "parallel_tool_calls": parallel_tool_calls,
        "format": format,
        "response_schema": response_schema,
        "thinking": thinking,
        "max_calls": max_calls,
    }
    differing = {name: value for name, value in given.items() if value != _FIELDS[name]}
    try:
        return json.dumps({"toolgrammar": ENVELOPE_VERSION, **differing})
    except (TypeError, ValueError, RecursionError) as error:
        raise GrammarError(
            f"an envelope is JSON text: {error}", hint="give tools and response_schema as JSON values, less nested"
        ) from None


def in_conversation(
    tools: Sequence[Mapping[str, Any]], choice: Any, messages: Sequence[Mapping[str, Any]], schema: Any = None
) -> tuple[list[Any], Any]:
    """Return the tools that may be called, and the schema of an answer, both settled (`_shared.settled`).

    A parameter of type `Seen` or `Copied` gets an enum of the values that the conversation has, because the engine does
    not see the conversation. Tools and schema without such parameters are returned as they are.

    Args:
        tools: OpenAI-style dicts.
        choice: as for `envelope`.
        messages: the conversation, as OpenAI's chat completions have it.
        schema: JSON Schema of an answer; None: it is free text.

    Raises:
        LiveValuesError: a demanded tool has no values.
        ToolGrammarError: a tool, the choice or a message cannot be read.
    """
    tool_set = ToolSet.from_any(list(tools))
    if not any(tool.needs_conversation for tool in tool_set) and not LiveSchema(schema).needs_conversation:
        return list(tools), schema
    for tool in tool_set:  # an error names the place
        require_formed(tool.parameters, tool.name)
    require_formed(schema)
    turns = [_shared.message_of(message) for message in messages]
    bound = tool_set.in_conversation(turns)
    bound.require_offered(_shared.tool_choice(choice, bound.names)[0])
    return bound.to_openai(bound=True), of_conversation(schema, turns)


def is_envelope(text: str) -> bool:
    """Return True if a text is meant to be an envelope."""
    return text.lstrip().startswith("{") and '"toolgrammar"' in text


def read_envelope(text: str, model: Tokens) -> Wanted:
    """Return what an envelope asks for.

    Args:
        text: the envelope.
        model: the model that writes the answer.

    Raises:
        GrammarError: it is no envelope of this version, or has a field that is unknown or of the wrong type.
        ToolGrammarError: a tool, the choice or a schema cannot be taken.
    """
    fields = _fields(text)
    schema, reasoning = fields["response_schema"], fields["thinking"]
    named_tools = [(_name(number, tool), tool) for number, tool in enumerate(fields["tools"] or ())]
    for tool_name, tool in named_tools:
        _shared.require_settled(tool["function"].get("parameters"), tool_name)
    _shared.require_settled(schema)
    chosen, allowed = _shared.tool_choice(fields["tool_choice"], [tool_name for tool_name, _ in named_tools])
    callable_tools = [tool for tool_name, tool in named_tools if tool_name in allowed]
    tool_set = _tool_set(json.dumps(callable_tools), fields["max_calls"])
    special = () if model.vocabulary is None else model.vocabulary.special
    wire = choose_format(fields["format"], model.chat_template, special)

    def language(choice: Any) -> Grammar:
        parallel = fields["parallel_tool_calls"]
        return tool_set.grammar(
            wire, tool_choice=choice, parallel=parallel, response_schema=schema, reasoning=reasoning
        )

    return Wanted(
        language(chosen),
        make_parser=lambda: tool_set.parser(wire, response_schema=schema, reasoning=reasoning),
        is_json=schema is not None,
        make_answer=None if schema is None else lambda: language("none"),
    )


def _fields(text: str) -> dict[str, Any]:
    """Return the fields of an envelope, each of its type, absent ones with their defaults.

    Raises:
        GrammarError: see `read_envelope`.
    """
    given = _value(text)
    if not isinstance(given, dict):
        raise GrammarError("the envelope is not a JSON object", hint="write it with toolgrammar.adapters.vllm.envelope")
    version = given.pop("toolgrammar", None)
    if version != ENVELOPE_VERSION:
        raise GrammarError(
            f"cannot read an envelope of version {version!r}", hint=f"this toolgrammar reads version {ENVELOPE_VERSION}"
        )
    if unknown := sorted(set(given) - set(_FIELDS)):
        raise GrammarError(
            f"unknown fields of the envelope: {', '.join(unknown)}", hint=f"known ones: {', '.join(_FIELDS)}"
        )
    fields = {**_FIELDS, **given}
    tools, format_name = fields["tools"], fields["format"]
    for field, is_right, hint in (
        ("tools", tools is None or isinstance(tools, list), "give a list of OpenAI-style tools"),
        ("parallel_tool_calls", isinstance(fields["parallel_tool_calls"], bool), "give true or false"),
        ("format", format_name is None or isinstance(format_name, str), "give the name of a wire format"),
        ("max_calls", _is_bound(fields["max_calls"]), "give a number of at least 1, or null"),
        ("thinking", fields["thinking"] in THINKING, f"give one of {', '.join(map(repr, THINKING))}"),
    ):
        if not is_right:
            raise GrammarError(f"{field} of the envelope is {_shown(fields[field])}", hint=hint)
    return fields


def _is_bound(value: Any) -> bool:
    return value is None or (isinstance(value, int) and not isinstance(value, bool) and value >= 1)


def _name(number: int, tool: Any) -> str:
    """Return the name of a tool.

    Raises:
        GrammarError: it is no OpenAI-style dict.
    """
    function = tool.get("function") if isinstance(tool, dict) else None
    name = function.get("name") if isinstance(function, dict) else None
    if not isinstance(name, str):
        raise GrammarError(
            f"tools[{number}] of the envelope is {_shown(tool)}",
            hint='give {"type": "function", "function": {"name": ..., "parameters": {...}}}',
        )
    return name


def _shown(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= 80 else f"{text[:77]}..."


def wanted(kind: str, text: str, model: Tokens) -> Wanted:
    """Return what a request asks for.

    Args:
        kind: name of vLLM's request type: ``JSON``, ``JSON_OBJECT``, ``REGEX``, ``CHOICE``, ``GRAMMAR`` or
            ``STRUCTURAL_TAG``.
        text: its specification.
        model: the model that writes the answer.

    Raises:
        ToolGrammarError: it cannot be enforced.
    """
    if kind == "JSON":
        schema = _value(text)
        _shared.require_settled(schema)
        return Wanted(_json(_shared.closed(schema)), is_json=True)
    if kind == "JSON_OBJECT":
        return Wanted(_json({"type": "object"}), is_json=True)
    if kind == "REGEX":
        return Wanted(Grammar.from_regex(text))
    if kind == "CHOICE":
        return Wanted(Grammar.choice(*map(Grammar.literal, _value(text))))
    if kind == "GRAMMAR" and is_envelope(text):
        return read_envelope(text, model)
    if kind == "GRAMMAR":
        return Wanted(Grammar.from_any(text, vocabulary=model.vocabulary))
    if kind == "STRUCTURAL_TAG":
        for part in _shared.schemas_in(text):
            _shared.require_settled(part)
        return Wanted(Grammar.from_structural_tag(text, whitespace="single", vocabulary=model.vocabulary))
    raise GrammarError(f"the request type {kind.lower()} is not known", hint="see docs/engines.md")


def _json(schema: Any) -> Grammar:
    return Grammar.from_json_schema(schema, plain_integers=True)


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise GrammarError(f"not JSON: {error}", hint="give a JSON text") from error


@lru_cache(maxsize=_TOOL_SETS)
def _tool_set(text: str, max_calls: int | None) -> ToolSet:
    return ToolSet.from_any(json.loads(text), max_calls=max_calls)


@memoised_if_short(1_024)
def refusal(kind: str, text: str) -> str | None:
    """Return why a request cannot be met by any model; None if it can, or if that depends on the vocabulary. Kept,
    since agents repeat requests."""
    try:
        wanted(kind, text, Tokens()).grammar.check()
    except ToolGrammarError as error:
        # The hint of a grammar with ids of tokens (`core/text_grammars/tokens.py`): the engine, which has the
        # vocabulary, reads it again.
        needs_tokens = error.hint is not None and "vocabulary" in error.hint
        return None if needs_tokens else str(error)
    return None
