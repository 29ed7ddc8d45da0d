"""Detection of the kind of a server by its endpoints, for ``server="auto"`` only."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from ...errors import ModelError
from .transport import RefusedError, Transport


async def detect_server(transport: Transport, model: str) -> tuple[str, int | None]:
    """Return the kind of a server, and its context window if it reports one.

    vLLM, SGLang, llama.cpp and ``toolgrammar serve`` are named as the owners of their models; Ollama has
    ``/api/version``.
    """
    listed: Any = {}
    with suppress(RefusedError):
        listed = await transport.fetch("models")
    entries = listed.get("data") if isinstance(listed, Mapping) else None
    entries = [entry for entry in entries or () if isinstance(entry, Mapping)]
    entry = next((one for one in entries if one.get("id") == model), entries[0] if entries else {})
    owner = str(entry.get("owned_by", ""))
    if owner == "toolgrammar":
        return "openai", None  # it has /api/version, too
    if owner in ("vllm", "sglang"):
        return owner, _positive(entry.get("max_model_len"))
    if owner == "llamacpp":
        meta = entry.get("meta")
        return "llama.cpp", _positive(meta.get("n_ctx") or meta.get("n_ctx_train")) if isinstance(
            meta, Mapping
        ) else None
    try:
        version = await transport.fetch("/api/version")
    except (ModelError, RefusedError):
        return "openai", None
    return ("ollama" if isinstance(version, Mapping) and "version" in version else "openai"), None


def _positive(value: Any) -> int | None:
    return value if isinstance(value, int) and value > 0 else None
