"""Every parameter that the SDKs can send: it works, changes no answer, or is an error that names it."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from operator import attrgetter
from typing import Any

import anthropic
import httpx
import ollama
import openai
import pytest
from pydantic import BaseModel

from toolgrammar.adapters.anthropic import client as anthropic_client
from toolgrammar.adapters.openai import client as openai_client
from toolgrammar.adapters.server import create_app
from toolgrammar.adapters.server.in_process import BASE_URL, InProcess
from toolgrammar.core import GenerateParams, Model
from toolgrammar.core.testing import ScriptedModel

from .conftest import BOOKING, openai_tool

HELLO: Any = [{"role": "user", "content": "Hello"}]

#: What a value does: it reaches the model; it is a label, a hint, or what the server does anyway; it declares what the
#: server does not have, which the answer says; or it is refused.
WORKS, NOTHING, UNUSED = "works", "nothing", "unused"

Table = Mapping[str, tuple[Any, str]]


class Part(BaseModel):
    """An answer's type."""

    name: str


CHAT: Table = {
    "messages": ([{"role": "user", "content": "Other"}], WORKS),
    "model": ("nothing", "model"),
    "audio": ({"format": "mp3", "voice": "ash"}, "audio"),
    "frequency_penalty": (0.5, "frequency_penalty"),
    "function_call": ("none", "function_call"),
    "functions": ([{"name": "f"}], "functions"),
    "logit_bias": ({"7": 5}, WORKS),
    "logprobs": (True, WORKS),
    "max_completion_tokens": (3, WORKS),
    "max_tokens": (3, WORKS),
    "metadata": ({"a": "b"}, NOTHING),
    "modalities": (["audio"], "modalities"),
    "moderation": ({"model": "m"}, UNUSED),
    "n": (2, WORKS),
    "parallel_tool_calls": (False, WORKS),
    "prediction": ({"type": "content", "content": "x"}, UNUSED),
    "presence_penalty": (0.5, "presence_penalty"),
    "prompt_cache_key": ("k", NOTHING),
    "prompt_cache_options": ({"mode": "implicit"}, NOTHING),
    "prompt_cache_retention": ("24h", NOTHING),
    "reasoning_effort": ("none", WORKS),
    "response_format": ({"type": "json_object"}, WORKS),
    "safety_identifier": ("s", NOTHING),
    "seed": (9, WORKS),
    "service_tier": ("flex", UNUSED),
    "stop": (["x"], WORKS),
    "store": (True, "store"),
    "stream": (True, WORKS),
    "stream_options": ({"include_obfuscation": True}, UNUSED),
    "temperature": (0.7, WORKS),
    "tool_choice": ("required", "tool_choice"),
    "tools": ([openai_tool("book")], WORKS),
    "top_logprobs": (2, "top_logprobs"),
    "top_p": (0.3, WORKS),
    "user": ("me", NOTHING),
    "verbosity": ("low", UNUSED),
    "web_search_options": ({}, UNUSED),
}
COMPLETIONS: Table = {
    "model": ("nothing", "model"),
    "prompt": ("Other", WORKS),
    "best_of": (3, "best_of"),
    "echo": (True, WORKS),
    "frequency_penalty": (0.5, "frequency_penalty"),
    "logit_bias": ({"7": 5}, WORKS),
    "logprobs": (1, WORKS),
    "max_tokens": (3, WORKS),
    "n": (2, WORKS),
    "presence_penalty": (0.5, "presence_penalty"),
    "seed": (9, WORKS),
    "stop": (["x"], WORKS),
    "stream": (True, WORKS),
    "stream_options": ({"include_obfuscation": True}, UNUSED),
    "suffix": ("end", "suffix"),
    "temperature": (0.7, WORKS),
    "top_p": (0.3, WORKS),
    "user": ("me", NOTHING),
}
RESPONSES: Table = {
    "access_programs": ({"type": "x"}, UNUSED),
    "background": (True, "background"),
    "background_options": ({"type": "x"}, UNUSED),
    "context_management": ([{"type": "compaction"}], UNUSED),
    "conversation": ("c", "conversation"),
    "image": ({"type": "x"}, UNUSED),
    "include": (["file_search_call.results"], UNUSED),
    "input": ("Other", WORKS),
    "instructions": ("Be brief.", WORKS),
    "max_output_tokens": (3, WORKS),
    "max_tool_calls": (1, UNUSED),
    "metadata": ({"a": "b"}, NOTHING),
    "model": ("nothing", "model"),
    "moderation": ({"model": "m"}, UNUSED),
    "parallel_tool_calls": (False, WORKS),
    "previous_response_id": ("resp_1", "previous_response_id"),
    "prompt": ({"id": "p"}, "prompt"),
    "prompt_cache_key": ("k", NOTHING),
    "prompt_cache_options": ({"mode": "implicit"}, NOTHING),
    "prompt_cache_retention": ("24h", NOTHING),
    "reasoning": ({"effort": "none"}, WORKS),
    "safety_identifier": ("s", NOTHING),
    "service_tier": ("flex", UNUSED),
    "store": (False, NOTHING),
    "stream": (True, WORKS),
    "stream_options": ({"include_obfuscation": True}, UNUSED),
    "temperature": (0.7, WORKS),
    "text": ({"format": {"type": "json_object"}}, WORKS),
    "tool_choice": ("required", "tool_choice"),
    "tools": ([{"type": "function", "name": "book", "parameters": BOOKING, "strict": True}], WORKS),
    "top_logprobs": (2, WORKS),
    "top_p": (0.3, WORKS),
    "truncation": ("auto", UNUSED),
    "user": ("me", NOTHING),
}
MESSAGES: Table = {
    "max_tokens": (3, WORKS),
    "messages": ([{"role": "user", "content": "Other"}], WORKS),
    "model": ("nothing", "model"),
    "cache_control": ({"type": "ephemeral"}, NOTHING),
    "container": ("c", UNUSED),
    "diagnostics": ({"previous_message_id": "m"}, UNUSED),
    "inference_geo": ("us", "inference_geo"),
    "metadata": ({"user_id": "u"}, NOTHING),
    "output_config": ({"format": {"type": "json_schema", "schema": BOOKING}}, WORKS),
    "service_tier": ("priority", UNUSED),
    "speed": ("fast", UNUSED),
    "stop_sequences": (["x"], WORKS),
    "stream": (True, WORKS),
    "system": ("Be brief.", WORKS),
    "thinking": ({"type": "disabled"}, WORKS),
    "tool_choice": ({"type": "any"}, "tool_choice"),
    "tools": ([{"name": "book", "input_schema": BOOKING}], WORKS),
    "user_profile_id": ("u", NOTHING),
    "workspace_id": ("w", NOTHING),
}
BETA: Table = {
    **MESSAGES,
    "billing_policy": ("x", UNUSED),
    "compaction": ({"type": "x"}, UNUSED),
    "context_management": ({"edits": [{"type": "clear_tool_uses_20250919"}]}, UNUSED),
    "fallback_credit_token": ("x", UNUSED),
    "fallbacks": ([{"model": "x"}], UNUSED),
    "mcp_servers": ([{"name": "x", "type": "url", "url": "http://x"}], UNUSED),
    "thread": ("x", "thread"),
    "betas": (["x-2026"], NOTHING),
}
COUNT: Table = {
    **{
        name: MESSAGES[name]
        for name in (
            "messages", "model", "cache_control", "output_config", "speed", "system", "thinking", "tool_choice",
            "tools", "user_profile_id", "workspace_id",
        )
    },
    "output_config": ({"format": {"type": "json_schema", "schema": BOOKING}}, NOTHING),
    "thinking": ({"type": "disabled"}, NOTHING),
    "output_format": (Part, NOTHING),  # the SDK makes an output_config of it
}  # fmt: skip
OLLAMA: Table = {
    "model": ("nothing", "model"),
    "messages": ([{"role": "user", "content": "Other"}], WORKS),
    "tools": ([openai_tool("book")], WORKS),
    "stream": (True, WORKS),
    "think": (False, WORKS),
    "logprobs": (True, WORKS),
    "top_logprobs": (2, "top_logprobs"),
    "format": ("json", WORKS),
    "options": ({"temperature": 0.7}, WORKS),
    "keep_alive": (5, NOTHING),
}
GENERATE: Table = {
    "model": ("nothing", "model"),
    "prompt": ("Other", WORKS),
    "suffix": ("end", "suffix"),
    "system": ("Be brief.", WORKS),
    "template": ("{{ .Prompt }}", "template"),
    "context": ([1, 2], "context"),
    "stream": (True, WORKS),
    "think": (False, WORKS),
    "logprobs": (True, WORKS),
    "top_logprobs": (2, "top_logprobs"),
    "raw": (True, WORKS),
    "format": ("json", WORKS),
    "images": ([b"x"], "images"),
    "options": ({"temperature": 0.7}, WORKS),
    "keep_alive": (5, NOTHING),
    "width": (8, UNUSED),
    "height": (8, UNUSED),
    "steps": (2, UNUSED),
}
OLLAMA_OPTIONS: Table = {
    **{
        name: (value, NOTHING)
        for name, value in {
            "numa": True, "num_batch": 8, "num_gpu": 1, "main_gpu": 0, "low_vram": True, "use_mmap": True,
            "num_thread": 2, "num_keep": 4, "num_ctx": 512, "use_mlock": True, "f16_kv": True, }.items()
    },
    "logits_all": (True, UNUSED),
    "vocab_only": (True, UNUSED),
    "embedding_only": (True, UNUSED),
    "seed": (9, WORKS),
    "num_predict": (3, WORKS),
    "top_k": (2, WORKS),
    "top_p": (0.3, WORKS),
    "temperature": (0.7, WORKS),
    "repeat_penalty": (1.5, WORKS),
    "stop": (["x"], WORKS),
    "tfs_z": (0.5, "options.tfs_z"),
    "typical_p": (0.5, "options.typical_p"),
    "repeat_last_n": (3, NOTHING),
    "presence_penalty": (0.5, "options.presence_penalty"),
    "frequency_penalty": (0.5, "options.frequency_penalty"),
    "mirostat": (1, "options.mirostat"),
    "mirostat_tau": (0.5, NOTHING),
    "mirostat_eta": (0.5, NOTHING),
    "penalize_newline": (True, UNUSED),
}  # fmt: skip


class Recording(ScriptedModel):
    """Says one word for ever, and keeps the requests."""

    def __init__(self) -> None:
        super().__init__(lambda messages: "words")
        self.asked: list[tuple[Any, ...]] = []

    def _work(self, request: Any) -> Any:
        params = {name: value for name, value in vars(request.params).items() if name not in ("cancel", "timeout")}
        if params["tools"] is not None:
            params["tools"] = params["tools"].to_openai()
        self.asked.append((request.messages, request.live, *params.items()))
        return super()._work(request)

    def count_tokens(self, prompt: Any, tools: Any = None, tools_in_prompt: Any = "schemas") -> int:
        """Keep what is counted, too."""
        self.asked.append((prompt, tools and tools.to_openai()))
        return 1


@contextmanager
def endpoint_of(
    client: Callable[..., Any], name: str, base: Mapping[str, Any]
) -> Iterator[tuple[Recording, Callable[..., Any], Any]]:
    """A model, the SDK's method for it, and what a request needs."""
    model = Recording()
    with client({"m": model}) as made:
        yield model, attrgetter(name)(made), base


openai_endpoint, anthropic_endpoint = partial(endpoint_of, openai_client), partial(endpoint_of, anthropic_client)


@contextmanager
def ollama_endpoint(name: str, base: Mapping[str, Any]) -> Iterator[tuple[Recording, Callable[..., Any], Any]]:
    """The same of Ollama's SDK; its options are parameters, too."""
    model = Recording()
    process = InProcess(create_app({"m": model}), httpx)
    client = ollama.Client(host=BASE_URL, transport=process.transport())

    def chat(**fields: Any) -> Any:
        if name == "options":
            named = {key: fields.pop(key) for key in [*fields] if key not in ("model", "messages")}
            # Not by the class of the SDK: it has not all of them any more.
            fields["options"] = named
        return client.chat(**fields)

    try:
        yield model, chat if name == "options" else getattr(client, name), base
    finally:
        process.close()


CONVERSATION = {"model": "m", "messages": HELLO}
ENDPOINTS: dict[str, tuple[Any, str, Mapping[str, Any], Table]] = {
    "chat completions": (openai_endpoint, "chat.completions.create", CONVERSATION, CHAT),
    "completions": (openai_endpoint, "completions.create", {"model": "m", "prompt": "Hello"}, COMPLETIONS),
    "responses": (openai_endpoint, "responses.create", {"model": "m", "input": "Hello"}, RESPONSES),
    "messages": (anthropic_endpoint, "messages.create", {**CONVERSATION, "max_tokens": 200}, MESSAGES),
    "beta messages": (anthropic_endpoint, "beta.messages.create", {**CONVERSATION, "max_tokens": 200}, BETA),
    "count tokens": (anthropic_endpoint, "messages.count_tokens", CONVERSATION, COUNT),
    "ollama": (ollama_endpoint, "chat", CONVERSATION, OLLAMA),
    "ollama generate": (ollama_endpoint, "generate", {"model": "m", "prompt": "Hello"}, GENERATE),
    "ollama options": (ollama_endpoint, "options", CONVERSATION, OLLAMA_OPTIONS),
}
CASES = [(endpoint, name) for endpoint, (*_, table) in ENDPOINTS.items() for name in table]


@pytest.mark.parametrize("endpoint", ENDPOINTS)
def test_every_parameter_is_tried(endpoint: str) -> None:
    """A parameter that a new version of an SDK has shows up here."""
    make, name, base, table = ENDPOINTS[endpoint]
    if name == "options":
        known = set(ollama.Options.model_fields)
    else:
        with make(name, base) as (_, create, _):
            known = {one for one in inspect.signature(create).parameters if not one.startswith("extra_")} - {"timeout"}
    assert known <= set(table), known - set(table)


@pytest.mark.parametrize(("endpoint", "field"), CASES, ids=lambda value: value.replace(" ", "_"))
def test_a_parameter_works_or_is_named(endpoint: str, field: str) -> None:
    """What works changes what the model is asked, or the answer's form; a constraint that is not met is refused by its path."""
    make, name, base, table = ENDPOINTS[endpoint]
    value, outcome = table[field]
    with make(name, base) as (model, create, _):
        if name != "options" and field not in inspect.signature(create).parameters:
            pytest.skip(f"the installed SDK has no parameter {field}")
        plain = create(**base)
        before = model.asked[-1]
        failures = (openai.APIStatusError, anthropic.APIStatusError, ollama.ResponseError)
        try:
            answer = create(**{**base, field: value})
            if field == "stream":
                answer = list(answer)
        except failures as error:
            assert outcome not in (WORKS, NOTHING, UNUSED), str(error)
            assert outcome in str(error) or getattr(error, "param", None) == outcome, str(error)
            assert error.status_code == (404 if outcome in ("model", "previous_response_id") else 400)
            return
        assert outcome in (WORKS, NOTHING, UNUSED), f"{field} is taken"
        changed = model.asked[-1] != before or field in ("n", "echo", "stream")
        assert changed == (outcome == WORKS), (before, model.asked[-1])
        if field == "n":
            assert len(answer.choices) == 2
        if field == "echo":
            assert answer.choices[0].text == "Hello" + plain.choices[0].text


def test_options_of_ours_work(noise: Model) -> None:
    """The extensions reach the model by ``extra_body``."""
    model = Recording()
    with openai_client({"m": model}, defaults=GenerateParams(temperature=1.0)) as made:
        extra = {"top_k": 3, "min_p": 0.1, "repetition_penalty": 1.2}
        made.chat.completions.create(model="m", messages=HELLO, extra_body=extra)
    asked = dict(model.asked[-1][2:])
    assert {name: asked[name] for name in extra} == extra and asked["temperature"] == 1.0
