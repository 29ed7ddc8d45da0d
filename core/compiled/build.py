"""How the kernel of this installation runs."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

from .gil import HAS_GIL
from .interpreted import INTERPRETED
from .modules import COMPILED


@dataclass(frozen=True)
class Build:
    """The form of the compiled modules.

    Attributes:
        modules: number of modules that have a compiled form.
        compiled: number of them with an extension for this interpreter.
        has_others: there are extensions, for another Python.
        is_interpreted: ``TOOLGRAMMAR_INTERPRETED`` is set.
        has_gil: one thread runs at a time.
    """

    modules: int
    compiled: int
    has_others: bool
    is_interpreted: bool = INTERPRETED
    has_gil: bool = HAS_GIL

    @classmethod
    def of_installation(cls) -> Build:
        """Return the form of this installation."""
        core = Path(__file__).parent.parent
        compiled = sum(_has_extension(core.joinpath(*name.split("."))) for name in COMPILED)
        others = any(core.glob("masks/masks.*.so")) or any(core.glob("masks/masks.*.pyd"))
        return cls(len(COMPILED), compiled, others)


def _has_extension(path: Path) -> bool:
    """Return True if a module has an extension for this interpreter beside its source."""
    return any(path.with_name(path.name + suffix).is_file() for suffix in EXTENSION_SUFFIXES)
