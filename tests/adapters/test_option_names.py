"""Guessed names of options: every constructor and call gives the same answer."""

from __future__ import annotations

import importlib
from typing import Any

import pytest

from toolgrammar.adapters import _shared
from toolgrammar.core import UnknownOptionError, load_model
from toolgrammar.core.testing import ScriptedModel

#: The objects of the adapters, and where their options of generation are.
CONSTRUCTORS = {
    "langchain.ChatToolGrammar": "",
    "crewai.ToolGrammarLLM": "",
    "autogen.ToolGrammarChatCompletionClient": "",
    "agent_framework.ToolGrammarChatClient": "default_options",
}

#: Names of ChatOllama, ChatOpenAI, llama.cpp and others, with the option that is meant.
GUESSES = {
    "temprature": "temperature",
    "num_predict": "max_tokens",
    "max_completion_tokens": "max_tokens",
    "max_new_tokens": "max_tokens",
    "repeat_penalty": "repetition_penalty",
    "frequency_penalty": "repetition_penalty",
    "random_seed": "seed",
}


@pytest.mark.parametrize("path", CONSTRUCTORS)
@pytest.mark.parametrize("name", GUESSES)
def test_constructors_know_what_was_meant(name: str, path: str) -> None:
    """A misspelt name, or that of another library, is one line that names the option here, as calls do."""
    module, _, kind = path.partition(".")
    pytest.importorskip({"langchain": "langchain_core", "autogen": "autogen_core"}.get(module, module))
    make: Any = getattr(importlib.import_module(f"toolgrammar.adapters.{module}"), kind)
    with pytest.raises(UnknownOptionError) as of_call:
        ScriptedModel(["x"]).generate("x", **{name: 1})
    with pytest.raises(UnknownOptionError) as caught:
        make(model=ScriptedModel(["x"]), **{name: 1})
    assert name in caught.value.message and GUESSES[name] in str(of_call.value.hint)
    if CONSTRUCTORS[path]:
        assert f"default_options={{'{GUESSES[name]}': ...}}" in str(caught.value.hint)
    else:
        assert caught.value.hint == of_call.value.hint


@pytest.mark.parametrize("path", ["langchain.ChatToolGrammar", "crewai.ToolGrammarLLM"])
@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("num_ctx", "write options={'context_window': ...}"),
        ("num_thread", "write options={'threads': ...}"),
        ("device_map", "write options={'device': ...}"),
        ("dtype", "write options={'dtype': ...}"),
        ("context_windw", "did you mean options={'context_window': ...}?"),
        ("openai_api_key", 'write api_key="env:NAME", for a model on a server'),
        ("openai_api_base", "write base_url=..., for a model on a server"),
        ("keep_alive", "leave out keep_alive: a model stays loaded as long as its object"),
    ],
)
def test_options_of_loading_are_in_a_dict(name: str, hint: str, path: str) -> None:
    """What is an option of loading, or has none here, is said so."""
    module, _, kind = path.partition(".")
    pytest.importorskip({"langchain": "langchain_core"}.get(module, module))
    make: Any = getattr(importlib.import_module(f"toolgrammar.adapters.{module}"), kind)
    with pytest.raises(UnknownOptionError) as caught:
        make(model=ScriptedModel(["x"]), **{name: 1})
    assert caught.value.hint == hint


def test_the_options_of_loading_are_those_of_the_loader() -> None:
    """The loader's documentation names each of them."""
    for name in _shared.LOADING:
        assert f"``{name}``" in str(load_model.__doc__)


@pytest.mark.parametrize(
    ("name", "path", "hint"),
    [
        ("max_new_tokens", "chat/completions", "write max_tokens"),
        ("n_predict", "messages", "write max_tokens"),
        ("guided_json", "chat/completions", "write response_format"),
        ("output_schema", "chat/completions", "write response_format"),
        ("gbnf", "chat/completions", "write grammar"),
        ("guided_regex", "completions", "write grammar"),
        ("repeat_penalty", "chat/completions", "write repetition_penalty"),
        ("stop_words", "chat/completions", "write stop"),
    ],
)
def test_the_server_knows_the_same_names(name: str, path: str, hint: str) -> None:
    """A constraint in another library's words is refused with the field that this protocol has for it."""
    httpx = pytest.importorskip("httpx")
    server = pytest.importorskip("toolgrammar.adapters.server")
    from toolgrammar.adapters.server.in_process import BASE_URL, InProcess

    body = {"model": "m", "max_tokens": 5, name: "1"}
    body |= {"prompt": "Hi"} if path == "completions" else {"messages": [{"role": "user", "content": "Hi"}]}
    process = InProcess(server.create_app({"m": ScriptedModel(["x"])}), httpx)
    with httpx.Client(transport=process.transport(), base_url=BASE_URL, timeout=60) as client:
        answer = client.post(f"/v1/{path}", json=body)
    assert answer.status_code == 400 and name in answer.text and hint in answer.text, answer.text
