"""LM Studio's lists of models (``/api/v0/models``, ``/api/v1/models``), for its clients; its chat is OpenAI's."""

from __future__ import annotations

from typing import Any

from toolgrammar.core.models import Model

PUBLISHER = "toolgrammar"


def model_of_v0(name: str, model: Model) -> dict[str, Any]:
    """Return a model as the older list has it."""
    return {
        "id": name,
        "object": "model",
        "type": "vlm" if model.capabilities.images else "llm",
        "publisher": PUBLISHER,
        "state": "loaded",
        "capabilities": ["tool_use"],
        "max_context_length": model.context_window,
        "loaded_context_length": model.context_window,
    }


def model_of_v1(name: str, model: Model) -> dict[str, Any]:
    """Return a model as the list since LM Studio 0.4 has it."""
    return {
        "type": "llm",
        "publisher": PUBLISHER,
        "key": name,
        "display_name": name,
        "loaded_instances": [{"id": name, "config": {"context_length": model.context_window}}],
        "max_context_length": model.context_window,
        "capabilities": {"vision": model.capabilities.images, "trained_for_tool_use": True},
    }
