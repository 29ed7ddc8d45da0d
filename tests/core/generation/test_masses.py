"""Masses: for each value, how much of the model's probability the grammar left."""

from __future__ import annotations

import math
from typing import Any, Literal

import numpy as np
import pytest

from toolgrammar.core import Finish, Generation, Grammar, JsonMode, Message, load_model
from toolgrammar.core.generation.logprobs import log_mass
from toolgrammar.core.models import LocalModel
from toolgrammar.tools import ToolSet

PERSON = {
    "type": "object",
    "properties": {
        "unit": {"enum": ["celsius", "centi", "kelvin", "kelvins"]},
        "days": {"enum": [1, 10, 12]},
        "note": {"type": "string", "maxLength": 12},
    },
    "required": ["unit", "days", "note"],
    "additionalProperties": False,
}


@pytest.fixture(scope="module")
def model() -> LocalModel:
    """The embedded model."""
    loaded = load_model("embedded")
    assert isinstance(loaded, LocalModel)
    return loaded


def likelihood(model: LocalModel, prompt: list[int], ids: list[int], chosen: list[bool]) -> float:
    """Return the log-probability of the chosen tokens under the model alone, read in a sequence of their own."""
    session = model.backend.start()
    logits = session.extend(prompt).astype(np.float64)
    total = 0.0
    for token_id, counts in zip(ids, chosen, strict=True):
        if counts:
            total += float(logits[token_id] - np.logaddexp.reduce(logits))
        logits = session.extend([token_id]).astype(np.float64)
    session.close()
    return total


def summed(answer: Generation) -> float:
    """Return what the masses and the log-probabilities of an answer add up to."""
    return sum(one.kept for one in answer.masses) + sum(token.logprob or 0.0 for token in answer.tokens)


@pytest.mark.parametrize("seed", range(6))
def test_masses_and_logprobs_are_the_models_own_probability(model: LocalModel, seed: int) -> None:
    """With the log-probabilities under the grammar, the masses are those of the chosen tokens under the model alone."""
    mode = JsonMode(PERSON)
    for jumps in (False, True):
        answer = model.generate(
            "Who?", json_mode=mode, masses=True, logprobs=0, temperature=1.0, seed=seed, jump_forward=jumps
        )
        prompt = model.backend.encode_prompt([Message("user", "Who?")])
        chosen = [not token.forced for token in answer.tokens]
        if not jumps:
            assert sum(one.choices for one in answer.masses) == sum(chosen)
            assert math.isclose(summed(answer), likelihood(model, prompt, list(answer.token_ids), chosen), abs_tol=1e-3)
        assert all(one.kept <= 0 and 0 <= one.least <= 1 and 0 <= one.removed <= 1 for one in answer.masses)


@pytest.mark.parametrize("seed", range(6))
def test_masses_of_whole_words_are_the_models_own_probability(model: LocalModel, seed: int) -> None:
    """A word that is chosen as a whole counts once, with what ends it: the law holds as for tokens."""
    words = ["yes", "no", "yesterday", "nobody", "never"]
    grammar = Grammar.choice(*map(Grammar.literal, words)) + Grammar.literal("!")
    answer = model.generate(
        "Is it?", grammar=grammar, exact_choice=True, masses=True, logprobs=0, temperature=1.0, seed=seed
    )
    (made,), (mass,) = answer.choices, answer.masses
    assert mass.part == "text" and math.isclose(mass.kept, math.log(made.mass), rel_tol=1e-6)
    assert math.isclose(summed(answer), math.log(made.mass * made.probabilities[made.value]), abs_tol=1e-4)


def get_weather(city: str, unit: Literal["celsius", "fahrenheit"] = "celsius") -> str:
    """Current weather of a city."""


def test_each_value_has_its_own(model: LocalModel) -> None:
    """The values of calls are told by call, tool and pointer, in order; all choices are counted once."""
    answer = model.generate(
        "Weather?",
        tools=ToolSet.from_any([get_weather]),
        tool_choice="required",
        max_tokens=120,
        temperature=1.0,
        seed=3,
        masses=True,
        trace=True,
    )
    values = [(one.call, one.pointer) for one in answer.masses if one.part == "value"]
    assert (0, "/city") in values and len(set(values)) == len(values)
    assert all(one.tool == "get_weather" for one in answer.masses if one.part == "value")
    assert answer.trace is not None
    sampled = [token for token in answer.trace.tokens if token.how == "sampled" and token.removed is not None]
    assert sum(one.choices for one in answer.masses) == len(sampled)
    traced = sum(math.log1p(-(token.removed or 0.0)) for token in sampled)
    assert math.isclose(sum(one.kept for one in answer.masses), traced, rel_tol=1e-4, abs_tol=1e-4)


def test_free_text_loses_only_control_tokens(model: LocalModel) -> None:
    """Where any text is allowed the mask removes nothing but control tokens."""
    answer = model.generate("Go.", max_tokens=20, masses=True)
    (text,) = answer.masses
    assert text.part == "text" and text.choices == 20 and text.least > 0.9


def test_streams_tell_them_at_their_end_and_only_if_asked(model: LocalModel) -> None:
    """The last event of a stream has the masses and choices of the whole answer; without the option there are none."""
    options: dict[str, Any] = {"json_mode": JsonMode(PERSON), "exact_choice": True}
    whole = model.generate("Who?", masses=True, **options)
    finish = list(model.stream("Who?", masses=True, **options))[-1]
    assert isinstance(finish, Finish) and finish.masses == whole.masses and finish.choices == whole.choices
    plain = model.generate("Who?", **options)
    assert plain.masses == () and plain.trace is None and plain.raw == whole.raw


def test_single_precision_is_enough_for_a_mass() -> None:
    """The mass of some tokens is that in double precision, however small it is; NaN counts as never."""
    random = np.random.default_rng(0)
    for count in (1, 2, 50, 4_000, 4_999, 5_000):
        for scale in (0.1, 4.0, 200.0):
            logits = (random.normal(size=5_000) * scale).astype(np.float32)
            allowed = np.sort(random.choice(5_000, count, replace=False)).astype(np.intp)
            wide = logits.astype(np.float64)
            wanted = np.logaddexp.reduce(wide[allowed]) - np.logaddexp.reduce(wide)
            assert abs(log_mass(logits, allowed) - wanted) < 1e-5
            logits[allowed[0]] = np.nan
            wide = np.where(np.isnan(logits), -np.inf, logits.astype(np.float64))
            if count not in (1, 5_000):
                wanted = np.logaddexp.reduce(wide[allowed]) - np.logaddexp.reduce(wide)
                assert abs(log_mass(logits, allowed) - wanted) < 1e-5
