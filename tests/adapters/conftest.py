"""What the tests of the adapters share: a model of noise, and calls for scripts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from toolgrammar.core import Message, Model, ToolCall, load_model


@pytest.fixture(scope="session")
def noise() -> Model:
    """The embedded model, whose weights are noise: what it writes is valid because of the grammar alone."""
    return load_model("embedded")


@pytest.fixture(scope="session")
def call() -> Callable[..., Message]:
    """Make a reply that calls a tool."""

    def make(name: str, **arguments: Any) -> Message:
        return Message("assistant", tool_calls=(ToolCall("", name, arguments),))

    return make
