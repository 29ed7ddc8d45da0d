"""Models on servers, with OpenAI's chat completions or the own API of a provider; their answers are validated here.

``load_model("openai:MODEL@URL")`` returns a `RemoteModel`. It has no logits, so nothing is constrained on this
side: each answer is validated, and if necessary repaired or requested again, before it is returned.
"""

from .model import RemoteModel
from .stream_state import RemoteFinish, RemoteGeneration, remote_generation

__all__ = ["RemoteFinish", "RemoteGeneration", "RemoteModel", "remote_generation"]
