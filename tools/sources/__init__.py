"""Sources of tools: Python functions and classes, provider dicts and objects, OpenAPI and Swagger documents.

Each module reads one kind, and its ``recognise`` says which sources are of that kind; `any_source` asks them in turn.
Use `toolgrammar.tools.ToolSet.from_any`.
"""

from __future__ import annotations

__all__: list[str] = []
