"""vLLM's own tests of tool parsers, run against the library's parsers behind a stand-in for vLLM.

    python -m benchmarks formats/vllm_parsers [--cache FOLDER] [--only NAME] [--keep] [--look]

Takes ``tests/tool_parsers`` of vLLM's source distribution, which `templates.py` fetches, and a package ``vllm`` of a
few hundred lines that has the names the tests import; behind its parser classes are the library's formats. Constants
are read from vLLM's sources, nothing of which is run. Tokenizers of the Hugging Face Hub are replaced by one that cuts
text into words. Tests that ask for something else than reading calls (vLLM's structural tags, its protocol classes and
its registry) are left out by name, and what else fails has a cause, both in ``engine_parsers.json``.
"""

from __future__ import annotations

import ast
import importlib.abc
import importlib.machinery
import json
import re
import sys
import tarfile
import tempfile
import types
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import pytest
from pydantic import BaseModel, ConfigDict, create_model

from benchmarks.shared.sources import CACHE, fetch
from benchmarks.shared.tables import show
from toolgrammar.core import ArgumentsDelta, CallEnd, CallStart, ParseError, TextDelta
from toolgrammar.tools import Tool, ToolSet
from toolgrammar.tools.formats import format_names

VERSION = "0.33.0"


@dataclass(frozen=True)
class Engine:
    """An engine's tests, as `engine_parsers.json` has them.

    Attributes:
        formats: the library's format for each class of parsers; of "first|second", the second counts where its marker
            is in the text.
        markers: what shows the second of two formats, as a regular expression.
        names: names under which the engine's registry has classes.
        out: patterns of the tests that are not about reading calls, and what they are about.
        causes: why tests fail: whose it is, the cause, and the pattern of the tests' names; the first one counts.
            The engine's own: the test asks for something else than the same calls. ``choice``: the library reads it
            otherwise, and says so. ``ours`` (none of these): the engine reads a call that the library does not.
    """

    formats: Mapping[str, str]
    markers: Mapping[str, str]
    names: Mapping[str, str]
    out: Mapping[str, str]
    causes: Sequence[tuple[str, str, str]]

    @classmethod
    def named(cls, name: str) -> Engine:
        """Return an engine of the file."""
        known = json.loads(Path(__file__).with_name("engine_parsers.json").read_text(encoding="utf-8"))
        return cls(**known[name])

    def cause_of(self, test: str) -> tuple[str, str]:
        """Return whose the failure of a test is, and its cause."""
        found = ((whose, cause) for whose, cause, pattern in self.causes if re.search(pattern, test))
        return next(found, ("ours", "not looked into"))

    def is_out(self, test: str) -> bool:
        """Return True if a test is not about reading calls."""
        return any(re.search(pattern, test) for pattern in self.out)


VLLM = Engine.named("vLLM")


# -- the stand-in -----------------------------------------------------------------------------------------------


class Value(BaseModel):
    """A value with any members."""

    model_config = ConfigDict(extra="allow")


def value_class(name: str, /, **members: Any) -> Any:
    """Return a class of values with some members, each with its type, or with a default."""
    given = {key: (one, ...) if isinstance(one, type) else (Any, one) for key, one in members.items()}
    return create_model(name, __base__=Value, **given)


FunctionCall = value_class("FunctionCall", id=None, name="", arguments="")
ToolCall = value_class("ToolCall", id="", type="function", function=FunctionCall)
DeltaFunctionCall = value_class("DeltaFunctionCall", name=None, arguments=None)
DeltaToolCall = value_class("DeltaToolCall", id=None, type=None, index=int, function=None)
DeltaMessage = value_class("DeltaMessage", role=None, content=None, reasoning=None, tool_calls=[])
ExtractedToolCallInformation = value_class(
    "ExtractedToolCallInformation", tools_called=bool, tool_calls=list, content=None
)
FunctionDefinition = value_class("FunctionDefinition", name="", description=None, parameters=None)
ChatCompletionToolsParam = value_class("ChatCompletionToolsParam", type="function", function=FunctionDefinition)


class ChatCompletionRequest(Value):
    """A request."""

    messages: Any = []
    model: Any = None
    tools: Any = None
    tool_choice: Any = None
    skip_special_tokens: bool = True
    include_reasoning: bool = True

    def model_post_init(self, context: Any) -> None:
        """Read tools that are dicts."""
        if isinstance(self.tools, list):
            self.tools = [ChatCompletionToolsParam(**t) if isinstance(t, dict) else t for t in self.tools]


class StandIn:
    """A reader of calls in an engine, on a format of the library."""

    engine: Engine
    tool_format = ""
    _made: ClassVar[dict[tuple[str, type], Any]] = {}

    @classmethod
    def named(cls, name: str) -> Any:
        """Return the stand-in for a class of readers, made once."""
        name = cls.engine.names.get(name, name)
        members = {"tool_format": cls.engine.formats.get(name, "")}
        return cls._made.setdefault((name, cls), type(name, (cls,), members))

    def format_of(self, text: str) -> str:
        """Return the name of the format in which a text has calls."""
        first, *others = self.tool_format.split("|")
        return next((each for each in others if re.search(self.engine.markers[each], text)), first)

    def __init__(self) -> None:
        if self.tool_format.split("|")[0] not in format_names():
            pytest.skip(f"no format for {type(self).__name__}")
        self.prev_tool_call_arr: list[dict[str, Any]] = []
        self.streamed_args_for_tool: list[str] = []
        self.current_tool_id = -1
        self._stream: Any = None

    @staticmethod
    def tool_set(given: Any) -> ToolSet:
        """Return the tools of a request; of those of one name the first."""
        tools: dict[str, Tool] = {}
        for tool in given if isinstance(given, (list, tuple)) else []:
            part = getattr(tool, "function", tool)
            name, parameters = getattr(part, "name", None), getattr(part, "parameters", None)
            if isinstance(name, str) and name not in tools:
                tools[name] = Tool(name, "", parameters if isinstance(parameters, dict) else {"type": "object"})
        return ToolSet(tools.values())

    def noted(self, events: Iterable[Any]) -> Iterator[Any]:
        """Yield events, with what they add to the engine's own lists of calls."""
        for event in events:
            if isinstance(event, CallStart):
                self.current_tool_id = event.index
                self.prev_tool_call_arr.append({"name": event.name, "arguments": {}})
                self.streamed_args_for_tool.append("")
            elif isinstance(event, ArgumentsDelta):
                self.streamed_args_for_tool[event.index] += event.text
            elif isinstance(event, CallEnd) and event.call.fault is None:
                self.prev_tool_call_arr[event.index]["arguments"] = dict(event.call.arguments)
            yield event


class ToolParser(StandIn):
    """A parser of vLLM."""

    engine = VLLM

    def __init__(self, tokenizer: Any, tools: Any = None) -> None:
        super().__init__()
        self.model_tokenizer = tokenizer
        self.tools = tools or []

    @property
    def vocab(self) -> dict[str, int]:
        """The tokenizer's."""
        found: dict[str, int] = self.model_tokenizer.get_vocab()
        return found

    def adjust_request(self, request: Any) -> Any:
        """Return the request."""
        request.skip_special_tokens = False
        return request

    def _tool_set(self, request: Any) -> ToolSet:
        return self.tool_set(self.tools or getattr(request, "tools", None))

    def extract_tool_calls(self, model_output: str, request: Any) -> Any:
        """Read a whole text."""
        text, found = read_whole(self._tool_set(request), self.format_of(model_output), model_output)
        calls = [
            ToolCall(id=call.id, function=FunctionCall(name=call.name, arguments=arguments_of(call))) for call in found
        ]
        return ExtractedToolCallInformation(tools_called=bool(calls), tool_calls=calls, content=text or None)

    def extract_tool_calls_streaming(
        self,
        previous_text: str = "",
        current_text: str = "",
        delta_text: str = "",
        previous_token_ids: Sequence[int] = (),
        current_token_ids: Sequence[int] = (),
        delta_token_ids: Sequence[int] = (),
        request: Any = None,
    ) -> Any:
        """Read a piece."""
        if self._stream is None or (not previous_text and current_text == delta_text):
            self._stream = self._tool_set(request).parser(self.format_of(current_text))
        content, calls = "", {}
        for event in self.noted(self._stream.feed(delta_text)):
            if isinstance(event, TextDelta):
                content += event.text
            elif isinstance(event, CallStart):
                calls[event.index] = DeltaToolCall(
                    id=event.id, type="function", index=event.index, function=DeltaFunctionCall(name=event.name)
                )
            elif isinstance(event, ArgumentsDelta):
                delta = calls.setdefault(event.index, DeltaToolCall(index=event.index, function=DeltaFunctionCall()))
                delta.function.arguments = (delta.function.arguments or "") + event.text
        if not content and not calls:
            return None
        return DeltaMessage(content=content or None, tool_calls=list(calls.values()))


def read_whole(tools: ToolSet, name: str, text: str) -> tuple[str, list[Any]]:
    """Return the text beside the calls of a whole output, and the calls that can be read."""
    parser = tools.parser(name)
    try:
        events = [*parser.feed(text), *parser.close()]
    except ParseError:
        events = [TextDelta(text)]
    said, calls = "", []
    for event in events:
        if isinstance(event, TextDelta):
            said += event.text
        elif isinstance(event, CallEnd):
            call = event.call
            if call.error and call.name in tools:
                call = tools.check_call(call, repair=True)
            if call.fault is not None:
                said += call.raw
            else:
                calls.append(call)
    return said, calls


def arguments_of(call: Any) -> str:
    """Return the arguments of a call as JSON."""
    return json.dumps(dict(call.arguments), ensure_ascii=False)


class ToolParserManager:
    """Of vLLM."""

    get_tool_parser = ToolParser.named


class Words:
    """A tokenizer that cuts text into words, single marks and control tokens."""

    all_special_tokens: tuple[str, ...] = ()
    all_special_ids: tuple[int, ...] = ()
    eos_token_id = 0
    bos_token_id = 0
    unk_token_id = 0

    def __init__(self) -> None:
        self._ids: dict[str, int] = {}
        self._words: list[str] = []

    def tokenize(self, text: str, **options: Any) -> list[str]:
        """Return the pieces of a text."""
        return re.findall(r"<[|｜][^<>\s]+[|｜]>|</?[a-z_:|]+>|\s?\w{1,6}|\s|[^\w\s]", text)

    def encode(self, text: str, **options: Any) -> list[int]:
        """Return the numbers of the pieces."""
        numbers = []
        for word in self.tokenize(text):
            if word not in self._ids:
                self._ids[word] = len(self._words)
                self._words.append(word)
            numbers.append(self._ids[word])
        return numbers

    def decode(self, ids: Any, **options: Any) -> str:
        """Return the text of numbers."""
        return "".join(self._words[i] for i in ([ids] if isinstance(ids, int) else ids))

    def convert_ids_to_tokens(self, ids: Any, **options: Any) -> Any:
        """Return pieces."""
        return self._words[ids] if isinstance(ids, int) else [self._words[i] for i in ids]

    def convert_tokens_to_ids(self, tokens: Any) -> Any:
        """Return numbers."""
        return self.encode(tokens)[0] if isinstance(tokens, str) else [self.encode(t)[0] for t in tokens]

    def convert_tokens_to_string(self, tokens: Sequence[str]) -> str:
        """Return the text of pieces."""
        return "".join(tokens)

    def get_vocab(self) -> dict[str, int]:
        """Return the numbers of the markers that parsers ask for."""
        return _Vocab(self)

    vocab = property(get_vocab)
    is_fast = True

    def add_tokens(self, tokens: Any, **options: Any) -> int:
        """Return nothing new: any token is known."""
        return 0

    add_special_tokens = add_tokens

    def get_added_vocab(self) -> dict[str, int]:
        """Return nothing."""
        return {}

    def __len__(self) -> int:
        return len(self._words)


class _Vocab(dict):  # type: ignore[type-arg]
    def __init__(self, words: Words) -> None:
        super().__init__()
        self._of = words

    def __contains__(self, token: object) -> bool:
        return True

    def get(self, token: Any, default: Any = None) -> Any:
        return self._of.encode(token)[0] if token else default

    __getitem__ = get


def detokenize_incrementally(
    tokenizer: Any,
    all_input_ids: Sequence[int],
    prev_tokens: Any,
    prefix_offset: int = 0,
    read_offset: int = 0,
    **options: Any,
) -> tuple[list[str], str, int, int]:
    """Return the text of the last token."""
    word = tokenizer.decode([all_input_ids[-1]])
    return [word], word, prefix_offset, read_offset


def stand_in(name: str) -> Any:
    """Return what stands for a name of vLLM that is no constant."""
    own = globals().get(name)
    if own is not None and name[0].isupper():
        return own
    if name.endswith("Parser") and name != "ToolParser":
        return ToolParser.named(name)
    if name == "get_tokenizer":
        return lambda *given, **options: Words()
    if name == "detokenize_incrementally":
        return detokenize_incrementally
    return type(name, (Value,), {})


class Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Modules of an engine, made as they are imported; constants are read from the sources.

    Args:
        package: the engine's package.
        sources: the folder that holds it.
        stand_in: gives what stands for a name that is no constant.
    """

    def __init__(self, package: str, sources: Path, stand_in: Callable[[str], Any]) -> None:
        self._package = package
        self._sources = sources
        self._stand_in = stand_in

    def find_spec(self, name: str, path: Any, target: Any = None) -> Any:
        """Take every module of the package, and xgrammar, which only tests of the engine's grammars use."""
        if name.partition(".")[0] in (self._package, "xgrammar"):
            return importlib.machinery.ModuleSpec(name, self, is_package=True)
        return None

    def create_module(self, spec: Any) -> Any:
        """Return a module whose names are found when they are asked for."""
        module = types.ModuleType(spec.name)
        constants = dict(self._constants(spec.name))

        def name_of(name: str) -> Any:
            if name.startswith("__"):
                raise AttributeError(name)
            return constants[name] if name in constants else self._stand_in(name)

        module.__getattr__ = name_of  # type: ignore[method-assign]
        return module

    def exec_module(self, module: Any) -> None:
        """Nothing is run."""

    def _constants(self, name: str) -> Iterator[tuple[str, Any]]:
        source = self._sources / (name.replace(".", "/") + ".py")
        for node in ast.parse(source.read_text()).body if source.exists() else ():
            targets = node.targets if isinstance(node, ast.Assign) else ()
            for target in targets:
                if isinstance(target, ast.Name):
                    try:
                        yield target.id, ast.literal_eval(node.value)  # type: ignore[union-attr]
                    except ValueError:
                        continue


class Collector:
    """Outcomes of the tests, by test.

    Args:
        only: a pattern of the names of the tests to run.
        engine: whose tests they are.
    """

    def __init__(self, only: str, engine: Engine) -> None:
        self.outcomes: dict[str, str] = {}
        self._unread: list[str] = []
        self._only = only
        self._engine = engine

    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        """Leave out what is not about reading calls."""
        items[:] = [i for i in items if re.search(self._only, i.nodeid) and not self._engine.is_out(i.nodeid)]

    def pytest_collectreport(self, report: Any) -> None:
        """Keep why a file of tests cannot be imported."""
        if report.failed and not self._engine.is_out(report.nodeid):
            reason = [line for line in str(report.longrepr).splitlines() if line.startswith("E ")]
            self._unread.append(f"{report.nodeid}: {reason[-1][1:].strip() if reason else report.longrepr}")

    def require_all(self) -> None:
        """Exit if a file of tests could not be imported: its tests would be missing from the counts."""
        if self._unread:
            raise SystemExit("\n".join(("no results, as files of tests could not be imported:", *self._unread)))

    def pytest_runtest_logreport(self, report: Any) -> None:
        """Keep an outcome."""
        if report.when == "call" or report.outcome != "passed":
            kind = report.outcome
            if report.outcome == "failed" and "XPASS(strict)" in str(report.longrepr):
                kind = "passed"  # where vLLM's own parser fails
            elif hasattr(report, "wasxfail"):
                kind = "expected"
            self.outcomes[report.nodeid] = kind


def run_tests(
    engine: Engine, root: Path, places: Sequence[Path], *more: str, part_of: Callable[[str], str], only: str, look: bool
) -> Mapping[str, Any]:
    """Run the tests of some places, print those that failed with their causes, and return the counts.

    Args:
        engine: whose tests they are.
        root: the folder of the engine's sources.
        places: folders of tests.
        more: options of pytest.
        part_of: gives the row of a test.
        only: a pattern of the names of tests.
        look: print why tests fail.
    """
    collector = Collector(only, engine)
    given = ["-q", "--no-header", "-p", "no:cacheprovider", "--continue-on-collection-errors", *more]
    given += ["--tb=short" if look else "--tb=line", "--rootdir", str(root)]
    pytest.main([*given, *map(str, places)], plugins=[collector])
    collector.require_all()
    parts: dict[str, dict[str, int]] = {}
    for test, kind in collector.outcomes.items():
        counts = parts.setdefault(part_of(test), dict.fromkeys(("passed", "failed", "skipped"), 0))
        counts["passed" if kind == "expected" else kind] += 1
    failed = {
        test.rpartition(f"{places[-1].name}/")[2] for test, kind in collector.outcomes.items() if kind == "failed"
    }
    causes = {test: engine.cause_of(test) for test in sorted(failed)}
    for test, cause in causes.items():
        print(test, "|", *cause)
    rows = [
        {"whose": whose, "cause": cause, "tests": count} for (whose, cause), count in Counter(causes.values()).items()
    ]
    return {"files": parts, "causes": rows, "failed": list(causes)}


def main(cache: Path = CACHE, only: str = "", look: bool = False, keep: bool = False) -> None:
    """Run the tests, and print what failed.

    Args:
        cache: a folder for source distributions
        only: a pattern of the names of tests
        look: print why tests fail
    """
    with tempfile.TemporaryDirectory() as folder, tarfile.open(fetch("vllm", VERSION, cache)) as archive:
        wanted = re.compile(
            r"[^/]+/(tests/(tool_parsers|parser/engine)/|tests/__init__|vllm/(tool_parsers|parser)/).*\.py$"
        )
        archive.extractall(folder, [m for m in archive if wanted.match(m.name)], filter="data")
        root = Path(folder) / f"vllm-{VERSION}"
        registry = (root / "vllm/tool_parsers/__init__.py").read_text()
        names = dict(re.findall(r'"([\w-]+)": \([^"]*"\w+",[^"]*"(\w+)"', registry))
        ToolParser.engine = engine = replace(VLLM, names=names)
        sys.meta_path.insert(0, Finder("vllm", root, stand_in))
        import transformers

        transformers.AutoTokenizer.from_pretrained = lambda *given, **more: Words()  # type: ignore[method-assign]
        sys.path.insert(0, str(root))
        for name in ("tests", "tests.parser", "tests.parser.engine", "tests.tool_parsers"):
            file = root / name.replace(".", "/") / "__init__.py"
            file.parent.mkdir(parents=True, exist_ok=True)
            file.touch()
        ini = root / "pytest.ini"
        ini.write_text("[pytest]\nmarkers =\n    skip_global_cleanup\n    slow_test\n    cpu_test\n")

        def file_of(test: str) -> str:
            return test.split("::")[0].rpartition("/test_")[2].removesuffix("_tool_parser.py")

        places = [root / "tests/tool_parsers"]
        report = run_tests(engine, root, places, "-c", str(ini), part_of=file_of, only=only, look=look)
    show("vllm_parsers", report, keep=keep)
