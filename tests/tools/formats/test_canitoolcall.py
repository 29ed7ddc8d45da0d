"""The recorded outputs of CanIToolCall (the package ``canitoolcall``), read by our parsers; each that does not pass is
a policy of ours, named with its reason."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from toolgrammar.core import CallEnd, ReasoningDelta, TextDelta, ToolGrammarError
from toolgrammar.tools import Tool, ToolSet
from toolgrammar.tools.formats import WireFormat, get_format
from toolgrammar.tools.formats.template.format import TemplateFormat

pytest.importorskip("canitoolcall", reason="canitoolcall is not installed")

from canitoolcall.checks import case_status, run_checks
from canitoolcall.chunking import ChunkStrategy, split_text
from canitoolcall.fixtures import Fixture, load_families, load_fixtures
from canitoolcall.results import CheckResult, Observation, ParsedToolCall, ParseResult, Status

#: The format of each model of the suite.
FORMATS = {
    "DeepSeek-V3-0324": "deepseek-v3",
    "DeepSeek-V3.1": "deepseek-v3.1",
    "DeepSeek-V3.2": "deepseek-v3.2",
    "DeepSeek-V4-Flash": "deepseek-v4",
    "DeepSeek-V4.1-Flash": "deepseek-v4.1",
    "gemma-4-31B-it": "gemma-4",
    "GLM-4.5": "glm-4.5",
    "GLM-4.7": "glm-4.7",
    "GLM-5.3": "glm-4.7",
    "gpt-oss-20b": "harmony",
    "Kimi-K2-Instruct-0905": "kimi-k2",
    "Kimi-K2.6": "kimi-k2",
    "Kimi-K3": "kimi-k3",
    "Llama-3.3-70B-Instruct": "llama-json",
    "Llama-4-Scout-17B-16E-Instruct": "llama-4",
    "Mistral-7B-Instruct-v0.3": "mistral-v3",
    "Mistral-Small-3.2-24B-Instruct-2506": "mistral-v11",
    "Magistral-Small-2506": "mistral-v11",
    "Magistral-Small-2509": "mistral-v13",
    "Ministral-3-14B-Reasoning-2512": "mistral-v13",
    "Ministral-3-14B-Instruct-2512": "mistral-v13",
    "Devstral-Small-2507": "mistral-v13",
    "Qwen3-0.6B": "hermes",
    "Qwen3-4B-Thinking-2507": "hermes",
    "Qwen3-4B-Instruct-2507": "hermes",
    "Qwen3.5-9B": "qwen3-coder",
    "Qwen3.8-27B": "qwen3-coder",
    "Qwen3-Coder-30B-A3B-Instruct": "qwen3-coder",
    "Qwen3-Coder-Next": "qwen3-coder",
}

_FAMILIES = load_families()
FIXTURES: dict[str, Fixture] = {fixture.id: fixture for fixture in load_fixtures()}
_STRATEGIES = (ChunkStrategy("char", seed=0), ChunkStrategy("char", seed=1), ChunkStrategy("char", seed=2))


#: Outputs that are read otherwise than the suite expects, and why.
POLICIES = {
    "kimi/k2i-vllm-noise-between-markers": "what stands between the markers of calls is text: nothing is lost",
    "kimi/k3-control-marker-text-in-value": "the value spells the marker that ends it: only its tokens differ",
    "llama/l4-truncated-missing-close-bracket": "a call that was whole when the text was cut is kept",
}

_AFTER = "text stands before calls, not after them"
_OPENED = "the prompt has begun the answer, which the grammar begins"
_ID = "the id and a space after the marker: the format is that of the newer templates"
_WORDS = "words of Python where JSON is due: the format of the template has them, that of the name has not"

#: Turns of the models' own templates that the grammar of the format's name does not admit, and why.
NOT_ADMITTED = {
    **dict.fromkeys(("gemma4/text-after-call", "gemma4/text-after-call-thinking"), _AFTER),
    **dict.fromkeys(("kimi/k3-thinking-disabled-call", "kimi/k3-thinking-disabled-no-call"), _OPENED),
    **dict.fromkeys(("mistral/v3-single-call", "mistral/v3-parallel-calls", "mistral/v3-empty-arguments"), _ID),
    **dict.fromkeys(("qwen3-xml/q35-python-literals", "qwen3-xml/coder-python-literals"), _WORDS),
    "gpt-oss/harmony-compact-json": "JSON without spaces, under the white space of the other turns",
    "kimi/k3-control-marker-text-in-value": POLICIES["kimi/k3-control-marker-text-in-value"],
    "llama/l3-json-answer-not-a-call": "an answer that begins as calls do: the grammar keeps them apart",
}
RENDERED = {
    name: fixture
    for name, fixture in FIXTURES.items()
    if fixture.provenance.kind == "template_render" and fixture.expected is not None and not fixture.truncated
}


def judged(fixture: Fixture) -> tuple[Status, list[CheckResult]]:
    """Return the status of an output, whole and in pieces, and the rows of the suite's checks that do not pass."""
    text = fixture.raw_output
    pieces = {strategy.id.replace("char", "cut"): split_text(text, strategy) for strategy in _STRATEGIES}
    streams = {name: read(fixture, cut) for name, cut in pieces.items()}
    rows = run_checks(fixture, _FAMILIES[fixture.family], Observation(read(fixture, [text]), streams))
    return case_status(rows), [row for row in rows if row.status is not Status.PASS]


def read(fixture: Fixture, pieces: Iterable[str]) -> ParseResult:
    """Return what our parser makes of an output in pieces; calls that it calls malformed are none."""
    wire = get_format(FORMATS[fixture.reference_model.rpartition("/")[2]])
    parser = tools_of(fixture).parser(wire, reasoning="opened" if is_opened(fixture, wire) else "none")
    events: list[Any] = []
    problem = None
    try:
        for piece in pieces:
            events += parser.feed(piece)
        events += parser.close()
    except ToolGrammarError as error:
        problem = f"{type(error).__name__}: {error}"
    calls = [event.call for event in events if isinstance(event, CallEnd)]
    return ParseResult(
        "".join(event.text for event in events if isinstance(event, TextDelta)) or None,
        "".join(event.text for event in events if isinstance(event, ReasoningDelta)) or None,
        tuple(ParsedToolCall(c.name, c.raw or "") for c in calls if not c.fault is not None),
        problem,
    )


def tools_of(fixture: Fixture) -> ToolSet:
    """Return the tools that the model was offered."""
    functions = [tool["function"] for tool in fixture.tools]
    return ToolSet([Tool(f["name"], f.get("description", ""), dict(f.get("parameters", {}))) for f in functions])


def is_opened(fixture: Fixture, wire: WireFormat) -> bool:
    """Return True if the prompt has opened the reasoning."""
    prompt = fixture.generation_prompt
    if prompt is None:
        reference = _FAMILIES[fixture.family].reference_for(fixture.reference_model)
        prompt = "" if reference is None else reference.default_generation_prompt or ""
    return wire.thinking is not None and bool(wire.thinking.start) and prompt.rstrip().endswith(wire.thinking.start)


@pytest.mark.parametrize("name", FIXTURES)
def test_an_output_is_read_as_the_suite_expects(name: str) -> None:
    """Whole and in pieces; white space around text and reasoning is as the template has it."""
    status, rows = judged(FIXTURES[name])
    passes = status in (Status.PASS, Status.SOFT_PASS)
    assert passes is (name not in POLICIES), [(row.check, row.strategy, row.detail) for row in rows[:3]]


def test_the_policies_are_about_outputs_of_the_suite() -> None:
    """None is left of an output that is gone, and the suite is whole."""
    assert POLICIES.keys() <= FIXTURES.keys()
    assert len(FIXTURES) >= 469


@pytest.mark.parametrize("name", RENDERED)
def test_what_a_template_writes_is_admitted(name: str) -> None:
    """The grammar of the format admits the turns that the models' own templates and encoders wrote."""
    fixture = RENDERED[name]
    wire = get_format(FORMATS[fixture.reference_model.rpartition("/")[2]])
    assert isinstance(wire, TemplateFormat)
    wire = wire.with_special(())
    reasoning: Any = "opened" if is_opened(fixture, wire) else "optional"
    grammar = tools_of(fixture).grammar(wire, reasoning=reasoning)
    assert grammar.matches(fixture.raw_output) is (name not in NOT_ADMITTED)
