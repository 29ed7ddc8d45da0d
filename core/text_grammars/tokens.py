"""Tokens in grammars, by id or by text: control tokens of a vocabulary, or text."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from ..errors import GrammarError
from .expressions import Control, Literal

#: Returns the expression of a token, by its id or its text.
Tokens = Callable[[int | str], Control | Literal]


class Vocabulary(Protocol):
    """The part of a vocabulary's interface that readers of grammars use."""

    @property
    def tokens(self) -> Sequence[bytes | None]:
        """The bytes of each token."""

    @property
    def special(self) -> Mapping[str, int]:
        """The control tokens, from name to id."""


def special_of(vocabulary: Vocabulary | None) -> Mapping[str, int]:
    """Return the control tokens of a vocabulary; none without one.

    Raises:
        GrammarError: it is no vocabulary.
    """
    special: Mapping[str, int] | None = {} if vocabulary is None else getattr(vocabulary, "special", None)
    if special is None:
        raise GrammarError(f"vocabulary= takes a Vocabulary, not {type(vocabulary).__name__}", hint="model.vocabulary")
    return special


def tokens_of(vocabulary: Vocabulary | None) -> Tokens:
    """Return a function from the id or the text of a token to its expression.

    Without a vocabulary, a text is the name of a control token, and ids are refused.
    """
    names = {token_id: name for name, token_id in special_of(vocabulary).items()}

    def expression(token: int | str) -> Control | Literal:
        """Return a control token, or the text of another token. Raise GrammarError if there is none, or if its bytes
        are no text."""
        if isinstance(token, str):
            if vocabulary is None or token in vocabulary.special:
                return Control(token)
            if token.encode() in vocabulary.tokens:
                return Literal(token)
            raise GrammarError(f"the vocabulary has no token {token!r}", hint="name one of its tokens")
        if vocabulary is None:  # the plug-in for vLLM knows the error by the word "vocabulary" of its hint
            raise GrammarError(
                f"which token has the id {token} depends on the vocabulary", hint="pass vocabulary=, or name the token"
            )
        if token in names:
            return Control(names[token])
        data = vocabulary.tokens[token] if token < len(vocabulary.tokens) else None
        if data is None:
            raise GrammarError(f"the vocabulary has no token {token}", hint="name one of its tokens")
        try:
            return Literal(data.decode())
        except UnicodeDecodeError:
            raise GrammarError(f"token {token} is part of a character", hint="write the character") from None

    return expression
