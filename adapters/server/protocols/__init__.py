"""Protocols of clients, one module each: reading a request; writing an answer, a stream, an error.

A protocol translates and decides nothing: it makes a `ParsedRequest` of a request's fields, and the application does
the rest.
"""

from __future__ import annotations

__all__: list[str] = []
