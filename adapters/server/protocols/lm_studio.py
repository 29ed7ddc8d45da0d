"""LM Studio's lists of models (``/api/v0/models``, ``/api/v1/models``), for its clients; its chat is OpenAI's."""

from __future__ import annotations

from typing import Any

PUBLISHER = "toolgrammar"


def model_of_v0(name: str, window: int | None, *, images: bool) -> dict[str, Any]:
    """Return a model as the older list has it."""
    return {
        "id": name,
        "object": "model",
        "type": "vlm" if images else "llm",
        "publisher": PUBLISHER,
        "state": "loaded",
        "capabilities": ["tool_use"],
        **({} if window is None else {"max_context_length": window, "loaded_context_length": window}),
    }


def model_of_v1(name: str, window: int | None, *, images: bool) -> dict[str, Any]:
    """Return a model as the list since LM Studio 0.4 has it."""
    return {
        "type": "llm",
        "publisher": PUBLISHER,
        "key": name,
        "display_name": name,
        "loaded_instances": [{"id": name, "config": {} if window is None else {"context_length": window}}],
        "max_context_length": window,
        "capabilities": {"vision": images, "trained_for_tool_use": True},
    }
