"""Collector of a trace: facts of each token during decoding, and their locations in the complete answer."""

from __future__ import annotations

import codecs
import json
import math
import time
from bisect import bisect_right
from collections.abc import Collection, Generator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from string import ascii_letters, ascii_lowercase, ascii_uppercase, digits, punctuation
from typing import TYPE_CHECKING, Any

import numpy as np

from ..conversation.events import ValueMass
from ..conversation.trace import ForbiddenToken, How, TokenRole, Trace, TracedToken
from ..json import resolve_local, unescape
from .call_places import CallPlaces
from .json_places import JsonPlaces
from .logprobs import log_mass, log_softmax
from .retokenise import common_prefix, may_say

if TYPE_CHECKING:
    import numpy.typing as npt

    from ..masks import Matcher
    from ..vocabulary.vocabulary import Vocabulary

#: Maximum number of removed tokens that are listed at each position, and the minimum probability of one.
MAX_FORBIDDEN = 6
LEAST_FORBIDDEN = 0.001

#: Maximum number of allowed tokens that are listed individually.
MAX_NAMED = 8

#: Maximum length of a quotation of a schema in a trace, in characters.
MAX_SCHEMA = 240

#: Maximum number of references that are followed one after the other, and of unions inside each other: they may be
#: cyclic.
MAX_FOLLOWED = 8

#: In place of the first byte of a token: it is a control token, or one that ends a text.
_CONTROL, _END = 256, 257

#: Characters of ASCII that are neither white space nor control characters.
_PRINTABLE = frozenset(ascii_letters + digits + punctuation)


@dataclass(frozen=True)
class Observation:
    """A mask and the model's probabilities, before a token is accepted.

    Attributes:
        allowed: number of allowed tokens; None if no mask was computed.
        probabilities: the probabilities of all tokens; None if the model was not asked.
        removed: the sum of the probabilities of the forbidden tokens.
        forbidden: the likeliest forbidden tokens.
        expected: a description of the mask.
        kept: log-probability of the allowed tokens; None if the model was not asked.
    """

    allowed: int | None
    probabilities: npt.NDArray[np.float64] | None = None
    removed: float | None = None
    forbidden: tuple[ForbiddenToken, ...] = ()
    expected: str = ""
    kept: float | None = None


@dataclass
class _Record:
    """A written token; its location is added when the answer is complete."""

    token: TracedToken
    data: bytes
    chosen: str | None = None  # its text, if the model chose it
    kept: float | None = None  # log-probability of the allowed tokens


@dataclass
class Tracer:
    """Collects the trace of one answer. The loop reports its tokens, and the output reports its calls.

    Args:
        vocabulary: of the tokens.
        model: the model's name.
        only_masses: collect only `masses`: no descriptions, and no removed tokens.
    """

    vocabulary: Vocabulary
    model: str
    only_masses: bool = False
    model_seconds: float = 0.0
    prompt_seconds: float = 0.0

    def __post_init__(self) -> None:
        self._records: list[_Record] = []
        self._taken_back: _Record | None = None  # a chosen token that was taken back, until it is replaced
        self._engine_seconds = 0.0
        self._resumed = time.perf_counter()
        self._recorded_seconds = (0.0, 0.0)  # of the model, and of the engine: those that are already in records
        self._prompt_bytes = 0  # bytes at the beginning of the tokens that belong to the prompt
        self._texts: list[tuple[int, int]] = []  # start and end of steps of free text

    # -- time --------------------------------------------------------------------------------------------------

    def timed(self, steps: Generator[Any, Any, None]) -> Generator[Any, Any, None]:
        """Run the loop, and measure its own time, without forward passes."""
        reply = None
        while True:
            self._resumed = time.perf_counter()
            try:
                item = steps.send(reply)
            except StopIteration:
                return
            finally:
                self._engine_seconds += time.perf_counter() - self._resumed
            try:
                reply = yield item
            except GeneratorExit:
                steps.close()
                raise

    def forward(self, seconds: float, is_first: bool) -> None:
        """Add the time of a forward pass."""
        self.model_seconds += seconds
        if is_first:
            self.prompt_seconds = seconds

    # -- tokens ------------------------------------------------------------------------------------------------

    def observe(
        self, logits: npt.NDArray[np.float32] | None, allowed: npt.NDArray[np.intp], matcher: Matcher, held: bytes
    ) -> Observation:
        """Return the facts of a position before a token is accepted; its own time does not count as engine time.

        Args:
            logits: the model's; None if it was not asked.
            allowed: ids of the allowed tokens.
            matcher: after the pending text.
            held: the pending text (certain, but not written in tokens yet).
        """
        kept = None if logits is None else log_mass(logits, allowed)
        if self.only_masses:
            return Observation(len(allowed), kept=kept)
        begin = time.perf_counter()
        seen = Observation(len(allowed), expected=self._expected(allowed, held), kept=kept)
        known = None if logits is None else np.where(np.isnan(logits), -np.inf, logits)  # NaN: probability 0
        if known is not None and np.isfinite(known.max()):
            probabilities = np.exp(log_softmax(known))
            removed = probabilities.copy()
            removed[allowed] = 0.0
            forbidden = self._likeliest(removed, matcher, held)
            seen = replace(seen, probabilities=probabilities, removed=float(removed.sum()), forbidden=forbidden)
        self._resumed += time.perf_counter() - begin
        return seen

    def add(self, token_id: int, how: How, seen: Observation | None, *, reasoning: bool, healed: int) -> None:
        """Record a token that was accepted.

        Args:
            token_id: the token.
            how: its origin.
            seen: the facts of its position.
            reasoning: it is a part of the reasoning.
            healed: number of bytes, from its beginning, that the prompt already had.
        """
        self._prompt_bytes += healed
        data = self.vocabulary.tokens[token_id]
        control = self._name(token_id) if data is None else ""
        engine = self._engine_seconds + time.perf_counter() - self._resumed
        model_before, engine_before = self._recorded_seconds
        model_seconds, engine_seconds = self.model_seconds - model_before, engine - engine_before
        self._recorded_seconds = (self.model_seconds, engine)
        taken_back, self._taken_back = self._taken_back, None
        if taken_back is not None:  # the model made its choice there: the facts are those of that position
            first, kept = taken_back.token, taken_back.kept
            token = replace(
                first,
                token_id=token_id,
                control=control,
                instead_of=first.instead_of or taken_back.chosen,
                model_seconds=first.model_seconds + model_seconds,
                engine_seconds=first.engine_seconds + engine_seconds,
            )
        else:
            seen = seen or Observation(None)
            kept = seen.kept if how == "sampled" else None
            token = TracedToken(
                token_id,
                text="",  # known when the answer is complete, as its location
                control=control,
                how=how,
                allowed=seen.allowed,
                probability=None if seen.probabilities is None else float(seen.probabilities[token_id]),
                removed=seen.removed,
                forbidden=seen.forbidden,
                expected=seen.expected,
                role="reasoning" if reasoning else "text",
                model_seconds=model_seconds,
                engine_seconds=engine_seconds,
            )
        chosen = (data or b"").decode("utf-8", "replace") if how == "sampled" else None
        self._records.append(_Record(token, data or b"", chosen, kept))

    def take_back(self) -> None:
        """Remove the last token, which the tokenizer joins with the following text."""
        self._taken_back = self._records.pop()

    def reasoned(self) -> None:
        """Record that all tokens so far are reasoning."""
        for record in self._records:
            record.token = replace(record.token, role="reasoning")

    # -- output ------------------------------------------------------------------------------------------------

    def locate(self, text: str, raw: str, begin: int) -> None:
        """Record where free text is in the raw text.

        Args:
            text: the text of an event.
            raw: the raw text so far.
            begin: index in it of the first character of the event's step.
        """
        # A parser holds back text that may begin a call, so the event may be several steps later.
        after = self._texts[-1][1] if self._texts else 0
        place = raw.rfind(text, after)
        self._texts.append((place, place + len(text)) if place >= 0 else (begin, len(raw)))

    def trace(
        self, raw: str, prompt_tokens: int, calls: Sequence[CallPlaces], schemas: Mapping[str | None, Any], json_at: int
    ) -> Trace:
        """Return the trace of the complete answer.

        Args:
            raw: its raw text.
            prompt_tokens: number of tokens of the prompt.
            calls: the places of each call.
            schemas: the schemas of the tools' arguments, and under None that of JSON that is not a call.
            json_at: the index of such JSON in the raw text; -1 if there is none.
        """
        finder = _Finder(raw, self._texts, calls, schemas, json_at)
        return Trace(
            tuple(self._located(finder)),
            self.model,
            self.vocabulary.size,
            prompt_tokens,
            self.prompt_seconds,
            self.model_seconds,
            self._engine_seconds,
        )

    def masses(self, raw: str, calls: Sequence[CallPlaces], json_at: int) -> tuple[ValueMass, ...]:
        """Return for each value the share of the probability that the grammar allows, in the order of their beginnings;
        arguments as for `trace`."""
        masses: dict[tuple[Any, Any, Any, Any], list[float]] = {}  # by place: the log-probabilities of its choices
        tokens = self._located(_Finder(raw, self._texts, calls, {}, json_at))
        for record, token in zip(self._records, tokens, strict=True):
            if record.kept is not None:
                part = token.role if token.pointer is None else "value"
                masses.setdefault((part, token.pointer, token.tool, token.call), []).append(record.kept)
        return tuple(
            ValueMass(part, pointer, tool, call, len(kept), math.fsum(kept), math.exp(min(kept)))
            for (part, pointer, tool, call), kept in masses.items()
        )

    def _located(self, finder: _Finder) -> list[TracedToken]:
        """Return the tokens with their texts and locations."""
        decode = codecs.getincrementaldecoder("utf-8")("replace").decode
        tokens: list[TracedToken] = []
        begin, prompt_bytes = 0, self._prompt_bytes
        for number, record in enumerate(self._records):
            skipped = min(prompt_bytes, len(record.data))
            prompt_bytes -= skipped
            text = decode(record.data[skipped:])
            if number == len(self._records) - 1 and begin + len(text) < len(finder.raw):
                text += decode(b"", final=True)  # an incomplete character at the end
            tokens.append(finder.located(replace(record.token, text=text), begin))
            begin += len(text)
        return tokens

    # -- words -------------------------------------------------------------------------------------------------

    def _name(self, token_id: int) -> str:
        return self.vocabulary.derived(_control_names).get(token_id, f"<{token_id}>")

    def _text(self, token_id: int) -> str:
        data = self.vocabulary.tokens[token_id]
        return self._name(token_id) if data is None else data.decode("utf-8", "replace")

    def _likeliest(self, removed: npt.NDArray[np.float64], matcher: Matcher, held: bytes) -> tuple[ForbiddenToken, ...]:
        """Return the likeliest forbidden tokens, given the probabilities of all tokens by id, 0 for allowed ones."""
        count = min(MAX_FORBIDDEN, len(removed))
        ids = np.argpartition(removed, len(removed) - count)[len(removed) - count :]
        ids = ids[np.argsort(-removed[ids], kind="stable")]
        return tuple(
            ForbiddenToken(token_id, self._text(token_id), float(removed[token_id]), self._why(token_id, matcher, held))
            for token_id in ids.tolist()
            if removed[token_id] >= LEAST_FORBIDDEN
        )

    def _why(self, token_id: int, matcher: Matcher, held: bytes) -> str:
        """Return a description of the reason why a token is forbidden."""
        data = self.vocabulary.tokens[token_id]
        if not data:
            ends = token_id in self.vocabulary.eos
            return "the answer is not complete" if ends else "this control token may not come here"
        size = common_prefix(data, held)
        if size == len(held):
            while size < len(data) and may_say(matcher, data[len(held) : size + 1]):
                size += 1
        if size == len(data):
            return "it fits, but the tokenizer spells the fixed text otherwise, or the token budget is too short"
        fits = data[:size].decode("utf-8", "ignore")
        if not fits:
            return "nothing that is allowed begins with it"
        return f"{_quoted(fits)} fits, {_quoted(data[len(fits.encode()) :].decode('utf-8', 'replace'))} does not"

    def _expected(self, allowed: npt.NDArray[np.intp], held: bytes) -> str:
        """Return a description of a set of allowed tokens: all of them if they are few, else the kinds of their first
        bytes. ``held``: the pending text, if tokens have to begin with it."""
        first = self.vocabulary.derived(_first_bytes)
        if len(allowed) <= MAX_NAMED:
            texts = sorted({self._text(int(token)) for token in allowed}, key=lambda text: (len(text), text))
            return "only " + ", ".join(_quoted(text) for text in texts)
        counts = np.bincount(first[allowed], minlength=_END + 1)
        words = describe(bytes(np.flatnonzero(counts[:_CONTROL]).tolist()))
        if held:
            words = f"{_quoted(held.decode('utf-8', 'replace'))}, or the beginning of it"
        if counts[_END]:
            words += ", or the end of the answer"
        elif counts[_CONTROL]:
            words += ", or a control token"
        return words.removeprefix(", or ")


@dataclass
class _Finder:
    """Finds the location of each token in the calls and the JSON of an answer.

    Args:
        raw: the raw text of the answer.
        texts: start and end in it of each piece of free text, in order.
        calls: see `Tracer.trace`; so for ``schemas`` and ``json_at``.
    """

    raw: str
    texts: Sequence[tuple[int, int]]
    calls: Sequence[CallPlaces]
    schemas: Mapping[str | None, Any]
    json_at: int

    def __post_init__(self) -> None:
        self._starts = [call.name[0] for call in self.calls]
        self._text_starts = [start for start, _ in self.texts]
        self._places = JsonPlaces(self.raw[self.json_at :]) if self.json_at >= 0 else None
        self._rules: dict[tuple[str | None, str], str] = {}  # by tool and pointer

    def located(self, token: TracedToken, begin: int) -> TracedToken:
        """Return a token with its location. It begins at index ``begin`` of the raw text, but is located by its first
        character that is not white space, a comma or a colon: a token may have these before the value that it begins.
        """
        if token.role == "reasoning":
            return token
        end = begin + len(token.text)
        before = len(token.text) - len(token.text.lstrip(" \t\r\n,:"))
        first = begin + before if before < len(token.text) else begin
        number = bisect_right(self._starts, max(begin, end - 1)) - 1
        if number >= 0:
            call = self.calls[number]
            if begin < call.name[1]:
                return replace(token, role="tool", tool=call.tool, call=number)
            if (found := call.at(first)) is not None:
                return self._at(replace(token, tool=call.tool, call=number), *found)
        if self._places is not None and first >= self.json_at:
            return self._at(token, *self._places.at(first - self.json_at))
        number = bisect_right(self._text_starts, begin) - 1
        is_text = number >= 0 and begin < self.texts[number][1]
        return replace(token, role="text" if is_text else "format")

    def _at(self, token: TracedToken, pointer: str, role: TokenRole) -> TracedToken:
        """Return a token with the pointer of the value in which it begins, and what the schema says of that value."""
        key = (token.tool, pointer)
        if key not in self._rules:
            self._rules[key] = rule_at(self.schemas.get(token.tool), pointer)
        return replace(token, role=role, pointer=pointer, schema=self._rules[key])


def rule_at(schema: Any, pointer: str) -> str:
    """Return the part of a schema for the value at a JSON pointer, as JSON text; empty if there is none.

    It is for people: conditions (``if``, ``not``, ``dependentSchemas``) are ignored.
    """
    schemas = [schema]
    for step in pointer.split("/")[1:]:
        name = unescape(step)
        schemas = [below for parent in schemas for below in _below(schema, parent, name)]
    plain = [_brief(_followed(schema, part)) for part in schemas if isinstance(part, Mapping)]
    texts = list(dict.fromkeys(json.dumps(part, ensure_ascii=False) for part in plain if part))
    text = " or ".join(texts)
    return text if len(text) <= MAX_SCHEMA else text[: MAX_SCHEMA - 1] + "…"


def _followed(root: Any, schema: Any) -> Any:
    """Return a schema with references (``$ref``) within ``root`` followed; one that cannot be followed is returned."""
    for _ in range(MAX_FOLLOWED):
        if not (isinstance(schema, Mapping) and isinstance(schema.get("$ref"), str)):
            return schema
        try:
            schema = resolve_local(root, schema["$ref"])
        except (LookupError, TypeError):
            return schema
    return schema


def _below(root: Any, schema: Any, name: str, depth: int = MAX_FOLLOWED) -> list[Any]:
    """Return the schemas that apply to the member or item ``name`` of a value of ``schema``: by ``properties`` or
    ``additionalProperties``, ``prefixItems`` or ``items``, also within ``anyOf``, ``oneOf`` and ``allOf``."""
    schema = _followed(root, schema)
    if not isinstance(schema, Mapping) or not depth:
        return []
    below: list[Any] = []
    properties, items = schema.get("properties"), schema.get("items")
    if isinstance(properties, Mapping) and name in properties:
        below.append(properties[name])
    elif isinstance(schema.get("additionalProperties"), Mapping):
        below.append(schema["additionalProperties"])
    if name.isdigit():
        prefix = schema.get("prefixItems", items if isinstance(items, list) else [])
        if isinstance(prefix, list) and int(name) < len(prefix):
            below.append(prefix[int(name)])
        elif isinstance(items, Mapping):
            below.append(items)
    for keyword in ("anyOf", "oneOf", "allOf"):
        for part in schema.get(keyword, ()) if isinstance(schema.get(keyword, ()), list) else ():
            below += _below(root, part, name, depth - 1)
    return below


#: Keywords without a constraint on the value itself.
_SILENT = frozenset({"title", "description", "examples", "$defs", "definitions", "$schema", "$id", "default"})


def _brief(schema: Any) -> Any:
    """Return a schema without the schemas of its parts."""
    if not isinstance(schema, Mapping):
        return schema
    brief = {name: value for name, value in schema.items() if name not in _SILENT}
    if isinstance(brief.get("properties"), Mapping):
        brief["properties"] = list(brief["properties"])
    return brief


@lru_cache(maxsize=512)
def describe(data: bytes) -> str:
    """Return a description of a set of possible next bytes: ``b"0123456789}"`` -> "a digit, }"."""
    characters = {chr(byte) for byte in data if byte < 128}
    if len(characters & _PRINTABLE) >= 80:
        missing = sorted(_PRINTABLE - characters)
        return "any character" + (" but " + " ".join(missing) if missing else "")
    parts: list[str] = []
    rest = characters & _PRINTABLE
    groups = (ascii_letters, "a letter"), (ascii_lowercase, "a small letter"), (ascii_uppercase, "a capital letter")
    for group, words in groups:
        if rest.issuperset(group):
            parts.append(words)
            rest -= set(group)
    if letters := rest.intersection(ascii_letters):
        parts.append(_ranges(letters))
    if found := rest.intersection(digits):
        parts.append("a digit" if len(found) == len(digits) else _ranges(found))
    if space := characters.intersection(" \t\n\r"):
        parts.append("a space" if space == {" "} else "white space")
    parts += sorted(rest.intersection(punctuation))
    if any(byte >= 128 for byte in data):
        parts.append("a character beyond ASCII")
    return ", ".join(parts) or "nothing"


def _ranges(characters: Collection[str]) -> str:
    """Return characters with runs of three or more as ranges: ``{"a", "b", "c", "x"}`` -> "a-c x"."""
    runs: list[str] = []
    for character in sorted(characters):
        if runs and ord(runs[-1][-1]) == ord(character) - 1:
            runs[-1] += character
        else:
            runs.append(character)
    return " ".join(f"{run[0]}-{run[-1]}" if len(run) > 2 else " ".join(run) for run in runs)


def _quoted(text: str) -> str:
    return f"`{text}`"


def _control_names(vocabulary: Vocabulary) -> Mapping[int, str]:
    return {number: name for name, number in vocabulary.special.items()}


def _first_bytes(vocabulary: Vocabulary) -> npt.NDArray[np.intp]:
    """Return the first byte of each token, or `_CONTROL` or `_END`."""
    first = [data[0] if data else _CONTROL for data in vocabulary.tokens]
    for token_id in vocabulary.eos:
        first[token_id] = _END
    return np.array(first, dtype=np.intp)
