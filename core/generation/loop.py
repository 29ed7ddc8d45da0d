"""The decoding loop: a model chooses among the tokens that a matcher allows; forced text is written without it.

The matcher may be ahead of the tokens: forced text, and words that the model chose as a whole, are *pending* until
their tokens are known (`PendingText`).

Invariant: at every step, the shortest completion of the text fits in the remaining budget, so the text can always be
completed validly. A choice of the model that would violate this is *denied*: the model chooses again among the other
tokens, a few times; then the next token is that of the shortest completion. If the completion needs all of the
remaining budget, it is written without asking the model.

The loop does not run the model. It yields requests for logits (`Forward`) and receives them, so a driver can run one
sequence or many. It terminates, because each turn writes at least one byte or one control token within the budget, or
makes text pending.
"""

from __future__ import annotations

import weakref
from collections.abc import Generator, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import TYPE_CHECKING, Union

import numpy as np

from ..basics.pauses import Ended
from ..conversation.events import ChoiceMade, TokenWritten
from ..errors import BudgetError, CancelledError, ContextOverflowError, DecodingError, GenerationTimeoutError
from ..masks.bits import flags
from ..masks.budget import Budget
from ..masks.promised import refused, take
from .deadline import Deadline
from .exact_choice import ExactChoice
from .insertions import NamesRead
from .pending_text import PendingText, forced_text
from .reasoning import Reasoning, output_budget
from .repetition import LoopGuard, close_value
from .retokenise import Speller, mask_of, may_say, size_of
from .sampler import Sampler
from .step_record import StepRecord
from .token_sequence import Forward, TokenSequence, Unanswered
from .tracer import Observation, Tracer

if TYPE_CHECKING:
    import numpy.typing as npt

    from ..conversation.events import FinishReason
    from ..conversation.trace import How
    from ..masks import Matcher
    from .backend import Backend
    from .params import GenerateParams

#: Maximum number of choices of the model for one token, if they do not fit in the budget.
MAX_CHOICES = 8

#: Bytes of which both may come next only in free text or a free string, in which nearly every token is allowed.
_PROBES = (b"e", b" ")


if TYPE_CHECKING:
    Steps = Generator[Union[TokenWritten, Forward], Union[npt.NDArray[np.float32], None], None]
    Choice = Generator[Forward, Union[npt.NDArray[np.float32], None], Union[int, None]]
    Stage = Generator[Union[TokenWritten, Forward], Union[npt.NDArray[np.float32], None], "Turn"]


class Turn(Enum):
    """Result of a stage of the loop: see `Decoding._write`."""

    PASS = "nothing: the state is another stage's"
    AGAIN = "text was written, added or taken back: the loop looks at the new state"
    END = "the text is over"


@dataclass
class Decoding:
    """One generation. Run `steps` once; then the other attributes describe the result.

    Args:
        backend: the model.
        prompt: the ids of the prompt, at least one.
        matcher: at the beginning of the text.
        params: the options.
        reasoning: the reasoning before that text; None: no reasoning.
        heal: number of tokens at the end of the prompt that may be replaced, because it may end inside a token (token
            healing).
        speller: the backend's tokenizer; generations may share one.
        names: reads the names in the answer whose descriptions the prompt gains (`Insertions`); None: it gains none.
        may_end: the model may end the text before its first token.
        deadline: the end of the time for the answer; by default ``params.timeout`` seconds after `steps` begins.

    Attributes:
        reason: the reason of its end.
        closed_at: number of bytes before the first choice that the budget denied; None if it denied none.
        reasoning_tokens: number of tokens of the reasoning.
        repeated: the repeated unit of the first loop that was closed; None if there was none.
        stop_requested: set it to end the generation after the current step.
        tracer: collects the trace or the masses, with ``params.trace`` or ``params.masses``.
        sequence: the tokens, and their counts.
    """

    backend: Backend
    prompt: Sequence[int]
    matcher: Matcher
    params: GenerateParams
    reasoning: Reasoning | None = None
    heal: int = 0
    speller: Speller | None = None
    names: NamesRead | None = None
    deadline: Deadline | None = None
    may_end: bool = False
    reason: FinishReason = "stop"
    closed_at: int | None = None
    reasoning_tokens: int = 0
    stop_requested: bool = False
    repeated: str | None = None

    def __post_init__(self) -> None:
        vocabulary, params = self.backend.vocabulary, self.params
        is_traced = params.trace or params.masses
        self.tracer = Tracer(vocabulary, self.backend.name, not params.trace) if is_traced else None
        speller = self.speller or Speller(self.backend)
        self._sampler = Sampler(params)
        # Weak: without a reference cycle, the states of the grammar are released with the generation.
        this = weakref.proxy(self)
        must_stop = lambda: this._must_stop()  # noqa: E731
        self.sequence = TokenSequence(self.prompt, vocabulary.size, self._sampler, self.tracer, must_stop)
        self._pending = PendingText(self.backend, speller, self.sequence, self.heal)
        self._words = ExactChoice(self.backend, speller, self.sequence, self._pending, self._sampler)
        self._budget = Budget(self.matcher)
        self._call_tokens: tuple[int, ...] = ()  # with which the model may end the current reasoning
        self._call_marker: int | None = None  # the one with which it did
        self._record = StepRecord(
            vocabulary, params, self.sequence, self._pending, self._words, self.tracer, self.names
        )
        self._tokens, self._eos = vocabulary.tokens, vocabulary.eos

    @property
    def token_ids(self) -> list[int]:
        """The output tokens so far, without the end-of-text token."""
        return self.sequence.token_ids

    @property
    def choices(self) -> list[ChoiceMade]:
        """The choices among whole words, with ``params.exact_choice``; positions in bytes."""
        return self._words.made

    def steps(self) -> Steps:
        """Write the text step by step; send the logits for each `Forward` that it yields.

        Raises:
            BudgetError: the shortest valid output does not fit in the budget, or with ``on_budget="error"`` the
                model's own output does not.
            ContextOverflowError: the prompt fills the context window.
            GenerationTimeoutError: the timeout is over.
            DecodingError: the model's logits cannot be used, or the vocabulary cannot write the text.
        """
        steps = self._until_cancelled()
        return steps if self.tracer is None else self.tracer.timed(steps)

    def _until_cancelled(self) -> Steps:
        """Run `_steps`; end it as cancelled, without an error, if the model or the caller gives up in the middle of a
        step; the text that was written so far is still yielded. Missing logits without a cancellation are a
        DecodingError."""
        try:
            yield from self._steps()
        except Ended as ended:  # in long work
            if not isinstance(ended.error, CancelledError) or isinstance(ended.error, GenerationTimeoutError):
                raise
            self.reason = "cancelled"
            self._record.write_emitted()
        except Unanswered:  # while waiting for logits
            if self.reason != "cancelled":
                size = self.backend.vocabulary.size
                raise DecodingError(
                    f"the model gave logits of shape None for {size} tokens",
                    hint="use the vocabulary of this very model",
                ) from None
            self._record.write_emitted()

    def _steps(self) -> Steps:
        """Yield the stages of the generation in order: reasoning (if optional, the model first decides if it reasons),
        the end of the prompt that is written again with the text, the text. Each stops at the budget; a text that the
        budget closed ends with the reason "length"."""
        budget = output_budget(self.backend, self.prompt, self.params, self._budget, self.reasoning)
        self.deadline = self.deadline or Deadline.after(self.params.timeout)
        self._sampler.saw(self.prompt)
        reasoning = self.reasoning
        if reasoning is not None and (
            reasoning.instead is None
            or reasoning.plan.is_draft
            or (yield from self._decide(reasoning, reasoning.instead, budget))
        ):
            yield from self._reason(reasoning, budget)
        if self.heal and self.prompt and not self.token_ids and not self._must_stop():
            ids = self._pending.heal(self.matcher, self._forced_text(), lambda more: self._fits(budget + more))
            yield from self._record.appended(ids or ())
        if self.reason == "stop":
            yield from self._write(budget)
        if self.closed_at is not None and self.reason == "stop":
            self.reason = "length"

    def _decide(
        self, reasoning: Reasoning, text: Matcher, budget: int
    ) -> Generator[TokenWritten | Forward, npt.NDArray[np.float32] | None, bool]:
        """Let the model begin either the reasoning or the text; return True if it reasons.

        Both may begin with the same tokens (``<`` of the marker, or of the text), so both matchers advance until only
        one is possible, or until the whole marker is written. The steps are yielded then.

        Args:
            reasoning: the reasoning.
            text: the text without reasoning.
            budget: maximum number of tokens.
        """
        text_after = self._switch(text)  # `matcher` was that of the text after reasoning
        least_after, _ = Budget(text_after).needed()
        thought, thought_budget = reasoning.matcher, Budget(reasoning.matcher)
        may_think, may_write = thought_budget.fits(budget - least_after), True
        undecided: list[TokenWritten] = []
        size = 0  # in bytes and control tokens, as `ReasoningPlan.marker_size`
        names, self._record.names = self._record.names, None  # they are not read in reasoning
        while may_think and may_write and not self._must_stop():
            remaining = budget - len(self.token_ids) - 1
            allowed = np.union1d(self._allowed(text), self._allowed(thought))
            token_id = int(allowed[0]) if len(allowed) == 1 else (yield from self._choose(allowed))
            seen = self._record.observe(allowed, self.matcher)
            if token_id in self._eos and text.is_accepting:
                text.accept(token_id)
                may_think = False
                break
            may_think = thought.accept(token_id)
            if may_think and not thought_budget.fits(remaining - least_after):
                thought.rollback(1)
                may_think = False
            may_write = text.accept(token_id)
            if may_write and not self._fits(remaining):
                text.rollback(1)
                may_write = False
                if not may_think:
                    self._deny()
            if may_think or may_write:
                how: How = "forced" if len(allowed) == 1 else "sampled"
                undecided.append(self._record.append(token_id, how, len(allowed), seen))
                size += len(undecided[-1].data) or 1
                may_write = may_write and not (may_think and size >= reasoning.plan.marker_size)
        thinks = may_think and not may_write
        if thinks and self.tracer is not None:
            self.tracer.reasoned()
        self._record.names = names
        for step in undecided:
            if names is not None and not thinks:
                names.wrote(step.token_id, step.data)
            yield replace(step, reasoning=thinks)
        if thinks:
            self._switch(text_after)
        return thinks

    def _reason(self, reasoning: Reasoning, budget: int) -> Steps:
        """Write the reasoning, within a budget that leaves the minimum number of tokens for the text; and the marker of
        a call with which the model ended it."""
        text = self._switch(reasoning.matcher)
        self._record.is_reasoning, self._call_tokens = True, reasoning.plan.call_tokens
        needed, _ = self._budget.needed()
        needed_after, _ = Budget(text).needed()
        least, most = len(self.token_ids) + needed, budget - needed_after
        if reasoning.plan.budget is not None:
            most = min(most, max(least, reasoning.plan.budget))
        yield from self._write(most)
        self.reasoning_tokens = self._pending.settled = len(self.token_ids)
        self._record.is_reasoning, self._call_tokens = False, ()
        self.closed_at = None  # of the text only, not of the reasoning
        if self.reason == "length":  # a draft may be truncated anywhere
            self.reason = "stop"
        # After an empty draft, the text begins as it does without one (no newline before it).
        self._switch(text if reasoning.instead is None or self.token_ids else reasoning.instead)
        marker = self._call_marker
        if marker is not None and self.matcher.accept(marker):
            self.matcher.rollback(1)  # `_try` accepts it, if it fits in the budget
            if self._try(marker, self._remaining(budget)):
                yield self._record.append(marker, "sampled")

    def _switch(self, matcher: Matcher) -> Matcher:
        """Continue with another matcher; return the previous one."""
        before, self.matcher = self.matcher, matcher
        self._budget = Budget(matcher)
        return before

    def _write(self, budget: int) -> Steps:
        """Write until the matcher is finished, or until there are ``budget`` tokens in all.

        Each turn of the loop is the first of these stages whose condition holds:

        1. `_settle_pending`: text is forced or pending, and its tokens are not known. It appends tokens, or sets
           `spellings`.
        2. `_choose_word`: finitely many words may follow. One becomes pending.
        3. `_close_loop`: the model repeats itself. The end of the value becomes pending.
        4. `_choose_token`: the model chooses a token, or the budget completes the text.
        """
        bound = 0 if self._record.is_reasoning else self.params.max_repetition
        guard = LoopGuard(self.backend.vocabulary, bound, budget)
        if self.may_end and not self._record.is_reasoning and (yield from self._ends_at_once()):
            return
        while self._pending.text or not self.matcher.is_finished:
            if self._must_stop():
                self._record.write_emitted()
                return
            if len(self.token_ids) >= budget:
                if self.matcher.values is not None and not self.matcher.is_accepting:
                    raise BudgetError(
                        f"the token budget of {budget} does not hold the values that a callable gave",
                        hint="raise max_tokens, or keep more room for them: Values(longest=...)",
                    )
                self.reason = "length"
                return
            turn = yield from self._settle_pending(budget)
            if turn is Turn.PASS:
                budget = self._insert_description(budget)
                turn = yield from self._choose_word(budget)
            if turn is Turn.PASS:
                turn = self._close_loop(guard, budget)
            if turn is Turn.PASS:
                turn = yield from self._choose_token(budget)
            if turn is Turn.END:
                return

    def _ends_at_once(self) -> Generator[Forward, npt.NDArray[np.float32] | None, bool]:
        """Let the model end the text before its first token; return True if it does. If it does not, it chooses again,
        by the mask of the grammar.

        The grammar itself has no empty text: with it, the budget would keep no room for any other.
        """
        if self._must_stop() or self._pending.text:
            return False
        token_id = yield from self._choose(np.union1d(self._allowed(), np.fromiter(self._eos, np.intp)))
        return token_id in self._eos

    def _settle_pending(self, budget: int) -> Stage:
        """Write the part of forced and pending text whose tokens are certain."""
        if self._pending.spellings is not None:
            return Turn.PASS
        forced = self._forced_text()
        ids = self._pending.jump(self.matcher, forced, lambda more: self._fits(self._remaining(budget) + more))
        yield from self._record.appended(ids)
        return Turn.AGAIN if ids else Turn.PASS

    def _insert_description(self, budget: int) -> int:
        """If the certain text completes the name of a tool that the prompt does not describe, replace the prompt by one
        that does; return the budget, which is less if the context window leaves less.

        Raises:
            ContextOverflowError: the shortest valid output does not fit in the context window after that.
        """
        if self.names is None or self._record.is_reasoning:
            return budget
        self.names.foresee(self._certain())
        if not self.names.is_due:
            return budget
        prompt = self.names.prompt()
        self.sequence.replace_prompt(prompt)
        budget = min(budget, self.backend.context_window - len(prompt))
        if not self._fits(self._remaining(budget)):
            raise ContextOverflowError(
                f"with the description of {self.names.inserted[-1]!r} the prompt has {len(prompt)} tokens, and the "
                f"rest of the call does not fit in the context window of {self.backend.context_window}",
                hint="shorten the conversation, the tool list or this tool's schema",
            )
        return budget

    def _certain(self) -> bytes:
        """Return the certain text after the written tokens."""
        return self._pending.text[self._pending.emitted :] + (
            b"" if self.matcher.is_finished else self.matcher.forced_bytes()
        )

    def _choose_word(self, budget: int) -> Stage:
        """Let the model choose a whole word, if finitely many may follow (`ExactChoice`)."""
        if self._record.is_reasoning or not self.params.exact_choice:
            return Turn.PASS
        denied = yield from self._words.choose(
            self.matcher, self._record.pending_start, lambda: self._fits(self._remaining(budget))
        )
        if denied is None:
            return Turn.PASS
        if denied:
            self._deny()
        return Turn.AGAIN

    def _close_loop(self, guard: LoopGuard, budget: int) -> Turn:
        """Close the string or list in which the model repeats itself, or end a text that may end here.

        Raises:
            BudgetError: there is a loop, with ``on_budget="error"``.
        """
        loop = None if self._pending.text else guard.find(self.matcher, self.token_ids)
        if loop is None:
            return Turn.PASS
        fits = lambda: self._fits(self._remaining(budget))  # noqa: E731
        if not loop.may_end and not close_value(self.matcher, self._pending, loop.is_free, fits):
            return Turn.PASS
        if self.params.on_budget == "error":
            raise BudgetError(
                f"the model repeats {loop.shown!r} for {loop.size} bytes",
                hint="let on_budget='close' close the value, or raise max_repetition",
            )
        self.repeated = self.repeated or loop.shown
        if self.closed_at is None:
            self.closed_at = self._record.emitted
        if not loop.may_end:
            return Turn.AGAIN
        self.reason = "length"
        return Turn.END

    def _choose_token(self, budget: int) -> Stage:
        """Let the model choose a token among the allowed ones (or the possible next tokens of pending text) and write
        it. If the text could not be completed within the budget after it, `_close` writes another one. The result is
        the loop's next `Turn`."""
        remaining = self._remaining(budget)
        token_id, allowed = yield from self._propose()
        if token_id in self._call_tokens:
            self._call_marker = token_id
            return (yield from self._end_reasoning())
        if self._pending.restores_prompt(token_id):
            return Turn.AGAIN
        if token_id in self._eos and self.matcher.is_accepting:
            take(self.matcher, token_id)
            return Turn.END
        if allowed is None and (self.tracer is not None or self.params.logprobs is not None):
            allowed = self._allowed()
        seen = self._record.observe(allowed, self.matcher)
        before = self._pending.mark()
        if not self._try(token_id, remaining):
            return (yield from self._close(token_id, remaining, seen))
        names = None if self._record.is_reasoning else self.names
        data, fits = self._tokens[token_id] or b"", lambda: self._fits(remaining)
        if names is not None and names.keeps_name_only(self.matcher, self._pending, before, data, fits):
            self._record.logprobs = None
            return Turn.AGAIN
        choices = None if allowed is None else len(allowed)
        yield self._record.append(token_id, "forced" if choices == 1 else "sampled", choices, seen)
        return Turn.AGAIN

    def _propose(
        self,
    ) -> Generator[Forward, npt.NDArray[np.float32] | None, tuple[int, npt.NDArray[np.intp] | None]]:
        """Return a token that the model chooses, and the tokens from which it does; None for these if the token was
        drawn first, so that no mask is known. In reasoning, the markers of calls are among them."""
        spellings = self._pending.spellings
        if spellings is None and (first := (yield from self._draw_first())) is not None:
            return first, None
        allowed = self._allowed() if spellings is None else spellings
        if self._call_tokens and spellings is None and len(allowed) > 1:
            allowed = np.union1d(allowed, self._call_tokens)
        return int(allowed[0]) if len(allowed) == 1 else (yield from self._choose(allowed)), allowed

    def _close(self, token_id: int, remaining: int, seen: Observation | None) -> Stage:
        """Write a token in place of a choice that does not fit: another choice that does, or the next token of the
        shortest completion (all its tokens, if just enough are left).

        A choice with the text of the completion's next token is not denied: only its tokenization is another one.
        """
        path = self._budget.completion(self.token_ids, self._pending.text)
        if not path:  # the text is complete
            self.reason = "length"
            return Turn.END
        writes_all = False  # without asking the model
        if not self._same_text(token_id, path[0]):
            self._deny()
            writes_all = len(path) >= remaining
            other = None if writes_all else (yield from self._choose_again(token_id, remaining))
            if other is not None:
                yield self._record.append(other, "sampled", seen=seen)
                return Turn.AGAIN
        while path:
            if not self._pending.accept(self.matcher, path[0]):
                # The readings for which it is a completion were dropped, because there were too many.
                path = self._budget.completion(self.token_ids, self._pending.text)
                if not self._pending.accept(self.matcher, path[0]):
                    raise refused(self.matcher, path[0])
            # False if readings were dropped, so that the rest of the path does not complete the text any more.
            writes_all = writes_all and self._budget.follows(self.token_ids, path[0], self._pending.text)
            yield self._record.append(path[0], "closed")
            path = path[1:] if writes_all else []
        return Turn.AGAIN

    def _end_reasoning(self) -> Stage:
        """Write the rest of the reasoning: its end marker."""
        while path := self._budget.completion(self.token_ids, self._pending.text):
            if not self._pending.accept(self.matcher, path[0]):
                raise refused(self.matcher, path[0])
            yield self._record.append(path[0], "forced")
        return Turn.END

    def _forced_text(self) -> bytes:
        """Return the forced text; empty without ``jump_forward``."""
        return forced_text(self.matcher) if self.params.jump_forward else b""

    def _remaining(self, budget: int) -> int:
        """Return the number of remaining tokens."""
        return budget - len(self.token_ids)

    def _must_stop(self) -> bool:
        """Return True if the generation is stopped or cancelled.

        Raises:
            GenerationTimeoutError: the timeout is over.
        """
        if self.stop_requested:
            return True
        if self.params.cancel is not None and self.params.cancel():
            self.reason = "cancelled"
            return True
        assert self.deadline is not None
        self.deadline.check(f"after {len(self.token_ids)} tokens")
        return False

    # -- choosing ----------------------------------------------------------------------------------------------

    def _allowed(self, matcher: Matcher | None = None) -> npt.NDArray[np.intp]:
        """Return the ids of the tokens that a matcher (by default the current one) allows, ascending.

        Raises:
            DecodingError: there are none.
        """
        allowed = np.flatnonzero(mask_of(matcher or self.matcher, self.backend.vocabulary))
        if len(allowed) == 0:
            raise DecodingError(
                "the vocabulary has no token with which the text could go on",
                hint="the vocabulary must have a token for every single byte",
            )
        return allowed

    def _choose(self, allowed: npt.NDArray[np.intp]) -> Generator[Forward, npt.NDArray[np.float32] | None, int]:
        logits = yield from self.sequence.read()
        return self._sampler.choose(logits, allowed)

    def _draw_first(self) -> Choice:
        """Draw a token from all logits, and keep it if the matcher allows it: cheaper than a mask where nearly every
        token is allowed, as in free text. None: elsewhere, or the token is forbidden. The matcher is not advanced."""
        if not all(may_say(self.matcher, probe) for probe in _PROBES):
            return None
        token_id = self._sampler.draw_first((yield from self.sequence.read()))
        if token_id is None or not self.matcher.accept(token_id):
            return None
        self.matcher.rollback(1)
        return token_id

    # -- the budget --------------------------------------------------------------------------------------------

    def _try(self, token_id: int, remaining: int) -> bool:
        """Accept a token if the text can still be completed after it; else change nothing."""
        before = self._pending.mark()
        if not self._pending.accept(self.matcher, token_id):
            raise refused(self.matcher, token_id)
        # The next token of the last planned completion fits without counting again.
        if self._budget.follows(self.token_ids, token_id, self._pending.text) or self._fits(remaining - 1):
            return True
        # The matcher has moved only if the token is longer than the pending text, or none was pending.
        if size_of(self.backend.vocabulary, token_id) > len(before.text) or not before.text:
            self.matcher.rollback(1)
        self._pending.reset(before)
        return False

    def _choose_again(self, denied: int, remaining: int) -> Choice:
        """Accept and return another choice of the model that fits in the budget; None after `MAX_CHOICES` choices."""
        allowed = self._fitting(remaining) if self._pending.spellings is None else self._pending.spellings
        for _ in range(MAX_CHOICES - 1):
            allowed = allowed[allowed != denied]
            if len(allowed) == 0:
                return None
            denied = yield from self._choose(allowed)
            if self._try(denied, remaining):
                return denied
        return None

    def _fitting(self, remaining: int) -> npt.NDArray[np.intp]:
        """Return the ids of the tokens after which the text can be completed, ascending."""
        mask = np.zeros(self.matcher.constraint.words, dtype=np.uint32)
        self.matcher.fill_mask(mask)
        self._budget.narrow(mask, self.token_ids, remaining)
        return np.flatnonzero(flags(mask))

    def _deny(self) -> None:
        """Record that the budget denied a choice of the model."""
        if self.params.on_budget == "error" and not self._record.is_reasoning:
            raise BudgetError(
                f"the token budget ran out after {len(self.token_ids)} tokens, before the output was complete",
                hint="raise max_tokens, or let on_budget='close' finish the output validly",
            )
        if self.closed_at is None:
            self.closed_at = self._record.emitted

    def _same_text(self, token_id: int, instead: int) -> bool:
        """Return True if two tokens write the same text, which the grammar fixes, so that the model loses no choice."""
        forced = self._pending.text + self.matcher.forced_bytes()
        return all(forced.startswith(self._tokens[one] or b"\xff") for one in (token_id, instead))

    def _fits(self, remaining: int) -> bool:
        """Return True if the text can be completed with ``remaining`` tokens."""
        return self._budget.fits(remaining, self._pending.text)
