"""Thin translations between the engine and the outside: agent frameworks, an HTTP server, the command line.

Nothing is imported here: each adapter needs one optional framework and is imported by its own name, for example
``from toolgrammar.adapters.langchain import ChatToolGrammar``. An adapter translates and never decides; importing one
never imports another, nor another framework.
"""

from __future__ import annotations

__all__: list[str] = []
