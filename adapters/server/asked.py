"""The neutral form of a request, the models that a server has, and the reading of what protocols share."""

from __future__ import annotations

import difflib
import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from toolgrammar.core.conversation import ImagePart, Message, ToolCall
from toolgrammar.core.errors import Place
from toolgrammar.core.generation import OPTIONS, GenerateParams
from toolgrammar.core.models import LocalModel, Model, find_markers, load_model
from toolgrammar.tools.tool import text_parameters

from .. import _shared
from .fields import Fields, RequestError, at_field
from .named_values import NamedValues

#: Words of ``reasoning_effort``, and the reasoning that each asks for.
EFFORTS = _shared.EFFORTS

#: Options of `GenerateParams` that protocols lack; the server takes them under these names, as vLLM does.
EXTENSIONS = ("top_k", "min_p", "repetition_penalty")  # and ``grammar``, which is no number

#: JSON Schemas of the options that are taken in the field ``toolgrammar`` of any request.
OWN: Mapping[str, Mapping[str, Any]] = {name: row.allowed.schema for name, row in OPTIONS.items() if row.server}

#: Fields of requests that hold schemas, grammars and tools, in any protocol.
_WITH_SCHEMAS = ("tools", "response_format", "format", "text", "output_config", "grammar", "options")

#: Name of the argument of custom tools, whose calls have one text instead of arguments.
INPUT = "input"


@dataclass(frozen=True)
class Asked:
    """One request, whatever its protocol.

    Attributes:
        model: the name under which the model is served.
        messages: the conversation.
        params: how to generate.
        stream: the answer comes as events.
        answers: how many answers are asked for, to all texts together.
        texts: to go on with, if there is no conversation.
        include_usage: the stream ends with the token counts, in protocols that let the client choose.
        details: what the protocol's own response repeats of the request.
    """

    model: str
    messages: tuple[Message, ...]
    params: GenerateParams
    stream: bool = False
    answers: int = 1
    texts: tuple[str, ...] = ()
    include_usage: bool = False
    details: Mapping[str, Any] = field(default_factory=dict)

    def params_of(self, index: int) -> GenerateParams:
        """Return the options of one of several answers: those to one prompt have seeds of their own."""
        each = self.answers // max(1, len(self.texts))
        seed = self.params.seed
        prefix = self.texts[index // each] if self.texts else self.params.prefix
        return replace(self.params, seed=seed if seed is None else seed + index % each, prefix=prefix)


class Served:
    """The models of a server, by name.

    Args:
        models: a model or its address, or several by the names that clients give.
        defaults: options of requests that do not say otherwise.
        max_schema: maximum number of bytes of all schemas of a request, as JSON.
        values: the values that schemas may name in ``x-values``; see `NamedValues`.

    Raises:
        ModelError: a model cannot be loaded.
        InvalidSchemaError: one of the values is none.
    """

    def __init__(
        self,
        models: str | Model | Mapping[str, str | Model],
        defaults: GenerateParams | None = None,
        *,
        max_schema: int = 1 << 20,
        values: Mapping[str, Any] | None = None,
    ) -> None:
        self._values = NamedValues(values or {})
        if not isinstance(models, Mapping):
            models = {models if isinstance(models, str) else models.name: models}
        self.defaults = defaults or GenerateParams()
        self._max_schema = max_schema
        self._own: list[Model] = []
        self._loaded: dict[str, _shared.LoadedModel] = {}
        for name, model in models.items():
            if isinstance(model, str):
                model = load_model(model)
                self._own.append(model)
            self._loaded[name] = _shared.LoadedModel(model)

    def __iter__(self) -> Iterator[str]:
        return iter(self._loaded)

    def fields(self, body: Any) -> Fields:
        """Return the fields of a request's body whose schemas are not too large: that is checked before they are read.

        Raises:
            RequestError: the body is not an object, or its schemas are too large (413).
        """
        fields = Fields(body)
        try:
            size = sum(len(json.dumps(body[name])) for name in _WITH_SCHEMAS if name in body)
        except RecursionError:
            raise RequestError("the body is nested too deeply", hint="send schemas of fewer levels") from None
        if size > self._max_schema:
            raise RequestError(
                f"the schemas of the request have {size:,} bytes of JSON",
                hint=f"at most {self._max_schema:,} are taken",
                status=413,
            )
        return fields

    def model(self, name: str) -> Model:
        """Return the model of a name.

        Raises:
            RequestError: there is none (404).
        """
        return self._loaded_model(name).model()

    def _loaded_model(self, name: str) -> _shared.LoadedModel:
        return self._loaded[self.own_name(name)]

    def own_name(self, name: str) -> str:
        """Return the name under which a model is served.

        Raises:
            RequestError: there is none (404).
        """
        # Ollama's clients name a model with or without the tag that it has by default.
        for each in (name, f"{name}:latest", name.removesuffix(":latest")):
            if each in self._loaded:
                return each
        raise RequestError(
            f"unknown model {name!r}", field="model", hint=f"the models are {sorted(self._loaded)}", status=404
        )

    def params(
        self,
        name: str,
        options: Mapping[str, Any],
        tools: Sequence[Mapping[str, Any]] = (),
        choice: Any = None,
        schema: Any = None,
    ) -> GenerateParams:
        """Return the options of a request to a model; None means not given.

        Args:
            name: of the model.
            options: fields of `GenerateParams`.
            tools: OpenAI-style dicts.
            choice: of a tool, in any form that `_shared.tool_choice` knows.
            schema: of the answer; None: its text is free.

        Raises:
            RequestError: an option, the choice or a schema cannot be met.
        """
        loaded = self._loaded_model(name)
        grammar = options.get("grammar")
        if grammar is not None and (tools or schema is not None):
            other = "tools" if tools else "a schema of the answer"
            raise RequestError(f"grammar cannot be combined with {other}", field="grammar", hint="give one of them")
        own = {name: getattr(self.defaults, name) for name in OPTIONS}
        given = {key: value for key, value in options.items() if value is not None}
        for key in given:
            with at_field(f"toolgrammar.{key}" if key in OWN else key):
                _shared.generation_params({key: given[key]})
        params = _shared.generation_params({**own, **given})
        with at_field("tool_choice"):
            _shared.tool_choice(choice, [*map(_shared.tool_name, tools)])
        schema = self._values.bound(schema, Place())
        with at_field("tools"):
            return loaded.with_tools(params, [self._bound(tool) for tool in tools], choice, schema)

    def _bound(self, tool: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return a tool whose ``x-values`` has names of this process."""
        function = tool["function"]
        parameters = self._values.bound(function.get("parameters"), Place(tool=function["name"]))
        return tool if parameters is None else {**tool, "function": {**function, "parameters": parameters}}

    def close(self) -> None:
        """Close the models that were loaded here by their addresses."""
        for model in self._own:
            model.close()


def sampling(fields: Fields) -> dict[str, Any]:
    """Return the sampling options that protocols name as we do, and the extensions."""
    names = ("temperature", "top_p", "seed", *EXTENSIONS)
    numbers = {name: fields.number(name) for name in names}
    return {
        **numbers,
        "seed": seed_of(numbers["seed"]),
        "grammar": fields.one_of("grammar", (str, dict)),
        **own_options(fields),
    }


def seed_of(value: Any) -> Any:
    """Return a seed as models here take it: -1 is any, as for llama.cpp and vLLM; other negative ones are seeds."""
    is_negative = isinstance(value, int) and -(2**63) <= value < 0
    return (None if value == -1 else value % 2**63) if is_negative else value


def own_options(fields: Fields) -> dict[str, Any]:
    """Return the options in the extension field ``toolgrammar``: those that no protocol has a field for."""
    own = fields.inner("toolgrammar") or Fields({})
    kinds = {"boolean": bool, "integer": int}
    options: dict[str, Any] = {
        name: own.one_of(name, (kinds.get(row.get("type", ""), str),)) for name, row in OWN.items()
    }
    own.end_exactly()
    return options


def tools_of(fields: Fields, model: Model, custom: set[str] | None = None) -> list[dict[str, Any]]:
    """Return tools of OpenAI's chat completions, in one form and each once.

    Args:
        fields: the request.
        model: the model.
        custom: is given the names of custom tools; None: there are none in this protocol.

    Raises:
        RequestError: one is of another kind, or has no schema that can be read.
    """
    tools = []
    for tool in fields.objects("tools"):
        kind = tool_kind(tool, custom)
        if not kind:
            continue
        tool.required(kind)
        inner = tool.inner(kind)
        assert inner is not None
        deferred = is_deferred(tool, model)
        lacks_schema = kind == "function" and not inner.has("parameters")
        made = function_tool if kind == "function" else custom_tool
        tools.append(made(inner, deferred=deferred))
        if kind == "custom" and custom is not None:
            custom.add(_shared.tool_name(tools[-1]))
        tool.end(lacks_schema=lacks_schema)
    return distinct(tools)


def tool_kind(tool: Fields, custom: set[str] | None, also: Collection[str] = ()) -> str:
    """Return ``"function"``, ``"custom"`` or another type that the caller reads; an absent type is a function.

    A tool of another type is run by its maker's own server, or known to its maker's models alone: it is declared here
    and not offered to the model, and the kind is empty.

    Raises:
        RequestError: the type is a misspelt one.
    """
    kind = tool.text("type", "function")
    if kind == "function" or (kind == "custom" and custom is not None) or kind in also:
        return str(kind)
    known = ("function", "custom", *also)
    meant = ["function"] if tool.has("function") else difflib.get_close_matches(str(kind), known, cutoff=0.85)
    if meant:
        path = tool.path("type")
        raise RequestError(f"{path} is {kind!r}", field=path, hint=f"did you mean {meant[0]!r}?")
    tool.skip()
    return ""


def is_deferred(tool: Fields, model: Model) -> bool:
    """Return True if the prompt is to have only the name of a tool, until it is called (``defer_loading``).

    A model on a server gets all schemas, so there the field has no effect.
    """
    if isinstance(model, LocalModel):
        return tool.flag("defer_loading")
    tool.not_offered("defer_loading", False)
    return False


def direct_callers(tool: Fields) -> None:
    """Check that the model may call a tool itself: code that calls tools runs on no server here.

    Raises:
        RequestError: only code may.
    """
    callers = tool.items("allowed_callers")
    if callers and "direct" not in callers:
        path = tool.path("allowed_callers")
        raise RequestError(f"{path} leaves the model out", field=path, hint="add 'direct'")
    tool.unused += [f"{tool.path('allowed_callers')}[{n}]" for n, one in enumerate(callers) if one != "direct"]


def custom_tool(fields: Fields, *, deferred: bool = False) -> dict[str, Any]:
    """Return a custom tool as a function whose only argument is its input.

    Raises:
        RequestError: the grammar of the input is malformed.
    """
    fields.required("name")
    form = fields.inner("format") or Fields({})
    grammar = None
    if form.word("type", ("text", "grammar")) == "grammar":
        inner = form.inner("grammar") or form  # chat completions have an object of its own for the rest
        inner.required("syntax")
        grammar = {"syntax": inner.word("syntax", ("lark", "regex"))}
        inner.required("definition")
        grammar["definition"] = inner.text("definition")
        with at_field(inner.path("definition")):
            text_parameters(grammar)  # an error names the line
        if inner is not form:
            inner.end_exactly()
    form.end_exactly()
    fields.put("parameters", text_parameters(grammar, INPUT))
    return function_tool(fields, deferred=deferred)


def custom_input(call: ToolCall) -> str:
    """Return the input of a call of a custom tool."""
    return str(call.arguments[INPUT]) if call.arguments else ""


def function_tool(function: Fields, schema: str = "parameters", *, deferred: bool = False) -> dict[str, Any]:
    """Return a tool of its ``name``, ``description`` and ``strict`` (it always is, here), and the field of its schema.

    Args:
        function: the fields.
        schema: name of the field that has the schema of the arguments.
        deferred: see `is_deferred`.
    """
    function.required("name")
    made = {"name": function.text("name"), "description": function.text("description", "")}
    parameters = function.one_of(schema, (dict,))
    _read_strict(function)
    with at_field(function.path(schema)):
        tool = _shared.openai_tool({**made, **({} if parameters is None else {"parameters": parameters})})
    if deferred:
        tool["defer_loading"] = True
    function.end(lacks_schema=parameters is None)
    return tool


def _read_strict(fields: Fields) -> None:
    """Read ``strict``, which changes nothing here; like vLLM's, also as a text."""
    value = fields.take("strict")
    if not isinstance(value, bool) and value not in (None, "true", "false"):
        raise RequestError(f"{fields.path('strict')} is not true or false", field=fields.path("strict"))


def distinct(tools: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return tools without repetitions.

    Raises:
        RequestError: two tools of one name differ.
    """
    by_name: dict[str, dict[str, Any]] = {}
    for tool in tools:
        name = _shared.tool_name(tool)
        if by_name.setdefault(name, tool) != tool:
            raise RequestError(f"two tools have the name {name!r}", field="tools", hint="give each its own name")
    return list(by_name.values())


def schema_of(fields: Fields | None) -> Any:
    """Return the schema in OpenAI's ``response_format`` or ``text.format``; None: free text."""
    if fields is None:
        return None
    kind = fields.word("type", ("text", "json_object", "json_schema"))
    if kind != "json_schema":
        fields.refuse("json_schema", hint="give the type json_schema")
    if kind == "text":
        fields.end(lacks_schema=True)
        return None
    if kind == "json_object":  # llama.cpp's and others' has a schema
        has_schema = fields.has("schema")
        schema = closed_schema(fields) if has_schema else {"type": "object"}
        fields.end(lacks_schema=not has_schema)
        return schema
    inner = fields.inner("json_schema") or fields
    inner.ignore("name", "description")
    _read_strict(inner)
    inner.required("schema")
    schema = closed_schema(inner)
    inner.end()
    fields.end()
    return schema


def closed_schema(fields: Fields, name: str = "schema") -> Any:
    """Return the JSON Schema in a field, its objects closed unless they say otherwise."""
    schema = fields.one_of(name, (dict, bool))
    with at_field(fields.path(name)):
        return _shared.closed(schema)


def thinking_of(fields: Fields, name: str, model: Model, *, optional: bool = False) -> bool | int | None:
    """Return the reasoning that a word of ``reasoning_effort`` asks for; None if it is absent.

    A model without reasoning is not asked for any: that is an error, or where it is ``optional`` an unused field.
    """
    effort = fields.word(name, tuple(EFFORTS))
    if not effort:
        return None
    thinking = EFFORTS[effort]
    if thinking is not False and isinstance(model, LocalModel) and find_markers(model.vocabulary) is None:
        if optional:
            fields.unused.append(fields.path(name))
            return None
        raise RequestError(
            f"{fields.path(name)} is {effort!r}, and this model has no reasoning",
            field=fields.path(name),
            hint="leave it out, or say 'none'",
        )
    return thinking


def require_images(model: Model, messages: Sequence[Message], field_name: str) -> None:
    """Refuse images for a model that sees none.

    Raises:
        RequestError: a message has one.
    """
    if model.capabilities.images:
        return
    for index, message in enumerate(messages):
        if not isinstance(message.content, str) and any(isinstance(part, ImagePart) for part in message.content):
            raise RequestError(
                "this model takes no images", field=f"{field_name}[{index}].content", hint="send text only"
            )
