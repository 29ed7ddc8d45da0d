"""Models, local and remote: `load_model` makes a `Model` from an address.

A `LocalModel` runs a backend (a `Backend` of ``core/generation/backend.py``) and constrains every token; a
``RemoteModel`` sends requests to a server and validates its answers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..faces import lazy

if TYPE_CHECKING:
    from .decisions import Decides, Decision, OneOf, Question, Scale, YesNo
    from .load import load_model
    from .local_model import LocalModel
    from .logits_processor import ConstrainedLogitsProcessor
    from .model import Capabilities, Model
    from .published import PUBLISHED
    from .reasoning import find_markers
    from .run import AsyncRun, RepeatedCall, Run, RunResult
    from .scoring import Choice, Score
    from .stores import stored_models
    from .streams import AsyncStream, Stream
    from .template_shape import message_shape, render, shaped

__all__ = [
    "PUBLISHED",
    "AsyncRun",
    "AsyncStream",
    "Capabilities",
    "Choice",
    "ConstrainedLogitsProcessor",
    "Decides",
    "Decision",
    "LocalModel",
    "Model",
    "OneOf",
    "Question",
    "RepeatedCall",
    "Run",
    "RunResult",
    "Scale",
    "Score",
    "Stream",
    "YesNo",
    "find_markers",
    "load_model",
    "message_shape",
    "render",
    "shaped",
    "stored_models",
]

if not TYPE_CHECKING:
    __getattr__, __dir__ = lazy(
        __name__,
        {
            "decisions": "Decides Decision OneOf Question Scale YesNo",
            "template_shape": "message_shape render shaped",
            "load": "load_model",
            "local_model": "LocalModel",
            "logits_processor": "ConstrainedLogitsProcessor",
            "model": "Capabilities Model",
            "published": "PUBLISHED",
            "reasoning": "find_markers",
            "run": "AsyncRun RepeatedCall Run RunResult",
            "scoring": "Choice Score",
            "stores": "stored_models",
            "streams": "AsyncStream Stream",
        },
    )
