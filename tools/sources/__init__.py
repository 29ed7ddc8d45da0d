"""Sources of tools: Python functions and classes, provider dicts and objects, OpenAPI and Swagger documents.

Each module reads one kind; `any_source` finds out which kind a signature is. Use `toolgrammar.tools.ToolSet.from_any`.
"""

from __future__ import annotations

__all__: list[str] = []
