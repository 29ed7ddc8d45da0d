"""Decisions: the probability of each answer to a question with finitely many answers, about a given state."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Union

import numpy as np

from ..basics.pauses import ended_by
from ..errors import CancelledError, ContextOverflowError, ModelError
from ..generation.deadline import Deadline
from ..generation.logprobs import log_softmax
from ..generation.params import GenerateParams
from ..generation.ranges import FLAG, Ranges, check_ranges, number, whole
from .requests import in_thread

if TYPE_CHECKING:
    import numpy.typing as npt

    from ..generation.plan import Prompt
    from .scoring import Scorer

#: Maximum number of questions of one request.
MAX_QUESTIONS = 400

#: Maximum number of labels of a `OneOf`.
MAX_LABELS = 255

#: Maximum number of levels of a `Scale`.
MAX_LEVELS = 101

#: Maximum number of orders of the answers, over which a decision is averaged.
MAX_ORDERS = 24

#: The text of a refusal, where one is allowed.
REFUSAL = "I cannot answer"

#: The question where its text is empty.
DEFAULT_QUESTION = "Which of these applies?"


@dataclass(frozen=True)
class YesNo:
    """A question with the answers ``Yes`` and ``No``.

    Attributes:
        question: the question, or a statement that is true or false.
        yes: what ``Yes`` means; empty: the prompt does not say.
        no: what ``No`` means.
    """

    question: str
    yes: str = ""
    no: str = ""


@dataclass(frozen=True)
class OneOf:
    """A question whose answer is one of some labels.

    Attributes:
        question: the question.
        labels: 1 to 255 different texts, or such texts with a description each, which may be empty.
    """

    question: str
    labels: Union[Sequence[str], Mapping[str, str]]


@dataclass(frozen=True)
class Scale:
    """A question whose answer is a level; the levels are numbered from 0 in ascending order.

    Attributes:
        question: the question.
        levels: 1 to 101 descriptions, the lowest level first.
    """

    question: str
    levels: Sequence[str]


Question = Union[YesNo, OneOf, Scale]


@dataclass(frozen=True)
class Decision:
    """The answer to one question.

    Attributes:
        value: of a `YesNo` True or False, of a `OneOf` the label, whichever is the likeliest (the first of several); of
            a `Scale` the mean of the levels by their probabilities. None if the model refused.
        probabilities: the probability of each whole answer, given that the model does not refuse: of True and False, of
            each label, or of each level's number. Their sum is 1.
        confidence: the largest of them.
        refusal: the probability of a refusal among all answers; 0 where none is allowed.
        prompt_tokens: number of tokens of all prompts that were read for it.
        forward_passes: number of forward passes.
    """

    value: Union[bool, str, float, None]
    probabilities: Mapping[Any, float]
    confidence: float
    refusal: float = 0.0
    prompt_tokens: int = 0
    forward_passes: int = 0

    @property
    def refused(self) -> bool:
        """Whether a refusal is likelier than every answer."""
        return self.value is None


@dataclass(frozen=True)
class CheckedQuestion:
    """A question, checked.

    Attributes:
        name: of the question.
        text: of the question.
        answers: the texts that are scored.
        values: the value that each stands for.
        lines: what the prompt says of each.
        is_scale: the value is a mean.
    """

    name: str
    text: str
    answers: tuple[str, ...]
    values: tuple[Any, ...]
    lines: tuple[str, ...]
    is_scale: bool = False

    def orders(self, count: int) -> list[tuple[int, ...]]:
        """Return at most so many different orders of the answers, the given one first.

        They are the given one, its reverse, and the rotations of both, in turn; of a scale the first two alone, as its
        levels ascend or descend. So all of them are the same set whichever of them was given.
        """
        given = tuple(range(len(self.answers)))
        turns = 1 if self.is_scale else len(given)
        both = (given, given[::-1])
        rotated = [one[turn:] + one[:turn] for turn in range(turns) for one in both]
        return list(dict.fromkeys(rotated))[:count]

    def prompt(self, state: str, order: Sequence[int], refusal: bool) -> str:
        """Return the prompt with the answers in an order."""
        what = "the number of one level" if self.is_scale else "one of these"
        lines = [self.lines[index] for index in order]
        if refusal:
            lines.append(f"- {REFUSAL}: if the state does not allow an answer")
        last = "number" if self.is_scale else "answer"
        return (
            f"Read the state, then answer the question about it.\n\nState:\n{state}\n\nQuestion: {self.text}\n"
            f"Answer with {what}:\n" + "\n".join(lines) + f"\nWrite only the {last}."
        )


@dataclass(frozen=True)
class _Options:
    """How to decide; see `Decides.decide`."""

    orders: int
    prior: bool
    refusal: bool


@dataclass
class _Spent:
    """What the prompts of a question have cost."""

    prompt_tokens: int = 0
    forward_passes: int = 0


class Decides:
    """A model that decides questions, if its logits are seen.

    Attributes:
        MAX_QUESTIONS: maximum number of questions of one request.
        MAX_LABELS: maximum number of labels of a `OneOf`.
        MAX_LEVELS: maximum number of levels of a `Scale`.
    """

    MAX_QUESTIONS: ClassVar[int] = MAX_QUESTIONS
    MAX_LABELS: ClassVar[int] = MAX_LABELS
    MAX_LEVELS: ClassVar[int] = MAX_LEVELS

    def decide(
        self,
        state: Any,
        questions: Mapping[str, Question],
        *,
        orders: int = 1,
        prior: bool = False,
        refusal: bool = False,
        timeout: float | None = None,
    ) -> dict[str, Decision]:
        """Answer questions about a state, each with the probability of every whole answer.

        Each question is a prompt of its own: the state, the question, and its answers with their descriptions, one a
        line. The probability of an answer is the product of those of its tokens, as the tokenizer writes them, and of
        the end of the text after them, normalised over the answers.

        Args:
            state: what the questions are about: a text, or a value that is written as JSON.
            questions: by name, 1 to 400.
            orders: number of orders of the answers in the prompt, at most 24, over which the probabilities are
                averaged: the given order, its reverse, and the rotations of both; of a `Scale` the first two. A
                question has no more orders than these.
            prior: divide the probability of each answer by that with an empty state, and normalise: an answer that the
                model prefers without knowing anything gains nothing.
            refusal: allow a refusal, one more answer.
            timeout: seconds for all questions.

        Returns:
            The decisions by the names of the questions.

        Raises:
            ModelError: a question, the state or an option has a wrong value (the message names the question); the model
                is on a server, and does not show its logits.
            ContextOverflowError: a prompt and its longest answer do not fit.
            GenerationTimeoutError: ``timeout`` seconds passed.
            CancelledError: the task of `adecide` was cancelled.

        Law: with one order, no prior and no refusal the probabilities are those of ``choose`` with the same prompt and
        answers, of a model that does not reason.
        """
        self.check_options(orders, prior, refusal, timeout)
        return self._decide(state, questions, _Options(orders, prior, refusal), Deadline.after(timeout))

    async def adecide(
        self,
        state: Any,
        questions: Mapping[str, Question],
        *,
        orders: int = 1,
        prior: bool = False,
        refusal: bool = False,
        timeout: float | None = None,
    ) -> dict[str, Decision]:
        """Like `decide`, without blocking the event loop; cancelling the task stops the model within a step."""
        self.check_options(orders, prior, refusal, timeout)
        options = _Options(orders, prior, refusal)
        abandoned = threading.Event()
        work = partial(self._decide, state, questions, options, Deadline.after(timeout), abandoned.is_set)
        return await in_thread(work, abandoned)

    def _scorer(self, prompt: Prompt, params: GenerateParams | None = None) -> Scorer:
        """Return a scorer of texts after a prompt.

        Raises:
            ModelError: the model does not show its logits.
        """
        raise ModelError(
            "a model on a server shows no logits, so it cannot decide by probabilities",
            hint="load the model here, for example as 'hf:NAME-OR-PATH' or 'gguf:PATH'",
        )

    def _decide(
        self,
        state: Any,
        questions: Mapping[str, Question],
        options: _Options,
        deadline: Deadline,
        cancelled: Callable[[], bool] = lambda: False,
    ) -> dict[str, Decision]:
        """Check the questions, then answer one after the other: the work of `decide` and `adecide`. Raise
        CancelledError when ``cancelled()`` is True, which is asked, as the deadline is, between steps of the model.
        Arguments as for `decide`."""
        self.check_questions(questions)
        checked = [self.check_question(name, question, options.refusal) for name, question in questions.items()]
        text = _text_of(state)

        def check() -> None:
            if cancelled():
                raise CancelledError("the decision was cancelled")
            deadline.check()

        decisions = {}
        with ended_by(check):
            for question in checked:
                try:
                    decisions[question.name] = self._decision(question, text, options)
                except ContextOverflowError as error:
                    message = f"question {question.name!r}: {error.message}"
                    raise ContextOverflowError(message, hint=error.hint) from error
        return decisions

    def _decision(self, question: CheckedQuestion, state: str, options: _Options) -> Decision:
        """Return the decision on one question: average the probabilities of the answers over the listings in different
        orders, and take the likeliest; on a scale, the mean level. Probabilities are those without a refusal, whose
        share is separate."""
        spent = _Spent()
        orders = question.orders(options.orders)
        # The sum of the probabilities over the orders, normalised, is their mean.
        averaged = np.logaddexp.reduce([self._logs(question, state, order, options, spent) for order in orders])
        averaged = log_softmax(averaged)
        count = len(question.answers)  # a refusal is after these
        shares = np.exp(log_softmax(averaged[:count]))
        shares /= shares.sum()
        refusal = float(np.exp(averaged[count])) if options.refusal else 0.0
        best = int(averaged.argmax())
        value: Any = None
        if best < count:
            mean = min(float(shares @ np.arange(count)), float(count - 1))  # rounding may exceed the highest level
            value = mean if question.is_scale else question.values[best]
        probabilities = dict(zip(question.values, map(float, shares), strict=True))
        return Decision(
            value,
            MappingProxyType(probabilities),
            confidence=float(shares.max()),
            refusal=refusal,
            prompt_tokens=spent.prompt_tokens,
            forward_passes=spent.forward_passes,
        )

    def _logs(
        self, question: CheckedQuestion, state: str, order: Sequence[int], options: _Options, spent: _Spent
    ) -> npt.NDArray[np.float64]:
        """Return the normalised log-probabilities of the answers, listed in an order, and of a refusal as the last."""
        given = self._scored(question, state, order, options.refusal, spent)
        if options.prior:
            without = self._scored(question, "", order, options.refusal, spent)
            if not np.isfinite(without).all():
                raise ModelError(
                    f"question {question.name!r}: the model gives an answer no probability with an empty state",
                    hint="leave out the prior",
                )
            given = given - without
        if not np.isfinite(given.max()):
            raise ModelError(
                f"question {question.name!r}: the model gives none of the answers any probability", hint="check them"
            )
        logs: npt.NDArray[np.float64] = log_softmax(given)
        return logs

    def _scored(
        self, question: CheckedQuestion, state: str, order: Sequence[int], refusal: bool, spent: _Spent
    ) -> npt.NDArray[np.float64]:
        """Return the log-probabilities of the answers after one prompt, which lists them in ``order``, and of a refusal
        as the last if ``refusal``. Not normalised. ``spent`` adds up tokens and forward passes."""
        scorer = self._scorer(question.prompt(state, order, refusal), GenerateParams(thinking=False))
        texts = [*question.answers, *([REFUSAL] if refusal else [])]
        scores = scorer.scores(texts)
        spent.prompt_tokens += scorer.prompt_tokens
        spent.forward_passes += scorer.forward_passes
        return np.array([scores[text].logprob for text in texts])

    @staticmethod
    def check_options(orders: int, prior: bool, refusal: bool, timeout: float | None) -> None:
        """Check the options of `Decides.decide`.

        Raises:
            ModelError: one has a wrong value.
        """
        check_ranges({"orders": orders, "prior": prior, "refusal": refusal, "timeout": timeout}, _RANGES)

    @staticmethod
    def check_questions(questions: Any) -> None:
        """Check the number of questions, before each of them is checked.

        Raises:
            ModelError: there are too few or too many.
        """
        if not isinstance(questions, Mapping) or not 0 < len(questions) <= MAX_QUESTIONS:
            count = (
                f"{len(questions):,} questions" if isinstance(questions, Mapping) else repr(type(questions).__name__)
            )
            raise ModelError(
                f"questions is {count}",
                hint=f'give 1 to {MAX_QUESTIONS} by name, for example {{"urgent": YesNo("...")}}',
            )

    @staticmethod
    def check_question(name: Any, question: Any, refusal: bool = False) -> CheckedQuestion:
        """Return a question, checked.

        Args:
            name: the question's name.
            question: a `YesNo`, `OneOf` or `Scale`.
            refusal: `REFUSAL` is an answer to every question, and so no label of this one.

        Raises:
            ModelError: the question, or its name, has a wrong value; the message names it.
        """
        if not isinstance(name, str):
            raise ModelError(f"the name {name!r} of a question is no text", hint="give a str")
        if not isinstance(question, (YesNo, OneOf, Scale)):
            raise ModelError(
                f"question {name!r} is of the type {type(question).__name__}", hint="give a YesNo, OneOf or Scale"
            )
        text = _text(name, "question", question.question).strip() or DEFAULT_QUESTION
        if isinstance(question, YesNo):
            of_both = (_text(name, "yes", question.yes), _text(name, "no", question.no))
            return CheckedQuestion(name, text, ("Yes", "No"), (True, False), _lines(("Yes", "No"), of_both))
        if isinstance(question, Scale):
            levels = _texts(name, "levels", question.levels, MAX_LEVELS)
            numbers = range(len(levels))
            answers = tuple(map(str, numbers))
            return CheckedQuestion(name, text, answers, tuple(numbers), _lines(answers, levels), is_scale=True)
        labels = _texts(name, "labels", question.labels, MAX_LABELS)
        for label in labels:
            if not label.strip() or (refusal and label == REFUSAL):
                raise ModelError(f"question {name!r} has the label {label!r}", hint="give another text")
        if len(set(labels)) < len(labels):
            raise ModelError(f"question {name!r} has a label twice", hint="give each label once")
        given = question.labels  # with descriptions, if it is a mapping
        described = given.values() if isinstance(given, Mapping) else [""] * len(labels)
        meanings = tuple(_text(name, "description", meaning) for meaning in described)
        return CheckedQuestion(name, text, labels, labels, _lines(labels, meanings))


def _text_of(state: Any) -> str:
    """Return a state as text.

    Raises:
        ModelError: it is neither a text nor a JSON value.
    """
    if isinstance(state, str):
        return state
    try:
        return json.dumps(state, ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise ModelError(
            f"the state is neither a text nor a JSON value: {error}", hint="give a str, or lists, dicts and scalars"
        ) from None


def _lines(answers: Sequence[str], meanings: Sequence[str]) -> tuple[str, ...]:
    """Return a line of the prompt for each answer: ``"- Yes: it is urgent"``, or ``"- Yes"`` without a meaning."""
    pairs = zip(answers, meanings, strict=True)
    return tuple(f"- {answer}: {meaning}" if meaning.strip() else f"- {answer}" for answer, meaning in pairs)


def _text(name: str, what: str, value: Any) -> str:
    """Return a text of a question; raise ModelError if it is none."""
    if not isinstance(value, str):
        raise ModelError(f"question {name!r}: {what} is {value!r}", hint="give a str")
    return value


def _texts(name: str, what: str, value: Any, most: int) -> tuple[str, ...]:
    """Return 1 to ``most`` texts of a question, the keys if it is a mapping; raise ModelError for anything else."""
    if isinstance(value, str) or not isinstance(value, (Sequence, Mapping)):
        raise ModelError(f"question {name!r}: {what} is {value!r}", hint="give a list of texts")
    if not 0 < len(value) <= most:
        raise ModelError(f"question {name!r} has {len(value):,} {what}", hint=f"give 1 to {most}")
    return tuple(_text(name, what, one) for one in value)


_RANGES: Ranges = {
    "orders": whole(1, MAX_ORDERS),
    "prior": FLAG,
    "refusal": FLAG,
    "timeout": number(0, wanted="a number of seconds", none=True),
}
