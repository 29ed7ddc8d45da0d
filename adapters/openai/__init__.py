"""OpenAI's own client objects over a model in this process: no port, no key, and every call valid.

::

    from toolgrammar.adapters.openai import client

    answers = client("hf:Qwen/Qwen2.5-1.5B-Instruct")
    answers.chat.completions.create(model="hf:Qwen/Qwen2.5-1.5B-Instruct", messages=[...], tools=[...])

What takes an ``openai.OpenAI`` or ``openai.AsyncOpenAI`` takes these: agent frameworks, Instructor, evaluation tools.
Requests go to the application of `toolgrammar.adapters.server`, by a transport of httpx, or of httpx2 if the
SDK imports that (openai 3); nothing leaves the process.
"""

from __future__ import annotations

from .client import async_client, async_http_client, client, http_client

__all__ = ["async_client", "async_http_client", "client", "http_client"]
