"""Modules for every package: checks of arguments, options, a memo, logs, pauses, and an event loop."""

from __future__ import annotations

__all__: list[str] = []
