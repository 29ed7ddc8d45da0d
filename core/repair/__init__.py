"""Repair of text that no grammar held: JSON in free text, and the nearest text of a grammar."""

from __future__ import annotations

from .extract import ends_early, extract_json, may_go_on
from .nearest import SECONDS, Edit, Repaired, repair

__all__ = ["SECONDS", "Edit", "Repaired", "ends_early", "extract_json", "may_go_on", "repair"]
