"""Support of the compiled modules: the list of them, growable arrays, a hash table, and a stub for an absent Cython.

Every compiled module also runs interpreted, with the same results, about ten times slower.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..faces import lazy

if TYPE_CHECKING:
    from .build import Build as Build

if not TYPE_CHECKING:
    __getattr__, __dir__, __all__ = lazy(__name__, {"build": "Build"})
