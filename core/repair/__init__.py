"""Repair of text that no grammar held: JSON in free text, and the nearest text of a grammar."""

from __future__ import annotations

from .extract import ends_early, extract_json, may_go_on
from .nearest import SECONDS, SPELLING_ONLY, Edit, Repaired, loose_json, repair, respelled_json

__all__ = [
    "SECONDS",
    "SPELLING_ONLY",
    "Edit",
    "Repaired",
    "ends_early",
    "extract_json",
    "loose_json",
    "may_go_on",
    "repair",
    "respelled_json",
]
