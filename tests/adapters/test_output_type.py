"""``output_type``: one way to ask for the shape of an answer, in the words of each framework."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any, Literal

import pytest
from pydantic import BaseModel, Field, TypeAdapter

from toolgrammar.core import Grammar, ModelError
from toolgrammar.core.testing import ScriptedModel


class Room(BaseModel):
    """A room."""

    name: Literal["kitchen", "hall"]
    degrees: int = Field(ge=5, le=30)


def langchain(reply: str, **options: Any) -> str:
    """LangChain: a setting that is bound."""
    from toolgrammar.adapters.langchain import ChatToolGrammar

    return ChatToolGrammar(model=ScriptedModel([reply])).bind(**options).invoke("x").text


def autogen(reply: str, **options: Any) -> str:
    """AutoGen: an argument of the call."""
    from autogen_core.models import UserMessage

    from toolgrammar.adapters.autogen import ToolGrammarChatCompletionClient

    client = ToolGrammarChatCompletionClient(ScriptedModel([reply]))
    message = UserMessage(content="x", source="user")
    return str(asyncio.run(client.create([message], extra_create_args=options)).content)


def agent_framework(reply: str, **options: Any) -> str:
    """Agent Framework: an option of the call."""
    from agent_framework import Message

    from toolgrammar.adapters.agent_framework import ToolGrammarChatClient

    async def answered() -> Any:
        return await ToolGrammarChatClient(ScriptedModel([reply])).get_response(
            [Message("user", ["x"])], options=options
        )

    return str(asyncio.run(answered()).text)


ADAPTERS = [langchain, autogen, agent_framework]
LISTS = Grammar.rule("lists", lambda: Grammar.literal("(") + Grammar.repeat(LISTS) + Grammar.literal(")"))


@pytest.mark.parametrize("ask", ADAPTERS)
def test_every_kind_of_shape(ask: Callable[..., str]) -> None:
    """A Pydantic class, a Python type, a schema and a grammar are each held, whatever the model would rather write."""
    assert Room.model_validate_json(ask('{"name": "cellar", "degrees": 90}', output_type=Room))
    assert TypeAdapter(list[int]).validate_json(ask("[1, true]", output_type=list[int]))
    assert json.loads(
        ask('{"a": 1, "b": 2}', output_type={"type": "object", "properties": {"a": {"type": "integer"}}})
    ) == {"a": 1}
    assert LISTS.matches(ask("(()x(", output_type=LISTS, max_tokens=30))


@pytest.mark.parametrize("ask", ADAPTERS)
def test_unknown_shapes_and_two_shapes_are_errors(ask: Callable[..., str]) -> None:
    """What is no shape is refused, and so are two shapes at once."""
    with pytest.raises(ModelError, match="output_type is 'room'"):
        ask("x", output_type="room")
    with pytest.raises(ModelError, match="another type of the answer"):
        ask("x", output_type=Room, grammar=LISTS)


@pytest.mark.parametrize("ask", ADAPTERS)
def test_a_cut_answer_is_an_error(ask: Callable[..., str]) -> None:
    """A structured answer that the budget cut is not handed over as a whole one."""
    from toolgrammar.core import BudgetError

    with pytest.raises(BudgetError):
        ask(
            json.dumps({"text": "a" * 200}),
            output_type={"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]},
            max_tokens=25,
        )


def test_instances_where_the_framework_gives_them() -> None:
    """Agent Framework makes the instance of a class, as for a response format."""
    from agent_framework import Message

    from toolgrammar.adapters.agent_framework import ToolGrammarChatClient

    async def value() -> Any:
        client = ToolGrammarChatClient(ScriptedModel(['{"name": "hall", "degrees": 20}']))
        return (await client.get_response([Message("user", ["x"])], options={"output_type": Room})).value

    assert asyncio.run(value()) == Room(name="hall", degrees=20)


def test_langchain_caches_tell_shapes_apart() -> None:
    """The key of LangChain's cache has the content of a shape: equal shapes share an answer, different ones do not."""
    from toolgrammar.adapters.langchain import ChatToolGrammar

    model = ChatToolGrammar(model=ScriptedModel(["x"]))

    def pairs(word: str) -> Grammar:
        rule = Grammar.rule("pair", lambda: Grammar.literal(word) + Grammar.repeat(rule))
        return rule

    keys = [model._get_llm_string(output_type=shape) for shape in (Room, list[int], pairs("a"), pairs("b"))]
    assert len({*keys}) == 4
    assert model._get_llm_string(output_type=pairs("a")) == keys[2]


def test_the_call_wins_over_the_client() -> None:
    """AutoGen: the shape of a client is a default, which a call's own shape replaces."""
    from autogen_core.models import UserMessage

    from toolgrammar.adapters.autogen import ToolGrammarChatCompletionClient

    client = ToolGrammarChatCompletionClient(ScriptedModel(["[1]"] * 2), output_type=list[int])
    message = UserMessage(content="x", source="user")
    assert asyncio.run(client.create([message])).content == "[1]"
    assert Room.model_validate_json(str(asyncio.run(client.create([message], json_output=Room)).content))
    with pytest.raises(ModelError, match="cannot be written"):
        client.dump_component()


WRITTEN = [
    LISTS.dumps(),
    json.loads(LISTS.dumps()),
    'root ::= "(" root* ")"',
    {"syntax": "lark", "definition": 'start: "(" start* ")"'},
]


def crewai(reply: str, **options: Any) -> str:
    """CrewAI: an option of the model."""
    from toolgrammar.adapters.crewai import ToolGrammarLLM

    return str(ToolGrammarLLM(model=ScriptedModel([reply]), **options).call("x"))


def alone(reply: str, **options: Any) -> str:
    """No framework."""
    return ScriptedModel([reply]).generate("x", **options).text


@pytest.mark.parametrize("written", WRITTEN, ids=["dumps", "object", "gbnf", "lark"])
@pytest.mark.parametrize("ask", [*ADAPTERS, crewai, alone])
def test_grammars_as_data(ask: Callable[..., str], written: Any) -> None:
    """A grammar may be given as data or as text wherever `Grammar` may; the answer is one of its texts."""
    assert LISTS.matches(ask("(()) and more", grammar=written))


@pytest.mark.parametrize("ask", [*ADAPTERS, alone])
def test_wrong_grammars(ask: Callable[..., str]) -> None:
    """A grammar that cannot be read is an error that names the place."""
    with pytest.raises(Exception, match="line 1, column 10"):
        ask("x", grammar="root ::= )")
