"""Decoding: a model writes one token after another, and a matcher says which may come next.

`Decoding` runs one generation over a ``Backend`` and a ``Matcher``: masks first, what is forced is appended without
asking the model, and near the token budget the text is closed validly. `Sampler` draws the tokens, `Output` turns what
is written into typed events, and `cut_pointers` names the values that the budget closed.

Use ``Model.generate`` unless you drive a model yourself. This layer knows no tool and no wire format.
"""

from .cut import cut_pointers
from .loop import Decoding, Forward, Step
from .output import Output
from .retokenise import Speller
from .sampler import Sampler

__all__ = ["Decoding", "Forward", "Output", "Sampler", "Speller", "Step", "cut_pointers"]
