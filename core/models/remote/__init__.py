"""Models on servers, with OpenAI's chat completions or the own API of a provider; their answers are validated here.

``load_model("openai:MODEL@URL")`` returns a `RemoteModel`. It has no logits, so nothing is constrained on this
side: each answer is validated, and if necessary repaired or requested again, before it is returned.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...faces import lazy

if TYPE_CHECKING:
    from .answer import Answer as Answer
    from .model import RemoteModel as RemoteModel
    from .plain_server import PlainServer as PlainServer
    from .stream_state import RemoteFinish as RemoteFinish, RemoteGeneration as RemoteGeneration
    from .transport import RefusedError as RefusedError

if not TYPE_CHECKING:
    __getattr__, __dir__, __all__ = lazy(
        __name__,
        {
            "answer": "Answer",
            "model": "RemoteModel",
            "plain_server": "PlainServer",
            "stream_state": "RemoteFinish RemoteGeneration",
            "transport": "RefusedError",
        },
    )
