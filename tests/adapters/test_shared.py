"""What the adapters share: calls that must not run, errors that are two things at once."""

from __future__ import annotations

import copy
import importlib
import json
import pickle
import subprocess
import sys
import textwrap
from types import SimpleNamespace
from typing import Any

import pytest

from toolgrammar.adapters import _shared
from toolgrammar.adapters._shared.loaded_model import MAX_TOOL_SETS
from toolgrammar.core import (
    BudgetError,
    ContextOverflowError,
    InvalidArgumentsError,
    MissingDependencyError,
    Model,
    ModelError,
    Place,
    RateLimitError,
    ToolCall,
    ToolGrammarError,
    UnknownToolError,
    errors,
)


def test_cut_past_call_is_shown() -> None:
    """On the next turn the model sees what it wrote of a call that was cut, and it is known not to be whole."""
    cut = ToolCall("1", "f", {"x": 1}, raw='{"x": 1}', cut=("/x",))
    call = _shared.past_call("1", "f", _shared.executable_text(cut))
    assert call.arguments == {"x": 1}
    assert call.error is not None
    assert _shared.past_call("1", "f", ' {"x": 1}\n').error is None
    assert _shared.past_call("1", "f", "[1]").arguments == {}


@pytest.mark.parametrize("bad", [{"cut": ("/x",)}, {"error": "x is missing"}])
def test_call_that_must_not_run_does_not_parse(bad: dict[str, object]) -> None:
    """Frameworks run what parses: a cut or invalid call does not, and says why."""
    good = ToolCall("1", "f", {"x": 1}, raw='{"x": 1}')
    call = ToolCall("1", "f", {"x": 1}, raw='{"x": 1}', **bad)  # type: ignore[arg-type]
    assert json.loads(_shared.executable_text(good)) == {"x": 1}
    with pytest.raises(json.JSONDecodeError):
        json.loads(_shared.executable_text(call))
    with pytest.raises(InvalidArgumentsError):
        _shared.require_executable(call)
    _shared.require_executable(good)


def test_error_is_both() -> None:
    """A translated error is caught by the framework's type and by ours, with hint and code."""

    class Theirs(Exception):
        def __init__(self, one: int, two: int) -> None:
            raise AssertionError("the framework's constructor is not used")

    def table() -> dict[str, type[Exception]]:
        return {"context_overflow": Theirs}

    with pytest.raises(Theirs) as caught, _shared.translated(table), _shared.translated(table):
        raise ContextOverflowError("too long", hint="shorten it")
    assert isinstance(caught.value, ContextOverflowError)
    assert (caught.value.code, caught.value.hint) == ("context_overflow", "shorten it")
    assert isinstance(caught.value.__cause__, ContextOverflowError)


@pytest.mark.parametrize("adapter", ["agent_framework", "autogen", "crewai", "langchain", "pydantic_ai"])
def test_tables_of_errors_have_known_codes(adapter: str) -> None:
    """Each row of an adapter is of one of our errors."""
    try:
        messages = importlib.import_module(f"toolgrammar.adapters.{adapter}.messages")
    except MissingDependencyError:
        pytest.skip(f"{adapter} is not installed")
    classes = [each for each in vars(errors).values() if isinstance(each, type)]
    codes = {each.code for each in classes if issubclass(each, ToolGrammarError)}
    assert messages.errors().keys() <= codes


class Busy(Exception):
    """A framework's error; at the top of a module, where pickle finds it."""


def test_translated_errors_can_be_pickled() -> None:
    """A translated error comes back from another process as both, with all that it says."""
    with (
        pytest.raises(Busy) as caught,
        _shared.translated(lambda: {"rate_limit": Busy}, "busy"),
    ):
        raise RateLimitError("too many", hint="wait", place=Place(tool="f"), status_code=429, retry_after=3.0)
    again = pickle.loads(pickle.dumps(caught.value))
    assert isinstance(again, Busy) and isinstance(again, RateLimitError)
    assert str(again) == str(caught.value) == "busy: too many (tool 'f') Hint: wait"
    assert (again.status_code, again.retry_after, again.retryable) == (429, 3.0, True)


#: A choice in every form that a provider or framework has, and what it means where there are tools "a" and "b".
CHOICES: list[tuple[Any, Any]] = [
    *((given, ("auto", ("a", "b"))) for given in (None, False, "auto", {"type": "auto"}, {"auto": {}})),
    *((given, ("required", ("a", "b"))) for given in (True, "any", "required", {"type": "any"}, {"any": {}})),
    *((given, ("none", ("a", "b"))) for given in ("none", {"type": "none"}, {"mode": "none"})),
    *(
        (given, ("a", ("a", "b")))
        for given in (
            "a",
            {"type": "function", "function": {"name": "a"}},
            {"type": "function", "name": "a"},
            {"type": "tool", "name": "a"},
            {"function": {"name": "a"}},
            {"tool": {"name": "a"}},
            {"name": "a"},
            {"mode": "required", "required_function_name": "a"},
        )
    ),
    (
        {"type": "allowed_tools", "mode": "required", "tools": [{"type": "function", "name": "b"}]},
        ("required", ("b",)),
    ),
    (
        {
            "type": "allowed_tools",
            "allowed_tools": {"mode": "auto", "tools": [{"type": "function", "function": {"name": "b"}}]},
        },
        ("auto", ("b",)),
    ),
    ({"mode": "auto", "allowed_tools": ["b"]}, ("auto", ("b",))),
]


@pytest.mark.parametrize(("given", "meant"), CHOICES)
def test_tool_choice(given: Any, meant: Any) -> None:
    """There is one reading of tool choices for all adapters."""
    assert _shared.tool_choice(given, ["a", "b"]) == meant


@pytest.mark.parametrize(
    "odd",
    [
        *("c", "", 5, 1.0, ["a"], {}, {"x": 1}, {"type": "function"}, {"type": "function", "function": {}}),
        *({"type": "allowed_tools", "tools": []}, {"type": "allowed_tools", "tools": [{"name": "c"}]}),
        *({"name": "c"}, {"tool": {}}, {"type": "web_search"}, {"mode": "sometimes"}, {"auto": {}, "any": {}}),
    ],
)
def test_odd_tool_choice(odd: Any) -> None:
    """What is no choice, or names no tool, is an error, with tools and without."""
    for names in (["a", "b"], []):
        with pytest.raises(UnknownToolError):
            _shared.tool_choice(odd, names)


def test_required_without_tools() -> None:
    """A demanded call needs a tool."""
    for given in ("any", "required", True):
        with pytest.raises(ModelError, match="no tools"):
            _shared.tool_choice(given, [])
    assert _shared.tool_choice("none", []) == ("none", ())


def test_generation_params() -> None:
    """Options have one reading: None is not given, one stop string is one, token ids may be texts."""
    params = _shared.generation_params({"stop": "Observation:", "logit_bias": {"7": 1.0}, "seed": None})
    assert (params.stop, params.logit_bias, params.seed) == (("Observation:",), {7: 1.0}, None)
    assert _shared.generation_params({"stop": None}).stop == ()
    for odd in ({"stop": [""]}, {"stop": 5}, {"tool_format": "nope"}, {"seed": -1}, {"temprature": 1}):
        with pytest.raises(ModelError, match=next(iter(odd))) as caught:
            _shared.generation_params(odd)
        assert caught.value.hint


def test_options_are_given_once() -> None:
    """A setting of a server is an option for loading; given in both places, it is an error."""
    assert _shared.loading_options({"seed": 1}, {"api_key": "k", "base_url": None}) == {"seed": 1, "api_key": "k"}
    with pytest.raises(ModelError, match="api_key is given twice"):
        _shared.loading_options({"api_key": "k"}, {"api_key": "l"})


def test_engines_are_pickled_by_address(noise: Model) -> None:
    """A loaded model that was given by its address is loaded again; of a loaded model, or with a key in it, it says no."""
    again = pickle.loads(pickle.dumps(_shared.LoadedModel("embedded", {"seed": 5})))
    assert (again.uri, again.options) == ("embedded", {"seed": 5})
    with pytest.raises(ModelError, match="loaded model cannot be pickled"):
        pickle.dumps(_shared.LoadedModel(noise))
    with pytest.raises(ModelError, match="a key cannot be written out"):
        pickle.dumps(_shared.LoadedModel("openai:m@http://127.0.0.1:9/v1", {"api_key": "secret"}))


@pytest.mark.parametrize("error", [ValueError("theirs"), BudgetError("not in the table"), MissingDependencyError("x")])
def test_other_errors_pass_through(error: Exception) -> None:
    """Errors that the table does not name, and those about the installation, are not touched."""
    with (
        pytest.raises(type(error)) as caught,
        _shared.translated(lambda: {"model": KeyError}),
    ):
        raise error
    assert caught.value is error


def test_engine_is_shared_by_copies(noise: Model) -> None:
    """Frameworks copy their model objects; the loaded model is not copied."""
    loaded = _shared.LoadedModel(noise, {})
    assert copy.deepcopy(loaded) is loaded
    assert loaded.model() is noise
    assert loaded.model("embedded") is noise  # its own name
    with pytest.raises(ModelError, match="seed cannot be combined with a loaded model"):
        _shared.LoadedModel(noise, {"seed": 1})
    for odd in (None, 5, object()):
        with pytest.raises(ModelError, match="model is"):
            _shared.LoadedModel(odd)  # type: ignore[arg-type]


def test_another_model_of_one_server() -> None:
    """A call that names another model of the same server uses the same key; another server never sees it."""
    loaded = _shared.LoadedModel("openai:a@http://h/v1", {"api_key": "secret-key"})
    assert "Authorization" in loaded.model("openai:b@http://h/v1")._transport._headers  # type: ignore[attr-defined]
    for other in ("openai:b@http://other/v1", "vllm:b@http://h/v1"):
        assert "Authorization" not in loaded.model(other)._transport._headers  # type: ignore[attr-defined]
    with pytest.raises(ModelError, match="model is 5"):
        loaded.model(5)  # type: ignore[arg-type]


def test_tool_sets_are_kept() -> None:
    """The same tools on the next turn are the same tool set; the number of those kept is bounded."""
    loaded = _shared.LoadedModel("embedded", {})
    tools = [[_shared.openai_tool({"name": f"f{n}", "parameters": {}})] for n in range(MAX_TOOL_SETS + 1)]
    first = loaded.tools(tools[0])
    assert loaded.tools(copy.deepcopy(tools[0])) is first
    for each in tools[1:]:
        loaded.tools(each)
    assert loaded.tools(tools[-1]) is loaded.tools(tools[-1])
    assert loaded.tools(tools[0]) is not first
    assert loaded.tools([]) is None


def test_schema_is_closed() -> None:
    """A schema means "these fields"; a free-form map stays one."""
    schema = {"type": "object", "properties": {"a": {"type": "object"}}}
    closed = _shared.closed(schema)
    assert isinstance(closed, dict)
    assert closed["additionalProperties"] is False
    assert "additionalProperties" not in closed["properties"]["a"]


@pytest.mark.parametrize(
    ("adapter", "package"),
    [("langchain", "langchain_core"), ("crewai", "crewai"), ("autogen", "autogen_core")],
)
def test_missing_framework(adapter: str, package: str) -> None:
    """Without its framework an adapter says which line to type, in an error that is an ImportError too."""
    program = (
        f"import sys; sys.modules[{package!r}] = None\n"
        "from toolgrammar.core import MissingDependencyError\n"
        f"try:\n    import toolgrammar.adapters.{adapter}\n"
        "except MissingDependencyError as error:\n    assert isinstance(error, ImportError); print(error.hint)\n"
    )
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)
    assert result.stdout.strip() == f"pip install 'toolgrammar[{adapter}]'", result.stderr


def test_skeleton_of_an_adapter_runs() -> None:
    """The minimal adapter in the docstring of the shared parts gives a valid call, and refuses unknown settings."""
    _, _, skeleton = (_shared.__doc__ or "").partition("::\n")
    code = textwrap.dedent(skeleton[: skeleton.index("\n``")])
    written: dict[str, Any] = {**vars(_shared), "framework": SimpleNamespace(ChatModel=object), "errors": tuple}
    written["to_their_message"] = lambda generation: generation.tool_calls
    exec(code, written)

    def add(a: int, b: int) -> int:
        """Add two numbers."""
        return a + b

    chat = written["ChatModel"](max_tokens=60, temperature=1.0, seed=1)
    (call,) = chat.chat([{"role": "user", "content": "1 and 2?"}], [add], "add")
    assert call.name == "add" and call.error is None and set(call.arguments) == {"a", "b"}
    with pytest.raises(ModelError, match="tempo"):
        written["ChatModel"](tempo=1)
