"""Decisions of a small model: how often the labels' first tokens choose another label than the whole labels.

    python -m benchmarks answers/decisions [--questions 320] [--compared 320] [--sheets FILE] [--keep]

Each question has four labels, of which some share a beginning, and a known right answer: an intent of a message, a
price, and an address. They are made of word lists by a seeded generator. The first token's choice is the label with the
likeliest first token, and the first of several labels with the same one. All figures are counts. The sheets keep the
scores of each prompt, so a stopped run continues from there.
"""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.shared.pool import spread
from benchmarks.shared.sheets import Sheets
from benchmarks.shared.tables import FAMILIES, show
from toolgrammar.core.models import Decides, LocalModel, OneOf, load_model

SEED = 20
#: What questions are made of: sentences of each intent, things, days, and the stems and ends of names of streets.
_WORDS = json.loads(Path(__file__).with_suffix(".json").read_text(encoding="utf-8"))
INTENTS, THINGS, DAYS, STEMS, ENDS = _WORDS.values()


@dataclass(frozen=True)
class Case:
    """A question with its right answer."""

    family: str
    state: str
    question: str
    labels: tuple[str, ...]
    right: str


def cases(count: int, seed: int = SEED) -> Iterator[Case]:
    """So many questions, of each family in turn, all different."""
    draw = random.Random(seed)
    seen: set[tuple[str, tuple[str, ...]]] = set()
    while len(seen) < count:
        family = FAMILIES[len(seen) % len(FAMILIES)]
        case = {"intents": _intent, "prices": _price, "addresses": _address}[family](draw)
        if (case.state, case.labels) not in seen:
            seen.add((case.state, case.labels))
            yield case


def _intent(draw: random.Random) -> Case:
    right = draw.choice(sorted(INTENTS))
    near = [label for label in INTENTS if label != right and label.split()[0] == right.split()[0]]
    far = [label for label in INTENTS if label.split()[0] != right.split()[0]]
    labels = [right, draw.choice(near), *draw.sample(far, 2)]
    draw.shuffle(labels)
    text = draw.choice(INTENTS[right]).format(thing=draw.choice(THINGS), day=draw.choice(DAYS))
    return Case("intents", text, "What does the customer want?", tuple(labels), right)


def _price(draw: random.Random) -> Case:
    thing, number = draw.choice(THINGS), draw.randint(10, 99)
    shorter, longer = number // 10, number * 10 + draw.randint(0, 9)
    other_digit = number // 10 * 10 + (number + draw.randint(1, 9)) % 10
    labels = [*map(str, (number, shorter, longer, other_digit))]
    draw.shuffle(labels)
    text = f"The {thing} arrived on {draw.choice(DAYS)}. I paid {number} euros for it."
    return Case("prices", text, f"How many euros did the {thing} cost?", tuple(labels), str(number))


def _address(draw: random.Random) -> Case:
    stem, other = draw.sample(STEMS, 2)
    labels = [stem + end for end in draw.sample(ENDS, 3)] + [other + draw.choice(ENDS)]
    right = labels[0]
    draw.shuffle(labels)
    text = f"Please bring the {draw.choice(THINGS)} to {draw.randint(1, 80)} {right} on {draw.choice(DAYS)}."
    return Case("addresses", text, "In which street is the delivery?", tuple(labels), right)


#: The prompts of a question: with its state or an empty one, and the labels in the given or the reverse order.
PROMPTS = (("state", 1), ("state", -1), ("empty", 1), ("empty", -1))


def asked(model: LocalModel, case: Case, kind: str, step: int) -> dict[str, list[float]]:
    """Log-probabilities of the labels, of each whole and of each first token, behind one prompt of `decide`."""
    order = range(len(case.labels))[::step]
    state = case.state if kind == "state" else ""
    prompt = Decides.check_question("q", OneOf(case.question, case.labels)).prompt(state, order, False)
    scores = model.choose(prompt, case.labels).scores
    made = [scores[label] for label in case.labels]
    return {"whole": [one.logprob for one in made], "first": [one.logprobs[0] for one in made]}


@cache
def loaded(address: str) -> LocalModel:
    """The model; one per process."""
    options = {} if address == "embedded" else {"threads": 1}  # the processes share the cores; embedded takes no number
    model = load_model(address, **options)
    assert isinstance(model, LocalModel), "a model on a server shows no logits"
    return model


def scored(address: str, case: Case, key: tuple[int, str, int]) -> tuple[tuple[int, str, int], dict[str, list[float]]]:
    """Score one prompt; return its key, too."""
    return key, asked(loaded(address), case, *key[1:])


def shares(logs: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Normalised probabilities."""
    return np.asarray(np.exp(logs - np.logaddexp.reduce(logs)))


def choices(case: Case, scored: Mapping[tuple[str, int], Mapping[str, Sequence[float]]]) -> dict[str, str]:
    """The label that each method chooses, of those whose prompts were scored."""
    logs = {prompt: np.array(one["whole"]) for prompt, one in scored.items()}
    given, back = ("state", 1), ("state", -1)
    weights = {"whole labels": logs[given], "first tokens": np.array(scored[given]["first"])}
    if len(logs) == len(PROMPTS):
        calibrated = {step: logs["state", step] - logs["empty", step] for step in (1, -1)}
        weights["reverse order"] = logs[back]
        weights["two orders"] = shares(logs[given]) + shares(logs[back])
        weights["prior"] = calibrated[1]
        weights["two orders and prior"] = shares(calibrated[1]) + shares(calibrated[-1])
    return {name: case.labels[int(np.argmax(values))] for name, values in weights.items()}


def counted(questions: Sequence[Case], sheet: Mapping[tuple[int, str, int], Any]) -> dict[str, dict[str, int]]:
    """Counts by method, of the questions whose prompts are in the sheet."""
    counts: dict[str, Counter[str]] = {}
    for number, case in enumerate(questions):
        scored = {prompt: sheet[(number, *prompt)] for prompt in PROMPTS if (number, *prompt) in sheet}
        if PROMPTS[0] not in scored:
            continue
        made = choices(case, scored)
        first = scored[PROMPTS[0]]["first"]
        for name, label in made.items():
            count = counts.setdefault(name, Counter())
            count["questions"] += 1
            count["other"] += label != made["whole labels"]
            count["right"] += label == case.right
            count["exact right"] += made["whole labels"] == case.right
            count[f"right: {case.family}"] += label == case.right
            count[f"questions: {case.family}"] += 1
            count["tied"] += name == "first tokens" and first.count(max(first)) > 1
    return {name: dict(count) for name, count in counts.items()}


def main(
    model: str = "smollm2",
    questions: int = 320,
    compared: int = 320,
    workers: int = 2,
    sheets: Path | None = None,
    keep: bool = False,
) -> None:
    """Score what the sheets lack, and show the table.

    Args:
        compared: number of questions with the other prompts
    """
    known, every = Sheets(sheets), list(cases(questions))
    wanted = [(number, *PROMPTS[0]) for number in range(questions)]
    wanted += [(number, *prompt) for number in range(compared) for prompt in PROMPTS[1:]]
    jobs = [(model, every[key[0]], key) for key in wanted if key not in known]
    for _, (key, found) in spread(scored, {"prompts": jobs}, workers):
        known[key] = found
    show("decisions", {"model": model, "seed": SEED, "methods": counted(every, known)}, keep=keep)
