"""Repair of broken calls: right calls of the BFCL sample, damaged in named ways, and made valid again.

    python -m benchmarks answers/repair [--each N] [--data FILE] [--seed N] [--keep]

A case is a request whose right calls (the first of the answers that the sample accepts) are valid for its tools. They
are written in the Hermes format and damaged in one way; `ToolSet.repair` gets the text and the tools. *Valid*: calls
were returned, and `ToolSet.validate` takes them. *Equal*: they are the calls before the damage. *Invented*: a call has
a value that the damaged text does not hold; this must be 0. Beside it, as far as they are installed: `json-repair` and
instructor's reader of JSON, which get the text without the markers, and the coercion of BAML (`baml_reader.py`), which
gets the text and the types of the tools; what they return is validated likewise.
"""

from __future__ import annotations

import gc
import json
import random
import re
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from benchmarks.shared.data import BFCL, rows
from benchmarks.shared.results_io import percentile
from benchmarks.shared.tables import show
from benchmarks.shared.workers import installed
from toolgrammar.core import ParseError, ToolCall, ToolGrammarError
from toolgrammar.tools import ToolSet
from toolgrammar.tools.formats import get_format

Damage = Callable[[str, random.Random], "str | None"]
MARKERS = r"\n?</?tool_call>\n?"
#: A word inside of a string value, with the spaces around it as the group.
_INNER_WORD = r'": "[^"\\]*( [A-Za-z]{3,} )[^"\\]*"'
_STRING = re.compile(r'"[^"\\]+"')


def _some(pattern: str, text: str, draw: random.Random) -> re.Match[str] | None:
    """One match of a pattern."""
    found = list(re.finditer(pattern, text))
    return draw.choice(found) if found else None


def _cut_out(pattern: str) -> Damage:
    """Leave out one match of a pattern (its first group, if it has one)."""

    def damage(text: str, draw: random.Random) -> str | None:
        match = _some(pattern, text, draw)
        if match is None:
            return None
        group = 1 if match.re.groups else 0
        return text[: match.start(group)] + text[match.end(group) :]

    return damage


def _sub(pattern: str, new: str | Callable[[re.Match[str]], str], count: int = 0) -> Damage:
    return lambda text, draw: re.sub(pattern, new, text, count=count) if re.search(pattern, text) else None


def _one(pattern: str, new: Callable[[re.Match[str]], str]) -> Damage:
    def damage(text: str, draw: random.Random) -> str | None:
        match = _some(pattern, text, draw)
        return None if match is None else text[: match.start()] + new(match) + text[match.end() :]

    return damage


def _typo(word: str, draw: random.Random) -> str:
    at = draw.randrange(1, len(word) - 1)
    kind = draw.randrange(3)
    if kind == 0:
        return word[:at] + word[at + 1 :]
    if kind == 1:
        return word[:at] + word[at + 1] + word[at] + word[at + 2 :]
    return word[:at] + word[at] + word[at:]


def _misspelled(pattern: str) -> Damage:
    def damage(text: str, draw: random.Random) -> str | None:
        match = _some(pattern, text, draw)
        if match is None or len(match.group(1)) < 4:
            return None
        changed = _typo(match.group(1), draw)
        return None if changed == match.group(1) else text[: match.start(1)] + changed + text[match.end(1) :]

    return damage


def _camel(word: str) -> str:
    parts = re.split(r"[_-]", word)
    return parts[0] + "".join(map(str.capitalize, parts[1:])) if len(parts) > 1 else word.upper()


def _calls(new: Callable[[dict[str, Any], random.Random], str]) -> Damage:
    """Write each call anew, from its name and arguments."""
    return lambda text, draw: re.sub(r"\{.*\}", lambda match: new(json.loads(match.group()), draw), text)


def _unknown(call: dict[str, Any], draw: random.Random) -> str:
    members = list(call["arguments"].items())
    members.insert(draw.randint(0, len(members)), ("confidence_zz", draw.choice(["high", 0.9, ["a"], {"b": "c"}])))
    return json.dumps({**call, "arguments": dict(members)})


def _inner_quotes(text: str, draw: random.Random) -> str | None:
    """Quote a word inside of a string: ``"a red car" -> "a "red" car"``; what was meant has the quotes, escaped."""
    match = _some(_INNER_WORD, text, draw)
    return match and text[: match.start(1)] + f' "{match.group(1).strip()}" ' + text[match.end(1) :]


def meant(kind: str, text: str, draw: random.Random) -> str:
    """The right text of a case whose damage adds something that belongs to it."""
    if kind == "quotes inside of a string":
        match = _some(_INNER_WORD, text, draw)
        assert match is not None
        return text[: match.start(1)] + f' \\"{match.group(1).strip()}\\" ' + text[match.end(1) :]
    if kind == "a line break in a string":
        return re.sub(r'(": "[^"\\ ]*) ', r"\1\\n", text, count=1)
    return text


DAMAGES: dict[str, Damage] = {
    "single quotes": _sub(_STRING.pattern, lambda m: m.group() if "'" in m.group() else f"'{m.group()[1:-1]}'"),
    "Python's repr": _calls(lambda call, draw: repr(call)),
    "names without quotes": _sub(r'"([A-Za-z_]\w*)":', r"\1:"),
    "typographic quotes": _sub(r'"([^"\\]*)"', "\u201c\\1\u201d"),
    "a comma too many": _one(r"\}", lambda m: ",}"),
    "a missing comma": _cut_out(r'["\d\]}](,) "'),
    "a missing colon": _cut_out(r'"(:) '),
    "a missing closing quote": _cut_out(r'[A-Za-z](")[,}\]]'),
    "a missing opening quote": _cut_out(r': (")[A-Za-z]'),
    "a missing bracket at the end": _cut_out(r"(\})\n</tool_call>"),
    "a bracket too many": _one(r"\}\n</tool_call>", lambda m: "}}\n</tool_call>"),
    "a missing bracket of a list": _cut_out(r'["\d](\])'),
    "a fence": lambda text, draw: f"```json\n{text}\n```",
    "prose around": lambda text, draw: f"Sure! I will call the tool now.\n\n{text}\n\nLet me know if you need more.",
    "a comment": _one(r', "', lambda m: ', // as you asked\n "'),
    "a line break in a string": _sub(r'(": "[^"\\ ]*) ', "\\1\n", count=1),
    "quotes inside of a string": _inner_quotes,
    "full-width punctuation": _sub(r'": ', '"\uff1a'),
    "semicolons": _sub(r', "', '; "'),
    "the name of a tool in another case": _one(r'"name": "([^"]+)"', lambda m: f'"name": "{_camel(m.group(1))}"'),
    "a misspelled tool": _misspelled(r'"name": "([^"]+)"'),
    "a misspelled argument": _misspelled(r'[{,] ?"([^"]{4,})":(?! \{)(?<!"name":)(?<!"arguments":)'),
    "a number as text": _one(r": (-?\d+(?:\.\d+)?)(?=[,}])", lambda m: f': "{m.group(1)}"'),
    "a flag as text": _one(r": (true|false)(?=[,}])", lambda m: f': "{m.group(1).capitalize()}"'),
    "an unknown argument": _calls(_unknown),
    "arguments as text": _calls(lambda call, _: json.dumps({**call, "arguments": json.dumps(call["arguments"])})),
    "parameters for arguments": _sub('"arguments"', '"parameters"'),
    "no end marker": _cut_out(r"\n</tool_call>$"),
    "no begin marker": _cut_out(r"^<tool_call>\n"),
    "no markers": lambda text, draw: (
        re.sub(r"\n?</?tool_call>\n?", "", text) if text.count("<tool_call>") == 1 else None
    ),
    "cut": lambda text, draw: text[: draw.randrange(len("<tool_call>\n"), len(text) - len("\n</tool_call>"))],
}


def _first(possible: Any) -> Any:
    """The first of the values that the sample accepts, at every depth."""
    value = possible[0] if isinstance(possible, list) and possible else possible
    if isinstance(value, dict):
        return {name: _first(inner) for name, inner in value.items() if _first(inner) != ""}
    return value


def cases(data: Path) -> Iterator[tuple[ToolSet, list[ToolCall]]]:
    """Tool sets and right calls."""
    for row in rows(data):
        try:
            tools = ToolSet.from_any(row["functions"])
            calls = []
            for answer in row["answers"]:
                ((name, arguments),) = answer.items()
                chosen = {key: _first(values) for key, values in arguments.items()}
                chosen = {key: value for key, value in chosen.items() if value != ""}
                calls.append(tools.validate(ToolCall("", name, chosen)))
        except (ToolGrammarError, ValueError):
            continue
        yield tools, calls


def same(first: list[Any], second: list[Any]) -> bool:
    """Whether two lists of calls are equal; the types of numbers do not count."""
    return [(call.name, dict(call.arguments)) for call in first] == [
        (call.name, dict(call.arguments)) for call in second
    ]


def holds(text: str, value: Any) -> bool:
    """Whether a damaged text holds every value, however it is spelled."""
    if isinstance(value, dict):
        return all(holds(text, inner) for inner in value.values())
    if isinstance(value, list):
        return all(holds(text, inner) for inner in value)
    if isinstance(value, bool) or value is None:
        return str(value).lower() in text.lower() or "null" in text
    if isinstance(value, (int, float)):
        return str(value) in text or str(int(value)) in text or f"{value:g}" in text
    letters = re.sub(r"\\+u([0-9a-f]{4})", lambda match: chr(int(match.group(1), 16)), text)
    letters = re.sub(r"[\W_]", "", letters.casefold())
    plain = re.sub(r"[\W_]", "", text.casefold())
    wanted = re.sub(r"[\W_]", "", value.casefold())
    # A text that is cut inside of a listed value leaves one that is possible.
    begun = any(plain.endswith(wanted[:size]) for size in range(3, len(wanted)))
    return wanted in plain or wanted in letters or begun


class Tally:
    """Counts of repaired texts, and their times."""

    def __init__(self) -> None:
        self.counts: dict[str, Any] = defaultdict(int)
        self.times: list[float] = []

    def mend(self, text: str, tools: ToolSet) -> tuple[list[ToolCall], Any]:
        """Return the valid calls of a text, none if it is refused, and what was repaired or the error."""
        begin = time.process_time()
        self.counts["cases"] += 1
        try:
            message, said = tools.repair(text, "hermes", seconds=5)
            found = [tools.validate(call) for call in message.tool_calls]
        except ToolGrammarError as error:
            found, said = [], error
            self.counts["refused"] += 1
        self.times.append((time.process_time() - begin) * 1e3)
        self.counts["valid"] += bool(found)
        return found, said

    def result(self) -> dict[str, Any]:
        """Return the counts, with the percentiles of the times."""
        return {**self.counts, "p50_ms": percentile(self.times, 0.5), "p99_ms": percentile(self.times, 0.99)}


def instructor_calls(text: str, tools: ToolSet) -> list[ToolCall]:
    """The call that instructor's reader of JSON in text finds."""
    from instructor.v2.core.json import extract_json_from_codeblock

    value = json.loads(extract_json_from_codeblock(re.sub(MARKERS, "", text)))
    return [tools.validate(ToolCall("", value["name"], value["arguments"]))]


def json_repair_calls(text: str, tools: ToolSet) -> list[ToolCall]:
    """The calls that json-repair finds."""
    import json_repair

    calls = []
    for piece in filter(str.strip, re.split(r"</?tool_call>", text)):
        value = json_repair.loads(piece)
        for one in value if isinstance(value, list) else [value]:
            if isinstance(one, dict):
                calls.append(tools.validate(ToolCall("", one.get("name", ""), one.get("arguments", {}))))
    if not calls:
        raise ParseError("no call")
    return calls


def baml_calls(text: str, tools: ToolSet) -> list[ToolCall]:
    """The calls that BAML's coercion finds."""
    from benchmarks.answers.baml_reader import BamlReader

    return BamlReader(tools).calls(text)


PEERS: dict[str, tuple[str, Callable[[str, ToolSet], list[ToolCall]]]] = {
    "json-repair": ("json-repair", json_repair_calls),
    "instructor": ("instructor", instructor_calls),
    "BAML": ("baml-py", baml_calls),
}


def main(each: int = 60, data: Path = BFCL, seed: int = 0, look: str = "", keep: bool = False) -> None:
    """Run the benchmark.

    Args:
        each: cases of each kind of damage
        look: print the failures of this kind
    """
    draw = random.Random(seed)
    pool = list(cases(data))
    draw.shuffle(pool)
    gc.collect()
    gc.freeze()  # a collection of the sample is nobody's repair
    wire = get_format("hermes")
    peers = {name: read for name, (package, read) in PEERS.items() if installed(package)}
    report, whole = {}, Tally()
    for kind, damage in DAMAGES.items():
        tally = Tally()
        for tools, calls in pool:
            if tally.counts["cases"] == each:
                break
            text = wire.render("", calls)
            state = draw.getstate()
            try:
                broken = damage(text, draw)
            except ValueError:
                continue
            if (
                broken is None
                or broken == text
                or tools.grammar(tool_choice="required", whitespace="flexible").matches(broken)
            ):
                continue
            after = draw.getstate()
            draw.setstate(state)
            wanted = list(tools.parse(meant(kind, text, draw), wire).tool_calls)
            draw.setstate(after)
            found, said = tally.mend(broken, tools)
            tally.counts["equal"] += same(found, wanted)
            invented = any(not holds(broken, dict(call.arguments)) for call in found)
            tally.counts["invented"] += invented
            if kind == look and (invented or not same(found, wanted)):
                read = [(call.name, dict(call.arguments)) for call in found]
                print("invented:" if invented else "other:", broken, read or said, sep="\n", end="\n\n")
            for name, read in peers.items():
                try:
                    theirs = read(broken, tools)
                except Exception:  # each peer refuses a text in its own ways
                    theirs = []
                tally.counts[f"{name} valid"] += bool(theirs)
                tally.counts[f"{name} equal"] += same(theirs, wanted)
        report[kind] = tally.result()
        whole.times += tally.times
        for name, count in tally.counts.items() if kind != "cut" else ():
            whole.counts[name] += count
    report["all but cut"] = whole.result()
    show("repair", report, keep=keep)
