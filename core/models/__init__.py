"""Models, local and remote: `load_model` makes a `Model` from an address.

A `LocalModel` runs a backend (a `Backend` of ``core/generation/backend.py``) and constrains every token; a
``RemoteModel`` sends requests to a server and validates its answers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..faces import lazy

if TYPE_CHECKING:
    from .decisions import (
        Decides as Decides,
        Decision as Decision,
        OneOf as OneOf,
        Question as Question,
        Scale as Scale,
        YesNo as YesNo,
    )
    from .load import load_model as load_model
    from .local_model import LocalModel as LocalModel
    from .logits_processor import ConstrainedLogitsProcessor as ConstrainedLogitsProcessor
    from .model import Capabilities as Capabilities, Model as Model
    from .published import PUBLISHED as PUBLISHED
    from .reasoning import find_markers as find_markers
    from .run import AsyncRun as AsyncRun, RepeatedCall as RepeatedCall, Run as Run, RunResult as RunResult
    from .scoring import Choice as Choice, Score as Score
    from .stores import stored_models as stored_models
    from .streams import AsyncStream as AsyncStream, Stream as Stream
    from .template_shape import message_shape as message_shape, render as render, shaped as shaped

if not TYPE_CHECKING:
    __getattr__, __dir__, __all__ = lazy(
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
