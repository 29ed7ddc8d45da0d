"""How a schema is read and written."""

from __future__ import annotations

from dataclasses import dataclass

from ..params import Whitespace


@dataclass(frozen=True)
class SchemaOptions:
    """How a schema becomes a grammar.

    Attributes:
        whitespace: which spellings of JSON are allowed (see `toolgrammar.core.Grammar.from_json_schema`).
        additional_properties: what an object that does not mention ``additionalProperties`` takes.
    """

    whitespace: Whitespace = "single"
    additional_properties: bool = True
