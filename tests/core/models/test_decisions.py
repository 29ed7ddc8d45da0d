"""`Model.decide`: probabilities of whole answers, checked by enumeration, and the laws of its options."""

from __future__ import annotations

import asyncio
import itertools
import threading
import time
from typing import Any

import numpy as np
import pytest

from toolgrammar.core import ContextOverflowError, GenerationTimeoutError, Message, ModelError
from toolgrammar.core.models import Decision, LocalModel, OneOf, Scale, YesNo, load_model
from toolgrammar.core.models.decisions import MAX_LABELS, MAX_LEVELS, MAX_ORDERS, MAX_QUESTIONS, REFUSAL
from toolgrammar.core.testing import ScriptedModel, byte_vocabulary

LABELS = {"north": "cold", "north east": "", "south": "warm", "no": ""}
STATE = {"from": "Ä", "text": 'Where is "it"?'}
WRITTEN = '{"from": "Ä", "text": "Where is \\"it\\"?"}'


@pytest.fixture(scope="module")
def model() -> LocalModel:
    """The embedded model."""
    loaded = load_model("embedded")
    assert isinstance(loaded, LocalModel)
    return loaded


def prompt_of(state: str, question: str, what: str, lines: list[str], last: str) -> str:
    """The documented prompt."""
    return (
        f"Read the state, then answer the question about it.\n\nState:\n{state}\n\nQuestion: {question}\n"
        f"Answer with {what}:\n" + "\n".join(f"- {line}" for line in lines) + f"\nWrite only the {last}."
    )


def enumerated(model: LocalModel, prompt: str, texts: list[str]) -> np.ndarray[Any, Any]:
    """Log-probabilities of whole texts: over all tokens and the end, each read in a sequence of its own."""
    ids = model.backend.encode_prompt([Message("user", prompt)])
    totals = []
    for text in texts:
        spelled, total = model.encode(text), 0.0
        for number in range(len(spelled) + 1):
            session = model.backend.start()
            logits = session.extend([*ids, *spelled[:number]]).astype(np.float64)
            session.close()
            values = logits - np.logaddexp.reduce(logits)
            wanted = [spelled[number]] if number < len(spelled) else sorted(model.vocabulary.eos)
            total += float(np.logaddexp.reduce(values[wanted]))
        totals.append(total)
    return np.array(totals)


def shares_of(logs: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Normalised probabilities."""
    return np.asarray(np.exp(logs - np.logaddexp.reduce(logs)))


def values_of(decision: Decision) -> np.ndarray[Any, Any]:
    """The probabilities of a decision in order."""
    return np.array([*decision.probabilities.values()])


def test_probabilities_are_those_of_enumeration(model: LocalModel) -> None:
    """Of each kind: products over the tokens and the end of each whole answer, normalised, behind the stated prompt."""
    made = model.decide(
        STATE,
        {
            "urgent": YesNo("Is it urgent?", yes="Act now."),
            "where": OneOf("Where?", LABELS),
            "how": Scale("How much?", ["calm", "", "angry"]),
        },
    )
    prompt = prompt_of(WRITTEN, "Is it urgent?", "one of these", ["Yes: Act now.", "No"], "answer")
    wanted = shares_of(enumerated(model, prompt, ["Yes", "No"]))
    assert [*made] == ["urgent", "where", "how"] and [*made["urgent"].probabilities] == [True, False]
    assert np.allclose(values_of(made["urgent"]), wanted, atol=1e-4)
    assert made["urgent"].value is bool(wanted[0] >= wanted[1])

    lines = ["north: cold", "north east", "south: warm", "no"]
    prompt = prompt_of(WRITTEN, "Where?", "one of these", lines, "answer")
    wanted = shares_of(enumerated(model, prompt, [*LABELS]))
    assert np.allclose(values_of(made["where"]), wanted, atol=1e-4)
    assert made["where"].value == [*LABELS][int(wanted.argmax())] and [*made["where"].probabilities] == [*LABELS]
    assert made["where"].probabilities == pytest.approx(dict(model.choose(prompt, [*LABELS]).probabilities), abs=1e-4)

    prompt = prompt_of(WRITTEN, "How much?", "the number of one level", ["0: calm", "1", "2: angry"], "number")
    wanted = shares_of(enumerated(model, prompt, ["0", "1", "2"]))
    assert np.allclose(values_of(made["how"]), wanted, atol=1e-4) and [*made["how"].probabilities] == [0, 1, 2]
    assert made["how"].value == pytest.approx(wanted @ [0, 1, 2], abs=1e-3)
    for one in made.values():
        assert sum(one.probabilities.values()) == pytest.approx(1, abs=1e-12)
        assert one.confidence == max(one.probabilities.values()) and one.refusal == 0 and not one.refused
        assert one.forward_passes > 0 and one.prompt_tokens > 20


class _Toy(ScriptedModel):
    """A model of bytes: after the prompt, 'a' and 'b' have known probabilities at each depth, and so has the end."""

    def __init__(self) -> None:
        super().__init__(lambda _: "")
        vocabulary = byte_vocabulary()
        eos = min(vocabulary.eos)
        start = self.backend.start

        class Session:
            """Logits that depend on the last byte alone."""

            def __init__(self) -> None:
                self._inner = start()

            def __getattr__(self, name: str) -> Any:
                return getattr(self._inner, name)

            def extend(self, token_ids: Any) -> Any:
                self._inner.extend(token_ids)
                logits = np.full(vocabulary.size, -40.0, np.float32)
                after = {ord("a"): (0.1, 0.2, 0.7), ord("b"): (0.3, 0.6, 0.1)}.get(token_ids[-1], (0.6, 0.4, 1e-9))
                for token, share in zip((ord("a"), ord("b"), eos), after, strict=True):
                    logits[token] = np.log(share)
                return logits

        self.backend.start = Session  # type: ignore[assignment, method-assign]


def test_probabilities_of_a_toy_are_those_of_its_table() -> None:
    """The first letter's distribution prefers ``a``-labels; the whole answers do not: ``ab`` is unlikely to end."""
    made = _Toy().decide("x", {"q": OneOf("?", ["a", "ab", "b", "bb"])})["q"]
    weights = np.array([0.6 * 0.7, 0.6 * 0.2 * 0.1, 0.4 * 0.1, 0.4 * 0.6 * 0.1])
    assert np.allclose(values_of(made), weights / weights.sum(), atol=1e-6) and made.value == "a"
    assert _Toy().decide("x", {"q": OneOf("?", ["ab", "bb"])})["q"].value == "bb"  # its first token is the less likely


def test_a_refusal_is_one_more_answer(model: LocalModel) -> None:
    """It has its share of all; the others' probabilities are given that there is none; a likely one leaves no value."""
    made = model.decide("x", {"q": OneOf("Where?", LABELS)}, refusal=True)["q"]
    lines = ["north: cold", "north east", "south: warm", "no", f"{REFUSAL}: if the state does not allow an answer"]
    prompt = prompt_of("x", "Where?", "one of these", lines, "answer")
    wanted = shares_of(enumerated(model, prompt, [*LABELS, REFUSAL]))
    assert made.refusal == pytest.approx(wanted[-1], abs=1e-4)
    assert np.allclose(values_of(made), wanted[:-1] / wanted[:-1].sum(), atol=1e-4)
    refuses = ScriptedModel(lambda _: REFUSAL).decide("x", {"q": YesNo("?")}, refusal=True)["q"]
    assert refuses.refused and refuses.value is None and refuses.refusal > 0.99
    assert sum(refuses.probabilities.values()) == pytest.approx(1)


def test_all_orders_make_the_order_indifferent(model: LocalModel) -> None:
    """Averaged over all its orders, a decision is the same for every rotation of the labels and of their reverse."""
    names = [*LABELS]
    whole = model.decide(STATE, {"q": OneOf("Where?", names)}, orders=8)["q"]
    for given in (names[1:] + names[:1], names[::-1], names[2:] + names[:2]):
        other = model.decide(STATE, {"q": OneOf("Where?", given)}, orders=8)["q"]
        assert other.probabilities == pytest.approx(dict(whole.probabilities), abs=1e-4)
        assert [*other.probabilities] == given
    single = [model.decide(STATE, {"q": OneOf("Where?", given)})["q"] for given in (names, names[::-1])]
    assert abs(single[0].probabilities["no"] - single[1].probabilities["no"]) > 1e-4  # one order is not indifferent
    two = model.decide(STATE, {"q": OneOf("Where?", names)}, orders=2)["q"]
    for name in names:
        assert two.probabilities[name] == pytest.approx(np.mean([one.probabilities[name] for one in single]), abs=1e-5)


def test_orders_are_bounded_and_different(model: LocalModel) -> None:
    """A question has 2n orders at most, fewer where they would repeat; a scale has two, its levels never rotate."""
    asked: list[str] = []

    def reply(messages: Any) -> str:
        asked.append(messages[0].text)
        return "a"

    scripted = ScriptedModel(reply)
    for questions, count in (
        ({"q": OneOf("?", ["a"])}, 1),
        ({"q": OneOf("?", ["a", "b"])}, 2),
        ({"q": OneOf("?", ["a", "b", "c"])}, 6),
        ({"q": Scale("?", ["a", "b", "c"])}, 2),
        ({"q": YesNo("?")}, 2),
    ):
        asked.clear()
        scripted.decide("x", questions, orders=MAX_ORDERS)
        assert len(asked) == len(set(asked)) == count
    asked.clear()
    scripted.decide("x", {"q": OneOf("?", [str(one) for one in range(100)])}, orders=MAX_ORDERS)
    assert len(set(asked)) == MAX_ORDERS


def test_the_prior_is_divided_by(model: LocalModel) -> None:
    """Each probability is divided by that with an empty state; an empty state itself leaves all answers equal."""
    questions = {"q": OneOf("Where?", LABELS)}
    given, without = model.decide(STATE, questions)["q"], model.decide("", questions)["q"]
    made = model.decide(STATE, questions, prior=True)["q"]
    wanted = values_of(given) / values_of(without)
    assert np.allclose(values_of(made), wanted / wanted.sum(), atol=1e-4)
    even = model.decide("", questions, prior=True, orders=3)["q"]
    assert np.allclose(values_of(even), 0.25, atol=1e-5)


def test_async_is_the_same_and_ends_when_it_is_cancelled(model: LocalModel) -> None:
    """`adecide` returns what `decide` returns; a cancelled task ends its forward passes."""
    questions = {"q": OneOf("Where?", LABELS), "s": Scale("How?", ["a", "b"])}
    one, other = asyncio.run(model.adecide("x", questions, orders=2)), model.decide("x", questions, orders=2)
    for name in questions:
        assert one[name].probabilities == pytest.approx(dict(other[name].probabilities), abs=1e-4)
    began = threading.Event()
    seen: list[int] = []

    def reply(messages: Any) -> str:
        seen.append(1)
        began.set()
        time.sleep(0.02)
        return "Yes"

    scripted = ScriptedModel(reply)

    async def leave() -> None:
        task = asyncio.ensure_future(scripted.adecide("x", {str(one): YesNo("?") for one in range(MAX_QUESTIONS)}))
        await asyncio.get_running_loop().run_in_executor(None, began.wait)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(leave())
    assert len(seen) < 100


def test_the_time_is_bounded() -> None:
    """A timeout ends a request between two forward passes."""
    scripted = ScriptedModel(lambda _: time.sleep(0.05) or "Yes")  # type: ignore[func-returns-value]
    with pytest.raises(GenerationTimeoutError):
        scripted.decide("x", {str(one): YesNo("?") for one in range(20)}, timeout=0.1)


def test_levels_that_share_a_beginning_are_whole_numbers() -> None:
    """``1`` and ``10`` are two answers; the mean is over the numbers."""
    scripted = ScriptedModel(lambda _: "10")
    made = scripted.decide("x", {"q": Scale("?", [""] * 11)})["q"]
    assert made.value == pytest.approx(10) and made.probabilities[10] > 0.99
    assert made.value <= 10  # type: ignore[operator]


WRONG: list[tuple[Any, str]] = [
    ({}, "questions is 0 questions"),
    ([YesNo("?")], "questions is 'list'"),
    ({str(one): YesNo("?") for one in range(MAX_QUESTIONS + 1)}, "questions is 401 questions"),
    ({1: YesNo("?")}, "the name 1 of a question"),
    ({"q": "Is it?"}, "question 'q' is of the type str"),
    ({"q": YesNo(5)}, "question 'q': question is 5"),  # type: ignore[arg-type]
    ({"q": YesNo("?", yes=None)}, "question 'q': yes is None"),  # type: ignore[arg-type]
    ({"q": OneOf("?", [])}, "question 'q' has 0 labels"),
    ({"q": OneOf("?", "ab")}, "question 'q': labels is 'ab'"),
    ({"q": OneOf("?", ["a", "a"])}, "question 'q' has a label twice"),
    ({"q": OneOf("?", ["a", " "])}, "question 'q' has the label ' '"),
    ({"q": OneOf("?", ["a", 5])}, "question 'q': labels is 5"),  # type: ignore[list-item]
    ({"q": OneOf("?", {"a": 5})}, "question 'q': description is 5"),  # type: ignore[dict-item]
    ({"q": OneOf("?", [str(one) for one in range(MAX_LABELS + 1)])}, "question 'q' has 256 labels"),
    ({"q": Scale("?", ["a"] * (MAX_LEVELS + 1))}, "question 'q' has 102 levels"),
    ({"q": Scale("?", None)}, "question 'q': levels is None"),  # type: ignore[arg-type]
]


@pytest.mark.parametrize(("questions", "words"), WRONG)
def test_wrong_questions_are_named(model: LocalModel, questions: Any, words: str) -> None:
    """Each wrong question is an error of ours that names it, before the model is asked."""
    with pytest.raises(ModelError, match=words.replace("?", r"\?")):
        model.decide("x", questions)


def test_wrong_options(model: LocalModel) -> None:
    """So are wrong options, a state that is no JSON, a label that is the refusal, and a state that does not fit."""
    question: dict[str, Any] = {"q": YesNo("?")}
    for options in ({"orders": 0}, {"orders": 25}, {"orders": True}, {"prior": 1}, {"refusal": None}, {"timeout": -1}):
        with pytest.raises(ModelError, match=next(iter(options))):
            model.decide("x", question, **options)  # type: ignore[arg-type]
    nested: list[Any] = []
    nested.append(nested)
    for state in ({1, 2}, float("nan"), nested):
        with pytest.raises(ModelError, match="state is neither a text nor a JSON value"):
            model.decide(state, question)
    with pytest.raises(ModelError, match=f"label '{REFUSAL}'"):
        model.decide("x", {"q": OneOf("?", ["a", REFUSAL])}, refusal=True)
    with pytest.raises(ContextOverflowError, match="question 'q'"):
        model.decide("many words " * model.context_window, question)


def test_a_model_on_a_server_cannot_decide() -> None:
    """It shows no logits, and says so."""
    with load_model("openai:some@http://127.0.0.1:9/v1") as remote, pytest.raises(ModelError, match="no logits"):
        remote.decide("x", {"q": YesNo("?")})


def test_the_default_question_and_every_kind_of_state(model: LocalModel) -> None:
    """An empty question asks which of its answers applies; any JSON value is a state."""
    empty, full = (model.decide("x", {"q": OneOf(text, LABELS)})["q"] for text in (" ", "Which of these applies?"))
    assert empty.probabilities == pytest.approx(dict(full.probabilities), abs=1e-4)
    states: list[Any] = ["", None, True, 5, [1, {"a": None}]]
    made = [model.decide(state, {"q": YesNo("Is it?")})["q"] for state in states]
    assert all(one != other for one, other in itertools.combinations(made, 2))
