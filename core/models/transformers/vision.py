"""The images of a prompt, as a vision model of transformers reads them: by its own processor."""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

from ...errors import ModelError, first_line
from ...vocabulary.vocabulary import Vocabulary
from ..image_tokens import ImageToken
from ..images import OpenedImage

#: Kinds of models whose images are not read: the whole prompt is read in both directions, so that no beginning of it
#: can be kept (PaliGemma), or images are beside the sequence, with a mask for each token (Llama 3.2 Vision).
TEXT_ONLY = ("paligemma", "mllama")

#: Options of ``apply_chat_template`` that a processor is not given: `Vision` does it for all processors alike.
_OURS = ("return_dict", "sanitize_control_tokens")

#: Results of a processor that are not given to the model: a pass has its own.
_READ = ("input_ids", "attention_mask")

#: Private-use characters, one of which breaks the names of control tokens in texts until they are tokens.
_MARKS = range(0xE0A7, 0xF000)

#: Names of the id of the placeholder, in configurations and processors (Gemma 3's means the mark before an image).
_PLACEHOLDERS = ("image_token_id", "image_token_index")


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
        ids = [getattr(one, name, None) for one in (model.config, processor) for name in _PLACEHOLDERS]
        self._placeholder = next(int(found) for found in ids if isinstance(found, int))

    def prompt_ids(
        self,
        turns: Sequence[Mapping[str, Any]],
        images: Sequence[OpenedImage],
        options: Mapping[str, Any],
        vocabulary: Vocabulary,
    ) -> list[int]:
        """Return the token ids of a conversation with images, whose placeholders are `ImageToken`. The name of a
        control token in a text is text.

        Args:
            turns: for the chat template.
            images: the images of the conversation.
            options: of ``apply_chat_template``.
            vocabulary: of the model.

        Raises:
            ModelError: the template or the processor lose an image.
            Exception: any that a template raises.
        """
        pictures = {id(image.part): image.picture for image in images}
        shown = [id(part["image"]) for turn in turns for part in _parts(turn) if "image" in part]
        if shown != [id(image.part) for image in images]:
            raise ValueError("an image is not in its place")
        # The processor takes a variable that the template does not read for an option of its own.
        template = str(self._processor.chat_template)
        known = self._known | {name for name in options if name in template}
        more = {name: value for name, value in options.items() if name in known and name not in _OURS}
        # The names of control tokens in texts are broken by a mark, whose tokens are taken out of the result.
        everything = json.dumps([turns, more], ensure_ascii=False, default=str)
        mark = next(mark for mark in map(chr, _MARKS) if mark not in everything)
        spelled = self._spelled_names(template, vocabulary)
        more["tools"] = _broken(more["tools"], spelled, mark)
        inputs = self._processor.apply_chat_template(
            [_with_pictures(turn, pictures) for turn in _broken(turns, spelled, mark)],
            tokenize=True,
            return_dict=True,
            return_tensors="pt",
            **more,
        )
        return self._with_placeholders(_without(mark, inputs, vocabulary), images)

    def _spelled_names(self, template: str, vocabulary: Vocabulary) -> re.Pattern[str]:
        """Return a pattern of the first character of each name of a control token, and of each added token that the
        template writes."""
        tokenizer = self._processor.tokenizer
        names = {name for name in tokenizer.get_added_vocab() if name.strip() and name in template}
        names.update(vocabulary.special, tokenizer.all_special_tokens)
        return re.compile(f"(?=(?:{'|'.join(map(re.escape, names))}))(.)", re.DOTALL)

    def _with_placeholders(self, inputs: Mapping[str, Any], images: Sequence[OpenedImage]) -> list[int]:
        """Return the token ids in the result of a processor; each placeholder is an `ImageToken` with the images."""
        ids = inputs["input_ids"][0].tolist()
        count = ids.count(self._placeholder)
        if not count:
            raise ModelError("the model's chat template leaves out images", hint="send text")
        digest = b"".join(image.digest for image in images)
        image_inputs = {name: tensor for name, tensor in inputs.items() if name in self._takes and name not in _READ}
        prompt_images = PromptImages(image_inputs, len(ids), count)
        places = iter(range(count))
        return [
            ImageToken(token_id, prompt_images, digest, next(places)) if token_id == self._placeholder else token_id
            for token_id in ids
        ]

    def check(self, images: Sequence[OpenedImage]) -> None:
        """Check that the processor reads each image by itself.

        Raises:
            ModelError: it refuses one; the error names the message.
        """
        for image in images:
            try:
                self._processor.image_processor(image.picture, return_tensors="pt")
            except Exception as error:  # of many libraries
                reason = first_line(error)
                raise ModelError(
                    f"{image.place} is refused by the model's processor: {reason}", hint="send another size or form"
                ) from error


def _parts(turn: Mapping[str, Any]) -> list[dict[str, Any]]:
    content = turn.get("content")
    return content if isinstance(content, list) else []


def _broken(value: Any, names: re.Pattern[str], mark: str) -> Any:
    """Return a value with a mark in each name of a control token, after its first character, at which ``names``
    matches."""
    if isinstance(value, str):
        return names.sub(rf"\1{mark}", value)
    if isinstance(value, Mapping):
        return {key: _broken(item, names, mark) for key, item in value.items()}
    return [_broken(item, names, mark) for item in value] if isinstance(value, (list, tuple)) else value


def _without(mark: str, inputs: Mapping[str, Any], vocabulary: Vocabulary) -> dict[str, Any]:
    """Return the result of a processor (tensors by name) without the tokens of a mark, a character that `_broken` put
    into texts: the columns of these tokens are left out of each tensor that has a column for each token.

    Raises:
        ModelError: a token has a part of the mark and of the text beside it.
    """
    ids = inputs["input_ids"][0].tolist()
    texts = [vocabulary.tokens[token_id] or b"\xff" for token_id in ids]  # a byte that is in no text
    ends = list(accumulate(map(len, texts)))
    spans = [found.span() for found in re.finditer(re.escape(mark.encode()), b"".join(texts))]
    if not spans:
        return dict(inputs)
    # By byte position: the index of the token that begins there, and the index after the token that ends there.
    token_at = {end - len(text): index for index, (end, text) in enumerate(zip(ends, texts, strict=True))}
    token_after = {end: index + 1 for index, end in enumerate(ends)}
    left_out: set[int] = set()
    for start, end in spans:
        if start not in token_at or end not in token_after:
            raise ModelError("a text has the name of a control token in it", hint="leave it out beside images")
        left_out.update(range(token_at[start], token_after[end]))
    kept = [index for index in range(len(ids)) if index not in left_out]
    one_row = (1, len(ids))
    return {name: tensor[:, kept] if tuple(tensor.shape) == one_row else tensor for name, tensor in inputs.items()}


def _with_pictures(turn: Mapping[str, Any], pictures: Mapping[int, Any]) -> dict[str, Any]:
    """Return a turn with pictures in place of the parts of messages."""
    if not isinstance(turn.get("content"), list):
        return dict(turn)
    parts = [{**part, "image": pictures[id(part["image"])]} if "image" in part else part for part in _parts(turn)]
    return {**turn, "content": parts}


def load_processor(source: str, config: Any, options: Mapping[str, Any]) -> Any:
    """Return the processor of a vision model, for images alone if its class says what its parts are.

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
    from transformers import ProcessorMixin

    base: Any = ProcessorMixin
    parts = kind.get_attributes()
    needed = [name for name in parts if name in ("image_processor", "tokenizer")]

    class Parts(base):  # type: ignore[misc]
        """What the class takes for the base of all processors."""

        def __init__(self, *args: Any, **options: Any) -> None:
            passed = dict(zip(parts, args, strict=False)) | options
            super().__init__(**{name: part for name, part in passed.items() if name in needed or name not in parts})

    class ImagesOnly(kind, Parts):  # type: ignore[misc]
        """The class, which gets None for the parts that it lacks."""

        # SmolVLM's own method reads its video processor, which is not there.
        apply_chat_template = base.apply_chat_template

        @classmethod
        def get_attributes(cls) -> list[str]:
            """Return the names of the parts that transformers loads."""
            return needed

        @classmethod
        def _get_arguments_from_pretrained(cls, *args: Any, **options: Any) -> list[Any]:
            found = dict(zip(needed, super()._get_arguments_from_pretrained(*args, **options), strict=True))
            return [found.get(name) for name in parts]

    ImagesOnly.__name__ = kind.__name__  # by which transformers knows some of them
    return ImagesOnly
