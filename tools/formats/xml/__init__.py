"""Wire formats that write each argument as an element: strings raw, everything else as JSON."""

from __future__ import annotations

__all__: list[str] = []
