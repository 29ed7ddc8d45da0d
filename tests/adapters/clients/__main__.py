"""Does the task with one framework, whole and streamed: ``python -m tests.adapters.clients openai_agents``."""

from __future__ import annotations

import asyncio
import importlib
import inspect
import sys
from typing import Any

from . import shop


def check(done: shop.Done, *, stream: bool, streams: bool) -> None:
    """Raise an AssertionError if a task was not done as it should be."""
    if shop.CALLS != shop.WANTED:
        raise AssertionError(f"the tools were called so: {shop.CALLS}")
    if done.text is not None and shop.ANSWER not in done.text:
        raise AssertionError(f"the agent says {done.text!r}")
    offer: Any = done.offer.model_dump() if hasattr(done.offer, "model_dump") else done.offer
    if offer != shop.OFFER:
        raise AssertionError(f"the object is {done.offer!r}")
    if stream and streams and done.pieces < 2:
        raise AssertionError(f"the answer came in {done.pieces} pieces")


def main(name: str) -> None:
    """Run a module's ``work`` in both ways."""
    driver = importlib.import_module(f"{__package__}.{name}")
    streams = getattr(driver, "STREAMS", True)
    with shop.open_shop() as seen:
        for stream in (False, True):
            shop.CALLS.clear()
            first = len(seen.requests)
            done = driver.work(seen.url, stream)
            if inspect.iscoroutine(done):
                done = asyncio.run(done)
            check(done, stream=stream, streams=streams)
            asked = [each for each in seen.requests[first:] if isinstance(each.get("body"), dict)]
            if asked and streams and stream and not any(each["body"].get("stream") for each in asked):
                raise AssertionError("no request asked for a stream")
            print()  # some frameworks leave an unfinished line
            print(f"{'streamed' if stream else 'whole'}: {len(asked)} requests, {done.pieces} pieces, {done.offer!r}")


if __name__ == "__main__":
    main(sys.argv[1])
