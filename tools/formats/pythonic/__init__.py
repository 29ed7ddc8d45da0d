"""Wire formats whose calls are Python: ``[add(a=1, b=2)]``.

`calls` has grammar and rendering of calls, `parser` reads them in a stream. Functions as tools: `tools.sources`.
"""

from __future__ import annotations

__all__: list[str] = []
