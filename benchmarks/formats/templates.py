"""Real chat templates: is what they write what the grammar admits, the parser reads, and the history shows?

    python -m benchmarks formats/templates [--cache FOLDER] [--mistral CHECKOUT] [--only NAME] [--keep]

Fetches the source distributions of `PACKAGES` with pip into the cache folder and reads their chat templates; nothing in
them is run but the templates, in Jinja's sandbox. ``--mistral`` is a checkout of mistral-common's repository, whose
packages lack its templates; without it they are left out, and nothing can be kept. Each template that knows tools
renders twelve conversations, with the renderer of `transformers`. A template passes if for each of them

- a format is detected,
- the grammar admits the assistant's turn as the template writes it,
- the parser reads the same calls from it,
- a second turn, with the calls that the parser read and their results, which arrive in the opposite order, holds every
  name, argument and result, results in the order of their calls, with which many templates pair them by position alone,
- prompt and grammar agree: the tools are in the prompt, and in the template's words only if the format is its own.

Whole conversations that models of random weights write are those of ``turns.py``.

``--keep`` writes ``results/templates.json``, which ``report.py`` shows in ``docs/formats.md``.
"""

from __future__ import annotations

import json
import re
import sys
import tarfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from transformers.utils.chat_template_utils import _compile_jinja_template

from benchmarks.shared.noise import NoiseBackend
from benchmarks.shared.peers import single_bytes
from benchmarks.shared.sources import CACHE, fetch
from benchmarks.shared.tables import show
from toolgrammar.core import Message, ToolCall, ToolGrammarError
from toolgrammar.core.basics import cached_property
from toolgrammar.core.models.chat_template import ChatTemplate
from toolgrammar.core.models.local_model import LocalModel
from toolgrammar.tools import Tool, ToolSet
from toolgrammar.tools.formats import choose_format, detect_format

#: Package, version, folder of the templates in its source distribution.
PACKAGES = (
    ("llama-cpp-python", "0.3.36", "models/templates/"),
    ("vllm", "0.33.0", "examples/tool_chat_template"),
    ("trl", "1.16.0", "trl/chat_templates/"),
    ("axolotl", "0.19.0", "chat_templates/templates/"),
)


_KNOWN = json.loads(Path(__file__).with_name("template_cases.json").read_text(encoding="utf-8"))
TOOLS = tuple(Tool(**tool) for tool in _KNOWN["tools"])


@dataclass(frozen=True)
class Case:
    """One assistant turn."""

    name: str
    calls: tuple[tuple[str, dict[str, Any]], ...]
    text: str = ""
    reasoning: str = ""


CASES = tuple(
    Case(**{**case, "calls": tuple((name, arguments) for name, arguments in case["calls"])}) for case in _KNOWN["cases"]
)


@dataclass
class Outcome:
    """What became of one template.

    Attributes:
        format: the format that was detected, if one was.
        source: ``template`` where the format is the template's own, ``prompt`` where the library describes it.
        writes: how many calls the template writes in a turn: ``several``, ``one``, or none.
        failed: kinds of failures, by case.
        notes: what a failure looked like.
    """

    format: str | None = None
    source: str = ""
    writes: str = ""
    failed: dict[str, list[str]] = field(default_factory=dict)
    notes: dict[str, str] = field(default_factory=dict)

    def fail(self, case: str, kind: str, note: str = "") -> None:
        """Note a failure of a case."""
        self.failed.setdefault(case, []).append(kind)
        self.notes.setdefault(f"{case}: {kind}", note[:400])


# -- templates ------------------------------------------------------------------------------------------------


def templates(cache: Path, mistral: Path | None, *, keep: bool, only: str = "") -> Iterator[tuple[str, str]]:
    """Yield the name and the text of each different template that knows tools.

    Args:
        cache: the folder of source distributions.
        mistral: a checkout of mistral-common.
        keep: the results are to be kept.
        only: a pattern of the names.

    Raises:
        SystemExit: results are to be kept, and a source is missing.
    """
    if mistral is None:
        lacking = "mistral-common (its packages have no templates): give --mistral CHECKOUT of its repository"
        if keep:
            raise SystemExit(f"nothing can be kept without the templates of {lacking}")
        print(f"left out: {lacking}", file=sys.stderr)
    seen: set[str] = set()
    sources: list[tuple[str, str]] = []
    for package, version, where in PACKAGES:
        with tarfile.open(fetch(package, version, cache)) as archive:
            for member in archive:
                if where in member.name and member.name.endswith(".jinja") and "/rust/" not in member.name:
                    file = archive.extractfile(member)
                    assert file is not None
                    name = f"{package}/{Path(member.name).stem.removeprefix('tool_chat_template_')}"
                    sources.append((name, file.read().decode()))
    if mistral is not None:
        found = sorted((mistral / "tests/data/chat_templates").glob("*.jinja"))
        if not found:
            raise SystemExit(f"{mistral} has no tests/data/chat_templates: give a checkout of mistral-common")
        texts = [path for path in found if not re.search("_(image|audio)", path.stem)]
        sources += [(f"mistral-common/{path.stem}", path.read_text()) for path in texts]
    for name, source in sources:
        if ("tools" in source or "tool_calls" in source) and source not in seen:
            seen.add(source)
            if re.search(only, name):
                yield name, source


# -- what a template writes -----------------------------------------------------------------------------------


class Renderer:
    """A template, as transformers renders it."""

    def __init__(self, source: str) -> None:
        self._template = _compile_jinja_template(source)
        self._tools = [tool.to_openai() for tool in TOOLS]

    @cached_property
    def encoding(self) -> int:
        """The encoding of arguments that the template takes."""
        return encoding_of(self)

    def __call__(self, messages: Sequence[Mapping[str, Any]], prompt: bool = False) -> str:
        """Return a conversation as text; may raise whatever a template may."""
        text: str = self._template.render(
            messages=messages, tools=self._tools, add_generation_prompt=prompt, bos_token="<BOS>", eos_token="<EOS>"
        )
        return text


USER = {"role": "user", "content": "What is new?"}
#: What a prompt may end with to open reasoning or to leave it out, what a turn may end with, and those ends that some
#: templates write between text and calls.
_PREFILLS, _CLOSERS, _TURN_ENDS = (tuple(_KNOWN[name]) for name in ("prefills", "closers", "turn_ends"))


def turns_of(case: Case, encoding: int) -> Iterator[dict[str, Any]]:
    """Yield the message of a case in the shapes that templates want, arguments in one of four encodings."""

    def text(value: Any) -> str:
        return json.dumps(value, ensure_ascii=False)

    encodings: tuple[Any, ...] = (
        dict,
        text,
        lambda given: {key: text(item) if isinstance(item, (dict, list)) else item for key, item in given.items()},
        lambda given: {key: text(item) for key, item in given.items()},
    )
    for encode in encodings[encoding : encoding + 1]:
        for empty in ("", None):
            for ids in ("Abc{}23xyz", "functions.{}:{}"):
                calls = [
                    {
                        "type": "function",
                        "id": ids.format(n) if ids.count("{}") == 1 else ids.format(name, n),
                        "function": {"name": name, "arguments": encode(arguments)},
                    }
                    for n, (name, arguments) in enumerate(case.calls)
                ]
                turn = {"role": "assistant", "content": case.text or empty, "tool_calls": calls}
                for key in ("reasoning_content", "reasoning", "thinking") if case.reasoning else ("",):
                    yield {**turn, key: case.reasoning} if key else turn


def complete(text: str, case: Case) -> bool:
    """All names and values of the calls are in the text, in some spelling."""
    for name, arguments in case.calls:
        if name not in text:
            return False
        for value in leaves(arguments):
            if isinstance(value, str) and value.isalnum() and value not in text:
                return False
    return "&#34;" not in text and case.reasoning in text and case.text in text


def leaves(value: Any) -> Iterator[Any]:
    """Yield the values in a JSON-like value that are neither objects nor arrays."""
    if isinstance(value, dict):
        for item in value.values():
            yield from leaves(item)
    elif isinstance(value, list):
        for item in value:
            yield from leaves(item)
    else:
        yield value


#: Signs of arguments in the wrong encoding: Python's ``repr``, or texts that are quoted twice or not at all.
_GARBLED = re.compile(r"""\{"\{|\{\{"|=["'][\[{]+["']|"[\[{]+\\|\((?:text|city|zone)=[^"'<]""")


def best_turn(render: Renderer, case: Case, encoding: int) -> str:
    """Return a conversation with the turn of a case, arguments in one encoding.

    Raises:
        ValueError: the template does not write it; says why.
    """
    problem = ""
    for turn in turns_of(case, encoding):
        try:
            full = render([USER, turn])
        except Exception as error:  # a template may raise anything
            problem = problem or f"raises {error}"
            continue
        answer = full.rpartition("What is new?")[2]
        has_repr = "{'" in answer and "(stops=" not in answer
        if complete(answer, case) and not has_repr and not _GARBLED.search(answer):
            return full
        problem = problem or f"leaves something out: {full[-300:]!r}"
    raise ValueError(problem)


def encoding_of(render: Renderer) -> int:
    """Return the encoding of arguments in which a template writes most cases."""
    scores = []
    for encoding in range(4):
        good = 0
        for case in CASES[:9]:
            try:
                best_turn(render, case, encoding)
                good += 1
            except ValueError:
                continue
        scores.append(good)
    return scores.index(max(scores))


def written(render: Renderer, case: Case) -> tuple[str, bool]:
    """Return the assistant's turn as a template writes it, and whether the prompt has opened reasoning.

    Raises:
        ValueError: it does not write it; says why.
    """
    try:
        prompt = render([USER], prompt=True)
    except Exception as error:
        raise ValueError(f"raises {error}") from error
    best = best_turn(render, case, render.encoding)
    begin, opened = len(prompt), False
    rest = "What is new?" + prompt.rpartition("What is new?")[2]
    if rest in best:
        begin = best.rfind(rest) + len(rest)
        opened = rest.rstrip().endswith(
            ("<think>", "[THINK]", "<mm:think>", "<|START_THINKING|>", "<|open|>think<|sep|>")
        )
    else:
        before = [fill for fill in _PREFILLS if rest.endswith(fill) and rest[: len(rest) - len(fill)] in best]
        if before:
            rest = rest[: len(rest) - len(before[0])]
            begin = best.rfind(rest) + len(rest)
        else:
            at = next((n for n in range(min(len(prompt), len(best))) if prompt[n] != best[n]), len(best))
            if at < len(prompt) and not prompt[at:].strip():  # the prompt ends with other white space
                return _without_end(best[at:].lstrip(), case), opened
            begin = max(best.rfind(mark, 0, at) + len(mark) for mark in (">", "\n", "]"))
            if "What is new?" in best[begin:]:  # the question looks otherwise once it is answered
                spoken = render([USER, {"role": "assistant", "content": "Saying this."}]).rpartition("Saying this.")[0]
                begin = len(spoken) if best.startswith(spoken) else begin
    return _without_end(best[begin:], case), opened


def _without_end(body: str, case: Case) -> str:
    """Return a turn without what ends it."""
    values = [value for value in leaves(case.calls[-1][1]) if isinstance(value, str) and len(value) > 3]
    words = [case.calls[-1][0], *values]
    last = max(body.rfind(word) for word in words)
    cuts = [at for mark in _CLOSERS if (at := body.find(mark, last)) >= 0]
    return body[: min(cuts)] if cuts else body


def can_write(render: Renderer, case: Case) -> bool:
    """Return True if a template writes a case in some way."""
    try:
        written(render, case)
    except ValueError:
        return False
    return True


# -- what the library makes of it -----------------------------------------------------------------------------


class TextBackend(NoiseBackend):
    """A backend with a chat template, whose prompt is kept as text."""

    takes_thinking = True

    def __init__(self, source: str) -> None:
        super().__init__(single_bytes()[0], str.encode, "text", None)
        self.chat_template = source  # type: ignore[assignment]
        self.template = ChatTemplate(source, controls=(), bos="<BOS>", eos="<EOS>")
        self.text = ""

    def encode_prompt(self, messages: Any, tools: Any = (), tool_prompt: str = "", thinking: Any = None) -> list[int]:
        """Return the bytes of a conversation, and keep it as text."""
        self.text = "".join(t for t, _ in self.template.render_prompt(messages, tools, tool_prompt, thinking))
        return list(self.text.encode("utf-8", "replace"))


def examine(source: str) -> Outcome:
    """Return what becomes of one template."""
    outcome = Outcome()
    tools = ToolSet(TOOLS)
    found = detect_format(source)
    wire = choose_format(None, source)
    if hasattr(wire, "with_special"):
        wire = wire.with_special(())
    outcome.format = None if found is None else found.name
    outcome.source = "prompt" if found is None else "template"
    backend = TextBackend(source)
    model = LocalModel(backend)
    try:
        render = Renderer(source)
        model.count_tokens("What is new?", tools)
    except Exception as error:
        for case in CASES:
            outcome.fail(case.name, "first turn", str(error))
        return outcome
    prompt = backend.text
    kinds = {case.name: can_write(render, case) for case in CASES}
    outcome.writes = writes = ("several" if kinds["two calls"] else "one") if kinds["one call"] else ""
    speaks = kinds["text and call"]
    own_words = tools.prompt(wire) and tools.prompt(wire)[:200] in prompt
    for case in CASES:
        if found is None and (writes or not own_words):
            outcome.fail(case.name, "detected")
        if not all(tool.name in prompt for tool in TOOLS):
            outcome.fail(case.name, "prompt", prompt[-300:])
        body, unshown = None, False
        if found is not None and writes:
            try:
                body, opened = written(render, case)
                if case.text and any(mark in body.partition(case.calls[0][0])[0] for mark in _TURN_ENDS):
                    body, unshown = None, True  # text is in a turn of its own
            except ValueError as error:
                if writes == "one" and len(case.calls) > 1:
                    pass  # it writes one call a turn
                elif case.reasoning or (case.text and not speaks):
                    unshown = True  # it shows no reasoning of the past, or no text beside calls
                else:
                    outcome.fail(case.name, "template", str(error))
        calls = [ToolCall(f"call_{n}", *pair) for n, pair in enumerate(case.calls)]
        if body is not None:
            reasoning = "opened" if opened else "optional"
            try:
                grammar, parser = tools.grammar(wire, reasoning=reasoning), tools.parser(wire, reasoning=reasoning)
                if not grammar.matches(body):
                    outcome.fail(case.name, "space" if grammar.matches(body.strip()) else "accepted", body)
                read = [event.call for event in (*parser.feed(body), *parser.close()) if hasattr(event, "call")]
                if [(c.name, dict(c.arguments)) for c in read] != list(case.calls) or any(c.error for c in read):
                    outcome.fail(case.name, "parsed", f"{body} -> {read}")
                else:
                    calls = read
            except ToolGrammarError as error:
                outcome.fail(case.name, "accepted", str(error))
        results = [Message("tool", f"result{n}of7", tool_call_id=c.id, name="") for n, c in enumerate(calls)]
        said = Message("assistant", case.text, tool_calls=tuple(calls), reasoning=case.reasoning or None)
        history = [Message("user", "What is new?"), said, *reversed(results)]
        try:
            model.count_tokens(history, tools)
        except ToolGrammarError as error:
            outcome.fail(case.name, "history", str(error))
            continue
        text = backend.text
        missing = [r.text for r in results if r.text not in text]
        if missing or not complete(
            text[text.rfind("What is new?") :], Case(case.name, case.calls, "" if unshown else case.text)
        ):
            outcome.fail(case.name, "history", f"{missing} {text[-300:]}")
        places = [text.rfind(result.text) for result in results]
        if places != sorted(places):
            outcome.fail(case.name, "order", text[-300:])
    return outcome


def main(cache: Path = CACHE, mistral: Path | None = None, only: str = "", keep: bool = False) -> None:
    """Examine the templates and print the table.

    Args:
        cache: a folder for source distributions
        mistral: a checkout of mistral-common's repository
        only: a pattern of the templates' names; what failed of them is printed
    """
    outcomes: dict[str, Outcome] = {}
    for name, source in templates(cache, mistral, keep=keep, only=only):
        outcomes[name] = examine(source)
        if only:
            print(name, outcomes[name].format, json.dumps(outcomes[name].notes, indent=1, ensure_ascii=False))
    passed = sum(not outcome.failed for outcome in outcomes.values())
    result = {"passed": passed, "templates": {name: asdict(outcome) for name, outcome in outcomes.items()}}
    show("templates", result, keep=keep)
