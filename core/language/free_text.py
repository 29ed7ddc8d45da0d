"""Terms of free text: without given words, and up to a marker."""

from __future__ import annotations

from .terms import Terms


def free_text(terms: Terms, excluding: tuple[str, ...], min_chars: int) -> int:
    """Return the term of texts of at least ``min_chars`` characters that contain none of the words."""
    free = terms.not_(containing(terms, excluding)) if excluding else terms.ALL
    return terms.and_([free, terms.repeat(terms.ANY, min_chars, None)])


def text_until(terms: Terms, marker: str, excluding: tuple[str, ...]) -> int:
    """Return the term of texts that end with their first ``marker`` and contain none of the words."""
    # Σ* marker, without strings that have the marker in a proper prefix.
    parts = [
        terms.seq(terms.ALL, terms.literal(marker)),
        terms.seq(terms.not_(containing(terms, (marker,))), terms.ANY),
    ]
    if excluding:
        parts.append(terms.not_(containing(terms, excluding)))
    return terms.and_(parts)


def containing(terms: Terms, words: tuple[str, ...]) -> int:
    """Return the term of all texts that contain one of the words."""
    return terms.sequence([terms.ALL, terms.words(words), terms.ALL])
