"""What the framework adapters share: loading models, tool sets, reading OpenAI-style content, and reporting errors.

Nothing here knows a framework. An adapter object holds one `Engine`; all that is cached lives in it.
"""

from __future__ import annotations

import base64
import json
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4
from weakref import WeakKeyDictionary

from pydantic import SecretStr

from ..core.errors import (
    BudgetError,
    InvalidArgumentsError,
    MissingDependencyError,
    ModelError,
    Place,
    ToolGrammarError,
)
from ..core.events import ArgumentsDelta, CallEnd, Event, Finish, Generation, ReasoningDelta, TextDelta, Usage
from ..core.messages import ImagePart, Message, Part, Role, TextPart, ToolCall
from ..core.models import Model, load_model
from ..core.models.reasoning import find_markers
from ..core.params import GenerateParams
from ..tools import ToolSet, close_objects, to_json_schema
from ..tools.formats import choose_format

MAX_TOOL_SETS = 64


def missing(package: str, extra: str) -> MissingDependencyError:
    """The error for a framework that is not installed."""
    return MissingDependencyError(
        f"toolgrammar.adapters.{extra.replace('-', '_')} needs {package}, which is not installed or too old",
        hint=f"pip install 'toolgrammar[{extra}]'",
    )


# -- the engine behind an adapter ----------------------------------------------------------------------------------


class Engine:
    """The models and tool sets of one adapter object; safe to use from several threads.

    Frameworks copy their model objects freely; copies share the engine, and so the loaded model.

    Args:
        model: a model, or the URI of one.
        options: keyword options of `load_model`, when ``model`` is a URI.

    Attributes:
        uri: where the model was loaded from; None if it was given loaded.
        name: the URI, or the loaded model's own name.
        identity: tells the model from every other (beside the options).
        options: the keyword options, secrets in them wrapped so that no framework shows or stores them.
    """

    def __init__(self, model: str | Model, options: Mapping[str, Any]) -> None:
        self._lock = threading.Lock()
        self._others: dict[str, Model] = {}
        self._tool_sets: OrderedDict[str, ToolSet] = OrderedDict()
        if not isinstance(model, str) and options:
            raise ModelError("options are given beside a loaded model", hint="give them where the model is loaded")
        self.options = guarded(options)
        self._own = load_model(model, **self.options) if isinstance(model, str) else model
        self.uri = model if isinstance(model, str) else None
        self.name = self.uri or self._own.name
        self.identity = self.uri or identity_of(self._own)

    def __copy__(self) -> Engine:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Engine:
        return self

    def is_for(self, model: str | Model, options: Mapping[str, Any]) -> bool:
        """Whether this is the engine of that model, so that a copied adapter object need not load it again."""
        return (model == self.name or model is self._own) and guarded(options) == self.options

    def model(self, other: str | Model | None = None) -> Model:
        """The adapter's own model, or the one that a single call names instead (loaded once, without options)."""
        if other is None or other == self.name:
            return self._own
        if not isinstance(other, str):
            return other
        with self._lock:
            if other not in self._others:
                self._others[other] = load_model(other)
            return self._others[other]

    def tools(self, tools: Sequence[Mapping[str, Any]]) -> ToolSet | None:
        """A tool set of OpenAI-style dicts, kept for the next call with the same tools; None without tools.

        Agents hand over the same tools again on every turn; the tool set has compiled them once.
        """
        if not tools:
            return None
        key = json.dumps(tools, sort_keys=False)
        with self._lock:
            if key in self._tool_sets:
                self._tool_sets.move_to_end(key)
                return self._tool_sets[key]
        made = ToolSet.from_any(list(tools))
        with self._lock:
            self._tool_sets[key] = made
            if len(self._tool_sets) > MAX_TOOL_SETS:
                self._tool_sets.popitem(last=False)
        return made


def guarded(options: Mapping[str, Any]) -> dict[str, Any]:
    """Options for loading a model, with keys and header values wrapped; ``env:NAME`` is no secret, and stays."""

    def wrapped(value: Any) -> Any:
        return SecretStr(value) if isinstance(value, str) and not value.startswith("env:") else value

    found = dict(options)
    if "api_key" in found:
        found["api_key"] = wrapped(found["api_key"])
    if isinstance(found.get("headers"), Mapping):
        found["headers"] = {name: wrapped(value) for name, value in found["headers"].items()}
    return found


def require_storable(options: Mapping[str, Any]) -> None:
    """Refuse to write options out that hold a secret.

    Raises:
        ModelError: one does.
    """
    headers = options.get("headers")
    values = [options.get("api_key"), *(headers.values() if isinstance(headers, Mapping) else ())]
    if any(isinstance(value, SecretStr) for value in values):
        raise ModelError("a key cannot be written out", hint="give api_key='env:NAME', and the key in the environment")


_MARKS: WeakKeyDictionary[Model, str] = WeakKeyDictionary()


def identity_of(model: str | Model) -> str:
    """A text that tells this model from every other: its URI, or a mark that a loaded model keeps while it lives.

    Loaded models may share a name; answers of one must not be found in a cache under another's.
    """
    if isinstance(model, str):
        return model
    return f"{model.name}#{_MARKS.setdefault(model, uuid4().hex)}"


def thinks(model: Model, tool_format: str | None = None) -> bool:
    """Whether the model can be asked to reason, or its format sets reasoning apart; a server may send reasoning."""
    if not model.capabilities.logits:
        return True
    if find_markers(model.vocabulary) is not None:
        return True
    template = getattr(model.backend, "chat_template", None) or ""
    name = tool_format or model.backend.tool_format
    return choose_format(name, template, model.vocabulary.special).thinking is not None


def guarantee(model: Model, params: GenerateParams) -> str:
    """How an answer is held to what was asked for.

    ``"constrained"``: every token was chosen under the grammar of the request. ``"validated"``: something was not
    enforced while writing, and checked afterwards.
    """
    mode = params.json_mode
    afterwards = mode is not None and not (mode.strict and mode.constrained_decoding)
    left_out = params.grammar is not None and bool(params.grammar.unenforced)
    return "validated" if afterwards or left_out or not model.capabilities.logits else "constrained"


def count_tokens(model: Model, messages: Sequence[Message], tools: ToolSet | None) -> int:
    """How many tokens a prompt has; frameworks also ask about empty conversations."""
    if not messages and tools is None:
        return 0
    return model.count_tokens(messages or [Message("system", "")], tools)


def count_text(model: Model, text: str) -> int:
    """How many tokens a text has; of a model that does not show its tokens, an estimate."""
    if model.capabilities.logits:
        return len(model.backend.encode(text))
    return model.count_tokens(text) if text else 0


def openai_tool(tool: Any) -> dict[str, Any]:
    """Anything that `ToolSet` knows as a tool, as an OpenAI-style dict with its whole schema."""
    (made,) = ToolSet.from_any([tool])
    return made.to_openai()


def tool_name(tool: Mapping[str, Any]) -> str:
    """The name of an OpenAI-style tool."""
    return str(tool["function"]["name"])


def closed(schema: Any) -> dict[str, Any] | bool:
    """A schema or a Pydantic class as JSON Schema, its objects closed unless they say otherwise.

    Frameworks mean by a schema "these fields", and none of them writes ``additionalProperties``.
    """
    if isinstance(schema, type):
        # Pydantic of version 2, or of the version 1 that some frameworks still take.
        schema = (getattr(schema, "model_json_schema", None) or schema.schema)()  # type: ignore[attr-defined]
    return close_objects(to_json_schema(schema))


# -- messages in ---------------------------------------------------------------------------------------------------

_ROLES: Mapping[str, Role] = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "human": "user",
    "assistant": "assistant",
    "ai": "assistant",
    "tool": "tool",
    "function": "tool",
}
# Blocks that repeat what the message says elsewhere (its calls), or that are no input (thinking of other models).
_SILENT_BLOCKS = frozenset(
    {"tool_use", "tool_call", "tool_call_chunk", "invalid_tool_call", "function_call", "thinking", "redacted_thinking"}
    | {"reasoning", "reasoning_content"}
)


def role_of(name: str) -> Role:
    """The role that a framework calls ``name``; an unknown one speaks as the user."""
    return _ROLES.get(name, "user")


def parts_of(content: Any) -> str | tuple[Part, ...]:
    """The content of a message: None, text, or a list of texts and blocks (OpenAI, Anthropic, LangChain forms).

    Raises:
        ModelError: a block of a kind that no model here reads (audio, files, ...).
    """
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    parts = [part for block in content for part in _block_parts(block)]
    if all(isinstance(part, TextPart) for part in parts):
        return "".join(part.text for part in parts if isinstance(part, TextPart))
    return tuple(parts)


def _block_parts(block: Any) -> list[Part]:
    if isinstance(block, str):
        return [TextPart(block)]
    kind = block.get("type")
    if kind in _SILENT_BLOCKS:
        return []
    if kind in ("text", "input_text", "output_text"):
        return [TextPart(block.get("text") or "")]
    if kind == "image_url":
        address = block["image_url"]
        return [image(address if isinstance(address, str) else address["url"])]
    if kind == "image":
        source = block.get("source", block)
        data = source.get("base64") or source.get("data")
        media_type = source.get("mime_type") or source.get("media_type")
        return [ImagePart(data=base64.b64decode(data), media_type=media_type) if data else image(source.get("url"))]
    if kind == "tool_result":
        inner = parts_of(block.get("content"))
        return [TextPart(inner)] if isinstance(inner, str) else list(inner)
    raise ModelError(f"a message holds content of type {kind!r}", hint="text and images are understood")


def image(url: str | None) -> ImagePart:
    """An image by its address; ``data:`` addresses hold the image themselves."""
    if url and url.startswith("data:"):
        head, _, data = url.partition(",")
        return ImagePart(data=base64.b64decode(data), media_type=head.removeprefix("data:").split(";")[0] or None)
    return ImagePart(url=url)


def past_call(call_id: str | None, name: str, arguments: Any) -> ToolCall:
    """A tool call of an earlier turn; arguments that are not a JSON object are kept as they were written.

    Those that begin with one, as those of `executable_text` do, are that object and an error.
    """
    if isinstance(arguments, Mapping):
        return ToolCall(id=call_id or "", name=name, arguments=dict(arguments))
    text = arguments or ""
    try:
        value, end = json.JSONDecoder().raw_decode(text.lstrip())
    except ValueError:
        value, end = None, -1
    whole = isinstance(value, dict) and end == len(text.strip())
    error = None if whole else "the arguments are not a JSON object"
    known = value if isinstance(value, dict) else {}
    return ToolCall(id=call_id or "", name=name, arguments=known, raw=text, error=error)


def from_openai(message: Mapping[str, Any]) -> Message:
    """A message in OpenAI's chat form."""
    calls = message.get("tool_calls") or ()
    return Message(
        role=role_of(message["role"]),
        content=parts_of(message.get("content")),
        reasoning=message.get("reasoning_content"),
        tool_calls=tuple(
            past_call(call.get("id"), call["function"]["name"], call["function"].get("arguments")) for call in calls
        ),
        tool_call_id=message.get("tool_call_id"),
        name=message.get("name"),
    )


# -- results out ---------------------------------------------------------------------------------------------------


def problem(call: ToolCall) -> str | None:
    """Why a call must not be executed; None for a call that may."""
    if call.error is not None:
        return call.error
    if call.cut:
        return "cut short by the token budget at " + ", ".join(pointer or "(root)" for pointer in call.cut)
    return None


def arguments_text(call: ToolCall) -> str:
    """The arguments as JSON text."""
    return call.raw if call.raw is not None else json.dumps(dict(call.arguments), ensure_ascii=False)


def executable_text(call: ToolCall) -> str:
    """The arguments for a framework that executes what parses: a call that must not run does not parse.

    A cut call is valid JSON, and frameworks do not look at the finish reason. The reason follows the arguments, so
    that the framework's own handling of malformed arguments reports it to the model instead of running the tool.
    """
    reason = problem(call)
    return arguments_text(call) if reason is None else f"{arguments_text(call)} <{reason}>"


def require_executable(call: ToolCall) -> None:
    """Refuse a call that must not be executed.

    Raises:
        InvalidArgumentsError: it is not valid, or the token budget cut it short.
    """
    if reason := problem(call):
        raise InvalidArgumentsError(f"the call of {call.name!r} must not run: {reason}", place=Place(tool=call.name))


def cut_places(message: Message, cut: Sequence[str]) -> list[str]:
    """Where an answer was closed by force: pointers into its text, or ``name`` and pointer for calls."""
    return [*cut, *(call.name + pointer for call in message.tool_calls for pointer in call.cut)]


def require_whole(generation: Generation | Finish) -> None:
    """Refuse an answer that was closed by force where the framework would take it for a whole one.

    Raises:
        BudgetError: the token budget ran out inside the structured answer.
    """
    if generation.cut:
        places = ", ".join(pointer or "(root)" for pointer in generation.cut)
        raise BudgetError(f"the token budget ran out inside the answer, at {places}", hint="raise max_tokens")


def forced_share(usage: Usage) -> float:
    """How much of the output the grammar wrote: forced tokens by completion tokens."""
    return round(usage.forced_tokens / usage.completion_tokens, 4) if usage.completion_tokens else 0.0


@dataclass
class Collector:
    """Joins the events of one stream.

    Law: after the last event of ``model.stream(...)``, ``generation`` equals ``model.generate(...)`` (its exact text
    and token ids apart, which no event carries).
    """

    text: list[str] = field(default_factory=list)
    reasoning: list[str] = field(default_factory=list)
    arguments: dict[int, str] = field(default_factory=dict)
    calls: list[ToolCall] = field(default_factory=list)
    finish: Finish | None = None

    def add(self, event: Event) -> None:
        """Take the next event."""
        if isinstance(event, TextDelta):
            self.text.append(event.text)
        elif isinstance(event, ReasoningDelta):
            self.reasoning.append(event.text)
        elif isinstance(event, ArgumentsDelta):
            self.arguments[event.index] = self.arguments.get(event.index, "") + event.text
        elif isinstance(event, CallEnd):
            self.calls.append(event.call)
        elif isinstance(event, Finish):
            self.finish = event

    @property
    def generation(self) -> Generation:
        """The whole result; only after the stream has ended."""
        assert self.finish is not None, "the stream has not ended"
        message = Message(
            role="assistant",
            content="".join(self.text),
            reasoning="".join(self.reasoning) or None,
            tool_calls=tuple(self.calls),
        )
        return Generation(message, self.finish.reason, self.finish.usage, cut=self.finish.cut)


# -- errors --------------------------------------------------------------------------------------------------------

ErrorTable = Callable[[], Sequence["tuple[type[ToolGrammarError], type[Exception]]"]]


@contextmanager
def translated(table: ErrorTable) -> Iterator[None]:
    """Raise our errors as the framework's own where the framework acts on them; all others pass through untouched.

    What is raised is both: the framework's type and ours, with message, hint and place.

    Args:
        table: returns (our type, framework's type) pairs, most specific first; called only when an error occurs.
    """
    try:
        yield
    except MissingDependencyError:
        raise  # about the installation, not about the request
    except ToolGrammarError as error:
        for ours, theirs in table():
            if isinstance(error, ours):
                raise _both(theirs, type(error))(error.message, hint=error.hint, place=error.place) from error
        raise


def _both(theirs: type[Exception], ours: type[ToolGrammarError]) -> type[ToolGrammarError]:
    # Our constructor, whatever the framework's class does in its own.
    return type(ours.__name__, (theirs, ours), {"__init__": ToolGrammarError.__init__, "__module__": ours.__module__})
