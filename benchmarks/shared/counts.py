"""What a program counts: records that add up over processes."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, fields

from typing_extensions import Self

#: Maximum number of examples of failures that are shown.
MAX_EXAMPLES = 10


@dataclass
class Counts:
    """Counts of some runs, and what went wrong in them.

    Attributes:
        failures: what went wrong, by kind; empty if all is well.
        examples: the first failures, in words.
    """

    failures: Counter[str] = field(default_factory=Counter)
    examples: list[str] = field(default_factory=list)

    def add(self, other: Self) -> None:
        """Count other runs in."""
        for one in fields(self):
            setattr(self, one.name, getattr(self, one.name) + getattr(other, one.name))
        self.examples = self.examples[:MAX_EXAMPLES]
