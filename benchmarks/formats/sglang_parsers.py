"""SGLang's own tests of tool-call detectors, run against the library's parsers behind a stand-in for SGLang.

    python -m benchmarks formats/sglang_parsers --source FOLDER [--only NAME] [--keep] [--look]

``--source`` is a checkout of SGLang, or of a fork (its packages have no tests), with ``test/registered``. The package
``sglang`` that the tests import is a stand-in, whose detectors are the library's formats; nothing of SGLang is run.
Tests that ask for something else than reading calls are left out, by name, in `OUT`; what else fails is listed with its
cause (`CAUSES`), as by ``vllm_parsers.py``.
"""

from __future__ import annotations

import re
import sys
import unittest
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.formats.vllm_parsers import (
    Finder,
    StandIn,
    Value,
    Words,
    arguments_of,
    class_of,
    read_whole,
    run_tests,
    show_outcomes,
    value_class,
)
from toolgrammar.core import ArgumentsDelta, CallStart, ParseError, TextDelta
from toolgrammar.tools import ToolSet
from toolgrammar.tools.formats import get_format

#: The library's format for each detector; of several, a later one counts where its marker is in the text.
FORMATS = {
    "DeepSeekV3Detector": "deepseek-v3",
    "DeepSeekV31Detector": "deepseek-v3.1",
    "DeepSeekV32Detector": "deepseek-v3.2",
    "DeepSeekV4Detector": "deepseek-v4",
    "Gemma4Detector": "gemma-4",
    "GigaChat3Detector": "gigachat-3|gigachat-3.1",
    "Glm4MoeDetector": "glm-4.5",
    "Glm47MoeDetector": "glm-4.7",
    "GptOssDetector": "harmony",
    "HermesDetector": "hermes",
    "HunyuanDetector": "hunyuan-3-plain|hunyuan-3",
    "InklingDetector": "inkling",
    "KimiK2Detector": "kimi-k2",
    "KimiK3Detector": "kimi-k3",
    "Lfm2Detector": "lfm2",
    "Llama32Detector": "llama-json",
    "MiniCPM5Detector": "minicpm-5",
    "MinimaxM3Detector": "minimax-m3",
    "MistralDetector": "mistral-v13|mistral-v3",
    "MuseGlimmerDetector": "muse",
    "PoolsideV1Detector": "glm-4.7",
    "PythonicDetector": "pythonic|llama-4",
    "Qwen25Detector": "hermes",
    "Qwen3CoderDetector": "qwen3-coder",
}

#: Names under which SGLang's registry has detectors.
NAMES = {
    "hermes": "HermesDetector",
    "qwen": "Qwen25Detector",
    "qwen25": "Qwen25Detector",
    "llama3": "Llama32Detector",
    "mistral": "MistralDetector",
    "minicpm5": "MiniCPM5Detector",
    "minimax-m3": "MinimaxM3Detector",
    "kimi_k2": "KimiK2Detector",
    "kimi_k3": "KimiK3Detector",
    "poolside_v1": "PoolsideV1Detector",
    "hunyuan": "HunyuanDetector",
    "muse": "MuseGlimmerDetector",
    "deepseekv4": "DeepSeekV4Detector",
    "pythonic": "PythonicDetector",
}

#: What shows the second of two formats, as a regular expression.
SHOWS = {
    "gigachat-3.1": r"<\|function_call\|>",
    "hunyuan-3": ":opensource>",
    "llama-4": r"<\|python_start\|>",
    "mistral-v3": r"\[TOOL_CALLS\]\s*\[",
}

#: Files and tests that are not about reading calls: pattern, and what it is about.
OUT = {
    r"test_json_schema_constraint|test_normalize_json|kimik3_structural_tag|StructureConstraint": "SGLang's grammars",
    r"structur(e|al)_(info|tag)|strict|ebnf|constraint|response_format": "SGLang's grammars",
    r"JsonArrayParser|BaseFormatDetector|test_parallel_tool_calls": "SGLang's own classes",
    r"[Rr]easoning|chat_template|tokenizer|EndToEnd|pipeline|test_unknown_tool_name": "other rooms of SGLang",
    r"parse_gemma4_|_infer_|test_infer|bare_counter_|extract_json_array|convert_|test_strip": "functions of detectors",
}

_PRIVATE = "a function or an attribute of SGLang's class"
_DELTAS = "deltas of a certain number or size"
_SPACE = "white space of text: kept as it was written"
_SCHEMA = "a string is read as it stands, by its schema"
_ORDINARY = "calls inside of text without a marker of their own; the parser's buffer"
_TOOL = "one model's own: aliases of tool names, calls without a name, another name before the marker"
_BROKEN = "a malformed or invalid call: a call with an error here, text, or a part of it, there"
_KEPT = "text and unknown tools are kept and named, not dropped"

#: Why a test fails: pattern of its name, whose it is, the cause (see ``vllm_parsers.py``).
CAUSES: tuple[tuple[str, str, str], ...] = (
    (
        r"_bare_counter$|standard_format_with|unexpected_format_returns|on_error_fallback|parse_error_neither",
        "SGLang",
        _PRIVATE,
    ),
    (r"has_tool_call_detects|preserves_underscore|native_tag_is", "SGLang", _PRIVATE),
    (r"multi_token_chunk", "SGLang", _DELTAS),
    (r"stream_end_reports_truncated", "SGLang", "a line in SGLang's log"),
    (r"truncated_no_closing_tags", "choice", _BROKEN),
    (r"trailing_literal_left|stream_end_drops", "choice", "what may begin a marker is text at the end"),
    (r"capabilities|registered_in|parse_arguments_object|tool_call_id|state_reset|no_brackets", "SGLang", _PRIVATE),
    (r"partial_marker|kimik3.*multiple_calls|KimiK2Detector::test_tool_call_completion", "SGLang", _PRIVATE),
    (r"leading_text|text_before|normal_text_before|increment_v3|clean_normal_text", "SGLang", _SPACE),
    (r"split_(markers|across|bot_token)|two_calls|complete_blocks|format_emits|name_comes_before", "SGLang", _DELTAS),
    (r"DeepSeekV.*test_streaming_(json|xml)_format|name_not_emitted", "SGLang", _DELTAS),
    (r"escaped_json", "choice", "a new line that is written as \\n between tags"),
    (r"python_escape|parameter_value_typing", "choice", _SCHEMA),
    (r"PythonicDetector", "choice", _ORDINARY),
    (r"unknown|undeclared|leak|Gemma4.*multiple_calls|with_content_and_eos|one_malformed_call_fails", "choice", _KEPT),
    (r"prose_opening", "choice", "text that begins as calls do is text at its end, not before"),
    (r"Muse|raw_text_tool|payload_name|attr_unescaping|empty_name|bare_counter|nonempty_name", "choice", _TOOL),
    (r"missing_arguments", "choice", "a call without arguments has none"),
    (r"malformed|invalid|mismatched|without_value|orphan_key|case_sensitive", "choice", _BROKEN),
)


ToolCallItem = value_class("ToolCallItem", tool_index=-1, name=None, parameters="")
StreamingParseResult = value_class("StreamingParseResult", normal_text="", calls=[])
Function = value_class("Function", name=None, description=None, parameters=None, strict=False)
Tool = value_class("Tool", type="function", function=Function)


class Detector(StandIn):
    """A detector of SGLang."""

    def __init__(self, *given: Any, **options: Any) -> None:
        super().__init__()
        self._text = self._shown = self._held = ""
        self._tools: ToolSet | None = None

    def _format(self, text: str) -> str:
        first, *others = self.tool_format.split("|")
        return next((each for each in others if re.search(SHOWS[each], text)), first)

    def has_tool_call(self, text: str) -> bool:
        """Return True if a text may hold calls."""
        wires = map(get_format, self.tool_format.split("|"))
        return any(mark.strip() in text for wire in wires for mark in getattr(wire, "triggers", ()))

    def detect_and_parse(self, text: str, tools: Any) -> Any:
        """Read a whole text."""
        known = self.tool_set(tools)
        said, found = read_whole(known, self._format(text), text)
        calls = [
            ToolCallItem(tool_index=known.names.index(call.name), name=call.name, parameters=arguments_of(call))
            for call in found
            if call.name in known  # SGLang drops the others
        ]
        return StreamingParseResult(normal_text=said, calls=calls)

    def parse_streaming_increment(self, new_text: str, tools: Any) -> Any:
        """Read a piece."""
        self._text += new_text
        if self._stream is None or self._format(self._text) != self._shown:  # of two formats, it is the other
            self._tools = self._tools or self.tool_set(tools)
            self._shown = self._format(self._text)
            again = "" if self._stream is None else self._held
            self._stream, self._held = self._tools.parser(self._shown), ""
            new_text = again + new_text
        result = self._result(self._stream.feed(new_text))
        self._held = "" if self.prev_tool_call_arr else (self._held + new_text)[len(result.normal_text) :]
        return result

    def finish(self, *given: Any) -> Any:
        """Read what is left."""
        if self._stream is None:
            return StreamingParseResult()
        try:
            return self._result(self._stream.close())
        except ParseError:
            return StreamingParseResult()

    flush = finish

    def _result(self, events: Sequence[Any]) -> Any:
        result = StreamingParseResult(normal_text="", calls=[])
        for event in self.noted(events):
            if isinstance(event, TextDelta):
                result.normal_text += event.text
            elif isinstance(event, CallStart):
                result.calls.append(ToolCallItem(tool_index=event.index, name=event.name, parameters=""))
            elif isinstance(event, ArgumentsDelta):
                last = result.calls[-1] if result.calls else None
                if last is not None and last.tool_index == event.index:  # one item for what comes at once
                    last.parameters += event.text
                else:
                    result.calls.append(ToolCallItem(tool_index=event.index, parameters=event.text))
        return result


class FunctionCallParser:
    """SGLang's choice of a detector by name."""

    def __init__(self, tools: Any = (), tool_call_parser: str = "", *given: Any, **options: Any) -> None:
        self.tools = tools
        self.detector = detector_class(NAMES.get(tool_call_parser, tool_call_parser))()

    def has_tool_call(self, text: str) -> bool:
        """Return True if a text may hold calls."""
        return bool(self.detector.has_tool_call(text))

    def parse_non_stream(self, text: str) -> tuple[str, list[Any]]:
        """Read a whole text."""
        result = self.detector.detect_and_parse(text, self.tools)
        return result.normal_text, result.calls

    def parse_stream_chunk(self, text: str) -> tuple[str, list[Any]]:
        """Read a piece."""
        result = self.detector.parse_streaming_increment(text, self.tools)
        return result.normal_text, result.calls


CLASSES: dict[str, Any] = {}


def detector_class(name: str) -> Any:
    """Return the stand-in for a class of detectors."""
    return class_of(name, Detector, FORMATS, CLASSES)


def stand_in(name: str) -> Any:
    """Return what stands for a name of SGLang that is no constant."""
    if name in ("CustomTestCase", "TestCase"):
        return unittest.TestCase
    own = globals().get(name)
    if own is not None and name[0].isupper() and name not in ("CLASSES", "FORMATS"):
        return own
    if name.endswith("Detector"):
        return detector_class(name)
    return type(name, (Value,), {}) if name[0].isupper() else partial(_nothing, name)


def _nothing(name: str, *given: Any, **options: Any) -> Any:
    """Stand for a function of SGLang."""
    if name == "get_tokenizer":
        return Words()
    if not name.startswith("register_"):
        raise NotImplementedError(f"SGLang's own function {name}")


def main(*, source: Path, only: str = "", look: bool = False, keep: bool = False) -> None:
    """Run the tests, and print what failed.

    Args:
        source: a checkout of SGLang, or of a fork
        only: a pattern of the names of tests
        look: print why tests fail
    """
    sys.meta_path.insert(0, Finder("sglang", source / "python", stand_in))
    root = source / "test/registered"
    folders = [each for each in (root / "function_call", root / "unit/function_call") if each.exists()]
    outcomes = run_tests(source, Path("/dev/null"), folders, only, OUT, "--import-mode=importlib", look=look)

    def file_of(test: str) -> str:
        parts = test.rpartition("function_call/")[2].split("::")
        is_class = len(parts) > 1 and parts[1].startswith("Test")
        return parts[1].removeprefix("Test") if is_class else parts[0].removeprefix("test_").removesuffix(".py")

    show_outcomes("sglang_parsers", outcomes, "function_call/", file_of, CAUSES, keep=keep)
