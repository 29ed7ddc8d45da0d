"""Detection of the kind of a server by its endpoints, for ``server="auto"`` only."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from ...errors import ModelError
from .answer import count, member
from .transport import RefusedError, Transport


async def detect_server(transport: Transport, model: str) -> tuple[str, int | None]:
    """Return the kind of a server, and its context window if it reports one.

    vLLM, SGLang, llama.cpp and ``toolgrammar serve`` are named as the owners of their models; Ollama has
    ``/api/version``.
    """
    listed: Any = {}
    with suppress(RefusedError):
        listed = await transport.fetch("models")
    entries = [entry for entry in member(listed, "data") or () if isinstance(entry, Mapping)]
    entry = next((one for one in entries if one.get("id") == model), entries[0] if entries else {})
    owner = str(entry.get("owned_by", ""))
    if owner == "toolgrammar":
        return "openai", None  # it has /api/version, too
    if owner in ("vllm", "sglang"):
        return owner, count(entry.get("max_model_len")) or None
    if owner == "llamacpp":
        meta = entry.get("meta")
        return "llama.cpp", count(member(meta, "n_ctx") or member(meta, "n_ctx_train")) or None
    try:
        version = await transport.fetch("/api/version")
    except (ModelError, RefusedError):
        return "openai", None
    return ("ollama" if isinstance(version, Mapping) and "version" in version else "openai"), None
