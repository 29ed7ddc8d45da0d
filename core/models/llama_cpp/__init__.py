"""Models of llama.cpp (``gguf:PATH``), with the chat template of the file.

Needs the extra ``llama-cpp``; nothing of llama-cpp-python is imported before a model is loaded.
"""

from __future__ import annotations

__all__: list[str] = []
