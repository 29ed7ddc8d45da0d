"""The responses that may be continued by ``previous_response_id``."""

from __future__ import annotations

import json
import threading
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from toolgrammar.core.basics import shared_lock
from toolgrammar.core.conversation import Message

from ..fields import RequestError

#: Maximum number of characters of the conversations that are kept for ``previous_response_id``.
MAX_KEPT = 32 << 20


@dataclass(frozen=True)
class Kept:
    """A response that is kept.

    Attributes:
        messages: the conversation, its answer included.
        response: as its client got it.
        found: the tools that the client's searches have found, as OpenAI-style dicts.
    """

    messages: tuple[Message, ...]
    response: Mapping[str, Any]
    found: tuple[Mapping[str, Any], ...] = ()

    @property
    def size(self) -> int:
        """Approximate size in characters."""
        return sum(map(_size, self.messages)) + len(json.dumps(self.response))


class Memory:
    """Responses by their ids; the least recently used go first.

    Args:
        max_characters: maximum size of all that is kept, in characters of text.
    """

    def __init__(self, max_characters: int = MAX_KEPT) -> None:
        self._lock = shared_lock(self, "_lock", threading.Lock())
        self._kept: OrderedDict[str, tuple[Kept, int]] = OrderedDict()  # each with its size
        self._items: dict[str, tuple[str, Mapping[str, Any]]] = {}  # by id: the response that has it, and the item
        self._max = max_characters
        self._size = 0

    def keep(self, name: str, kept: Kept) -> None:
        """Keep a response under its id; others may have to go."""
        size = kept.size
        with self._lock:
            self._kept[name] = kept, size
            self._items.update({item["id"]: (name, item) for item in kept.response.get("output", ())})
            self._size += size
            while self._size > self._max:
                self._drop(next(iter(self._kept)))

    def find(self, name: str, field: str | None = None) -> Kept:
        """Return a response.

        Args:
            name: its id.
            field: that names it in the request.

        Raises:
            RequestError: it is not kept any more, or never was (404).
        """
        with self._lock:
            if name not in self._kept:
                hint = "send the whole conversation as input" if field else None
                raise RequestError("this response is not stored, or no longer", field=field, hint=hint, status=404)
            self._kept.move_to_end(name)
            return self._kept[name][0]

    def item(self, name: str, field: str) -> Mapping[str, Any]:
        """Return an item of the output of a response that is kept.

        Args:
            name: its id.
            field: that names it in the request.

        Raises:
            RequestError: its response is not kept any more, or never was (404).
        """
        with self._lock:
            if name not in self._items:
                hint = "send the item itself"
                raise RequestError("this item is not stored, or no longer", field=field, hint=hint, status=404)
            response, item = self._items[name]
            self._kept.move_to_end(response)
            return item

    def forget(self, name: str) -> None:
        """Forget a response.

        Raises:
            RequestError: it is not kept any more, or never was (404).
        """
        self.find(name)
        with self._lock:
            self._drop(name)

    def _drop(self, name: str) -> None:
        if name in self._kept:
            kept, size = self._kept.pop(name)
            self._size -= size
            for item in kept.response.get("output", ()):
                self._items.pop(item["id"], None)


def _size(message: Message) -> int:
    """Return the approximate size of a message in characters."""
    images = sum(len(getattr(part, "data", None) or "") for part in message.content if not isinstance(part, str))
    calls = sum(len(call.name) + len(call.arguments_text) for call in message.tool_calls)
    return 100 + len(message.text) + len(message.reasoning or "") + images + calls
