"""LangChain's structured answers: from a message to a value, whole or not at all."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from operator import itemgetter
from types import UnionType
from typing import Any, cast, get_origin

from typing_extensions import is_typeddict

from toolgrammar.core.errors import ModelError

from .. import _shared
from . import messages as translation

try:
    from langchain_core import exceptions
    from langchain_core.messages import AIMessage, BaseMessage
    from langchain_core.output_parsers import JsonOutputParser, PydanticOutputParser
    from langchain_core.output_parsers.openai_tools import JsonOutputKeyToolsParser
    from langchain_core.outputs import Generation
    from langchain_core.runnables import Runnable, RunnableGenerator, RunnableMap, RunnablePassthrough
    from langchain_core.utils.pydantic import is_basemodel_subclass
except ImportError as error:
    raise _shared.missing("langchain-core", "langchain") from error


def asking(
    model: Any,
    schema: Any,
    *,
    method: str = "json_schema",
    include_raw: bool = False,
    strict: bool | None = None,
    tools: Sequence[Any] | None = None,
    allow_cut: bool = False,
    **kwargs: Any,
) -> Runnable[Any, Any]:
    """Return the chain of `ChatToolGrammar.with_structured_output`, which documents the arguments.

    Args:
        model: a chat model, with or without bound settings.
    """
    schema = _plain(schema)
    traced = {"kwargs": {"method": method}, "schema": _traced(schema)}
    demanded: str | None = None  # the tool whose arguments are the answer
    if strict is not None:
        kwargs = {"strict": strict, **kwargs}
    with _shared.translated(translation.errors):
        if get_origin(schema) is not None or isinstance(schema, UnionType):
            hint = f"ChatToolGrammar(...).bind(output_type={_shown(schema)}) gives a message whose text is such a value"
            raise ModelError(f"{_shown(schema)} is neither a class nor a JSON Schema", hint=hint)
        if schema is None and method != "json_mode":
            raise ModelError(f"method {method!r} needs a schema", hint="only 'json_mode' may do without one")
        if method == "function_calling":
            if tools:
                raise ModelError(
                    "method 'function_calling' demands a call, and takes no other tools", hint="leave out tools"
                )
            demanded = _shared.tool_name(translation.openai_tool(schema))
            kwargs = {"tool_choice": demanded, "parallel_tool_calls": False, "answer_class": schema, **kwargs}
            bound = model.bind_tools([schema], ls_structured_output_format=traced, **kwargs)
        elif method in ("json_schema", "json_mode"):
            translation.response_schema(schema)  # refused now, if it is none
            # The parser refuses a cut answer, as it can hand the message on (`include_raw`).
            kwargs = {"response_format": {"type": "json_object"} if schema is None else schema, **kwargs}
            bound = model.bind_tools(tools or (), allow_cut=True, ls_structured_output_format=traced, **kwargs)
        else:
            raise ModelError(f"unknown method {method!r}", hint="'json_schema', 'json_mode' or 'function_calling'")
    return answering(bound, parser_of(schema, demanded), include_raw=include_raw, allow_cut=allow_cut)


def _plain(schema: Any) -> Any:
    """Return the JSON Schema in a dict of OpenAI's ``response_format``, or in its inner one; others as they are."""
    if not isinstance(schema, Mapping):
        return schema
    inner = schema.get("json_schema") if schema.get("type") == "json_schema" else schema
    if not isinstance(inner, Mapping) or not isinstance(inner.get("schema"), Mapping):
        return schema
    if not set(inner) <= {"name", "description", "strict", "schema"}:
        return schema
    named = {"title": inner.get("name"), "description": inner.get("description")}
    return {**inner["schema"], **{key: value for key, value in named.items() if value is not None}}


def _traced(schema: Any) -> Any:
    """Return what LangChain notes of a schema: it converts it, and cannot convert every typed dict."""
    if schema is None:
        return {"type": "object"}
    if not is_typeddict(schema):
        return schema
    function = translation.openai_tool(schema)["function"]
    return {"title": function["name"], "description": function.get("description", ""), **function["parameters"]}


def _shown(kind: Any) -> str:
    return str(kind).replace("typing.", "")


def parser_of(schema: Any, tool: str | None) -> Runnable[Any, Any]:
    """Return the parser that makes the value of a message: an instance of a Pydantic class, or the JSON value.

    Args:
        schema: what was asked for; None is any JSON object.
        tool: the tool whose arguments are the value; None when the text is.
    """
    is_class = isinstance(schema, type) and is_basemodel_subclass(schema)
    if tool is None:
        return _PydanticAnswer(pydantic_object=cast(Any, schema)) if is_class else _JsonAnswer()
    if is_class:
        return _PydanticArguments(key_name=tool, first_tool_only=True, answer_class=schema)
    return JsonOutputKeyToolsParser(key_name=tool, first_tool_only=True)


def answering(
    bound: Runnable[Any, AIMessage], parser: Runnable[Any, Any], *, include_raw: bool, allow_cut: bool
) -> Runnable[Any, Any]:
    """Return a chain of a model and a parser.

    Args:
        bound: the model.
        parser: of its messages.
        include_raw: give the message, and an error as a value, too.
        allow_cut: take answers that the token budget closed by force.
    """
    if not allow_cut:
        parser = RunnableGenerator(_refuse_cut, _arefuse_cut) | parser
    if not include_raw:
        return bound | parser
    parsed = RunnablePassthrough.assign(parsed=itemgetter("raw") | parser, parsing_error=lambda _: None)
    failed = RunnablePassthrough.assign(parsed=lambda _: None)
    return RunnableMap(raw=bound) | parsed.with_fallbacks([failed], exception_key="parsing_error")


class _UnlessCalled:
    """Parses the text of an answer, and says None where the model called a tool instead."""

    def parse_result(self, result: list[Generation], *, partial: bool = False) -> Any:
        """Return the value of the text; None if a tool was called."""
        message = getattr(result[0], "message", None)
        if isinstance(message, AIMessage) and (message.tool_calls or message.invalid_tool_calls):
            return None
        return super().parse_result(result, partial=partial)  # type: ignore[misc]


class _JsonAnswer(_UnlessCalled, JsonOutputParser):
    """The answer as a dict."""


def _instance(answer_class: Any, value: Any) -> Any:
    """Return the instance that a JSON value is.

    It is read as JSON: in strict mode Pydantic takes a text for a date from there, and not from Python.

    Raises:
        OutputParserException: a validator of the class objects.
    """
    text = json.dumps(value)
    read = getattr(answer_class, "model_validate_json", None) or answer_class.parse_raw  # of Pydantic's version 1
    try:
        return read(text)
    except ValueError as error:
        message = f"the answer is not a valid {answer_class.__name__}: {error}"
        raise exceptions.OutputParserException(message, llm_output=text) from error


class _PydanticAnswer(_UnlessCalled, PydanticOutputParser[Any]):
    """The answer as an instance."""

    def _parse_obj(self, obj: Any) -> Any:
        return _instance(self.pydantic_object, obj)


class _PydanticArguments(JsonOutputKeyToolsParser):
    """The arguments of the first call as an instance."""

    answer_class: Any

    def parse_result(self, result: list[Generation], *, partial: bool = False) -> Any:
        """Return the instance; None without a call, and while arguments that are still being written are none."""
        value = super().parse_result(result, partial=partial)
        try:
            return None if value is None else _instance(self.answer_class, value)
        except exceptions.OutputParserException:
            if partial:
                return None
            raise


def _check_whole(message: BaseMessage) -> BaseMessage:
    """Return a message; refuse structured output that the token budget cut, which nothing after us would notice."""
    if cut := message.response_metadata.get("cut"):
        places = ", ".join(place or "(root)" for place in cut)
        raise exceptions.OutputParserException(
            f"the token budget ran out inside the answer, at {places}: raise max_tokens",
            llm_output=message.text,
        )
    return message


def _refuse_cut(messages: Iterator[BaseMessage]) -> Iterator[BaseMessage]:
    for message in messages:
        yield _check_whole(message)


async def _arefuse_cut(messages: AsyncIterator[BaseMessage]) -> AsyncIterator[BaseMessage]:
    async for message in messages:
        yield _check_whole(message)
