"""vLLM's own tests of tool parsers, run against the library's parsers behind a stand-in for vLLM.

    python -m benchmarks formats/vllm_parsers [--cache FOLDER] [--only NAME] [--keep] [--look]

Takes ``tests/tool_parsers`` of vLLM's source distribution, which `templates.py` fetches, and a package ``vllm`` of a
few hundred lines that has the names the tests import; behind its parser classes are the library's formats. Constants
are read from vLLM's sources, nothing of which is run. Tokenizers of the Hugging Face Hub are replaced by one that cuts
text into words. Tests that ask for something else than reading calls (vLLM's structural tags, its protocol classes and
its registry) are left out, by name, in `OUT`; what else fails is listed with its cause (`CAUSES`).
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
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel, ConfigDict, create_model

from benchmarks.shared.results_io import show
from benchmarks.shared.sources import CACHE, fetch
from toolgrammar.core import ArgumentsDelta, CallEnd, CallStart, ParseError, TextDelta
from toolgrammar.tools import Tool, ToolSet
from toolgrammar.tools.formats import format_names, get_format

VERSION = "0.33.0"

#: The library's format for each class of parsers; of two, the second counts where its marker is in the text.
FORMATS = {
    "ApertusToolParser": "apertus",
    "DeepSeekV3ToolParser": "deepseek-v3",
    "DeepSeekV31ToolParser": "deepseek-v3.1",
    "DeepSeekV32EngineToolParser": "deepseek-v3.2",
    "DeepSeekV4EngineToolParser": "deepseek-v4",
    "DeepSeekV41EngineToolParser": "deepseek-v4.1",
    "DotsToolParser": "dots",
    "Ernie45ToolParser": "ernie-4.5",
    "FunctionGemmaToolParser": "functiongemma",
    "Gemma4EngineToolParser": "gemma-4",
    "GigaChat3ToolParser": "gigachat-3|gigachat-3.1",
    "Glm47MoeModelToolParser": "glm-4.7",
    "Granite4ToolParser": "granite-4",
    "Granite20bFCToolParser": "granite-20b-fc",
    "GraniteEngineToolParser": "granite-3",
    "Hermes2ProToolParser": "hermes",
    "HYV3ToolParser": "hunyuan-3-plain",
    "HunyuanA13BToolParser": "hunyuan-a13b",
    "Internlm2ToolParser": "internlm-2",
    "JambaToolParser": "jamba",
    "K2HorizonToolParser": "k2-horizon",
    "KimiK2ToolParser": "kimi-k2",
    "KimiK3ToolParser": "kimi-k3",
    "Lfm2ToolParser": "lfm2",
    "Llama3JsonToolParser": "llama-json",
    "Llama4PythonicToolParser": "llama-4",
    "LongcatFlashToolParser": "longcat",
    "MiMoToolParser": "mimo-2",
    "MiniCPM5XMLToolParser": "minicpm-5",
    "MinimaxM2ToolParser": "minimax-m2",
    "MinimaxM3ToolParser": "minimax-m3",
    "MistralToolParser": "mistral-v13",
    "Olmo3PythonicToolParser": "olmo-3",
    "Phi4MiniJsonToolParser": "phi-4-mini",
    "Plamo3EngineToolParser": "plamo-3",
    "PoolsideV1ToolParser": "glm-4.7",
    "PythonicToolParser": "pythonic",
    "Qwen3EngineToolParser": "qwen3-coder",
    "SeedOssEngineToolParser": "seed-oss",
    "Step3ToolParser": "step-3",
    "Step3p5ToolParser": "qwen3-coder",
    "xLAMToolParser": "xlam",
}

#: Tests that are not about reading calls: pattern of the test's name, and what it is about.
OUT = {
    r"structural_tag|strict|guided|adjust_request|named_tool_choice": "vLLM's grammars",
    r"test_utils\.py": "vLLM's helpers",
    r"regist|is_registered|_is_lazy|parser_manager|lazy": "vLLM's registry",
    r"Delegat|serving|responses_api|parse_delta|engine_|build_response": "vLLM's server",
}


_SPACE = "white space of text: kept as it was written"
_HELPER = "a function or an attribute of vLLM's class"
_SERVER = "vLLM's server: requests, its own grammars, deltas of a certain number"
_KEPT = "text and unknown tools are kept and named, not dropped"
_TOOL = "one model's own: aliases of tool names, marks of a tokenizer, arguments that are left out"
_ORDINARY = "calls inside of text without a marker of their own"
_END = "an end token in the text, which a server leaves out"
_CUT = "a call that the text cuts short: an error here, a part of a call there"
_HELD = "an object of a tool that was not given: sent once it is whole, as it may be a JSON answer"
_BROKEN = "a malformed call: a call with an error here, its name alone there"

#: Why a test fails: pattern of its name, whose it is, the cause. ``vLLM``: the test asks for something else than the
#: same calls. ``choice``: the library reads it otherwise, and says so. ``ours``: vLLM reads a call that it does not.
CAUSES = (
    (r"gemma4.*TestParseGemma4(Args|Array)|functiongemma.*(TestParseArguments|TestBufferDeltaText)", "vLLM", _HELPER),
    (
        r"regex_timeout|preprocess_model_output|list_structure|flush_pending|flushes_(partial|incomplete)",
        "vLLM",
        _HELPER,
    ),
    (r"internlm2.*match_final|named_tool_resolves|parser.*use_ifm_parser|character_split_streaming", "vLLM", _HELPER),
    (r"k2_horizon.*(preserves_large_integer|request_level_format)", "vLLM", _HELPER),
    (r"k2_horizon.*malformed_and_incomplete", "choice", _BROKEN),
    (r"k2_horizon.*mismatched_formats", "choice", "calls in each notation of the family are read"),
    (r"step3p5.*full_input_mixed|stray_end_marker", "vLLM", _HELPER),
    (r"AdjustRequest|structured_outputs|responses_request|round_trip_to_responses|rejected_before", "vLLM", _SERVER),
    (r"streaming_incremental$|complete_json_before_end_marker|lfm2.*trailing_in_single_delta", "vLLM", _SERVER),
    (r"minimax_m3.*keeps_native_syntax", "vLLM", _SERVER),
    (r"k2_horizon.*parses_multiple_calls_and_coerces", "vLLM", _SERVER),
    (
        r"text_before_tool_call|content_before|lfm2.*content_after|whitespace|newline_format|granite4.*complex|jamba",
        "vLLM",
        _SPACE,
    ),
    (r"deepseekv31.*(with_tool|with_multiple_tools)$", "vLLM", "white space of arguments: kept as it was written"),
    (r"deepseekv32.*number_param", "vLLM", "5.0 for a number: a float here"),
    (
        r"deepseekv32.*(string_attr_true_coerced|conversion_fallbacks)",
        "choice",
        'string="true" is a string, unless repair',
    ),
    (r"minimax_m2.*(separate_chunks|multiple_params)", "choice", "an argument without a schema: 5 is a number"),
    (r"with_eos", "choice", _END),
    (r"gigachat31.*|gigachat3.*mixed_content_streaming", "vLLM", _SERVER),
    (
        r"unknown_tool|filters_unknown|fails?_closed|wrapper_is_not_recognized|malformed_block|noise|content_after",
        "choice",
        _KEPT,
    ),
    (
        r"surrounding_text$|interleaved_text|mixed_content_and_multiple|Thank you|malformed_and_incomplete",
        "choice",
        _KEPT,
    ),
    (r"xlam.*streaming_incremental\[(parallel|single_tool_with_(json|think))", "choice", _HELD),
    (r"missing_parameters_and_arguments_key|with_think_tag", "choice", _KEPT),
    (r"minicpm5xml", "choice", _TOOL),
    (r"llama3_json|xlam", "choice", _ORDINARY),
    (r"incomplete_tool_call", "choice", _CUT),
    (r"gemma4.*malformed|gemma4.*three_mixed_calls|invalid_json_still", "choice", _BROKEN),
)


def cause_of(test: str, causes: Sequence[tuple[str, str, str]]) -> tuple[str, str]:
    """Return whose the failure of a test is, and its cause, by the first pattern of its name."""
    found = ((whose, cause) for pattern, whose, cause in causes if re.search(pattern, test))
    return next(found, ("ours", "not looked into"))


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

    tool_format = ""

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


def class_of(name: str, base: type[StandIn], formats: dict[str, str], made: dict[str, Any]) -> Any:
    """Return the stand-in for a class of readers, made once."""
    return made.setdefault(name, type(name, (base,), {"tool_format": formats.get(name, "")}))


class ToolParser(StandIn):
    """A parser of vLLM."""

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

    def _format(self, text: str) -> str:
        first, _, second = self.tool_format.partition("|")
        return second if second and any(mark in text for mark in get_format(second).call_markers) else first

    def _tool_set(self, request: Any) -> ToolSet:
        return self.tool_set(self.tools or getattr(request, "tools", None))

    def extract_tool_calls(self, model_output: str, request: Any) -> Any:
        """Read a whole text."""
        text, found = read_whole(self._tool_set(request), self._format(model_output), model_output)
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
            self._stream = self._tool_set(request).parser(self._format(current_text))
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

    names: dict[str, str] = {}

    @classmethod
    def get_tool_parser(cls, name: str) -> Any:
        """Return the class of a name."""
        return parser_class(cls.names.get(name, name))


CLASSES: dict[str, Any] = {}


def parser_class(name: str) -> Any:
    """Return the stand-in for a class of parsers."""
    return class_of(name, ToolParser, FORMATS, CLASSES)


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
        return parser_class(name)
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
        out: patterns of the names of tests that are not about reading calls.
    """

    def __init__(self, only: str, out: Sequence[str]) -> None:
        self.outcomes: dict[str, str] = {}
        self._unread: list[str] = []
        self._only = only
        self._out = out

    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        """Leave out what is not about reading calls."""
        items[:] = [
            i for i in items if re.search(self._only, i.nodeid) and not any(re.search(o, i.nodeid) for o in self._out)
        ]

    def pytest_collectreport(self, report: Any) -> None:
        """Keep why a file of tests cannot be imported."""
        if report.failed and not any(re.search(o, report.nodeid) for o in self._out):
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
    root: Path, ini: Path, places: Sequence[Path], only: str, out: Sequence[str], *more: str, look: bool
) -> dict[str, str]:
    """Run the tests of some places; return the outcome of each."""
    collector = Collector(only, out)
    given = ["-q", "--no-header", "-p", "no:cacheprovider", "--continue-on-collection-errors", *more]
    given += ["--tb=short" if look else "--tb=line", "--rootdir", str(root), "-c", str(ini)]
    pytest.main([*given, *map(str, places)], plugins=[collector])
    collector.require_all()
    return collector.outcomes


def show_outcomes(
    name: str,
    outcomes: dict[str, str],
    folder: str,
    part_of: Callable[[str], str],
    patterns: Sequence[tuple[str, str, str]],
    *,
    keep: bool,
) -> None:
    """Print the outcomes, with the failed tests by their causes, and keep them as the results of that name.

    Args:
        name: of the results.
        outcomes: of each test.
        folder: what the shown name of a test comes after.
        part_of: gives the row of a test.
        patterns: the causes.
        keep: write the file.
    """
    parts: dict[str, dict[str, int]] = {}
    for test, kind in outcomes.items():
        counts = parts.setdefault(part_of(test), dict.fromkeys(("passed", "failed", "skipped"), 0))
        counts["passed" if kind == "expected" else kind] += 1
    failed = sorted(test.rpartition(folder)[2] for test, kind in outcomes.items() if kind == "failed")
    causes = Counter(cause_of(test, patterns) for test in failed)
    found = [{"whose": whose, "cause": cause, "tests": count} for (whose, cause), count in causes.items()]
    show(name, {"files": parts, "causes": found, "failed": failed}, keep=keep)
    for test in failed:
        print(test, "|", *cause_of(test, patterns))


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
        for name, cls in re.findall(r'"([\w-]+)": \([^"]*"\w+",[^"]*"(\w+)"', registry):
            ToolParserManager.names[name] = cls
        sys.meta_path.insert(0, Finder("vllm", root, stand_in))
        import transformers

        transformers.AutoTokenizer.from_pretrained = lambda *given, **more: Words()  # type: ignore[method-assign]
        sys.path.insert(0, str(root))
        for name in ("tests", "tests.parser", "tests.parser.engine", "tests.tool_parsers"):
            file = root / name.replace(".", "/") / "__init__.py"
            file.parent.mkdir(parents=True, exist_ok=True)
            file.touch()
        (root / "pytest.ini").write_text("[pytest]\nmarkers =\n    skip_global_cleanup\n    slow_test\n    cpu_test\n")
        ini = root / "pytest.ini"
        outcomes = run_tests(root, ini, [root / "tests/tool_parsers"], only, OUT, look=look)

    def file_of(test: str) -> str:
        return test.split("::")[0].rpartition("/test_")[2].removesuffix("_tool_parser.py")

    show_outcomes("vllm_parsers", outcomes, "tool_parsers/", file_of, CAUSES, keep=keep)
