"""Places of the values that a token budget cut, in a text that an engine wrote."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

from ..conversation.events import TokenWritten
from ..vocabulary.vocabulary import Vocabulary
from .output import Output
from .params import GenerateParams, OutputParser


def cut_places(
    vocabulary: Vocabulary, token_ids: Sequence[int], closed_at: int, parser: OutputParser | None, is_json: bool
) -> list[str]:
    """Return where the budget cut an answer: pointers into its text, or name and pointer for calls.

    Args:
        vocabulary: the bytes of the tokens.
        token_ids: the tokens of the answer, without the one that ends it.
        closed_at: index of the first token at which the budget excluded one that the grammar allows.
        parser: of the calls; None if the answer has none.
        is_json: a text answer is JSON.
    """
    tokens = vocabulary.tokens
    size = sum(len(tokens[token] or b"") for token in token_ids[:closed_at])
    # `Output` finds the places while it reads the tokens of a `Decoding`. Here these are known: this has what it asks.
    decoding: Any = SimpleNamespace(
        backend=SimpleNamespace(vocabulary=vocabulary),
        params=GenerateParams(equal_calls=True),  # no call is left out
        token_ids=list(token_ids),
        closed_at=size,
        reason="length",
        reasoning=None,
        tracer=None,
        stop_requested=False,
    )
    output = Output(decoding, parser, is_json=is_json)
    for token in token_ids:
        output.feed(TokenWritten(token, tokens[token] or b"", False))
    output.close()
    calls = output.calls
    if any(call.fault == "unfinished" for call in calls):
        return [""]  # the budget was less than the shortest answer
    places = [*output.truncated_in_text(), *(call.name + pointer for call in calls for pointer in call.cut)]
    # Of any other text than JSON, calls, and free text beside calls, nobody can say where it was cut.
    return places if places or is_json or parser is not None else [""]
