"""llama.cpp's own cases of model outputs, read by the library's parsers.

    python -m benchmarks formats/llama_cpp_cases [--cache FOLDER] [--only NAME] [--keep] [--look]

Takes ``tests/test-chat.cpp`` of llama.cpp from the source distribution of llama-cpp-python, which `templates.py`
fetches. Its test functions are compiled with a C++ compiler (``c++``, or what ``CXX`` names) behind a stand-in that
writes each case down instead of running llama.cpp's parser; nothing of llama.cpp itself is built. A case is a chat
template, an output of a model, the tools, and the calls that llama.cpp reads. The library chooses the format from the
template and reads the output, whole and cut at random. Cases with tools count; those with a schema for the answer, or
that go on with a message, ask for something else. A case passes if names and arguments of the calls are the same; for
an output that ends early, if what was read is a beginning of the calls, or the other way round.
"""

from __future__ import annotations

import json
import os
import random
import re
import subprocess
import tarfile
import tempfile
from collections import Counter
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

from benchmarks.formats.templates import PACKAGES, TextBackend
from benchmarks.shared.sources import CACHE, fetch
from benchmarks.shared.tables import show
from toolgrammar.core import CallEnd, CallStart, Event, Message, ParseError
from toolgrammar.core.conversation import ArgumentsDelta
from toolgrammar.tools import Tool, ToolSet
from toolgrammar.tools.formats import WireFormat, detect_format

#: What writes a case down, in place of llama.cpp's function of that name.
WRITER = Path(__file__).with_name("llama_cpp_writer.cpp").read_text(encoding="utf-8")


def writer(source: str) -> str:
    """Return a program that writes the cases of llama.cpp's test file down."""

    def at(mark: str) -> int:
        return source.index(mark)

    head = source[: at("static void test_peg_parser(")]
    builder = source[at("// Fluent builder for PEG") : at("static void test_msgs_oaicompat_json_conversion() {")]
    cases = source[at("static void test_lfm2_parser(") : at("static void test_template_generation_prompt() {")]
    head = re.sub(r'#include "\.\./tools[^\n]*\n', "", head).replace('"../src/', '"src/')
    head = re.sub(r"return common_chat_templates_ptr\(common_chat_templates_init\([^;]*;", "return nullptr;", head)
    builder = builder.replace(
        "test_peg_parser(tester_.", "the_template = tester_.template_path();\n        test_peg_parser(tester_."
    )
    # What these functions ask of llama.cpp besides parsing is left out.
    cases = cases.replace("common_chat_templates_apply(tmpls.get(), inputs)", "common_chat_params{}")
    cases = re.sub(r'throw std::runtime_error\("[^;]*;', ";", cases)
    whole = head + WRITER + builder + cases + "int main() { test_template_output_peg_parsers(false); }\n"
    return re.sub(r"LOG_(?:INF|DBG|ERR)\((?:[^()]|\([^()]*\))*\);", ";", whole)


def cases_of(root: Path, folder: Path) -> Iterator[dict[str, Any]]:
    """Yield the different cases of llama.cpp's sources."""
    compiler = os.environ.get("CXX", "c++")
    program, made = folder / "cases", folder / "cases.cpp"
    made.write_text(writer((root / "tests/test-chat.cpp").read_text()))
    includes = [f"-I{root / part}" for part in ("", "include", "ggml/include", "common", "src", "vendor")]
    lazily = ["-no-pie", "-Wl,-z,lazy", "-Wl,--unresolved-symbols=ignore-all"]  # what is never called is not there
    subprocess.run(
        [compiler, "-std=c++17", "-O0", "-w", "-fno-pie", *includes, str(made), *lazily, "-o", str(program)], check=True
    )
    done = subprocess.run([str(program)], cwd=root, check=True, capture_output=True, text=True)
    for line in dict.fromkeys(done.stdout.splitlines()):
        yield json.loads(line)


class Reader:
    """The library behind one template."""

    def __init__(self, source: str, special: Collection[str]) -> None:
        self.wire: WireFormat | None = detect_format(source, special)
        self._backend = TextBackend(source)

    def is_opened(self, tools: ToolSet, thinks: bool) -> bool:
        """Return True if the prompt ends with the start of reasoning."""
        thinking = None if self.wire is None else self.wire.thinking
        if thinking is None or not thinking.start:
            return False
        self._backend.encode_prompt([Message("user", "Hey there!")], [tool.to_openai() for tool in tools], "", thinks)
        return self._backend.text.rstrip().endswith(thinking.start.rstrip())

    def events(self, case: dict[str, Any], tools: ToolSet, cut: random.Random | None) -> list[Event]:
        """Return what is read of an output; an output that ends inside a call ends without an error."""
        assert self.wire is not None
        opened = self.is_opened(tools, bool(case["thinking"]))
        parser = tools.parser(self.wire, reasoning="opened" if opened else "optional")
        events, text = [], case["input"]
        while text:
            size = len(text) if cut is None else cut.randint(1, 9)
            events += parser.feed(text[:size])
            text = text[size:]
        try:
            events += parser.close()
        except ParseError:
            if not case["partial"]:
                raise
        return events


def begun(events: list[Event]) -> list[tuple[str, str]]:
    """Return names and arguments of the calls as far as they were read."""
    calls: dict[int, list[str]] = {}
    for event in events:
        if isinstance(event, CallStart):
            calls[event.index] = [event.name, ""]
        elif isinstance(event, ArgumentsDelta):
            calls[event.index][1] += event.text
    return [(name, text) for name, text in calls.values()]


def outcome(reader: Reader, case: dict[str, Any]) -> tuple[str, str]:
    """Return what becomes of a case, and what is to be said about it."""
    if reader.wire is None:
        return "no format", ""
    tools = ToolSet(
        Tool(name, "", json.loads(schema) if schema.strip() else {"type": "object", "properties": {}})
        for name, schema in case["tools"]
    )
    try:
        events = reader.events(case, tools, None)
        again = reader.events(case, tools, random.Random(len(case["input"])))
    except ParseError as error:
        return "other calls", str(error)
    if begun(events) != begun(again):
        return "depends on the cut", f"{begun(events)} != {begun(again)}"
    if case["partial"]:
        read, theirs = json.dumps(begun(events)), json.dumps(case["calls"])
        plain = [re.sub(r'[\s\[\]{}"\\]', "", text) for text in (read, theirs)]
        fits = plain[0].startswith(plain[1]) or plain[1].startswith(plain[0])
        return ("same calls" if fits else "other calls"), f"{read} != {theirs}"
    calls = [event.call for event in events if isinstance(event, CallEnd)]
    read = [[call.name, dict(call.arguments), call.error or ""] for call in calls]
    theirs = [[name, json.loads(text or "{}")] for name, text in case["calls"]]
    same = [each[:2] for each in read] == theirs and not any("malformed" in each[2] for each in read)
    return ("same calls" if same else "other calls"), f"{read} != {theirs}"


def main(cache: Path = CACHE, only: str = "", look: bool = False, keep: bool = False) -> None:
    """Read the cases, and print what differs.

    Args:
        cache: a folder for source distributions
        look: print the cases that differ
    """
    package, version, _ = PACKAGES[0]
    readers: dict[str, Reader] = {}
    counts: dict[str, Counter[str]] = {}
    differing = []
    with tempfile.TemporaryDirectory() as folder, tarfile.open(fetch(package, version, cache)) as archive:
        wanted = re.compile(r"[^/]+/vendor/llama\.cpp/(?:tests/test-chat|models/templates/|[^.]*\.(?:h|hpp)$)")
        archive.extractall(folder, [member for member in archive if wanted.match(member.name)], filter="data")
        root = next(Path(folder).glob("*/vendor/llama.cpp"))
        cases = list(cases_of(root, Path(folder)))
        # There are no vocabularies: what outputs have between angle brackets and bars are a model's control tokens.
        special: dict[str, set[str]] = {}
        for case in cases:
            special.setdefault(case["template"], set()).update(re.findall(r"<\|[a-z_]+\|>", case["input"]))
        for case in cases:
            if not case["tools"] or case["schema"] or case["continued"] or only not in case["template"]:
                continue
            name = case["template"]
            reader = readers.setdefault(name, Reader((root / name).read_text(), special[name]))
            what, note = outcome(reader, case)
            stem = Path(name).stem
            counts.setdefault(stem, Counter())[what] += 1
            if what != "same calls":
                differing.append({"template": stem, "what": what, "input": case["input"], "note": note})
    result = {"version": version, "templates": counts, "differing": differing}
    show("llama_cpp_cases", result, keep=keep)
    for each in differing if look else ():
        wire = readers[f"models/templates/{each['template']}.jinja"].wire
        print(f"\n== {each['template']} ({wire and wire.name}): {each['what']}\n{each['input']}\n-- {each['note']}")
