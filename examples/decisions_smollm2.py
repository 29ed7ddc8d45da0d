"""Decisions by a small real model: the probability of each whole answer, and no text to parse.

    pip install toolgrammar
    python examples/decisions_smollm2.py

The model is fetched once. Some labels share a beginning, so their first tokens cannot tell them apart.
"""

from __future__ import annotations

from toolgrammar.core.models import OneOf, Scale, YesNo, load_model

MAIL = "The new printer is broken. I paid 45 euros and want my money back."

QUESTIONS = {
    "wish": OneOf("What does the customer want?", ["request refund", "request invoice", "report bug"]),
    "price": OneOf("How many euros did it cost?", ["4", "45", "450"]),
    "complains": YesNo("Does the customer complain?"),
    "anger": Scale("How angry is the customer?", ["calm", "annoyed", "furious"]),
}


def main() -> None:
    """Print each decision with its distribution."""
    with load_model("smollm2") as model:
        for name, decision in model.decide(MAIL, QUESTIONS, orders=2).items():
            shares = ", ".join(f"{answer} {share:.2f}" for answer, share in decision.probabilities.items())
            value = f"{decision.value:.1f}" if isinstance(decision.value, float) else decision.value
            print(f"{name}: {value} ({shares})")


if __name__ == "__main__":
    main()
