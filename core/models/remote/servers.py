"""Forms of requests for each kind of server with OpenAI's chat completions, the one that enforces most first.

Sources: OpenAI's API reference; vLLM 0.33 (``structured_outputs``; its older ``guided_json`` is silently ignored);
SGLang 0.5.23 (``openai/protocol.py``); the README of llama.cpp's server; Ollama's page on OpenAI compatibility.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from ...errors import ModelError
from ...generation.params import OPTIONS, GenerateParams
from .enforced import envelope
from .form import CALLS, ENFORCED, Form
from .schema_dialects import Reduced, anchored_schema, consistent, plain_schema, refers, strict_schema, without


def forms(
    kind: str,
    params: GenerateParams,
    tools: Sequence[Mapping[str, Any]],
    schema: Any,
    unknown: Collection[str] = (),
) -> list[Form]:
    """Return the forms of a request, the strongest first; the last one needs no support of the server.

    Args:
        kind: kind of the server.
        params: options of the request.
        tools: OpenAI-style dicts with closed schemas; empty if no call is allowed.
        schema: schema of a text answer; None if it is free.
        unknown: keywords of JSON Schema that the server does not support, which are removed.
    """
    possible = _forms(kind, params, tools, schema, unknown)
    return [replace(form, schemas=tuple(_schemas(form.fields))) for form in possible]


def enforced_form(
    kind: str,
    params: GenerateParams,
    tools: Sequence[Mapping[str, Any]],
    bound: Sequence[Mapping[str, Any]],
    schema: Any,
) -> Form:
    """Return the form of a request for a server with our plug-in, which enforces all of it.

    Args:
        kind: kind of the server.
        params: options of the request.
        tools: OpenAI-style dicts with closed schemas, for the prompt; empty if no call is allowed.
        bound: those that may be called, with the values of the conversation.
        schema: schema of a text answer, with the texts of the conversation; None if it is free.
    """
    if not tools:
        return Form(ENFORCED, {"structured_outputs": {"json": {} if isinstance(schema, bool) else schema}})
    asked = envelope(bound, params, schema)
    given = {"tools": list(tools), **_choice(kind, params), "structured_outputs": {"grammar": asked}}
    return Form(ENFORCED, given, schema_in_prompt=schema is not None)


def _schemas(fields: Mapping[str, Any]) -> Iterator[Any]:
    answer = fields.get("response_format", {})
    yield answer.get("json_schema", answer).get("schema")
    yield fields.get("structured_outputs", {}).get("json")
    for tool in fields.get("tools", ()):
        yield tool["function"]["parameters"]


def _forms(
    kind: str,
    params: GenerateParams,
    tools: Sequence[Mapping[str, Any]],
    schema: Any,
    unknown: Collection[str],
) -> list[Form]:
    """Return the forms of `forms`, without their schemas: the server's own constraints first, the prompt last."""
    if not tools:
        return [Form("text")] if schema is None else [*_json_forms(kind, schema, unknown), _in_prompt(schema)]
    has_schema = schema is not None
    if params.tool_format is not None:
        return [_in_prompt(schema, has_tools=True)]
    declared, removed = [], ()
    for tool in tools:
        function = dict(tool["function"])
        reduced, pointers = known(function.get("parameters", {"type": "object"}), unknown)
        removed += tuple(function["name"] + pointer for pointer in pointers)
        declared.append({**tool, "function": {**function, "parameters": plain_schema(reduced)}})
    possible = []
    strict = _strict_tools(kind, declared)
    choice = _choice(kind, params)
    names = tuple(tool["function"]["name"] for tool in declared)
    if has_schema and kind == "openai" and params.tool_choice == "auto":
        # On other servers, a response format together with tools forbids calls, or is an error.
        answer = _json_forms(kind, schema, unknown)[0]
        name = f"{'strict ' if strict.is_any else ''}tools + {answer.name}"
        fields = {"tools": strict.tools, **choice, **answer.fields}
        possible.append(Form(name, fields, removed + strict.left_out + answer.left_out))
    if kind == "ollama" and not has_schema and (call := _call_schema(params, declared, unknown)) is not None:
        # Ollama enforces no tools, but the schema of a JSON answer: that of a call.
        named = {"name": "call", "schema": call, "strict": True}
        fields = {"tools": declared, "response_format": {"type": "json_schema", "json_schema": named}}
        shape = '{"name": <function-name>, "arguments": <args-json-object>}'
        how = f"a JSON array of calls: [{shape}]" if call["type"] == "array" else f"one call as JSON: {shape}"
        possible.append(Form(CALLS, fields, removed, instruction=f"Answer with {how}", promises=names))
    if strict.is_any:
        promised = names if kind in ("vllm", "sglang") else ()
        fields, left_out = {"tools": strict.tools, **choice}, removed + strict.left_out
        possible.append(Form("strict tools", fields, left_out, schema_in_prompt=has_schema, promises=promised))
    possible.append(Form("tools", {"tools": declared, **choice}, removed, schema_in_prompt=has_schema))
    return [*possible, _in_prompt(schema, has_tools=True)]


def _in_prompt(schema: Any, *, has_tools: bool = False) -> Form:
    """Return the form that needs no support of the server: the tools and the schema are in the prompt."""
    return Form("prompt", schema_in_prompt=schema is not None, tools_in_prompt=has_tools)


def known(schema: Any, unknown: Collection[str]) -> Reduced:
    """Return a schema without the keywords ``unknown``, which the server does not support, and without values of an
    ``enum`` that contradict its type."""
    schema = consistent(schema)
    return without(schema, lambda key, value: key not in unknown) if unknown else Reduced(schema, ())


def _choice(kind: str, params: GenerateParams) -> dict[str, Any]:
    """Return the request fields for the tool choice and for parallel calls."""
    if kind == "ollama":
        return {}  # it supports neither field; both are validated here
    choice: Any = params.tool_choice
    if choice not in ("auto", "required", "none"):
        choice = {"type": "function", "function": {"name": choice}}
    fields = {"tool_choice": choice}
    if not params.parallel_tool_calls or kind == "llama.cpp":  # True is the default, but of llama.cpp's server
        fields["parallel_tool_calls"] = params.parallel_tool_calls
    return fields


def _call_schema(
    params: GenerateParams, tools: Sequence[Mapping[str, Any]], unknown: Collection[str]
) -> dict[str, Any] | None:
    """Return the JSON Schema of an answer that has to be calls; None if it need not, or if a schema has references,
    which are relative to its root."""
    if params.tool_choice == "auto":
        return None
    calls = []
    for tool in tools:
        function = tool["function"]
        if params.tool_choice not in ("required", function["name"]):
            continue
        if refers(function["parameters"]):
            return None
        calls.append(
            {
                "type": "object",
                "properties": {"name": {"const": function["name"]}, "arguments": function["parameters"]},
                "required": ["name", "arguments"],
                "additionalProperties": False,
            }
        )
    call: dict[str, Any] = calls[0] if len(calls) == 1 else {"type": "object", "anyOf": calls}
    if params.parallel_tool_calls and params.tool_choice == "required":
        call = {"type": "array", "items": call} | ({} if "minItems" in unknown else {"minItems": 1})
    return call


class _StrictTools(NamedTuple):
    """Tools with ``"strict": true``, as far as a server supports it.

    Attributes:
        tools: OpenAI-style dicts.
        left_out: pointers of keywords that strict tools cannot have, each after the tool's name.
        is_any: at least one tool is strict.
    """

    tools: list[dict[str, Any]]
    left_out: tuple[str, ...]
    is_any: bool


def _strict_tools(kind: str, tools: Sequence[Mapping[str, Any]]) -> _StrictTools:
    """Return tools, each strict if the server supports that for its schema."""
    sent, left_out, is_any = [], [], False
    for tool in tools:
        function = dict(tool["function"])
        if kind in ("vllm", "sglang"):
            function["strict"] = is_any = True
        elif kind == "openai" and (taken := strict_schema(function.get("parameters"))) is not None:
            function |= {"parameters": taken.schema, "strict": True}
            left_out += [function["name"] + place for place in taken.left_out]
            is_any = True
        sent.append({**tool, "function": function})
    return _StrictTools(sent, tuple(left_out), is_any)


def _json_forms(kind: str, schema: Any, unknown: Collection[str]) -> list[Form]:
    """Return the forms of a request for JSON, in order of preference: the schema in ``response_format`` (adapted to
    OpenAI's strict mode, or to llama.cpp's patterns); other fields that some servers read; any JSON object, with the
    schema in the prompt."""
    schema, pointers = known(schema, unknown)
    removed = tuple(f"response{pointer}" for pointer in pointers)
    if isinstance(schema, bool):
        schema = {}
    taken: Reduced | None = Reduced(schema, ())
    if kind == "openai":
        taken = strict_schema(schema)
    elif kind == "llama.cpp":
        taken = anchored_schema(schema)
    sent, left_out = taken or Reduced(schema, ())  # a schema that strict mode does not take is sent as it is
    named = {"name": "answer", "schema": sent, "strict": taken is not None}
    left_out = (*removed, *(f"response{pointer}" for pointer in left_out))
    possible = [Form("json_schema", {"response_format": {"type": "json_schema", "json_schema": named}}, left_out)]
    if kind == "vllm":
        possible.append(Form("structured_outputs", {"structured_outputs": {"json": schema}}, removed))
    if schema.get("type") == "object":
        # llama.cpp and its derivatives read the schema here; other servers ignore or reject the field.
        inline = {"type": "json_object", "schema": anchored_schema(schema).schema}
        possible.append(Form("json_object with schema", {"response_format": inline}, removed, schema_in_prompt=True))
        possible.append(
            Form("json_object", {"response_format": {"type": "json_object"}}, removed, schema_in_prompt=True)
        )
    return possible


# -- sampling ------------------------------------------------------------------------------------------------------

_EVERYWHERE = {name: name for name in ("temperature", "top_p", "seed")}
_BIAS = {"logit_bias": "logit_bias"}
_MORE = {"top_k": "top_k", "min_p": "min_p", "repetition_penalty": "repetition_penalty"}

#: The options of sampling that each kind of server takes, by its names for them. It refuses the others.
_SAMPLING: Mapping[str, Mapping[str, str]] = {
    "openai": {**_EVERYWHERE, **_BIAS},
    "vllm": {**_EVERYWHERE, **_BIAS, **_MORE},
    "sglang": {**_EVERYWHERE, **_BIAS, **_MORE},
    "llama.cpp": {**_EVERYWHERE, **_BIAS, **_MORE, "repetition_penalty": "repeat_penalty"},
    "ollama": _EVERYWHERE,
    "anthropic": {"temperature": "temperature", "top_p": "top_p", "top_k": "top_k"},
    "gemini": {"temperature": "temperature", "top_p": "topP", "top_k": "topK", "seed": "seed"},
    "bedrock": {"temperature": "temperature", "top_p": "topP"},
}

#: The options that each kind takes or refuses: those of sampling, and those that need the logits of a model.
_CHOOSING = tuple(name for name, row in OPTIONS.items() if row.group == "sampling" or row.local)


def sampling(kind: str, params: GenerateParams) -> dict[str, Any]:
    """Return the fields of a request's body for sampling, by the server's names; the temperature is always sent.

    Raises:
        ModelError: this kind of server does not take an option, or it is one of local models.
    """
    names, defaults = _SAMPLING[kind], GenerateParams()
    fields: dict[str, Any] = {"temperature": params.temperature}
    for name in _CHOOSING:
        value = getattr(params, name)
        if value in (getattr(defaults, name), {}):  # an empty logit_bias changes nothing
            continue
        if name not in names:
            raise not_taken(kind, name)
        fields[names[name]] = {str(token): bias for token, bias in value.items()} if name == "logit_bias" else value
    return fields


def completion_options(kind: str, params: GenerateParams) -> dict[str, Any]:
    """Return the fields of a chat completion for sampling, limits (tokens, stop strings) and thinking.

    Raises:
        ModelError: this kind of server does not take an option, or it is one of local models.
    """
    fields = sampling(kind, params)
    limits = {"max_tokens": params.max_tokens, "stop": list(params.stop) or None}
    fields |= {name: value for name, value in limits.items() if value is not None}
    if params.thinking not in (None, "auto"):
        if kind not in ("vllm", "sglang", "llama.cpp") or not isinstance(params.thinking, bool):
            raise not_taken(kind, "thinking" if isinstance(params.thinking, bool) else "a budget for thinking")
        fields["chat_template_kwargs"] = {"enable_thinking": params.thinking}
    return fields


def not_taken(kind: str, name: str) -> ModelError:
    """Return the error for an option that a kind of server does not take."""
    return ModelError(
        f"a server of the kind {kind!r} does not take {name}",
        hint="remove it, or pass the server's own field to load_model: body={...}",
    )
