"""`Spelling`: a served model's tokenizer, for text that the grammar forces."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import takewhile
from typing import TYPE_CHECKING

import numpy as np

from toolgrammar.core.generation import Speller
from toolgrammar.core.masks import Budget

if TYPE_CHECKING:
    from toolgrammar.core.masks import Matcher
    from toolgrammar.core.vocabulary import Vocabulary


class Spelling:
    """The tokenizer of a served model.

    Args:
        vocabulary: the bytes of its tokens.
        encode: its spelling of a text, without tokens around it.

    Attributes:
        vocabulary: the bytes of its tokens.
    """

    name = "vllm"

    def __init__(self, vocabulary: Vocabulary, encode: Callable[[str], list[int]]) -> None:
        self.vocabulary = vocabulary
        self.encode = encode
        self._speller = Speller(self)  # type: ignore[arg-type]  # it asks for these two only

    def certain(self, matcher: Matcher, before: Sequence[int], most: int, room: int | None) -> list[int]:
        """Return tokens that are certain to follow a text, as the tokenizer spells them whatever comes after; none if
        the rest of the text does not fit into ``room``.

        Args:
            matcher: after the text; left as it was.
            before: the tokens of the text.
            most: maximum number of tokens.
            room: maximum number of tokens of the rest of the text, these included; None: there is no maximum.
        """
        certain: list[int] = []
        ahead = matcher.fork()
        while len(certain) < most:
            forced = ahead.forced_bytes()
            if not forced:
                token = _single(ahead)  # a control token, or one that ends inside a character
                if token is None or token in self.vocabulary.eos or not ahead.accept(token):
                    break
                certain.append(token)
                continue
            after = ahead.fork()
            after.accept_bytes(forced)
            context = (*before[-Speller.CONTEXT_TOKENS :], *certain)
            # The text tokens at the end: control tokens have no bytes.
            text = [*takewhile(self.vocabulary.tokens.__getitem__, reversed(context))][::-1]
            settled = self._speller.settle(text, forced, after, forced)
            run = [] if settled is None else settled.ids[: most - len(certain)]
            if settled is None or not run or not all(ahead.accept(token) for token in run):
                break
            certain += run
            if settled.among is not None or len(run) < len(settled.ids):
                break  # the next token depends on what comes after the forced text, or is one too many
        if room is not None and certain and not Budget(ahead).fits(room - len(certain)):
            return []
        return certain


def _single(matcher: Matcher) -> int | None:
    """Return the only token that is allowed; None if there are several."""
    mask = np.zeros(matcher.constraint.words, np.uint32)
    matcher.fill_mask(mask)
    (found,) = np.nonzero(mask)
    if len(found) != 1:
        return None
    word = int(mask[found[0]])
    has_more = word & (word - 1) != 0  # a bit beside the lowest one
    return None if has_more else int(found[0]) * 32 + word.bit_length() - 1
