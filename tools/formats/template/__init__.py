"""Formats as data: a template of one call, and the markup around and between calls.

`format.TemplateFormat` makes grammar and rendering of it, `parser.TemplateParser` reads it in a stream.
"""

from __future__ import annotations

__all__: list[str] = []
