"""A deep agent of LangChain that looks something up, writes a file, and reports.

    pip install 'toolgrammar[langchain]' deepagents
    python examples/langchain_deep_agent.py

It runs offline and at once, because the model follows a script. For a real one, replace it by::

    ChatToolGrammar(model="hf:Qwen/Qwen2.5-7B-Instruct")
"""

from __future__ import annotations

from typing import Any

from deepagents import create_deep_agent

from toolgrammar.adapters.langchain import ChatToolGrammar
from toolgrammar.core import Message, ToolCall
from toolgrammar.core.testing import ScriptedModel


def water_of(lake: str) -> str:
    """Return the depth of a lake."""
    print(f"tool runs:  water_of({lake!r})")
    return "27 metres"


def called(name: str, **arguments: Any) -> Message:
    """An answer that is a call."""
    return Message("assistant", tool_calls=(ToolCall("", name, arguments),))


script = [
    called("water_of", lake="Plau"),
    called("write_file", file_path="/report.md", content="Lake Plau is 27 metres deep."),
    "The report is in /report.md.",
]
agent: Any = create_deep_agent(model=ChatToolGrammar(model=ScriptedModel(script), max_tokens=400), tools=[water_of])
state = agent.invoke({"messages": [{"role": "user", "content": "How deep is Lake Plau? Write a report."}]})
for path, file in state["files"].items():
    text = file["content"] if isinstance(file, dict) else file
    print("file:      ", path, text if isinstance(text, str) else "\n".join(text))
print("agent says:", state["messages"][-1].text)
