"""Every option of every adapter, in its constructor and in its calls, reaches the model or is an error: none is lost."""

from __future__ import annotations

import asyncio
import copy
import json
import pickle
from collections.abc import Callable, Mapping
from typing import Any

import httpx
import pytest
from pydantic import ValidationError

from toolgrammar.adapters import _shared
from toolgrammar.core import Model, ModelError, ToolGrammarError

from ..core.generation.option_values import other
from .shared_parts import Recording

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning:crewai")

#: A value for each generation option that is not its default.
VALUES: dict[str, Any] = {name: other(name) for name in _shared.GENERATION}

#: What the frameworks have besides, for hosted models, and a value that asks for something.
HOSTED: dict[str, Any] = {
    "frequency_penalty": 0.5,
    "presence_penalty": 0.5,
    "n": 3,
    "logprobs": True,
    "top_logprobs": 2,
    "masses": True,
    "user": "ann",
    "metadata": {"a": 1},
    "store": True,
    "conversation_id": "c1",
    "response_format": {"type": "json_object"},
    "function_call": "auto",
    "stream_options": {"include_usage": False},
    "service_tier": "flex",
    "reasoning_effort": "low",
    "verbosity": "low",
    "modalities": ["audio"],
    "organization": "o",
    "base_url": "http://h/v1",
    "api_key": "k",
    "max_retries": 5,
    "max_completion_tokens": 5,
    "prefer_upload": True,
    "is_litellm": True,
    "provider": "openai",
    "llm_type": "openai",
    "additional_params": {"x": 1},
    "temprature": 1,
}

REFUSED = (ToolGrammarError, ValidationError)
TOOL = {"type": "function", "function": {"name": "f", "description": "", "parameters": {"type": "object"}}}


def langchain(model: Any, made: Mapping[str, Any], called: Mapping[str, Any]) -> None:
    """Ask a LangChain chat model."""
    from toolgrammar.adapters.langchain import ChatToolGrammar

    ChatToolGrammar(model=model, **made).invoke("x", tools=[TOOL], tool_choice="none", **called)


def langchain_bound(model: Any, made: Mapping[str, Any], called: Mapping[str, Any]) -> None:
    """Ask one with bound settings, over which tools are bound."""
    from toolgrammar.adapters.langchain import ChatToolGrammar

    ChatToolGrammar(model=model, **made).bind(**called).bind_tools([TOOL], tool_choice="none").invoke("x")


def langchain_agent(model: Any, made: Mapping[str, Any], called: Mapping[str, Any]) -> None:
    """Ask one with bound settings through an agent."""
    from langchain.agents import create_agent
    from langchain_core.tools import tool

    from toolgrammar.adapters.langchain import ChatToolGrammar

    @tool
    def f() -> str:
        """Do nothing."""
        return ""

    bound = ChatToolGrammar(model=model, **made).bind(tool_choice="none", **called)
    create_agent(bound, [f]).invoke({"messages": [("user", "x")]})


def crewai(model: Any, made: Mapping[str, Any], called: Mapping[str, Any]) -> None:
    """Ask a CrewAI LLM."""
    from toolgrammar.adapters.crewai import ToolGrammarLLM

    if called:
        raise ModelError("CrewAI has no place for options of a call")
    ToolGrammarLLM(model=model, tool_choice="none", **made).call("x", tools=[TOOL])


def autogen(model: Any, made: Mapping[str, Any], called: Mapping[str, Any]) -> None:
    """Ask an AutoGen client."""
    from autogen_core.models import UserMessage

    from toolgrammar.adapters.autogen import ToolGrammarChatCompletionClient

    client = ToolGrammarChatCompletionClient(model=model, **made)
    hello = [UserMessage(content="x", source="u")]
    tools: Any = [TOOL["function"]]
    asyncio.run(client.create(hello, tools=tools, tool_choice="none", extra_create_args=called))


def agent_framework(model: Any, made: Mapping[str, Any], called: Mapping[str, Any]) -> None:
    """Ask an Agent Framework client."""
    from agent_framework import Message, tool

    from toolgrammar.adapters.agent_framework import ToolGrammarChatClient

    @tool
    def f() -> str:
        """Do nothing."""
        return ""

    def renamed(options: Mapping[str, Any]) -> dict[str, Any]:
        given = dict(options)
        if "parallel_tool_calls" in given:
            given["allow_multiple_tool_calls"] = given.pop("parallel_tool_calls")
        return given

    options = renamed(called) | {"tools": [f], "tool_choice": "none"}
    client = ToolGrammarChatClient(model=model, default_options=renamed(made))
    asyncio.run(client.get_response([Message("user", ["x"])], options=options))


Adapter = Callable[[Any, Mapping[str, Any], Mapping[str, Any]], None]
ADAPTERS: list[Adapter] = [langchain, langchain_bound, langchain_agent, crewai, autogen, agent_framework]

#: What an adapter has no place for, in its constructor or in a call; all else must reach the model.
NO_PLACE: dict[tuple[str, str], set[str]] = {
    ("crewai", "called"): set(VALUES),
}


@pytest.mark.parametrize("adapter", ADAPTERS, ids=lambda each: each.__name__)
@pytest.mark.parametrize("where", ["made", "called"])
def test_generation_options_reach_the_model(adapter: Adapter, where: str) -> None:
    """Each generation option is in the parameters of the request, or there is no place for it, and it is an error."""
    refused = set()
    for name, value in VALUES.items():
        model = Recording()
        try:
            adapter(model, {name: value} if where == "made" else {}, {name: value} if where == "called" else {})
        except REFUSED:
            refused.add(name)
        else:
            assert [getattr(params, name) for params in model.asked] == [value], name
    assert refused == NO_PLACE.get((adapter.__name__, where), set())


def changed(adapter: Adapter, made: Mapping[str, Any], called: Mapping[str, Any]) -> bool:
    """Return whether options change what the model is asked for."""
    plain, other = Recording(), Recording()
    adapter(plain, {}, {})
    adapter(other, made, called)
    return plain.asked != other.asked


@pytest.mark.parametrize("adapter", ADAPTERS, ids=lambda each: each.__name__)
@pytest.mark.parametrize("where", ["made", "called"])
@pytest.mark.parametrize("name", sorted(HOSTED))
def test_options_of_hosted_models(adapter: Adapter, where: str, name: str) -> None:
    """What the frameworks have for hosted models is an error, or changes the request; nothing is dropped."""
    value = HOSTED[name]
    if name == "metadata" and adapter.__name__.startswith("langchain"):
        return  # LangChain's own, for traces; a call has it in its configuration, and LangChain refuses it elsewhere
    try:
        assert changed(adapter, {name: value} if where == "made" else {}, {name: value} if where == "called" else {})
    except REFUSED as error:
        assert name in str(error) or "['x']" in str(error) or (adapter is crewai and where == "called")


def test_the_frameworks_options_are_tried() -> None:
    """The options that the frameworks document are in the tables above, or are the framework's own affair."""
    from agent_framework import ChatOptions
    from crewai.llms.base_llm import BaseLLM
    from langchain_core.language_models import BaseChatModel

    tried = {*VALUES, *HOSTED, "model", "tools", "tool_choice"}
    # What LangChain, CrewAI and Agent Framework act on themselves.
    theirs = {"name", "cache", "verbose", "callbacks", "tags", "custom_get_token_ids", "rate_limiter"}
    theirs |= {"disable_streaming", "output_version", "profile"}
    assert set(BaseChatModel.model_fields) - tried <= theirs
    assert set(BaseLLM.model_fields) - tried <= {"stream"}
    assert set(ChatOptions.__annotations__) - tried <= {"instructions", "allow_multiple_tool_calls"}


class Server(httpx.AsyncBaseTransport):
    """A server that is busy, and remembers who asked."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str | None]] = []

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Say that it is busy."""
        self.asked.append((str(request.url), request.headers.get("authorization")))
        return httpx.Response(503, json={"error": "busy"}, headers={"retry-after": "0"})


@pytest.mark.parametrize("adapter", ADAPTERS, ids=lambda each: each.__name__)
def test_settings_of_servers(adapter: Adapter) -> None:
    """``api_key``, ``base_url`` and ``max_retries`` reach the server; a model that is on none refuses them."""
    from toolgrammar.adapters.agent_framework import ToolGrammarChatClient
    from toolgrammar.adapters.autogen import ToolGrammarChatCompletionClient
    from toolgrammar.adapters.crewai import ToolGrammarLLM
    from toolgrammar.adapters.langchain import ChatToolGrammar

    classes: dict[str, Any] = {
        "crewai": ToolGrammarLLM,
        "autogen": ToolGrammarChatCompletionClient,
        "agent_framework": ToolGrammarChatClient,
    }
    make = classes.get(adapter.__name__, ChatToolGrammar)
    server = Server()
    settings: dict[str, Any] = {"api_key": "sk-1", "base_url": "http://model.test/v1", "max_retries": 1}
    made = make(model="openai:m", options={"transport": server}, **settings)
    assert "sk-1" not in repr(made)
    loaded = getattr(made, "loaded", None) or made._loaded
    with pytest.raises(ToolGrammarError):
        loaded.model().generate("x")
    assert server.asked == [("http://model.test/v1/chat/completions", "Bearer sk-1")] * 2
    for name, value in settings.items():
        for model in ("embedded", Recording()):
            with pytest.raises(ModelError, match=name):
                make(model=model, **{name: value})


def test_wrong_values_are_refused_at_once() -> None:
    """A wrong value is an error of ours when the object is made, and when it is called."""
    from toolgrammar.adapters.agent_framework import ToolGrammarChatClient
    from toolgrammar.adapters.autogen import ToolGrammarChatCompletionClient
    from toolgrammar.adapters.crewai import ToolGrammarLLM
    from toolgrammar.adapters.langchain import ChatToolGrammar

    wrong: dict[str, Any] = {"seed": -1, "stop": [""], "tool_format": "nope", "top_p": 3.0, "timeout": -1.0}
    for name, value in wrong.items():
        for make in (ChatToolGrammar, ToolGrammarLLM, ToolGrammarChatCompletionClient):
            with pytest.raises(ModelError, match=name):
                make(model=Recording(), **{name: value})
        with pytest.raises(ModelError, match=name):
            ToolGrammarChatClient(model=Recording(), default_options={name: value})
        for adapter in (langchain, autogen, agent_framework):
            with pytest.raises(ToolGrammarError, match=name):
                adapter(Recording(), {}, {name: value})
    for make in (ChatToolGrammar, ToolGrammarLLM, ToolGrammarChatCompletionClient, ToolGrammarChatClient):
        with pytest.raises(ModelError, match="model is None"):
            make(model=None)  # type: ignore[arg-type]
    for choice in ({"x": 1}, 5, ""):
        with pytest.raises(REFUSED):
            ToolGrammarLLM(model=Recording(), tool_choice=choice)  # type: ignore[arg-type]
    assert ToolGrammarLLM(model=Recording(), tool_choice="any", max_tokens=float("inf"))._params().max_tokens is None
    with pytest.raises(ModelError, match="max_tokens"):
        ToolGrammarLLM(model=Recording(), max_tokens=2.5)


@pytest.mark.parametrize("stop", ["Observation:", ["Observation:"], ("Observation:",)])
def test_a_stop_string_is_one(stop: Any) -> None:
    """A single text stops at itself, and not at any of its letters."""
    for adapter in (langchain, langchain_bound, langchain_agent, autogen, agent_framework):
        model = Recording()
        adapter(model, {}, {"stop": stop})
        assert [params.stop for params in model.asked] == [("Observation:",)]
    for adapter in (langchain, crewai, autogen, agent_framework):
        model = Recording()
        adapter(model, {"stop": stop}, {})
        assert [params.stop for params in model.asked] == [("Observation:",)]


def test_no_stop_string_overrides_the_models_own() -> None:
    """An empty list given to a call means none, not those of the object."""
    model = Recording()
    langchain(model, {"stop": ["zz"]}, {"stop": []})
    assert model.asked[0].stop == ()


def test_what_is_bound_stays_bound() -> None:
    """Bindings add up, whatever is bound last; tools replace tools, with the choice among them."""
    from langchain_core.load import dumpd

    from toolgrammar.adapters.langchain import ChatToolGrammar

    model = Recording()
    other = copy.deepcopy(TOOL)
    other["function"]["name"] = "g"  # type: ignore[index]
    chat = ChatToolGrammar(model=model).bind(temperature=0.5).with_config(tags=["t"])
    again: Any = chat.bind_tools([TOOL], tool_choice="f", parallel_tool_calls=False).bind(seed=3)
    bound: Any = again.bind_tools([other], temperature=0.7)
    assert bound.config["tags"] == ["t"]
    bound.invoke("x")
    (params,) = model.asked
    assert (params.temperature, params.seed, params.parallel_tool_calls) == (0.7, 3, False)
    assert params.tools is not None and (params.tools.names, params.tool_choice) == (("g",), "auto")
    chat.with_structured_output({"title": "A", "type": "object", "properties": {}}, method="json_mode").invoke("x")
    assert model.asked[1].temperature == 0.5
    assert dumpd(bound)["id"][-1] == "RunnableBinding"


def test_choices_of_some_tools() -> None:
    """OpenAI's ``allowed_tools`` offers some of the tools, in every form that it has."""
    from toolgrammar.adapters.langchain import ChatToolGrammar

    other = json.loads(json.dumps(TOOL).replace('"f"', '"g"'))
    inner = {"mode": "auto", "tools": [{"type": "function", "function": {"name": "g"}}]}
    for choice in ({"type": "allowed_tools", **inner}, {"type": "allowed_tools", "allowed_tools": inner}):
        model = Recording()
        ChatToolGrammar(model=model).bind_tools([TOOL, other], tool_choice=choice).invoke("x")
        assert model.asked[0].tools is not None and model.asked[0].tools.names == ("g",)


def test_adapters_can_be_pickled() -> None:
    """Objects with an address go to other processes; those of a loaded model say why they do not."""
    from toolgrammar.adapters.agent_framework import ToolGrammarChatClient
    from toolgrammar.adapters.autogen import ToolGrammarChatCompletionClient
    from toolgrammar.adapters.crewai import ToolGrammarLLM
    from toolgrammar.adapters.langchain import ChatToolGrammar

    for make in (ChatToolGrammar, ToolGrammarLLM, ToolGrammarChatCompletionClient, ToolGrammarChatClient):
        again = pickle.loads(pickle.dumps(make(model="embedded", options={"seed": 5})))
        loaded = getattr(again, "loaded", None) or again._loaded
        assert (loaded.uri, loaded.options) == ("embedded", {"seed": 5})
        assert isinstance(loaded.model(), Model)
        with pytest.raises(ModelError, match="loaded model cannot be pickled"):
            pickle.dumps(make(model=Recording()))
