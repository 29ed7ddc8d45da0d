"""A hundred tools at the price of their names: a tool's schema is read when it is called.

    pip install toolgrammar
    python examples/tools_by_name.py

It runs offline and at once, because the model follows a script. For a real one, replace it by::

    load_model("hf:Qwen/Qwen2.5-1.5B-Instruct")
"""

from __future__ import annotations

from toolgrammar.core import Message, ToolCall
from toolgrammar.core.testing import ScriptedModel
from toolgrammar.tools import Tool, ToolSet

ROOMS = [f"room_{number}" for number in range(100)]


def heating(room: str) -> Tool:
    """Return a tool with a schema that is much longer than its name."""
    hours = {"type": "integer", "minimum": 1, "maximum": 12, "description": "For so many hours."}
    degrees = {"type": "number", "minimum": 5, "maximum": 25, "description": "In degrees Celsius, not Fahrenheit."}
    schema = {"type": "object", "properties": {"degrees": degrees, "hours": hours}, "required": ["degrees"]}
    return Tool(f"heat_{room}", f"Heat the {room.replace('_', ' ')}. Takes effect at once.", schema)


def main() -> None:
    """Compare the prompts, and make a call."""
    tools = ToolSet([heating(room) for room in ROOMS])
    call = ToolCall("", "heat_room_42", {"degrees": 21.5, "hours": 2})
    model = ScriptedModel(lambda _: Message("assistant", tool_calls=(call,)))
    question = "Make room 42 warm for two hours."
    for mode in ("schemas", "names"):
        print(f"tokens with {mode}: {model.count_tokens(question, tools, mode):,}")
    answer = model.generate(question, tools=tools, tools_in_prompt="names")
    print(f"tokens with names and the schema of one call: {answer.usage.prompt_tokens:,}")
    for made in answer.tool_calls:
        print(f"call: {made.name}({dict(made.arguments)})")


if __name__ == "__main__":
    main()
