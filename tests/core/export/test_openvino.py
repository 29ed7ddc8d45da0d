"""`to_ebnf` in openvino-genai: its own engine enforces the exported grammar, with SmolLM2."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import pytest

from toolgrammar.core import Grammar
from toolgrammar.tools import ToolSet

ov = pytest.importorskip("openvino_genai", reason="openvino-genai is not installed")


@pytest.fixture(scope="module")
def write(smollm2_file: Path) -> Callable[[str, Grammar], str]:
    """Writes a text of a grammar, greedily; openvino-genai reads the GGUF file itself."""
    pipeline = ov.LLMPipeline(str(smollm2_file), "CPU")

    def written(prompt: str, grammar: Grammar) -> str:
        config: Any = ov.GenerationConfig()
        config.max_new_tokens = 80
        exported = grammar.to_ebnf()
        assert not exported.unsaid
        config.structured_output_config = ov.StructuredOutputConfig(grammar=exported.text)
        return str(pipeline.generate(prompt, config))

    return written


def get_weather(city: Literal["Oslo", "Rome"], unit: Literal["celsius", "fahrenheit"] = "celsius") -> str:
    """Current weather."""
    return f"18 degrees {unit} in {city}"


def convert(amount: int, to: Literal["euros", "dollars"]) -> str:
    """Convert money."""
    return f"{amount} {to}"


@pytest.mark.parametrize("question", ["Weather in Oslo?", "Convert 30 dollars to euros", "Hello"])
def test_calls(write: Callable[[str, Grammar], str], question: str) -> None:
    """A small model that was not trained for tools writes one valid call of a given tool."""
    tools = ToolSet([get_weather, convert])
    grammar = tools.grammar(tool_choice="required", parallel=False)
    text = write(question, grammar)
    assert grammar.matches(text)
    (call,) = tools.parse(text).tool_calls
    tools.validate(call)


@pytest.mark.parametrize(
    ("grammar", "question"),
    [
        (Grammar.from_regex("(yes|no), [a-z]{3,8}!"), "Is it raining?"),
        (Grammar.from_json_schema({"enum": ["Bergen", "Oslo", {"town": "Trondheim"}]}), "Which town?"),
        (
            Grammar.from_json_schema(
                {
                    "type": "array",
                    "items": {"type": "integer", "minimum": 3, "maximum": 40},
                    "minItems": 2,
                    "maxItems": 3,
                }
            ),
            "Three numbers",
        ),
    ],
)
def test_grammars(write: Callable[[str, Grammar], str], grammar: Grammar, question: str) -> None:
    """Patterns and schemas are enforced too."""
    assert grammar.matches(write(question, grammar))
