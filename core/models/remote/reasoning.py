"""Reasoning that a server leaves in the text: taken out of it as it comes."""

from __future__ import annotations


class Reasoning:
    """Splits a text that may begin with reasoning between markers, in pieces cut anywhere.

    Args:
        start: begins the reasoning; only at the very beginning of the text, white space aside.
        end: ends it.

    Law: what comes out, joined, does not depend on how the text was cut.
    """

    def __init__(self, start: str = "<think>", end: str = "</think>") -> None:
        self._start = start
        self._end = end
        self._pending = ""
        self._state = "before"

    def feed(self, text: str) -> tuple[str, str]:
        """Take the next piece; return the reasoning and the text that are certain now."""
        self._pending += text
        reasoning = ""
        if self._state == "before":
            begun = self._pending.lstrip()
            if begun.startswith(self._start):
                self._pending, self._state = begun[len(self._start) :], "inside"
            elif self._start.startswith(begun):
                return "", ""  # may become the marker
            else:
                self._state = "behind"
        if self._state == "inside":
            reasoning, found, rest = self._pending.partition(self._end)
            if not found:
                keep = _overlap(self._pending, self._end)
                self._pending = self._pending[len(self._pending) - keep :]
                return reasoning[: len(reasoning) - keep], ""
            self._pending, self._state = rest, "between"
        if self._state == "between":
            self._pending = self._pending.lstrip()
            if not self._pending:
                return reasoning, ""
            self._state = "behind"
        said, self._pending = self._pending, ""
        return reasoning, said

    def close(self) -> tuple[str, str]:
        """The rest: reasoning that was never ended, or text that looked like a marker."""
        rest, self._pending = self._pending, ""
        return (rest, "") if self._state == "inside" else ("", rest)


def _overlap(text: str, marker: str) -> int:
    """How much of the end of ``text`` may begin ``marker``."""
    return next((size for size in range(min(len(marker) - 1, len(text)), 0, -1) if text.endswith(marker[:size])), 0)
