"""Any causal language model of transformers, with its key/value cache under our own loop."""

from __future__ import annotations

import copy
import inspect
import os
import threading
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ...basics.forks import shared_lock
from ...conversation.messages import Message
from ...errors import MissingDependencyError, ModelError, first_line
from ...vocabulary.vocabulary import Vocabulary
from ..chat_template import ChatTemplate
from ..history import first_rendered
from ..image_tokens import count_placeholders, images_of
from ..images import Fetch, OpenedImage, opened_images
from ..local_backend import SharedPasses
from ..model_folder import token_ids_of
from ..prefix_cache import PREFIX_BYTES, KeptSession
from ..prompts import encode_inside, plain_prompt, template_ids
from ..sessions import EngineSession, OpenSessions, Tree
from .hub import is_offline
from .packed import cache_argument, nearly_equal, new_cache, packed_forward, packing_fault
from .vision import TEXT_ONLY, PromptImages, Vision, load_processor

if TYPE_CHECKING:
    import numpy.typing as npt

#: Default context window, if a model's configuration has none.
DEFAULT_WINDOW = 4096

#: Layers of a cache that can be truncated. Recurrent states cannot, and a sliding window only before it slides; unknown
#: layers count as ones that cannot.
_CROPPABLE_LAYERS = ("DynamicLayer", "DynamicSlidingWindowLayer")


#: Prelude of a chat template: transformers omits members that are None, and some templates test ``is none``.
_NONE_AGAIN = (
    "{%- set told = namespace(messages=[]) -%}{%- for message in messages -%}"
    "{%- set told.messages = told.messages + [message if 'content' in message else dict(message, content=none)] -%}"
    "{%- endfor -%}{%- set messages = told.messages -%}"
)


class HFBackend(SharedPasses):
    """A causal model and its tokenizer, loaded by transformers; implements `Backend`. A vision model also reads the
    images of a conversation, by its own processor, for which Pillow is needed.

    Code of a model repository is not run (``trust_remote_code`` is off). Tokenizers of transformers are stateful, so
    they are used by one thread at a time.

    Args:
        name: a folder, a GGUF file, whose weights are unpacked (it needs the package ``gguf``), or a name on the hub
            that transformers knows how to find.
        device: for example ``"cuda"``; ``"cpu"`` by default.
        dtype: for example ``"bfloat16"``; ``"auto"``: that of the saved model.
        revision: the revision of a model on the hub.
        context_window: maximum number of tokens of a sequence; by default that of the model's configuration.
        prefix_cache: maximum size of the prefix cache on the device, in bytes; 0: no cache.
        tool_format: the wire format of the model's tool calls; None: detect it from the chat template.
        fetch_image: returns the bytes of an image at an address of a message; None: addresses are refused, and nothing
            is ever fetched.

    Raises:
        MissingDependencyError: torch or transformers is not installed.
        ModelError: the model cannot be loaded.
        VocabularyError: the exact bytes of the tokenizer's tokens are not known.
    """

    def __init__(
        self,
        name: str,
        device: str = "cpu",
        dtype: str = "auto",
        revision: str | None = None,
        context_window: int | None = None,
        prefix_cache: int = PREFIX_BYTES,
        tool_format: str | None = None,
        fetch_image: Fetch | None = None,
    ) -> None:
        self.fetch_image = fetch_image
        try:
            import torch  # noqa: F401 - transformers' models need it, and report its absence unclearly
            import transformers
        except ImportError as error:
            raise MissingDependencyError(
                "hf: models need torch and transformers", hint="pip install 'toolgrammar[transformers]'"
            ) from error
        options: dict[str, Any] = {"trust_remote_code": False}
        if revision is not None:
            options["revision"] = revision
        source = name
        if name.endswith(".gguf") and Path(name).is_file():
            source, options["gguf_file"] = os.path.split(name)
        elif is_offline(name, revision):
            options["local_files_only"] = True
        try:
            kind, processor = self._kind(transformers, source, options)
            if processor is None:
                self._tokenizer: Any = transformers.AutoTokenizer.from_pretrained(source, **options)
            else:
                self._tokenizer = processor.tokenizer
                self._tokenizer.chat_template = processor.chat_template or self._tokenizer.chat_template
            model: Any = kind.from_pretrained(source, dtype=dtype, **options)
        except Exception as error:  # a folder can be broken in many ways, with different errors of each library
            raise ModelError(
                f"transformers cannot load {name!r}: {first_line(error)}",
                hint="give a folder with config.json, weights and tokenizer, or a model that is on this machine",
            ) from error
        try:
            model.to(device)
        except (RuntimeError, AssertionError) as error:
            raise ModelError(f"the device {device!r} cannot be used: {error}", hint="device='cpu'") from error
        model.eval()
        self._model = model
        self._vision = None if processor is None else Vision(processor, model)
        self.sees = processor is not None
        self._device = device
        self.yields = device == "cpu"
        self._tokenizer_lock = shared_lock(self, "_tokenizer_lock", threading.Lock())
        config = model.config.get_text_config()
        window = int(context_window or getattr(config, "max_position_embeddings", None) or DEFAULT_WINDOW)
        head = model.get_output_embeddings()
        size = int(config.vocab_size if head is None else head.weight.shape[0])
        ends = token_ids_of(getattr(getattr(model, "generation_config", None), "eos_token_id", None))
        # A configuration's default may be a token that this model does not have.
        ends = [token_id for token_id in ends if 0 <= token_id < size]
        super().__init__(
            name,
            Vocabulary.from_transformers(self._tokenizer, size=size, extra_eos=ends),
            window,
            prefix_cache=prefix_cache,
            tool_format=tool_format,
            chat_template=str(self._tokenizer.chat_template or ""),
            takes_thinking=True,
        )
        # Some models read tokens, such as those of images, that they cannot write.
        readable = int(getattr(model.get_input_embeddings(), "num_embeddings", size))
        self._traits = _Traits(self._sessions, readable, hasattr(getattr(model, "model", None), "get_rope_index"))
        if cache_argument(model) is None:
            lost = "each step reads the whole sequence again, and no beginning of a prompt is kept"
            self._warn(lost, "its forward pass takes no cache")

    def _kind(self, transformers: Any, source: str, options: Mapping[str, Any]) -> tuple[Any, Any]:
        """Return the class that loads a model, and the processor of its images; None: it reads text alone, and if its
        architecture would see images, `blind` is set to the reason."""
        from transformers.models.auto.modeling_auto import (
            MODEL_FOR_CAUSAL_LM_MAPPING,
            MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING,
        )

        if "gguf_file" in options:  # the text of a model
            return transformers.AutoModelForCausalLM, None
        config = transformers.AutoConfig.from_pretrained(source, **options)
        if type(config) not in MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING:
            return transformers.AutoModelForCausalLM, None
        if config.model_type in TEXT_ONLY:
            self.blind = f"models of the kind {config.model_type} are read as text only"
        else:
            try:
                processor = load_processor(source, config, options)
                if processor.chat_template or processor.tokenizer.chat_template:
                    return transformers.AutoModelForImageTextToText, processor
                self.blind = "it has no chat template, in which images have their places"
            except Exception as error:  # of many libraries
                self.blind = f"it would, but its processor cannot be loaded: {first_line(error)}"
        is_text = type(config) in MODEL_FOR_CAUSAL_LM_MAPPING
        return (transformers.AutoModelForCausalLM if is_text else transformers.AutoModelForImageTextToText), None

    def _warn(self, lost: str, reason: str) -> None:
        """Log a warning if a model with attention lacks a capability; models without attention are expected to lack
        it."""
        if getattr(self._model.config.get_text_config(), "num_attention_heads", None):
            import transformers

            message = f"{self.name}: {lost}, since {reason} (transformers {transformers.__version__})"
            warnings.warn(message, RuntimeWarning, stacklevel=3)

    def encode(self, text: str) -> list[int]:
        """Return the token ids of ``text`` in the middle of a text; names of control tokens are read as text."""
        return encode_inside(self._ids, self.vocabulary, text)

    def _ids(self, text: str) -> list[int]:
        with self._tokenizer_lock:
            self._sessions.check()
            return list(self._tokenizer(text, add_special_tokens=False, split_special_tokens=True)["input_ids"])

    def prompt_ids(
        self, messages: Sequence[Message], tools: Sequence[Mapping[str, Any]], tool_prompt: str, thinking: bool | None
    ) -> list[int]:
        """Return the token ids of a conversation, by the chat template of the tokenizer if it has one."""
        tokenizer = self._open(self._tokenizer)
        bos = tokenizer.bos_token_id
        if not messages:
            with self._tokenizer_lock:
                return [bos] if bos in tokenizer("")["input_ids"] else []
        if not self.chat_template:
            return plain_prompt(messages, tool_prompt, self.vocabulary, self.encode, None if bos is None else int(bos))
        images = opened_images(messages, self.fetch_image) if self.sees else []
        render = partial(self._rendered_ids, images)
        try:
            return first_rendered(str(tokenizer.chat_template), messages, tools, tool_prompt, render, thinking)
        except ModelError:
            if self._vision is not None:
                self._vision.check(images)
            raise

    def _rendered_ids(
        self,
        images: Sequence[OpenedImage],
        turns: list[dict[str, Any]],
        tools: list[Any] | None,
        variables: Mapping[str, Any],
    ) -> list[int]:
        """Return the token ids of turns, as the template renders them with tools and further variables. May raise any
        exception, because a template is a program. The lock is held because rendering changes the tokenizer."""
        from jinja2.exceptions import SecurityError

        tokenizer = self._open(self._tokenizer)
        source = str(tokenizer.chat_template)
        options: dict[str, Any] = {"add_generation_prompt": True, "return_dict": False, **variables}
        if "sanitize_control_tokens" in inspect.signature(tokenizer.apply_chat_template).parameters:
            options["sanitize_control_tokens"] = True  # text of a user is never a control token
        if any(turn.get("content", "") is None for turn in turns):
            options["chat_template"] = _NONE_AGAIN + source
        for name in ("bos_token", "eos_token"):  # a template may use one that the tokenizer lacks
            if getattr(tokenizer, name, None) is None:
                options[name] = ""
        try:
            with self._tokenizer_lock:
                if images and self._vision is not None:
                    return self._vision.prompt_ids(turns, images, {**options, "tools": tools}, self.vocabulary)
                return list(tokenizer.apply_chat_template(turns, tools=tools, **options))
        except SecurityError:  # the template changes a list of its own, as llama.cpp's do: our sandbox allows it
            if images:
                raise
            bos, eos = tokenizer.bos_token or "", tokenizer.eos_token or ""
            template = ChatTemplate(source, controls=self.vocabulary.special, bos=bos, eos=eos)
            pieces = template.render(turns, tools, variables)
            return template_ids(pieces, self.encode, self._control_ids, self.vocabulary)

    def _control_ids(self, text: str) -> list[int]:
        """Return the token ids of a text in which names of control tokens are control tokens."""
        with self._tokenizer_lock:
            return list(self._open(self._tokenizer)(text, add_special_tokens=False)["input_ids"])

    def _open(self, part: Any) -> Any:
        """Return a part, the model or the tokenizer: once it is checked, the caller may use it even if another thread
        closes this backend. `close` drops the parts after it has marked the backend as closed, so it is not None here.

        Raises:
            ModelError: the backend is closed.
        """
        self._sessions.check()
        return part

    def new_session(self) -> HFSession:
        """Return an empty sequence."""
        return HFSession(self._open(self._model), self._device, self.context_window, self._traits)

    def can_batch(self) -> bool:
        """Return True if sequences of this model can share forward passes; tested by the first call, which warns if
        not.

        Raises:
            ModelError: the model is closed.
        """
        model = self._open(self._model)
        if self._traits.packs is None:
            with self._traits.passing:
                fault = packing_fault(model)
            self._traits.packs = fault is None
            if fault is not None:
                self._warn("requests share no forward passes, and run one after another", fault)
        return self._traits.packs

    def _extend_rows(self, rows: Sequence[tuple[KeptSession, Sequence[int]]]) -> list[npt.NDArray[np.float32]]:
        sessions: list[Any] = [session for session, _ in rows]
        wanted = [session.checked(ids) for session, (_, ids) in zip(sessions, rows, strict=True)]
        model = self._open(self._model)
        unread = [ids[session._cached :] for session, ids in zip(sessions, wanted, strict=True)]
        with_images = {number for number, ids in enumerate(unread) if images_of(ids) is not None}
        if with_images:  # they are read in passes of their own, and the other rows in a shared one
            logits = {number: sessions[number].extend(rows[number][1]) for number in with_images}
            others = [number for number in range(len(rows)) if number not in with_images]
            if others:
                logits.update(zip(others, self._extend_rows([rows[number] for number in others]), strict=True))
            return [logits[number] for number in range(len(rows))]
        with self._traits.passing:
            return _pass_packed(model, sessions, wanted)

    def close(self) -> None:
        """Free the model, the tokenizer and all sequences; closing twice is allowed."""
        super().close()
        with self._tokenizer_lock:
            self._model = self._tokenizer = None
        if self._device.startswith("cuda"):
            import torch

            torch.cuda.empty_cache()  # else the memory stays reserved for this process


@dataclass
class _Traits:
    """Properties that the sessions of a model share; some are tested on first use, and None before that.

    Attributes:
        sessions: the registry of open sessions.
        size: number of tokens of the vocabulary.
        has_image_positions: images take fewer positions than tokens (M-RoPE), so positions are given in each pass.
        packs: sequences can share forward passes.
        reads_trees: a tree of tokens can be evaluated in one pass.
        can_append_many: several tokens can be appended in one pass to a cache of an unknown kind.
        passing: held during each forward pass.
    """

    sessions: OpenSessions[Any]
    size: int
    has_image_positions: bool = False
    packs: bool | None = None
    can_append_many: bool | None = None
    reads_trees: bool | None = None
    passing: threading.Lock = field(default_factory=threading.Lock)


class HFSession(EngineSession):
    """One sequence and its cache; implements `Session`.

    A model whose forward pass has no attention cache (Mamba, RWKV) reads the whole sequence again for each step, and
    any model does so once after a crop that its cache does not support; this is slower, but exact.
    """

    def __init__(self, model: Any, device: str, window: int, traits: _Traits) -> None:
        super().__init__(window, traits.size)
        self._traits = traits
        self._model = model
        self._device = device
        self._cache: Any = None
        self._images: PromptImages | None = None  # of the tokens in the cache
        self._position_shift = 0  # position of a token behind images, less its index in the sequence; not positive
        takes = inspect.signature(model.forward).parameters
        self._cache_argument = cache_argument(model)
        self._options = {"logits_to_keep": 1} if "logits_to_keep" in takes else {}
        self._traits.sessions.add(self)

    def extend(self, token_ids: Sequence[int]) -> npt.NDArray[np.float32]:
        """Append tokens in one forward pass; return the logits after the last. An error changes nothing."""
        import torch

        ids = self.checked(token_ids)
        images = images_of(ids[self._cached :])
        if images is not None:
            return self._extend_images(ids, images)
        if self._cached and len(ids) - self._cached > 1 and not self._can_append_many():
            before = len(self._ids)
            try:  # one pass for each token
                return [self.extend([token_id]) for token_id in ids[self._cached :]][-1]
            except BaseException:
                self.crop(before)
                raise
        arguments: dict[str, Any] = dict(self._options)
        if self._traits.has_image_positions:
            indices = torch.arange(self._cached, len(ids), device=self._device)
            arguments["position_ids"] = (indices + self._position_shift)[None]
        return self._forward(ids, arguments)

    def _forward(self, ids: list[int], arguments: dict[str, Any]) -> npt.NDArray[np.float32]:
        """Read the tokens of a sequence that are not in the cache, with further arguments of the model."""
        import torch

        new = torch.tensor([ids[self._cached :]], dtype=torch.long, device=self._device)
        try:
            with self._traits.passing, torch.inference_mode():
                if self._cache_argument is not None:
                    held = {self._cache_argument: self._cache}
                    output = self._model(input_ids=new, use_cache=True, **held, **arguments)
                    self._cache = getattr(output, self._cache_argument, None)
                    self._cached = 0 if self._cache is None else len(ids)
                else:
                    output = self._model(input_ids=new, use_cache=False, **arguments)
                if self._images is not None and self._traits.has_image_positions and "position_ids" not in arguments:
                    self._position_shift = int(self._model.model.rope_deltas.flatten()[0])
        except BaseException:  # some layers may have read the tokens, others not
            self.forget()
            raise
        self._ids = ids
        logits: npt.NDArray[np.float32] = output.logits[0, -1].float().cpu().numpy()
        return logits

    def _extend_images(self, ids: list[int], images: PromptImages) -> npt.NDArray[np.float32]:
        """Extend the sequence by tokens of which some stand for images: it is read again from its beginning, in one
        pass, when it has all the images of its prompt. Before that, nothing is read, and the logits are 0."""
        if count_placeholders(ids) < images.count:
            self._ids = ids
            return np.zeros(self._traits.size, np.float32)
        self.forget()
        self._images = images
        weight = self._model.get_input_embeddings().weight
        return self._forward(ids, {**self._options, **images.arguments(len(ids), weight)})

    def branches(self, token_ids: Sequence[int], parents: Sequence[int]) -> npt.NDArray[np.float32] | None:
        """Return the logits after each token of a tree that continues the sequence; see `TreeSession`."""
        self.checked(token_ids)
        if not self._cached or self._cached < len(self._ids) or not self._can_shorten(1) or not self._reads_trees():
            return None
        return self._branches(token_ids, parents)

    def _branches(self, token_ids: Sequence[int], parents: Sequence[int]) -> npt.NDArray[np.float32]:
        """Return the logits after each token of a tree, ``[n, V]``, in one forward pass: each token sees the sequence
        and its own ancestors, by an attention mask. The cache is cropped to the sequence again; an error drops it."""
        import torch

        tree, length = Tree.of(parents), self._cached
        weight = self._model.get_input_embeddings().weight
        sees = np.concatenate([np.ones((len(token_ids), length), np.bool_), tree.sees], axis=1)
        mask = torch.zeros((1, 1, *sees.shape), dtype=weight.dtype, device=self._device)
        mask.masked_fill_(torch.from_numpy(~sees).to(self._device), torch.finfo(weight.dtype).min)
        try:
            with self._traits.passing, torch.inference_mode():
                output = self._model(
                    input_ids=torch.tensor([list(token_ids)], dtype=torch.long, device=self._device),
                    position_ids=torch.from_numpy(tree.depths + length + self._position_shift)[None].to(self._device),
                    attention_mask=mask,
                    use_cache=True,
                    **{str(self._cache_argument): self._cache},
                )
                logits: npt.NDArray[np.float32] = output.logits[0].float().cpu().numpy()
                self._cache.crop(-len(token_ids))
        except BaseException:  # some layers may have read the tokens, others not
            self.forget()
            raise
        return logits

    def _reads_trees(self) -> bool:
        """Return True if this model supports the mask and positions of a tree; the first call tests it on a few
        tokens."""
        if self._traits.reads_trees is None:
            trial = _Traits(OpenSessions(), self._traits.size, can_append_many=True)
            try:
                tree, branch, other = (HFSession(self._model, self._device, self._window, trial) for _ in range(3))
                tree.extend([1, 2, 3])
                logits = tree._branches([4, 5, 6, 7], [-1, 0, -1, 2])  # 4 5 and 6 7, after the sequence
                self._traits.reads_trees = (
                    nearly_equal(logits[1], branch.extend([1, 2, 3, 4, 5]))  # after 4 5
                    and nearly_equal(logits[3], other.extend([1, 2, 3, 6, 7]))
                    and nearly_equal(tree.extend([4, 5]), logits[1])
                )
            except Exception:  # a model may use its cache or its masks in unexpected ways
                self._traits.reads_trees = False
        return self._traits.reads_trees

    def _can_append_many(self) -> bool:
        """Return True if several tokens can be appended to the cache in one pass.

        Some recurrent layers of transformers silently reset their state in each pass of several tokens.
        """
        if all(type(layer).__name__ in _CROPPABLE_LAYERS for layer in self._layers()):
            return True
        if self._traits.can_append_many is None:
            trial = _Traits(OpenSessions(), self._traits.size, can_append_many=True)
            whole, pieces = (HFSession(self._model, self._device, self._window, trial) for _ in range(2))
            pieces.extend([1, 2, 3])
            self._traits.can_append_many = nearly_equal(pieces.extend([4, 5, 6]), whole.extend([1, 2, 3, 4, 5, 6]))
        return self._traits.can_append_many

    def forget(self) -> None:
        """Drop the cache; the next `extend` reads the sequence again."""
        self._cache, self._cached, self._images, self._position_shift = None, 0, None, 0

    def _shorten(self, length: int) -> bool:
        self._cache.crop(length - self._cached)  # negative: the number to remove
        if self._images is not None and images_of(self._ids[:length]) is None:
            self._images, self._position_shift = None, 0
        return True

    def _can_shorten(self, length: int) -> bool:
        return all(
            type(layer).__name__ in _CROPPABLE_LAYERS
            and not (getattr(layer, "is_sliding", False) and layer.get_seq_length() >= layer.sliding_window)
            for layer in self._layers()
        )

    def _layers(self) -> list[Any]:
        """Return the layers of the cache; ``[None]``, which is of no known type, if it has none."""
        layers: list[Any] = getattr(self._cache, "layers", None) or [None]
        return layers

    @property
    def nbytes(self) -> int:
        """Current size of the cache in bytes, including capacity that a crop has left."""
        storages = {}
        for layer in getattr(self._cache, "layers", ()):
            for tensor in _tensors(vars(layer)):
                storage = tensor.untyped_storage()
                storages[storage.data_ptr()] = int(storage.nbytes())
        return sum(storages.values()) + (0 if self._images is None else self._images.nbytes)

    def keeps(self, length: int) -> bool:
        """Return True if the session can be reduced to its first ``length`` tokens without reading them again."""
        return super().keeps(length) and bool(getattr(self._cache, "layers", None))

    def fork(self, length: int) -> HFSession:
        """Return an independent session with the first ``length`` tokens."""
        twin = HFSession(self._model, self._device, self._window, self._traits)
        twin._ids = list(self._ids)
        twin._cached, twin._images, twin._position_shift = self._cached, self._images, self._position_shift
        twin._cache = copy.copy(self._cache)
        twin._cache.layers = [copy.copy(layer) for layer in self._cache.layers]
        twin.crop(length)
        for layer in twin._cache.layers:
            layer.keys, layer.values = layer.keys.clone(), layer.values.clone()
            vars(layer).pop("rooms", None)  # the tensors of the other sequence
        return twin

    def close(self) -> None:
        """Free the cache; closing twice is allowed."""
        super().close()
        self._model = None


def _pass_packed(
    model: Any, sessions: Sequence[HFSession], wanted: Sequence[list[int]]
) -> list[npt.NDArray[np.float32]]:
    """Extend sessions to their new sequences (``wanted``), in one forward pass; return the logits of each after its
    last token. An error drops all their caches, but not their tokens."""
    try:
        for session in sessions:
            if session._cache is None:
                session._cache = new_cache(model)
        rows = [
            (session._cache, ids[session._cached :], session._position_shift)
            for session, ids in zip(sessions, wanted, strict=True)
        ]
        logits = packed_forward(model, rows)
    except BaseException:  # some layers may have read the tokens, others not
        for session in sessions:
            session.forget()
        raise
    for session, ids in zip(sessions, wanted, strict=True):
        session._ids, session._cached = ids, len(ids)
    return logits


def _tensors(value: Any) -> Iterator[Any]:
    """Yield the tensors in a layer of a cache, which may be of any kind."""
    if hasattr(value, "untyped_storage"):
        yield value
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from _tensors(item)
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _tensors(item)
