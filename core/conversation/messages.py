"""Canonical conversation: what every adapter translates to and from.

A conversation is a sequence of `Message`. All values are immutable. `as_shown` returns one as models see it.
"""

from __future__ import annotations

import base64
import json
import re
import secrets
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from io import BytesIO
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NoReturn, Union

from ..errors import InvalidArgumentsError, MissingDependencyError, ModelError
from ..json import dump_json

if TYPE_CHECKING:
    from ..repair import Edit

Role = Literal["system", "user", "assistant", "tool"]


@dataclass(frozen=True)
class TextPart:
    """A piece of text inside a message."""

    text: str


@dataclass(frozen=True)
class ImagePart:
    """An image inside a message: raw bytes or a URL, never both.

    Attributes:
        data: the encoded image file.
        url: where the image is; never fetched by us, unless the model was loaded with a function that does.
        media_type: for example ``"image/png"``.
    """

    data: bytes | None = field(default=None, repr=False)
    url: str | None = None
    media_type: str | None = None

    @property
    def type_of_file(self) -> str:
        """The media type: as given, else as the file begins; ``"image/png"`` if neither tells."""
        data = self.data or b""
        begins = next((kind for begin, kind in _BEGINNINGS if re.match(begin, data)), "image/png")
        return self.media_type or begins

    @classmethod
    def of(cls, source: Any) -> ImagePart:
        """Return an image of a file (a path), of the bytes of one, or of a ``PIL.Image.Image``.

        Raises:
            OSError: the file cannot be read.
            ModelError: the source is none of these, or an image of floats.
        """
        if isinstance(source, (bytes, bytearray, memoryview)):
            return cls(bytes(source))
        if isinstance(source, (str, PathLike)):
            return cls(Path(source).read_bytes())
        if hasattr(source, "save"):
            file = BytesIO()
            try:
                (source.convert("RGB") if getattr(source, "mode", "") in _AS_RGB else source).save(file, "PNG")
            except OSError as error:  # of a mode that PNG lacks, such as floats
                raise ModelError(f"an image cannot be written as PNG: {error}", hint="convert it to RGB") from error
            return cls(file.getvalue(), media_type="image/png")
        raise ModelError(f"an image is {source!r}", hint="give a path, bytes, or an image of Pillow")

    @classmethod
    def at(cls, address: Any) -> ImagePart:
        """Return the image at an address; an address ``data:image/png;base64,...`` has the image itself.

        Raises:
            ModelError: the address is no text, or its data are not in Base64.
        """
        if not address or not isinstance(address, str):
            hint = "give https://... or data:image/png;base64,..."
            raise ModelError(f"the address of an image is {address!r}", hint=hint)
        if not address.startswith("data:"):
            return cls(url=address)
        head, _, data = address.partition(",")
        return cls.from_base64(data, head.removeprefix("data:").split(";")[0] or None)

    @classmethod
    def from_base64(cls, data: Any, media_type: str | None = None) -> ImagePart:
        """Return the image of a file in Base64.

        Raises:
            ModelError: the data are not in Base64.
        """
        try:
            return cls(base64.b64decode(data), media_type=media_type)
        except (ValueError, TypeError):
            raise ModelError(
                "the data of an image are not in Base64", hint="encode the file: base64.b64encode"
            ) from None

    @classmethod
    def pages(cls, source: Any, *, dpi: float = 150) -> list[ImagePart]:
        """Return the pages of a PDF as images.

        Args:
            source: a path, or the bytes of the file.
            dpi: pixels an inch; a page has at most `MOST_PAGE_PIXELS`.

        Raises:
            MissingDependencyError: pypdfium2 is not installed.
            ModelError: the file cannot be read.
        """
        try:
            import pypdfium2
        except ImportError as error:
            raise MissingDependencyError(
                "pages of a PDF need pypdfium2", hint="pip install 'toolgrammar[images]'"
            ) from error
        try:
            with pypdfium2.PdfDocument(source) as document:
                made = []
                for page in document:
                    width, height = page.get_size()
                    most = (MOST_PAGE_PIXELS / max(width * height, 1)) ** 0.5
                    made.append(cls.of(page.render(scale=min(dpi / 72, most)).to_pil()))
                return made
        except (pypdfium2.PdfiumError, TypeError) as error:
            raise ModelError(f"the PDF cannot be read: {error}") from error


#: How files of the media types begin that servers take, but for PNG.
_BEGINNINGS = ((rb"\xff\xd8\xff", "image/jpeg"), (rb"GIF8", "image/gif"), (rb"RIFF(?s:.{4})WEBP", "image/webp"))

#: Modes of Pillow's images that PNG lacks, and that RGB can show.
_AS_RGB = frozenset({"CMYK", "HSV", "LAB", "YCbCr"})

#: Maximum size of a page of a PDF as an image, in pixels.
MOST_PAGE_PIXELS = 20_000_000


Part = Union[TextPart, ImagePart]


#: Beginning of ``error`` of a call that could not be read, and so has no arguments.
_MALFORMED = "malformed call"

#: Why a call could not be read: it is malformed, or the text ended inside of it.
Fault = Literal["malformed", "unfinished"]


def new_call_id() -> str:
    """Return a fresh id of a call: ``call_`` and 24 random hexadecimal digits."""
    return f"call_{secrets.token_hex(12)}"


class NoArguments(Mapping[str, Any]):
    """The arguments of a call that could not be read: there are none. An empty object would run a tool whose parameters
    are all optional, so reading this, also by ``**`` and ``dict``, raises InvalidArgumentsError.

    Args:
        error: why there are none.
    """

    def __init__(self, error: str) -> None:
        self.error = error

    def __getitem__(self, name: str) -> NoReturn:
        """Raises: InvalidArgumentsError: always."""
        raise self._absent()

    def __iter__(self) -> Iterator[str]:
        """Raises: InvalidArgumentsError: always."""
        raise self._absent()

    def _absent(self) -> InvalidArgumentsError:
        hint = "look at call.error first; ToolSet.execute does"
        return InvalidArgumentsError(f"the call has no arguments: {self.error}", hint=hint)

    def __len__(self) -> int:
        """Return 0."""
        return 0

    def __eq__(self, other: object) -> bool:
        """Return True for equal absence; False for an empty object."""
        return isinstance(other, NoArguments) and self.error == other.error

    def __hash__(self) -> int:
        """Return a hash."""
        return hash(self.error)

    def __repr__(self) -> str:
        return f"NoArguments({self.error!r})"


@dataclass(frozen=True)
class ToolCall:
    """One call of one tool.

    Attributes:
        id: unique in its conversation.
        name: the tool's name.
        arguments: the decoded JSON arguments; `NoArguments` if they could not be read (see ``fault``): reading them
            raises InvalidArgumentsError.
        raw: the arguments as they were written (JSON text), when known.
        cut: JSON pointers of the values that were closed by force because the token budget ran out; a call
            with a non-empty ``cut`` is schema-valid but not whole, and must not be executed unasked.
        error: why the call is not valid, or None. A valid call validates against its tool's schema.
        fault: the call could not be read: it is ``"malformed"``, or ``"unfinished"``: the text ends inside of it. None:
            it was read, and ``error`` says if its arguments are valid.
        ask: JSON pointers of values that a policy allows only if a person confirms them; ``""``: the call itself.
    """

    id: str
    name: str
    arguments: Mapping[str, Any]
    raw: str | None = None
    cut: tuple[str, ...] = ()
    error: str | None = None
    fault: Fault | None = field(default=None, repr=False)
    ask: tuple[str, ...] = ()

    #: What is wrong with a call inside of which the text ended.
    ENDS_INSIDE: ClassVar = "the text ends inside the call"

    def __post_init__(self) -> None:
        """Set ``fault`` by ``error``, and replace the empty arguments of a call that could not be read by
        `NoArguments`."""
        if self.error is None:
            object.__setattr__(self, "fault", None)
        elif self.fault is None and self.error.startswith(_MALFORMED):  # a caller stored the error, but no fault
            object.__setattr__(self, "fault", "malformed")
        if self.fault is not None and self.error is not None and not self.arguments:
            object.__setattr__(self, "arguments", NoArguments(self.error))

    @classmethod
    def unread(cls, id: str, name: str, raw: str, problem: str, *, cut: tuple[str, ...] = ()) -> ToolCall:
        """Return a call that could not be read.

        Args:
            id: see the class; so for ``name``, ``raw`` and ``cut``.
            name: see the class.
            raw: the text.
            problem: what is wrong with it.
            cut: see the class.
        """
        fault: Fault = "unfinished" if problem == cls.ENDS_INSIDE else "malformed"
        return cls(id, name, {}, raw, cut, f"{_MALFORMED}: {problem}", fault)

    @property
    def arguments_text(self) -> str:
        """The arguments as JSON text: as they were written, where that is known."""
        return self.raw if self.raw is not None else dump_json(dict(self.arguments))

    def __str__(self) -> str:
        """``name({...})``: the name, and the arguments as they were written."""
        readable = self.raw is None and not isinstance(self.arguments, NoArguments)
        return f"{self.name}({json.dumps(dict(self.arguments), ensure_ascii=False) if readable else self.raw or '...'})"


@dataclass(frozen=True)
class ReasoningBlock:
    """A piece of reasoning as its provider wrote it, with the signature that lets the provider read it again.

    Attributes:
        provider: the API that wrote it and alone can read it: ``"anthropic"``, ``"gemini"`` or ``"bedrock"``.
        data: the block, which goes back unchanged.
        call_id: the call that it precedes or belongs to; None: the text of the turn.
    """

    provider: str
    data: Mapping[str, Any]
    call_id: str | None = None


@dataclass(frozen=True)
class Message:
    """One turn of a conversation.

    Attributes:
        role: who speaks.
        content: plain text, or parts in order.
        reasoning: the model's thinking, apart from its answer (assistant only).
        tool_calls: calls made in this turn (assistant only).
        tool_call_id: which call this answers (tool only).
        name: the speaker's or the tool's name.
        is_error: the tool failed and ``content`` says how (tool only).
        reasoning_blocks: the reasoning in its provider's own form, if that has one (assistant only).
        leniencies: what a parser put up with to read the turn: text that no grammar held, or a call in the spelling of
            another family; ``why`` of each is one of the names in `toolgrammar.tools.formats.LENIENCIES` (assistant
            only).
    """

    role: Role
    content: str | tuple[Part, ...] = ""
    reasoning: str | None = None
    tool_calls: tuple[ToolCall, ...] = field(default=())
    tool_call_id: str | None = None
    name: str | None = None
    is_error: bool = False
    reasoning_blocks: tuple[ReasoningBlock, ...] = field(default=(), repr=False)
    leniencies: tuple[Edit, ...] = field(default=(), repr=False, compare=False)

    @property
    def text(self) -> str:
        """The text of the message: its text parts joined, images left out."""
        if isinstance(self.content, str):
            return self.content
        return "".join(part.text for part in self.content if isinstance(part, TextPart))

    @property
    def images(self) -> tuple[ImagePart, ...]:
        """The images of the message."""
        parts = () if isinstance(self.content, str) else self.content
        return tuple(part for part in parts if isinstance(part, ImagePart))


# -- a conversation as models are shown it -----------------------------------------------------------------------------
#
# Many chat templates write results without ids, so that a model pairs them with the calls by their order. And a call
# whose arguments are no object cannot be written as a call by most templates and servers.

#: The member that holds arguments that are not a JSON object, as they were written. pydantic-ai shows models the same.
UNREADABLE = "INVALID_JSON"


def as_shown(messages: Sequence[Message]) -> tuple[Message, ...]:
    """Return a conversation as a model is shown it.

    Results that follow a turn with calls are in the order of the calls, if the calls of all are known and different.
    A call whose arguments could not be read has one argument, `UNREADABLE`, with their text.
    """
    told: list[Message] = []
    results: list[Message] = []
    calls: tuple[ToolCall, ...] = ()
    for message in messages:
        if message.role == "tool":
            results.append(message)
            continue
        told += _in_order(results, calls)
        results = []
        if message.tool_calls:
            follows = bool(told) and bool(told[-1].tool_calls)  # some histories have a turn for each call
            calls = calls + message.tool_calls if follows else message.tool_calls
            message = _readable(message)
        told.append(message)
    return (*told, *_in_order(results, calls))


def _in_order(results: list[Message], calls: Sequence[ToolCall]) -> list[Message]:
    """Return results in the order of their calls: by ids, or by the tools' names where no result has an id."""
    if len(results) < 2:
        return results
    by_id = any(result.tool_call_id for result in results)
    keys = [result.tool_call_id if by_id else result.name for result in results]
    known = [call.id if by_id else call.name for call in calls]
    places: Mapping[str | None, int] = {key: place for place, key in enumerate(known)}
    if len(places) < len(known) or len({*keys}) < len(keys) or not places.keys() >= {*keys}:
        return results
    return [result for _, result in sorted(zip(keys, results, strict=True), key=lambda pair: places[pair[0]])]


def _readable(message: Message) -> Message:
    """Return a turn whose calls all have arguments that a model can read."""
    if all(call.error is None or call.arguments for call in message.tool_calls):
        return message
    return replace(message, tool_calls=tuple(map(_with_text, message.tool_calls)))


def _with_text(call: ToolCall) -> ToolCall:
    """Return a call with the text of its arguments as its argument, if they could not be read."""
    if call.error is None or call.arguments:
        return call
    if not call.raw or "".join(call.raw.split()) == "{}":
        return replace(call, arguments={}, error=None)  # with an error, `NoArguments` would take their place
    return replace(call, arguments={UNREADABLE: call.raw})
