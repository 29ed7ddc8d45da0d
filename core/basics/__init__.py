"""Modules that every room may use: checks of arguments, options, JSON pointers, logs, pauses, and an event loop."""

from __future__ import annotations

__all__: list[str] = []
