"""Decisions of a small model: how often the labels' first tokens choose another label than the whole labels.

    python -m benchmarks answers/decisions --sheet FILE [--questions 320] [--compared 320] [--json FILE]

Each question has four labels, of which some share a beginning, and a known right answer: an intent of a message, a
price, and an address. They are made of word lists by a seeded generator. The first token's choice is the label with the
likeliest first token, and the first of several labels with the same one. All figures are counts. The sheet keeps the
scores of each prompt, so a stopped run continues from there.
"""

from __future__ import annotations

import argparse
import json
import random
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from multiprocessing import Process
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.shared.answer_tables import FAMILIES, decisions_table
from benchmarks.shared.results_io import machine
from toolgrammar.core.models import Decides, LocalModel, OneOf, load_model

SEED = 20
INTENTS = {
    "cancel order": ["I don't want the {thing} that I ordered any more.", "Please stop my order of the {thing}."],
    "cancel subscription": [
        "Please end my monthly {thing} plan, I won't renew it.",
        "Stop billing me for {thing} each month.",
    ],
    "cancel appointment": ["I can't come on {day}, please drop my visit.", "Our meeting on {day} must not take place."],
    "change address": [
        "I moved last {day}, please send the {thing} to my new home.",
        "I live in another street since {day}.",
    ],
    "change password": [
        "I want a new secret word to log in.",
        "Someone knows my login secret since {day}, let me set another.",
    ],
    "change plan": ["I'd like the larger {thing} package from {day}.", "Please move me to the cheaper {thing} tariff."],
    "report bug": [
        "The app crashes when I open the {thing} page.",
        "Since {day} the button for the {thing} does nothing.",
    ],
    "report fraud": ["Someone used my card to buy a {thing}.", "On {day} a stranger paid with my account."],
    "report outage": ["The whole site is down since {day}.", "Nobody in our office can reach the {thing} service."],
    "request refund": ["The {thing} is broken, I want my money back.", "Please pay me back for the {thing}."],
    "request invoice": ["Please send me the bill for the {thing}.", "Our accounting needs a receipt for {day}."],
    "request callback": ["Please phone me on {day}.", "Can somebody ring me about the {thing}?"],
}
THINGS = ["lamp", "phone", "music", "printer", "chair", "storage", "radio", "camera"]
DAYS = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"]
STEMS = ["North", "South", "Mill", "Church", "King", "Park", "Station", "River"]
ENDS = [" Street", " Street East", " Square", " Road", "gate", "side", " Lane", " Court"]


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
    random_ = random.Random(seed)
    seen: set[tuple[str, tuple[str, ...]]] = set()
    while len(seen) < count:
        family = FAMILIES[len(seen) % len(FAMILIES)]
        case = {"intents": _intent, "prices": _price, "addresses": _address}[family](random_)
        if (case.state, case.labels) not in seen:
            seen.add((case.state, case.labels))
            yield case


def _intent(random_: random.Random) -> Case:
    right = random_.choice(sorted(INTENTS))
    near = [label for label in INTENTS if label != right and label.split()[0] == right.split()[0]]
    far = [label for label in INTENTS if label.split()[0] != right.split()[0]]
    labels = [right, random_.choice(near), *random_.sample(far, 2)]
    random_.shuffle(labels)
    text = random_.choice(INTENTS[right]).format(thing=random_.choice(THINGS), day=random_.choice(DAYS))
    return Case("intents", text, "What does the customer want?", tuple(labels), right)


def _price(random_: random.Random) -> Case:
    thing, number = random_.choice(THINGS), random_.randint(10, 99)
    near = [
        number // 10,
        number * 10 + random_.randint(0, 9),
        number // 10 * 10 + (number + random_.randint(1, 9)) % 10,
    ]
    labels = [str(number), *map(str, near)]
    random_.shuffle(labels)
    text = f"The {thing} arrived on {random_.choice(DAYS)}. I paid {number} euros for it."
    return Case("prices", text, f"How many euros did the {thing} cost?", tuple(labels), str(number))


def _address(random_: random.Random) -> Case:
    stem, other = random_.sample(STEMS, 2)
    labels = [stem + end for end in random_.sample(ENDS, 3)] + [other + random_.choice(ENDS)]
    right = labels[0]
    random_.shuffle(labels)
    text = f"Please bring the {random_.choice(THINGS)} to {random_.randint(1, 80)} {right} on {random_.choice(DAYS)}."
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


def work(options: argparse.Namespace, part: int) -> None:
    """Score one part of the prompts, and write each into the sheet: first all with state and order, then the others."""
    model = load_model(options.model, threads=1)
    assert isinstance(model, LocalModel), "a model on a server shows no logits"
    questions = list(cases(options.questions))
    wanted = [(number, *PROMPTS[0]) for number in range(options.questions)]
    wanted += [(number, *prompt) for number in range(options.compared) for prompt in PROMPTS[1:]]
    done = read(options.sheet)
    for number, kind, step in wanted:
        if number % options.processes == part and (number, kind, step) not in done:
            found = asked(model, questions[number], kind, step)
            line = json.dumps({"question": number, "kind": kind, "step": step, **found})
            with options.sheet.open("a", encoding="utf-8") as file:
                file.write(line + "\n")


def read(sheet: Path) -> dict[tuple[int, str, int], dict[str, list[float]]]:
    """The scores in a sheet."""
    lines = sheet.read_text(encoding="utf-8").splitlines() if sheet.exists() else []
    return {(one["question"], one["kind"], one["step"]): one for one in map(json.loads, lines)}


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


def main() -> None:
    """Score what the sheet lacks, print the table, and keep the counts."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="smollm2")
    parser.add_argument("--questions", type=int, default=320)
    parser.add_argument("--compared", type=int, default=320, help="number of questions with the other prompts")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--sheet", type=Path, required=True)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    workers = [Process(target=work, args=(options, part)) for part in range(options.processes)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    methods = counted(list(cases(options.questions)), read(options.sheet))
    print(decisions_table({"methods": methods}))
    if options.json is not None:
        result = {"machine": machine(), "model": options.model, "seed": SEED, "methods": methods}
        options.json.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
