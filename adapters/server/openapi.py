"""The server's own description in OpenAPI 3.1: endpoints, the fields that a request may have, and forms of errors.

Fields that have no effect, and those that are refused whatever their value is, are left out. What a field may be beyond
its JSON type (a path to an image, a schema that can be enforced, a known tool) is checked by the server, and answered
with 400.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from importlib.metadata import version
from typing import Any

from toolgrammar.core.generation import OPTIONS

from .asked import EFFORTS, EXTENSIONS, OWN

_TEXT: dict[str, Any] = {"type": "string"}
_FLAG: dict[str, Any] = {"type": "boolean"}
_STRICT: dict[str, Any] = {"enum": [True, False, "true", "false"]}
_OBJECT: dict[str, Any] = {"type": "object"}
_COUNT: dict[str, Any] = {"type": "integer", "minimum": 1}
_NUMBER: dict[str, Any] = {"type": "number"}
_CHOICE: dict[str, Any] = {"type": ["string", "object"]}
_STOP: dict[str, Any] = {"anyOf": [_TEXT, {"type": "array", "items": _TEXT}]}
_EFFORT: dict[str, Any] = {"enum": [*EFFORTS]}
_LIST: dict[str, Any] = {"type": "array", "items": _OBJECT}
_SCHEMA: dict[str, Any] = {"type": "object", "description": "a JSON Schema"}

_SAMPLING: dict[str, Any] = {
    "toolgrammar": {"type": "object", "properties": OWN, "additionalProperties": False},
    **{name: OPTIONS[name].allowed.schema for name in ("temperature", "top_p", *EXTENSIONS)},
    "seed": {"type": "integer"},
    "grammar": {
        "type": ["string", "object"],
        "description": "the answer is a text of this grammar: GBNF, Lark, {syntax, definition}, a structural tag, or "
        "what Grammar.dumps() wrote",
    },
}
_DECIDING: dict[str, Any] = {
    "type": "object",
    "properties": {"orders": {"type": "integer", "minimum": 1, "maximum": 24}, "prior": _FLAG, "refusal": _FLAG},
    "additionalProperties": False,
}
_MESSAGES: dict[str, Any] = {
    "type": "array",
    "minItems": 1,
    "items": {
        "type": "object",
        "properties": {"role": _TEXT, "content": {"type": ["string", "array", "null"]}},
        "required": ["role"],
    },
}


def _message(roles: list[str], content: Any) -> dict[str, Any]:
    item = {"type": "object", "properties": {"role": {"enum": roles}, "content": content}, "required": ["role"]}
    return {**_MESSAGES, "items": item}


_TOOL = {
    "type": "object",
    "properties": {
        "type": {"enum": ["function", "custom"]},
        "function": {
            "type": "object",
            "properties": {"name": _TEXT, "description": _TEXT, "parameters": _SCHEMA, "strict": _STRICT},
            "required": ["name"],
        },
        "custom": {
            "type": "object",
            "properties": {"name": _TEXT, "description": _TEXT, "format": _OBJECT},
            "required": ["name"],
        },
    },
    "required": ["type"],
}
_FORMAT = {"type": "object", "properties": {"type": {"enum": ["text", "json_object", "json_schema"]}}}

#: Fields that both of Ollama's routes take.
_OLLAMA: dict[str, Any] = {
    "format": {"type": ["string", "object"]},
    "options": _OBJECT,
    "think": {"anyOf": [_FLAG, _EFFORT]},
    "stream": _FLAG,
    "logprobs": _FLAG,
    "top_logprobs": {"type": "integer", "minimum": 0, "maximum": 20},
    "toolgrammar": _SAMPLING["toolgrammar"],
}

#: The fields of each request, and which of them must be there.
_REQUESTS: Mapping[str, tuple[str, dict[str, Any], list[str]]] = {
    "/v1/chat/completions": (
        "Answer a conversation, as OpenAI's chat completions",
        {
            "messages": _message(["system", "developer", "user", "assistant", "tool"], {"type": ["string", "array"]}),
            "tools": {"type": "array", "items": _TOOL},
            "tool_choice": _CHOICE,
            "parallel_tool_calls": _FLAG,
            "response_format": _FORMAT,
            "max_tokens": _COUNT,
            "max_completion_tokens": _COUNT,
            "stop": _STOP,
            "n": _COUNT,
            "stream": _FLAG,
            "stream_options": {"type": "object", "properties": {"include_usage": _FLAG}},
            "logprobs": _FLAG,
            "top_logprobs": {"type": "integer", "minimum": 0, "maximum": 20},
            "logit_bias": {"type": "object", "additionalProperties": _NUMBER},
            "reasoning_effort": _EFFORT,
            **_SAMPLING,
        },
        ["messages"],
    ),
    "/v1/completions": (
        "Go on with a text, as OpenAI's completions",
        {
            "prompt": {"type": ["string", "array"]},
            "max_tokens": _COUNT,
            "n": _COUNT,
            "stream": _FLAG,
            "stop": _STOP,
            "echo": _FLAG,
            "logprobs": {"type": "integer", "minimum": 0},
            "logit_bias": {"type": "object", "additionalProperties": _NUMBER},
            "response_format": _FORMAT,
            **_SAMPLING,
        },
        ["prompt"],
    ),
    "/v1/responses": (
        "Answer, as OpenAI's responses",
        {
            "input": {"type": ["string", "array"]},
            "instructions": _TEXT,
            "previous_response_id": _TEXT,
            "tools": _LIST,
            "tool_choice": _CHOICE,
            "parallel_tool_calls": _FLAG,
            "text": {"type": "object", "properties": {"format": _FORMAT}},
            "max_output_tokens": _COUNT,
            "reasoning": {"type": "object", "properties": {"effort": _EFFORT}},
            "include": {"type": "array", "items": _TEXT},
            "stream": _FLAG,
            "store": _FLAG,
            **_SAMPLING,
        },
        ["input"],
    ),
    "/v1/messages": (
        "Answer a conversation, as Anthropic's messages",
        {
            "messages": _message(["user", "assistant"], {"type": ["string", "array"]}),
            "max_tokens": _COUNT,
            "system": {"type": ["string", "array"]},
            "tools": _LIST,
            "tool_choice": _OBJECT,
            "thinking": _OBJECT,
            "output_config": _OBJECT,
            "stop_sequences": {"type": "array", "items": _TEXT},
            "stream": _FLAG,
            **_SAMPLING,
        },
        ["messages", "max_tokens"],
    ),
    "/v1/messages/count_tokens": (
        "Count the tokens of a prompt",
        {
            "messages": _message(["user", "assistant"], {"type": ["string", "array"]}),
            "system": {"type": ["string", "array"]},
            "tools": _LIST,
        },
        ["messages"],
    ),
    "/v1/decisions": (
        "Decide questions with the probability of each answer, as OpenAI's decisions",
        {"input": {"type": ["string", "array"]}, "questions": {**_LIST, "minItems": 1}, "toolgrammar": _DECIDING},
        ["input", "questions"],
    ),
    "/v1/systemone": (
        "Decide questions with the probability of each answer, as System One",
        {
            "state": {},
            "questions": {"type": "object", "additionalProperties": _OBJECT, "minProperties": 1},
            "toolgrammar": _DECIDING,
        },
        ["state", "questions"],
    ),
    "/api/generate": (
        "Answer one message, or go on with a text, as Ollama does",
        {
            "prompt": _TEXT,
            "system": _TEXT,
            "raw": _FLAG,
            "images": _LIST,
            **_OLLAMA,
        },
        [],
    ),
    "/api/chat": (
        "Answer a conversation, as Ollama's chat",
        {
            "messages": _message(["system", "user", "assistant", "tool"], _TEXT),
            "tools": _LIST,
            "tool_choice": _CHOICE,
            **_OLLAMA,
        },
        ["messages"],
    ),
    "/api/show": ("Describe a model, as Ollama does", {}, []),
}

#: Other endpoints, and what they are for.
_GETS: Mapping[str, str] = {
    "/v1/models": "List the models",
    "/v1/models/{name}": "Describe a model",
    "/api/v0/models": "List the models, as LM Studio did before 0.4",
    "/api/v1/models": "List the models, as LM Studio does",
    "/api/tags": "List the models, as Ollama does",
    "/api/ps": "List the models that are loaded, as Ollama does",
    "/api/version": "Tell the version",
    "/health": "Tell that the process lives",
    "/ready": "Tell whether it takes requests",
    "/metrics": "Tell counts and durations, in the text format of Prometheus",
    "/openapi.json": "Tell this description",
}

_ERRORS: Mapping[str, dict[str, Any]] = {
    "/api/": {"type": "object", "properties": {"error": _TEXT}, "required": ["error"]},
    "/v1/messages": {
        "type": "object",
        "properties": {
            "type": {"const": "error"},
            "error": {
                "type": "object",
                "properties": {"type": _TEXT, "message": _TEXT},
                "required": ["type", "message"],
            },
        },
        "required": ["type", "error"],
    },
    "/": {
        "type": "object",
        "properties": {
            "error": {
                "type": "object",
                "properties": {
                    "message": _TEXT,
                    "type": _TEXT,
                    "param": {"type": ["string", "null"]},
                    "code": {"type": ["string", "null"]},
                },
                "required": ["message", "type", "param", "code"],
            }
        },
        "required": ["error"],
    },
}
#: Statuses of errors, and what they mean.
_STATUSES = {
    "400": "a field is wrong, unknown or cannot be met",
    "401": "the API key is missing or wrong",
    "404": "there is no such model or response",
    "408": "the body did not arrive in time",
    "413": "the body or its schemas are too large",
    "415": "a browser's content type is not application/json",
    "429": "too many requests wait",
    "500": "an internal error",
    "502": "the model's own server failed",
    "504": "the answer took too long",
}


def description(models: Iterable[str], *, metrics: bool) -> dict[str, Any]:
    """Return the description of a server of some models, with or without metrics."""
    models_known = {"enum": [*models]}
    paths: dict[str, Any] = {}
    for path, (summary, fields, required) in _REQUESTS.items():
        body = _with_nulls(
            {
                "type": "object",
                "properties": {"model": models_known, **fields},
                "required": ["model", *required],
            }
        )
        paths[path] = {
            "post": {
                "summary": summary,
                "requestBody": {"required": True, "content": {"application/json": {"schema": body}}},
                "responses": {"200": _found(path, "stream" in fields), **_refusals(path)},
            }
        }
    for path, summary in _GETS.items():
        if path != "/metrics" or metrics:
            responses: dict[str, Any] = {"200": _found(path, False), **_refusals(path)}
            if path == "/ready":
                responses["503"] = _found(path, False)
            paths[path] = {"get": {"summary": summary, "responses": responses, **_parameters(path)}}
    kept = {"responses": {"200": _found("/v1/responses", False), **_refusals("/v1/responses")}}
    paths["/v1/responses/{name}"] = {
        "get": {"summary": "Return a response that is kept", **kept, **_parameters("{name}")},
        "delete": {"summary": "Forget a response", **kept, **_parameters("{name}")},
    }
    info = {"title": "toolgrammar serve", "version": version("toolgrammar")}
    return {"openapi": "3.1.0", "info": info, "paths": paths}


def _with_nulls(schema: dict[str, Any]) -> dict[str, Any]:
    """Return a schema in which null stands for any member that may be absent, as the server reads it."""
    made = dict(schema)
    needed = schema.get("required", ())
    if "properties" in schema:
        made["properties"] = {
            name: _with_nulls(part) if name in needed else {"anyOf": [_with_nulls(part), {"type": "null"}]}
            for name, part in schema["properties"].items()
        }
    if "items" in schema:
        made["items"] = _with_nulls(schema["items"])
    return made


def _parameters(path: str) -> dict[str, Any]:
    if "{name}" not in path:
        return {}
    return {"parameters": [{"name": "name", "in": "path", "required": True, "schema": {**_TEXT, "minLength": 1}}]}


def _found(path: str, streams: bool) -> dict[str, Any]:
    content: dict[str, Any] = {"text/plain" if path == "/metrics" else "application/json": {}}
    if streams:
        content["application/x-ndjson" if path.startswith("/api/") else "text/event-stream"] = {}
    return {"description": "the answer", "content": content}


def _refusals(path: str) -> dict[str, Any]:
    form = next(form for begin, form in _ERRORS.items() if path.startswith(begin))
    return {
        status: {"description": meaning, "content": {"application/json": {"schema": form}}}
        for status, meaning in _STATUSES.items()
    }
