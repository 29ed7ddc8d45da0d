"""The interpreted form of compiled modules, on request: ``TOOLGRAMMAR_INTERPRETED=1``."""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType

from .modules import COMPILED

#: True if compiled modules are to run interpreted.
INTERPRETED = os.environ.get("TOOLGRAMMAR_INTERPRETED", "") not in ("", "0")

_CORE = __name__.removesuffix(".compiled.interpreted")


class InterpretedFinder:
    """Finder for ``sys.meta_path`` that loads a compiled module from its source instead of the extension."""

    _names = frozenset(f"{_CORE}.{name}" for name in COMPILED)

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the spec of the source of a compiled module, and None for every other module."""
        if fullname not in self._names or not path:
            return None
        file = Path(path[0], fullname.rpartition(".")[2] + ".py")
        return importlib.util.spec_from_file_location(fullname, file) if file.is_file() else None


def use_sources() -> None:
    """Let this process import compiled modules from their sources from now on."""
    if not any(isinstance(finder, InterpretedFinder) for finder in sys.meta_path):
        sys.meta_path.insert(0, InterpretedFinder())
