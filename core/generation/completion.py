"""Tokens that complete a text, kept from one place of the text to the next.

The token budget rests on them: a choice of the model is taken only if the text can be completed after it. A model that
opens brackets without end makes the completion longer at each step, so encoding all of it at each step would take
quadratic time. Consecutive completions mostly share their end, whose tokens are reused; only the text before it is
encoded. The joined tokens can be more than the tokenizer's own encoding of the whole. Where they do not fit, the whole
is encoded, but only after as many tokens were encoded in parts, so that all encoding is linear in the text.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from itertools import islice
from typing import TYPE_CHECKING

from .retokenise import has_all_bytes, no_token, spell_somehow

if TYPE_CHECKING:
    from ..masks import Matcher
    from ..vocabulary import Vocabulary
    from .backend import Backend

#: Number of tokens before the part that changed which are spelled with it again, since its tokens may join with them.
_JOINED = 16

#: Maximum length, in bytes, of a completion that is made in order to count its tokens.
_LONG = 65_536

#: Runs of bytes, or single control tokens, in the text of a completion.
_RUN = re.compile("[\0-\xff]+|[^\0-\xff]")


def complete(backend: Backend, matcher: Matcher, held: bytes = b"") -> list[int]:
    """Return tokens that complete a text by its shortest completion; the matcher is left as it was.

    Args:
        backend: its tokenizer spells the completion.
        matcher: after the certain text.
        held: the end of that, which no token has written yet.

    Raises:
        DecodingError: the vocabulary cannot write it.
    """
    return _spelled(backend, _text(backend, matcher, held))


class Completion:
    """Tokens that complete a text, which follow the text while it is written.

    Args:
        backend: its tokenizer spells them.
    """

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._longest = backend.vocabulary.derived(_longest)
        self._text = ""  # ends with the text that `_ids` write
        self._ids: list[int] = []  # the last token first
        self._ends: list[int] = []  # for each of them, the length of the text from it on
        self._is_here = False  # they complete the text as it is
        self._spelled = 0  # number of tokens that were spelled since the whole was

    def fits(self, matcher: Matcher, held: bytes, budget: int) -> bool:
        """Return True if the text can be completed within a budget; then the text is taken to go on so.

        Args:
            matcher: after the certain text.
            held: the end of that, which no token has written yet.
            budget: in tokens.
        """
        if budget < 0:
            return False
        if not held and matcher.is_accepting:
            self.leave()
            return True
        least = len(held) + matcher.least_length()
        if least > budget * self._longest:  # the text is not even made
            return False
        # At most one token for each byte and control token.
        if (
            least <= budget
            and has_all_bytes(self._backend.vocabulary)
            and len(held) + matcher.shortest_length() <= budget
        ):
            self.leave()
            return True
        return self._spell(_text(self._backend, matcher, held), budget)

    def needed(self, matcher: Matcher) -> tuple[int, bool]:
        """Return the number of tokens that complete a text, and True; where making them would take long, a lower bound,
        and False."""
        length = matcher.least_length()
        if length > _LONG:
            return -(-length // self._longest), False
        return len(complete(self._backend, matcher)), True

    def tokens(self, matcher: Matcher, held: bytes, budget: int) -> list[int]:
        """Return the tokens that complete the text at its present place; within the budget where `fits` was True."""
        if not self._is_here:
            text = _text(self._backend, matcher, held)
            if not self._spell(text, budget):
                self._keep(text, 0, _spelled(self._backend, text))
        return self._ids[::-1]

    def follow(self, matcher: Matcher, token_id: int) -> bool:
        """Move on over a token that the matcher accepted, if it is the next one of the completion; return True if it
        is. Where readings of the text were dropped, the completion may have been one of them."""
        if not self._is_here or not self._ids or self._ids[-1] != token_id:
            return False
        if not matcher.is_completion(islice(reversed(self._ids), 1, None)):
            return False
        self._ids.pop()
        self._ends.pop()
        return True

    def leave(self) -> None:
        """Note that the text went on otherwise, so that the tokens do not complete it."""
        self._is_here = False

    def _spell(self, text: str, budget: int) -> bool:
        """Spell a completion within a budget, and keep it; False, and no change, if it does not fit."""
        kept = max(0, bisect_right(self._ends, _common_suffix(text, self._text)) - _JOINED)
        ids = _spelled(self._backend, text[: len(text) - self._ends[kept - 1]] if kept else text)
        self._spelled += len(ids)
        if kept and kept + len(ids) > budget and self._spelled > kept:
            kept, ids = 0, _spelled(self._backend, text)
        if not kept:
            self._spelled = 0
        if kept + len(ids) > budget:
            return False
        self._keep(text, kept, ids)
        return True

    def _keep(self, text: str, kept: int, ids: list[int]) -> None:
        """Keep the completion that ends with the last ``kept`` tokens of the one before, and begins with others."""
        del self._ids[kept:], self._ends[kept:]
        tokens, end = self._backend.vocabulary.tokens, self._ends[-1] if kept else 0
        for token_id in reversed(ids):
            end += len(tokens[token_id] or b"-")
            self._ids.append(token_id)
            self._ends.append(end)
        self._text = text
        self._is_here = True


def _text(backend: Backend, matcher: Matcher, held: bytes) -> str:
    """Return the text of a completion: a character for each byte, and one from 256 on for each control token."""
    special = backend.vocabulary.special
    parts = [held.decode("latin-1")]
    for part in matcher.shortest_parts():
        if isinstance(part, bytes):
            parts.append(part.decode("latin-1"))
        elif part in special:
            parts.append(chr(256 + special[part]))
        else:
            raise no_token("be completed")
    return "".join(parts)


def _longest(vocabulary: Vocabulary) -> int:
    return max((len(token) for token in vocabulary.tokens if token), default=1)


def _spelled(backend: Backend, text: str) -> list[int]:
    """Return the tokens of such a text."""
    ids: list[int] = []
    for run in _RUN.findall(text):
        if ord(run[0]) < 256:
            ids += spell_somehow(backend, run.encode("latin-1"))
        else:
            ids.append(ord(run) - 256)
    return ids


def _common_suffix(one: str, other: str) -> int:
    """Return the length of the longest common end of two texts."""
    least, most = 0, min(len(one), len(other))
    while least < most:
        middle = (least + most + 1) // 2
        if one[len(one) - middle : len(one) - least] == other[len(other) - middle : len(other) - least]:
            least = middle
        else:
            most = middle - 1
    return least
