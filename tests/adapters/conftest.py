"""What the tests of the adapters share: a model of noise, and calls for scripts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest

from toolgrammar.core import Generation, Message, Model, ReasoningDelta, ToolCall, Vocabulary, load_model
from toolgrammar.core.testing import ScriptedModel, byte_vocabulary
from toolgrammar.tools.formats import get_format


@pytest.fixture(scope="session")
def noise() -> Model:
    """The embedded model, whose weights are noise: what it writes is valid because of the grammar alone."""
    return load_model("embedded")


class Thinking(ScriptedModel):
    """A model that thinks before it says its reply."""

    def _items(self, request: Any) -> Iterator[Any]:
        yield ReasoningDelta("2 and")
        yield ReasoningDelta(" 2")
        for item in super()._items(request):
            is_whole = isinstance(item, Generation)
            yield replace(item, message=replace(item.message, reasoning="2 and 2")) if is_whole else item


@pytest.fixture
def thinking() -> Model:
    """A model that thinks ``2 and 2`` and then says ``Four.``."""
    return Thinking(lambda messages: "Four.")


@pytest.fixture(scope="session")
def call() -> Callable[..., Message]:
    """Make a reply that calls a tool."""

    def make(name: str, **arguments: Any) -> Message:
        return Message("assistant", tool_calls=(ToolCall("", name, arguments),))

    return make


@pytest.fixture(scope="session")
def vocabulary_of() -> Callable[[str], Vocabulary]:
    """Every byte, and the control tokens of a wire format: what a script needs to be spoken in it."""

    def make(name: str) -> Vocabulary:
        plain = byte_vocabulary()
        tokens, special = list(plain.tokens), dict(plain.special)
        for marker in getattr(get_format(name), "special", ()):
            if marker not in special:
                special[marker] = len(tokens)
                tokens.append(None)
        return Vocabulary(tokens, eos=plain.eos, special=special)

    return make
