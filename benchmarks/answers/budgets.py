"""Is every call valid and honest at every token budget? From the least that a request needs up to 200 tokens.

    python -m benchmarks answers/budgets DATA [--requests 200] [--step 1]

For each request of a file of the Berkeley Function Calling Leaderboard, a call is required and written by a model of
noise under each budget. The noise (Gumbel, so that the greedy choice is a uniform draw at temperature 1) depends on the
seed and on how many bytes were written: what the model would have said does not depend on the budget. So there is an
oracle: the same request with a budget that is large. Checked at each budget:

- the turn is in the grammar, its calls are valid under the function's own schema (`jsonschema`), within the budget;
- a value that is not named in ``ToolCall.cut`` is the one that the model writes when it has room. Turns are not
  compared if the model was asked at other places before their first difference: close to the limit, certain text may
  need another tokenization;
- a call with a cut value is not run by ``ToolSet.call``; ``finish_reason`` is ``length`` if anything was cut;
- below the least budget there is a `BudgetError`, before anything is written, that names the least budget.

The exit code is 1 if anything failed.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np

from benchmarks.shared.data import lines
from benchmarks.shared.noise import Logits, NoiseBackend
from benchmarks.shared.pool import Counts, count
from toolgrammar.core import (
    BudgetError,
    CallEnd,
    Finish,
    InvalidArgumentsError,
    TokenWritten,
    ToolCall,
    UnsupportedSchemaError,
)
from toolgrammar.core.models import Model, load_model
from toolgrammar.tools import ToolSet, to_json_schema

#: The budget of the oracle.
ROOM = 1500

#: By how much what closes is likelier than the rest, in every other request: else strings hardly ever end.
CLOSING = 4.0


@dataclass
class Outcome(Counts):
    """Counts over some requests."""

    requests: int = 0
    refused: int = 0
    turns: int = 0
    closed: int = 0
    cut_calls: int = 0
    whole_values: int = 0
    incomparable: int = 0
    tokens: int = 0


@dataclass(frozen=True)
class Turn:
    """What was written.

    Attributes:
        raw: the text.
        calls: the calls in it.
        reason: why it ended.
        tokens: how many tokens it took.
        asked: after how many bytes the model chose.
    """

    raw: str
    calls: tuple[ToolCall, ...]
    reason: str
    tokens: int
    asked: frozenset[int]


class GumbelBackend(NoiseBackend):
    """A tokenizer, and Gumbel noise.

    Attributes:
        seed: of the noise.
        closing: added to what closes a string, an object or an array.
    """

    def __init__(self, like: Any) -> None:
        super().__init__(like.vocabulary, like.encode, "noise")
        self._closers = np.array([bool(token) and token[:1] in b'"}],' for token in self.vocabulary.tokens])
        self._known: dict[int, Logits] = {}
        self.logits = self._noise
        self.reseed(0, 0.0)

    def reseed(self, seed: int, closing: float) -> None:
        """Another model."""
        self.seed, self.closing = seed, closing
        self._known.clear()

    def _noise(self, written: int) -> Logits:
        found = self._known.get(written)
        if found is None:
            found = np.random.default_rng([self.seed, written]).gumbel(size=self.vocabulary.size).astype(np.float32)
            found[self._closers] += np.float32(self.closing)
            self._known[written] = found
        return found


@cache
def noise() -> tuple[Model, GumbelBackend]:
    """The model; one per process."""
    backend = GumbelBackend(load_model("embedded").backend)
    return Model(backend), backend


def write(tools: ToolSet, budget: int) -> Turn:
    """A turn under a budget."""
    model, _ = noise()
    raw = b""
    asked: set[int] = set()
    calls: list[ToolCall] = []
    for event in model.stream("x", tools=tools, tool_choice="required", max_tokens=budget, trace=True):
        if isinstance(event, TokenWritten):
            if not event.forced:
                asked.add(len(raw))
            raw += event.data
        elif isinstance(event, CallEnd):
            calls.append(event.call)
    assert isinstance(event, Finish)
    return Turn(raw.decode(), tuple(calls), event.reason, event.usage.completion_tokens, frozenset(asked))


def leaves(value: Any, pointer: str = "") -> Iterator[tuple[str, Any]]:
    """The values that have no parts, with their pointers."""
    if isinstance(value, Mapping) and value:
        for key, part in value.items():
            yield from leaves(part, pointer + "/" + key.replace("~", "~0").replace("/", "~1"))
    elif isinstance(value, (list, tuple)) and value:
        for index, part in enumerate(value):
            yield from leaves(part, f"{pointer}/{index}")
    else:
        yield pointer, value


def is_named(pointer: str, cut: Sequence[str]) -> bool:
    """Whether a value, or one that it is a part of and that was written by force as a whole, is named."""
    return any(pointer == each or pointer.startswith(each + "/") for each in cut)


def problems(
    got: Turn, full: Turn, budget: int, tools: ToolSet, validators: Mapping[str, Any], outcome: Outcome
) -> Iterator[str]:
    """What is wrong with the turn of a budget."""
    if got.tokens > budget:
        yield f"over the budget: {got.tokens} tokens"
    if not tools.grammar(tool_choice="required").matches(got.raw):
        yield "not in the grammar: the whole text"
    cut = [call for call in got.calls if call.cut]
    if cut and got.reason != "length":
        yield f"a cut call: and the reason is {got.reason}"
    if not got.calls:
        yield "no call: although one is required"
    pairs = zip(got.raw.encode(), full.raw.encode(), strict=False)
    common = next((place for place, (one, other) in enumerate(pairs) if one != other), len(full.raw.encode()))
    comparable = all(place >= common for place in got.asked ^ full.asked)
    outcome.incomparable += not comparable
    if comparable and got.reason != "length" and got.raw != full.raw:
        yield "another text: although nothing was closed"
    for number, call in enumerate(got.calls):
        if call.error is not None:
            yield f"call with an error: {call.error}"
        for error in validators[call.name].iter_errors(dict(call.arguments)):
            yield f"invalid arguments: {error.message}"
        if call.cut:
            yield from runs(tools, call)
        if not comparable:
            continue
        if number >= len(full.calls) or full.calls[number].name != call.name:
            if not is_named("", call.cut):
                yield f"a call of the budget's: not named as such: {call.name} {call.cut}"
            continue
        whole = dict(leaves(full.calls[number].arguments))
        for pointer, value in leaves(call.arguments):
            if is_named(pointer, call.cut):
                continue
            outcome.whole_values += 1
            if pointer not in whole or whole[pointer] != value:
                yield f"a value of the budget's: {pointer} is {value!r}, not {whole.get(pointer)!r}; named: {call.cut}"


def runs(tools: ToolSet, call: ToolCall) -> Iterator[str]:
    """A cut call that is run all the same."""
    try:
        tools.call(call)
    except InvalidArgumentsError as error:
        if "truncated" not in str(error):
            yield f"another refusal: {error}"
    except Exception as error:
        yield f"another refusal: {error}"
    else:
        yield "a cut call: was run"


def run(line: str, number: int, most: int, step: int) -> Outcome:
    """All budgets of one request."""
    request = json.loads(line)
    outcome = Outcome(requests=1)
    _, backend = noise()
    backend.reseed(number, CLOSING * (number % 2))
    functions = request["functions"]
    try:
        tools = ToolSet.from_any(functions)
        full = write(tools, ROOM)
        # An equal call ends the turn and is not reported; under a budget, its end may differ.
        full = replace(full, calls=tools.parse(full.raw).tool_calls)
    except UnsupportedSchemaError:
        outcome.refused = 1
        return outcome
    validators = {
        each["name"]: jsonschema.Draft202012Validator(to_json_schema(each["parameters"])) for each in functions
    }
    found: list[tuple[int, str]] = []
    try:
        write(tools, 1)
        least = 1
    except BudgetError as error:
        least = int(re.findall(r"needs (\d+) tokens", str(error))[0])
        try:
            write(tools, least - 1)
            found.append((least - 1, "no error: below the least budget"))
        except BudgetError:
            pass
    for budget in range(least, most + 1, step):
        try:
            got = write(tools, budget)
        except Exception as error:
            found.append((budget, f"{type(error).__name__}: {error}"))
            continue
        outcome.turns += 1
        outcome.closed += got.reason == "length"
        outcome.cut_calls += any(call.cut for call in got.calls)
        outcome.tokens += got.tokens
        found += [(budget, text) for text in problems(got, full, budget, tools, validators, outcome)]
    for budget, text in found:
        outcome.fail(text, f"{request['id']}, request {number}, budget {budget}")
    return outcome


def main(data: Path, requests: int = 200, most: int = 200, step: int = 1, workers: int = os.cpu_count() or 1) -> int:
    """Run the benchmark; 1 if anything failed.

    Args:
        requests: how many, spread over the file
        most: the largest budget
        step: every so many-th budget
    """
    jobs = [(line, number, most, step) for number, line in enumerate(lines(data, requests))]
    return count(run, {"": jobs}, ("",), workers)
