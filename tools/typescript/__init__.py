"""TypeScript declarations read as tools and schemas, and tools and schemas printed as TypeScript.

Declarations are evaluated lazily, never executed; what JSON has no values for is refused with line and column.
"""

from __future__ import annotations

from .harmony import tools_to_harmony
from .printer import schema_to_typescript, tools_to_typescript
from .reader import schema_from_typescript, tools_from_typescript

__all__ = [
    "schema_from_typescript",
    "schema_to_typescript",
    "tools_from_typescript",
    "tools_to_harmony",
    "tools_to_typescript",
]
