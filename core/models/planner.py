"""What a request asks for, made plain: checked parameters, a conversation, and the language of the answer."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from math import isfinite
from typing import Any, Union

from ..errors import ModelError
from ..grammar import Grammar
from ..messages import Message
from ..params import GenerateParams, JsonMode, OutputParser, ToolInterface, Whitespace
from .cache import LeastRecentlyUsed

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
            tool_format: the wire format of calls, as the tool set names it.

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
        if tools is not None and tools.names and params.tool_choice != "none":
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
        def make() -> Grammar:
            return Grammar.from_json_schema(
                schema, whitespace=whitespace, on_unsupported="error" if strict else "validate"
            )

        try:
            # Not sorted: the order of properties is the order in which they are written.
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


def resolve_params(params: GenerateParams | None, overrides: dict[str, Any]) -> GenerateParams:
    """The parameters with the overrides put in.

    Raises:
        ModelError: an unknown name, or a value out of range.
    """
    known = {each.name for each in fields(GenerateParams)}
    if unknown := sorted(set(overrides) - known):
        raise ModelError(
            f"unknown generation option: {', '.join(unknown)}", hint=f"known ones: {', '.join(sorted(known))}"
        )
    params = replace(params or GenerateParams(), **overrides)
    if isinstance(params.stop, str):
        params = replace(params, stop=(params.stop,))
    if params.max_tokens is not None and params.max_tokens < 1:
        raise ModelError(f"max_tokens is {params.max_tokens}", hint="give at least 1")
    if params.temperature < 0 or not 0 < params.top_p <= 1 or params.top_k < 0 or not 0 <= params.min_p <= 1:
        raise ModelError(
            "a sampling option is out of range", hint="temperature >= 0, 0 < top_p <= 1, top_k >= 0, 0 <= min_p <= 1"
        )
    thinking = params.thinking
    if not (thinking is None or thinking == "auto" or (isinstance(thinking, int) and thinking >= 0)):
        raise ModelError(f"thinking is {thinking!r}", hint="True, False, 'auto', or a budget in tokens")
    if not 0 < params.repetition_penalty < float("inf"):
        raise ModelError(
            f"repetition_penalty is {params.repetition_penalty}", hint="give more than 0; 1 changes nothing"
        )
    _check_bias(params.logit_bias)
    if params.on_budget not in ("close", "error"):
        raise ModelError(f"on_budget is {params.on_budget!r}", hint="'close' or 'error'")
    return params


def _check_bias(bias: Any) -> None:
    if bias is None:
        return
    whole = isinstance(bias, Mapping) and all(isinstance(each, int) and each >= 0 for each in bias)
    if not whole or not all(isinstance(each, (int, float)) and isfinite(each) for each in bias.values()):
        raise ModelError("logit_bias is no map from token ids to finite numbers", hint="for example {1234: -100.0}")


def conversation_of(prompt: Prompt) -> tuple[Message, ...]:
    """A prompt as a conversation.

    Raises:
        ModelError: it is none.
    """
    if isinstance(prompt, str):
        return (Message("user", prompt),)
    if isinstance(prompt, Message):
        return (prompt,)
    messages = tuple(prompt)
    if not messages or not all(isinstance(message, Message) for message in messages):
        raise ModelError(
            "a prompt is a text, a Message, or a non-empty sequence of Message", hint="Message('user', text)"
        )
    return messages


def schema_of(schema: Any) -> Any:
    """The JSON Schema of a schema or of a Pydantic model class; None is any JSON."""
    if schema is None:
        return True
    maker: Callable[[], Any] | None = getattr(schema, "model_json_schema", None)
    return maker() if callable(maker) else schema


def _excluded(one: str, other: str) -> ModelError:
    return ModelError(
        f"{one} and {other} exclude each other",
        hint="give one of them; beside tools, response_schema says what a text answer must be",
    )
