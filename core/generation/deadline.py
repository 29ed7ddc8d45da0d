"""Deadline of one answer, and the error after it."""

from __future__ import annotations

import time
from dataclasses import dataclass

from ..errors import GenerationTimeoutError


@dataclass(frozen=True)
class Deadline:
    """The end of the time that one answer may take.

    Attributes:
        seconds: the requested timeout; None if there is none.
        end: the time at which it is over, on the monotonic clock.
    """

    seconds: float | None = None
    end: float = float("inf")

    @classmethod
    def after(cls, seconds: float | None) -> Deadline:
        """Return the deadline this many seconds from now; None is never."""
        return cls() if seconds is None else cls(seconds, time.monotonic() + seconds)

    def check(self, progress: str = "") -> None:
        """Raise an error after the deadline.

        Args:
            progress: the progress of the answer, for the message, for example ``"after 12 tokens"``.

        Raises:
            GenerationTimeoutError: the time is over.
        """
        if self.seconds is not None and time.monotonic() >= self.end:
            raise GenerationTimeoutError(
                f"the timeout of {self.seconds} s passed{progress and ' ' + progress}",
                hint="raise the timeout, or lower max_tokens",
            )
