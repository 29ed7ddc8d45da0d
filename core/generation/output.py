"""Output of one generation: typed events and the complete result, from decoding steps."""

from __future__ import annotations

import codecs
import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any

from ..basics.cached import cached_property
from ..conversation.equal_calls import UnequalCalls
from ..conversation.events import (
    ArgumentsDelta,
    CallEnd,
    CallStart,
    CallSureness,
    ChoiceMade,
    Event,
    Finish,
    Generation,
    MessageBuilder,
    ReasoningDelta,
    TextDelta,
    TokenWritten,
    Usage,
    ValueMass,
)
from ..conversation.reasoning import ReasoningTrimmer, begun_marker
from .call_places import AnswerReading, CallPlaces
from .json_places import truncated_pointers
from .loop import Decoding
from .params import OutputParser
from .sureness import sureness

if TYPE_CHECKING:
    from ..conversation.messages import ToolCall
    from ..conversation.trace import Trace
    from ..grammar import Grammar
    from ..vocabulary.vocabulary import Vocabulary

#: Minimum number of characters that count as the beginning of a marker; of a longer marker, more than half.
LEAST_MARKER = 3


@dataclass(eq=False)
class Output:
    """Converts the steps of one generation to typed events, and collects them.

    Args:
        decoding: the generation.
        parser: the parser of the wire format; None for plain text.
        barred: markers of calls. The beginning of one that the options or the budget denied is no part of the text.
        stop: strings that end a text; searched in text only, not in calls.
        is_json: the text is JSON, so that truncated values can be listed.
        reasoning: the text of the markers before and after the reasoning.
        marked: makes the reading grammar of the answer, if its calls are to be located; None: it has none.

    Laws: the concatenated deltas are the text, the reasoning and the arguments of `generation`; the events do not
    depend on where tokens end.
    """

    decoding: Decoding
    parser: OutputParser | None = None
    barred: Sequence[str] = ()
    stop: Sequence[str] = ()
    is_json: bool = False
    reasoning: tuple[str, str] = ("", "")
    marked: Callable[[], Grammar] | None = None

    def __post_init__(self) -> None:
        decoding = self.decoding
        # A marker that is a word may be ordinary text.
        self._barred = tuple(marker for marker in self.barred if not marker[0].isalnum())
        self._bars_all = decoding.params.tool_choice == "none"
        self._stop = tuple(word for word in self.stop if word)
        self._characters = codecs.getincrementaldecoder("utf-8")("replace")
        self._withheld = ""  # text that may begin a stop string
        self._thoughts = ReasoningTrimmer(*self.reasoning) if decoding.reasoning is not None else None
        self._has_thought = False
        self._at_answer_start = False  # newlines between reasoning and answer belong to neither
        self._answer_from = 0  # index in `raw` of its first character
        self._arguments_from = 0  # index in `raw` from which the arguments of the current call are searched
        self._step_from = 0  # index in `raw` of the first character of the current step
        self._tracer = decoding.tracer
        is_located = decoding.params.exact_choice or decoding.tracer is not None
        self._reading = AnswerReading(self.marked) if self.marked is not None and is_located else None
        self._ids: list[str] = []  # of all calls, with those that are left out
        self._bytes = 0  # number of bytes of the text, including the current step
        self._is_before_denial = True  # the budget has denied no choice so far
        self._before_denial: list[str] = []  # the current call's arguments up to the first denied choice
        self._stopped_by: str | None = None
        self._unequal = None if decoding.params.equal_calls else UnequalCalls()
        self._is_over = False  # after a stop string, a repeated call, or a marker that the budget denied
        self._is_denied = False  # the beginning of a marker was removed
        self._has_marker = False  # a call has begun
        self._built = MessageBuilder()
        self._control = markup_of(decoding.backend.vocabulary)
        self._raw: list[str] = []
        self._raw_size = 0

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        """The calls so far."""
        return self._built.message().tool_calls

    @property
    def is_denied_call(self) -> bool:
        """True if the answer was nothing but the beginning of a call that the options or the budget denied."""
        return self._is_denied and not self._has_content

    @property
    def _has_content(self) -> bool:
        """True if the answer has text or calls so far."""
        return bool(self._built.text.strip()) or self._built.has_calls

    @property
    def raw(self) -> str:
        """The exact text so far."""
        if len(self._raw) > 1:
            self._raw = ["".join(self._raw)]
        return self._raw[0] if self._raw else ""

    def _add_raw(self, text: str) -> None:
        self._raw.append(text)
        self._raw_size += len(text)

    def feed(self, step: TokenWritten) -> list[Event]:
        """Return the events of one step. A control token has no text; its name is passed to the parser of calls."""
        closed = self.decoding.closed_at
        before, self._bytes = self._bytes, self._bytes + len(step.data)
        self._is_before_denial = closed is None or before < closed >= self._bytes
        # The step at which the budget denied a choice: a call does not fit, whose marker the answer had begun.
        if closed == before and not step.reasoning and self._abandons_call(step.data):
            self.decoding.stop_requested = self._is_denied = True
        if self._is_denied:
            self._add_raw(self._characters.decode(step.data))
            return []
        if self._thoughts is not None:
            if step.reasoning:
                self._has_thought = True
                text = self._characters.decode(step.data)
                self._add_raw(text)
                return self._collected(_reasoning(self._thoughts.feed(text)))
            self._thoughts = None
            self._at_answer_start = self._has_thought
        events = self._read(self._characters.decode(step.data))
        name = "" if step.data or self.parser is None else self._control.get(step.token_id, "")
        return self._collected(itertools.chain(events, self._read_control(name)) if name else events)

    def close(self) -> list[Event]:
        """End the text; return its last events."""
        return self._collected(self._last_events())

    def finish(self, prompt_tokens: int, trace: Trace | None = None) -> Finish:
        """Return the last event: why the answer ended, its token counts, truncated values, choices and masses."""
        decoding = self.decoding
        reason = "tool_calls" if decoding.reason == "stop" and self._built.has_calls else decoding.reason
        usage = Usage(
            prompt_tokens=prompt_tokens,
            completion_tokens=len(decoding.token_ids),
            reasoning_tokens=decoding.reasoning_tokens,
            cached_tokens=decoding.sequence.cached_tokens,
            forced_tokens=decoding.sequence.forced_tokens,
            forward_passes=decoding.sequence.forward_passes,
        )
        choices = tuple(self._choices())
        return Finish(
            reason,
            usage,
            cut=self.truncated_in_text(),
            trace=trace,
            stop=self._stopped_by,
            choices=choices,
            masses=self._masses(),
            repeated=decoding.repeated,
            sureness=self._sureness(choices),
        )

    def generation(self, finish: Finish, tokens: Sequence[TokenWritten] = ()) -> Generation:
        """Return the complete result.

        Args:
            finish: the last event.
            tokens: the tokens with their log-probabilities, if requested.
        """
        message = self._built.message()
        if self.parser is not None and (found := self.parser.leniencies):
            at = self._answer_from
            moved = (replace(edit, start=edit.start + at, end=edit.end + at) for edit in found)
            message = replace(message, leniencies=tuple(moved))
        same = {each.name: getattr(finish, each.name) for each in fields(Finish) if each.name != "reason"}
        token_ids = tuple(self.decoding.token_ids)
        return Generation(message, finish.reason, raw=self.raw, token_ids=token_ids, tokens=tuple(tokens), **same)

    def _choices(self) -> Iterator[ChoiceMade]:
        """Yield the choices of the loop, with positions converted from bytes to characters of `raw`."""
        data = self.raw.encode("utf-8", "surrogatepass") if self.decoding.choices else b""
        for made in self.decoding.choices:
            yield replace(made, start=len(data[: made.start].decode("utf-8", "ignore")))

    def _sureness(self, choices: Sequence[ChoiceMade]) -> tuple[CallSureness, ...]:
        """Return how sure the model was of each call with an exact choice. Of another call, which tokens decided, it
        says nothing, so that nobody takes it for certain."""
        if not self.decoding.params.exact_choice:
            return ()
        places = dict(zip(self._ids, self._places, strict=False))
        found = sureness(self._built.message().tool_calls, choices, places)
        return tuple(each for each in found if each.has_choices)

    def trace(self, prompt_tokens: int, schemas: Mapping[str | None, Any]) -> Trace | None:
        """Return the trace of the answer; None if it was not requested.

        Args:
            prompt_tokens: number of tokens of the prompt.
            schemas: schemas of the arguments of each tool, and under None the schema of a JSON answer.
        """
        if self._tracer is None:
            return None
        return self._tracer.trace(self.raw, prompt_tokens, self._own_places(), schemas, self._json_from())

    def _masses(self) -> tuple[ValueMass, ...]:
        if self._tracer is None or not self.decoding.params.masses:
            return ()
        return self._tracer.masses(self.raw, self._own_places(), self._json_from())

    @cached_property
    def _places(self) -> list[CallPlaces]:
        """The places of all calls, when the answer is complete."""
        return [] if self._reading is None else self._reading.calls()

    def _own_places(self) -> list[CallPlaces]:
        """Return the places of the calls of the answer; those of a call that is left out are markup."""
        own_ids = {call.id for call in self._built.message().tool_calls}
        return [places for call_id, places in zip(self._ids, self._places, strict=False) if call_id in own_ids]

    def _json_from(self) -> int:
        """Return the index in `raw` of a JSON answer that is not a call; -1 if there is none."""
        return self.raw.find(self._built.text, self._answer_from) if self.is_json and self._built.text else -1

    # -- events ------------------------------------------------------------------------------------------------

    def _collected(self, events: Iterator[Event]) -> list[Event]:
        """Collect events for the final message, and return them. With ``equal_calls`` False, calls wait until they are
        known to be new; the first repeated one ends the answer, and further events are dropped."""
        collected: list[Event] = []
        for event in events:
            collected += (event,) if self._unequal is None else self._unequal.feed((event,))
            if self._unequal is not None and self._unequal.left_out:
                self._is_over = self.decoding.stop_requested = True
                break
        for event in collected:
            self._built.add(event)
        return collected

    def _last_events(self) -> Iterator[Event]:
        """Yield the events of the end: the parser's remaining ones, without an incomplete forbidden marker, then the
        text that was withheld as a possible prefix of a stop string. After a cancellation, only the withheld text: an
        incomplete character or call is no event."""
        if self._thoughts is not None:  # cancelled during the reasoning
            yield from _reasoning(self._thoughts.close())
        if self.decoding.reason != "cancelled":
            self._is_before_denial = self.decoding.closed_at is None
            yield from self._read(self._characters.decode(b"", final=True))
            if self.parser is not None and not self._is_over:
                yield from self._emit(self._before_marker(self.parser.close()))
        if not self._is_over:
            yield from self._release()

    def _release(self) -> Iterator[Event]:
        """Yield the withheld text, in which no stop string has begun."""
        if self._withheld:
            yield TextDelta(self._withheld)
            self._withheld = ""

    def _abandons_call(self, data: bytes) -> bool:
        """Return True if the text so far ends with the beginning of its first marker of a call, and the next bytes do
        not continue it: the budget denied the call, and wrote something else in its place."""
        begun = 0 if self._has_marker else _begun(self.raw, self._barred)
        if not begun or not data or any(marker in self.raw for marker in self._barred):
            return False
        tail = self.raw[len(self.raw) - begun :] + data.decode("utf-8", "replace")
        goes_on = any(marker.startswith(tail) or tail.startswith(marker) for marker in self._barred)  # or is whole now
        return not goes_on

    def _before_marker(self, events: list[Event]) -> list[Event]:
        """Return the last events without the beginning of a marker at the end that the options or the budget denied:
        the model tried to begin a call. A parser holds such a beginning back, so it is a part of the last event."""
        denied = self._is_denied or self._bars_all or self.decoding.reason == "length"
        if not denied or not events or not isinstance(last := events[-1], TextDelta):
            return events
        size = _begun(last.text, self._barred, only_long=not self._is_denied)
        # If the answer has nothing else, a short beginning of a long marker counts as well.
        whole_answer = "" if self._has_content else last.text.lstrip()
        if len(whole_answer) >= LEAST_MARKER and any(marker.startswith(whole_answer) for marker in self._barred):
            size = len(whole_answer)
        if not size:
            return events
        self._is_denied = True
        text = last.text[: len(last.text) - size].rstrip()
        return [*events[:-1], *([TextDelta(text)] if text else [])]

    def _read_control(self, name: str) -> Iterator[Event]:
        """Read a control token, which is not a part of ``raw``."""
        self._at_answer_start = False  # newlines after it are markup
        if self.parser is not None and not self._is_over:
            self._has_marker |= any(marker.startswith(name) for marker in self._barred)
            if self._reading is not None:
                self._reading.feed_control(name)
            yield from self._emit(self.parser.feed(name))

    def _read(self, text: str) -> Iterator[Event]:
        """Yield the events of the next text of the answer, and keep the offsets in `raw` at which the answer, the
        arguments of the current call, and this step begin. Newlines between reasoning and answer are in `raw` alone."""
        if not text or self._is_over:
            return
        if self._at_answer_start:
            shown = text.lstrip("\n")
            self._add_raw(text[: len(text) - len(shown)])
            if not shown:
                return
            text = shown
            self._at_answer_start = False
            self._answer_from = self._arguments_from = self._raw_size
        before = self._step_from = self._raw_size
        self._add_raw(text)
        if self._reading is not None:
            self._reading.feed(text, before)
        events: list[Event] = [TextDelta(text)] if self.parser is None else list(self.parser.feed(text))
        if any(isinstance(event, CallStart) for event in events):
            self._arguments_from = max(self._arguments_from, before)
        yield from self._emit(events)

    def _emit(self, events: Sequence[Event]) -> Iterator[Event]:
        """Pass the events of a step on: free text is searched for stop strings; withheld text comes before the next
        call; at the end of a call its truncated values are known."""
        for event in events:
            if self._tracer is not None and isinstance(event, TextDelta):
                self._tracer.locate(event.text, self.raw, self._step_from)
            if isinstance(event, TextDelta):
                yield from self._read_text(event.text)
                if self._is_over:
                    return
                continue
            yield from self._release()
            if isinstance(event, CallStart):
                self._ids.append(event.id)
                self._before_denial = []
                self._has_marker = True
            elif isinstance(event, ArgumentsDelta) and self._is_before_denial:
                self._before_denial.append(event.text)
            yield self._with_truncated(event) if isinstance(event, CallEnd) else event

    def _read_text(self, text: str) -> Iterator[Event]:
        """Read free text; withhold a possible prefix of a stop string."""
        text, self._withheld = self._withheld + text, ""
        places = [(text.find(word), word) for word in self._stop if word in text]
        if places:
            place, self._stopped_by = min(places)
            text = text[:place]
            self._is_over = self.decoding.stop_requested = True
        elif size := _begun(text, self._stop):
            text, self._withheld = text[:-size], text[-size:]
        if text:
            yield TextDelta(text)

    # -- truncated values ------------------------------------------------------------------------------------------

    def truncated_in_text(self) -> tuple[str, ...]:
        """Return the pointers of the truncated values of a JSON answer that is not a call: those cut off by the budget,
        or by the rest that the grammar forced (``closed_at``). Empty if there are none, and after a cancellation."""
        text = self._built.text
        if not self.is_json or self._built.has_calls or not text or self.decoding.reason == "cancelled":
            return ()
        offset = self._closed_at()
        if offset is not None:
            return truncated_pointers(text, offset - self._answer_from)
        # A number has no terminator: one at the end of the budget may be truncated.
        may_be_cut = self.decoding.reason == "length" and text.lstrip()[0] in "-0123456789"
        return ("",) if may_be_cut else ()

    def _with_truncated(self, event: CallEnd) -> CallEnd:
        """Return the event with the pointers of the call's truncated values, if the budget denied a choice in the call
        or before it: of the values that were incomplete there, or began later.

        The arguments are searched in `raw` after those of earlier calls, since the parser tells no position.
        """
        arguments = event.call.raw
        start = -1 if arguments is None else self.raw.find(arguments, self._arguments_from)
        offset = self._closed_at()
        if arguments is None or start < 0:  # they are written in another notation than JSON
            cut = None if offset is None else self._open_arguments(arguments)
        else:
            end = self._arguments_from = start + len(arguments)
            cut = None if offset is None or offset >= end else truncated_pointers(arguments, offset - start)
        return event if cut is None else CallEnd(event.index, replace(event.call, cut=cut))

    def _open_arguments(self, arguments: str | None) -> tuple[str, ...]:
        """Return the pointers of the values that were open at the first denied choice, given the arguments as JSON of a
        call in another notation: by what the parser had read of them before. ``""``: all of them, if that is unknown.
        """
        before_denial = "".join(self._before_denial)
        if arguments is None or not arguments.startswith(before_denial):
            return ("",)
        pointers = truncated_pointers(arguments, len(before_denial))
        if len(pointers) > 1 and pointers[0] == "":  # the object is open because its other values are missing
            return pointers[1:]
        return pointers or ("",)

    def _closed_at(self) -> int | None:
        """Return the index of the first character after a denied choice; None if none was denied."""
        closed = self.decoding.closed_at
        if closed is None:
            return None
        return len(self.raw.encode("utf-8", "surrogatepass")[:closed].decode("utf-8", "ignore"))


def _begun(text: str, markers: Sequence[str], *, only_long: bool = False) -> int:
    """Return the number of characters at the end of a text that begin one of some markers: ``a <to``, ``<tool>`` -> 3.
    ``only_long``: less than `LEAST_MARKER` characters, and less than half of a marker, do not count."""
    sizes = [begun_marker(text, marker) for marker in markers]
    least = (max(LEAST_MARKER, len(marker) // 2 + 1) if only_long else 1 for marker in markers)
    return max((size for size, fewest in zip(sizes, least, strict=True) if size >= fewest), default=0)


def markup_of(vocabulary: Vocabulary) -> Mapping[int, str]:
    """Return the names of the control tokens by id, which parsers read; without end-of-text tokens."""
    return vocabulary.derived(_markup)


def _markup(vocabulary: Vocabulary) -> Mapping[int, str]:
    return {number: name for name, number in vocabulary.special.items() if number not in vocabulary.eos}


def _reasoning(text: str) -> Iterator[Event]:
    if text:
        yield ReasoningDelta(text)
