"""`Protocol`: one API of models on servers, as `RemoteModel` uses it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Collection, Mapping, Sequence
from contextlib import aclosing
from types import MappingProxyType
from typing import Any, ClassVar

from ...basics.logs import logger_of
from ...conversation.messages import Message, ReasoningBlock
from ...generation.params import GenerateParams
from ...generation.plan import Planner
from .answer import Answer
from .answer_judge import Task
from .form import Form
from .transport import REQUEST_COUNT, RefusedError, Transport

_LOG = logger_of("remote")

#: Maximum number of calls whose reasoning blocks are remembered.
_REMEMBERED = 1_024


class Protocol(ABC):
    """The requests and answers of one API. An object serves one model, and remembers what its server takes.

    Args:
        kind: kind of the server.
        name: the model's name on it.
        transport: connections to it.
        planner: plans the grammars of requests.
        prompt_cache: mark the parts of a prompt that later requests repeat, where the API needs marks.

    Attributes:
        url: the provider's own address; None: there is none.
        version: path of the API, for an address without a path.
        key_names: environment variables with the key, which is sent to the provider's own address only.
        own_fields: fields of a request that must not be changed, because answers could not be read, and the
            alternatives.
        optional: fields of a request that are removed if the server refuses them by name.
        kind: kind of the server.
        window: context window that the server reports; None if it is unknown.
        is_found: the server has been asked what it is, or need not be.
        has_plugin: the server is known to enforce what `prepare` returns True for.
        taken: names of the forms that the server has accepted, as `Dialect` has them.
        ignored: names of the forms that the server takes without enforcing them.
    """

    own_fields: ClassVar[Mapping[str, str]] = MappingProxyType({})
    optional: ClassVar[Collection[str]] = ()
    url: ClassVar[str | None] = None
    version: ClassVar[str] = ""
    key_names: ClassVar[tuple[str, ...]] = ()

    def __init__(
        self, kind: str, name: str, transport: Transport, planner: Planner, *, prompt_cache: bool = True
    ) -> None:
        self.kind = kind
        self.name = name
        self.transport = transport
        self.planner = planner
        self.prompt_cache = prompt_cache
        self.window: int | None = None
        self.is_found = True
        self.has_plugin = False
        self.ignored: set[str] = set()
        self.taken: Collection[str] = ()
        self._refused: dict[str, None] = {}  # optional fields, in the order of the refusals
        self._blocks: dict[str, tuple[ReasoningBlock, ...]] = {}  # by the ids of the calls that they belong to

    @classmethod
    def home(cls) -> str | None:
        """Return the provider's own address; None if there is none."""
        return cls.url

    @classmethod
    def key_headers(cls, key: str) -> dict[str, str]:
        """Return the headers with a key; without one, those that every request needs."""
        return {"Authorization": f"Bearer {key}"} if key else {}

    # -- negotiation -------------------------------------------------------------------------------------------

    async def find(self) -> None:
        """Ask the server, once, what it and its model are."""
        self.is_found = True

    async def prepare(self, task: Task) -> bool:
        """Ask the server, once, what it takes; return True if it enforces a task completely."""
        if not self.is_found:
            await self.find()
        return False

    def distrust(self, form: Form) -> None:
        """Send no more requests in a form that the server has ignored."""
        if form.name not in self.ignored:
            self.ignored.add(form.name)
            _LOG.warning("the server of %s ignored the form %r; it is not sent from now on", self.name, form.name)

    # -- requests ----------------------------------------------------------------------------------------------

    @abstractmethod
    def forms(self, task: Task, unknown: Collection[str], messages: Sequence[Message], *, enforced: bool) -> list[Form]:
        """Return the forms of a request, the strongest first; the last one needs no support of the server.

        Args:
            task: the requirements of the request.
            unknown: keywords of JSON Schema that the server does not support.
            messages: the conversation.
            enforced: `prepare` returned True.
        """

    @abstractmethod
    def body(self, params: GenerateParams, form: Form, messages: Sequence[Message], *, is_free: bool) -> dict[str, Any]:
        """Return the body of a request.

        Args:
            params: options of the request.
            form: its form.
            messages: the conversation, with all instructions.
            is_free: stop strings may be sent: they cannot cut a call or JSON.

        Raises:
            ModelError: an option or a message cannot be sent.
        """

    @abstractmethod
    def budget(self, body: Mapping[str, Any]) -> int | None:
        """Return the token budget in a request."""

    def merged(self, body: Mapping[str, Any], fields: Mapping[str, Any]) -> dict[str, Any]:
        """Return a request with the user's fields, which override ours; None removes a field."""
        return {name: value for name, value in {**body, **fields}.items() if value is not None}

    # -- answers -----------------------------------------------------------------------------------------------

    async def ask(
        self, form: Form, body: Mapping[str, Any], answer: Answer, live: bool
    ) -> AsyncGenerator[tuple[str, str], None]:
        """Send a request, fill ``answer``, and yield the parts of reasoning and text that each event of it adds.

        A field that is refused by name is removed or replaced (see `without_field`), and the request is sent again;
        later requests go without it at once.

        Args:
            form: the form of the request.
            body: the request.
            answer: filled while the events come.
            live: ask for a stream.

        Raises:
            RefusedError: the server refuses the request in this form.
            ServerError: it fails.
        """
        while True:
            for name in self._refused:
                body = self.without_field(body, name)
            answer.budget = self.budget(body)
            answer.dropped = tuple(name for name in self._refused if name in self.optional)
            REQUEST_COUNT.set(answer.requests)
            answer.requests.number += 1
            try:
                async with aclosing(self._events(form, body, live)) as events:
                    async for event in events:
                        yield self.read(event, answer)
                return
            except RefusedError as refusal:
                name = self.refused_field(body, refusal.reason)
                if not name or name in self._refused:
                    raise
                self._refused[name] = None
                _LOG.warning("the server of %s refuses the field %r; it is sent no more", self.name, name)

    def refused_field(self, body: Mapping[str, Any], reason: str) -> str:
        """Return the optional field that a refusal names; empty if it names none."""
        if any(word in reason.lower() for word in ("schema", "strict", "grammar")):
            return ""  # the name may be that of a tool's parameter
        left = (name for name in self.optional if name not in self._refused)
        return next((name for name in left if name in reason and self.has_field(body, name)), "")

    def has_field(self, body: Mapping[str, Any], name: str) -> bool:
        """Return True if a request has an optional field."""
        return name in body

    def without_field(self, body: Mapping[str, Any], name: str) -> Mapping[str, Any]:
        """Return a request without an optional field."""
        return {key: value for key, value in body.items() if key != name}

    @abstractmethod
    def _events(self, form: Form, body: Mapping[str, Any], live: bool) -> AsyncGenerator[Any, None]:
        """Send a request; yield the events of the answer, in one piece or streamed."""

    @abstractmethod
    def read(self, event: Any, answer: Answer) -> tuple[str, str]:
        """Add an event to an answer; return the added parts of the reasoning and of the text.

        Raises:
            ServerError: it is no event of this API; the message quotes it.
        """

    # -- reasoning that goes back ------------------------------------------------------------------------------

    def remember(self, answer: Answer) -> None:
        """Keep the reasoning blocks of an answer with calls, for conversations that come back without them.

        Most frameworks do not carry them, and providers refuse calls in the history without theirs.
        """
        if not answer.calls or not answer.blocks:
            return
        first = answer.calls[0].id
        for call_id in dict.fromkeys(block.call_id or first for block in answer.blocks):
            self._blocks[call_id] = tuple(one for one in answer.blocks if (one.call_id or first) == call_id)
        while len(self._blocks) > _REMEMBERED:
            del self._blocks[next(iter(self._blocks))]

    def blocks_of(self, message: Message, provider: str) -> tuple[ReasoningBlock, ...]:
        """Return the reasoning blocks of an earlier answer: its own, or those that are remembered for its calls."""
        own = tuple(block for block in message.reasoning_blocks if block.provider == provider)
        if own:
            return own
        return tuple(block for call in message.tool_calls for block in self._blocks.get(call.id, ()))
