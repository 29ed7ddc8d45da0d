"""Backends of made-up logits: `FakeBackend` is what they share, `Noise` draws them at random."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from toolgrammar.core import Message, Vocabulary
from toolgrammar.core.generation.backend import closed_error
from toolgrammar.core.models.sessions import OpenSessions, check_crop, check_new_tokens


class FakeSession:
    """A sequence whose logits are those that its backend makes of its tokens."""

    cached_tokens = 0

    def __init__(self, backend: FakeBackend) -> None:
        self._backend = backend
        self._is_closed = False
        self.ids: list[int] = []

    @property
    def length(self) -> int:
        """Number of tokens."""
        return len(self.ids)

    def extend(self, token_ids: Sequence[int]) -> npt.NDArray[np.float32]:
        """Append tokens."""
        if self._is_closed:
            raise closed_error("session")
        vocabulary = self._backend.vocabulary
        self.ids += check_new_tokens(token_ids, self.length, self._backend.context_window, vocabulary.size)
        self._backend.passes.append(list(token_ids))
        return self._backend.logits(self.ids)

    def crop(self, length: int) -> None:
        """Forget the last tokens."""
        check_crop(length, self.length)
        del self.ids[length:]

    def close(self) -> None:
        """Count as closed, once."""
        self._backend.open -= not self._is_closed
        self._is_closed = True


class FakeBackend:
    """A backend whose logits `logits` makes up; one token a byte where `encode` is not overridden.

    Attributes:
        open: number of open sessions.
        passes: the tokens of each forward pass.
    """

    name = "fake"
    tool_format = "hermes"
    chat_template = None
    takes_thinking = False

    def __init__(self, vocabulary: Vocabulary, context_window: int = 4000) -> None:
        self.vocabulary = vocabulary
        self.context_window = context_window
        self.open = 0
        self.passes: list[list[int]] = []
        self._sessions: OpenSessions[FakeSession] = OpenSessions()

    def logits(self, ids: Sequence[int]) -> npt.NDArray[np.float32]:
        """The logits after these tokens."""
        raise NotImplementedError

    def encode(self, text: str) -> list[int]:
        """One token a byte."""
        return list(text.encode("utf-8", "surrogatepass"))

    def encode_prompt(
        self, messages: Sequence[Message], tools: Sequence[Mapping[str, Any]] = (), tool_prompt: str = ""
    ) -> list[int]:
        """The texts, one after the other."""
        return self.encode("".join(message.text for message in messages) or "x")

    def start(self) -> FakeSession:
        """A session, counted while it is open."""
        session = FakeSession(self)
        self._sessions.add(session)
        self.open += 1
        return session

    def close(self) -> None:
        """Close the sessions."""
        self._sessions.close()


class Noise(FakeBackend):
    """Random logits over single bytes, some texts and some control tokens.

    Args:
        specials: names of control tokens.
        texts: tokens of more than one byte; `encode` writes them for the whole text alone.
        seed: seed of the noise.
        scale: standard deviation of the logits.
        context_window: maximum number of tokens of a sequence.

    Attributes:
        ending: pieces at the end of each prompt: texts, or names of control tokens.
        boost: added to the logits of tokens.
        spoil: changes logits.
    """

    def __init__(
        self,
        specials: Sequence[str] = (),
        seed: int = 0,
        *,
        texts: Sequence[str] = (),
        ending: Sequence[str] = (),
        scale: float = 3.0,
        context_window: int = 500,
    ) -> None:
        tokens: list[bytes | None] = [bytes((byte,)) for byte in range(256)]
        tokens += [text.encode() for text in texts] + [None] * (len(specials) + 1)
        special = {name: 256 + len(texts) + index for index, name in enumerate(specials)}
        super().__init__(Vocabulary(tokens, eos=[len(tokens) - 1], special=special), context_window)
        self.seed = seed
        self.scale = scale
        self.ending = ending
        self.boost: dict[int, float] = {}
        self.spoil: Callable[[npt.NDArray[np.float32]], Any] = lambda logits: logits
        self._texts = {text: 256 + index for index, text in enumerate(texts)}

    def encode(self, text: str) -> list[int]:
        """The token of the whole text, or one token a byte."""
        return [self._texts[text]] if text in self._texts else super().encode(text)

    def encode_prompt(
        self, messages: Sequence[Message], tools: Sequence[Mapping[str, Any]] = (), tool_prompt: str = ""
    ) -> list[int]:
        """The texts, and the ending."""
        special = self.vocabulary.special
        ids = super().encode_prompt(messages)
        for piece in self.ending:
            ids += [special[piece]] if piece in special else self.encode(piece)
        return ids

    def logits(self, ids: Sequence[int]) -> npt.NDArray[np.float32]:
        """Noise that depends on the tokens alone."""
        random = np.random.default_rng([self.seed, *ids])
        logits = random.normal(size=self.vocabulary.size).astype(np.float32) * np.float32(self.scale)
        for token_id, more in self.boost.items():
            logits[token_id] += more
        return self.spoil(logits)
