"""Images for models in GGUF files: by llama.cpp's ``mtmd`` functions, and the projector of the model.

A projector is a GGUF file (``mmproj*.gguf``) with an encoder of images. An image becomes tokens of text and *pieces*,
each of which llama.cpp reads as a whole.
"""

from __future__ import annotations

import ctypes
import re
import threading
import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...basics.forks import shared_lock
from ...conversation.messages import ImagePart, Message
from ...errors import ModelError
from ..image_tokens import ImageToken
from ..images import OpenedImage
from .library import Part, projector_params, vision_library

if TYPE_CHECKING:
    from .weights import Weights

#: Approximate size of the pixels from which a token of an image is made, in bytes: between those of LLaVA and Qwen,
#: and those of Gemma and SmolVLM.
TOKEN_BYTES = 16_384

#: Types of chunks (``enum mtmd_input_chunk_type``).
_TEXT, _IMAGE = 0, 1

#: Private-use characters, which stand for images in a rendered prompt.
_MARKS = range(0x100000, 0x10FFFE)


@dataclass(eq=False)
class Piece:
    """A piece of an image, which is read as a whole.

    Attributes:
        chunk: llama.cpp's.
        owner: the chunk lives as long as this object.
        size: number of its tokens.
        positions: number of positions that they take: fewer than tokens with the positions of rows and columns of
            M-RoPE.
        keys: the keys of its tokens (`ImageToken.key`).
    """

    chunk: Any
    owner: Any
    size: int
    positions: int
    keys: Sequence[int] = ()

    @property
    def nbytes(self) -> int:
        """Approximate size of its pixels, in bytes."""
        return self.size * TOKEN_BYTES


class Projector:
    """The projector of a vision model; freed once, and before the model.

    Args:
        weights: the model.
        path: the file.
        threads: number of threads.
        uses_gpu: run it on the accelerator for which llama.cpp was built.

    Raises:
        ModelError: the installed llama.cpp lacks the functions, or the file cannot be loaded.

    Attributes:
        reads_both_ways: the tokens of an image see each other, so that a piece is read in one pass.
    """

    def __init__(self, weights: Weights, path: str, threads: int, uses_gpu: bool) -> None:
        self._library = library = vision_library(weights.library)
        params = projector_params(library, threads, uses_gpu)
        pointer = library.mtmd_init_from_file(path.encode(), weights.model, params)
        if not pointer:
            raise ModelError(
                f"llama.cpp cannot load the projector {path!r} for this model",
                hint="give the mmproj file of the same model; mmproj='' loads the model for text",
            )
        self._pointer = pointer
        # The finaliser refers to the weights, so that they are freed after it.
        self._free = weakref.finalize(self, _free_projector, weights, library, pointer)
        self._lock = shared_lock(self, "_lock", threading.Lock())  # it encodes one image at a time
        self._placeholder = max(int(weights.bos), 0)
        if not library.mtmd_support_vision(pointer):
            self._free()
            raise ModelError(f"the projector {path!r} does not read images", hint="give one of a vision model")
        self.reads_both_ways = bool(library.mtmd_decode_use_non_causal(pointer, None))

    def close(self) -> None:
        """Free the projector; closing twice is allowed."""
        with self._lock:
            self._free()

    def image_ids(self, image: OpenedImage) -> list[int]:
        """Return the tokens of an image, with the marks of the model around it.

        Raises:
            ModelError: llama.cpp refuses the image.
        """
        library, picture = self._library, image.picture
        chunks = library.mtmd_input_chunks_init()
        owner = _Owner()
        weakref.finalize(owner, library.mtmd_input_chunks_free, chunks)
        bitmap = library.mtmd_bitmap_init(picture.width, picture.height, picture.tobytes())
        try:
            part = Part(None, bitmap)
            parts = (ctypes.POINTER(Part) * 1)(ctypes.pointer(part))
            status = library.mtmd_tokenize_from_parts(self._pointer, chunks, parts, 1, False)
        finally:
            library.mtmd_bitmap_free(bitmap)
        ids: list[int] = []
        place = 0
        for number in range(library.mtmd_input_chunks_size(chunks) if status == 0 else 0):
            chunk = library.mtmd_input_chunks_get(chunks, number)
            size = int(library.mtmd_input_chunk_get_n_tokens(chunk))
            if library.mtmd_input_chunk_get_type(chunk) == _TEXT:
                ids += library.mtmd_input_chunk_get_tokens_text(chunk, ctypes.byref(ctypes.c_size_t()))[:size]
                continue
            piece = Piece(chunk, owner, size, int(library.mtmd_input_chunk_get_n_pos(chunk)))
            tokens = [ImageToken(self._placeholder, piece, image.digest, place + index) for index in range(size)]
            piece.keys = [token.key for token in tokens]
            place += size
            ids += tokens
        if not place:
            raise ModelError(f"{image.place} is refused by llama.cpp", hint="send another size or form")
        if min(ids) < 0:
            raise ModelError(
                f"{image.place} cannot be read: the model lacks a token that its projector puts around images",
                hint="give the mmproj file of the same model",
            )
        return ids

    def read(self, context: Any, piece: Piece, position: int, sequence: int, most: int) -> None:
        """Append a piece of an image to a sequence.

        Args:
            context: llama.cpp's.
            piece: the piece.
            position: position of its first token.
            sequence: llama.cpp's number of the sequence.
            most: maximum number of tokens in a forward pass.

        Raises:
            ModelError: llama.cpp fails.
        """
        after = ctypes.c_int32()
        with self._lock:
            status = self._library.mtmd_helper_eval_chunk_single(
                self._pointer, context, piece.chunk, position, sequence, most, False, ctypes.byref(after)
            )
        if status != 0 or after.value != position + piece.positions:
            raise ModelError(f"llama.cpp failed with status {status} on an image", hint="see its messages")


class _Owner:
    """Each piece of an image has the same owner: when the last piece is gone, so is the owner, and its finalizer frees
    the chunks of llama.cpp that the pieces point to."""


def _free_projector(weights: Weights, library: Any, pointer: Any) -> None:
    library.mtmd_free(pointer)


def piece_at(ids: Sequence[int], place: int) -> Piece | None:
    """Return the piece of an image that begins at a place of a sequence; None: there is text.

    Raises:
        ModelError: a part of a piece is there.
    """
    token = ids[place]
    if type(token) is not ImageToken:
        return None
    piece: Piece = token.images
    if [getattr(token, "key", None) for token in ids[place : place + piece.size]] != piece.keys:
        raise ModelError("a sequence has only a part of an image", hint="append the whole image")
    return piece


def size_of_begun_piece(ids: Sequence[int], length: int) -> int:
    """Return how many of the first ``length`` tokens are a piece that has begun and is not complete at their end: 3 if
    they end with 3 of the 10 tokens of an image; 0 if they end with text or a whole piece."""
    token = ids[length - 1] if length else 0
    if type(token) is not ImageToken:
        return 0
    piece: Piece = token.images
    present = piece.keys.index(token.key) + 1
    return 0 if present == piece.size else present


def positions(ids: Sequence[int], length: int) -> int:
    """Return the number of positions of the first ``length`` tokens."""
    begun = (token.images for token in ids[:length] if type(token) is ImageToken and token.key == token.images.keys[0])
    return length - sum(int(piece.size - piece.positions) for piece in begun)


def marked(
    messages: Sequence[Message], images: Sequence[OpenedImage], others: object
) -> tuple[list[Message], dict[str, OpenedImage]]:
    """Return a conversation with a character in place of each image, and the images by these characters.

    Args:
        messages: the conversation.
        images: its images.
        others: the rest of the prompt (tools, instructions): no mark may be in it.
    """
    # By `ascii`, the text of nested values is searched at once: each character is an escape there, also in JSON.
    everything = ascii(([(message.text, message.tool_calls, message.name) for message in messages], others))
    unused = (chr(code) for code in _MARKS if ascii(chr(code))[1:-1] not in everything)
    marks = dict(zip(unused, images, strict=False))
    next_mark = iter(marks)
    texts = []
    for message in messages:
        if message.images:
            parts = [next(next_mark) if isinstance(part, ImagePart) else part.text for part in message.content]  # type: ignore[union-attr]
            message = replace(message, content="".join(parts))
        texts.append(message)
    return texts, marks


def with_images(encode: Callable[[str], list[int]], images: Mapping[str, list[int]]) -> Callable[[str], list[int]]:
    """Return a function from a text to its tokens, with those of images in place of their characters."""
    if not images:
        return encode
    marks = re.compile(f"([{''.join(images)}])")

    def encoded(text: str) -> list[int]:
        parts = (images.get(part) or encode(part) for part in marks.split(text) if part)
        return [token_id for part in parts for token_id in part]

    return encoded


def projector_beside(path: Path) -> Path | None:
    """Return the projector of a model, a file with ``mmproj`` in its name in the same folder; None: there is none. The
    rest of this name is nothing, a type of weights, or the beginning of the model's name: ``mmproj-F16.gguf`` or
    ``Qwen2-VL-mmproj.gguf`` beside ``Qwen2-VL-2B-Q4_K.gguf``. The longest beginning wins, then 16-bit weights."""
    try:
        found = [file for file in sorted(path.parent.glob("*.gguf")) if "mmproj" in file.name.lower() and file != path]
    except OSError:
        return None
    model = _bare_name(path.stem)
    fitting = [file for file in found if model.startswith(_bare_name(file.stem))]
    return max(fitting, key=lambda file: (len(_bare_name(file.stem)), "f16" in file.stem.lower()), default=None)


def _bare_name(name: str) -> str:
    """Return the name of a model or its projector without ``mmproj``, the type of its weights, and marks between
    words: ``"mmproj-Qwen2-VL-2B-f16"`` -> ``"qwen2vl2b"``."""
    name = re.sub(r"mmproj|(^|[-_.])model(?=$|[-_.])", "", name.lower())
    return re.sub(r"(^|[-_.])(bf16|f16|f32|fp16|fp32|i?q\d\w*)(?=$|[-_.])|[-_.]", "", name)
