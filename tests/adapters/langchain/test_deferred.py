"""Tools at the price of their names, in LangChain."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_core.messages import HumanMessage
from langchain_core.tools import tool

from toolgrammar.adapters.langchain import ChatToolGrammar
from toolgrammar.core import Message, ToolCall
from toolgrammar.core.testing import ScriptedModel


@tool(extras={"defer_loading": True})
def sink(ship: str, depth: int = 3) -> str:
    """Sink a ship. It cannot be undone."""
    return f"{ship} at {depth}"


@tool
def raise_ship(wreck: str) -> str:
    """Raise a ship. It takes years."""
    return wreck


CALL = Message("assistant", tool_calls=(ToolCall("c", "sink", {"ship": "Vasa"}),))


@pytest.mark.parametrize("settings", [{}, {"tools_in_prompt": "names"}])
def test_a_deferred_tool_has_its_name_in_the_prompt(settings: dict[str, Any]) -> None:
    """Its schema is read when it is called; that of the other tool stands in the prompt, unless all are named only."""
    model = ScriptedModel(lambda messages: CALL)
    prompts: list[str] = []
    encode = model.backend.encode_prompt

    def encode_prompt(*given: Any) -> list[int]:
        ids = encode(*given)
        prompts.append(model.vocabulary.decode(ids).decode())
        return ids

    model.backend.encode_prompt = encode_prompt  # type: ignore[method-assign]
    chat = ChatToolGrammar(model=model, **settings)
    answer: Any = chat.bind_tools([sink, raise_ship]).invoke("Sink the Vasa.")
    assert [(call["name"], call["args"]) for call in answer.tool_calls] == [("sink", {"ship": "Vasa"})]
    assert "sink: Sink a ship." in prompts[0] and '"depth"' not in prompts[0]
    assert ('"wreck"' in prompts[0]) == (not settings)
    assert '"depth"' in prompts[-1]
    assert answer.usage_metadata["input_tokens"] == len(model.encode(prompts[-1]))
    messages = [HumanMessage("Sink the Vasa.")]
    assert chat.get_num_tokens_from_messages(messages, [sink, raise_ship]) == len(model.encode(prompts[0]))
