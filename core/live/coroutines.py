"""Event loop of the coroutines of live values, imported when there is one: it needs asyncio."""

from __future__ import annotations

from ..basics.event_loop import EventLoop

#: Runs the coroutines of all requests: the connections of a callable belong to an event loop, and outlive a request.
LOOP = EventLoop()
