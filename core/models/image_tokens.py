"""Tokens of a prompt that stand for pieces of its images."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt


class ImageToken(int):
    """A placeholder in a prompt, in whose place a model reads a piece of an image.

    Its value is the id of the placeholder, which all have. Two of them are equal only at the same place of equal
    images, so that a prefix is reused only with its images.

    Attributes:
        images: all images of the prompt, in the form of the engine.
        key: a number that only equal tokens have; negative, as no id is.
    """

    images: Any
    key: int

    def __new__(cls, token_id: int, images: Any, digest: bytes, place: int) -> ImageToken:
        """Make the token.

        Args:
            token_id: id of the placeholder.
            images: see the class.
            digest: a hash of the images, in order.
            place: number of placeholders before this one in the prompt.
        """
        made = super().__new__(cls, token_id)
        made.images = images
        digits = hashlib.sha256(b"%b%d" % (digest, place)).digest()[:8]
        made.key = ~(int.from_bytes(digits, "big") >> 1)  # 63 bits, inverted: a negative number of 64 bits
        return made

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ImageToken) and self.key == other.key

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash(self.key)


def token_list(token_ids: Iterable[int]) -> list[int]:
    """Return token ids as ints of Python; those of images are unchanged."""
    return [token_id if isinstance(token_id, int) else int(token_id) for token_id in token_ids]


def token_keys(token_ids: Sequence[int]) -> npt.NDArray[np.int64]:
    """Return numbers that are equal for equal tokens, ``[n]``: ids, and the keys of images."""
    keys = (token.key if type(token) is ImageToken else token for token in token_ids)
    return np.fromiter(keys, np.int64, len(token_ids))


def count_placeholders(token_ids: Sequence[int]) -> int:
    """Return the number of tokens that stand for images."""
    return sum(type(token) is ImageToken for token in token_ids)


def images_of(token_ids: Sequence[int]) -> Any:
    """Return the images of the last token that stands for one; None if there is none."""
    return next((token.images for token in reversed(token_ids) if type(token) is ImageToken), None)
