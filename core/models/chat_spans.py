"""Spans of answers: what the conventions of OpenTelemetry have for a chat, and what only a grammar knows."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Generator, Iterable
from contextlib import aclosing, closing
from typing import TYPE_CHECKING, Any

from ..basics.spans import OURS, Context, Span, ending
from ..conversation.events import Generation
from ..conversation.messages import Message, ToolCall
from .requests import Request

if TYPE_CHECKING:
    from ..generation.driver import Item


def spanned(model: Any, request: Request, items: Generator[Item, None, None]) -> Generator[Item, None, None]:
    """Return the items of an answer, whose span lasts from the first to the last."""
    return _spanned(model, request, items, Context()) if Span.is_watched() else items


def aspanned(model: Any, request: Request, items: AsyncGenerator[Item, None]) -> AsyncGenerator[Item, None]:
    """Do what `spanned` does, for asynchronous items."""
    return _aspanned(model, request, items, Context()) if Span.is_watched() else items


def _spanned(
    model: Any, request: Request, items: Generator[Item, None, None], parent: Context
) -> Generator[Item, None, None]:
    span = begin(model, request, parent)
    with ending(span), closing(items):
        for item in items:
            if span is not None and isinstance(item, Generation):
                record_answer(span, model, request, item)
            yield item


async def _aspanned(
    model: Any, request: Request, items: AsyncGenerator[Item, None], parent: Context
) -> AsyncGenerator[Item, None]:
    span = begin(model, request, parent)
    with ending(span):
        async with aclosing(items):
            async for item in items:
                if span is not None and isinstance(item, Generation):
                    record_answer(span, model, request, item)
                yield item


def begin(model: Any, request: Request, parent: Context | None = None) -> Span | None:
    """Begin the span of an answer, with what was asked; None if nobody records it."""
    if not Span.is_watched():
        return None
    params = request.params
    is_remote = not model.capabilities.logits
    is_json = request.shape is not None and params.grammar is None
    attributes = {
        "gen_ai.provider.name": model.provider if is_remote else "toolgrammar",
        "server.address": model.base_url if is_remote else None,
        "gen_ai.request.model": model.name,
        "gen_ai.request.max_tokens": params.max_tokens,
        "gen_ai.request.temperature": params.temperature,
        "gen_ai.request.top_p": params.top_p if params.top_p < 1 else None,
        "gen_ai.request.top_k": params.top_k or None,
        "gen_ai.request.seed": params.seed,
        "gen_ai.request.stop_sequences": list(params.stop) or None,
        "gen_ai.output.type": "json" if is_json else "text",
    }
    return Span.begin(
        "chat", model.name, attributes, is_remote=is_remote, parent=parent, more=lambda: _request_attributes(request)
    )


def _request_attributes(request: Request) -> dict[str, Any]:
    """Return what was asked: hashes, and the contents where somebody wants them."""
    params, tools = request.params, None if request.params.tools is None else request.params.tools.to_openai()
    attributes = {
        f"{OURS}tools": None if params.tools is None else [tool.name for tool in params.tools],
        f"{OURS}policy": None if params.policy is None else params.policy.hash,
        f"{OURS}tools_sha256": None if tools is None else Span.digest(tools),
    }
    if Span.has_contents():
        attributes["gen_ai.input.messages"] = written(request.messages)
        if tools is not None:
            attributes["gen_ai.tool.definitions"] = json.dumps(tools, ensure_ascii=False)
    return attributes


def record_answer(span: Span, model: Any, request: Request, whole: Generation) -> None:
    """Record an answer in its span."""
    usage, cut = whole.usage, [*whole.cut, *(f"{call.name}{at}" for call in whole.tool_calls for at in call.cut)]
    attributes: dict[str, Any] = {
        "gen_ai.response.finish_reasons": [whole.finish_reason],
        "gen_ai.usage.input_tokens": usage.prompt_tokens,
        "gen_ai.usage.output_tokens": usage.completion_tokens,
        "gen_ai.usage.reasoning.output_tokens": usage.reasoning_tokens or None,
        "gen_ai.usage.cache_read.input_tokens": usage.cached_tokens or None,
        f"{OURS}enforced": model.enforces(request.params),
        f"{OURS}forced_tokens": usage.forced_tokens,
        f"{OURS}forward_passes": usage.forward_passes,
        f"{OURS}removed_mass": max((mass.removed for mass in whole.masses), default=None),
        f"{OURS}least_sureness": min((each.least for each in whole.sureness if each.has_choices), default=None),
        f"{OURS}cut": cut or None,
        f"{OURS}repeated": whole.repeated is not None or None,
        f"{OURS}calls": [_call_attributes(call, n, whole, request) for n, call in enumerate(whole.tool_calls)] or None,
    }
    if Span.has_contents():
        attributes["gen_ai.output.messages"] = written([whole.message], whole.finish_reason)
    span.set(attributes)


def _call_attributes(call: ToolCall, number: int, whole: Generation, request: Request) -> dict[str, Any]:
    """Return what is said of a call, without its contents: what the mask removed, how sure the model was of it, and
    where a policy lets its values come from."""
    removed = [mass.removed for mass in whole.masses if mass.call == number]
    sureness = [each.least for each in whole.sureness if each.id == call.id and each.has_choices]
    attributes = {
        "id": call.id,
        "name": call.name,
        "arguments_sha256": Span.digest(dict(call.arguments)) if call.fault is None else Span.digest(call.raw or ""),
        "error": call.error,
        "cut": list(call.cut) or None,
        "removed_mass": max(removed, default=None),
        "least_sureness": min(sureness, default=None),
        "sources": _sources(call, request),
    }
    return {name: value for name, value in attributes.items() if value is not None}


def _sources(call: ToolCall, request: Request) -> Any:
    """Return for each layer of a policy the origins of a call's values, by pointer; None: no policy, or no call."""
    policy = request.params.policy
    if policy is None or call.error is not None:
        return None
    return [
        {
            pointer: [{name: value for name, value in vars(each).items() if value is not None} for each in origins]
            for pointer, origins in layer.items()
        }
        for layer in policy.sources(call, request.messages, request.params.tools)
    ]


def written(messages: Iterable[Message], finish_reason: str | None = None) -> str:
    """Return messages as the JSON text of the conventions."""
    turns = []
    for message in messages:
        parts: list[dict[str, Any]] = []
        if message.reasoning:
            parts.append({"type": "reasoning", "content": message.reasoning})
        if message.role == "tool":
            parts.append({"type": "tool_call_response", "id": message.tool_call_id, "response": message.text})
        elif message.text:
            parts.append({"type": "text", "content": message.text})
        for call in message.tool_calls:
            arguments = dict(call.arguments) if call.fault is None else call.raw
            parts.append({"type": "tool_call", "id": call.id, "name": call.name, "arguments": arguments})
        turn: dict[str, Any] = {"role": message.role, "parts": parts}
        turns.append(turn if finish_reason is None else {**turn, "finish_reason": finish_reason})
    return json.dumps(turns, ensure_ascii=False, default=str)
