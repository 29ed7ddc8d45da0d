"""`RemoteModel`: a model on a server, with the interface of a local one; answers are validated before they are
returned."""

from __future__ import annotations

import json
import weakref
from collections.abc import AsyncGenerator, Callable, Generator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing, closing
from typing import TYPE_CHECKING, Any

from ...basics.event_loop import EventLoop
from ...basics.logs import logger_of
from ...basics.options import SERVERS
from ...conversation.events import Finish, Generation, MessageBuilder, Usage
from ...errors import LiveValuesError, ModelError
from ...generation.deadline import Deadline
from ...generation.driver import Item
from ...generation.json_output import MAX_RETRIES
from ...generation.params import GenerateParams, ToolsInPrompt
from ...generation.plan import Planner, Prompt, conversation_of
from ...generation.ranges import FLAG, Ranges, check_ranges, number, of, one_of, whole
from ...generation.tool_choice import tool_set_of
from ..model import LEAST_AUTO_BYTES, Capabilities, Model
from ..requests import Request, in_conversation
from .address import LOCAL_SERVERS, headers_of, key_in_environment, parse_address
from .answer_judge import Task
from .anthropic_messages import AnthropicMessages
from .asking import Asker
from .chat_completions import ChatCompletions
from .converse import Converse
from .enforced import asks_callables, is_enforceable
from .gemini import Gemini
from .protocol import Protocol
from .transport import MAX_RESENT, Transport

if TYPE_CHECKING:
    import httpx

    from ...vocabulary.vocabulary import Vocabulary

_LOG = logger_of("remote")

#: Default time in seconds without data after which a request fails.
DEFAULT_TIMEOUT = 120.0

#: Bytes of text per token in estimates, which are too high for most languages.
BYTES_PER_TOKEN = 3

#: Estimated size of an image, and of what a template writes around a message, in bytes of text.
IMAGE_BYTES, TURN_BYTES = 3_000, 12


_FIELDS = of(Mapping, "a dict")
_RANGES: Ranges = {
    "timeout": number(0, wanted="seconds, more than 0", above=True),
    "headers": _FIELDS,
    "server": one_of(*SERVERS, "auto"),
    "context_window": whole(1, wanted="at least 1", none=True),
    "retries": whole(0),
    "max_retries": whole(0),
    "repair": FLAG,
    "body": _FIELDS,
    "trust_env": FLAG,
    "prompt_cache": FLAG,
}


class _CancelledByCallerError(Exception):
    """The request's ``cancel`` returned True."""


class RemoteModel(Model):
    """A model on a server: behind an OpenAI-compatible API, or the own one of a provider.

    The request uses all constraints that the server supports. Every call and answer is then validated here, repaired if
    that makes it valid, or requested again together with its errors. So each returned answer is valid; the guarantee is
    called ``validated``, because the answer was not constrained during decoding. A vLLM server with our plug-in
    (``toolgrammar.adapters.vllm``) constrains it, so its answers are streamed; llama.cpp's server constrains it by our
    exported grammar, and the answer is validated all the same. Thread-safe; all requests share the
    connections.

    Args:
        address: ``MODEL@http://HOST:PORT/v1``, or the model's name with ``base_url``, at a provider's own address, or
            at the default port of vLLM, SGLang, llama.cpp or Ollama on this machine.
        base_url: the base URL of the server's API.
        api_key: the key; ``"env:NAME"`` reads it from the environment. By default, a provider's own variable is read
            (``ANTHROPIC_API_KEY``, ``GEMINI_API_KEY``), for the provider's own address only. It is never shown.
        timeout: time in seconds without data after which a request fails.
        headers: additional headers of every request; each value may be ``"env:NAME"``.
        server: kind of the server: ``"openai"`` (or anything compatible), ``"vllm"``, ``"sglang"``, ``"llama.cpp"``,
            ``"ollama"``, ``"auto"``, which detects one of these at the first request, ``"anthropic"``, ``"gemini"`` or
            ``"bedrock"``.
        context_window: context window in tokens; by default that reported by the server (``"auto"``), or 8,192.
        retries: maximum number of further requests after an invalid answer.
        max_retries: maximum number of times that a request is sent again to a server that is busy or has failed.
        repair: repair calls and JSON if that makes them valid.
        body: additional fields of every request, which override ours; None removes a field. Fields without which
            answers could not be read (``messages``, ``stop``, ``stream`` and others) raise an error.
        trust_env: use the proxies and certificates of the environment.
        prompt_cache: mark what later requests repeat (tools, system prompt, conversation), where an API needs marks to
            cache it. A single question without tools is not marked.
        transport: an httpx transport that replaces the network.

    Raises:
        ModelError: the address or an option is wrong. No request is sent.
    """

    def __init__(
        self,
        address: str,
        *,
        base_url: str | None = None,
        api_key: Any = None,
        timeout: float = DEFAULT_TIMEOUT,
        headers: Mapping[str, Any] | None = None,
        server: str = "openai",
        context_window: int | None = None,
        retries: int = MAX_RETRIES,
        max_retries: int = MAX_RESENT,
        repair: bool = True,
        body: Mapping[str, Any] | None = None,
        trust_env: bool = False,
        prompt_cache: bool = True,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        options = locals()  # the arguments by name
        check_ranges({name: options[name] for name in _RANGES}, _RANGES)
        kind = _PROTOCOLS.get(server, ChatCompletions)
        fields = body or {}
        for name, instead in kind.own_fields.items():
            if fields.get(name) is not None and (name, fields[name]) != ("n", 1):  # one answer is what is asked for
                raise ModelError(f"body may not set {name!r}", hint=instead)
        local = None if "@" in address else LOCAL_SERVERS.get(server)  # an address such as m@host lacks its http://
        place = parse_address(address, base_url, kind.home() or local, kind.version)
        if api_key is None and place.base_url == kind.home():
            api_key = key_in_environment(kind.key_names)
        sent, secrets = headers_of(api_key, headers, kind.key_headers)
        self._name = place.model
        self.capabilities = Capabilities(logits=False, images=True)
        self._transport = Transport(
            place.base_url, sent, secrets, timeout, resent=max_retries, trust_env=trust_env, transport=transport
        )
        self._window = context_window
        self._protocol = kind(server, place.model, self._transport, Planner(), prompt_cache=prompt_cache)
        self._asker = Asker(self._protocol, context_window, retries, repair, fields)
        self._closed = False
        self._loop = EventLoop()
        # At the end of the process the event loop closes the connections.
        weakref.finalize(self, self._loop.close, self._transport.aclose, wait=False).atexit = False

    def __repr__(self) -> str:
        return f"RemoteModel({self._name!r}, {self._transport.base_url!r}, server={self._protocol.kind!r})"

    @property
    def provider(self) -> str:
        """The kind of the server, as in ``SERVERS``."""
        return self._protocol.kind

    @property
    def base_url(self) -> str:
        """Address of the server's API."""
        return self._transport.base_url

    @property
    def name(self) -> str:
        """The model's name on the server."""
        return self._name

    @property
    def vocabulary(self) -> Vocabulary:
        """Raises: ModelError: always."""
        raise ModelError("a server does not show its vocabulary", hint="load the model itself, by hf: or gguf:")

    def encode(self, text: str) -> list[int]:
        """Raises: ModelError: always."""
        raise ModelError("a server does not show its tokens", hint="count_tokens gives an estimate")

    @property
    def context_window(self) -> int:
        """Maximum number of tokens of a sequence: the argument, the number reported by the server, or 8,192.

        Raises:
            ModelError: the server does not answer a request for it (``server="auto"``, and providers).
        """
        if self._window is None and not self._protocol.is_found:
            self._loop.run(self._protocol.find())
        return self._asker.window

    def count_tokens(self, prompt: Prompt, tools: Any = None, tools_in_prompt: ToolsInPrompt = "schemas") -> int:
        """Return an estimate of the number of tokens of a prompt: a third of its bytes."""
        size = 0
        for message in conversation_of(prompt):
            size += len(message.text.encode(errors="replace")) + IMAGE_BYTES * len(message.images) + TURN_BYTES
            size += sum(len(call.name) + len(json.dumps(dict(call.arguments))) for call in message.tool_calls)
        if tools is not None and (tool_set := tool_set_of(tools)).names:
            names = tool_set.brief_names(tools_in_prompt, LEAST_AUTO_BYTES) if tools_in_prompt != "schemas" else ()
            size += len(json.dumps(tool_set.to_openai(brief=names)))
        return -(-size // BYTES_PER_TOKEN)

    def enforces(self, params: GenerateParams) -> bool:
        """Return True if the server is known to have our plug-in, and can enforce the request completely."""
        if not self._protocol.has_plugin:
            return False
        bound = in_conversation(Request((), params)).params
        if asks_callables(bound):
            return False
        try:
            return is_enforceable(self._asker.task_of(bound))
        except LiveValuesError:  # ``x-seen`` has no values, because there is no conversation here; a request has one
            return True

    def close(self) -> None:
        """Close the connections; later requests are errors. Closing twice is allowed."""
        self._closed = True
        self._loop.close(self._transport.aclose)

    # -- running -----------------------------------------------------------------------------------------------

    def _items(self, request: Request) -> Generator[Item, None, None]:
        """Return the items of an answer; what is wrong with the request raises here, before the first item is asked
        for. A cancelled request ends with what was received, as a finished generation."""
        task = self._task(request)  # raises at once if options exclude each other

        def items() -> Generator[Item, None, None]:
            collected = MessageBuilder()
            check = _stop_check(request.params)
            try:
                with closing(self._loop.iterate(lambda: self._asker.answers(task, request), check)) as pieces:
                    for item in pieces:
                        collected.add(item)
                        yield item
            except _CancelledByCallerError:
                yield Finish("cancelled", Usage())
                yield collected.cancelled()

        return items()

    async def _aitems(self, request: Request) -> AsyncGenerator[Item, None]:
        """Yield the items of an answer, as `_items` does, without blocking the event loop."""
        task = self._task(request)
        collected = MessageBuilder()
        check = _stop_check(request.params)
        try:
            async with aclosing(self._loop.aiterate(lambda: self._asker.answers(task, request), check)) as pieces:
                async for item in pieces:
                    collected.add(item)
                    yield item
        except _CancelledByCallerError:
            yield Finish("cancelled", Usage())
            yield collected.cancelled()

    def _batch(self, requests: Sequence[Request], max_rows: int) -> list[Generation | Exception]:
        """Send many concurrent requests, which the server may batch."""

        def one(request: Request) -> Generation | Exception:
            try:
                return self._whole(request)
            except Exception as error:
                return error

        with ThreadPoolExecutor(max_workers=min(max_rows, len(requests)) or 1) as pool:
            return list(pool.map(one, requests))

    def _task(self, request: Request) -> Task:
        """Return the requirements of a request. Raise ModelError if the model was closed."""
        if self._closed:
            raise ModelError(f"the model {self._name!r} was closed", hint="load it again")
        return self._asker.task(request)


#: The APIs of providers; all other servers have OpenAI's.
_PROTOCOLS: Mapping[str, type[Protocol]] = {"anthropic": AnthropicMessages, "gemini": Gemini, "bedrock": Converse}


def _stop_check(params: GenerateParams) -> Callable[[], None] | None:
    """Return a function that raises if the request is cancelled or its timeout is over; None if neither can happen.

    The timeout begins with this call.
    """
    cancel, deadline = params.cancel, Deadline.after(params.timeout)
    if cancel is None and deadline.seconds is None:
        return None

    def check() -> None:
        if cancel is not None and cancel():
            raise _CancelledByCallerError
        deadline.check()

    return check
