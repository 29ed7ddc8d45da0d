"""`Sequence`: one text that an engine writes under a grammar, with drafts, rollback, stop tokens and a token budget.

It knows no engine. An engine asks for the mask of the next token (`fill`), says what was written (`accept`), takes
drafted tokens back (`rollback`), and may ask for text that is certain to follow (`jump`).
"""

from __future__ import annotations

from collections import abc
from collections.abc import Callable, Collection
from typing import TYPE_CHECKING

import numpy as np

from toolgrammar.core.basics import logger_of
from toolgrammar.core.errors import ToolGrammarError
from toolgrammar.core.masks import Budget, fill_known

from .spelling import Spelling

if TYPE_CHECKING:
    import numpy.typing as npt

    from toolgrammar.core.masks import Constraint

_LOG = logger_of("vllm")


class Ends:
    """The tokens that end a text in an engine.

    Args:
        spelling: the model's tokens.
        stop: ids at which the engine ends the text; empty if it ignores them, and goes on to the end of its budget.
    """

    def __init__(self, spelling: Spelling, stop: Collection[int]) -> None:
        vocabulary = spelling.vocabulary
        self.ids = frozenset(stop) or vocabulary.eos
        self.is_ignored = not stop
        words = (vocabulary.size + 31) // 32
        #: End tokens allowed at the end of a text: those at which the engine ends it; if it ignores them, the
        #: vocabulary's.
        self.mask = bits(self.ids, words)
        #: End tokens allowed where no text fits into the budget: those of the vocabulary, because such an answer is
        #: reported as cut, and shows its last token, which could be text; if the engine stops at none of them, all.
        self.instead_of_text = bits(self.ids & vocabulary.eos or self.ids, words)
        #: Ends for the vocabulary and not for the engine, which would go on after them; None: there are none.
        self.foreign = bits(vocabulary.eos - self.ids, words) if vocabulary.eos - self.ids else None
        #: Ends for the engine alone: text or control tokens that the grammar may want before the end of the text.
        self.own = tuple(sorted(self.ids - vocabulary.eos))


class Sequence:
    """One text that an engine writes.

    Args:
        constraint: the grammar over the model's vocabulary.
        spelling: the model's tokenizer.
        ends: the tokens that end the text.

    Attributes:
        matcher: the state of the text.
        tokens: the tokens that the grammar took, without the one that ended the text.
        error: the limit that the grammar met: the text takes no further token. None: it met none.
        room: returns how many more tokens the budget allows after the `steps` so far; None: there is no budget.
    """

    def __init__(self, constraint: Constraint, spelling: Spelling, ends: Ends) -> None:
        self._constraint = constraint
        self._spelling = spelling
        self._ends = ends
        self.room: Callable[[], int] | None = None
        self.reset()

    def reset(self) -> None:
        """Go back to the beginning of the text."""
        self.matcher = self._constraint.matcher()
        self.tokens: list[int] = []
        self.error: ToolGrammarError | None = None
        self._over = 0  # number of tokens from the one that ended the text on
        self._fixed: dict[int, int] = {}  # by number of the step: the token that `jump` fixed there
        self._shortest: int | None = None
        self._budget = Budget(self.matcher)

    @property
    def steps(self) -> int:
        """Number of tokens so far, the one that ended the text and those after it included."""
        return len(self.tokens) + self._over

    @property
    def is_over(self) -> bool:
        """True if a token has ended the text, and the engine ends it there."""
        return self._over > 0 and not self._ends.is_ignored

    @property
    def is_whole(self) -> bool:
        """True if the text may end here."""
        return self.matcher.is_accepting

    @property
    def shortest(self) -> int:
        """Number of tokens of the shortest text, without the one that ends it; a lower bound if it is very long.

        Raises:
            ToolGrammarError: the grammar met a limit.
        """
        if self._shortest is None:
            self._shortest, _is_exact = Budget(self._constraint.matcher()).needed()
        return self._shortest

    @property
    def has_no_room(self) -> bool:
        """True if nothing is written, and the shortest text exceeds the budget. Then only an end token may come: a
        client could take the beginning of an answer for a whole one, but not an empty answer.

        Raises:
            ToolGrammarError: the grammar met a limit.
        """
        return self.room is not None and not self.tokens and self.error is None and self.shortest > self.room()

    @property
    def closed_at(self) -> int | None:
        """Number of tokens before the first place where the budget left the model less than the grammar does."""
        return self._budget.closed_at

    def accept(self, tokens: abc.Sequence[int]) -> bool:
        """Advance by tokens, and return True; False at the first one that is not allowed, or where the grammar met a
        limit. The ones before it stay. Tokens after the end are counted in `steps`, and have no effect on the text."""
        for token in tokens:
            if self._over:
                self._over += 1
            elif self.error is not None:
                return False
            elif token in self._ends.ids and (self.matcher.is_accepting or self._fits_no_text()):
                self._over = 1
            elif self._take(token):
                self.tokens.append(token)
            else:
                return False
        return True

    def _fits_no_text(self) -> bool:
        """Return True if nothing is written and the shortest text exceeds the budget; note a limit of the grammar in
        `error`."""
        try:
            return self.has_no_room
        except ToolGrammarError as error:
            self._fail(error)
            return False

    def _take(self, token: int) -> bool:
        try:
            return self.matcher.accept(token)
        except ToolGrammarError as error:
            self._fail(error)
            return False

    def _fail(self, error: ToolGrammarError) -> None:
        _LOG.error("a request ends with an error: %s", error)
        self.error = error

    def rollback(self, count: int) -> None:
        """Take back the last ``count`` of the `steps`: those from the end of the text on, then tokens of the text."""
        ended = min(count, self._over)
        self._over -= ended
        if written := count - ended:
            self.matcher.rollback(written)
            del self.tokens[-written:]
            self.error = None  # no token is taken after a limit: it was met behind what is taken back
        self._budget.rollback(len(self.tokens))

    def allowed_prefix(self, tokens: abc.Sequence[int]) -> list[int]:
        """Return the longest beginning of ``tokens`` with which the text may go on, up to a token that ends it. The
        text is left as it was."""
        steps, error = 0, self.error
        for token in tokens:
            if self._over or not self.accept((token,)):
                break
            steps += 1
        self.rollback(steps)
        self.error = error  # a limit that a draft met is none of the text
        return list(tokens[:steps])

    def fill(self, row: npt.NDArray[np.uint32]) -> None:
        """Write the mask of the next token.

        After the end, or where the grammar meets a limit: the end tokens. If no text fits into the budget: those of
        them that may come instead of a text. After `jump`: the one token that it fixed. Else: the grammar's mask,
        narrowed by the ends and the budget.

        Args:
            row: uint32, ``ceil(V / 32)`` words; bit ``t % 32`` of word ``t // 32`` is set where token ``t`` is allowed.
        """
        if self._over or self._fits_no_text():
            row[:] = self._ends.mask if self._over else self._ends.instead_of_text
            return
        fixed = self._fixed.get(self.steps)
        if fixed is not None:
            row[:] = 0
            row[fixed >> 5] = 1 << (fixed & 31)
            return
        try:
            self.matcher.fill_mask(row)
        except ToolGrammarError as error:  # an exception here would end the engine, and all requests with it
            self._fail(error)
            row[:] = self._ends.mask
        else:
            self._finish(row)

    def _asks_grammar(self) -> bool:
        """Return True if `fill` takes the mask of the grammar."""
        return not self._over and self._fixed.get(self.steps) is None and not self._fits_no_text()

    def _finish(self, row: npt.NDArray[np.uint32]) -> None:
        """Change the grammar's mask as the ends and the budget of the text demand; where the grammar meets a limit, to
        the end tokens."""
        try:
            self._narrow(row)
        except ToolGrammarError as error:
            self._fail(error)
            row[:] = self._ends.mask

    def _narrow(self, row: npt.NDArray[np.uint32]) -> None:
        """Change the grammar's mask: the engine's ends for the vocabulary's, and no token that exceeds the budget.

        Raises:
            ToolGrammarError: the grammar met a limit.
        """
        ends = self._ends
        is_whole = self.matcher.is_accepting
        if is_whole:
            if ends.foreign is not None:
                row &= ~ends.foreign
            row |= ends.mask
        else:
            for token in ends.own:  # at which the engine would stop, although the text may have to go on
                bit = np.uint32(1 << (token & 31))
                if row[token >> 5] & bit and not self._may_end_with(token):
                    row[token >> 5] &= ~bit
        if self.room is not None:
            self._budget.narrow(row, self.tokens, self.room())
            if is_whole:  # the budget has cleared ends of the engine alone, which are no tokens of the grammar
                row |= ends.mask

    def _may_end_with(self, token: int) -> bool:
        """Return True if a token that the grammar wants, and at which the engine stops, may be the last of the text.

        It has to make the text whole, and to be a control token: engines drop the text of a token that ends an answer.
        """
        if self._spelling.vocabulary.tokens[token] or not self.matcher.accept(token):
            return False
        is_whole = self.matcher.is_accepting
        self.matcher.rollback(1)
        return is_whole

    def jump(self, most: int, *, is_offered: bool = False) -> list[int]:
        """Return the tokens with which the tokenizer writes the text that is certain to follow; none after the end, or
        if no text fits into the budget.

        Args:
            most: maximum number of tokens.
            is_offered: leave the masks as they are, so that the model may spell that text otherwise; False: each of
                these tokens becomes the only one that `fill` allows at its step. It stays so until the next `jump`.
        """
        self._fixed = {}
        if self._over or self._fits_no_text():
            return []
        room = None if self.room is None else self.room()
        ahead = self._spelling.certain(self.matcher, self.tokens, most, room)
        begin = len(self.tokens)
        if not is_offered:
            self._fixed = {begin + number: token for number, token in enumerate(ahead)}
        return ahead


def fill_batch(texts: abc.Sequence[Sequence | None], rows: npt.NDArray[np.uint32]) -> None:
    """Write the masks of the next tokens of many texts, as `Sequence.fill` does; those that are memoised already are
    written by one call.

    Args:
        texts: the text of each row; None: the row is left as it is.
        rows: uint32, ``[len(texts) or more, ceil(V / 32)]``, C-contiguous.
    """
    matchers = [text.matcher if text is not None and text._asks_grammar() else None for text in texts]
    unknown = set(fill_known(matchers, rows))  # numbers of the rows whose masks have to be computed
    for number, text in enumerate(texts):
        if text is None:
            continue
        if matchers[number] is None or number in unknown:
            text.fill(rows[number])
        else:
            text._finish(rows[number])


def bits(tokens: Collection[int], words: int) -> npt.NDArray[np.uint32]:
    """Return the mask of some tokens."""
    mask = np.zeros(words, np.uint32)
    for token in tokens:
        if 0 <= token < 32 * words:
            mask[token >> 5] |= np.uint32(1 << (token & 31))
    return mask
