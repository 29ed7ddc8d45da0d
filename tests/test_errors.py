"""The error catalogue: one tree, one code each, and for every class the shortest way to meet it."""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Callable

import numpy as np
import pytest
from pydantic import BaseModel

from toolgrammar.core import GenerateParams, Grammar, JsonMode, ToolCall, Vocabulary, errors, load_model
from toolgrammar.core.decoding.sampler import Sampler
from toolgrammar.core.errors import Place, ToolGrammarError
from toolgrammar.core.testing import ScriptedModel
from toolgrammar.tools import ToolSet

CLASSES = [
    value
    for value in vars(errors).values()
    if inspect.isclass(value) and issubclass(value, ToolGrammarError) and value is not ToolGrammarError
]


class Point(BaseModel):
    """A tool."""

    x: int


def tools() -> ToolSet:
    """A tool set with one tool."""
    return ToolSet.from_any([Point])


def without_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    """Load a model whose library is not installed."""
    monkeypatch.setitem(sys.modules, "torch", None)
    load_model("hf:nothing")


def sample_from_nothing(_: pytest.MonkeyPatch) -> None:
    """Draw from logits that are all NaN."""
    Sampler(GenerateParams()).choose(np.full(2, np.nan, dtype=np.float32), np.array([0, 1]))


# One row for each class that is raised itself: the shortest trigger, and what the message must say.
TRIGGERS: dict[str, tuple[Callable[[pytest.MonkeyPatch], object], str]] = {
    "schema": (lambda _: ToolSet.from_any([lambda: None]), "a lambda has no name"),
    "invalid_schema": (lambda _: Grammar.from_json_schema({"type": "int"}), "type"),
    "unsupported_schema": (
        lambda _: Grammar.from_json_schema({"$dynamicRef": "#meta"}),
        "dynamicRef",
    ),
    "unsatisfiable_schema": (
        lambda _: Grammar.from_json_schema(False).matches("1"),
        "satisf",
    ),
    "grammar": (lambda _: Grammar.choice(), "a choice of nothing"),
    "pattern": (lambda _: Grammar.from_regex("("), "offset"),
    "vocabulary": (lambda _: Vocabulary([], eos=[]), "at least one token"),
    "limit": (lambda _: Grammar.from_regex("(" * 100_000 + ")" * 100_000), "nested"),
    "decoding": (sample_from_nothing, "no finite logit"),
    "budget": (
        lambda _: ScriptedModel(["x"]).generate(
            "x", max_tokens=2, json_mode=JsonMode({"type": "string", "minLength": 9}), on_budget="error"
        ),
        "budget",
    ),
    "context_overflow": (lambda _: load_model("embedded").generate("x" * 100_000), "context window"),
    "cancelled": (
        lambda _: load_model("embedded").generate_json("x", {"type": "string"}, cancel=lambda: True),
        "",
    ),
    "model": (lambda _: load_model("nothing"), "unknown model address 'nothing'"),
    "missing_dependency": (without_torch, "pip install 'toolgrammar[transformers]'"),
    "tool_call": (
        lambda _: ToolSet.from_any([{"title": "bare", "type": "object"}]).call(ToolCall("1", "bare", {})),
        "no function",
    ),
    "unknown_tool": (lambda _: tools().validate(ToolCall("1", "Line", {})), "'Line'"),
    "invalid_arguments": (lambda _: tools().validate(ToolCall("1", "Point", {"x": "one"})), "/x"),
    "parse": (lambda _: tools().parse('<tool_call>\n{"name": "Point", '), ""),
}


def test_tree_in_the_docstring_is_the_tree_of_classes() -> None:
    """The drawing at the top of ``errors.py`` names every class under its parent, and no other."""
    stack: list[tuple[int, str]] = []
    drawn = {}
    for line in (errors.__doc__ or "").splitlines():
        if match := re.match(r"^(\s+[│├└─ ]*)(\w+Error)\b", line):
            depth, name = len(match[1]), match[2]
            while stack and stack[-1][0] >= depth:
                stack.pop()
            if stack:
                drawn[name] = stack[-1][1]
            stack.append((depth, name))
    assert drawn == {kind.__name__: kind.__bases__[0].__name__ for kind in CLASSES}


def test_codes_are_unique_slugs() -> None:
    """Every class has a code of its own, in lower case, and a retryable flag."""
    codes = [kind.code for kind in CLASSES]
    assert len(codes) == len(set(codes))
    assert all(re.fullmatch(r"[a-z]+(_[a-z]+)*", code) for code in codes)
    assert all(isinstance(kind.retryable, bool) for kind in CLASSES)


def test_every_code_has_a_trigger() -> None:
    """The catalogue below has a row for each class, and no row for a class that is gone."""
    assert set(TRIGGERS) == {kind.code for kind in CLASSES}


@pytest.mark.parametrize("code", sorted(TRIGGERS))
def test_trigger(code: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The shortest way to meet the error gives exactly its class, and a message that says what is wrong."""
    kind = next(kind for kind in CLASSES if kind.code == code)
    trigger, words = TRIGGERS[code]
    with pytest.raises(ToolGrammarError) as caught:
        trigger(monkeypatch)
    assert type(caught.value) is kind
    assert words in str(caught.value)
    assert caught.value.message


def test_message_has_place_and_hint() -> None:
    """The text of an error is its message, its place and its hint; each can be had apart."""
    error = errors.UnsupportedSchemaError(
        "this cannot be enforced", hint="leave it out", place=Place(tool="t", pointer="/a", keyword="not")
    )
    assert str(error) == "this cannot be enforced (tool 't', at /a, keyword 'not') Hint: leave it out"
    assert (error.message, error.hint, error.place.pointer) == ("this cannot be enforced", "leave it out", "/a")


@pytest.mark.parametrize(
    ("kind", "builtin"),
    [
        (errors.InvalidSchemaError, ValueError),
        (errors.GrammarError, ValueError),
        (errors.VocabularyError, ValueError),
        (errors.MissingDependencyError, ImportError),
        (errors.UnknownToolError, LookupError),
        (errors.InvalidArgumentsError, ValueError),
        (errors.ParseError, ValueError),
    ],
)
def test_misuse_is_also_the_builtin_it_resembles(kind: type[Exception], builtin: type[Exception]) -> None:
    """Code that knows only the builtin exceptions catches ours where they mean the same."""
    assert issubclass(kind, builtin)


def test_unknown_option_is_refused_by_name() -> None:
    """A misspelt generation option is named, with the known ones beside it."""
    known = sorted(GenerateParams.__dataclass_fields__)
    with pytest.raises(errors.ModelError, match="max_token") as caught:
        ScriptedModel(["x"]).generate("x", max_token=5)
    assert all(name in (caught.value.hint or "") for name in known)
