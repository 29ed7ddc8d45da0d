"""Models, local and remote: `load_model` makes a `Model` from an address.

A `LocalModel` runs a backend (a `Backend` of ``core/generation/backend.py``) and constrains every token; a
``RemoteModel`` sends requests to a server and validates its answers.
"""

from .decisions import Decision, OneOf, Scale, YesNo
from .load import load_model
from .local_model import LocalModel
from .logits_processor import ConstrainedLogitsProcessor
from .model import Capabilities, Model
from .scoring import Choice, Score

__all__ = [
    "Capabilities",
    "Choice",
    "ConstrainedLogitsProcessor",
    "Decision",
    "LocalModel",
    "Model",
    "OneOf",
    "Scale",
    "Score",
    "YesNo",
    "load_model",
]
