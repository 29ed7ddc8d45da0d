"""Models on servers that speak OpenAI's chat completions: asked for the most they can be held to, and checked here.

`RemoteModel` is what ``load_model("openai:MODEL@URL")`` gives. It sees no logits, so nothing is constrained on this
side: what comes back is validated, mended or asked for again, and only then handed on.
"""

from .model import RemoteModel
from .stream_state import RemoteFinish, RemoteGeneration

__all__ = ["RemoteFinish", "RemoteGeneration", "RemoteModel"]
