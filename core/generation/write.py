"""Writing of one answer from its plan: decoding and output."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from contextlib import closing, contextmanager, nullcontext
from dataclasses import dataclass, replace
from threading import Event, Lock, Thread
from time import monotonic
from typing import TYPE_CHECKING, Any

from ..basics.logs import logger_of
from ..conversation.events import Generation, TokenWritten
from ..errors import BudgetError
from ..grammar import Grammar
from .deadline import Deadline
from .driver import Released, sent
from .insertions import NamesRead
from .json_output import check_text
from .loop import Decoding
from .output import Output, markup_of
from .plan import Plan, shown_schema
from .reasoning import Reasoning, ReasoningPlan
from .retokenise import Speller
from .token_sequence import Forward

if TYPE_CHECKING:
    from ..live.asking import LiveValues
    from ..masks import Constraint, Matcher
    from .backend import Backend
    from .driver import Logits, Work
    from .params import GenerateParams

_LOG = logger_of("models")

#: Interval in seconds at which the progress of an answer is logged.
SECONDS_OF_SILENCE = 5

#: Newlines between reasoning and answer, which are a part of neither.
_NEWLINES = r"\n{0,2}"


@dataclass(eq=False)
class Writer:
    """Writes planned answers with one backend.

    Args:
        backend: the loaded model.
        matcher_of: makes a matcher of a grammar over the backend's vocabulary, with its live values.
        warm_seconds: maximum time of `Constraint.warm` while a prompt is read.
    """

    backend: Backend
    matcher_of: Callable[[Grammar, LiveValues | None], Matcher]
    warm_seconds: float = 0

    def __post_init__(self) -> None:
        self._speller = Speller(self.backend)
        self._warming = Lock()

    def write(self, plan: Plan, deadline: Deadline) -> Work:
        """Write an answer: yield its events when they are certain, then the complete generation.

        Raises:
            InvalidArgumentsError: the answer violates a constraint that its grammar does not enforce (``plan.check``).
            ToolGrammarError: see `Decoding.steps`.
        """
        decoding = self._decoding(plan, deadline)
        output = Output(
            decoding,
            None if plan.make_parser is None else plan.make_parser(),
            barred=plan.barred,
            stop=plan.stop,
            is_json=plan.is_json,
            reasoning=("", "") if plan.reasoning is None else (plan.reasoning.text_before, plan.reasoning.text_after),
            marked=plan.marked,
        )
        has_read = False
        tells_tokens = plan.params.trace or plan.params.logprobs is not None
        tokens: list[TokenWritten] = []
        begin = last_logged = monotonic()
        written = 0
        logits = None
        with closing(decoding.steps()) as steps:
            while (step := sent(steps, logits)) is not None:
                logits = None
                if isinstance(step, Forward):
                    with nullcontext() if has_read else self._warm_beside(decoding.matcher.constraint):
                        logits = yield step
                    has_read = True
                    if monotonic() - last_logged >= SECONDS_OF_SILENCE:
                        last_logged = monotonic()
                        _LOG.info("%s: %d tokens in %.0f s", self.backend.name, written, last_logged - begin)
                    continue
                written += 1
                if tells_tokens:
                    yield step
                    if plan.params.logprobs is not None:
                        tokens.append(step)
                yield from output.feed(step)
        yield Released()
        yield from output.close()
        if output.is_denied_call and not plan.may_be_empty:
            raise _denied(plan.params)
        prompt_tokens = len(decoding.sequence.prompt)
        trace = output.trace(prompt_tokens, _schemas(plan.params)) if plan.params.trace else None
        finish = output.finish(prompt_tokens, trace)
        generation = output.generation(finish, tokens)
        if plan.check is not None and finish.reason != "cancelled":
            check_text(generation.text, plan.check)
        truncated = len(generation.cut) + sum(len(call.cut) for call in generation.tool_calls)
        if truncated:
            _LOG.warning(
                "the token budget closed an answer of %s after %d tokens; values cut: %d",
                self.backend.name,
                finish.usage.completion_tokens,
                truncated,
            )
        if generation.repeated is not None:
            _LOG.warning("%s repeated %r, and was stopped", self.backend.name, generation.repeated)
        yield finish
        yield generation

    @contextmanager
    def _warm_beside(self, constraint: Constraint) -> Iterator[None]:
        """Warm a constraint in a thread until the prompt is read.

        The model's forward pass releases the GIL most of the time. One thread for each model is enough, because several
        would wait for each other.
        """
        if self.warm_seconds <= 0 or not self._warming.acquire(blocking=False):
            yield
            return
        stop = Event()

        def warm() -> None:
            try:
                constraint.warm(self.warm_seconds, stop=stop.is_set)
            finally:
                self._warming.release()

        try:
            Thread(target=warm, name="toolgrammar-warm", daemon=True).start()
        except RuntimeError:  # no more threads
            self._warming.release()
        try:
            yield
        finally:
            stop.set()

    def _decoding(self, plan: Plan, deadline: Deadline) -> Decoding:
        """Return the generation of a plan, not begun. With reasoning, its own matcher comes first; the text's matcher
        begins with the newlines between both, and ``instead`` is the matcher of a text without reasoning, if it may be
        left out."""
        reasoning = plan.reasoning
        stage = None
        if reasoning is not None:
            may_skip = reasoning.optional or reasoning.is_draft
            instead = self.matcher_of(plan.grammar, plan.values) if may_skip else None
            stage = Reasoning(reasoning, self.matcher_of(reasoning.grammar, None), instead)
        return Decoding(
            self.backend,
            [*plan.prompt, *plan.prefix],
            self.matcher_of(_after(reasoning, plan.grammar), plan.values),
            plan.params,
            stage,
            heal=len(plan.prefix),
            speller=self._speller,
            names=self._names(plan),
            deadline=deadline,
            may_end=plan.may_end,
        )

    def _names(self, plan: Plan) -> NamesRead | None:
        """Return the reader of tool names that gives the model a tool's declaration when it is named; None if the plan
        has no insertions. Prompts that it makes end with the plan's prefix, as the first one does."""
        insertions = plan.insertions
        if insertions is None:
            return None
        prompt = insertions.prompt
        markers = markup_of(self.backend.vocabulary)
        return NamesRead(
            replace(insertions, prompt=lambda names: [*prompt(names), *plan.prefix]),
            lambda token_id: markers.get(token_id, ""),
        )


def _after(reasoning: ReasoningPlan | None, grammar: Grammar) -> Grammar:
    """Return the grammar of an answer with the newlines before it."""
    if reasoning is None:
        return grammar
    return (Grammar.literal("\n") if reasoning.is_draft else Grammar.from_regex(_NEWLINES)) + grammar


def _denied(params: GenerateParams) -> BudgetError:
    """Return the error for an answer that is nothing but the beginning of a call, which is barred or does not fit."""
    if params.tool_choice == "none":
        names = params.tools.names if params.tools is not None else ()
        return BudgetError(
            "the model wrote nothing but the beginning of a call, and no call is allowed",
            hint="allow calls (tool_choice='auto')" if names else "offer the tools, or ask for a text in the prompt",
        )
    return BudgetError(
        f"the model began a call, which does not fit in the budget of {params.max_tokens} tokens",
        hint="raise max_tokens",
    )


def _schemas(params: GenerateParams) -> dict[str | None, Any]:
    """Return the schemas of a request: of each tool's arguments, and under None that of a JSON answer."""
    schemas: dict[str | None, Any] = {}
    if params.tools is not None:
        for tool in params.tools.to_openai():
            schemas[tool["function"]["name"]] = tool["function"].get("parameters")
    if params.json_mode is not None:
        mode, grammar = params.json_mode, params.json_mode.grammar
        shown = shown_schema(mode.schema, additional_properties=mode.additional_properties)
        schemas[None] = shown if grammar is None else grammar.schema
    elif params.grammar is not None:
        schemas[None] = params.grammar.schema
    return schemas


def silently(work: Work) -> Generator[Forward | Released, Logits | None, Generation]:
    """Run a generation without its events; return the complete generation."""
    whole: Generation | None = None
    logits = None
    with closing(work):
        while (item := sent(work, logits)) is not None:
            logits = None
            if isinstance(item, (Forward, Released)):
                logits = yield item
            elif isinstance(item, Generation):
                whole = item
    assert whole is not None
    return whole
