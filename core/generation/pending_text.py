"""Pending text: certain text whose tokens are not known yet (forced text, chosen words, token healing).

The matcher may be ahead of the tokens. In ``tokens · text``, the matcher is after the text, and the text is *pending*:
the grammar forces it, or the model has chosen it as a whole word, but not all of its tokens are known, because the
tokenizer may join its end with the following text. There are three states:

- empty: the tokens write everything that the matcher has read;
- pending, ``spellings`` is None: text was added, or a token has written a part of it; `settle` returns the tokens that
  certainly begin it;
- pending, ``spellings`` is set: the model must choose one of these tokens. Each writes the text, a prefix of it, or the
  text and a possible continuation.

So at each choice the model reads its tokenizer's own tokenization of the text.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ..masks.promised import take
from .retokenise import CONTEXT_TOKENS, Speller, common_prefix, size_of, spell_somehow, text_end, whole_characters

if TYPE_CHECKING:
    import numpy.typing as npt

    from ..masks import Matcher
    from .backend import Backend
    from .token_sequence import TokenSequence

#: Maximum length of forced text that is added at once, in bytes.
MAX_JUMP = 2048

#: Maximum number of tokens at the end of a prompt that are retokenized with the output.
MAX_HEALED = 4


@dataclass(frozen=True)
class Mark:
    """State of a `PendingText`, for `PendingText.reset`."""

    text: bytes
    step: bytes
    spellings: npt.NDArray[np.intp] | None
    settled: int


class PendingText:
    """Text between the last token and the position of the matcher.

    Args:
        backend: the backend of the tokenizer.
        speller: the same tokenizer, with memoised tokenizations.
        sequence: the tokens before the text.
        healable: number of tokens at the end of the prompt that may be retokenized (token healing).

    Attributes:
        text: the bytes.
        step: the bytes of the last step of the matcher, if they end the text; empty if unknown.
        spellings: the possible next tokens, ascending; None if not known (see above).
        settled: number of output tokens that are never retokenized.
        emitted: length of the prefix of the text that was already emitted, or in the prompt, before its tokens were
            taken back.
        removed: tokens that were removed from the end of the prompt, until a token of the output replaces them.
    """

    def __init__(self, backend: Backend, speller: Speller, sequence: TokenSequence, healable: int) -> None:
        self._backend = backend
        self._speller = speller
        self._sequence = sequence
        self._prompt_end = list(sequence.prompt[len(sequence.prompt) - healable :])
        self.text = b""
        self.step = b""
        self.spellings: npt.NDArray[np.intp] | None = None
        self.settled = 0
        self.emitted = 0
        self.removed: list[int] = []

    def mark(self) -> Mark:
        """Return the current state of the text."""
        return Mark(self.text, self.step, self.spellings, self.settled)

    def reset(self, mark: Mark) -> None:
        """Restore a state; the caller restores the matcher and the sequence."""
        self.text, self.step, self.spellings, self.settled = mark.text, mark.step, mark.spellings, mark.settled

    def context(self) -> list[int]:
        """Return the last text tokens of the sequence, including those of the prompt that may be retokenized."""
        ids = [*self._prompt_end, *self._sequence.token_ids[-CONTEXT_TOKENS - 1 :]][-CONTEXT_TOKENS - 1 :]
        return text_end(ids, self._backend.vocabulary)

    # -- adding text -----------------------------------------------------------------------------------------------

    def add(self, matcher: Matcher, data: bytes) -> None:
        """Add forced text, as one step of the matcher."""
        take(matcher, data)
        self.text += data
        self.step = data

    def add_word(self, matcher: Matcher, word: bytes, end: int | None, fits: Callable[[], bool]) -> bool:
        """Add a word that the model has chosen; return False, and change nothing, if the grammar refuses it or
        it does not fit in the budget.

        Args:
            matcher: after the text.
            word: its bytes from the current position.
            end: the byte after it; -1: the output ends after it; None: not decided.
            fits: returns True if the output can still be completed.
        """
        data = word if end is None or end < 0 else word + bytes((end,))
        before = self.mark()
        if data and not matcher.accept_bytes(data):
            return False
        steps = 1 if data else 0
        if end == -1:
            if not matcher.accept(min(self._backend.vocabulary.eos)):
                matcher.rollback(steps)
                return False
            steps += 1
        self.text, self.step = self.text + data, b"" if end == -1 else data
        if not fits():
            matcher.rollback(steps)
            self.reset(before)
            return False
        self.spellings = None
        return True

    # -- writing it in tokens --------------------------------------------------------------------------------------

    def accept(self, matcher: Matcher, token_id: int) -> bool:
        """Accept a token, which writes pending text and then advances the matcher; return False, and change nothing, if
        it is not allowed."""
        if not self.text:
            if not matcher.accept(token_id):
                return False
            self.spellings = None
            return True
        data, text = self._backend.vocabulary.tokens[token_id] or b"", self.text
        if data.startswith(text):
            if len(data) > len(text) and not matcher.accept_bytes(data[len(text) :]):
                return False
        elif not data or not text.startswith(data):  # a control token, or another text
            return False
        self.text = text[len(data) :]
        if self.spellings is not None and len(data) <= len(text):
            # The model has chosen the end of this token: do not join it with the text after it.
            self.settled = len(self._sequence.token_ids) + 1
        self.spellings = None
        return True

    def wrote(self, data: bytes) -> bytes:
        """Remove the bytes of an appended token from the text; return those that were not emitted yet."""
        emitted = min(self.emitted, len(data))
        self.emitted -= emitted
        self.removed.clear()
        return data[emitted:]

    def jump(self, matcher: Matcher, forced: bytes, fits: Callable[[int], bool]) -> list[int]:
        """Add forced text; return the tokens that certainly begin it, for the caller to append.

        The model has not read the last token yet, so if the tokenizer would join that with the forced text, it is
        replaced at no cost. If the tokenizer cannot write the forced text exactly, or if it does not fit, it is not
        added; text that was pending before is then written in any tokens (`spellings`).

        Args:
            matcher: after the text.
            forced: the forced text; may be empty.
            fits: see `settle`.
        """
        if not forced and not self.text:
            return []
        before = self.text
        if forced:
            self.add(matcher, forced)
        token_ids = self._sequence.token_ids
        replaces = not before and len(token_ids) > self.settled and size_of(self._backend.vocabulary, token_ids[-1]) > 0
        for count in (1, 0) if replaces else (0,):
            ids = self.settle(matcher, count, fits)
            if ids is not None:
                return ids
        if forced:
            self.text, self.step = before, b""
            matcher.rollback(1)
        if before:  # it must be written, in any tokens
            self.spellings = np.array(spell_somehow(self._backend, before)[:1], dtype=np.intp)
        return []

    def settle(self, matcher: Matcher, count: int, fits: Callable[[int], bool]) -> list[int] | None:
        """Return the tokens with which the tokenizer begins the text for every continuation; the rest stays pending.

        Args:
            matcher: after the text.
            count: number of last tokens, not read by the model, that are retokenized with the text; those that change
                are taken back.
            fits: returns True if the output can be completed with this many tokens more than are left (negative:
                fewer).

        Returns:
            The tokens, for the caller to append. None, without changes, if the tokenizer cannot write this text
            exactly, or if the rest would not fit in the budget.
        """
        decode, text = self._backend.vocabulary.decode, self.text
        context = self.context()
        before, last = context[: len(context) - count], context[len(context) - count :]
        settled = self._speller.settle(before, decode(last) + text, matcher, self.step)
        if settled is None:
            return None
        unchanged = common_prefix(settled.ids, last)
        old, new = last[unchanged:], settled.ids[unchanged:]
        self.text = (decode(old) + text)[len(decode(new)) :]
        taken_back = len(old) if self._sequence.token_ids else 0  # tokens of the prompt are not in the budget
        if not fits(taken_back - len(new)):
            self.text = text
            return None
        for token_id in reversed(old):
            if self._sequence.token_ids:
                self._sequence.take_back()
            else:
                self._sequence.shorten_prompt(self._prompt_end.pop())
                self.removed.insert(0, token_id)
        self.emitted += len(decode(old))
        self.spellings = settled.among
        return new

    # -- token healing ---------------------------------------------------------------------------------------------

    def heal(self, matcher: Matcher, forced: bytes, fits: Callable[[int], bool]) -> list[int] | None:
        """Take back the tokens at the end of the prompt that the tokenizer may write differently with the output.

        A prompt that ends inside a token (with a space, or a quote) has a last token that the tokenizer would not write
        before most continuations, so the model has rarely read it there. The likely token begins a few tokens earlier.

        Args:
            matcher: at the beginning of the output.
            forced: the forced text there; may be empty.
            fits: see `settle`.

        Returns:
            As `settle`; None if the prompt does not change.
        """
        count = min(MAX_HEALED, len(self.context()), len(self._sequence.prompt) - 1)
        if count <= 0:
            return None
        before = self.mark()
        self.add(matcher, forced)
        ids = self.settle(matcher, count, fits)
        if ids is None or not (ids or self.removed):
            self.reset(before)
            matcher.rollback(1)
            return None
        return ids

    def restores_prompt(self, token_id: int) -> bool:
        """If the model chose the first removed token of the prompt again, put it back into the prompt, and return True:
        it does not count as output."""
        if not self.removed or token_id != self.removed[0]:
            return False
        size = size_of(self._backend.vocabulary, token_id)
        self._prompt_end.append(self.removed.pop(0))
        self._sequence.restore_prompt(token_id)
        self.text = self.text[size:]
        self.emitted -= size
        self.spellings = None
        return True

    def unwritten(self) -> list[int]:
        """Return tokens for the emitted bytes of the text, which a generation that ends here must write."""
        return spell_somehow(self._backend, self.text[: self.emitted])


def forced_text(matcher: Matcher) -> bytes:
    """Return the forced text: complete characters, at most `MAX_JUMP` bytes."""
    return b"" if matcher.is_finished else whole_characters(matcher.forced_bytes()[:MAX_JUMP])
