"""Generation: the model chooses one token after another among those that a matcher allows.

`Decoding` (``loop.py``) runs one generation over a `Backend` (``backend.py``) and a `Matcher`: masks first; forced text
is appended without asking the model; near the token budget the text is closed validly. `Sampler` draws tokens, `Output`
turns them into typed events, `truncated_pointers` names the values that the budget closed, and the driver runs one
generation alone or many together.

Use ``Model.generate`` unless you drive a model yourself. This layer knows no tool and no wire format.
"""

from __future__ import annotations

from .params import GenerateParams, JsonMode, OutputParser, ToolInterface

__all__ = ["GenerateParams", "JsonMode", "OutputParser", "ToolInterface"]
