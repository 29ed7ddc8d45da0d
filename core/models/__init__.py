"""Models: what decoding needs of one, and the ones that we know how to load.

`load_model` gives a `Model`; ``protocol.py`` says what a backend must offer to become one.
"""

from .load import load_model
from .logits_processor import ConstrainedLogitsProcessor
from .model import Capabilities, Model

__all__ = ["Capabilities", "ConstrainedLogitsProcessor", "Model", "load_model"]
