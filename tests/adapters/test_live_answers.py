"""Structured answers with live values, in each framework: the class's annotations reach the grammar."""

import asyncio
import json
from collections.abc import Callable
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel

from toolgrammar.core import Copied, Message, Values
from toolgrammar.core.testing import ScriptedModel

IDS = {"engine": ["E-1", "E-7"], "site": ["S-4"]}
ASKED = "The pump of the site stopped."
WISH = {"ticket": "E-1", "project": "site", "quote": "it smashed"}


class Report(BaseModel):
    """A ticket, and the words of the user that report it."""

    ticket: Annotated[str, Values(lambda call: IDS[call["project"]], after=("project",))]
    project: Literal["engine", "site"]
    quote: Annotated[str, Copied()]


def wishing() -> ScriptedModel:
    """Return a model that wants to answer, or call the tool of the class, with values that do not exist."""
    return ScriptedModel(lambda messages: Message("assistant", json.dumps(WISH)))


def langchain() -> Any:
    """Ask by `with_structured_output`."""
    module = pytest.importorskip("toolgrammar.adapters.langchain")
    return module.ChatToolGrammar(model=wishing(), max_tokens=400).with_structured_output(Report).invoke(ASKED)


def langchain_by_a_call() -> Any:
    """Ask by a tool of the class."""
    module = pytest.importorskip("toolgrammar.adapters.langchain")
    chat = module.ChatToolGrammar(model=wishing(), max_tokens=400)
    return chat.with_structured_output(Report, method="function_calling").invoke(ASKED)


def langchain_agent() -> Any:
    """Ask for the structured response of an agent."""
    module = pytest.importorskip("toolgrammar.adapters.langchain")
    agents = pytest.importorskip("langchain.agents")
    agent = agents.create_agent(module.ChatToolGrammar(model=wishing(), max_tokens=400), response_format=Report)
    return agent.invoke({"messages": [("user", ASKED)]})["structured_response"]


def autogen() -> Any:
    """Ask by ``json_output``."""
    module = pytest.importorskip("toolgrammar.adapters.autogen")
    models = pytest.importorskip("autogen_core.models")
    client = module.ToolGrammarChatCompletionClient(model=wishing(), max_tokens=400)
    asked = [models.UserMessage(content=ASKED, source="user")]
    return Report.model_validate_json(asyncio.run(client.create(asked, json_output=Report)).content)


def agent_framework() -> Any:
    """Ask by ``response_format``."""
    module = pytest.importorskip("toolgrammar.adapters.agent_framework")
    client = module.ToolGrammarChatClient(model=wishing(), default_options={"max_tokens": 400})
    agent = client.as_agent(name="reporter")
    return asyncio.run(agent.run(ASKED, options={"response_format": Report})).value


def crewai() -> Any:
    """Ask by ``response_model``."""
    module = pytest.importorskip("toolgrammar.adapters.crewai")
    return module.ToolGrammarLLM(model=wishing(), max_tokens=400).call(ASKED, response_model=Report)


def pydantic_ai() -> Any:
    """Ask by an agent's ``output_type``."""
    agents = pytest.importorskip("pydantic_ai")
    module = pytest.importorskip("toolgrammar.adapters.pydantic_ai")
    agent = agents.Agent(module.ToolGrammarModel(wishing()), output_type=agents.NativeOutput(Report))
    return agent.run_sync(ASKED, model_settings={"max_tokens": 400}).output


WAYS: list[Callable[[], Any]] = [
    langchain,
    langchain_by_a_call,
    langchain_agent,
    autogen,
    agent_framework,
    crewai,
    pydantic_ai,
]


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
def test_the_answer_has_real_values(way: Callable[[], Any]) -> None:
    """The ticket is one of its project, and the quotation stands in the user's message."""
    report = way()
    assert isinstance(report, Report)
    assert report.ticket in IDS[report.project] and report.quote in ASKED
