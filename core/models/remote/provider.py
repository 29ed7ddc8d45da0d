"""APIs of providers: turns of blocks, answers that always stream, and what cannot be read of them."""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import AsyncGenerator, Collection, Mapping, Sequence
from contextlib import aclosing
from dataclasses import replace
from typing import Any, ClassVar

from ...conversation.messages import ImagePart, Message, Part, TextPart, ToolCall
from ...errors import NotFoundError, ServerError, ServerFailureError
from ..call_ids import with_call_ids
from .answer import Answer, brief
from .form import Form
from .protocol import Protocol
from .schema_dialects import Subset, strict_schema, with_notes
from .servers import known
from .transport import RefusedError


class ProviderProtocol(Protocol):
    """The own API of a provider. Arguments as of `Protocol`.

    Attributes:
        subset: what its strict mode enforces.
        own_answers: whose answers it reads, for errors.
        address_hint: the address to give, for errors.
        model_role: its name of the assistant.
        content_field: the field of a turn that has its blocks.
        takes_blank: a text may be white space only.
    """

    subset: ClassVar[Subset]
    own_answers: ClassVar[str]
    address_hint: ClassVar[str]
    model_role: ClassVar[str] = "assistant"
    content_field: ClassVar[str] = "content"
    takes_blank: ClassVar[bool] = False

    async def _told(self, path: str) -> Mapping[str, Any]:
        """Return what the server tells of its model; a server that does not tell it is no error."""
        try:
            told = await self.transport.fetch(path)
        except (RefusedError, NotFoundError, ServerFailureError):
            told = None
        self.is_found = True
        return told if isinstance(told, Mapping) else {}

    # -- requests ----------------------------------------------------------------------------------------------

    @abstractmethod
    def _text(self, text: str) -> dict[str, Any]:
        """Return the block of a text."""

    @abstractmethod
    def _image(self, image: ImagePart) -> dict[str, Any]:
        """Return the block of an image."""

    @abstractmethod
    def _call(self, call: ToolCall) -> dict[str, Any]:
        """Return the block of a call."""

    @abstractmethod
    def _result(self, message: Message) -> list[dict[str, Any]]:
        """Return the blocks of a tool's result."""

    @abstractmethod
    def _past_answer(self, message: Message) -> list[dict[str, Any]]:
        """Return the blocks of an earlier answer, its reasoning where it was."""

    @abstractmethod
    def answer_fields(self, schema: Any) -> dict[str, Any]:
        """Return the fields with the schema of the answer."""

    def turns(self, messages: Sequence[Message]) -> tuple[str, list[dict[str, Any]]]:
        """Return the system prompt and the turns; results of tools and texts of one role are one turn."""
        messages = list(messages)
        system: list[str] = []
        while messages and messages[0].role == "system":
            system.append(messages.pop(0).text)
        turns: list[dict[str, Any]] = []
        for message in with_call_ids(messages):
            role = self.model_role if message.role == "assistant" else "user"
            if message.role == "tool":
                blocks = self._result(message)
            elif message.role == "assistant":
                blocks = self._past_answer(message)
            else:
                blocks = self.blocks(message.content)
            if blocks and turns and turns[-1]["role"] == role:
                turns[-1][self.content_field] += blocks
            elif blocks:
                turns.append({"role": role, self.content_field: blocks})
        return "\n\n".join(filter(None, system)), turns

    def blocks(self, content: str | tuple[Part, ...]) -> list[dict[str, Any]]:
        """Return texts and images as blocks; empty texts, and blank ones which the API refuses, are left out."""
        parts = (TextPart(content),) if isinstance(content, str) else content
        return [
            self._image(part) if isinstance(part, ImagePart) else self._text(part.text)
            for part in parts
            if isinstance(part, ImagePart) or (part.text if self.takes_blank else part.text.strip())
        ]

    def _answer_form(self, schema: Any, unknown: Collection[str]) -> Form | None:
        """Return the form with the schema of the answer; None if the subset cannot say it.

        Args:
            schema: the schema.
            unknown: keywords that the server has refused, which are removed.
        """
        reduced, gone = known(schema, unknown)
        taken = strict_schema(reduced, replace(self.subset, object_root=False))
        if taken is None:
            return None
        removed = (*gone, *taken.left_out)
        sent = with_notes(taken.schema, schema, removed)
        places = tuple(f"response{place}" for place in removed)
        return Form("json_schema", self.answer_fields(sent), places, schemas=(sent,))

    # -- answers -----------------------------------------------------------------------------------------------

    @abstractmethod
    def _path_of_answers(self) -> str:
        """Return the path of streamed answers."""

    @abstractmethod
    def _read(self, event: Any, answer: Answer) -> tuple[str, str]:
        """Do `read`; an event of another shape raises any error of access."""

    async def _events(self, form: Form, body: Mapping[str, Any], live: bool) -> AsyncGenerator[Any, None]:
        # Always streamed: a long answer in one piece would look like a server that does not answer.
        async with aclosing(self.transport.events(self._path_of_answers(), body)) as events:
            async for event in events:
                yield event

    def read(self, event: Any, answer: Answer) -> tuple[str, str]:
        """Add an event of a stream, or a whole answer."""
        answer.is_finish_sure = True
        try:
            return self._read(event, answer)
        except (AttributeError, KeyError, TypeError, IndexError, ValueError):
            raise ServerError(
                f"the server's answer is not one of {self.own_answers}; received: {brief(json.dumps(event))}",
                hint=f"give the address of {self.address_hint}",
            ) from None


def failed(said: Any, kind: str = "") -> ServerFailureError:
    """Return the error for an answer that says that the server failed."""
    return ServerFailureError(
        f"the server failed while it answered{kind and f' ({kind})'}: {brief(str(said))}", hint="try again"
    )
