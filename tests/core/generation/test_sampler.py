"""The sampler's law: mask, temperature, top-k, top-p, min-p, draw."""

from __future__ import annotations

from collections import Counter
from math import fsum
from typing import Any

import numpy as np
import pytest

from toolgrammar.core import DecodingError, GenerateParams
from toolgrammar.core.generation.params import OPTIONS
from toolgrammar.core.generation.sampler import Sampler, kept

from .option_values import other

LOGITS = np.array([2.0, 1.0, 0.0, -1.0, 3.0, 0.5], dtype=np.float32)
ALLOWED = np.array([0, 1, 2, 5])


def law(params: GenerateParams) -> dict[int, float]:
    """The exact distribution, written down a second time, in plain Python."""
    ranked = sorted(ALLOWED.tolist(), key=lambda token: -LOGITS[token])
    if params.top_k:
        ranked = ranked[: params.top_k]
    weights = {token: float(np.exp(LOGITS[token] / params.temperature)) for token in ranked}
    total = sum(weights.values())
    kept, mass = {}, 0.0
    for token in ranked:
        if kept and mass >= params.top_p:
            break
        kept[token] = weights[token] / total
        mass += kept[token]
    top = max(kept.values())
    kept = {token: share for token, share in kept.items() if share >= params.min_p * top}
    return {token: share / sum(kept.values()) for token, share in kept.items()}


@pytest.mark.parametrize(
    "params",
    [
        GenerateParams(temperature=1.0, seed=1),
        GenerateParams(temperature=0.5, seed=2),
        GenerateParams(temperature=1.5, top_k=3, seed=3),
        GenerateParams(temperature=1.0, top_p=0.8, seed=4),
        GenerateParams(temperature=1.0, min_p=0.3, seed=5),
        GenerateParams(temperature=2.0, top_k=3, top_p=0.9, min_p=0.2, seed=6),
        GenerateParams(temperature=1.0, top_p=0, seed=7),
    ],
    ids=str,
)
def test_draws_follow_the_law(params: GenerateParams) -> None:
    """20,000 draws fit the exact distribution (chi-square, p > 0.001), and nothing else is ever drawn."""
    sampler = Sampler(params)
    count = 20_000
    drawn = Counter(sampler.choose(LOGITS, ALLOWED) for _ in range(count))
    expected = law(params)
    assert set(drawn) == set(expected)
    statistic = sum((drawn[t] - count * share) ** 2 / (count * share) for t, share in expected.items())
    assert statistic < {1: 0.1, 2: 10.83, 3: 13.82, 4: 16.27}[len(expected)]


def test_greedy_takes_the_best_allowed_token() -> None:
    """Temperature 0 takes the likeliest allowed token, the lowest id among equals."""
    sampler = Sampler(GenerateParams())
    assert sampler.choose(LOGITS, ALLOWED) == 0
    assert sampler.choose(np.zeros(6, dtype=np.float32), np.array([3, 4])) == 3


def test_a_seed_makes_draws_reproducible() -> None:
    """Equal seeds draw equal tokens, different seeds do not."""

    def draw(seed: int) -> list[int]:
        sampler = Sampler(GenerateParams(temperature=1.0, seed=seed))
        return [sampler.choose(LOGITS, ALLOWED) for _ in range(50)]

    assert draw(7) == draw(7) != draw(8)


def sorted_cut(weights: list[float], params: GenerateParams) -> set[int]:
    """What is kept, by the definition: sort everything, then cut."""
    ranked = sorted(range(len(weights)), key=lambda place: (-weights[place], place))
    if params.top_k:
        ranked = ranked[: params.top_k]
    total = fsum(weights[place] for place in ranked)
    found = set()
    for count, place in enumerate(ranked):
        if count and params.top_p < 1.0 and fsum(weights[each] for each in ranked[:count]) >= params.top_p * total:
            break
        if weights[place] >= params.min_p * weights[ranked[0]]:
            found.add(place)
    return found


SHAPES = {
    "peaked": lambda random: random.normal(size=900) * 5,
    "usual": lambda random: random.normal(size=900) * 1.5,
    "nearly flat": lambda random: random.normal(size=900) * 1e-3,
    "flat": lambda random: np.zeros(900),
    "ties": lambda random: random.normal(size=900).round(1) * 3,
    "two values": lambda random: np.where(random.random(900) < 0.5, 0.0, -1.0),
    "a flat tail far away": lambda random: np.concatenate([[0.0], -40 + random.normal(size=899) * 1e-9]),
    "mostly never": lambda random: np.where(random.random(900) < 0.9, -np.inf, random.normal(size=900)),
    "few": lambda random: random.normal(size=6),
}


@pytest.mark.parametrize("few", [256, 2])
@pytest.mark.parametrize("shape", SHAPES)
def test_what_is_kept_is_what_sorting_keeps(shape: str, few: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The set that top-k, top-p and min-p leave is that of the definition, among equals by position."""
    monkeypatch.setattr("toolgrammar.core.generation.sampler.FEW", few)
    monkeypatch.setattr("toolgrammar.core.generation.sampler.RANGES", 2048 if few == 256 else 7)
    random = np.random.default_rng(0)
    for top_k, top_p, min_p in [
        (0, 0.5, 0.0), (0, 0.95, 0.0), (0, 1e-6, 0.0), (0, 0.999999, 0.0), (1, 1.0, 0.0), (40, 1.0, 0.0),
        (899, 1.0, 0.0), (2000, 0.7, 0.0), (0, 1.0, 0.05), (0, 1.0, 1.0), (0, 1.0, 1e-9), (300, 0.3, 0.01),
        (0, 0.0, 0.0), (40, 0.0, 0.0),
    ]:  # fmt: skip
        params = GenerateParams(temperature=1.0, top_k=top_k, top_p=top_p, min_p=min_p)
        scaled = SHAPES[shape](random)
        scaled = scaled - scaled.max()
        weights = np.exp(scaled)
        keep = kept(scaled, weights, params)
        found = set(range(len(scaled))) if keep is None else set(np.flatnonzero(keep).tolist())
        wanted = sorted_cut(weights.tolist(), params)
        # What weighs nothing is never drawn, whether it is kept or not.
        assert {place for place in found if weights[place]} == {place for place in wanted if weights[place]}


def test_minus_infinity_means_never() -> None:
    """A logit of -inf is a probability of zero."""
    sampler = Sampler(GenerateParams(temperature=1.0, seed=0))
    logits = np.array([-np.inf, 1.0, -np.inf], dtype=np.float32)
    assert {sampler.choose(logits, np.array([0, 1, 2])) for _ in range(50)} == {1}


@pytest.mark.parametrize("temperature", [0.0, 1.0])
@pytest.mark.parametrize(("value", "text"), [(np.nan, "nan"), (np.inf, "inf"), (-np.inf, "only -inf")])
def test_bad_logits_are_a_clear_error(temperature: float, value: float, text: str) -> None:
    """NaN and infinity among the allowed logits are named, and so are logits that are too few."""
    sampler = Sampler(GenerateParams(temperature=temperature, seed=0))
    logits = np.array([value, 1.0, value], dtype=np.float32)
    allowed = np.array([0, 2]) if value == -np.inf else np.array([0, 1])
    with pytest.raises(DecodingError, match=f"the model gave {text} for the 2 tokens"):
        sampler.choose(logits, allowed)
    assert sampler.choose(logits, np.array([1])) == 1
    with pytest.raises(DecodingError, match="3 logits"):
        sampler.choose(logits, np.array([0, 3]))


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("size", [1.0, 1e4, 1e37])
@pytest.mark.parametrize("temperature", [5e-324, 1e-300, 1e-30, 1e30, 1e39, 1e308])
def test_no_temperature_overflows(temperature: float, size: float) -> None:
    """A temperature close to zero is greedy, a high one draws from all; neither is NaN, and nothing is warned of."""
    sampler = Sampler(GenerateParams(temperature=temperature, seed=0))
    logits = LOGITS * np.float32(size)
    drawn = {sampler.choose(logits, ALLOWED) for _ in range(100)}
    assert drawn == {0} if temperature < 1 else len(drawn) > (1 if size < 1e37 or temperature > 1e38 else 0)
    assert sampler.choose_among(logits.astype(np.float64)) in range(len(logits))
    assert sampler.draw_first(logits) in range(len(logits))


def test_bias_and_penalty_come_before_temperature() -> None:
    """The draw is the softmax of the allowed logits with their bias and penalty, over the temperature."""
    params = GenerateParams(
        temperature=0.7, seed=9, repetition_penalty=1.6, logit_bias={5: 1.25, 1: -0.5, 4: 90.0, 999: 1.0}
    )
    sampler = Sampler(params)
    sampler.saw([0, 0, 3, 2, 3])
    sampler.forget((2,))
    adjusted = {0: 2.0 / 1.6, 1: 0.5, 2: 0.0, 5: 1.75}
    weights = {token: np.exp(score / 0.7) for token, score in adjusted.items()}
    expected = {token: float(weight / sum(weights.values())) for token, weight in weights.items()}
    drawn = Counter(sampler.choose(LOGITS, ALLOWED) for _ in range(20_000))
    statistic = sum((drawn[t] - 20_000 * share) ** 2 / (20_000 * share) for t, share in expected.items())
    assert statistic < 16.27


@pytest.mark.parametrize("penalty", [5e-324, 1e-40, 1e300])
@pytest.mark.parametrize("bias", [1e308, -1e308, 0.0])
@pytest.mark.parametrize("temperature", [0.0, 1e-9, 1.0])
def test_no_finite_bias_or_penalty_overflows(penalty: float, bias: float, temperature: float) -> None:
    """Numbers that single precision does not have are as good as the greatest that matter."""
    params = GenerateParams(temperature=temperature, seed=1, repetition_penalty=penalty, logit_bias={0: bias})
    sampler = Sampler(params)
    sampler.saw([0, 2])
    assert sampler.choose(LOGITS, ALLOWED) in ALLOWED


def test_the_penalty_is_that_of_transformers() -> None:
    """Positive logits of tokens that were seen are divided by the penalty, others multiplied, as transformers does."""
    torch = pytest.importorskip("torch")
    processors = pytest.importorskip("transformers.generation.logits_process")
    logits = np.random.default_rng(1).normal(size=50).astype(np.float32)
    seen = [3, 7, 7, 20, 49]
    theirs = processors.RepetitionPenaltyLogitsProcessor(1.3)(torch.tensor([seen]), torch.tensor(logits)[None])
    sampler = Sampler(GenerateParams(repetition_penalty=1.3))
    sampler.saw(seen)
    ours = [sampler.choose(logits, np.array(pair)) for pair in zip(range(49), range(1, 50), strict=True)]
    scores = theirs[0].numpy()
    assert ours == [left if scores[left] >= scores[left + 1] else left + 1 for left in range(49)]


@pytest.mark.parametrize("temperature", [0.6, 1.0, 2.0])
@pytest.mark.parametrize("allowed", [[0, 1, 2, 5], [4], [3, 5], list(range(6))])
def test_drawing_first_has_the_same_law(temperature: float, allowed: list[int]) -> None:
    """A first draw from all tokens, and a second from the allowed ones if need be: chi-square against the exact law."""
    sampler = Sampler(GenerateParams(temperature=temperature, seed=11))
    count = 20_000
    drawn: Counter[int] = Counter()
    for _ in range(count):
        token = sampler.draw_first(LOGITS)
        drawn[token if token in allowed else sampler.choose(LOGITS, np.array(allowed))] += 1
    weights = {token: float(np.exp(LOGITS[token] / temperature)) for token in allowed}
    expected = {token: weight / sum(weights.values()) for token, weight in weights.items()}
    assert set(drawn) == set(expected)
    statistic = sum((drawn[t] - count * share) ** 2 / (count * share) for t, share in expected.items())
    assert statistic < {1: 0.1, 2: 10.83, 4: 16.27, 6: 20.52}[len(expected)]


@pytest.mark.parametrize("name", [name for name, row in OPTIONS.items() if row.group == "sampling" and name != "seed"])
def test_an_option_changes_the_first_draw_as_the_choice_or_forbids_it(name: str) -> None:
    """Whatever option of sampling is set: a first draw, if there is one, follows the law of the choice from the mask
    (chi-square of two samples), so an option that truncates is marked as such."""
    options: Any = {"temperature": 1.0, "seed": 12, name: other(name)}
    first, second = Sampler(GenerateParams(**options)), Sampler(GenerateParams(**options))
    for sampler in (first, second):
        sampler.saw([0, 2])
    if first.draw_first(LOGITS) is None:
        return
    ours: Counter[int] = Counter()
    theirs: Counter[int] = Counter()
    for _ in range(4_000):
        token = first.draw_first(LOGITS)
        ours[token if token in ALLOWED else first.choose(LOGITS, ALLOWED)] += 1
        theirs[second.choose(LOGITS, ALLOWED)] += 1
    assert sum((ours[t] - theirs[t]) ** 2 / (ours[t] + theirs[t]) for t in ours | theirs) < 16.27


def test_drawing_first_greedily_is_greedy() -> None:
    """At temperature 0 the first draw, where it is allowed, is the token that the mask would have led to."""
    random = np.random.default_rng(2)
    for _ in range(200):
        logits = random.integers(0, 4, size=12).astype(np.float32)
        allowed = np.flatnonzero(random.random(12) < 0.6)
        sampler = Sampler(GenerateParams(logit_bias={1: 0.5}, repetition_penalty=1.5))
        sampler.saw([2, 3])
        first = sampler.draw_first(logits)
        if first in allowed:
            assert first == sampler.choose(logits, allowed)


def test_what_depends_on_the_mask_is_not_drawn_first() -> None:
    """With an option that truncates, or with logits that are not numbers, the mask comes first."""
    truncating = [name for name, row in OPTIONS.items() if row.truncates]
    assert {"top_k", "top_p", "min_p"} <= set(truncating)
    for name in truncating:
        options: Any = {"temperature": 1.0, name: other(name)}
        assert Sampler(GenerateParams(**options)).draw_first(LOGITS) is None, name
    for value in (np.nan, np.inf):
        assert Sampler(GenerateParams(temperature=1.0)).draw_first(np.array([0.0, value], dtype=np.float32)) is None
