"""Anthropic's own client objects over a model in this process: no port, no key, and every call valid.

::

    from toolgrammar.adapters.anthropic import client

    answers = client("hf:Qwen/Qwen2.5-1.5B-Instruct")
    answers.messages.create(model="hf:Qwen/Qwen2.5-1.5B-Instruct", max_tokens=500, messages=[...], tools=[...])

What takes an ``anthropic.Anthropic`` or ``anthropic.AsyncAnthropic`` takes these: agent frameworks, Instructor.
Requests go to the application of `toolgrammar.adapters.server`, by a transport of httpx2; nothing leaves the process.
"""

from __future__ import annotations

from .client import async_client, client

__all__ = ["async_client", "client"]
