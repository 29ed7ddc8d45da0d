"""Insertions: texts that the prompt gains while the answer is written.

A prompt may name things that it does not describe: tools by their names only. When the answer has named one, and before
the model reads or chooses anything more, the prompt is replaced by one with the description; the answer so far is kept.
So a token after the name has the distribution that the model gives after ``[prompt with the description][answer]``.

The loop asks `NamesRead` which names are complete in the *certain* text: the written tokens, the pending text, and the
text that the grammar forces. A token that the model has chosen may end a name and begin what follows; then only its
part up to the end of the name is kept, as pending text, and the model chooses the rest with the description.
"""

from __future__ import annotations

import codecs
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..conversation.events import CallStart
from ..masks.promised import take

if TYPE_CHECKING:
    from ..masks import Matcher
    from .params import OutputParser
    from .pending_text import Mark, PendingText


@dataclass(frozen=True)
class Insertions:
    """What a prompt gains while the answer is written.

    Attributes:
        names: names of tools that the prompt does not describe.
        make_parser: makes a parser of calls that begin as soon as their names are certain.
        prompt: returns the token ids of the prompt with the descriptions of some of them, in the order of their calls.
    """

    names: Collection[str]
    make_parser: Callable[[], OutputParser]
    prompt: Callable[[Sequence[str]], Sequence[int]]


class NamesRead:
    """Reads an answer as far as it is certain, and tells which names in it are complete.

    Args:
        insertions: the names that count.
        markers: names of control tokens, which parsers read in place of their bytes.

    Attributes:
        inserted: the names of which the prompt has the descriptions, in order.
    """

    def __init__(self, insertions: Insertions, markers: Callable[[int], str]) -> None:
        self._insertions = insertions
        self._parser = insertions.make_parser()
        self._markers = markers
        self._characters = codecs.getincrementaldecoder("utf-8")("replace")
        self._ahead = 0  # bytes that were read before they were written
        self._due: list[str] = []
        self.inserted: list[str] = []

    @property
    def is_due(self) -> bool:
        """True if a name is complete whose description the prompt lacks."""
        return bool(self._due)

    def prompt(self) -> Sequence[int]:
        """Return the prompt with the descriptions of all complete names."""
        self.inserted += self._due
        self._due = []
        return self._insertions.prompt(tuple(self.inserted))

    def wrote(self, token_id: int, data: bytes) -> None:
        """Read a written token.

        Args:
            token_id: the token.
            data: its bytes that were not written before.
        """
        known = min(self._ahead, len(data))
        self._ahead -= known
        self._read(data[known:])
        if not data and (marker := self._markers(token_id)):
            self._feed(marker)

    def foresee(self, certain: bytes) -> None:
        """Read the certain text after the written tokens."""
        self._read(certain[self._ahead :])
        self._ahead = max(self._ahead, len(certain))

    def rest_after_name(self, certain: bytes) -> int:
        """Read a text up to the end of the first name that becomes complete in it; return the number of bytes after
        that, which are not read: 3 for ``get_weather", "``. 0: no name is complete, or it ends the text."""
        for index in range(self._ahead, len(certain)):
            self._read(certain[index : index + 1])
            self._ahead = index + 1
            if self._due:
                return len(certain) - index - 1
        return 0

    def keeps_name_only(
        self, matcher: Matcher, pending: PendingText, before: Mark, data: bytes, fits: Callable[[], bool]
    ) -> bool:
        """Keep only the beginning of an accepted token as pending text, if it completes a name and begins arguments,
        which the model is to choose with the description; return False, and change nothing, if it does not.

        Args:
            matcher: after the token.
            pending: the text between the tokens and the matcher.
            before: the state of that text before the token.
            data: the bytes of the token.
            fits: returns True if the output can still be completed; near the end of the budget the token is kept whole.
        """
        text = before.text  # certain before the token, which begins with it
        if len(data) <= len(text) + 1:  # it adds at most one byte, which cannot both end a name and begin arguments
            return False
        size = len(data) - self.rest_after_name(data[pending.emitted :])
        if size == len(data):
            return False
        matcher.rollback(1)
        after = pending.mark()
        pending.reset(before)
        pending.add(matcher, data[len(text) : size])
        pending.spellings = None
        is_forced = not matcher.is_finished and matcher.forced_bytes().startswith(data[size:])
        if is_forced or not fits():  # keep the whole token after all
            matcher.rollback(1)
            take(matcher, data[len(text) :])
            pending.reset(after)
            return False
        return True

    def _read(self, data: bytes) -> None:
        for text in self._characters.decode(data):
            self._feed(text)

    def _feed(self, text: str) -> None:
        for event in self._parser.feed(text):
            known = (*self.inserted, *self._due)
            if isinstance(event, CallStart) and event.name in self._insertions.names and event.name not in known:
                self._due.append(event.name)
