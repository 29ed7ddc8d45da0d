"""What a request asks for, made plain: checked parameters, a conversation, and the language of the answer."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from types import NoneType
from typing import Any, Union

from ..conversation.messages import Message
from ..errors import ModelError
from ..grammar import Grammar
from ..options import Whitespace
from .lru import LeastRecentlyUsed
from .params import GenerateParams, JsonMode, OutputParser, ToolInterface
from .ranges import FLAG, Ranges, check_ranges, is_number, is_whole

Prompt = Union[str, Message, Sequence[Message]]

#: How many grammars of schemas are kept.
CACHED_GRAMMARS = 64


@dataclass(frozen=True)
class Plan:
    """How one answer is written and read.

    Attributes:
        grammar: what may be written.
        parser: of tool calls; None when the answer is text.
        stop: strings that end the answer; empty where they could break it.
        is_json: the text of the answer is JSON.
        check: a JSON Schema that the grammar does not enforce and the answer must satisfy; None if there is none.
    """

    grammar: Grammar
    parser: OutputParser | None = None
    stop: tuple[str, ...] = ()
    is_json: bool = False
    check: Any = None


class Planner:
    """Chooses the language of the answer, and remembers the grammars of schemas."""

    def __init__(self) -> None:
        self._grammars: LeastRecentlyUsed[str, Grammar] = LeastRecentlyUsed(CACHED_GRAMMARS)

    def plan(self, params: GenerateParams, tool_format: Any) -> Plan:
        """The plan of an answer.

        Args:
            params: what was asked for.
            tool_format: the wire format of calls, as the tool set names it; None if the text of the model is read
                elsewhere.

        Raises:
            ModelError: two things that were asked for exclude each other.
            SchemaError: the schema cannot be taken.
        """
        tools, mode = params.tools, params.json_mode
        if tools is not None and not isinstance(tools, ToolInterface):
            raise ModelError(
                f"tools is a {type(tools).__name__}, not a tool set",
                hint="from toolgrammar.tools import ToolSet; tools=ToolSet.from_any([...])",
            )
        if params.grammar is not None and (mode is not None or params.response_schema is not None):
            raise _excluded("grammar", "json_mode" if mode is not None else "response_schema")
        if mode is not None and params.response_schema is not None:
            raise _excluded("json_mode", "response_schema")
        if tools is not None and tools.names:
            if params.tool_choice != "none":
                return self._with_tools(params, tools, tool_format)
            if tool_format is not None and params.response_schema is None and mode is None and params.grammar is None:
                # Text, as the model writes it beside calls: what begins a call may not stand in it.
                return self._with_tools(params, tools, tool_format)
        if params.tool_choice not in ("auto", "none"):
            raise ModelError(
                f"tool_choice is {params.tool_choice!r}, and there are no tools",
                hint="give tools, or tool_choice='auto'",
            )
        if params.response_schema is not None:
            mode = JsonMode(schema=params.response_schema)
        if mode is not None and mode.constrained_decoding:
            return self._json(mode)
        if params.grammar is not None:
            # What its schema asks and it does not enforce is checked afterwards.
            return Plan(params.grammar, check=params.grammar.schema if params.grammar.unenforced else None)
        return Plan(Grammar.text(min_chars=1), stop=tuple(params.stop))

    def _with_tools(self, params: GenerateParams, tools: ToolInterface, tool_format: Any) -> Plan:
        if params.grammar is not None:
            raise _excluded("tools", "grammar")
        schema = params.response_schema
        if params.json_mode is not None:
            if params.json_mode.grammar is not None or not params.json_mode.constrained_decoding:
                raise _excluded("tools", "this json_mode")
            schema = schema_of(params.json_mode.schema)
        grammar = tools.grammar(
            tool_format, tool_choice=params.tool_choice, parallel=params.parallel_tool_calls, response_schema=schema
        )
        parser = tools.parser(tool_format, response_schema=schema)
        return Plan(grammar, parser, stop=() if schema is not None else tuple(params.stop), is_json=schema is not None)

    def _json(self, mode: JsonMode) -> Plan:
        if mode.grammar is not None:
            if mode.schema is not None:
                raise _excluded("the schema of json_mode", "its grammar")
            return Plan(mode.grammar, is_json=True)
        schema = schema_of(mode.schema)
        grammar = self._grammar(schema, mode.whitespace, mode.strict)
        return Plan(grammar, is_json=True, check=schema if grammar.unenforced else None)

    def _grammar(self, schema: Any, whitespace: Whitespace, strict: bool) -> Grammar:
        from ..schema.scalars.dates import of_today, text_names_a_day

        def make() -> Grammar:
            return Grammar.from_json_schema(
                schema,
                whitespace=whitespace,
                on_unsupported="error" if strict else "validate",
                plain_integers=True,
            )

        try:
            # Not sorted: the order of properties is the order in which they are written.
            key = json.dumps([whitespace, strict, schema])
            if text_names_a_day(key):
                schema = of_today(schema)
                key = json.dumps([whitespace, strict, schema])
        except (TypeError, ValueError, RecursionError):
            return make()  # it says what is wrong better than we could
        return self._grammars.get(key, make)


def json_params(params: GenerateParams, schema: Any) -> tuple[GenerateParams, JsonMode]:
    """The parameters that ask for a value of a schema (None: that of ``params.json_mode``), and their JSON mode.

    Raises:
        ModelError: they ask for calls too.
    """
    if params.tools is not None:
        raise ModelError(
            "generate_json gives a value, not calls", hint="use generate(..., tools=..., response_schema=...)"
        )
    mode = params.json_mode or JsonMode()
    if schema is not None:
        mode = replace(mode, schema=schema)
    return replace(params, json_mode=mode), mode


def resolve_params(params: GenerateParams | None, overrides: Mapping[str, Any]) -> GenerateParams:
    """Return the parameters with the overrides put in, checked.

    Raises:
        ModelError: an unknown name, or a value of the wrong type or out of range; names the option and the value.
    """
    known = {each.name for each in fields(GenerateParams)}
    if unknown := sorted(set(overrides) - known):
        raise ModelError(
            f"unknown generation option: {', '.join(unknown)}", hint=f"known ones: {', '.join(sorted(known))}"
        )
    if not isinstance(params, (GenerateParams, NoneType)):
        raise ModelError(f"params is a {type(params).__name__}", hint="give GenerateParams(...), or options by name")
    params = replace(params or GenerateParams(), **overrides)
    if isinstance(params.stop, str):
        params = replace(params, stop=(params.stop,))
    check_ranges({name: getattr(params, name) for name in _RANGES}, _RANGES)
    return params


def _is_bias(value: Any) -> bool:
    whole = isinstance(value, Mapping) and all(is_whole(token) and token >= 0 for token in value)
    return whole and all(map(is_number, value.values()))


def _are_texts(value: Any) -> bool:
    """Whether a value is a sequence of texts, none of them empty."""
    return isinstance(value, Sequence) and all(isinstance(each, str) and each for each in value)


def _is_thinking(value: Any) -> bool:
    return value is None or value == "auto" or isinstance(value, bool) or (is_whole(value) and value >= 0)


# What each option may be. Whether the options go together is for `Planner.plan`.
_RANGES: Ranges = {
    "max_tokens": (lambda value: value is None or (is_whole(value) and value >= 1), "at least 1, or None"),
    "temperature": (lambda value: is_number(value) and value >= 0, "a number from 0 (greedy)"),
    "top_p": (lambda value: is_number(value) and 0 < value <= 1, "a number above 0, at most 1"),
    "top_k": (lambda value: is_whole(value) and value >= 0, "a whole number from 0 (keeps all)"),
    "min_p": (lambda value: is_number(value) and 0 <= value <= 1, "a number from 0 to 1"),
    "repetition_penalty": (lambda value: is_number(value) and value > 0, "more than 0; 1 changes nothing"),
    "logit_bias": (
        lambda value: value is None or _is_bias(value),
        "a map from token ids to finite numbers, for example {1234: -100.0}",
    ),
    "seed": (lambda value: value is None or (is_whole(value) and value >= 0), "a whole number from 0, or None"),
    "thinking": (_is_thinking, "True, False, 'auto', or a budget in tokens"),
    "thinking_markers": (
        lambda value: value is None or (_are_texts(value) and not isinstance(value, str) and len(value) == 2),
        "the text before the reasoning and the one after it, for example ('<think>', '</think>')",
    ),
    "prefix": (lambda value: isinstance(value, str), "a text"),
    "stop": (_are_texts, "texts, none of them empty"),
    "json_mode": (lambda value: value is None or isinstance(value, JsonMode), "JsonMode(schema=...)"),
    "grammar": (
        lambda value: value is None or isinstance(value, Grammar),
        "a toolgrammar.core.Grammar, for example Grammar.from_regex(...)",
    ),
    "tool_choice": (lambda value: isinstance(value, str), "'auto', 'required', 'none' or a tool's name"),
    "parallel_tool_calls": FLAG,
    "on_budget": (lambda value: value in ("close", "error"), "'close' or 'error'"),
    "jump_forward": FLAG,
    "trace": FLAG,
    "cancel": (lambda value: value is None or callable(value), "a function that says whether to stop"),
    "timeout": (lambda value: value is None or (is_number(value) and value >= 0), "seconds"),
}


def conversation_of(prompt: Prompt) -> tuple[Message, ...]:
    """A prompt as a conversation.

    Raises:
        ModelError: it is none.
    """
    if isinstance(prompt, str):
        return (Message("user", prompt),)
    if isinstance(prompt, Message):
        return (prompt,)
    messages = tuple(prompt) if isinstance(prompt, Iterable) else ()
    if not messages or not all(isinstance(message, Message) for message in messages):
        raise ModelError(
            "a prompt is a text, a Message, or a non-empty sequence of Message", hint="Message('user', text)"
        )
    return messages


def schema_of(schema: Any) -> Any:
    """The JSON Schema of a schema or of a Pydantic model class; None is any JSON."""
    if schema is None:
        return True
    if not hasattr(schema, "model_json_schema"):
        return schema
    from ..schema.pydantic.schema import json_schema_of

    return json_schema_of(schema)


def _excluded(one: str, other: str) -> ModelError:
    return ModelError(
        f"{one} and {other} exclude each other",
        hint="give one of them; beside tools, response_schema says what a text answer must be",
    )
