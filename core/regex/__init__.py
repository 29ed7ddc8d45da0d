"""Regular expressions: a syntax tree, one parser for each dialect, and compilation to terms of a language.

ECMA-262 is the dialect of JSON Schema; Pydantic uses the dialects of Python and Rust. To match or to constrain text,
use `toolgrammar.core.Grammar.regex`.
"""

from __future__ import annotations

__all__: list[str] = []
