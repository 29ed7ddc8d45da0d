"""CrewAI's part of `agents_validity`: a crew of one agent, a call demanded first, streamed or not."""

from __future__ import annotations

from typing import Any

from crewai import Agent, Crew, Task
from crewai.tools import BaseTool
from pydantic import BaseModel, ConfigDict, create_model

from benchmarks.answers.agents_case import MAX_TURNS, Case
from toolgrammar.adapters.crewai import ToolGrammarLLM


class Anything(BaseModel):
    """Arguments as they come: CrewAI's own reading of the schema is not what is tested."""

    model_config = ConfigDict(extra="allow")


def tool(case: Case, name: str, description: str) -> BaseTool:
    """A tool that records what it is given; its schema goes to CrewAI as it is."""
    schema = case.schema(name)

    class Arguments(Anything):
        @classmethod
        def model_json_schema(cls, *arguments: Any, **options: Any) -> dict[str, Any]:
            return dict(schema)

    class Recorder(BaseTool):
        def _run(self, **arguments: Any) -> str:
            return case.run_tool(name, arguments)

    made = create_model("Arguments", __base__=Arguments)
    return Recorder(name=name, description=description, args_schema=made)


def run(case: Case) -> None:
    """Let one agent run."""
    llm = ToolGrammarLLM(
        model=case.model,
        temperature=1.0,
        seed=case.seed,
        max_tokens=case.max_tokens,
        tool_choice="required_first",
    )
    tools = [tool(case, each["name"], each.get("description") or each["name"]) for each in case.functions]
    about: dict[str, Any] = {"role": "Clerk", "goal": "Answer", "backstory": "You answer."}
    agent = Agent(**about, tools=tools, llm=llm, max_iter=MAX_TURNS, max_retry_limit=0)
    task = Task(description=case.question.replace("{", "(").replace("}", ")"), expected_output="Words", agent=agent)
    crew = Crew(agents=[agent], tasks=[task], stream=case.stream)
    if case.stream:
        for _ in crew.kickoff():
            pass
    else:
        crew.kickoff()
    executor: Any = agent.agent_executor
    for message in executor.messages:
        text = str(message.get("content") or "")
        if message.get("role") == "tool" and text != "done":
            if "Failed to parse tool arguments" in text:
                case.cut += 1
            else:
                case.problems.append(f"the framework refused a call: {text}")
