"""Instructor: the tools loop is the SDK's, the object Instructor's, by a tool and by a schema."""

from __future__ import annotations

import instructor
import openai

from . import openai_sdk
from .shop import ASK_OFFER, MODEL, Done, Offer


def work(url: str, stream: bool) -> Done:
    """Ask for the object in two modes, and streamed as partial objects."""
    done = openai_sdk.work(url, stream)
    for mode in (instructor.Mode.TOOLS, instructor.Mode.JSON_SCHEMA):
        client = openai.OpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0)
        ask = instructor.from_openai(client, mode=mode)
        messages = [{"role": "user", "content": ASK_OFFER}]
        pieces = 0
        if stream:
            partial = ask.chat.completions.create_partial(
                model=MODEL, response_model=Offer, messages=messages, max_retries=0
            )
            found_so_far = list(partial)
            found, pieces = found_so_far[-1], len(found_so_far)
        else:
            found = ask.chat.completions.create(model=MODEL, response_model=Offer, messages=messages, max_retries=0)
    return Done(done.text, found, pieces)
