"""Models on servers, with OpenAI's chat completions or the own API of a provider; their answers are validated here.

``load_model("openai:MODEL@URL")`` returns a `RemoteModel`. It has no logits, so nothing is constrained on this
side: each answer is validated, and if necessary repaired or requested again, before it is returned.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...faces import lazy

if TYPE_CHECKING:
    from .address import headers_of, parse_address
    from .answer import Answer
    from .chat_completions import ChatCompletions, read_completion
    from .detect import detect_server
    from .model import RemoteModel
    from .stream_state import RemoteFinish, RemoteGeneration, remote_generation
    from .transport import RefusedError, Transport

__all__ = [
    "Answer",
    "ChatCompletions",
    "RefusedError",
    "RemoteFinish",
    "RemoteGeneration",
    "RemoteModel",
    "Transport",
    "detect_server",
    "headers_of",
    "parse_address",
    "read_completion",
    "remote_generation",
]

if not TYPE_CHECKING:
    __getattr__, __dir__ = lazy(
        __name__,
        {
            "address": (
                "headers_of",
                "parse_address",
            ),
            "answer": ("Answer",),
            "chat_completions": (
                "ChatCompletions",
                "read_completion",
            ),
            "detect": ("detect_server",),
            "model": ("RemoteModel",),
            "stream_state": (
                "RemoteFinish",
                "RemoteGeneration",
                "remote_generation",
            ),
            "transport": (
                "RefusedError",
                "Transport",
            ),
        },
    )
