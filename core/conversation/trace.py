"""Trace of one answer: how each token came, what the grammar forbade there, and the time that it took."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any, Literal

How = Literal["sampled", "forced", "jumped", "closed"]

TokenRole = Literal["text", "reasoning", "format", "tool", "name", "string", "number", "literal", "structure"]


@dataclass(frozen=True)
class ForbiddenToken:
    """A token that the mask removed where the model gave it some probability.

    Attributes:
        token_id: the token.
        text: its text; a control token's name.
        probability: what the model gave it.
        why: the reason that it was not allowed, in words.
    """

    token_id: int
    text: str
    probability: float
    why: str


@dataclass(frozen=True)
class TracedToken:
    """One token of an answer.

    Probabilities are the model's own (the softmax of its logits), before the mask, bias, penalty and temperature.

    Attributes:
        token_id: the token.
        text: the characters that it completed; the texts of all tokens, joined, are ``Generation.raw``.
        control: its name, if it is a control token, which has no text.
        how: ``"sampled"``: the model chose it among several; ``"forced"``: the mask left this token alone;
            ``"jumped"``: the grammar fixes the text, and no mask was computed; ``"closed"``: the token budget was
            short, and this token is of the shortest valid end.
        allowed: number of tokens that the mask allowed; None where no mask was computed.
        probability: of this token; None where the model was not asked.
        removed: probability of all tokens that were not allowed; None where the model was not asked.
        forbidden: the likeliest of those, with the likeliest first.
        expected: what the grammar allowed here, in words; empty where no mask was computed.
        instead_of: the token's text that the model had chosen, and the tokenizer joins with forced text after it.
        role: what the token is a part of, at its first character that is neither white space, comma nor colon: free
            ``"text"``, ``"reasoning"``, the ``"format"`` of calls, the name of a ``"tool"``; and inside of arguments
            and JSON the ``"name"`` of a member, a ``"string"``, ``"number"``, ``"literal"`` (true, false, null), or a
            bracket or tag (``"structure"``).
        pointer: JSON pointer of the value there, in the call's arguments or the JSON answer; None outside of both.
        tool: the tool whose call it belongs to.
        call: number of that call in the answer, from 0.
        schema: what the schema says of the value at ``pointer``, as JSON; empty if nothing was found.
        model_seconds: time of the forward pass before it. The first has the prompt; one of a batch is counted whole.
        engine_seconds: time of decoding since the token before: masks, choosing, spelling, budget.
    """

    token_id: int
    text: str
    control: str
    how: How
    allowed: int | None = None
    probability: float | None = None
    removed: float | None = None
    forbidden: tuple[ForbiddenToken, ...] = ()
    expected: str = ""
    instead_of: str | None = None
    role: TokenRole = "text"
    pointer: str | None = None
    tool: str | None = None
    call: int | None = None
    schema: str = ""
    model_seconds: float = 0.0
    engine_seconds: float = 0.0


@dataclass(frozen=True)
class Trace:
    """How an answer was written, token by token; see ``GenerateParams.trace``.

    In a notebook it shows itself as a page; `to_html` and `to_dict` are the same for a file.

    Attributes:
        tokens: the tokens of ``Generation.token_ids``, in order.
        model: the model's name.
        vocabulary_size: number of tokens of the vocabulary.
        prompt_tokens: number of tokens of the prompt.
        prompt_seconds: time of the first forward pass, which reads the prompt.
        model_seconds: time of all forward passes, the first included.
        engine_seconds: time of decoding without them, and without collecting the trace.
        earlier: traces of the answers before this one that were not valid, where the model was asked again.
        problems: what was wrong with this answer, if the model was asked again after it.
    """

    tokens: tuple[TracedToken, ...]
    model: str
    vocabulary_size: int
    prompt_tokens: int
    prompt_seconds: float
    model_seconds: float
    engine_seconds: float
    earlier: tuple[Trace, ...] = field(default=(), repr=False)
    problems: tuple[str, ...] = ()

    def __repr__(self) -> str:
        asked = sum(token.how == "sampled" for token in self.tokens)
        return (
            f"Trace({len(self.tokens)} tokens, {asked} of them sampled; "
            f"model {self.model_seconds:.3f} s, engine {self.engine_seconds:.3f} s)"
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the trace as JSON data; fields without a value are left out of a token."""
        return {
            **vars(self),
            "tokens": [_plain(token) for token in self.tokens],
            "problems": list(self.problems),
            "earlier": [trace.to_dict() for trace in self.earlier],
        }

    def to_json(self, indent: int | None = None) -> str:
        """Return `to_dict` as JSON text."""
        return json.dumps(self.to_dict(), ensure_ascii=False, indent=indent)

    def to_html(self, title: str = "How this answer was written") -> str:
        """Return one self-contained page: the text with each token's facts, and where mass and time went.

        Args:
            title: heading of the page.
        """
        from ..pages.trace import trace_page

        return trace_page(self.to_dict(), title)

    def _repr_html_(self) -> str:
        from ..pages.frame import embedded

        return embedded(self.to_html())


def _plain(token: TracedToken) -> dict[str, Any]:
    """Return a token as a dict for JSON, with its text, and without empty fields."""
    plain = {name: value for name, value in vars(token).items() if value is not None and value != "" and value != ()}
    plain["text"] = token.text
    if token.forbidden:
        plain["forbidden"] = [dict(vars(forbidden)) for forbidden in token.forbidden]
    return plain
