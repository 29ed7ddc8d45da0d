"""Models on servers that speak OpenAI's chat completions; their answers are validated here.

``load_model("openai:MODEL@URL")`` returns a `RemoteModel`. It sees no logits, so nothing is constrained on this side:
each answer is validated, repaired or requested again before you get it.
"""

from .model import RemoteModel
from .stream_state import RemoteFinish, RemoteGeneration, remote_generation

__all__ = ["RemoteFinish", "RemoteGeneration", "RemoteModel", "remote_generation"]
