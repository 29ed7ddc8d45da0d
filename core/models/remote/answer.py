"""One answer of a server, assembled from its events; every API fills the same fields."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from ...conversation.events import Usage
from ...conversation.messages import ReasoningBlock
from .transport import RequestCount

#: Finish reasons of complete answers; ``length`` and all others may mean truncation.
_WHOLE = frozenset(
    {"stop", "tool_calls", "function_call", "eos", "eos_token", "end_turn", "stop_sequence", "tool_use", "complete"}
)

#: Minimum power of two that counts as a token budget of the server.
_LEAST_OWN_BUDGET = 1024

#: Maximum number of characters of a server's text that an error shows.
MAX_BRIEF = 400


@dataclass
class RawCall:
    """A call in a server's answer.

    Attributes:
        id: its id; empty if there is none.
        name: name of the tool.
        arguments: text of the arguments.
    """

    id: str = ""
    name: str = ""
    arguments: str = ""


@dataclass
class Answer:
    """One answer, assembled from its chunks.

    Attributes:
        text: text of the answer.
        reasoning: reasoning before it, if the server separates it.
        refusal: the model's refusal to answer.
        calls: tool calls, in order.
        finish: finish reason, in the server's words; None if the answer has not ended.
        usage: the token counts that the server reports.
        model: the model's name in the answer.
        budget: the token budget in the request; None if there was none.
        cut: truncated values reported by a server with our plug-in: pointers into its text, or name and pointer for
            calls.
        malformed: why the provider itself could not read the model's call; empty if it could.
        blocks: pieces of reasoning in the provider's own form.
        dropped: optional fields of the request that the server refused.
        requests: counter of the requests for it so far: those in forms that the server refused, and those that were
            sent again, included.
        is_finish_sure: the finish reason is always true, so that token counts need not be looked at.
        open: blocks of reasoning by their numbers in a stream.
        by_index: the calls by their numbers in a stream.
    """

    text: str = ""
    reasoning: str = ""
    refusal: str = ""
    calls: list[RawCall] = field(default_factory=list)
    finish: str | None = None
    usage: Usage = field(default_factory=Usage)
    model: str | None = None
    budget: int | None = None
    cut: tuple[str, ...] = ()
    malformed: str = ""
    blocks: list[ReasoningBlock] = field(default_factory=list)
    dropped: tuple[str, ...] = ()
    requests: RequestCount = field(default_factory=RequestCount)
    is_finish_sure: bool = False
    open: dict[object, dict[str, Any]] = field(default_factory=dict, repr=False)
    by_index: dict[object, RawCall] = field(default_factory=dict, repr=False)

    def write(self, reasoning: str = "", text: str = "") -> tuple[str, str]:
        """Append to the reasoning and to the text; return both."""
        self.reasoning += reasoning
        self.text += text
        return reasoning, text

    def begin_call(self, index: object, call_id: str, name: str, arguments: Any) -> None:
        """Add a call of a provider's stream: with its arguments, if they are whole, or empty, if pieces follow. The
        reasoning between the last call and this one belongs to it."""
        self.call(index, call_id, name, json.dumps(arguments) if arguments else "")
        self.blocks = [replace(one, call_id=call_id) if one.call_id == "" else one for one in self.blocks]

    def reasoning_block(self, index: object, provider: str) -> dict[str, Any]:
        """Return the data of the reasoning block with a number in the stream; those of a new block if there is none."""
        if index not in self.open:
            self.open[index] = {}
            # Reasoning at the beginning belongs to the turn (None). Later reasoning may belong to the next call, and
            # waits for it: "".
            call_id = "" if self.text or self.calls else None
            self.blocks.append(ReasoningBlock(provider, self.open[index], call_id))
        return self.open[index]

    def end_blocks(self) -> None:
        """End the reasoning: blocks that wait for a call belong to none."""
        self.blocks = [replace(one, call_id=one.call_id or None) for one in self.blocks]

    def call(self, index: object, call_id: str = "", name: str = "", arguments: str = "") -> RawCall:
        """Return the call with a number, with this piece of it added; a new one if there is none."""
        call = self.by_index.get(index)
        # Some servers use index 0 for every call, with different ids.
        if call is None or (call_id and call.id and call_id != call.id):
            call = self.by_index[index] = RawCall()
            self.calls.append(call)
        call.id = call.id or call_id
        call.name = call.name or name
        call.arguments += arguments
        return call

    def used_up(self, window: int | None = None) -> bool | None:
        """Return True if the answer has used up its tokens, so that it may be truncated.

        The finish reason is not sufficient: servers report ``tool_calls`` or ``stop`` for truncated calls (named
        choices of llama_cpp.server, streamed calls of vLLM, incomplete calls of ``transformers serve``), so token
        counts are used too. A server may also have a budget that it does not report (``transformers serve``: 1,024
        tokens), so a count that is a power of two from there counts as one.

        Args:
            window: the context window, if known.

        Returns:
            True: by the finish reason or the token counts. False: no sign of it. None: the request had a budget, but
            there are no token counts.
        """
        if self.finish is not None and self.finish.lower() not in _WHOLE:
            return True
        if self.is_finish_sure:
            return False
        written = self.usage.completion_tokens
        if not written:
            return False if self.budget is None else None
        fills_window = window is not None and self.usage.prompt_tokens + written >= window
        is_power_of_two = written.bit_count() == 1
        has_own_budget = written >= _LEAST_OWN_BUDGET and is_power_of_two
        return fills_window or has_own_budget or (self.budget is not None and written >= self.budget)


def member(value: Any, name: str) -> Any:
    """Return a member of an object that a server sent; None if there is none, or no object."""
    return value.get(name) if isinstance(value, Mapping) else None


def count(value: Any) -> int:
    """Return a number of tokens that a server sent; 0 for anything else."""
    return value if isinstance(value, int) and value > 0 else 0


def brief(text: str) -> str:
    """Return the beginning of a text, on one line."""
    text = " ".join(text.split())
    return text if len(text) <= MAX_BRIEF else text[:MAX_BRIEF] + " ..."
