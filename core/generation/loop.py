"""The decoding loop: the model chooses among the tokens that a matcher allows, and is not asked for forced text.

The matcher may be ahead of the tokens. Text that the grammar forces is accepted at once, and tokens follow as far as
the tokenizer would write the same ones whatever comes next. The rest of it is *held*: there the model chooses among the
tokens with which the tokenizer may go on, which write the held text, or the beginning of it, or more than it. So at
each of its choices the model reads a text spelled as the tokenizer spells it. The end of a prompt inside a token is
held in the same way (token healing).

Invariant: at every step the shortest completion of what is written fits in the remaining budget, so the text can
always be finished validly. A choice of the model that would break it is *denied*: the model may choose again among the
rest, a few times, and then the shortest completion goes on. Where there is no room left but for that completion, it is
written without asking the model at all.

The loop runs no model. It asks for logits (`Forward`) and is sent them, so that whoever drives it may run one sequence
or many together. Each turn of the loop writes at least one byte or one control token within the budget, so it ends.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Union

import numpy as np

from ..conversation.events import ChoiceMade
from ..errors import BudgetError, CancelledError, ContextOverflowError, DecodingError, GenerationTimeoutError
from .choices import MAX_BRANCHES, place_at, spelled_words
from .completion import Completion, complete
from .deadline import Deadline
from .logprobs import LogProbs, log_softmax
from .repetition import EVERY, LEAST_LIST, MAX_UNIT, bound_of, repeated_unit
from .retokenise import (
    CONTEXT_TOKENS,
    Speller,
    common_prefix,
    forced_characters,
    may_say,
    no_token,
    size_of,
    spell_somehow,
    text_end,
)
from .sampler import Sampler
from .tracer import Observation, Tracer

if TYPE_CHECKING:
    import numpy.typing as npt

    from ..conversation.events import FinishReason
    from ..conversation.trace import How
    from ..masks import Matcher
    from .backend import Backend
    from .params import GenerateParams

#: Longest forced run that is taken in one jump, in bytes.
MAX_JUMP = 2048

#: The budget when none is given, in tokens.
DEFAULT_BUDGET = 2048

#: Maximum number of choices of the model at one place when they do not fit in the budget.
MAX_CHOICES = 8

#: Maximum number of tokens at the end of a prompt that are written again where the tokenizer would write others.
MAX_HEALED = 4

#: Maximum number of choices of the model at one place when the tokenizer would not write them.
MAX_SPELLINGS = 32

#: Bytes that may both come next only in free text or a free string, where nearly every token is allowed.
_PROBES = (b"e", b" ")


@dataclass
class Forward:
    """A request for a forward pass: append these tokens to the sequence, and send back the logits after the last.

    Attributes:
        token_ids: the tokens.
        parents: for each the index of the token before it, or -1: they are a tree that the model looks ahead along, and
            that is not appended; what is sent back are the logits after each, ``[n, V]`` (see `TreeSession`). None:
            they are appended.
        cached_tokens: set by the driver: number of them that were not computed again.
        is_over: a driver that lets it wait may ask now and then whether to go on; if this returns True or raises, the
            generation is over, and is sent None for logits.
        passes: set by the driver: number of forward passes of the model; more than one where it cannot read a tree.
        seconds: set by the driver: time of the forward pass; of one for many sequences, the whole.
    """

    token_ids: tuple[int, ...]
    is_over: Callable[[], bool] | None = None
    parents: tuple[int, ...] | None = None
    cached_tokens: int = 0
    passes: int = 1
    seconds: float = 0.0


class _CancelledWhileWaiting(Exception):
    """The generation was cancelled while it waited for logits."""


@dataclass(frozen=True)
class Step:
    """One step of decoding.

    Attributes:
        token_id: the token.
        data: the bytes that it added (fewer than its own where it replaced the token before it).
        forced: the grammar left no choice, or the budget did not.
        choices: number of tokens that were allowed, when they were counted.
        reasoning: the token is a part of the reasoning, its markers included.
        logprob: of the token among those that were allowed, with ``params.logprobs``; 0 where there was no choice.
        likeliest: the likeliest tokens there with theirs, as many as ``params.logprobs`` says.
    """

    token_id: int
    data: bytes
    forced: bool
    choices: int | None = None
    reasoning: bool = False
    logprob: float | None = None
    likeliest: tuple[tuple[int, float], ...] = ()


if TYPE_CHECKING:
    Steps = Generator[Union[Step, Forward], Union[npt.NDArray[np.float32], None], None]
    Logits = Generator[Forward, Union[npt.NDArray[np.float32], None], npt.NDArray[np.float32]]
    Choice = Generator[Forward, Union[npt.NDArray[np.float32], None], Union[int, None]]


@dataclass
class Decoding:
    """One generation. Run `steps` once; then the other attributes say how it went.

    Args:
        backend: the model.
        prompt: the ids of the prompt, at least one.
        matcher: at the beginning of the text.
        params: how to generate.
        reasoning: a matcher of the reasoning before that text; it ends by itself. None: no reasoning.
        reasoning_budget: maximum number of tokens of the reasoning; None: all that the text leaves.
        instead: a matcher of the text without reasoning, if the model chooses whether to reason.
        marker: size of the start marker in bytes and control tokens; after it the choice is certain.
        heal: number of tokens at the end of the prompt that may be replaced, since it may end inside one; see `_heal`.
        speller: the backend's tokenizer; generations may share one.
        deadline: the end of the time for the answer; by default ``params.timeout`` seconds after `steps` begins.

    Attributes:
        token_ids: the tokens written so far, without the end-of-text token.
        reason: why it ended.
        closed_at: number of bytes written when the budget first denied the model a choice; None if it never did.
        forward_passes: number of forward passes.
        cached_tokens: number of tokens of the prompt that were not computed again.
        reasoning_tokens: number of tokens of the reasoning.
        choices: those among whole words, with ``params.exact_choice``; their places are bytes.
        repeated: what the model repeated in the value that was closed first for it.
        stop_requested: set it to end the generation after the present step.
        tracer: collects the trace or the masses, with ``params.trace`` or ``params.masses``.
    """

    backend: Backend
    prompt: Sequence[int]
    matcher: Matcher
    params: GenerateParams
    reasoning: Matcher | None = None
    reasoning_budget: int | None = None
    instead: Matcher | None = None
    marker: int = 0
    heal: int = 0
    speller: Speller | None = None
    deadline: Deadline | None = None
    token_ids: list[int] = field(default_factory=list)
    reason: FinishReason = "stop"
    closed_at: int | None = None
    forward_passes: int = 0
    cached_tokens: int = 0
    reasoning_tokens: int = 0
    stop_requested: bool = False
    choices: list[ChoiceMade] = field(default_factory=list)
    repeated: str | None = None

    def __post_init__(self) -> None:
        self._written = 0  # bytes
        self._forced: list[bool] = []  # for each token, True if no choice was left
        self._pending = list(self.prompt)  # tokens that the model has not read yet
        self._logits: npt.NDArray[np.float32] | None = None  # after the last token that it has read
        self._completion = Completion(self.backend)
        self._kept = 0  # number of the first tokens that are not spelled again
        self._spelling = self.speller or Speller(self.backend)
        self._held = b""  # the end of the certain text, which no token has written yet
        self._ahead = b""  # the bytes of the last step of the matcher, as long as some of them are held
        self._sent = 0  # number of held bytes that were in steps already, or in the prompt
        self._repeats = False  # the next token replaces one that the model chose
        self._among: npt.NDArray[np.intp] | None = None  # the tokens that may write what is held
        self._prompt_tail = list(self.prompt[len(self.prompt) - self.heal :])  # that may be replaced
        self._healed: list[int] = []  # tokens that were taken from it
        self._reasons = False
        self._looks_at = EVERY  # number of tokens from which on a loop is looked for
        # Of the word that is held: its log-probability, how many there were, and theirs together; and where it ends.
        self._chosen: tuple[float, int, float] | None = None
        self._word_end = 0
        self._logprobs: LogProbs | None = None  # at the place of the next token, if they are wanted
        self._sampler = Sampler(self.params)
        vocabulary, params = self.backend.vocabulary, self.params
        is_told = params.trace or params.masses
        self.tracer = Tracer(vocabulary, self.backend.name, not params.trace) if is_told else None
        self._tokens, self._eos, self._size = vocabulary.tokens, vocabulary.eos, vocabulary.size
        self._mask = np.zeros((self._size + 31) // 32, dtype=np.uint32)

    @property
    def forced_tokens(self) -> int:
        """Number of tokens that were not the model's choice."""
        return sum(self._forced)

    def steps(self) -> Steps:
        """Write the text, step by step; whenever it yields a `Forward`, send it the logits.

        Raises:
            BudgetError: the shortest valid output does not fit in the budget, or with ``on_budget="error"`` the
                model's own output does not.
            ContextOverflowError: the prompt leaves no room.
            GenerationTimeoutError: the timeout passed.
            DecodingError: the model's logits cannot be used, or the vocabulary cannot write what the grammar wants.
        """
        steps = self._until_cancelled()
        return steps if self.tracer is None else self.tracer.timed(steps)

    def _until_cancelled(self) -> Steps:
        try:
            yield from self._steps()
        except GenerationTimeoutError:
            raise
        except (_CancelledWhileWaiting, CancelledError):  # while it waited for logits, or in long work
            self.reason = "cancelled"
            self._write_sent()

    def _steps(self) -> Steps:
        budget = self._budget()
        self._deadline = self.deadline or Deadline.after(self.params.timeout)
        self._sampler.saw(self.prompt)
        if self.reasoning is not None and (
            self.instead is None or (yield from self._decide(self.reasoning, self.instead, budget))
        ):
            yield from self._reason(self.reasoning, budget)
        if self.heal and self.prompt and not self.token_ids and not self._must_stop():
            yield from self._heal(budget)
        if self.reason == "stop":
            yield from self._write(budget)
        if self.closed_at is not None and self.reason == "stop":
            self.reason = "length"

    def _decide(
        self, thought: Matcher, text: Matcher, budget: int
    ) -> Generator[Step | Forward, npt.NDArray[np.float32] | None, bool]:
        """Let the model begin to reason or begin the text; return True if it reasons.

        A token may be the beginning of both (a ``<`` of the marker, or of the text), so both go on as long as what is
        written may be either. The steps come when that is known.
        """
        needed = len(complete(self.backend, self.matcher))
        after = self._switch(text)
        thinks, writes = len(complete(self.backend, thought)) + needed <= budget, True
        held: list[Step] = []
        size = 0
        while thinks and writes and not self._must_stop():
            remaining = budget - len(self.token_ids) - 1
            allowed = np.union1d(self._allowed(), self._allowed(thought))
            token_id = int(allowed[0]) if len(allowed) == 1 else (yield from self._choose(allowed))
            seen = self._observe(allowed)
            if token_id in self._eos and text.is_accepting:
                text.accept(token_id)
                thinks = False
                break
            thinks = thought.accept(token_id)
            if thinks and len(complete(self.backend, thought)) + needed > remaining:
                thought.rollback(1)
                thinks = False
            writes = text.accept(token_id)
            if writes and not self._fits(remaining):
                text.rollback(1)
                writes = False
                if not thinks:
                    self._deny()
            if thinks or writes:
                held.append(self._append(token_id, "forced" if len(allowed) == 1 else "sampled", len(allowed), seen))
                size += len(held[-1].data) or 1
                writes = writes and not (thinks and size >= self.marker)
        thinks = thinks and not writes
        if thinks and self.tracer is not None:
            self.tracer.reasoned()
        for step in held:
            yield replace(step, reasoning=thinks)
        if thinks:
            self._switch(after)
        return thinks

    def _reason(self, matcher: Matcher, budget: int) -> Steps:
        """Write the reasoning, with the least number of tokens of the text kept back."""
        text = self._switch(matcher)
        self._reasons = True
        least = len(self.token_ids) + len(complete(self.backend, matcher))
        most = budget - len(complete(self.backend, text))
        if self.reasoning_budget is not None:
            most = min(most, max(least, self.reasoning_budget))
        yield from self._write(most)
        self.reasoning_tokens = self._kept = len(self.token_ids)
        self._reasons = False
        self.closed_at = None  # a closed reasoning is no closed text
        if self.reason == "length":  # a draft may end anywhere
            self.reason = "stop"
        self._switch(text)

    def _switch(self, matcher: Matcher) -> Matcher:
        """Go on with another matcher; return the one before."""
        before, self.matcher = self.matcher, matcher
        self._completion.leave()
        return before

    def _budget(self) -> int:
        room = self.backend.context_window - len(self.prompt)
        if room <= 0:
            raise ContextOverflowError(
                f"the prompt has {len(self.prompt)} tokens, and the context window {self.backend.context_window}",
                hint="shorten the conversation or the tool list",
            )
        wanted = self.params.max_tokens
        budget = min(room, DEFAULT_BUDGET if wanted is None else wanted)
        least = 0 if self.reasoning is None or self.instead is not None else len(complete(self.backend, self.reasoning))
        if not self._fits(budget - least):
            needed, is_exact = self._completion.needed(self.matcher)
            needed += least
            way = f"set max_tokens to at least {needed}" if budget < room else "shorten the conversation"
            most = "" if is_exact else "at least "
            raise BudgetError(
                f"the shortest valid output needs {most}{needed} tokens, and the budget is {budget}", hint=way
            )
        return budget

    def _write(self, budget: int) -> Steps:
        """Write until the matcher is finished, or no more than ``budget`` tokens in all."""
        bound = 0 if self._reasons else bound_of(self.params.max_repetition, budget)
        while self._held or not self.matcher.is_finished:
            if self._must_stop():
                self._write_sent()
                return
            remaining = budget - len(self.token_ids)
            if remaining <= 0:
                self.reason = "length"
                return
            if self._among is None:
                jump = self._jump(remaining)
                if jump:
                    yield from jump
                    continue
                remaining = budget - len(self.token_ids)  # the last token may have been taken back
            if self.params.exact_choice and (yield from self._choose_word(remaining)):
                continue
            if bound and self._closes_loop(bound, remaining):
                if self.reason == "length":
                    return
                continue
            among = allowed = self._among
            token_id = None if among is not None else (yield from self._draw_first())
            if token_id is None:
                allowed = self._allowed() if among is None else among
                token_id = int(allowed[0]) if len(allowed) == 1 else (yield from self._choose(allowed))
            if self.params.canonical and among is None and (allowed is None or len(allowed) > 1):
                allowed = self._allowed() if allowed is None else allowed
                token_id = yield from self._choose_canonical(token_id, allowed)
            if self._keeps_prompt(token_id):
                continue
            if token_id in self._eos and self.matcher.is_accepting:
                self.matcher.accept(token_id)
                return
            if allowed is None and (self.tracer is not None or self.params.logprobs is not None):
                allowed = self._allowed()
            seen = self._observe(allowed)
            if self._try(token_id, remaining):
                choices = None if allowed is None else len(allowed)
                yield self._append(token_id, "forced" if choices == 1 else "sampled", choices, seen)
                continue
            path = self._completion.tokens(self.matcher, self._held, remaining)
            if not path:  # the text is complete as it is
                self.reason = "length"
                return
            whole = False
            if not self._same_text(token_id, path[0]):
                self._deny()
                whole = len(path) >= remaining
                other = None if whole else (yield from self._choose_again(token_id, remaining))
                if other is not None:
                    yield self._append(other, "sampled", seen=seen)
                    continue
            while path:
                if not self._accept(path[0]):  # there were too many readings, and those that it completes were dropped
                    self._completion.leave()
                    path = self._completion.tokens(self.matcher, self._held, remaining)
                    assert self._accept(path[0])
                if not self._completion.follow(self.matcher, path[0]):
                    self._completion.leave()
                    whole = False
                yield self._append(path[0], "closed")
                path = path[1:] if whole else []

    def _must_stop(self) -> bool:
        """Return True if the generation is stopped or cancelled.

        Raises:
            GenerationTimeoutError: the timeout passed.
        """
        if self.stop_requested:
            return True
        if self.params.cancel is not None and self.params.cancel():
            self.reason = "cancelled"
            return True
        self._deadline.check(f"after {len(self.token_ids)} tokens")
        return False

    # -- choosing ----------------------------------------------------------------------------------------------

    def _read(self) -> Logits:
        """Return the logits after all that is written, with one forward pass if there is anything new."""
        if self._logits is None or self._pending:  # nothing is pending where a token was taken back before it was read
            ids = tuple(self._pending)
            self._pending.clear()
            self.forward_passes += 1
            forward = Forward(ids, self._must_stop)
            logits = yield forward
            if logits is None and self.reason == "cancelled":
                raise _CancelledWhileWaiting
            self.cached_tokens += min(forward.cached_tokens, len(self.prompt))
            if self.tracer is not None:
                self.tracer.forward(forward.seconds, self.forward_passes == 1)
            if logits is None or logits.shape != (self._size,):
                shape = None if logits is None else logits.shape
                raise DecodingError(
                    f"the model gave logits of shape {shape} for {self._size} tokens",
                    hint="use the vocabulary of this very model",
                )
            self._logits = logits
        return self._logits

    def _allowed(self, matcher: Matcher | None = None) -> npt.NDArray[np.intp]:
        """Return the ids of the tokens that a matcher (by default the present one) allows, ascending.

        Raises:
            DecodingError: there are none.
        """
        (matcher or self.matcher).fill_mask(self._mask)
        allowed = np.flatnonzero(np.unpackbits(self._mask.view(np.uint8), bitorder="little").view(np.bool_))
        if len(allowed) == 0:
            raise no_token("go on")
        return allowed

    def _choose(self, allowed: npt.NDArray[np.intp]) -> Generator[Forward, npt.NDArray[np.float32] | None, int]:
        logits = yield from self._read()
        return self._sampler.choose(logits, allowed)

    def _choose_canonical(
        self, first: int, allowed: npt.NDArray[np.intp]
    ) -> Generator[Forward, npt.NDArray[np.float32] | None, int]:
        """Return a chosen token, or another choice where the tokenizer would not write it after the text so far.

        A token that it would not write is left out, and the model chooses among the rest: so a draw has the model's
        distribution over those that it would. After `MAX_SPELLINGS` choices, or where there are no others, the first
        choice stays.
        """
        token_id = first
        for _ in range(MAX_SPELLINGS):
            if self._is_canonical(token_id):
                return token_id
            allowed = allowed[allowed != token_id]
            if len(allowed) == 0:
                break
            token_id = yield from self._choose(allowed)
        return first

    def _is_canonical(self, token_id: int) -> bool:
        """Return True if the tokenizer would write a token after the last one; also where that cannot be told."""
        data = self._tokens[token_id]
        if not data:
            return True
        context = self._context()
        spelled = self._spelling.spell(self.backend.vocabulary.decode(context) + data)
        return not spelled or spelled[-2:] == (*context[-1:], token_id)[-2:]

    def _choose_word(self, remaining: int) -> Generator[Forward, npt.NDArray[np.float32] | None, bool]:
        """Choose a whole word where finitely many may follow, and hold it; return False where that is not so.

        Words that do not fit in the budget are denied.
        """
        vocabulary = self.backend.vocabulary
        if self._reasons or self._healed or self._chosen is not None or self.matcher.is_finished:
            return False
        context = self._context()
        place = place_at(self.matcher, vocabulary.decode(context) + self._held)
        trie = None if place is None else spelled_words(place, self._spelling, vocabulary, context, self._held)
        if place is None or trie is None:
            return False
        room = self.backend.context_window - len(self.prompt) - len(self.token_ids)
        if len(trie.token_ids) > room:
            return False
        rows = [log_softmax(self._sampler.adjusted((yield from self._read())))]
        passes = self.forward_passes
        if trie.token_ids:
            rows += [
                log_softmax(self._sampler.adjusted(logits))
                for logits in (yield from self._look_ahead(trie.token_ids, trie.parents))
            ]
        totals, ends = trie.logprobs(rows, vocabulary)
        possible = totals > -np.inf
        if np.isnan(totals).any() or not possible.any():
            return False
        whole = float(np.logaddexp.reduce(totals))
        is_denied = False
        while possible.any():
            index = self._sampler.choose_among(np.where(possible, totals, -np.inf))
            word = place.words[index]
            end = None
            if ends[index]:
                bytes_of = list(ends[index])
                end = bytes_of[self._sampler.choose_among(np.array(list(ends[index].values())))]
            begins = self._written + len(self._held) - self._sent - len(place.before)
            if self._hold_word(word.text, end, remaining):
                if is_denied:
                    self._deny()
                names = place.names()
                begins += len(place.quote)
                shares = dict(zip(names, map(float, np.exp(totals - whole)), strict=True))
                used = self.forward_passes - passes
                self.choices.append(ChoiceMade(begins, names[index], shares, float(np.exp(whole)), used))
                self._chosen = float(totals[index]) - whole, len(names), whole
                self._word_end = self._written + len(self._held) - self._sent
                return True
            is_denied = True
            possible[index] = False
        return False

    def _hold_word(self, text: bytes, end: int | None, remaining: int) -> bool:
        """Let the matcher go ahead over a word, which is held from now on; False, and no change, if it does not fit.

        Args:
            text: the word.
            end: the byte after it; -1: the text ends there; None: that is left open.
            remaining: the tokens that are left.
        """
        data = text if end is None or end < 0 else text + bytes((end,))
        held, ahead = self._held, self._ahead
        if data and not self.matcher.accept_bytes(data):
            return False
        steps = 1 if data else 0
        if end == -1:
            steps += self.matcher.accept(min(self._eos))
        self._held, self._ahead = held + data, b"" if end == -1 else data
        self._completion.leave()
        if not self._fits(remaining):
            self.matcher.rollback(steps)
            self._held, self._ahead = held, ahead
            self._completion.leave()
            return False
        self._among = None
        return True

    def _look_ahead(
        self, token_ids: tuple[int, ...], parents: tuple[int, ...]
    ) -> Generator[Forward, npt.NDArray[np.float32] | None, npt.NDArray[np.float32]]:
        """Return the logits after each token of a tree that follows what is written."""
        forward = Forward(token_ids, self._must_stop, parents)
        logits = yield forward
        if logits is None and self.reason == "cancelled":
            raise _CancelledWhileWaiting
        self.forward_passes += forward.passes
        if self.tracer is not None:
            self.tracer.forward(forward.seconds, False)
        if logits is None or logits.shape != (len(token_ids), self._size):
            shape = None if logits is None else logits.shape
            raise DecodingError(f"the model gave logits of shape {shape} for a tree of {len(token_ids)} tokens")
        return logits

    def _draw_first(self) -> Choice:
        """Draw a token before the mask is computed; return None where that does not pay or it is not allowed."""
        if not all(may_say(self.matcher, probe) for probe in _PROBES):
            return None
        token_id = self._sampler.draw_first((yield from self._read()))
        if token_id is None or not self.matcher.accept(token_id):
            return None
        self.matcher.rollback(1)
        return token_id

    def _accept(self, token_id: int) -> bool:
        """Advance by a token: through what is held, then the matcher; False, and no change, if it is not allowed."""
        if not self._held:
            return self.matcher.accept(token_id)
        data, held = self._tokens[token_id] or b"", self._held
        if data.startswith(held):
            if len(data) > len(held) and not self.matcher.accept_bytes(data[len(held) :]):
                return False
        elif not data or not held.startswith(data):
            return False
        self._held = held[len(data) :]
        if self._among is not None and len(data) <= len(held):
            # The model has chosen where this token ends: what follows is not joined with it.
            self._kept = len(self.token_ids) + 1
        return True

    def _observe(self, allowed: npt.NDArray[np.intp] | None) -> Observation | None:
        """Note the log-probabilities at a place, if they are wanted; return what a trace holds of it, if any."""
        if allowed is None:
            return None
        logits = self._logits if len(allowed) > 1 else None
        if self.params.logprobs is not None and logits is not None:
            self._logprobs = LogProbs(logits, allowed)
        return None if self.tracer is None else self.tracer.observe(logits, allowed, self.matcher, self._held)

    def _append(self, token_id: int, how: How, choices: int | None = None, seen: Observation | None = None) -> Step:
        """Record a token that was accepted; return the step with the bytes that no earlier step had."""
        forced = how != "sampled"
        if self._chosen is not None and how != "closed":
            (logprob, choices, mass), self._chosen, how = self._chosen, None, "sampled"
            forced, self._logprobs = False, LogProbs.of_whole(token_id, logprob)
            seen = replace(seen or Observation(choices), kept=mass)
        elif seen is not None and self._written - self._sent < self._word_end:  # the word has counted how it may end
            seen = replace(seen, kept=None)
        if self.tracer is not None:
            healed = sum(size_of(self.backend.vocabulary, token) for token in self._healed)
            self.tracer.add(token_id, how, seen, reasoning=self._reasons, healed=healed)
        self.token_ids.append(token_id)
        self._forced.append(forced and not self._repeats)
        self._repeats = False
        self._pending.append(token_id)
        self._sampler.saw((token_id,))
        self._among = None
        self._healed.clear()
        data = self._tokens[token_id] or b""
        sent = min(self._sent, len(data))
        self._sent -= sent
        self._written += len(data) - sent
        return Step(token_id, data[sent:], forced, choices, self._reasons, *self._logprobs_of(token_id, how))

    def _logprobs_of(self, token_id: int, how: How) -> tuple[float | None, tuple[tuple[int, float], ...]]:
        """Return the log-probability of the token that is written now, and the likeliest tokens at its place."""
        wanted = self.params.logprobs
        known, self._logprobs = self._logprobs, None
        if wanted is None:
            return None, ()
        if known is None or how != "sampled":
            return 0.0, ((token_id, 0.0),)[:wanted]
        return known.of(token_id), known.likeliest(wanted)

    # -- the budget --------------------------------------------------------------------------------------------

    def _try(self, token_id: int, remaining: int) -> bool:
        """Accept a token if the text can still be completed after it; else leave everything as it was."""
        held, kept = self._held, self._kept
        if not self._accept(token_id):
            raise AssertionError("the mask allows a token that the matcher refuses")
        if self._completion.follow(self.matcher, token_id) or self._fits(remaining - 1):
            return True
        if size_of(self.backend.vocabulary, token_id) > len(held) or not held:
            self.matcher.rollback(1)
        self._held, self._kept = held, kept
        return False

    def _closes_loop(self, bound: int, remaining: int) -> bool:
        """Close the string or list that a loop of the model is in, as the budget would; a text that may end is over.

        Returns:
            False if there is no loop.
        """
        if len(self.token_ids) < self._looks_at or self._held or self._among is not None:
            return False
        is_free, is_text = len(self.matcher.next_bytes()) > MAX_BRANCHES, self.matcher.is_accepting
        if is_text and not is_free:
            return False
        size = bound if is_free or self.params.max_repetition is not None else max(bound, LEAST_LIST)
        unit = repeated_unit(self.backend.vocabulary, self.token_ids, size)
        self._looks_at = len(self.token_ids) + (EVERY if is_free or not unit else 1)  # perhaps inside an escape
        if not unit or (is_free and not is_text and b'"' in unit):
            return False
        if is_text:
            self.reason = "length"
        elif not self._force_end(is_free, remaining):
            return False
        repeated = unit.decode("utf-8", "replace")
        if self.params.on_budget == "error":
            raise BudgetError(
                f"the model repeats {repeated!r} for {size} bytes",
                hint="let on_budget='close' close the value, or raise max_repetition",
            )
        self.repeated = self.repeated or repeated
        if self.closed_at is None:
            self.closed_at = self._written
        return True

    def _force_end(self, is_string: bool, remaining: int) -> bool:
        """Hold the end of the present string, or of the list around the present item; False, and no change, if the
        shortest completion has none nearby."""
        end = self.matcher.shortest_completion()
        for size in range(1, min(len(end), MAX_UNIT) + 1):
            if not is_string and end[size - 1 : size] != b"]":
                continue
            self._force(end[:size])
            if len(self.matcher.next_bytes()) <= MAX_BRANCHES and self._fits(remaining):
                return True
            self.matcher.rollback(1)
            self._held = self._ahead = b""
        return False

    def _choose_again(self, denied: int, remaining: int) -> Choice:
        """Accept and return another choice of the model that fits; None if a few choices find none."""
        allowed = self._allowed() if self._among is None else self._among
        for _ in range(MAX_CHOICES - 1):
            allowed = allowed[allowed != denied]
            if len(allowed) == 0:
                return None
            denied = yield from self._choose(allowed)
            if self._try(denied, remaining):
                return denied
        return None

    def _deny(self) -> None:
        """Record that the budget decides against the model."""
        if self.params.on_budget == "error" and not self._reasons:
            raise BudgetError(
                f"the token budget ran out after {len(self.token_ids)} tokens, before the output was complete",
                hint="raise max_tokens, or let on_budget='close' finish the output validly",
            )
        if self.closed_at is None:
            self.closed_at = self._written

    def _same_text(self, token_id: int, instead: int) -> bool:
        """Return True if two tokens write the same text, which the grammar fixes, so that the model loses no choice."""
        forced = self._held + self.matcher.forced_bytes()
        return all(forced.startswith(self._tokens[one] or b"\xff") for one in (token_id, instead))

    def _fits(self, remaining: int) -> bool:
        """Return True if the text can be completed with ``remaining`` tokens."""
        return self._completion.fits(self.matcher, self._held, remaining)

    # -- jumping -----------------------------------------------------------------------------------------------

    def _jump(self, remaining: int) -> list[Step]:
        """Append forced text, as far as its spelling is certain; the rest is held.

        The last token has not been read by the model yet, so where the tokenizer would have joined it with what is
        forced it is replaced at no cost. Nothing changes if what is forced has no spelling, or does not fit so.
        """
        forced = self._forced_text()
        if not forced and not self._held:
            return []
        held = self._held
        if forced:
            self._force(forced)
        replaces = (
            not held and len(self.token_ids) > self._kept and size_of(self.backend.vocabulary, self.token_ids[-1]) > 0
        )
        for again in (1, 0) if replaces else (0,):
            steps = self._settle(remaining, again)
            if steps is not None:
                return steps
        if forced:
            self._held, self._ahead = held, b""
            self.matcher.rollback(1)
        if held:  # it has to be written, in whatever way
            self._among = np.array(spell_somehow(self.backend, held)[:1], dtype=np.intp)
        return []

    def _heal(self, budget: int) -> Steps:
        """Hold the end of the prompt as far as the tokenizer may write it otherwise, with the text that comes next.

        A prompt that ends inside a token (with a space, or a quote) has a last token that the tokenizer would not have
        written there, and the model has never seen it so: what it wants to say begins inside the token that it would
        have written. A few tokens back is where it may still choose that.
        """
        again = min(MAX_HEALED, len(self._context()), len(self.prompt) - 1)
        if again <= 0:
            return
        forced = self._forced_text()
        self._force(forced)
        steps = self._settle(budget, again)
        if steps is None or not (steps or self._healed):
            self._held, self._ahead, self._among = b"", b"", None
            self.matcher.rollback(1)
            self._completion.leave()
            return
        yield from steps

    def _forced_text(self) -> bytes:
        """Return the text that the grammar forces, in whole characters; empty without ``jump_forward``."""
        return forced_characters(self.matcher, MAX_JUMP) if self.params.jump_forward else b""

    def _force(self, forced: bytes) -> None:
        """Let the matcher go ahead over forced text, which is held from now on."""
        if not self.matcher.accept_bytes(forced):
            raise AssertionError("the matcher refuses what it forces")
        self._held += forced
        self._ahead = forced

    def _settle(self, remaining: int, again: int) -> list[Step] | None:
        """Append the tokens with which the tokenizer writes what is held, as far as they are certain.

        Args:
            remaining: the tokens that are left.
            again: number of last tokens, not read by the model yet, that are spelled again with it.

        Returns:
            None, with nothing changed, if the tokenizer does not write this text, or the rest would not fit.
        """
        vocabulary = self.backend.vocabulary
        context = self._context()
        last = context[len(context) - again :]
        held = self._held
        settled = self._spelling.settle(
            context[: len(context) - again], vocabulary.decode(last) + held, self.matcher, self._ahead
        )
        if settled is None:
            return None
        same = common_prefix(settled.ids, last)
        gone, ids = last[same:], settled.ids[same:]
        taken = vocabulary.decode(gone)
        self._held = (taken + held)[len(vocabulary.decode(ids)) :]
        if not self._fits(remaining - len(ids) + (len(gone) if self.token_ids else 0)):
            self._held = held
            return None
        for token_id in reversed(gone):
            self._pending.pop()
            self._sampler.forget(token_id)
            if self.token_ids:
                self.token_ids.pop()
                self._repeats = not self._forced.pop()
                if self.tracer is not None:
                    self.tracer.take_back()
            else:
                self._prompt_tail.pop()
                self._healed.insert(0, token_id)
        self._sent += len(taken)
        steps = [self._append(token_id, "jumped") for token_id in ids]
        self._among = settled.among
        return steps

    def _context(self) -> list[int]:
        """Return the last text tokens of the sequence, those of the prompt too if it may end inside a token."""
        ids = [*self._prompt_tail, *self.token_ids[-CONTEXT_TOKENS - 1 :]][-CONTEXT_TOKENS - 1 :]
        return text_end(ids, self.backend.vocabulary)

    def _keeps_prompt(self, token_id: int) -> bool:
        """Return True if the model chose the token that the prompt had there, which is then no token of the text."""
        if not self._healed or token_id != self._healed[0]:
            return False
        size = size_of(self.backend.vocabulary, token_id)
        self._prompt_tail.append(self._healed.pop(0))
        self._pending.append(token_id)
        self._sampler.saw((token_id,))
        self._held = self._held[size:]
        self._completion.leave()
        self._sent -= size
        self._among = None
        return True

    def _write_sent(self) -> None:
        """Record tokens for text that was sent before its last token was taken back: the generation ends here."""
        if self._sent and self.token_ids:
            for token_id in spell_somehow(self.backend, self._held[: self._sent]):
                self._append(token_id, "jumped")
        self._held = b""
