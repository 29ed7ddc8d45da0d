"""A CrewAI LLM whose tool calls and structured answers are valid by construction.

::

    from toolgrammar.adapters.crewai import ToolGrammarLLM

    llm = ToolGrammarLLM(model="hf:Qwen/Qwen2.5-1.5B-Instruct")
    agent = Agent(role="Clerk", goal="Answer", backstory="...", tools=[find_order], llm=llm)

Agents take CrewAI's native tool path: the model is offered the tools and returns calls. Where CrewAI has tools called
in text instead ("Action:"), that text has a grammar of its own (see `react`). Grammars are compiled from the agent's
own tools where they can be reached, since the schemas that CrewAI passes on have lost recursion, maps and optional
arguments. CrewAI runs every call whose arguments parse, so a call that the token budget cut short is handed over in a
form that does not parse: CrewAI then tells the model what went wrong.
"""

from __future__ import annotations

from .llm import ToolGrammarLLM

__all__ = ["ToolGrammarLLM"]
