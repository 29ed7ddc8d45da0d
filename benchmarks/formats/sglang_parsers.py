"""SGLang's own tests of tool-call detectors, run against the library's parsers behind a stand-in for SGLang.

    python -m benchmarks formats/sglang_parsers --source FOLDER [--only NAME] [--keep] [--look]

``--source`` is a checkout of SGLang, or of a fork (its packages have no tests), with ``test/registered``. The package
``sglang`` that the tests import is a stand-in, whose detectors are the library's formats; nothing of SGLang is run.
Tests that ask for something else than reading calls are left out, by name, and what else fails has a cause, both in
``engine_parsers.json``.
"""

from __future__ import annotations

import sys
import unittest
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.formats.vllm_parsers import (
    Engine,
    Finder,
    StandIn,
    Value,
    Words,
    arguments_of,
    read_whole,
    run_tests,
    value_class,
)
from benchmarks.shared.tables import show
from toolgrammar.core import ArgumentsDelta, CallStart, ParseError, TextDelta
from toolgrammar.tools import ToolSet
from toolgrammar.tools.formats import get_format

SGLANG = Engine.named("SGLang")
ToolCallItem = value_class("ToolCallItem", tool_index=-1, name=None, parameters="")
StreamingParseResult = value_class("StreamingParseResult", normal_text="", calls=[])
Function = value_class("Function", name=None, description=None, parameters=None, strict=False)
Tool = value_class("Tool", type="function", function=Function)


class Detector(StandIn):
    """A detector of SGLang."""

    engine = SGLANG

    def __init__(self, *given: Any, **options: Any) -> None:
        super().__init__()
        self._text = self._shown = self._held = ""
        self._tools: ToolSet | None = None

    def has_tool_call(self, text: str) -> bool:
        """Return True if a text may hold calls."""
        wires = map(get_format, self.tool_format.split("|"))
        return any(mark.strip() in text for wire in wires for mark in getattr(wire, "triggers", ()))

    def detect_and_parse(self, text: str, tools: Any) -> Any:
        """Read a whole text."""
        known = self.tool_set(tools)
        said, found = read_whole(known, self.format_of(text), text)
        calls = [
            ToolCallItem(tool_index=known.names.index(call.name), name=call.name, parameters=arguments_of(call))
            for call in found
            if call.name in known  # SGLang drops the others
        ]
        return StreamingParseResult(normal_text=said, calls=calls)

    def parse_streaming_increment(self, new_text: str, tools: Any) -> Any:
        """Read a piece."""
        self._text += new_text
        if self._stream is None or self.format_of(self._text) != self._shown:  # of two formats, it is the other
            self._tools = self._tools or self.tool_set(tools)
            self._shown = self.format_of(self._text)
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
        self.detector = Detector.named(tool_call_parser)()

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


def stand_in(name: str) -> Any:
    """Return what stands for a name of SGLang that is no constant."""
    if name in ("CustomTestCase", "TestCase"):
        return unittest.TestCase
    own = globals().get(name)
    if own is not None and name[0].isupper() and name != "SGLANG":
        return own
    if name.endswith("Detector"):
        return Detector.named(name)
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

    def part_of(test: str) -> str:
        parts = test.rpartition("function_call/")[2].split("::")
        is_class = len(parts) > 1 and parts[1].startswith("Test")
        return parts[1].removeprefix("Test") if is_class else parts[0].removeprefix("test_").removesuffix(".py")

    options = ("-c", "/dev/null", "--import-mode=importlib")
    show(
        "sglang_parsers", run_tests(SGLANG, source, folders, *options, part_of=part_of, only=only, look=look), keep=keep
    )
