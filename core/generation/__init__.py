"""Generation: a model chooses tokens among those that a matcher allows.

`Decoding` (``loop.py``) runs one generation over a `Backend` (``backend.py``) and a `Matcher`: it masks the logits,
appends forced text without asking the model, and near the token budget completes the text validly. `Sampler` draws
tokens, `Output` turns them into typed events, `truncated_pointers` names the values that the budget closed, and the
driver runs one generation alone or many together.

Use ``Model.generate``, unless you drive a model yourself. This package does not know tools or wire formats.
"""

from __future__ import annotations

from .params import OPTIONS, GenerateParams, JsonMode, OutputParser, ToolInterface

__all__ = ["OPTIONS", "GenerateParams", "JsonMode", "OutputParser", "ToolInterface"]
