"""Built-in grammars of common notations: CSV, XML, YAML, Markdown tables, SQL, Python literals and reusable rules.

Each is made of the expressions of `core.text_grammars`, with JSON Schemas for typed values.
"""

from __future__ import annotations

__all__: list[str] = []
