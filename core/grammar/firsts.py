"""Parts of `Grammar` that the first grammar makes or imports, and every other one takes as they are."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING

from ..automaton.shared_terms import SharedTerms

if TYPE_CHECKING:
    from ..schema import CompiledSchema, SchemaOptions


@cache
def first_terms(values: bool) -> SharedTerms:
    """Return the terms at the beginning of every store: a constant, so that vocabularies share the data derived from
    it.

    Args:
        values: add the terms of common formats and ranges of numbers, after the others.
    """
    from ..schema.scalars.common import common_languages, common_values

    return SharedTerms(common_languages, common_values) if values else SharedTerms(common_languages)


@cache
def schema_compiler() -> tuple[Callable[..., SchemaOptions], Callable[..., CompiledSchema]]:
    """Return `schema_options` and `compile_schema`."""
    from ..schema.compile import compile_schema
    from ..schema.read.options import schema_options

    return schema_options, compile_schema
