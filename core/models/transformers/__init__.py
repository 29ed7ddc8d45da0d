"""Models of Hugging Face transformers (``hf:NAME-OR-PATH``): one sequence, or many in one forward pass.

Needs the extra ``transformers``; nothing of torch is imported before a model is loaded.
"""

from __future__ import annotations

__all__: list[str] = []
