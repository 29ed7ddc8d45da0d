"""Models of mlx-lm (``mlx:PATH``): one sequence, or many in one forward pass. Needs the extra ``mlx``."""

from __future__ import annotations

__all__: list[str] = []
