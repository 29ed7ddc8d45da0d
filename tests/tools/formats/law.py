"""The law of every wire format, along random walks: what a grammar admits, the parser reads, and `validate` takes.

    python -m tests.tools.formats.law [--first SEED] [--seconds SECONDS] [--formats hermes,glm-4.5]

A walk writes a turn token by token under the grammar of random tools: random schemas, names of any alphabet, tools
whose schemas say nothing. The vocabulary has the format's markers, or some of them, as control tokens. Wherever a walk
may, it writes what breaks parsers: markers, quotes, long numbers.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import time
import traceback
from collections import Counter
from collections.abc import Sequence
from typing import Any

import jsonschema

from toolgrammar.core import CallEnd, Grammar, ReasoningDelta, TextDelta, ToolCall, ToolGrammarError, Vocabulary
from toolgrammar.core.json import dump_json, read_json
from toolgrammar.core.reading import Reader
from toolgrammar.tools import Tool, ToolSet, close_objects
from toolgrammar.tools.formats import WireFormat, format_names, get_format
from toolgrammar.tools.formats.gemma import BareCalls
from toolgrammar.tools.formats.nested.calls import NestedCalls
from toolgrammar.tools.formats.template.format import TemplateFormat
from toolgrammar.tools.formats.xml.calls import XmlCalls

from ...core.schema.writing import WORDS, pythonic
from ...schemas import random_schema
from ...whole_masks import MaskError, check_mask
from ..programs.law import WORDS as PIECES_OF_PROGRAMS
from ..programs.law import program_tools
from .common import BREAKING, events_of

#: Names of tools; a format gets those that it can spell.
TOOL_NAMES = (
    "f",
    "get",
    "get_all",
    "a-b",
    "Tool_9",
    "a.b",
    "größe",
    "日本",
    'quo"te',
    "नमस्ते",
    "x y",
    "<f>",
    "🎉",
    "all",
)
#: Names of arguments.
KEYS = (
    "a",
    "b",
    "text",
    "größe",
    "日本",
    "नमस्ते",
    "a\u0300",
    "x_1",
    "a-b",
    "$x",
    "a.b",
    'quo"te',
    "x y",
    "🎉",
    "</k>",
    "=",
)
#: What walks try to write, besides the markers of the format.
HOSTILE = (
    *BREAKING,
    *(
        '"',
        "'",
        "\\",
        '\\"',
        "\n",
        "\n\n",
        "{",
        "}",
        "[",
        "]",
        '"}}',
        "é",
        "\u00a0",
        "\u2028",
        "true",
        "null",
        "-0",
        "1e5",
    ),
    *("9" * 40, "7" * 5_000, "0." + "3" * 400, "1" + "0" * 400 + ".5", "1e308", "123456789012345678901234567890"),
)
#: Maximum of tokens that a walk chooses before it takes the shortest way to the end.
MAX_WALK = 60


class LawError(AssertionError):
    """A breach of the law, with everything needed to see it again."""


def judge(name: str, seed: int) -> str:
    """Write a random turn in a format, and check what is read from it; return what became of it.

    Args:
        name: of a format, or the path of a description.
        seed: of the turn.

    Raises:
        LawError: the turn is not read as it was written, a call is not valid, or a mask is not what `accept` takes.
    """
    family = get_format(name)
    rng = random.Random(f"{family.name} {seed}")
    special = list(getattr(family, "special", ()))
    if rng.random() < 0.4:
        special = [token for token in special if rng.random() < 0.5]
    special += rng.choice(
        ([], ["<tool_call>", "</tool_call>", "<think>", "</think>"], list(getattr(family, "end_tokens", ())))
    )
    special = list(dict.fromkeys(special))
    words = PIECES_OF_PROGRAMS if name == "program" else WORDS
    tokens: list[bytes | None] = [*(bytes((byte,)) for byte in range(256)), *words]
    names = {token: len(tokens) + index for index, token in enumerate(special)}
    vocabulary = Vocabulary([*tokens, *[None] * (len(special) + 1)], eos=[len(tokens) + len(special)], special=names)
    wire = family.for_vocabulary(special)
    tools = _tools(rng, wire)
    options = _options(rng, tools)
    try:
        constraint = tools.grammar(wire, **options).bind(vocabulary)
    except ToolGrammarError as error:
        if options.get("other_spellings"):  # a convenience, which refuses nothing by itself
            try:
                tools.grammar(wire, **{**options, "other_spellings": False})
            except ToolGrammarError:
                return f"refused: {type(error).__name__}"
            raise LawError(f"{name}, seed {seed}: other_spellings refuses: {error}\n{list(tools)}") from error
        return f"refused: {type(error).__name__}"
    begun = _head(rng, tools) if options.get("other_spellings") and rng.random() < 0.8 else ""
    written = _walk(constraint, vocabulary, _pieces(wire), rng, begun)
    text = b"".join(part.encode() if isinstance(part, str) else part for part in written).decode()
    where = f"{name}, seed {seed}: {options}\n{text!r}\n{[(tool.name, tool.parameters) for tool in tools]}"
    calls = _check(text, wire, tools, options, rng, where)
    _check_places(written, calls, tools.grammar(wire, **options, marked=True), where)
    return "written"


def _tools(rng: random.Random, wire: WireFormat) -> ToolSet:
    if wire.name == "program":
        return program_tools(rng)
    tools = []
    strictness: dict[str, Any] = {}
    for name in rng.sample(TOOL_NAMES, rng.randint(1, 3)):
        if isinstance(wire, TemplateFormat):
            try:
                wire._check_name(name)
            except ToolGrammarError:
                name = f"f{len(tools)}"
        tools.append(Tool(name, "", _parameters(rng, wire)))
        if rng.random() < (0.05 if isinstance(wire, (XmlCalls, NestedCalls)) else 0.2):  # tags need names
            strictness[name] = rng.choice(("open", "object", "closed"))
    return ToolSet(tools, strictness=strictness)


def _parameters(rng: random.Random, wire: WireFormat) -> dict[str, Any]:
    kind = rng.random()
    if kind < 0.2:
        return rng.choice(({}, {"type": "object"}, {"type": "object", "properties": {}}))
    if kind < 0.3:
        schema = random_schema(rng, 2)
        return schema if schema.get("type") == "object" else {"type": "object"}
    keys = [key for key in rng.sample(KEYS, rng.randint(1, 4)) if key.isascii() or rng.random() < 0.7]
    if rng.random() < (0.95 if isinstance(wire, (XmlCalls, NestedCalls)) else 0.7):
        keys = [key for key in keys if key.replace("_", "a").isalnum()]
    properties = {key: _property(rng) for key in keys}
    return {"type": "object", "properties": properties, "required": [key for key in keys if rng.random() < 0.5]}


def _property(rng: random.Random) -> Any:
    kind = rng.random()
    if kind < 0.3:
        return {"type": "string"}
    if kind < 0.45:
        return {"type": rng.choice(("integer", "number"))}
    if kind < 0.5:
        return {"type": "integer", "multipleOf": rng.choice((7, 3, 10))}
    if kind < 0.6:
        return {"type": rng.sample(("string", "integer", "boolean", "null", "object", "array", "number"), 2)}
    if kind < 0.65:
        return {}
    schema = random_schema(rng, rng.choice((1, 2)))
    return {} if "$defs" in schema else schema  # its references would point nowhere


def _options(rng: random.Random, tools: ToolSet) -> dict[str, Any]:
    options: dict[str, Any] = {"tool_choice": rng.choice(("auto", "required", "required", rng.choice(tools.names)))}
    if rng.random() < 0.3:
        options["whitespace"] = rng.choice(("compact", "flexible"))
    if rng.random() < 0.2:
        options["distinct"] = True
    if rng.random() < 0.2:
        options["reasoning"] = rng.choice(("optional", "opened"))
    if options["tool_choice"] == "auto" and rng.random() < 0.3:
        options["response_schema"] = {"type": "object", "properties": {"say": {"type": "string"}}, "required": ["say"]}
    elif options["tool_choice"] == "auto" and rng.random() < 0.6:
        options["other_spellings"] = True
    return options


def _head(rng: random.Random, tools: ToolSet) -> str:
    """The beginning of a turn that another family would write: of a call of a tool, or of what is nearly one."""
    name = rng.choice([*tools.names, "nobody"])
    fence = rng.choice(("", "", "```json\n", "```\n", "``` \r\n \n", "```tool_code\n", "```python\n", "```rust\n"))
    head = rng.choice(
        (
            f'{{"name": {dump_json(name)}, "arguments": ',
            f'{{\n  "name": {dump_json(name)},\n  "parameters":',
            f'[{{"type": "function", "name": {dump_json(name)}, "arguments":',
            f'{{"name": {dump_json(name)}, "description": ',
            f"<function={name}>{{",
            f"<function={name}>\n<parameter=",
            f"[{name}(",
            f"{name}(",
        )
    )
    return rng.choice(("", "", " ", "\n\n")) + fence + head[: rng.choice((None, None, None, rng.randint(1, len(head))))]


def _pieces(wire: WireFormat) -> Sequence[str]:
    """What a walk tries to write: what the format is made of, whole and in part, and `HOSTILE`."""
    groups = [getattr(wire, each, ()) for each in ("triggers", "special", "openers", "skips", "frames", "end_tokens")]
    words = [getattr(wire, each, "") for each in ("begin", "finish", "separator", "joint", "parameter_end", "call")]
    thinking = [] if wire.thinking is None else [wire.thinking.start, wire.thinking.end, wire.thinking.after]
    block = list(getattr(wire, "block", None) or ())
    marks = list(filter(None, dict.fromkeys([mark for group in groups for mark in group] + words + thinking + block)))
    return [*marks, *(mark[:-1] for mark in marks if len(mark) > 1), *HOSTILE]


def _walk(
    constraint: Any, vocabulary: Vocabulary, pieces: Sequence[str], rng: random.Random, begun: str
) -> list[bytes | str]:
    """Return a random turn in pieces, control tokens as their names; as far as it may, it begins with a text."""
    matcher = constraint.matcher()
    spelled = {number: name for name, number in vocabulary.special.items()}
    written: list[bytes | str] = []
    for byte in begun.encode():
        if not matcher.accept(byte):
            break
        written.append(bytes((byte,)))
    for _ in range(rng.choice((5, 20, MAX_WALK))):
        _check_mask(matcher)
        if forced := matcher.forced_bytes():
            matcher.accept_bytes(forced)
            written.append(forced)
            continue
        if rng.random() < 0.25:
            for byte in rng.choice(pieces).encode():
                if not matcher.accept(byte):
                    break
                written.append(bytes((byte,)))
            continue
        allowed = matcher.allowed_tokens()
        if not allowed:
            break
        likely = [t for t in allowed if t >= 256 or 32 <= t < 127] if rng.random() < 0.9 else allowed
        closing = [t for t in allowed if t >= 256 or t in b'"]},>)']
        token = rng.choice((closing if rng.random() < 0.3 else likely) or likely or allowed)
        matcher.accept(token)
        if token in vocabulary.eos:
            break
        written.append(spelled.get(token) or vocabulary.tokens[token] or b"")
    if not matcher.is_finished:
        written += matcher.shortest_parts()
    return written


def _check_mask(matcher: Any) -> None:
    """The mask has the tokens that `accept` takes."""
    try:
        check_mask(matcher)
    except MaskError as error:
        raise LawError(str(error)) from None


def _check(
    text: str,
    wire: WireFormat,
    tools: ToolSet,
    options: dict[str, Any],
    rng: random.Random,
    where: str,
) -> list[ToolCall]:
    """Check what the parser reads; return the calls."""
    reading = {key: options[key] for key in ("response_schema", "other_spellings") if key in options}
    if options.get("reasoning") == "opened":
        reading["reasoning"] = "opened"
    try:
        whole = events_of(tools, wire, [text], **reading)
        size = rng.randint(1, 9)
        for pieces in ([text[at : at + size] for at in range(0, len(text), size)], [*text[:3_000], text[3_000:]]):
            if events_of(tools, wire, pieces, **reading) != whole:
                raise LawError(f"another reading in pieces\n{where}")
    except ToolGrammarError as error:
        raise LawError(f"{error}\n{where}") from error
    parser = tools.parser(wire, **reading)
    parser.feed(text)
    parser.close()
    is_other = [edit.why for edit in parser.leniencies] == ["other_spelling"]
    if parser.leniencies and not (is_other and "other_spellings" in options):
        raise LawError(f"read leniently: {parser.leniencies}\n{where}")
    calls = [event.call for event in whole if isinstance(event, CallEnd)]
    said = "".join(event.text for event in whole if isinstance(event, TextDelta))
    for call in calls:
        if call.error is not None and (tools._strictness.get(call.name) != "object" or call.fault is not None):
            raise LawError(f"{call.error}\n{where}")
        _check_against_jsonschema(tools, call, where)
    if is_other and (not calls or said.strip()):
        raise LawError(f"another spelling: calls {calls}, text {said!r}\n{where}")
    choice = options["tool_choice"]
    if choice != "auto" and (not calls or said.strip()):
        raise LawError(f"calls {calls}, text {said!r}\n{where}")
    if choice in tools.names and [call.name for call in calls] != [choice]:
        raise LawError(f"not one call of {choice}: {calls}\n{where}")
    if options.get("distinct") and len({call.name for call in calls}) < len(calls):
        raise LawError(f"a tool is called twice\n{where}")
    if not calls and "response_schema" in options and "say" not in read_json(said):
        raise LawError(f"no JSON answer: {said!r}\n{where}")
    if not calls and not options.keys() & {"response_schema", "reasoning"} and said.strip() != _text(text, wire):
        raise LawError(f"the text is read as {said!r}\n{where}")
    # The history form of Gemma sorts names that the schema does not declare among the others.
    is_written_apart = isinstance(wire, BareCalls) and any(
        call.arguments.keys() - tools[call.name].parameters.get("properties", {}).keys() for call in calls
    )
    # What nested tags cannot say is JSON in its element, which the history form, without a schema, does not know.
    if isinstance(wire, NestedCalls) and re.search(r"<[^<>]+>[ \n\t\r]*[\[{]", text):
        is_written_apart = True
    if "reasoning" not in options and any(isinstance(event, ReasoningDelta) for event in whole):
        raise LawError(f"reasoning where there is none\n{where}")
    if (
        calls
        and options.get("whitespace", "single") == "single"
        and "reasoning" not in options
        and not is_written_apart
        and not is_other
    ):
        _check_rendered(calls, wire, tools, options, where)
    return calls


def _check_places(written: Sequence[bytes | str], calls: Sequence[ToolCall], grammar: Grammar, where: str) -> None:
    """By its marks, the text has the same calls, and each value is where it is written."""
    reader = Reader(grammar)
    for piece in written:
        if isinstance(piece, str):
            reader.feed_control(piece)
        else:
            reader.feed(piece)
    reader.end()
    if reader.is_lost:
        raise LawError(f"lost after {bytes(reader.text)!r}\n{where}")
    text = bytes(reader.text)
    found = [call for call in reader.calls(text) if call.tool is not None]
    read = [(call.tool, call.values[0].data(text), call.is_whole) for call in found]
    if read != [(call.name, dict(call.arguments), True) for call in calls]:
        raise LawError(f"by its marks: {read}\nparsed: {calls}\n{where}")
    for call in found:
        name = text[slice(*call.name)].decode()
        if not name and text[: call.name[0]].endswith(b"```python\n"):  # a block of code has no name
            continue
        if call.tool not in (name, json.loads(name.join('""') if "\\" in name else dump_json(name))):
            raise LawError(f"the name {name!r} of {call.tool}\n{where}")


def _text(turn: str, wire: WireFormat) -> str:
    """Return what a turn without calls says."""
    for end in getattr(wire, "ends", ()):
        turn = turn.removesuffix(end)
    turn = turn.removesuffix(getattr(wire, "trail", "")).removeprefix(getattr(wire, "unthought", ""))
    start, end = (getattr(wire, each, "") for each in ("text_start", "text_end"))
    return turn.removeprefix(start).removesuffix(end).strip()


def _check_against_jsonschema(tools: ToolSet, call: Any, where: str) -> None:
    schema = pythonic(tools[call.name].parameters)
    strictness = tools._strictness.get(call.name)
    if strictness in (None, "closed"):
        schema = close_objects(schema)
    try:
        errors = list(jsonschema.Draft202012Validator(schema).iter_errors(dict(call.arguments)))
    except (OverflowError, ArithmeticError):  # of jsonschema itself, for numbers beyond its own
        return
    if errors and strictness != "object":
        raise LawError(f"jsonschema: {errors[0].message}\n{where}")


def _check_rendered(calls: list[Any], wire: WireFormat, tools: ToolSet, options: dict[str, Any], where: str) -> None:
    """What was read, written as the history has it, is admitted and read as the same."""
    try:
        rendered = wire.render("", calls)
    except ToolGrammarError as error:
        raise LawError(f"{error}\n{where}") from error
    spelled = wire.with_special(()) if isinstance(wire, TemplateFormat) else wire
    if not tools.grammar(spelled, **options).matches(rendered):
        raise LawError(f"the history form {rendered!r} is refused\n{where}")
    again = [event.call for event in events_of(tools, wire, [rendered]) if isinstance(event, CallEnd)]
    if [(call.name, call.arguments) for call in again] != [(call.name, call.arguments) for call in calls]:
        raise LawError(f"the history form {rendered!r} is read as {again}\n{where}")


def main() -> int:
    """Return the exit status: 1 if there are faults."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--first", type=int, default=1_000_000, help="the first seed")
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--formats", default="")
    options = parser.parse_args()
    names = options.formats.split(",") if options.formats else format_names()
    outcomes: Counter[str] = Counter()
    faults: Counter[str] = Counter()
    seed, end = options.first, time.monotonic() + options.seconds
    while time.monotonic() < end:
        for name in names:
            try:
                outcomes[judge(name, seed)] += 1
            except Exception as error:
                faults[name] += 1
                what = str(error) if isinstance(error, LawError) else traceback.format_exc() + f"{name}, seed {seed}"
                print(re.sub(r"(\d)\1{50,}", r"\1...\1", what)[:3_000], "\n", flush=True)
        seed += 1
    print(f"{(seed - options.first) * len(names):,} turns; {dict(outcomes)}; faults {dict(faults)}")
    return 1 if faults else 0


if __name__ == "__main__":
    raise SystemExit(main())
