"""An agent of Microsoft Agent Framework with a model on a server: its answers are validated before any tool runs.

    pip install 'toolgrammar[agent-framework]'
    python examples/agent_framework_remote.py

It runs offline and at once, because it starts a server of its own with a scripted model. For a real one say where::

    ToolGrammarChatClient(model="vllm:Qwen/Qwen3-8B@http://localhost:8000/v1")
"""

from __future__ import annotations

import asyncio

from local_server import LocalServer

from toolgrammar.adapters.agent_framework import ToolGrammarChatClient

# The replies of the server. The first call writes a number as a word.
SCRIPT = [
    ("set_alarm", '{"hour": "seven"}'),
    ("set_alarm", '{"hour": 7}'),
    "The alarm rings at seven.",
]


def set_alarm(hour: int) -> str:
    """Set the alarm clock."""
    print(f"tool runs:   set_alarm({hour})")
    return "set"


async def run() -> None:
    """Ask one question and print the answer."""
    with LocalServer(SCRIPT) as server:
        client = ToolGrammarChatClient(model=f"openai:small@{server.url}")
        agent = client.as_agent(name="butler", instructions="Be brief.", tools=[set_alarm])
        result = await agent.run("Wake me at seven.")
        print(f"agent says:  {result.text}")
        print(f"requests:    {len(server.requests)}")


if __name__ == "__main__":
    asyncio.run(run())
