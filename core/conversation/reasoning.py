"""Reasoning of models: the markers around it, and splitting it from the answer in text that comes in pieces."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True)
class ReasoningMarkers:
    """The markers around the reasoning of a family of models.

    Names of control tokens in them are written and read as those tokens, all else as text.

    Attributes:
        start: the start marker; empty if there is none.
        end: the end marker.
        after: markup between the end marker and the answer.
    """

    start: str = "<think>"
    end: str = "</think>"
    after: str = ""

    # Those of families; `KNOWN` has all, in the order of their assignment: the most particular first.
    GPT_OSS: ClassVar[ReasoningMarkers]
    MISTRAL: ClassVar[ReasoningMarkers]
    COMMAND: ClassVar[ReasoningMarkers]
    GEMMA: ClassVar[ReasoningMarkers]
    APERTUS: ClassVar[ReasoningMarkers]
    SEED: ClassVar[ReasoningMarkers]
    MINIMAX_M3: ClassVar[ReasoningMarkers]
    KIMI_K3: ClassVar[ReasoningMarkers]
    THINK: ClassVar[ReasoningMarkers]
    KNOWN: ClassVar[tuple[ReasoningMarkers, ...]]


# Sources: the chat templates of the families.
ReasoningMarkers.GPT_OSS = ReasoningMarkers("<|channel|>analysis<|message|>", "<|end|>", "<|start|>assistant")
ReasoningMarkers.MISTRAL = ReasoningMarkers("[THINK]", "[/THINK]")  # Magistral, Ministral
ReasoningMarkers.COMMAND = ReasoningMarkers("<|START_THINKING|>", "<|END_THINKING|>")
ReasoningMarkers.GEMMA = ReasoningMarkers("<|channel>thought\n", "<channel|>")  # Gemma 4
ReasoningMarkers.APERTUS = ReasoningMarkers("<|inner_prefix|>", "<|inner_suffix|>")
ReasoningMarkers.SEED = ReasoningMarkers("<seed:think>", "</seed:think>")
ReasoningMarkers.MINIMAX_M3 = ReasoningMarkers("<mm:think>", "</mm:think>")
ReasoningMarkers.KIMI_K3 = ReasoningMarkers("<|open|>think<|sep|>", "<|close|>think<|sep|>")
ReasoningMarkers.THINK = ReasoningMarkers()  # Qwen, DeepSeek, GLM, Kimi, MiniMax M2, Nemotron, Granite, SmolLM, ...

ReasoningMarkers.KNOWN = tuple(each for each in vars(ReasoningMarkers).values() if isinstance(each, ReasoningMarkers))


class ReasoningSplitter:
    """Splits a text that may begin with reasoning between markers.

    Args:
        start: the start marker, looked for only at the very beginning of the text, white space aside; empty if there
            is none.
        end: the end marker. White space after it is dropped.
        opened: the prompt has begun to reason, so that the text starts inside the reasoning.

    Law: the pieces, joined, do not depend on how the text was cut.
    """

    def __init__(self, start: str = "<think>", end: str = "</think>", *, opened: bool = False) -> None:
        self._start = start.lstrip()  # white space before it is passed over
        self._end = end
        self._pending = ""
        self._state = "inside" if opened else "before" if start else "after"

    @property
    def is_inside(self) -> bool:
        """The reasoning has begun and has not ended."""
        return self._state == "inside"

    def feed(self, text: str) -> tuple[str, str]:
        """Take the next piece; return the reasoning and the answer that are certain now."""
        self._pending += text
        reasoning = ""
        if self._state == "before":
            begun = self._pending.lstrip()
            if begun.startswith(self._start):
                self._pending, self._state = begun[len(self._start) :], "inside"
            elif self._start.startswith(begun):
                return "", ""  # may become the marker
            else:
                self._state = "after"
        if self._state == "inside":
            reasoning, marker, rest = self._pending.partition(self._end)
            if not marker:
                kept = begun_marker(self._pending, self._end)
                self._pending = self._pending[len(self._pending) - kept :]
                return reasoning[: len(reasoning) - kept], ""
            self._pending, self._state = rest, "between"
        if self._state == "between":
            self._pending = self._pending.lstrip()
            if not self._pending:
                return reasoning, ""
            self._state = "after"
        answer, self._pending = self._pending, ""
        return reasoning, answer

    def close(self) -> tuple[str, str]:
        """Return the rest: reasoning that never ended, or text that looked like a marker."""
        rest, self._pending = self._pending, ""
        return (rest, "") if self._state == "inside" else ("", rest)


class ReasoningTrimmer:
    """Trims markers and newlines off reasoning whose extent in tokens is known.

    Args:
        before: text of the start marker, which the reasoning begins with.
        after: text of the end marker and of what follows it, which the reasoning ends with.
    """

    def __init__(self, before: str, after: str) -> None:
        self._to_skip = len(before)  # number of characters of the start marker that are still to come
        self._after = after
        self._held = ""  # text that is not certain: it may be the end marker, or newlines before it
        self._begun = False  # some text was returned

    def feed(self, text: str) -> str:
        """Take the next piece; return the certain text, without a possible end marker and newlines before it."""
        skipped = text[: self._to_skip]
        self._to_skip -= len(skipped)
        self._held += text[len(skipped) :]
        if not self._begun:
            self._held = self._held.lstrip("\n")
        return self._release(self._held[: max(0, len(self._held) - len(self._after))].rstrip("\n"))

    def close(self) -> str:
        """Return the text that was held back, where the end never came."""
        return self._release(self._held)

    def _release(self, text: str) -> str:
        """Return a beginning of the text that was held back, and hold it back no more."""
        self._begun = self._begun or bool(text)
        self._held = self._held[len(text) :]
        return text


def begun_marker(text: str, marker: str) -> int:
    """Return the number of characters at the end of a text that begin a marker, without all of it: 3 of ``a </t`` and
    ``</think>``."""
    return next((size for size in range(min(len(marker) - 1, len(text)), 0, -1) if text.endswith(marker[:size])), 0)
