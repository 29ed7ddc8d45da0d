"""CrewAI's text form of calls: what may be written, how it is read, and that CrewAI's own parser agrees."""

from __future__ import annotations

import contextlib
import json
from typing import Any

import pytest
from crewai import Agent, Crew, Task
from crewai.agents.parser import AgentAction, AgentFinish, parse
from crewai.events import crewai_event_bus
from crewai.events.types.llm_events import LLMStreamChunkEvent
from crewai.lite_agent import LiteAgent
from crewai.llms.base_llm import call_stop_override
from pydantic import BaseModel

from toolgrammar.adapters.crewai import ToolGrammarLLM
from toolgrammar.adapters.crewai.messages import is_answered
from toolgrammar.adapters.crewai.react import React, shielded, spelled
from toolgrammar.core import (
    ArgumentsDelta,
    CallEnd,
    CallStart,
    InvalidArgumentsError,
    Message,
    Model,
    TextDelta,
    ToolCall,
)
from toolgrammar.core.testing import ScriptedModel
from toolgrammar.tools import ToolSet

from .tools import RAN, turn, word_count

# CrewAI's light agent is on its way out, and reads fields that CrewAI itself has deprecated.
pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning:crewai"),
    pytest.mark.filterwarnings("ignore:LiteAgent is deprecated:FutureWarning"),
]


class Count(BaseModel):
    """How many."""

    total: int


TOOLS = ToolSet.from_any(
    [
        {"name": "turn", "parameters": turn.args_schema.model_json_schema()},
        {"name": "word_count", "parameters": word_count.args_schema.model_json_schema()},
    ]
)
STOP = ("\nObservation:",)
COUNTED = 'Action: word_count\nAction Input: {"words": {"a": 1, "b": 2}}'


@pytest.fixture(autouse=True)
def _fresh() -> None:
    """No calls from other tests."""
    RAN.clear()


# -- the form ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Thought: I turn.\n" + 'Action: turn\nAction Input: {"angle": 1, "fast": true}', True),
        ('Action: turn\nAction Input: {"angle": 1, "fast": true}', True),
        ("Thought: I know.\nFinal Answer: 42", True),
        ("Final Answer: 42\nand more: Action: none", True),
        ("Thought: Action\nFinal Answer: 42", True),
        (COUNTED, True),
        ('Action: turn\nAction Input: {"angle": 1}', False),
        ('Action: turn\nAction Input: {"words": {}}', False),
        ('Action: twist\nAction Input: {"angle": 1, "fast": true}', False),
        ('Action: turn\nAction Input: {"angle": 1, "fast": true}\nObservation: turned', False),
        ('Action: turn\nAction Input: {"angle": 1, "fast": true}\n' + COUNTED, False),
        ("Thought: Action 1: none\nFinal Answer: 42", False),
        ("Thought: 42\nObservation: x\nFinal Answer: 42", False),
        ("Final Answer: 1\nFinal Answer: 2", False),
        ("Final Answer: ```\n```", False),
        ("42", False),
        ("Thought: 42", False),
    ],
)
def test_form(text: str, expected: bool) -> None:
    """A thought, then one action of a tool with its own arguments, or an answer that is not empty."""
    assert TOOLS.grammar(React(STOP), parallel=False).matches(text) is expected


@pytest.mark.parametrize("choice", ["required", "none", "turn"])
def test_choice(choice: str) -> None:
    """A demanded call leaves no answer, a forbidden one leaves nothing else."""
    grammar = TOOLS.grammar(React(), tool_choice=choice)
    assert grammar.matches("Final Answer: 42") is (choice == "none")
    assert grammar.matches(COUNTED) is (choice == "required")


def test_answer_under_a_schema() -> None:
    """With a schema the answer is JSON of it, and words may come before."""
    grammar = TOOLS.grammar(React(), response_schema=Count)
    assert grammar.matches('Thought: done\nFinal Answer: {"total": 3}')
    assert not grammar.matches("Final Answer: 3")


@pytest.mark.parametrize("size", [1, 2, 7, 1000])
@pytest.mark.parametrize("text", ["Thought: Action\nAction: x\nI turn.\n" + COUNTED, "A\nFinal Answer: Action: x"])
def test_parser(text: str, size: int) -> None:
    """However the text is cut, the deltas add up to it and name the call."""
    parser = React().parser(tuple(TOOLS), lambda call: call, lambda: "c1")
    events = [event for at in range(0, len(text), size) for event in parser.feed(text[at : at + size])]
    events += parser.close()
    said = "".join(event.text for event in events if isinstance(event, TextDelta))
    written = "".join(event.text for event in events if isinstance(event, ArgumentsDelta))
    starts = [event.name for event in events if isinstance(event, CallStart)]
    ends = [event.call for event in events if isinstance(event, CallEnd)]
    assert spelled(said, starts[0] if starts else None, written) == text
    if starts:
        assert ends == [ToolCall("c1", "word_count", {"words": {"a": 1, "b": 2}}, raw=written)]


def test_parser_reports_what_is_no_object() -> None:
    """Arguments that are not a JSON object come as a call with an error; so does a text that breaks off."""
    for text in ("Action: turn\nAction Input: [1]", 'Action: turn\nAction Input: {"a"'):
        parser = React().parser(tuple(TOOLS), lambda call: call, lambda: "c1")
        last = [*parser.feed(text), *parser.close()][-1]
        assert isinstance(last, CallEnd) and last.call.error is not None


@pytest.mark.parametrize(
    "arguments",
    [
        {"words": {"Final Answer: x": 1}, "note": "Final Answer: Final Answer:"},
        {"words": {}, "note": 'Action: a\nAction Input: {"b": 1}\nObservation: "c"'},
        {"words": {"é\u2028\\": -5}, "note": '"""```\\"'},
        {"words": {}, "note": "Final Answer" + ":" * 3},
    ],
)
def test_crewai_reads_what_was_meant(arguments: dict[str, Any]) -> None:
    """CrewAI's parser finds the name and the very arguments, whatever they contain."""
    action = parse(React().render("Thought: hm", [ToolCall("", "word_count", arguments)]))
    assert isinstance(action, AgentAction)
    assert action.tool == "word_count"
    assert json.loads(action.tool_input) == arguments


def test_shield_grows_with_its_text() -> None:
    """The beginning of a text is shielded to the beginning of its shielded form."""
    text = '{"Final Answer: a": "Final Answer:"}'
    for end in range(len(text) + 1):
        assert shielded(text).startswith(shielded(text[:end]))
    assert json.loads(shielded(text)) == json.loads(text)


@pytest.mark.parametrize("seed", range(6))
def test_noise_is_understood(noise: Model, seed: int) -> None:
    """Noise at temperature 1: CrewAI reads an action of a tool, with arguments that validate, or an answer."""
    choice = ("auto", "required")[seed % 2]
    params: dict[str, Any] = {"tools": TOOLS, "tool_format": React(STOP), "tool_choice": choice, "stop": STOP}
    result = noise.generate("go", temperature=1.0, seed=seed, max_tokens=60, parallel_tool_calls=False, **params)
    read = parse(React().render(result.text, result.tool_calls))
    if isinstance(read, AgentFinish):
        assert choice == "auto" and read.output
    else:
        TOOLS.validate({"name": read.tool, "arguments": json.loads(read.tool_input)})


# -- agents --------------------------------------------------------------------------------------------------------


def crew_of(model: Model, **fields: Any) -> Crew:
    """One agent that calls its tools in text."""
    llm = ToolGrammarLLM(model=model, native_tools=False, **fields)
    agent = Agent(role="Clerk", goal="Count", backstory="You count.", tools=[word_count, turn], llm=llm, max_iter=3)
    return Crew(agents=[agent], tasks=[Task(description="Count.", expected_output="A number", agent=agent)])


def test_crew_in_text() -> None:
    """A model that does as CrewAI's prompt says is understood; CrewAI's markers inside of arguments do no harm."""
    words = {"Final Answer: a": 3}
    said = f"Thought: count\nAction: word_count\nAction Input: {json.dumps({'words': words, 'note': 'Action: b'})}"
    model = ScriptedModel([said, "Thought: done\nFinal Answer: Three."])
    assert crew_of(model).kickoff().raw == "Three."
    (ran,) = RAN
    assert ran == {"words": words, "note": "Action: b"}
    assert "Observation: 3 words" in model.requests[1][-2].text


def test_output_class_in_text() -> None:
    """The answer matches the output class at once, no further call is made for it."""
    model = ScriptedModel([COUNTED, 'Thought: done\nFinal Answer: {"total": 3}'])
    crew = crew_of(model)
    crew.tasks[0].output_json = Count
    assert crew.kickoff().json_dict == {"total": 3}
    assert len(model.requests) == 2


@pytest.mark.parametrize("direct", [False, True])
def test_agents_without_a_crew(direct: bool) -> None:
    """An agent on its own calls in text, and CrewAI's light agent, which knows no other way, does too."""
    model = ScriptedModel(["Thought: count\n" + COUNTED, "Final Answer: Three."])
    who: dict[str, Any] = {"role": "Clerk", "goal": "Count", "backstory": "You count.", "tools": [word_count]}
    agent: Any = (
        Agent(**who, llm=ToolGrammarLLM(model=model, native_tools=False))
        if direct
        else LiteAgent(**who, llm=ToolGrammarLLM(model=model))
    )
    assert agent.kickoff("Count.").raw == "Three."
    assert RAN == [{"words": {"a": 1, "b": 2}, "note": "none"}]


def test_unreachable_tools_take_any_arguments() -> None:
    """A tool that the prompt names and that no agent has is called with any arguments: nothing valid is refused."""
    prompt = "Action: the action to take, only one name of [dig, fly], just the name\nAction Input: the input"
    said = 'Action: fly\nAction Input: {"to": [1, "two"]}'
    llm = ToolGrammarLLM(model=ScriptedModel([said]))
    assert llm.call([{"role": "user", "content": prompt}]) == said


@pytest.mark.parametrize(
    ("role", "text", "expected"),
    [
        ("user", "Observation: the result of the action", True),
        ("user", "Write:\nObservation: the result of the action", False),
        ("assistant", COUNTED + "\nObservation: 3 words", True),
        ("assistant", COUNTED, False),
        ("tool", "3 words", True),
    ],
)
def test_what_counts_as_answered(role: Any, text: str, expected: bool) -> None:
    """Until a result of a tool is in the conversation, in whichever form, "required_first" demands a call."""
    assert is_answered([Message("user", "Count."), Message(role, text)]) is expected


def test_cut_action_is_an_error() -> None:
    """CrewAI repairs what does not parse and runs it, so an action that the budget cut is an error."""
    said = 'Action: word_count\nAction Input: {"words": {"a": 1}, "note": "' + "x" * 500 + '"}'
    with pytest.raises(InvalidArgumentsError, match="cut short"):
        crew_of(ScriptedModel(lambda messages: said), max_tokens=120).kickoff()
    assert RAN == []


def test_stream_equals_result() -> None:
    """While streaming in text, the chunks add up to what CrewAI gets, escapes and all."""
    chunks: list[str] = []
    said = 'Action: word_count\nAction Input: {"words": {}, "note": "Final Answer: x"}'
    agent = LiteAgent(
        role="a", goal="b", backstory="c", tools=[word_count], llm=ToolGrammarLLM(model=ScriptedModel([]))
    )
    with crewai_event_bus.scoped_handlers():

        @crewai_event_bus.on(LLMStreamChunkEvent)
        def _(source: Any, event: Any) -> None:
            chunks.append(event.chunk)

        llm = ToolGrammarLLM(model=ScriptedModel([said]), stream=True)
        with call_stop_override(llm, list(STOP)):
            prompt = [{"role": "user", "content": "\nAction: ...\nAction Input: ..."}]
            whole = llm.call(prompt, from_agent=agent)
        crewai_event_bus.flush()
    assert "".join(chunks) == whole == said.replace("Answer:", "Answer\\u003a")


@pytest.mark.parametrize("seed", range(3))
def test_crew_of_noise(noise: Model, seed: int) -> None:
    """A crew of noise in text ends with an answer or with the error for a cut action; what runs validates."""
    with contextlib.suppress(InvalidArgumentsError):
        assert crew_of(noise, temperature=1.0, seed=seed, max_tokens=80).kickoff().raw
    for arguments in RAN:
        name = "turn" if "angle" in arguments else "word_count"
        TOOLS.validate({"name": name, "arguments": arguments})
