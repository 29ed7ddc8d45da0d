"""OpenAI's completions: ``POST /v1/completions``. A text is gone on with, without a chat template.

Source: the types of the ``openai`` package, version 2. ``response_format`` is ours, as in chat completions: what
follows the text is JSON.
"""

from __future__ import annotations

import codecs
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from toolgrammar.core.conversation import Generation, Usage
from toolgrammar.core.models import LocalModel, Model
from toolgrammar.core.vocabulary import Vocabulary

from ... import _shared
from .. import parts, rows
from ..fields import Fields, RequestError
from ..rows import Form
from ..served import Served
from . import openai_form
from .base import ParsedRequest, Protocol, StreamWriter
from .chunks import Chunks

#: The token budget of a request that gives none, as in OpenAI's.
DEFAULT_MAX_TOKENS = 16


class Completions(Protocol):
    """OpenAI's completions."""

    path = "/v1/completions"
    summary = "Go on with a text, as OpenAI's completions"
    form = Form(
        {
            "model": rows.TEXT(needed=True),
            "prompt": (rows.TEXT | rows.LIST)(needed=True),
            "n": rows.COUNT(default=1),
            "best_of": rows.COUNT,
            "max_tokens": rows.COUNT(default=DEFAULT_MAX_TOKENS),
            "stop": parts.STOP,
            "logit_bias": parts.BIAS,
            "logprobs": parts.LIKELIEST,
            "echo": rows.FLAG,
            "response_format": rows.inner(parts.FORMAT),
            **parts.SAMPLING,
            **openai_form.STREAMING,
            **openai_form.PENALTIES,
            "user": rows.LABEL,
            "suffix": rows.refused("", hint="only the continuation of a text is supported"),
        }
    )

    def read(self, fields: Fields, served: Served) -> ParsedRequest:
        """Return a request."""
        name = fields["model"]
        model = served.model(name)
        if not isinstance(model, LocalModel):
            hint = "ask it by /v1/chat/completions"
            raise RequestError("this model is on a server, and supports only conversations", field="model", hint=hint)
        texts = _texts(fields, model)
        answers, count = fields["n"], fields["logprobs"]
        if fields["best_of"] not in (None, answers):
            raise fields.error("best_of", "is not supported", "ask for n answers")
        options = {
            **parts.sampling(fields),
            **fields.of("max_tokens", "stop", "logit_bias"),
            "logprobs": None if count is None else parts.checked_logprobs(count, "logprobs", model),
        }
        schema = parts.schema_of(fields["response_format"])
        if fields["echo"] and count is not None:
            raise RequestError("echo and logprobs are given", field="echo", hint="a prompt has no log-probabilities")
        include_usage = openai_form.includes_usage(fields)
        params = served.params(name, options, fields["toolgrammar"], schema=schema)
        details = {"echoes": fields["echo"], "vocabulary": None if count is None else model.vocabulary}
        return ParsedRequest(
            name,
            (),
            params,
            fields["stream"],
            answers=answers * len(texts),
            texts=texts,
            include_usage=include_usage,
            details=details,
        )

    def whole(self, parsed: ParsedRequest, answers: Sequence[Generation]) -> dict[str, Any]:
        """Return a completion."""
        vocabulary = parsed.details["vocabulary"]
        choices = [
            {
                "index": index,
                "text": _before(parsed, index) + answer.text,
                "logprobs": _logprobs(_shared.text_tokens(vocabulary, answer.tokens, answer.text), 0),
                "finish_reason": answer.finish_reason,
                **_shared.extension_field(answer, answer.cut),
            }
            for index, answer in enumerate(answers)
        ]
        return {**_head(parsed), "choices": choices, "usage": _usage(parsed, [answer.usage for answer in answers])}

    def stream(self, parsed: ParsedRequest) -> StreamWriter:
        """Return the writer of completion chunks."""
        return _Chunks(parsed)


COMPLETIONS = Completions()


def _texts(fields: Fields, model: Model) -> tuple[str, ...]:
    """Return the prompts: a text, the ids of one, or a list of either."""
    given = fields["prompt"]
    single = isinstance(given, str) or (given and all(isinstance(one, int) for one in given))
    texts = []
    for index, one in enumerate([given] if single else given):
        name = "prompt" if single else f"prompt[{index}]"
        texts.append(one if isinstance(one, str) else _text_of(one, fields, name, model.vocabulary))
        if not texts[-1]:
            raise fields.error(name, "is empty", "send a text to continue")
    if not texts:
        raise fields.error("prompt", "is empty", "send a text to continue")
    return tuple(texts)


def _text_of(ids: Any, fields: Fields, name: str, vocabulary: Vocabulary) -> str:
    """Return the text of token ids, which a field has; the token that begins every sequence is left out."""
    right = isinstance(ids, list) and all(type(one) is int and 0 <= one < vocabulary.size for one in ids)
    if not right:
        raise fields.error(name, "is neither a text nor token ids of this model")
    data = [vocabulary.tokens[token_id] for token_id in ids]
    if any(one is None for one in data[1:]):
        raise fields.error(name, "has a control token", "use /v1/chat/completions")
    try:
        return b"".join(one or b"" for one in data).decode()
    except UnicodeDecodeError:
        raise fields.error(name, "ends inside a character", "give the text") from None


def _before(parsed: ParsedRequest, index: int) -> str:
    """Return the text that comes before an answer: its prompt, if it is echoed."""
    return parsed.params_of(index).prefix if parsed.details["echoes"] else ""


def _head(parsed: ParsedRequest) -> dict[str, Any]:
    return {
        "id": openai_form.new_id("cmpl-"),
        "object": "text_completion",
        "created": int(time.time()),
        "model": parsed.model,
    }


def _usage(parsed: ParsedRequest, counts: Sequence[Usage]) -> dict[str, Any]:
    """Return the counts of all answers; a prompt with several answers counts once."""
    per_prompt = parsed.answers // len(parsed.texts)
    prompts = [openai_form.total(counts[first : first + per_prompt]) for first in range(0, len(counts), per_prompt)]
    return openai_form.usage(sum(prompts, Usage()))


def _logprobs(tokens: list[dict[str, Any]] | None, offset: int) -> dict[str, Any] | None:
    """Return log-probabilities in the form of completions.

    Args:
        tokens: in the form of chat completions; None: they were not asked for.
        offset: number of characters of the answer before them.
    """
    if tokens is None:
        return None
    decoder = codecs.getincrementaldecoder("utf-8")("replace")  # a character may have several tokens
    offsets = []
    for token in tokens:
        offsets.append(offset)
        offset += len(decoder.decode(bytes(token["bytes"])))
    return {
        "tokens": [_name(token) for token in tokens],
        "token_logprobs": [token["logprob"] for token in tokens],
        "top_logprobs": [{_name(one): one["logprob"] for one in token["top_logprobs"]} for token in tokens],
        "text_offset": offsets,
    }


def _name(token: Mapping[str, Any]) -> str:
    """Return the text of a token; of one that ends inside a character its bytes, as OpenAI writes them."""
    data = bytes(token["bytes"])
    try:
        return data.decode()
    except UnicodeDecodeError:
        return "bytes:" + "".join(f"\\x{byte:02x}" for byte in data)


class _Chunks(Chunks):
    """Writer of completion chunks."""

    def __init__(self, parsed: ParsedRequest) -> None:
        super().__init__(parsed, _head(parsed))
        self._size = 0  # of the answer so far, in characters

    def _first(self) -> Iterable[str]:
        self._size = 0
        if before := _before(self._parsed, self._index):
            yield self._chunk(text=before)

    def _text(self, text: str, tokens: list[dict[str, Any]] | None) -> str:
        self._size += len(text)
        return self._chunk(text=text, logprobs=_logprobs(tokens, self._size - len(text)))

    def _last(self, reason: str, note: Mapping[str, Any]) -> str:
        return self._chunk(reason, text="", **note)

    def _usage(self, counts: Sequence[Usage]) -> dict[str, Any]:
        return _usage(self._parsed, counts)
