"""Harmony of gpt-oss: messages in channels; messages with a recipient are calls.

The recipient is in the header's role or in its channel; the channel is ``commentary`` or ``analysis``; the content type
is optional. Text before a call is a separate message in ``commentary``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product

from toolgrammar.core.grammar import Grammar

from ..tool import Tool
from .template.format import TemplateFormat
from .template.parser import Syntax

#: Parts of a header, and all their spellings, the usual one first.
_SPELLINGS = {
    "commentary": ("commentary", "analysis"),
    " <|constrain|>json": (" <|constrain|>json", "<|constrain|>json", " json", ""),
}
_PART = re.compile("(" + "|".join(map(re.escape, _SPELLINGS)) + ")")


@dataclass(frozen=True)
class Channels(TemplateFormat):
    """A format whose calls have a header in several spellings; all are admitted, and the first is written."""

    def _hole_or_markup(self, piece: str) -> Grammar:
        """Return the grammar of a piece of the template, with all spellings of the parts in it."""
        usual = super()._hole_or_markup
        return Grammar.sequence(
            *(
                Grammar.choice(*map(self.markup, _SPELLINGS[part])) if part in _SPELLINGS else usual(part)
                for part in _PART.split(piece)
                if part
            )
        )

    def _spelled(self) -> Iterator[str]:
        """Yield the templates of a call in all spellings."""
        for template in (self.call, *self.others):
            parts = [_SPELLINGS.get(part, (part,)) for part in _PART.split(template)]
            yield from map("".join, product(*parts))

    def _syntax(self, tools: Sequence[Tool], whole_text: bool) -> Syntax:
        call, *others = self._spelled()
        syntax = TemplateFormat._syntax(replace(self, call=call, others=tuple(others)), tools, whole_text)
        # A trigger with the recipient is part of the call.
        return replace(syntax, skips=tuple(mark for mark in syntax.skips if not mark.startswith("to=")))
