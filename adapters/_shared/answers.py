"""Answers on their way to a framework: calls that must not run, cut answers, collected streams; and what an answer
reports of its probabilities as JSON data: its tokens in OpenAI's form, exact choices, and masses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from toolgrammar.core.conversation import (
    ArgumentsDelta,
    CallStart,
    Event,
    Finish,
    Generation,
    Message,
    MessageBuilder,
    TokenWritten,
    ToolCall,
    Usage,
)
from toolgrammar.core.errors import BudgetError, CancelledError, InvalidArgumentsError, ModelError, Place
from toolgrammar.core.generation import GenerateParams
from toolgrammar.core.models import LocalModel, Model
from toolgrammar.core.vocabulary import Vocabulary

#: Log-probability that stands for one that JSON has no number for, as OpenAI writes it.
NEVER = -9999.0

#: Options of frameworks that have a place for probabilities: OpenAI's two, and ours (see `GenerateParams.masses`).
PROBABILITIES = ("logprobs", "top_logprobs", "masses")


def problem(call: ToolCall) -> str | None:
    """Return why a call must not be executed; None for a call that may."""
    if call.error is not None:
        return call.error
    if call.cut:
        return "cut short by the token budget at " + ", ".join(pointer or "(root)" for pointer in call.cut)
    return None


def executable_text(call: ToolCall) -> str:
    """Return the arguments for a framework that executes what parses: a call that must not run does not parse.

    A cut call is valid JSON, and frameworks do not look at the finish reason. The reason follows the arguments, so
    that the framework's own handling of malformed arguments reports it to the model instead of running the tool.
    """
    reason = problem(call)
    return call.arguments_text if reason is None else f"{call.arguments_text} <{reason}>"


def require_executable(call: ToolCall) -> None:
    """Refuse a call that must not be executed.

    Raises:
        InvalidArgumentsError: it is not valid, or the token budget cut it short.
    """
    if reason := problem(call):
        raise InvalidArgumentsError(f"the call of {call.name!r} must not run: {reason}", place=Place(tool=call.name))


def cut_places(message: Message, cut: Sequence[str]) -> list[str]:
    """Return where the budget cut an answer: pointers into its text, or name and pointer for calls."""
    return [*cut, *(call.name + pointer for call in message.tool_calls for pointer in call.cut)]


def require_whole(generation: Generation | Finish, params: GenerateParams) -> None:
    """Refuse a structured answer that the token budget cut: the framework would take it for a whole one.

    Raises:
        BudgetError: the token budget ran out inside the structured answer.
    """
    if generation.cut and params.json_mode is not None:
        places = ", ".join(pointer or "(root)" for pointer in generation.cut)
        raise BudgetError(f"the token budget ran out inside the answer, at {places}", hint="raise max_tokens")


def require_ended(finish: Finish) -> None:
    """Refuse an answer that was cancelled on the way: frameworks take what came for all of it.

    Raises:
        CancelledError: it was.
    """
    if finish.reason == "cancelled":
        raise CancelledError("the generation was cancelled", hint="the partial text is in the stream's events")


def forced_share(usage: Usage) -> float:
    """Return the share of forced tokens in the output."""
    return round(usage.forced_tokens / usage.completion_tokens, 4) if usage.completion_tokens else 0.0


class Collector(MessageBuilder):
    """Collector of the events of one stream so far.

    Attributes:
        started: the calls that have begun, by index.
        arguments: the arguments so far of each, as JSON text.
    """

    def __init__(self) -> None:
        super().__init__()
        self.started: dict[int, CallStart] = {}
        self.arguments: dict[int, str] = {}

    def add(self, event: Event | Generation) -> None:
        """Take the next event."""
        super().add(event)
        if isinstance(event, CallStart):
            self.started[event.index] = event
        elif isinstance(event, ArgumentsDelta):
            self.arguments[event.index] = self.arguments.get(event.index, "") + event.text


# -- probabilities -----------------------------------------------------------------------------------------------------


def probability_params(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of `GenerateParams` that OpenAI's ``logprobs`` and ``top_logprobs`` and our ``masses`` ask for.

    Args:
        given: options of a framework; None, and others than these, do not count.

    Raises:
        ModelError: ``logprobs`` is no flag, or ``top_logprobs`` is given without it.
    """
    wanted, count, masses = (given.get(name) for name in PROBABILITIES)
    if wanted is not None and not isinstance(wanted, bool):
        raise ModelError(f"logprobs is {wanted!r}", hint="give True or False, and top_logprobs=N for the likeliest")
    if count is not None and not wanted:
        raise ModelError("top_logprobs is given without logprobs", hint="give logprobs=True, too")
    return {"logprobs": (count or 0) if wanted else None, "masses": masses}


def vocabulary_of(model: Model, params: GenerateParams) -> Vocabulary | None:
    """Return the vocabulary for `TextTokens`; None if no log-probabilities were asked for."""
    return model.vocabulary if params.logprobs is not None and isinstance(model, LocalModel) else None


def reported_fields(end: Finish | Generation, cut: Sequence[str] = ()) -> dict[str, Any]:
    """Return the optional fields by which an answer reports on itself, as JSON data; empty ones are left out.

    Args:
        end: the answer, or the last event of its stream.
        cut: the places that the token budget cut.

    Returns:
        ``cut``, ``choices`` (see `ChoiceMade`), ``sureness`` (see `CallSureness`), ``masses`` (see `ValueMass`) and
        ``repeated``.
    """
    fields: dict[str, Any] = {
        "cut": list(cut),
        "choices": [{**vars(made), "probabilities": dict(made.probabilities)} for made in end.choices],
        "sureness": [{**vars(call), "values": dict(call.values), "least": call.least} for call in end.sureness],
        "masses": [{**vars(mass), "kept": max(mass.kept, NEVER)} for mass in end.masses],  # JSON has no infinity
        "repeated": end.repeated,
    }
    return {name: value for name, value in fields.items() if value not in ([], None)}


def extension_field(end: Finish | Generation, cut: Sequence[str] = ()) -> dict[str, Any]:
    """Return ``{"toolgrammar": reported_fields(...)}``, for a response of a protocol; empty if nothing is reported."""
    fields = reported_fields(end, cut)
    return {"toolgrammar": fields} if fields else {}


class TextTokens:
    """Finds the tokens that wrote the text of an answer, as the text comes.

    Reasoning, markup and calls have tokens of their own, which are left out. A token belongs to the piece of text in
    which it ends.

    Args:
        vocabulary: of the tokens; None: log-probabilities were not asked for, and no tokens are returned.
    """

    def __init__(self, vocabulary: Vocabulary | None) -> None:
        self._vocabulary = vocabulary
        self._tokens: list[tuple[int, TokenWritten]] = []  # each with the position in `_data` where it ends
        self._data = bytearray()  # bytes of all tokens: text, and the markup of calls
        self._next = 0  # index of the first token behind the text so far
        self._text_end = 0  # position in `_data` where that text ends

    def add(self, token: TokenWritten) -> None:
        """Take the next token of the answer."""
        if self._vocabulary is not None and token.data and not token.reasoning:
            self._data += token.data
            self._tokens.append((len(self._data), token))

    def next_tokens(self, text: str) -> list[dict[str, Any]] | None:
        """Return the tokens that end in the next piece of the text, in the form of chat completions."""
        if self._vocabulary is None:
            return None
        return [
            {
                **_openai_token(token.data, token.logprob),
                "top_logprobs": [_openai_token(self._bytes_of(likely), value) for likely, value in token.likeliest],
            }
            for token in self._take(text)
        ]

    def _take(self, text: str) -> list[TokenWritten]:
        """Return the tokens of the next piece of the text; those of the markup before it are passed over."""
        data = text.encode("utf-8", "replace")
        begin = self._data.find(data, self._text_end)
        if begin < 0:
            return []
        self._text_end = begin + len(data)
        found = []
        while self._next < len(self._tokens) and self._tokens[self._next][0] <= self._text_end:
            end, token = self._tokens[self._next]
            self._next += 1
            if end > begin:  # the tokens before it have written markup
                found.append(token)
        return found

    def _bytes_of(self, token_id: int) -> bytes:
        """Return the bytes of a token; of a control token, which has none, its name."""
        assert self._vocabulary is not None
        data = self._vocabulary.tokens[token_id]
        if data is not None:
            return data
        return next((name for name, number in self._vocabulary.special.items() if number == token_id), "").encode()


def text_tokens(
    vocabulary: Vocabulary | None, tokens: Sequence[TokenWritten], text: str
) -> list[dict[str, Any]] | None:
    """Return the tokens that wrote the text of a whole answer; None if log-probabilities were not asked for."""
    finder = TextTokens(vocabulary)
    for token in tokens:
        finder.add(token)
    return finder.next_tokens(text)


def _openai_token(data: bytes, logprob: float | None) -> dict[str, Any]:
    value = NEVER if logprob is None or logprob < NEVER else logprob
    return {"token": data.decode("utf-8", "replace"), "logprob": value, "bytes": list(data)}
