"""Self-contained HTML pages: no network, light and dark, wide and narrow screens.

`page` puts a body into the frame that all pages share, `embedded` puts a page into a notebook, and `table` is what a
notebook shows of a small value. What a page shows is written by its own module: `trace` writes that of a generation,
and the command line that of a schema.
"""

from __future__ import annotations

from .cells import table
from .frame import asset, embedded, escape, page

__all__ = ["asset", "embedded", "escape", "page", "table"]
