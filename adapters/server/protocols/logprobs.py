"""Log-probabilities in the forms of OpenAI and Ollama: of the tokens that wrote the text of an answer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from toolgrammar.core.conversation import TokenWritten
from toolgrammar.core.models import LocalModel, Model
from toolgrammar.core.vocabulary import Vocabulary

from ..fields import Fields, RequestError

#: Log-probability that stands for one that JSON has no number for, as OpenAI writes it.
NEVER = -9999.0

#: Maximum number of likely tokens that are told at each place.
MAX_LIKELIEST = 20


def asked_logprobs(fields: Fields, model: Model) -> int | None:
    """Return how many likely tokens ``logprobs`` (a flag) and ``top_logprobs`` ask for; None: no log-probabilities.

    Raises:
        RequestError: they go not together, or the model shows none.
    """
    wanted = fields.flag("logprobs")
    count: int | None = fields.whole("top_logprobs")
    if count and not wanted:
        path = fields.path("top_logprobs")
        raise RequestError(f"{path} is given without logprobs", field=path, hint="give logprobs=true, too")
    return checked(count or 0, "top_logprobs" if count else "logprobs", model) if wanted else None


def checked(count: int, name: str, model: Model) -> int:
    """Return a number of likely tokens.

    Raises:
        RequestError: there are not so many, or the model shows none.
    """
    if not 0 <= count <= MAX_LIKELIEST:
        raise RequestError(f"{name} is {count}", field=name, hint=f"from 0 to {MAX_LIKELIEST}")
    if not isinstance(model, LocalModel):
        raise RequestError("this model shows no log-probabilities", field=name, hint="leave it out")
    return count


class TextTokens:
    """Finds the tokens that wrote the text of an answer, as the text comes.

    Reasoning, markup and calls have tokens of their own, which are left out. A token belongs to the piece of text in
    which it ends.

    Args:
        vocabulary: of the tokens.
    """

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._vocabulary = vocabulary
        self._names = {token_id: name for name, token_id in vocabulary.special.items()}
        self._tokens: list[tuple[int, TokenWritten]] = []  # each with its end in the bytes
        self._data = bytearray()
        self._next = 0
        self._place = 0

    def add(self, token: TokenWritten) -> None:
        """Take the next token of the answer."""
        if token.data and not token.reasoning:
            self._data += token.data
            self._tokens.append((len(self._data), token))

    def take(self, text: str) -> list[TokenWritten]:
        """Return the tokens that end in the next piece of the text."""
        data = text.encode("utf-8", "replace")
        begin = self._data.find(data, self._place)
        if begin < 0:
            return []
        self._place = begin + len(data)
        found = []
        while self._next < len(self._tokens) and self._tokens[self._next][0] <= self._place:
            end, token = self._tokens[self._next]
            self._next += 1
            if end > begin:
                found.append(token)
        return found

    def told(self, tokens: Sequence[TokenWritten]) -> list[dict[str, Any]]:
        """Return tokens in the form of chat completions."""
        return [
            {
                **_told(token.data, token.logprob),
                "top_logprobs": [_told(*self._likely(token_id, value)) for token_id, value in token.likeliest],
            }
            for token in tokens
        ]

    def _likely(self, token_id: int, logprob: float) -> tuple[bytes, float]:
        data = self._vocabulary.tokens[token_id]
        return (self._names.get(token_id, "").encode() if data is None else data), logprob


def text_tokens(
    vocabulary: Vocabulary | None, tokens: Sequence[TokenWritten], text: str
) -> list[dict[str, Any]] | None:
    """Return the tokens that wrote the text of a whole answer; None if log-probabilities were not asked for."""
    if vocabulary is None:
        return None
    finder = TextTokens(vocabulary)
    for token in tokens:
        finder.add(token)
    return finder.told(finder.take(text))


def _told(data: bytes, logprob: float | None) -> dict[str, Any]:
    value = NEVER if logprob is None or logprob < NEVER else logprob
    return {"token": data.decode("utf-8", "replace"), "logprob": value, "bytes": list(data)}
