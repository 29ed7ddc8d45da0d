"""The decoding loop: a model writes, a matcher allows, and what is forced is not asked.

Invariant: at every step the shortest completion of what is written fits in the remaining budget, so the text can
always be finished validly. A choice of the model that would break it is *denied*: the model may choose again among the
rest, a few times, and then the shortest completion goes on. Where there is no room left but for that completion, it is
written without asking the model at all.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from ..errors import BudgetError, CancelledError, ContextOverflowError, DecodingError
from .retokenise import added_bytes, spell, whole_characters
from .sampler import Sampler

if TYPE_CHECKING:
    import numpy.typing as npt

    from ..automaton import Matcher
    from ..events import FinishReason
    from ..models.protocol import Backend, Session
    from ..params import GenerateParams

#: Longest forced run that is taken in one jump, in bytes.
MAX_JUMP = 2048

#: The budget when none is given, in tokens.
DEFAULT_BUDGET = 2048

#: How often the model chooses at one place when its choices do not fit in the budget.
MAX_CHOICES = 8


@dataclass(frozen=True)
class Step:
    """What one step added to the text.

    Attributes:
        token_id: the token.
        data: the bytes it added (fewer than the token's own where it replaced the token before it).
        forced: the grammar left no choice, or the budget did not.
        choices: how many tokens were allowed, when they were counted.
    """

    token_id: int
    data: bytes
    forced: bool
    choices: int | None = None


@dataclass
class Decoding:
    """One generation. Iterate over `steps` once; then the other attributes say how it went.

    Args:
        backend: the model.
        prompt: the ids of the prompt, at least one.
        matcher: at the beginning of the text.
        params: how to generate.
        run_model: appends tokens to a session and returns the logits; the caller's place for locks.

    Attributes:
        token_ids: the tokens written so far, without the end-of-text token.
        reason: why it ended.
        closed_at: how many bytes were written when the budget first denied the model its choice; None if it did not.
        forward_passes: how often the model was run.
        stop_requested: set it to end the generation after the present step.
    """

    backend: Backend
    prompt: Sequence[int]
    matcher: Matcher
    params: GenerateParams
    run_model: Callable[[Session, Sequence[int]], npt.NDArray[np.float32]]
    token_ids: list[int] = field(default_factory=list)
    reason: FinishReason = "stop"
    closed_at: int | None = None
    forward_passes: int = 0
    stop_requested: bool = False

    def __post_init__(self) -> None:
        self._written = 0  # bytes
        self._forced: list[bool] = []  # for each token, whether no choice was left
        self._pending = list(self.prompt)  # tokens that the model has not read yet
        self._logits: npt.NDArray[np.float32] | None = None
        self._plan: list[int] | None = None  # tokens that complete the text from here, when they are known

    @property
    def forced_tokens(self) -> int:
        """How many of the tokens were not the model's choice."""
        return sum(self._forced)

    def steps(self) -> Generator[Step, None, None]:
        """Write the text, step by step.

        Raises:
            BudgetError: the shortest valid output does not fit in the budget, or with ``on_budget="error"`` the
                model's own output does not.
            ContextOverflowError: the prompt leaves no room.
            CancelledError: the timeout passed.
            DecodingError: the model's logits cannot be used, or the vocabulary cannot write what the grammar wants.
        """
        budget = self._budget()
        with closing(self.backend.start()) as session:
            yield from self._write(session, budget)
        if self.closed_at is not None and self.reason == "stop":
            self.reason = "length"

    def _budget(self) -> int:
        room = self.backend.context_window - len(self.prompt)
        if room <= 0:
            raise ContextOverflowError(
                f"the prompt has {len(self.prompt)} tokens, and the context window {self.backend.context_window}",
                hint="shorten the conversation or the tool list",
            )
        wanted = self.params.max_tokens
        budget = min(room, DEFAULT_BUDGET if wanted is None else wanted)
        if not self._fits(budget):
            needed = len(self._completion())
            way = f"set max_tokens to at least {needed}" if budget < room else "shorten the conversation"
            raise BudgetError(f"the shortest valid output needs {needed} tokens, and the budget is {budget}", hint=way)
        return budget

    def _write(self, session: Session, budget: int) -> Iterator[Step]:
        sampler = Sampler(self.params)
        mask = np.zeros((self.backend.vocabulary.size + 31) // 32, dtype=np.uint32)
        deadline = None if self.params.timeout is None else time.monotonic() + self.params.timeout
        while not self.matcher.is_finished:
            if self.stop_requested:
                return
            if self.params.cancel is not None and self.params.cancel():
                self.reason = "cancelled"
                return
            if deadline is not None and time.monotonic() > deadline:
                raise CancelledError(
                    f"the timeout of {self.params.timeout} s passed after {len(self.token_ids)} tokens",
                    hint="raise the timeout, or lower max_tokens",
                )
            remaining = budget - len(self.token_ids)
            if remaining <= 0:
                self.reason = "length"
                return
            if self.params.jump_forward and (jump := self._jump(remaining)):
                yield from jump
                continue
            self.matcher.fill_mask(mask)
            allowed = np.flatnonzero(np.unpackbits(mask.view(np.uint8), bitorder="little"))
            if len(allowed) == 0:
                raise _no_token("go on")
            forced = len(allowed) == 1
            token_id = int(allowed[0]) if forced else sampler.choose(self._read(session), allowed)
            if token_id in self.backend.vocabulary.eos and self.matcher.is_accepting:
                self.matcher.accept(token_id)
                return
            if self._try(token_id, remaining):
                yield self._append(token_id, forced, len(allowed))
                continue
            path = self._plan or self._completion()
            if not path:  # the text is complete as it is
                self.reason = "length"
                return
            whole = False
            if not self._same_text(token_id, path[0]):
                self._deny()
                whole = len(path) >= remaining
                other = None if whole else self._choose_again(sampler, session, allowed, token_id, remaining)
                if other is not None:
                    yield self._append(other, False, len(allowed))
                    continue
            for each in path if whole else path[:1]:
                if not self.matcher.accept(each):
                    raise AssertionError("the completion of a text is refused by its matcher")
                yield self._append(each, True)
            self._plan = None if whole else path[1:]

    def _read(self, session: Session) -> npt.NDArray[np.float32]:
        """The logits after all that is written; one forward pass if there is anything new."""
        if self._logits is None:
            logits = self.run_model(session, self._pending)
            self.forward_passes += 1
            self._pending.clear()
            if logits.shape != (self.backend.vocabulary.size,):
                raise DecodingError(
                    f"the model gave logits of shape {logits.shape} for {self.backend.vocabulary.size} tokens",
                    hint="use the vocabulary of this very model",
                )
            self._logits = logits
        return self._logits

    def _append(self, token_id: int, forced: bool, choices: int | None = None) -> Step:
        """Book a token that the matcher has accepted."""
        self.token_ids.append(token_id)
        self._forced.append(forced)
        self._pending.append(token_id)
        self._logits = None
        data = self.backend.vocabulary.tokens[token_id] or b""
        self._written += len(data)
        return Step(token_id, data, forced, choices)

    # -- the budget --------------------------------------------------------------------------------------------

    def _try(self, token_id: int, remaining: int) -> bool:
        """Accept a token if the text can still be completed after it; else leave everything as it was."""
        if not self.matcher.accept(token_id):
            raise AssertionError("the mask allows a token that the matcher refuses")
        if self._plan and self._plan[0] == token_id:
            self._plan = self._plan[1:]
            return True
        if self._fits(remaining - 1):
            self._plan = None
            return True
        self.matcher.rollback(1)
        return False

    def _choose_again(
        self, sampler: Sampler, session: Session, allowed: npt.NDArray[np.intp], denied: int, remaining: int
    ) -> int | None:
        """Another token of the model's choice, which fits; accepted. None if a few choices do not find one."""
        for _ in range(MAX_CHOICES - 1):
            allowed = allowed[allowed != denied]
            if len(allowed) == 0:
                return None
            denied = sampler.choose(self._read(session), allowed)
            if self._try(denied, remaining):
                return denied
        return None

    def _deny(self) -> None:
        """The budget decides against the model."""
        if self.params.on_budget == "error":
            raise BudgetError(
                f"the token budget ran out after {len(self.token_ids)} tokens, before the output was complete",
                hint="raise max_tokens, or let on_budget='close' finish the output validly",
            )
        if self.closed_at is None:
            self.closed_at = self._written

    def _same_text(self, token_id: int, instead: int) -> bool:
        """Whether taking one token instead of another takes nothing from the model: the grammar fixes both."""
        tokens = self.backend.vocabulary.tokens
        forced = self.matcher.forced_bytes()
        return all(forced.startswith(tokens[each] or b"\xff") for each in (token_id, instead))

    def _fits(self, remaining: int) -> bool:
        """Whether the text can be completed with so many tokens."""
        if remaining < 0:
            return False
        if self.matcher.is_accepting:
            return True
        data = self.matcher.shortest_completion()
        # One token a byte is the worst case, where no control token stands on the way.
        if len(data) <= remaining and self._has_all_bytes and self._is_completed_by(data):
            return True
        return len(self._completion()) <= remaining

    @property
    def _has_all_bytes(self) -> bool:
        vocabulary = self.backend.vocabulary
        known = vocabulary.cache.get("all bytes")
        if known is None:
            singles = {token for token in vocabulary.tokens if token is not None and len(token) == 1}
            known = vocabulary.cache["all bytes"] = len(singles) == 256
        return bool(known)

    def _is_completed_by(self, data: bytes) -> bool:
        if not self.matcher.accept_bytes(data):
            return False
        complete = self.matcher.is_accepting
        self.matcher.rollback(1)
        return complete

    def _completion(self) -> list[int]:
        """Tokens that complete the text from here, by its shortest completion; at most one for each byte of it."""
        matcher = self.matcher.fork()
        ids: list[int] = []
        while not matcher.is_accepting:
            data = matcher.shortest_completion()
            path = _accepted(matcher, spell(self.backend, data))
            if not path:
                token_id = self._one_token(matcher, data)
                if token_id is None or not matcher.accept(token_id):
                    raise _no_token("be completed")
                path = [token_id]
            ids.extend(path)
        return ids

    def _one_token(self, matcher: Matcher, data: bytes) -> int | None:
        """The longest allowed token that begins ``data``, or else an allowed control token."""
        vocabulary = self.backend.vocabulary
        best: int | None = None
        control: int | None = None
        for token_id in matcher.allowed_tokens():
            token = vocabulary.tokens[token_id]
            if token is None:
                if token_id not in vocabulary.eos or not matcher.is_accepting:
                    control = token_id if control is None else control
            elif data.startswith(token) and (best is None or len(token) > len(vocabulary.tokens[best] or b"")):
                best = token_id
        return control if best is None else best

    # -- jumping -----------------------------------------------------------------------------------------------

    def _jump(self, remaining: int) -> list[Step]:
        """Append what is forced, spelled as the tokenizer would spell it after the last token.

        The last token has not been read by the model yet, so where the tokenizer would have merged across the boundary
        it is replaced at no cost. Empty if nothing is forced, or if what is forced does not fit as it is spelled.
        """
        forced = whole_characters(self.matcher.forced_bytes()[:MAX_JUMP])
        if not forced:
            return []
        last = self.token_ids[-1] if self.token_ids else None
        before = None if last is None else self.backend.vocabulary.tokens[last]
        joined = spell(self.backend, before + forced) if before else []
        if joined and joined[0] == last:
            if self._take(joined[1:], remaining):
                return [self._append(each, True) for each in joined[1:]]
        elif joined and last is not None and before is not None:
            self.matcher.rollback(1)
            if self._take(joined, remaining + 1):
                return self._replace_last(joined, len(before))
            self.matcher.accept(last)
        plain = spell(self.backend, forced)
        return [self._append(each, True) for each in plain] if self._take(plain, remaining) else []

    def _replace_last(self, ids: Sequence[int], known: int) -> list[Step]:
        """Put tokens in the place of the last one, whose ``known`` bytes they repeat."""
        self.token_ids.pop()
        self._pending.pop()
        chosen = not self._forced.pop()
        self._written -= known
        added = added_bytes(ids, self.backend.vocabulary.tokens, known)
        steps = [
            Step(step.token_id, data, True)
            for step, data in zip([self._append(each, True) for each in ids], added, strict=True)
        ]
        self._forced[-len(ids)] = not chosen  # the first of them holds what the model chose
        return steps

    def _take(self, ids: Sequence[int], remaining: int) -> bool:
        """Advance the matcher by tokens, if it accepts them all and the rest still fits; else leave it as it was."""
        if not ids or not _accepted(self.matcher, ids):
            return False
        if self._fits(remaining - len(ids)):
            self._plan = None
            return True
        self.matcher.rollback(len(ids))
        return False


def _accepted(matcher: Matcher, ids: Sequence[int]) -> Sequence[int]:
    """Advance by tokens, if the matcher accepts them all; else leave it as it was, and return none."""
    for count, token_id in enumerate(ids):
        if not matcher.accept(token_id):
            matcher.rollback(count)
            return []
    return ids


def _no_token(what: str) -> DecodingError:
    return DecodingError(
        f"the vocabulary has no token with which the text could {what}",
        hint="the vocabulary must have a token for every single byte",
    )
