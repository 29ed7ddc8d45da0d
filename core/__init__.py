"""The engine: grammars, token masks, decoding and models. It knows no tool and no agent framework.

Names are imported on first use, so that ``import toolgrammar.core`` costs next to nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .errors import ToolGrammarError

_HOME: dict[str, str] = {"ToolGrammarError": "errors"}

__all__ = ["ToolGrammarError"]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f".{_HOME[name]}", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
