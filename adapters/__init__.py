"""Adapters to agent frameworks, and the command line.

Each framework has a package of its own, which needs that framework and no other::

    from toolgrammar.adapters.langchain import ChatToolGrammar

An adapter translates: tools become a tool set, messages become ours, answers and errors become the framework's. What
may be written is decided below, in ``toolgrammar.core`` and ``toolgrammar.tools``.
"""

from __future__ import annotations

__all__: list[str] = []
