"""The terms that the first grammar makes, and every other one takes as they are."""

from __future__ import annotations

from functools import cache

from ..automaton.shared_terms import SharedTerms


@cache
def first_terms(values: bool) -> SharedTerms:
    """Return the terms at the beginning of every store: a constant, so that vocabularies share the data derived from
    it.

    Args:
        values: add the terms of common formats and ranges of numbers, after the others.
    """
    from ..schema.scalars.common import common_languages, common_values

    return SharedTerms(common_languages, common_values) if values else SharedTerms(common_languages)
