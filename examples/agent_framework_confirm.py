"""An agent of Microsoft Agent Framework that asks a person for approval where the model was not sure.

    pip install 'toolgrammar[agent-framework]'
    python examples/agent_framework_confirm.py

`exact_choice` tells how sure the model was of each call: of its tool, and of values that are choices. Looking at an
account runs at once; a transfer is asked about unless the model is almost certain. The model follows a script, which
is certain, so here transfers are always asked about. For a real model::

    client = ToolGrammarChatClient(model="hf:Qwen/Qwen2.5-1.5B-Instruct", default_options={"exact_choice": True})
    confirm = ConfirmUnsure(client, below=0.9, tools={"look": 0, "transfer": 0.99})
"""

import asyncio
from typing import Literal

from agent_framework import Message as FrameworkMessage

from toolgrammar.adapters.agent_framework import ConfirmUnsure, ToolGrammarChatClient
from toolgrammar.core import Message, ToolCall
from toolgrammar.core.testing import ScriptedModel


def look(account: Literal["house", "car"]) -> str:
    """Look at an account."""
    print(f"tool runs:    look({account!r})")
    return f"{account}: 500"


def transfer(amount: int, to: Literal["house", "car"]) -> str:
    """Transfer money to an account."""
    print(f"tool runs:    transfer({amount}, {to!r})")
    return f"{amount} sent to {to}"


async def run() -> None:
    """Ask once, and answer the approvals."""
    calls = [ToolCall("", "look", {"account": "car"}), ToolCall("", "transfer", {"amount": 200, "to": "car"})]
    turns = [Message("assistant", tool_calls=(call,)) for call in calls]
    client = ToolGrammarChatClient(
        model=ScriptedModel([*turns, "It is sent."]), default_options={"exact_choice": True, "max_tokens": 600}
    )
    confirm = ConfirmUnsure(client, below=0.9, tools={"look": 0, "transfer": 1.01})
    agent = client.as_agent(name="bank", tools=[look, transfer], middleware=[confirm])
    session = agent.create_session()
    response = await agent.run("Send 200 to the car, if it has less than 600.", session=session)
    while response.user_input_requests:
        answers = []
        for asked in response.user_input_requests:
            call = asked.function_call
            print(f"person:       yes to {call.name}({call.parse_arguments()})")
            answers.append(asked.to_function_approval_response(approved=True))
        response = await agent.run(FrameworkMessage("user", answers), session=session)
    print(f"agent says:   {response.text}")


if __name__ == "__main__":
    asyncio.run(run())
