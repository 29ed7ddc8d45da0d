"""Random patterns of ECMA-262 with assertions."""

from __future__ import annotations

import random


def random_pattern(rng: random.Random, depth: int) -> str:
    """Return a pattern of all kinds of assertions, in one another and in repetitions."""
    kind = rng.random() if depth else 1.0
    if kind < 0.3:
        return "".join(random_pattern(rng, depth - 1) for _ in range(rng.randint(2, 3)))
    if kind < 0.45:
        return f"(?:{random_pattern(rng, depth - 1)}|{random_pattern(rng, depth - 1)})"
    if kind < 0.7:
        times = rng.choice(("*", "+", "?", "{2}", "{1,2}", "{0,4}", "{2,}", "{3,5}", "*?"))
        return f"(?:{random_pattern(rng, depth - 1)}){times}"
    if kind < 0.95:
        return rng.choice(("(?=", "(?!", "(?<=", "(?<!")) + random_pattern(rng, depth - 1) + ")"
    plain = ("a", "b", "-", ".", "[ab]", "[^a]", r"\w", "ab", "a*", "b+", "(?:ab)?", ".*", "")
    return rng.choice(plain if rng.random() < 0.7 else ("^", "$", r"\b", r"\B"))
