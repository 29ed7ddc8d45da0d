"""`ToolGrammarDecisions`: LangChain's decision model, and the two middlewares of LangChain that need one."""

from __future__ import annotations

import asyncio
import importlib
import importlib.util
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage

from toolgrammar.core import MissingDependencyError, Model, ModelError
from toolgrammar.core.models import OneOf, Scale, YesNo, load_model
from toolgrammar.core.testing import ScriptedModel

HAS_DECISIONS = importlib.util.find_spec("langchain_core.decisions") is not None
needs_decisions = pytest.mark.skipif(not HAS_DECISIONS, reason="this langchain-core has no decisions (1.8 has)")


def classifier_of(**settings: Any) -> Any:
    """The decision model."""
    return importlib.import_module("toolgrammar.adapters.langchain").ToolGrammarDecisions(**settings)


def questions_of() -> dict[str, Any]:
    """A question of each kind."""
    kinds: Any = importlib.import_module("langchain_core.decisions")
    return {
        "urgent": kinds.Noul(instructions="Is it urgent?", criteria={"true": "Act now."}),
        "team": kinds.Choice(instructions={"ask": "team"}, criteria={"a": None, "a b": {"of": "b"}, "c": "c"}),
        "anger": kinds.Score(instructions="How angry?", criteria=["calm", None, ["mad"]]),
    }


@pytest.fixture(scope="module")
def model() -> Model:
    """The embedded model."""
    return load_model("embedded")


@pytest.mark.skipif(HAS_DECISIONS, reason="this langchain-core has decisions")
def test_an_older_langchain_is_named() -> None:
    """The error says which version is needed; all else of the adapter works."""
    with pytest.raises(MissingDependencyError, match=r"langchain-core of version 1\.8"):
        classifier_of()


@needs_decisions
def test_answers_are_those_of_decide(model: Model) -> None:
    """Of each kind, in LangChain's own types, blocking and not, with token counts."""
    classifier = classifier_of(model=model, orders=2, prior=True)
    request = {"state": {"text": "Pay now!"}, "questions": questions_of()}
    wanted = model.decide(
        {"text": "Pay now!"},
        {
            "urgent": YesNo("Is it urgent?", yes="Act now."),
            "team": OneOf('{"ask": "team"}', {"a": "", "a b": '{"of": "b"}', "c": "c"}),
            "anger": Scale("How angry?", ["calm", "", '["mad"]']),
        },
        orders=2,
        prior=True,
    )
    for response in (classifier.invoke(request), asyncio.run(classifier.ainvoke(request))):
        assert response.nouls["urgent"].noul == pytest.approx(wanted["urgent"].probabilities[True], abs=1e-4)
        team, anger = response.choices["team"], response.scores["anger"]
        assert team.choice == wanted["team"].value
        assert team.probabilities == pytest.approx(dict(wanted["team"].probabilities), abs=1e-4)
        assert team.confidence == max(team.probabilities.values())
        assert anger.score == pytest.approx(sum(level * share for level, share in anger.probabilities.items()))
        assert anger.legend == {0: "calm", 1: None, 2: ["mad"]} and sum(anger.probabilities.values()) == pytest.approx(
            1
        )
        assert response.usage["input_tokens"] == sum(one.prompt_tokens for one in wanted.values())
        assert response.model == classifier.model == model.name


@needs_decisions
def test_messages_are_a_state() -> None:
    """Wherever they stand; calls and results are among them."""
    model = ScriptedModel(lambda _: "Yes")
    call = {"name": "rm", "args": {"path": "/"}, "id": "c", "type": "tool_call"}
    state = {
        "messages": [
            SystemMessage("Be strict."),
            HumanMessage([{"type": "text", "text": "Delete"}]),
            AIMessage("", tool_calls=[call]),
            ToolMessage("no", tool_call_id="c", name="rm", status="error"),
        ],
        "depth": (1, 2),
    }
    response = classifier_of(model=model).invoke({"state": state, "questions": {"q": questions_of()["urgent"]}})
    assert response.nouls["q"].noul > 0.99
    assert (
        '{"messages": [{"role": "system", "content": "Be strict."}, {"role": "user", "content": "Delete"}, '
        '{"role": "assistant", "content": "", "tool_calls": [{"name": "rm", "args": {"path": "/"}}]}, '
        '{"role": "tool", "content": "no", "name": "rm", "status": "error"}], "depth": [1, 2]}\n'
    ) in model.requests[0][0].text


@needs_decisions
def test_wrong_requests_and_settings(model: Model) -> None:
    """A place in an image, an image, an unknown setting, a wrong one and a model on a server are errors of ours."""
    kinds: Any = importlib.import_module("langchain_core.decisions")
    classifier, questions = classifier_of(model=model), questions_of()
    with pytest.raises(ModelError, match="question 'b' is a Box"):
        classifier.invoke({"state": "x", "questions": {"b": kinds.Box(instructions="Where?")}})
    image = {"type": "image", "base64": "AAAA", "mime_type": "image/png"}
    for state in ([HumanMessage([image])], {"picture": image}):
        with pytest.raises(ModelError, match="block of the type 'image'"):
            classifier.invoke({"state": state, "questions": questions})
    with pytest.raises(ModelError, match="questions is 0 questions"):
        classifier.invoke({"state": "x", "questions": {}})
    for settings in ({"order": 2}, {"orders": 25}, {"timeout": -1}):
        with pytest.raises(ModelError, match=next(iter(settings))):
            classifier_of(model=model, **settings)
    with pytest.raises(ModelError, match="is on a server"):
        classifier_of(model="openai:some@http://127.0.0.1:9/v1")


@needs_decisions
def test_saved_and_loaded() -> None:
    """One whose model has an address can be saved; one of a loaded model says that it cannot."""
    saved: Any = importlib.import_module("langchain_core.load")
    made = classifier_of(model="embedded", orders=2)
    assert '"not_implemented"' not in saved.dumps(made) and '"orders": 2' in saved.dumps(made)
    assert '"not_implemented"' in saved.dumps(classifier_of(model=load_model("embedded")))
    assert made.model_copy().loaded is made.loaded


def _verdict(messages: Any) -> str:
    """What the classifier of the middlewares says: a deletion is risky, and rhymes are for the second model."""
    text = messages[0].text
    state = text[text.index("State:") : text.index("Question:")]
    if "authorized" in text:
        return "Yes" if "delete_file" in state else "No"
    return "rhymes" if "poem" in state else "rhyme"


@needs_decisions
@pytest.mark.filterwarnings("ignore:.*is in beta")
def test_auto_mode_stops_a_risky_call() -> None:
    """LangChain's `AutoModeMiddleware` blocks the call that the decision model finds risky, and lets the other run."""
    agents: Any = importlib.import_module("langchain.agents")
    middleware: Any = importlib.import_module("langchain.agents.middleware")
    adapter: Any = importlib.import_module("toolgrammar.adapters.langchain")
    ran: list[str] = []

    def delete_file(path: str) -> str:
        """Delete a file."""
        ran.append(f"delete {path}")
        return "deleted"

    def read_file(path: str) -> str:
        """Read a file."""
        ran.append(f"read {path}")
        return "text"

    def call(name: str) -> str:
        return f'<tool_call>\n{{"name": "{name}", "arguments": {{"path": "a"}}}}\n</tool_call>'

    chat = adapter.ChatToolGrammar(model=ScriptedModel([call("read_file"), call("delete_file"), "Done."]))
    auto = middleware.AutoModeMiddleware(
        tools=[delete_file.__name__, read_file.__name__], classifier=classifier_of(model=ScriptedModel(_verdict))
    )
    agent = agents.create_agent(chat, tools=[delete_file, read_file], middleware=[auto])
    result = agent.invoke({"messages": [("user", "Read a.")]})
    said = [message.text for message in result["messages"] if message.type == "tool"]
    assert ran == ["read a"] and said[0] == "text" and "was blocked because it was classified as risky" in said[1]


@needs_decisions
@pytest.mark.filterwarnings("ignore:.*is in beta")
def test_the_router_takes_the_model_of_the_choice() -> None:
    """LangChain's `ModelRouterMiddleware` asks the model whose label was chosen; labels may share a beginning."""
    agents: Any = importlib.import_module("langchain.agents")
    middleware: Any = importlib.import_module("langchain.agents.middleware")
    adapter: Any = importlib.import_module("toolgrammar.adapters.langchain")
    chats = {
        name: adapter.ChatToolGrammar(model=ScriptedModel(lambda _, name=name: f"I am {name}."))
        for name in ("rhyme", "rhymes")
    }
    choices = {name: middleware.ModelChoice(model=chat, criteria=f"for {name}") for name, chat in chats.items()}
    router = middleware.ModelRouterMiddleware(
        choices=choices, instructions="Which model?", classifier=classifier_of(model=ScriptedModel(_verdict))
    )
    agent = agents.create_agent(chats["rhyme"], middleware=[router])
    for text, name in (("A poem, please.", "rhymes"), ("A word, please.", "rhyme")):
        for result in (
            agent.invoke({"messages": [("user", text)]}),
            asyncio.run(agent.ainvoke({"messages": [("user", text)]})),
        ):
            assert result["messages"][-1].text == f"I am {name}." and result["model_route"].choice == name
