"""Repair of text that no grammar held: JSON in free text, and the nearest text of a grammar."""

from __future__ import annotations

from .extract import ends_early, extract_json, may_go_on

__all__ = ["ends_early", "extract_json", "may_go_on"]
