"""toolgrammar's chat model for LangChain, under the import path of LangChain's integrations."""

from __future__ import annotations

from typing import Any

from toolgrammar.adapters import langchain as adapter
from toolgrammar.adapters.langchain import ChatToolGrammar

__all__ = ["ChatToolGrammar"]


def __getattr__(name: str) -> Any:
    if name in adapter.__all__:
        return getattr(adapter, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
