"""The package ``toolgrammar`` itself: the names of its engine and of its tools, and its version.

Everything that ``toolgrammar.core`` and ``toolgrammar.tools`` show can be imported from here::

    from toolgrammar import Grammar, ToolSet, load_model

Names are imported on first use, so ``import toolgrammar`` loads nothing else. The adapters of frameworks are not among
them: each is imported from a package of its own, such as ``toolgrammar.adapters.langchain``.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from toolgrammar.core import *
    from toolgrammar.tools import *

    __version__: str

#: The packages below this one.
_PACKAGES = ("core", "tools", "adapters")


def __getattr__(name: str) -> Any:
    if name in _PACKAGES:
        return import_module(f"toolgrammar.{name}")
    if name == "__version__":
        from importlib.metadata import version

        return version("toolgrammar")
    if name == "__all__":
        return __dir__()
    if not name.startswith("_"):
        for package in ("core", "tools"):
            home = import_module(f"toolgrammar.{package}")
            if name in home.__all__:
                value = getattr(home, name)
                globals()[name] = value
                return value
    raise AttributeError(f"module 'toolgrammar' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(name for package in ("core", "tools") for name in import_module(f"toolgrammar.{package}").__all__)
