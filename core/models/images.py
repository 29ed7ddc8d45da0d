"""Images of a conversation for models in this process: checked, decoded, upright, in RGB.

Nothing is fetched: an image is in the message, as bytes. The sizes in a file are checked before it is decoded.
"""

from __future__ import annotations

import hashlib
import io
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from ..conversation.messages import ImagePart, Message, Part, TextPart
from ..errors import MissingDependencyError, ModelError, first_line

#: Returns the bytes of an image at an address.
Fetch = Callable[[str], bytes]

#: Formats of Pillow that are read. Some of the others run a program (EPS), are no images, or have another size than
#: they say (ICO).
FORMATS = (
    *("PNG", "JPEG", "MPO", "WEBP", "GIF", "BMP", "DIB", "TIFF", "AVIF", "JPEG2000", "PPM", "QOI", "TGA", "PCX", "SGI"),
    *("PSD", "XBM"),
)

#: Maximum size of the file of an image, in bytes; of an image, in pixels; and of all images of a conversation.
LARGEST_FILE, MOST_PIXELS, MOST_OF_ALL = 64 * 2**20, 50_000_000, 200_000_000


@dataclass(frozen=True)
class _MovedImage(ImagePart):
    """An image of a conversation in which messages were added.

    Attributes:
        place: what an error calls it, by the number of its message before that.
    """

    place: str = ""


class OpenedImage(NamedTuple):
    """An image of a conversation.

    Attributes:
        part: the part of its message.
        place: what an error calls it: the image in which message.
        digest: SHA-256 of its file.
        picture: a ``PIL.Image.Image`` in RGB, upright as its EXIF data say, on white where it is transparent; of an
            animation the first frame.
    """

    part: ImagePart
    place: str
    digest: bytes
    picture: Any


def opened_images(messages: Sequence[Message], fetch: Fetch | None = None) -> list[OpenedImage]:
    """Return the images of a conversation, in order.

    Args:
        messages: the conversation.
        fetch: returns the bytes of an image at an address; None: addresses are refused.

    Raises:
        MissingDependencyError: Pillow is not installed.
        ModelError: an image is not in its message but elsewhere, cannot be decoded, or is too large; the error names
            the message.
        Exception: any that ``fetch`` raises.
    """
    opened = []
    pixels = 0
    for number, message in enumerate(messages):
        for part in message.images:
            data = fetch(part.url) if part.data is None and part.url and fetch else part.data
            place = part.place if isinstance(part, _MovedImage) else _place(number, message)
            picture = picture_of(data, place)
            pixels += picture.width * picture.height
            if pixels > MOST_OF_ALL:
                raise ModelError(
                    f"with {place}, the images have more than {MOST_OF_ALL:,} pixels together",
                    hint="send fewer or smaller ones",
                )
            opened.append(OpenedImage(part, place, hashlib.sha256(data or b"").digest(), picture))
    return opened


def _place(number: int, message: Message) -> str:
    """Return what an error calls an image of a message."""
    return f"the image in message {number} (of the {message.role})"


def picture_of(data: bytes | None, subject: str) -> Any:
    """Return the file of an image as a picture; see `OpenedImage`.

    Args:
        data: the file; None: the image is elsewhere.
        subject: the image in words, for errors.

    Raises:
        MissingDependencyError: Pillow is not installed.
        ModelError: there is no file, it cannot be decoded, or is too large.
    """
    try:
        from PIL import Image, ImageOps, UnidentifiedImageError
    except ImportError as error:
        raise MissingDependencyError("images need Pillow", hint="pip install 'toolgrammar[images]'") from error
    if data is None:
        raise ModelError(
            f"{subject} is an address, and addresses are not fetched",
            hint="ImagePart.of(PATH), or a data: address; fetch_image= of load_model is a function that fetches",
        )
    if len(data) > LARGEST_FILE:
        raise ModelError(f"{subject} has {len(data):,} bytes", hint=f"at most {LARGEST_FILE:,}")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Pillow's own warning of large images; ours is an error
            Image.init()
            known = [name for name in FORMATS if name in Image.OPEN]
            image: Image.Image = Image.open(io.BytesIO(data), formats=known)
            if image.width * image.height > MOST_PIXELS:
                raise Image.DecompressionBombError
            image = ImageOps.exif_transpose(image)
            if image.mode == "F":
                raise ValueError("its pixels are floats, whose range is not known")
            if image.mode.startswith("I"):  # 16 bits, which Pillow's conversion cuts: all would be white
                image = Image.fromarray((np.asarray(image).clip(0, 0xFFFF) >> 8).astype(np.uint8))
            if image.mode in ("RGBA", "LA", "PA", "La", "RGBa") or "transparency" in image.info:
                image = image.convert("RGBA")
                image = Image.alpha_composite(Image.new("RGBA", image.size, "white"), image)
            return image.convert("RGB")
    except Image.DecompressionBombError as error:  # ours, or that of Pillow, which has a limit of its own
        raise ModelError(f"{subject} has more than {MOST_PIXELS:,} pixels", hint="send a smaller one") from error
    except Exception as error:  # a broken file raises almost anything, also SyntaxError and struct.error
        reason = first_line(error)
        if isinstance(error, UnidentifiedImageError):
            reason = "its format is not known" if data else "it is empty"
        raise ModelError(f"{subject} cannot be read: {reason}", hint="send PNG, JPEG, WebP or GIF") from error


def _with_places(number: int, message: Message) -> Message:
    """Return a message whose images keep its number for errors, before turns are added to the conversation."""
    if not message.images:
        return message
    place = _place(number, message)
    moved = (
        _MovedImage(part.data, part.url, part.media_type, place) if isinstance(part, ImagePart) else part
        for part in message.content
        if not isinstance(part, str)
    )
    return replace(message, content=tuple(moved))


def images_after_results(messages: Sequence[Message]) -> list[Message]:
    """Return a conversation whose results of tools are texts: their images follow in a turn of the user, where every
    template of a vision model has them."""
    if not any(message.role == "tool" and message.images for message in messages):
        return list(messages)
    names = {call.id: call.name for message in messages for call in message.tool_calls}
    turns: list[Message] = []
    waiting: list[Part] = []  # the images of results, for the next turn of the user
    for number, message in enumerate(messages):
        message = _with_places(number, message)
        if message.role != "tool" and waiting:
            if message.role == "user":
                parts = (TextPart(message.content),) if isinstance(message.content, str) else message.content
                message = replace(message, content=(*waiting, *parts))
            else:
                turns.append(Message("user", tuple(waiting)))
            waiting = []
        images = message.images
        if message.role == "tool" and images:
            name = message.name or names.get(message.tool_call_id or "") or "the result"
            waiting.append(TextPart(f"The image of {name}:" if len(images) == 1 else f"The images of {name}:"))
            waiting += images
            message = replace(message, content=message.text or "The image follows.")
        turns.append(message)
    return [*turns, Message("user", tuple(waiting))] if waiting else turns
