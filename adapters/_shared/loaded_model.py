"""`LoadedModel`, what an adapter object holds: the model and the tool sets that were compiled for it."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from pydantic import SecretStr

from toolgrammar.core.basics import SERVERS, TextMemo, shared_lock
from toolgrammar.core.conversation import Message
from toolgrammar.core.errors import ModelError
from toolgrammar.core.generation import GenerateParams, JsonMode, ToolsInPrompt, resolve_params, schema_of
from toolgrammar.core.models import LocalModel, Model, find_markers, load_model
from toolgrammar.tools import ToolSet
from toolgrammar.tools.formats import choose_format

from .messages import closed, tool_name
from .options import loading_options, tool_choice

#: Maximum number of tool sets that a loaded model keeps.
MAX_TOOL_SETS = 64


class LoadedModel:
    """The model and the tool sets of one adapter object; safe to use from several threads.

    Frameworks copy their model objects freely; copies share this object, and so the model. One that was made of a URI
    can be pickled, and is loaded again where it is read.

    Args:
        model: a model, or the URI of one.
        options: keyword options of `load_model`, when ``model`` is a URI.
        **connection: more of them, that users of the framework give as settings (`CONNECTION`); None means not given.

    Raises:
        ModelError: ``model`` is neither, cannot be loaded, or does not take an option; or one is given twice.

    Attributes:
        uri: where the model was loaded from; None if it was given loaded.
        name: the URI, or the loaded model's own name.
        identity: tells the model from every other (beside the options).
        options: the keyword options, secrets in them wrapped so that no framework shows or stores them.
    """

    def __init__(self, model: str | Model, options: Mapping[str, Any] | None = None, **connection: Any) -> None:
        options = loading_options(options, connection)
        self._lock = shared_lock(self, "_lock", threading.Lock())  # which a fork of the process waits for
        self._others: dict[str, Model] = {}  # those that single calls name, by their URIs
        self._tool_sets: TextMemo[ToolSet] = TextMemo(MAX_TOOL_SETS)
        if not isinstance(model, str):
            _require_model(model)
            if options:
                names = ", ".join(map(str, options))
                raise ModelError(f"{names} cannot be combined with a loaded model", hint="pass it to load_model")
        self.options = guarded(options)
        self._own = load_model(model, **self.options) if isinstance(model, str) else model
        self.uri = model if isinstance(model, str) else None
        self.name = self.uri or self._own.name
        self.identity = self.uri or self._own.identity

    def __reduce__(self) -> Any:
        if self.uri is None:
            raise ModelError(
                "an object made of a loaded model cannot be pickled", hint='name the model instead: model="hf:..."'
            )
        require_storable(self.options)
        return LoadedModel, (self.uri, self.options)

    def __copy__(self) -> LoadedModel:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> LoadedModel:
        return self

    def is_for(self, model: str | Model, options: Mapping[str, Any]) -> bool:
        """Return True for this model and these options, so that copies do not load it again."""
        return (model == self.name or model is self._own) and guarded(options) == self.options

    def model(self, other: str | Model | None = None) -> Model:
        """Return the adapter's own model, or the one that a single call names instead.

        An address is loaded once; on the same server with the same options, anywhere else without any.

        Raises:
            ModelError: it is neither a model nor the address of one, or cannot be loaded.
        """
        if other is None or other == self.name:
            return self._own
        if not isinstance(other, str):
            return _require_model(other)
        with self._lock:
            if other not in self._others:
                server = _server_of(other)
                is_same = server is not None and self.uri is not None and server == _server_of(self.uri)
                self._others[other] = load_model(other, **(self.options if is_same else {}))
            return self._others[other]

    def tools(self, tools: Sequence[Mapping[str, Any]]) -> ToolSet | None:
        """Return a tool set of OpenAI-style dicts, kept for the next call with the same tools; None without tools.

        Agents pass the same tools on every turn; the tool set has compiled them once.
        """
        if not tools:
            return None
        text = json.dumps(tools)
        known = self._tool_sets.get(text)
        if known is None:
            known = ToolSet.from_any(json.loads(text))
            self._tool_sets.put(text, known)
        return known

    def count_tokens(
        self, messages: Sequence[Message], tools: Sequence[Mapping[str, Any]], in_prompt: str | None
    ) -> int:
        """Return the number of tokens of a prompt, by the model's tokenizer and template; an estimate for a server's.

        Args:
            messages: the conversation, which may be empty.
            tools: OpenAI-style dicts.
            in_prompt: the option ``tools_in_prompt``; None means not given.
        """
        mode: Any = in_prompt or "schemas"
        return count_tokens(self.model(), messages, self.tools(tools), mode)

    def with_tools(
        self,
        params: GenerateParams,
        tools: Sequence[Mapping[str, Any]],
        choice: Any,
        schema: Any = None,
        output_type: Any = None,
    ) -> GenerateParams:
        """Return generation options with the tools of a call, the choice among them, and the shape of a text answer.

        Args:
            params: the options.
            tools: OpenAI-style dicts.
            choice: in any form that `tool_choice` knows.
            schema: of the answer; beside tools, of an answer that calls none of them. None: text is free.
            output_type: the shape of the answer as `GenerateParams` has it, instead of ``schema``.

        Raises:
            UnknownToolError: the choice is none of the tools.
            ModelError: a call is required, and there are no tools; or the answer has two shapes, or an unknown one.
        """
        if output_type is not None:
            if schema is not None or params.grammar is not None:
                raise ModelError(
                    "output_type cannot be combined with another type of the answer", hint="give one of them"
                )
            shape = resolve_params(None, {"output_type": output_type})
            params = replace(params, grammar=shape.grammar)
            # Objects are closed here, as those of ``schema`` are.
            schema = None if shape.json_mode is None else closed(schema_of(output_type))
        chosen, allowed = tool_choice(choice, [*map(tool_name, tools)])
        tool_set = self.tools([tool for tool in tools if tool_name(tool) in allowed])
        if schema is not None:
            params = replace(params, json_mode=JsonMode(schema=schema))
        return params if tool_set is None else replace(params, tools=tool_set, tool_choice=chosen)


def _require_model(model: Any) -> Model:
    if isinstance(model, Model):
        return model
    raise ModelError(
        f"model is {model!r}, neither a model nor the address of one",
        hint="for example 'hf:NAME-OR-PATH', 'openai:MODEL@http://HOST:PORT/v1', or the result of load_model",
    )


def _server_of(uri: str) -> tuple[str, str] | None:
    """Return the kind and the address of the server that a model is on; None for a model that is on none.

    Without an address in the URI it is the one of the option ``base_url``, which is the same for all.
    """
    scheme, separator, rest = uri.partition(":")
    if not separator or scheme not in SERVERS:
        return None
    cut = max(rest.rfind("@http://"), rest.rfind("@https://"))
    return scheme, rest[cut + 1 :] if cut >= 0 else ""


def guarded(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return loading options with keys and header values wrapped; ``env:NAME`` is not a secret, and stays."""

    def wrapped(value: Any) -> Any:
        return SecretStr(value) if isinstance(value, str) and not value.startswith("env:") else value

    result = dict(options)
    if "api_key" in result:
        result["api_key"] = wrapped(result["api_key"])
    if isinstance(result.get("headers"), Mapping):
        result["headers"] = {name: wrapped(value) for name, value in result["headers"].items()}
    return result


def require_storable(options: Mapping[str, Any]) -> None:
    """Refuse to write options out that hold a secret.

    Raises:
        ModelError: one does.
    """
    headers = options.get("headers")
    values = [options.get("api_key"), *(headers.values() if isinstance(headers, Mapping) else ())]
    if any(isinstance(value, SecretStr) for value in values):
        raise ModelError("a key cannot be written out", hint="give api_key='env:NAME', and the key in the environment")


def thinks(model: Model, tool_format: str | None = None) -> bool:
    """Return True if the model can reason before it answers; a model on a server may."""
    if not isinstance(model, LocalModel):
        return True
    if find_markers(model.vocabulary) is not None:
        return True
    name = tool_format or model.backend.tool_format
    return choose_format(name, model.backend.chat_template or "", model.vocabulary.special).thinking is not None


def guarantee(model: Model, params: GenerateParams) -> str:
    """Return how strictly an answer follows what was asked for.

    ``"constrained"``: every token was chosen under the grammar of the request. ``"validated"``: something was not
    enforced while writing, and checked afterwards.
    """
    mode = params.json_mode
    if mode is not None and not (mode.strict and mode.constrained_decoding):
        return "validated"
    if params.grammar is not None and params.grammar.unenforced:
        return "validated"
    return "constrained" if model.enforces(params) else "validated"


def count_tokens(
    model: Model, messages: Sequence[Message], tools: ToolSet | None, tools_in_prompt: ToolsInPrompt = "schemas"
) -> int:
    """Return the number of tokens of a prompt, which may be empty."""
    if not messages and tools is None:
        return 0
    return model.count_tokens(messages or [Message("system", "")], tools, tools_in_prompt)


def count_text(model: Model, text: str) -> int:
    """Return how many tokens a text has; an estimate for a model on a server, which does not show its tokens."""
    if model.capabilities.logits:
        return len(model.encode(text))
    return model.count_tokens(text) if text else 0
