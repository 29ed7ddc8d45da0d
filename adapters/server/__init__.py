"""A server that speaks the protocols of OpenAI and others, over any model; each call that it sends is valid.

::

    from toolgrammar.adapters.server import create_app

    app = create_app("hf:Qwen/Qwen2.5-1.5B-Instruct")  # an ASGI application; `toolgrammar serve` runs it

A field of a request reaches the model, or is an error that names it, in the protocol's own form; none is dropped. The
folder `protocols` has one module for each protocol, which makes a `ParsedRequest` of a request; `app` does the rest.
For clients in the same process, without a port, see `toolgrammar.adapters.openai`.
"""

from __future__ import annotations

from .. import _shared

try:
    from .app import create_app
    from .limits import Limits
except ModuleNotFoundError as error:  # pragma: no cover - needs an installation without the extra
    if error.name not in ("starlette", "anyio"):
        raise
    raise _shared.missing(str(error.name), "server") from None

__all__ = ["Limits", "create_app"]
