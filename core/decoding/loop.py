"""The decoding loop: a model writes, a matcher allows, and what is forced is not asked.

Invariant: at every step the shortest completion of what is written fits in the remaining budget, so the text can
always be finished validly. The model's choice is taken as long as the invariant holds after it; the first choice that
would break it starts the *closing*: from there on the shortest completion is written.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from ..errors import BudgetError, CancelledError, ContextOverflowError, DecodingError
from .sampler import Sampler

if TYPE_CHECKING:
    import numpy.typing as npt

    from ..automaton import Matcher
    from ..events import FinishReason
    from ..models.protocol import Backend, Session
    from ..params import GenerateParams

#: Longest forced run that is taken in one jump, in bytes.
MAX_JUMP = 2048


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

    Attributes:
        token_ids: the tokens written so far.
        reason: why it ended.
        closed_at: how many bytes were written when the budget forced the closing; None if it did not.
        forced_tokens: tokens that were not the model's choice.
        forward_passes: how often the model was run.
    """

    backend: Backend
    prompt: Sequence[int]
    matcher: Matcher
    params: GenerateParams
    run_model: Callable[[Session, Sequence[int]], npt.NDArray[np.float32]]
    token_ids: list[int] = field(default_factory=list)
    reason: FinishReason = "stop"
    closed_at: int | None = None
    forced_tokens: int = 0
    forward_passes: int = 0
    stop_requested: bool = False

    def steps(self) -> Iterator[Step]:
        """Write the text, step by step.

        Raises:
            BudgetError: the shortest valid output does not fit in the budget.
            ContextOverflowError: the prompt leaves no room.
            CancelledError: the timeout passed before anything could be finished.
            DecodingError: the model's logits cannot be used.
        """
        budget = self._budget()
        session = self.backend.start()
        try:
            yield from self._write(session, budget)
        finally:
            session.close()

    def _budget(self) -> int:
        room = self.backend.context_window - len(self.prompt)
        if room <= 0:
            raise ContextOverflowError(
                f"the prompt has {len(self.prompt)} tokens, and the context window {self.backend.context_window}",
                hint="shorten the conversation or the tool list",
            )
        wanted = self.params.max_tokens
        budget = min(room, 2048 if wanted is None else wanted)
        needed = len(self._closing())
        if needed > budget:
            raise BudgetError(
                f"the shortest valid output needs {needed} tokens, and the budget is {budget}",
                hint=f"set max_tokens to at least {needed}",
            )
        return budget

    def _write(self, session: Session, budget: int) -> Iterator[Step]:
        sampler = Sampler(self.params)
        mask = np.zeros((self.backend.vocabulary.size + 31) // 32, dtype=np.uint32)
        pending = list(self.prompt)
        logits: npt.NDArray[np.float32] | None = None
        deadline = None if self.params.timeout is None else time.monotonic() + self.params.timeout
        written = 0
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
            jump = self._jump(remaining) if self.params.jump_forward else None
            if jump is not None:
                replaced, ids, added = jump
                if replaced:  # the last token was retokenised together with what follows it
                    self.token_ids.pop()
                    if pending:
                        pending.pop()
                    else:
                        session.crop(session.length - 1)
                self.token_ids.extend(ids)
                pending.extend(ids)
                logits = None
                self.forced_tokens += len(ids)
                for token_id, data in zip(ids, added, strict=True):
                    written += len(data)
                    yield Step(token_id, data, True)
                continue
            self.matcher.fill_mask(mask)
            allowed = np.flatnonzero(np.unpackbits(mask.view(np.uint8), bitorder="little"))
            if len(allowed) == 0:
                raise DecodingError(
                    "the vocabulary has no token with which the text could go on",
                    hint="the vocabulary must have a token for every single byte",
                )
            forced = len(allowed) == 1
            if forced:
                token_id = int(allowed[0])
            else:
                if logits is None:
                    logits = self.run_model(session, pending)
                    self.forward_passes += 1
                    pending.clear()
                token_id = sampler.choose(logits, allowed)
            if token_id in self.backend.vocabulary.eos:
                self.matcher.accept(token_id)
                return
            if not self.matcher.accept(token_id):
                raise AssertionError("the mask allows a token that the matcher refuses")
            if not self._fits(remaining - 1):
                self.matcher.rollback(1)
                for step in self._close(written):
                    written += len(step.data)
                    yield step
                return
            self.token_ids.append(token_id)
            pending.append(token_id)
            logits = None
            self.forced_tokens += forced
            data = self.backend.vocabulary.tokens[token_id] or b""
            written += len(data)
            yield Step(token_id, data, forced, len(allowed))

    # -- the budget --------------------------------------------------------------------------------------------

    def _fits(self, remaining: int) -> bool:
        """Whether the shortest completion can be written with so many tokens."""
        if self.matcher.is_accepting:
            return remaining >= 0
        if len(self.matcher.shortest_completion()) <= remaining and self._has_all_bytes:
            return True  # one token a byte is the worst case
        return len(self._closing()) <= remaining

    @property
    def _has_all_bytes(self) -> bool:
        vocabulary = self.backend.vocabulary
        known = vocabulary.cache.get("all bytes")
        if known is None:
            singles = {token for token in vocabulary.tokens if token is not None and len(token) == 1}
            known = vocabulary.cache["all bytes"] = len(singles) == 256 and not vocabulary.special
        return bool(known)

    def _closing(self) -> list[int]:
        """Tokens that complete the text from here."""
        matcher = self.matcher.fork()
        ids: list[int] = []
        while not matcher.is_accepting:
            data = matcher.shortest_completion()
            path = self._spell(matcher, data)
            if path:
                ids.extend(path)
                continue
            token_id = self._one_token(matcher, data)
            if token_id is None or not matcher.accept(token_id):
                raise DecodingError(
                    "the vocabulary has no token with which the text could be completed",
                    hint="the vocabulary must have a token for every single byte",
                )
            ids.append(token_id)
        return ids

    def _spell(self, matcher: Matcher, data: bytes) -> list[int]:
        """Advance by ``data`` in the tokenizer's own spelling; empty (and no change) if that cannot be written."""
        try:
            ids = self.backend.encode(data.decode())
        except UnicodeDecodeError:
            return []
        if not ids or self.backend.vocabulary.decode(ids) != data:
            return []
        for count, token_id in enumerate(ids):
            if not matcher.accept(token_id):
                matcher.rollback(count)
                return []
        return ids

    def _one_token(self, matcher: Matcher, data: bytes) -> int | None:
        """The longest allowed token that begins ``data``, or else an allowed control token."""
        vocabulary = self.backend.vocabulary
        best: int | None = None
        control: int | None = None
        for token_id in matcher.allowed_tokens():
            token = vocabulary.tokens[token_id]
            if token is None:
                if token_id not in vocabulary.eos:
                    control = token_id if control is None else control
            elif data.startswith(token) and (best is None or len(token) > len(vocabulary.tokens[best] or b"")):
                best = token_id
        return control if best is None else best

    def _close(self, written: int) -> Iterator[Step]:
        """Write the shortest completion."""
        self.reason = "length"
        ids = self._closing()
        if not ids:
            return
        if self.params.on_budget == "error":
            raise BudgetError(
                f"the token budget ran out after {len(self.token_ids)} tokens, before the output was complete",
                hint="raise max_tokens, or let on_budget='close' finish the output validly",
            )
        self.closed_at = written
        for token_id in ids:
            if not self.matcher.accept(token_id):
                raise AssertionError("the closing of a text is refused by its matcher")
            self.token_ids.append(token_id)
            self.forced_tokens += 1
            yield Step(token_id, self.backend.vocabulary.tokens[token_id] or b"", True)

    # -- jumping -----------------------------------------------------------------------------------------------

    def _jump(self, remaining: int) -> tuple[bool, list[int], list[bytes]] | None:
        """Append what is forced, spelled as the tokenizer would spell it after the last token.

        Returns whether the last token was replaced, the new tokens, and the bytes that each adds; None if nothing is
        forced, or what is forced does not fit together with its completion.
        """
        forced = self.matcher.forced_bytes()[:MAX_JUMP]
        forced = _whole_characters(forced)
        if not forced:
            return None
        tokens = self.backend.vocabulary.tokens
        last = tokens[self.token_ids[-1]] if self.token_ids else None
        if last is not None:
            joined = self._encode(last + forced)
            # Only worth it when the tokenizer would have merged across the boundary.
            if joined and joined[0] != self.token_ids[-1]:
                self.matcher.rollback(1)
                if self._take(joined, remaining + 1):
                    return True, joined, _added(joined, tokens, len(last))
                self.matcher.accept(self.token_ids[-1])
            elif joined and self._take(joined[1:], remaining):
                return False, joined[1:], [tokens[each] or b"" for each in joined[1:]]
        plain = self._encode(forced)
        if plain and self._take(plain, remaining):
            return False, plain, [tokens[each] or b"" for each in plain]
        return None

    def _encode(self, data: bytes) -> list[int]:
        try:
            text = data.decode()
        except UnicodeDecodeError:
            return []
        ids = self.backend.encode(text)
        return ids if self.backend.vocabulary.decode(ids) == data else []

    def _take(self, ids: Sequence[int], remaining: int) -> bool:
        """Advance the matcher by tokens, if it accepts them all and the rest still fits; else leave it as it was."""
        count = 0
        for token_id in ids:
            if not self.matcher.accept(token_id):
                break
            count += 1
        if count == len(ids) and count > 0 and self._fits(remaining - count):
            return True
        self.matcher.rollback(count)
        return False


def _whole_characters(data: bytes) -> bytes:
    """``data`` without an unfinished UTF-8 character at its end."""
    for cut in range(min(4, len(data)) + 1):
        try:
            data[: len(data) - cut].decode()
        except UnicodeDecodeError:
            continue
        return data[: len(data) - cut]
    return b""


def _added(ids: Sequence[int], tokens: Sequence[bytes | None], known: int) -> list[bytes]:
    """The bytes that each token adds when the first ``known`` bytes were there already."""
    added = []
    for token_id in ids:
        data = tokens[token_id] or b""
        added.append(data[known:])
        known = max(0, known - len(data))
    return added
