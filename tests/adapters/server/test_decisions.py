"""Decisions over HTTP: answers in the forms of OpenAI's SDK and of System One, with the model's own probabilities."""

from __future__ import annotations

import asyncio
import importlib
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from toolgrammar.adapters.server import create_app
from toolgrammar.adapters.server.in_process import BASE_URL, InProcess
from toolgrammar.core import Model
from toolgrammar.core.models import OneOf, Scale, YesNo, load_model
from toolgrammar.core.testing import ScriptedModel

QUESTIONS: list[dict[str, Any]] = [
    {"type": "predicate", "name": "urgent", "instructions": "Is it urgent?"},
    {
        "type": "choice",
        "name": "team",
        "instructions": [{"type": "input_text", "text": "Which"}, {"type": "input_json", "data": {"team": 1}}],
        "choices": [{"value": "billing", "description": "Money."}, {"value": "billing, late"}, {"value": True}],
    },
    {
        "type": "score",
        "instructions": "How angry?",
        "levels": [{"label": "calm"}, {"label": "mad", "description": "!"}],
    },
]
SYSTEM_ONE: dict[str, dict[str, Any]] = {
    "urgent": {"type": "noul", "instructions": "Is it urgent?", "criteria": {"true": "Act now."}},
    "team": {"type": "choice", "instructions": {"ask": "team"}, "criteria": {"a": None, "a b": {"of": "b"}, "c": "c"}},
    "anger": {"type": "score", "instructions": "How angry?", "criteria": ["calm", None, "mad"]},
}


@pytest.fixture(scope="module")
def model() -> Model:
    """The embedded model."""
    return load_model("embedded")


def test_openai_decisions(model: Model, http: Callable[..., httpx.Client]) -> None:
    """Answers come in the order of the questions, with the probabilities of `decide`."""
    body = {"model": "m", "input": "Pay now!", "questions": QUESTIONS}
    response = http({"m": model}).post("/v1/decisions", json=body)
    made = response.json()
    assert response.status_code == 200 and made["model"] == "m"
    wanted = model.decide(
        "Pay now!",
        {
            "urgent": YesNo("Is it urgent?"),
            "team": OneOf('Which\n{"team": 1}', {"billing": "Money.", "billing, late": "", "true": ""}),
            "": Scale("How angry?", ["calm", "mad (!)"]),
        },
    )
    predicate, choice, score = made["answers"]
    assert predicate["type"] == "predicate" and predicate["name"] == "urgent"
    assert predicate["probability"] == pytest.approx(wanted["urgent"].probabilities[True], abs=1e-4)
    assert [one["value"] for one in choice["probabilities"]] == ["billing", "billing, late", True]
    shares = [one["probability"] for one in choice["probabilities"]]
    assert shares == pytest.approx([*wanted["team"].probabilities.values()], abs=1e-4) and sum(shares) == pytest.approx(
        1
    )
    assert choice["choice"] == {"true": True}.get(str(wanted["team"].value), wanted["team"].value)
    assert choice["confidence"] == max(shares)
    assert score["name"] is None and [one["label"] for one in score["probabilities"]] == ["calm", "mad"]
    assert score["score"] == pytest.approx(sum(one["value"] * one["probability"] for one in score["probabilities"]))
    tokens = sum(one.prompt_tokens for one in wanted.values())
    assert (
        made["usage"]["input_tokens"] == made["usage"]["total_tokens"] == tokens and not made["usage"]["output_tokens"]
    )


def test_the_sdk_of_openai_decides(model: Model) -> None:
    """`client.decisions.create` gets its own types, with the model's probabilities; a wrong question is the SDK's error."""
    pytest.importorskip("openai.types.decision", reason="this version of openai has no decisions (openai 3.57 has)")
    openai: Any = importlib.import_module("openai")
    ours: Any = importlib.import_module("toolgrammar.adapters.openai")
    with ours.client({"m": model}) as client:
        made = client.decisions.create(model="m", input="Pay now!", questions=QUESTIONS)
        with pytest.raises(openai.BadRequestError, match="question"):
            client.decisions.create(model="m", input="Pay now!", questions=[])
    assert type(made).model_validate(made.model_dump(mode="json"), strict=True) == made
    assert [one.type for one in made.answers] == ["predicate", "choice", "score"]
    wanted = model.decide("Pay now!", {"urgent": YesNo("Is it urgent?")})["urgent"]
    assert made.answers[0].probability == pytest.approx(wanted.probabilities[True], abs=1e-4)


def test_pydantic_ai_decides(model: Model) -> None:
    """`SystemOneModel` takes the answers, which it checks, and reports our errors as its own."""
    pytest.importorskip("pydantic_ai.models.system_one", reason="pydantic-ai-slim is not installed")
    import httpx2
    from pydantic_ai.exceptions import ModelHTTPError
    from pydantic_ai.models.decision import ChoiceQuestion, DecisionRequest, NoulQuestion, ScoreQuestion
    from pydantic_ai.models.system_one import SystemOneModel
    from pydantic_ai.providers.system_one import SystemOneProvider

    questions: dict[str, Any] = {
        "urgent": NoulQuestion(instructions="Is it urgent?"),
        "team": ChoiceQuestion(instructions="Which team?", criteria={"billing": "money", "billing disputes": None}),
        "mood": ScoreQuestion(instructions="How angry?", criteria=["calm", "cross", "furious"]),
    }
    request = DecisionRequest(state={"text": "It is down!"}, questions=questions)

    async def asked(name: str) -> Any:
        http = httpx2.AsyncClient(transport=process.async_transport())
        async with http:
            provider = SystemOneProvider(base_url=BASE_URL, http_client=http)
            return await SystemOneModel(name, provider=provider).decide(request, {})

    process = InProcess(create_app({"m": model}), httpx2)
    made = asyncio.run(asked("m"))
    wanted = model.decide(
        {"text": "It is down!"},
        {
            "urgent": YesNo("Is it urgent?"),
            "team": OneOf("Which team?", {"billing": "money", "billing disputes": ""}),
            "mood": Scale("How angry?", ["calm", "cross", "furious"]),
        },
    )
    assert made.answers["urgent"].noul == pytest.approx(wanted["urgent"].probabilities[True], abs=1e-4)
    assert made.answers["team"].probabilities == pytest.approx(dict(wanted["team"].probabilities), abs=1e-4)
    assert made.answers["mood"].score == pytest.approx(wanted["mood"].value, abs=1e-3)
    with pytest.raises(ModelHTTPError, match="unknown"):
        asyncio.run(asked("unknown"))
    process.close()


def test_system_one(model: Model, http: Callable[..., httpx.Client]) -> None:
    """Answers have the names of the questions; probabilities add up to 1, and a score is their mean."""
    state = {"history": [{"user": "Hi"}], "text": "Pay now!"}
    made = http({"m": model}).post("/v1/systemone", json={"model": "m", "state": state, "questions": SYSTEM_ONE}).json()
    wanted = model.decide(
        state,
        {
            "urgent": YesNo("Is it urgent?", yes="Act now."),
            "team": OneOf('{"ask": "team"}', {"a": "", "a b": '{"of": "b"}', "c": "c"}),
            "anger": Scale("How angry?", ["calm", "", "mad"]),
        },
    )
    answers = made["answers"]
    assert [*answers] == [*SYSTEM_ONE] and [one["type"] for one in answers.values()] == ["noul", "choice", "score"]
    assert answers["urgent"]["noul"] == pytest.approx(wanted["urgent"].probabilities[True], abs=1e-4)
    assert answers["team"]["choice"] == wanted["team"].value and [*answers["team"]["probabilities"]] == [
        "a",
        "a b",
        "c",
    ]
    assert answers["anger"]["legend"] == {"0": "calm", "1": None, "2": "mad"}
    shares = answers["anger"]["probabilities"]
    assert sum(shares.values()) == pytest.approx(1) and [*shares] == ["0", "1", "2"]
    assert answers["anger"]["score"] == pytest.approx(shares["1"] + 2 * shares["2"])
    assert made["usage"] == {"input_tokens": sum(one.prompt_tokens for one in wanted.values()), "output_tokens": 0}


def test_options_are_those_of_decide(model: Model, http: Callable[..., httpx.Client]) -> None:
    """The extension field averages over orders, subtracts the prior and allows a refusal."""
    client = http({"m": model, "refuses": ScriptedModel(lambda _: "I cannot answer")})
    body: dict[str, Any] = {"model": "m", "input": "Pay now!", "questions": QUESTIONS[:1]}
    made = client.post("/v1/decisions", json={**body, "toolgrammar": {"orders": 2, "prior": True}}).json()
    wanted = model.decide("Pay now!", {"q": YesNo("Is it urgent?")}, orders=2, prior=True)["q"].probabilities[True]
    assert made["answers"][0]["probability"] == pytest.approx(wanted, abs=1e-4)
    body["model"] = "refuses"
    made = client.post("/v1/decisions", json={**body, "toolgrammar": {"refusal": True}}).json()
    assert made["answers"] == [{"type": "refusal", "name": "urgent"}]


def test_conversations_are_a_state(http: Callable[..., httpx.Client]) -> None:
    """Messages, calls and outputs are an object each; one text alone is the state itself."""
    model = ScriptedModel(lambda _: "Yes")
    client = http({"m": model})
    items = [
        {"type": "message", "role": "system", "content": "Be strict."},
        {
            "role": "user",
            "content": [{"type": "input_text", "text": "Delete"}, {"type": "input_json", "data": [{"a": 1}]}],
        },
        {
            "role": "assistant",
            "content": [{"type": "output_text", "text": "Well."}, {"type": "refusal", "refusal": "No."}],
        },
        {"type": "function_call", "call_id": "c", "name": "rm", "namespace": "os", "arguments": "{}", "id": "i"},
        {"type": "function_call_output", "call_id": "c", "output": [{"type": "input_text", "text": "done"}]},
    ]
    for given in (items, [{"role": "user", "content": "Hello"}]):
        response = client.post("/v1/decisions", json={"model": "m", "input": given, "questions": QUESTIONS[:1]})
        assert response.json()["answers"][0]["probability"] > 0.99
    first, second = (messages[0].text for messages in model.requests)
    assert (
        'State:\n[{"system": "Be strict."}, {"user": "Delete\\n[{\\"a\\": 1}]"}, {"assistant": "Well.\\nNo."}, '
        '{"tool_call": {"name": "os.rm", "arguments": "{}"}}, {"tool_output": {"name": "os.rm", "output": "done"}}]\n'
    ) in first
    assert "State:\nHello\n" in second


IMAGE = {"type": "input_image", "image_url": "data:image/png;base64,AAAA"}
WRONG: list[tuple[str, dict[str, Any], str]] = [
    ("decisions", {"input": None}, "input"),
    ("decisions", {"input": []}, "input"),
    ("decisions", {"input": [{"role": "user", "content": [IMAGE]}]}, "input[0].content[0].type"),
    ("decisions", {"input": [{"type": "function_call_output", "call_id": "c", "output": "x"}]}, "input[0].call_id"),
    ("decisions", {"input": [{"type": "reasoning"}]}, "input[0].type"),
    ("decisions", {"questions": []}, "questions"),
    ("decisions", {"questions": [{"type": "box", "instructions": "?"}]}, "questions[0].type"),
    ("decisions", {"questions": [QUESTIONS[0], {**QUESTIONS[2], "levels": []}]}, "questions[1]"),
    ("decisions", {"questions": [QUESTIONS[0], QUESTIONS[0]]}, "questions[1].name"),
    ("decisions", {"questions": [{**QUESTIONS[0], "threshold": 1}]}, "questions[0].threshold"),
    (
        "decisions",
        {"questions": [{**QUESTIONS[1], "choices": [{"value": "true"}, {"value": True}]}]},
        "questions[0].choices[1].value",
    ),
    ("decisions", {"questions": [{**QUESTIONS[1], "choices": [{"value": 5}]}]}, "questions[0].choices[0].value"),
    ("decisions", {"toolgrammar": {"orders": 25}}, "toolgrammar.orders"),
    ("decisions", {"toolgrammar": {"exact_choice": True}}, "exact_choice"),
    ("decisions", {"questions": [QUESTIONS[0]] * 2000}, "questions[1].name"),
    ("systemone", {"state": None}, "state"),
    ("systemone", {"questions": {}}, "questions"),
    ("systemone", {"questions": {"q": {"type": "noul", "criteria": {"maybe": 1}}}}, "questions.q.criteria.maybe"),
    ("systemone", {"questions": {"q": {"type": "choice", "instructions": "?"}}}, "questions.q.criteria"),
    ("systemone", {"questions": {"q": {"type": "choice", "criteria": {" ": None}}}}, "questions.q"),
    ("systemone", {"questions": {"q": {"type": "box", "instructions": "?"}}}, "questions.q.type"),
    ("systemone", {"temperature": 0.5}, "temperature"),
    ("systemone", {"toolgrammar": {"refusal": True}}, "refusal"),
    ("systemone", {"model": "far"}, "model"),
    ("decisions", {"model": "far"}, "model"),
]


@pytest.mark.parametrize(("route", "change", "field"), WRONG)
def test_wrong_requests_name_the_field(
    model: Model, http: Callable[..., httpx.Client], route: str, change: dict[str, Any], field: str
) -> None:
    """What is wrong, unknown or not to be had is a 400 with the field."""
    right: dict[str, Any] = {"model": "m", "input": "x", "questions": QUESTIONS}
    if route == "systemone":
        right = {"model": "m", "state": "x", "questions": SYSTEM_ONE}
    with load_model("openai:some@http://127.0.0.1:9/v1") as far:
        response = http({"m": model, "far": far}).post(f"/v1/{route}", json={**right, **change})
    error = response.json()["error"]
    assert response.status_code == 400 and field in error["param"], error


def test_a_state_that_does_not_fit(model: Model, http: Callable[..., httpx.Client]) -> None:
    """It is OpenAI's error for that."""
    body = {"model": "m", "state": "many words " * model.context_window, "questions": SYSTEM_ONE}
    response = http({"m": model}).post("/v1/systemone", json=body)
    assert response.status_code == 400 and response.json()["error"]["code"] == "context_length_exceeded"
    assert "'urgent'" in response.json()["error"]["message"]
