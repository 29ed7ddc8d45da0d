"""vLLM: a plug-in by which ``vllm serve`` and ``vllm.LLM`` write under our grammars.

Installed beside vLLM, it registers itself in each of vLLM's processes (entry point ``vllm.general_plugins``).
``toolgrammar vllm MODEL`` starts vLLM's server with the options that ask for it (`start.server_command`)::

    vllm serve MODEL --structured-outputs-config '{"backend": "outlines"}' \\
        --enable-auto-tool-choice --tool-call-parser toolgrammar

vLLM has a fixed list of backends and imports each where it is used. The plug-in puts a module of its own in the place
of ``outlines``, the one that no installation needs: then a request's schema, regular expression, choice or tool set
(see `envelope`) is written under a `Grammar`, and the tool parser puts the tools of chat completions into such an
envelope. ``docs/engines.md`` says what is enforced, and what the plug-in changes in vLLM.
"""

from __future__ import annotations

from .envelope import envelope
from .plugin import register

__all__ = ["envelope", "register"]
