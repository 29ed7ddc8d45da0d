"""Certain text that no token has written yet, and its way into tokens: forced text, held words, token healing.

The matcher may be ahead of the tokens. In ``tokens · text``, the matcher is after the text, and the text is *pending*:
the grammar forces it, or the model has chosen it as a whole word, but its tokens are not all known, because the
tokenizer may join its end with what follows. There are three states:

- empty: the tokens write all that the matcher has read;
- pending, ``spellings`` is None: forced text has been added, or a token has written a part of it; `settle` says which
  tokens write its beginning for certain;
- pending, ``spellings`` is set: the model must choose one of these tokens. Each writes the text, a beginning of it, or
  the text and something that may follow it.

So at each choice the model reads a text that is spelled as its tokenizer spells it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from .retokenise import CONTEXT_TOKENS, Speller, common_prefix, size_of, spell_somehow, text_end, whole_characters

if TYPE_CHECKING:
    import numpy.typing as npt

    from ..masks import Matcher
    from .backend import Backend
    from .token_sequence import TokenSequence

#: Maximum length of the forced text that is added at a time, in bytes.
MAX_JUMP = 2048

#: Maximum number of tokens at the end of a prompt that are spelled again with the output.
MAX_HEALED = 4


@dataclass(frozen=True)
class Mark:
    """State of a `PendingText`, to go back to."""

    text: bytes
    step: bytes
    spellings: npt.NDArray[np.intp] | None
    settled: int


class PendingText:
    """Text between the last token and the position of the matcher.

    Args:
        backend: its tokenizer spells the text.
        speller: the same tokenizer, with its memory of spellings.
        sequence: the tokens before the text.
        healable: number of tokens at the end of the prompt that may be spelled again (token healing).

    Attributes:
        text: the bytes.
        step: the bytes of the last step of the matcher, if they end the text; empty if they are unknown.
        spellings: the tokens that may come next, ascending; None if that is open, see above.
        settled: number of the first output tokens that are never spelled again.
        emitted: number of first bytes of the text that steps or the prompt had already, before their tokens were taken
            back.
        removed: tokens that were taken from the end of the prompt, until a token of the output replaces them.
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
        """Return the present state of the text."""
        return Mark(self.text, self.step, self.spellings, self.settled)

    def reset(self, mark: Mark) -> None:
        """Go back to a state; the matcher and the sequence are the caller's to restore."""
        self.text, self.step, self.spellings, self.settled = mark.text, mark.step, mark.spellings, mark.settled

    def context(self) -> list[int]:
        """Return the last text tokens of the sequence, with those of the prompt that may be spelled again."""
        ids = [*self._prompt_end, *self._sequence.token_ids[-CONTEXT_TOKENS - 1 :]][-CONTEXT_TOKENS - 1 :]
        return text_end(ids, self._backend.vocabulary)

    def is_canonical(self, token_id: int, data: bytes) -> bool:
        """Return True if the tokenizer would write a token after the last one, or writes neither exactly.

        Args:
            token_id: the token.
            data: its bytes.
        """
        context = self.context()
        spelled = self._speller.spell(self._backend.vocabulary.decode(context) + data)
        return not spelled or spelled[-2:] == (*context[-1:], token_id)[-2:]

    # -- adding text -----------------------------------------------------------------------------------------------

    def add(self, matcher: Matcher, data: bytes) -> None:
        """Add text that the grammar forces: one step of the matcher."""
        if not matcher.accept_bytes(data):
            raise AssertionError("the matcher refuses the text that it forces")
        self.text += data
        self.step = data

    def add_word(self, matcher: Matcher, word: bytes, end: int | None, fits: Callable[[], bool]) -> bool:
        """Add a word that the model has chosen; return False, and change nothing, if it does not fit in the budget.

        Args:
            matcher: after the text.
            word: its bytes from the present position on.
            end: the byte after it; -1: the whole output ends there; None: the byte is open.
            fits: returns True if the output can still be completed.
        """
        data = word if end is None or end < 0 else word + bytes((end,))
        before = self.mark()
        if data and not matcher.accept_bytes(data):
            return False
        steps = 1 if data else 0
        if end == -1:
            steps += matcher.accept(min(self._backend.vocabulary.eos))
        self.text, self.step = self.text + data, b"" if end == -1 else data
        if not fits():
            matcher.rollback(steps)
            self.reset(before)
            return False
        self.spellings = None
        return True

    # -- writing it in tokens --------------------------------------------------------------------------------------

    def accept(self, matcher: Matcher, token_id: int) -> bool:
        """Advance by a token, over the text and then the matcher; return False, and change nothing, if it is not
        allowed."""
        if not self.text:
            if not matcher.accept(token_id):
                return False
            self.spellings = None
            return True
        data, text = self._backend.vocabulary.tokens[token_id] or b"", self.text
        if data.startswith(text):
            if len(data) > len(text) and not matcher.accept_bytes(data[len(text) :]):
                return False
        elif not data or not text.startswith(data):
            return False
        self.text = text[len(data) :]
        if self.spellings is not None and len(data) <= len(text):
            # The model has chosen where this token ends: it is not joined with the text after it.
            self.settled = len(self._sequence.token_ids) + 1
        self.spellings = None
        return True

    def wrote(self, data: bytes) -> bytes:
        """Note the bytes of a token that was appended; return those that were not emitted yet."""
        emitted = min(self.emitted, len(data))
        self.emitted -= emitted
        self.removed.clear()
        return data[emitted:]

    def jump(self, matcher: Matcher, forced: bytes, fits: Callable[[int], bool]) -> list[int]:
        """Add forced text; return the tokens that write its beginning for certain, for the caller to append.

        The model has not read the last token yet. So where the tokenizer would join it with the forced text, it is
        replaced at no cost. Nothing changes if the tokenizer does not write the forced text, or if it does not fit.

        Args:
            matcher: after the text.
            forced: text that the grammar forces next; it may be empty.
            fits: see `settle`.
        """
        if not forced and not self.text:
            return []
        before = self.text
        if forced:
            self.add(matcher, forced)
        token_ids = self._sequence.token_ids
        replaces = not before and len(token_ids) > self.settled and size_of(self._backend.vocabulary, token_ids[-1]) > 0
        for again in (1, 0) if replaces else (0,):
            ids = self.settle(matcher, again, fits)
            if ids is not None:
                return ids
        if forced:
            self.text, self.step = before, b""
            matcher.rollback(1)
        if before:  # it has to be written, in whatever tokens
            self.spellings = np.array(spell_somehow(self._backend, before)[:1], dtype=np.intp)
        return []

    def settle(self, matcher: Matcher, again: int, fits: Callable[[int], bool]) -> list[int] | None:
        """Return the tokens with which the tokenizer begins the text, whatever follows it; the rest stays pending.

        Args:
            matcher: after the text.
            again: number of last tokens, not read by the model, that are spelled again with the text. Those that come
                out differently are taken back.
            fits: returns True if the output can be completed with a number of tokens more than there are.

        Returns:
            The tokens, for the caller to append. None, with nothing changed, if the tokenizer does not write this text
            exactly, or the rest would not fit in the budget.
        """
        vocabulary = self._backend.vocabulary
        context = self.context()
        last = context[len(context) - again :]
        text = self.text
        settled = self._speller.settle(
            context[: len(context) - again], vocabulary.decode(last) + text, matcher, self.step
        )
        if settled is None:
            return None
        same = common_prefix(settled.ids, last)
        gone, ids = last[same:], settled.ids[same:]
        taken = vocabulary.decode(gone)
        self.text = (taken + text)[len(vocabulary.decode(ids)) :]
        if not fits((len(gone) if self._sequence.token_ids else 0) - len(ids)):
            self.text = text
            return None
        for token_id in reversed(gone):
            if self._sequence.token_ids:
                self._sequence.take_back()
            else:
                self._sequence.remove_unread(self._prompt_end.pop())
                self.removed.insert(0, token_id)
        self.emitted += len(taken)
        self.spellings = settled.among
        return ids

    # -- token healing ---------------------------------------------------------------------------------------------

    def heal(self, matcher: Matcher, forced: bytes, fits: Callable[[int], bool]) -> list[int] | None:
        """Take back the tokens at the end of the prompt that the tokenizer may spell otherwise, with the output.

        A prompt that ends inside a token (with a space, or a quote) has a last token that the tokenizer would not write
        there. The model has never read it so: what it would say begins inside another token, a few tokens back.

        Args:
            matcher: at the beginning of the output.
            forced: text that the grammar forces there; it may be empty.
            fits: see `settle`.

        Returns:
            As `settle`; None if the prompt stays as it is.
        """
        again = min(MAX_HEALED, len(self.context()), len(self._sequence.prompt) - 1)
        if again <= 0:
            return None
        before = self.mark()
        self.add(matcher, forced)
        ids = self.settle(matcher, again, fits)
        if ids is None or not (ids or self.removed):
            self.reset(before)
            matcher.rollback(1)
            return None
        return ids

    def keeps_prompt(self, token_id: int) -> bool:
        """Return True if the model chose the token that the prompt had here, which is then no token of the output."""
        if not self.removed or token_id != self.removed[0]:
            return False
        size = size_of(self._backend.vocabulary, token_id)
        self._prompt_end.append(self.removed.pop(0))
        self._sequence.restore(token_id)
        self.text = self.text[size:]
        self.emitted -= size
        self.spellings = None
        return True

    def unwritten(self) -> list[int]:
        """Return tokens for the emitted bytes of the text: a generation that ends here must write them."""
        return spell_somehow(self._backend, self.text[: self.emitted])


def forced_text(matcher: Matcher) -> bytes:
    """Return the text that the grammar forces next, in whole characters and at most `MAX_JUMP` bytes."""
    return b"" if matcher.is_finished else whole_characters(matcher.forced_bytes()[:MAX_JUMP])
