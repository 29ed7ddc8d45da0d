"""The images of a prompt, as a vision model of transformers reads them: by its own processor."""

from __future__ import annotations

import inspect
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ...errors import ModelError
from ..image_tokens import ImageToken
from ..images import OpenedImage

#: Kinds of models that read the whole prompt in both directions, so that no beginning of it can be kept.
BOTH_WAYS = ("paligemma",)


@dataclass(frozen=True)
class PromptImages:
    """The images of a prompt.

    Attributes:
        inputs: the arguments of the model's forward pass that the processor has made of them: tensors; those with a
            value for each token have the shape ``[1, n]``.
        size: number of tokens of the prompt, n.
        count: number of its placeholders.
    """

    inputs: Mapping[str, Any]
    size: int
    count: int

    @property
    def nbytes(self) -> int:
        """Size of the tensors, in bytes."""
        return sum(int(tensor.nbytes) for tensor in self.inputs.values())

    def arguments(self, length: int, like: Any) -> dict[str, Any]:
        """Return the arguments for a sequence that begins with the prompt.

        Args:
            length: its number of tokens; those after the prompt are text.
            like: a weight of the model, for its device and type.
        """
        import torch

        made = {}
        for name, tensor in self.inputs.items():
            if tuple(tensor.shape) == (1, self.size):
                made[name] = torch.nn.functional.pad(tensor, (0, length - self.size)).to(like.device)
            else:
                made[name] = tensor.to(like.device, like.dtype if tensor.is_floating_point() else None)
        return made


class Vision:
    """The processor of a vision model.

    Args:
        processor: of transformers.
        model: the model.
    """

    def __init__(self, processor: Any, model: Any) -> None:
        self._processor = processor
        self._takes = inspect.signature(model.forward).parameters
        self._known = set(inspect.signature(processor.apply_chat_template).parameters)
        ids = [getattr(one, name, None) for one in (processor, model.config) for name in _PLACEHOLDERS]
        self._placeholder = next(int(found) for found in ids if isinstance(found, int))

    def prompt_ids(
        self, turns: Sequence[Mapping[str, Any]], images: Sequence[OpenedImage], options: Mapping[str, Any]
    ) -> list[int]:
        """Return the token ids of a conversation with images, whose placeholders are `ImageToken`.

        Args:
            turns: for the chat template.
            images: the images of the conversation.
            options: of ``apply_chat_template``.

        Raises:
            ModelError: the template or the processor lose an image.
            Exception: any that a template raises.
        """
        opened = {id(image.part): image.picture for image in images}
        shown = [id(part["image"]) for turn in turns for part in _parts(turn) if "image" in part]
        if shown != [id(image.part) for image in images]:
            raise ValueError("an image is not in its place")
        # The processor takes a variable that the template does not read for an option of its own.
        known = self._known | {name for name in options if name in str(self._processor.chat_template)}
        more = {name: value for name, value in options.items() if name in known and name != "return_dict"}
        if not self._spells_control(turns):  # Idefics3's processor cannot do it
            more.pop("sanitize_control_tokens", None)
        given = self._processor.apply_chat_template(
            [_with_pictures(turn, opened) for turn in turns],
            tokenize=True,
            return_dict=True,
            return_tensors="pt",
            **more,
        )
        ids = given.pop("input_ids")[0].tolist()
        count = ids.count(self._placeholder)
        if not count:
            raise ModelError("the model's chat template leaves out images", hint="send text")
        digest = b"".join(image.digest for image in images)
        inputs = {name: tensor for name, tensor in given.items() if name in self._takes and name != "attention_mask"}
        made = PromptImages(inputs, len(ids), count)
        places = iter(range(count))
        return [
            ImageToken(token_id, made, digest, next(places)) if token_id == self._placeholder else token_id
            for token_id in ids
        ]

    def _spells_control(self, turns: Sequence[Mapping[str, Any]]) -> bool:
        """Return True if a text of a conversation has the name of a control token in it."""
        text = json.dumps(turns, ensure_ascii=False, default=lambda _: "")
        return any(name in text for name in self._processor.tokenizer.all_special_tokens)


#: Names of the id of the placeholder, in processors and configurations.
_PLACEHOLDERS = ("image_token_id", "image_token_index")


def _parts(turn: Mapping[str, Any]) -> list[dict[str, Any]]:
    content = turn.get("content")
    return content if isinstance(content, list) else []


def _with_pictures(turn: Mapping[str, Any], opened: Mapping[int, Any]) -> dict[str, Any]:
    """Return a turn with pictures in place of the parts of messages."""
    if not isinstance(turn.get("content"), list):
        return dict(turn)
    parts = [{**part, "image": opened[id(part["image"])]} if "image" in part else part for part in _parts(turn)]
    return {**turn, "content": parts}


def load_processor(source: str, config: Any, options: Mapping[str, Any]) -> Any:
    """Return the processor of a vision model, for images alone.

    May raise any exception, because a folder can be broken in many ways.
    """
    from transformers import AutoProcessor
    from transformers.models.auto.processing_auto import PROCESSOR_MAPPING

    kind = PROCESSOR_MAPPING.get(type(config), None)
    if kind is None or not hasattr(kind, "get_attributes"):
        load: Any = AutoProcessor.from_pretrained
        return load(source, **options)
    return images_only(kind).from_pretrained(source, **options)


def images_only(kind: Any) -> Any:
    """Return a class of processors without its parts for video and audio, which may need libraries that images do not
    need."""
    needed = [name for name in kind.get_attributes() if name in ("image_processor", "tokenizer")]
    return type(kind.__name__, (kind,), {"get_attributes": classmethod(lambda _: needed)})
