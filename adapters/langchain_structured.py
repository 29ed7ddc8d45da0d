"""LangChain's structured answers: from a message to a value, whole or not at all."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from operator import itemgetter
from typing import Any, cast

from pydantic import BaseModel

from . import _shared

try:
    from langchain_core import exceptions
    from langchain_core.messages import AIMessage, BaseMessage
    from langchain_core.output_parsers import JsonOutputParser, PydanticOutputParser
    from langchain_core.output_parsers.openai_tools import JsonOutputKeyToolsParser, PydanticToolsParser
    from langchain_core.outputs import Generation
    from langchain_core.runnables import Runnable, RunnableGenerator, RunnableMap, RunnablePassthrough
    from langchain_core.utils.pydantic import is_basemodel_subclass
except ImportError as error:
    raise _shared.missing("langchain-core", "langchain") from error


def parser_of(schema: Any, tool: str | None) -> Runnable[Any, Any]:
    """Makes the value of a message: an instance of a Pydantic class, or what JSON says.

    Args:
        schema: what was asked for; None is any JSON object.
        tool: the tool whose arguments are the value; None when the text is.
    """
    is_class = isinstance(schema, type) and is_basemodel_subclass(schema)
    if tool is None:
        return _PydanticAnswer(pydantic_object=cast(Any, schema)) if is_class else _JsonAnswer()
    if is_class:
        return PydanticToolsParser(tools=[cast("type[BaseModel]", schema)], first_tool_only=True)
    return JsonOutputKeyToolsParser(key_name=tool, first_tool_only=True)


def answering(
    bound: Runnable[Any, AIMessage], parser: Runnable[Any, Any], *, include_raw: bool, allow_cut: bool
) -> Runnable[Any, Any]:
    """A model and a parser as one link of a chain.

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
        """The value of the text."""
        message = getattr(result[0], "message", None)
        if isinstance(message, AIMessage) and (message.tool_calls or message.invalid_tool_calls):
            return None
        return super().parse_result(result, partial=partial)  # type: ignore[misc]


class _JsonAnswer(_UnlessCalled, JsonOutputParser):
    """The answer as a dict."""


class _PydanticAnswer(_UnlessCalled, PydanticOutputParser[Any]):
    """The answer as an instance."""


def _check_whole(message: BaseMessage) -> BaseMessage:
    """Structured output that was closed by force is not what was asked for, and nothing after us would notice."""
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
