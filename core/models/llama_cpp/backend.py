"""Models in GGUF files, run by llama.cpp through the functions of ``llama.h``, under our own loop.

Requests at the same time share one llama.cpp context and its forward passes (`LlamaContext`). A model whose state
cannot be truncated (a recurrent one), and a session outside of shared passes, has a context for each sequence. Only
functions of ``llama.h`` are called; sampling, grammars and chat handlers of llama.cpp's packages are not used.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ...conversation.messages import Message
from ...errors import ModelError
from ...generation.backend import closed_error
from ...vocabulary.vocabulary import Vocabulary
from ..chat_template import ChatTemplate
from ..image_tokens import ImageToken, count_placeholders
from ..images import Fetch, opened_images
from ..local_backend import SharedPasses
from ..prefix_cache import PREFIX_BYTES, KeptSession
from ..prompts import encode_inside, plain_prompt, template_ids
from ..sessions import EngineSession
from ..stores import family_template, resolve
from .contexts import LlamaContext, Slot
from .library import llama_library
from .vision import Piece, Projector, marked, positions, projector_beside, size_of_begun_piece, with_images
from .weights import Weights

if TYPE_CHECKING:
    import numpy.typing as npt

#: Default maximum of the context window: llama.cpp allocates the whole key/value cache when a sequence begins.
DEFAULT_WINDOW = 8192


class GGUFBackend(SharedPasses):
    """A causal model and its tokenizer in one GGUF file; implements `Backend`.

    Vocabulary, control tokens, end-of-text tokens and chat template come from the file. llama.cpp's own messages
    below the level "error" are suppressed, unless the logger ``llama-cpp-python`` has another level.

    Args:
        path: the file (the first one of a model in several); or a model that another program keeps on this machine:
            ``ollama/NAME[:TAG]`` or ``lmstudio/NAME`` (see `stores.resolve`).
        context_window: maximum number of tokens of a sequence; by default that of the training, at most 8,192.
        threads: number of threads; by default half the number of processors of this process, because llama.cpp's
            threads spin while they wait for each other, which is slow if a processor has other work.
        gpu_layers: number of layers on the accelerator for which llama.cpp was built; -1: all.
        prefix_cache: maximum size of the prefix cache, in bytes. The newest sequence has the size of a whole window,
            older ones that of their tokens. By default 512 MiB, or one window if that is more; 0: no cache.
        tool_format: the wire format of the model's tool calls; None: detect it from the chat template.
        max_running_tokens: maximum number of tokens of all sequences that share forward passes, for which llama.cpp
            allocates one cache; by default the context window.
        mmproj: the file of the model's projector, by which it reads images; None: that of the store, or one beside the
            model (`projector_beside`), if it can be loaded; an empty text: none.
        fetch_image: returns the bytes of an image at an address of a message; None: addresses are refused, and nothing
            is ever fetched.

    Attributes:
        capacity: maximum number of tokens of all sequences that share forward passes.

    Raises:
        MissingDependencyError: neither llama-cpp-python nor xllamacpp is installed.
        ModelError: the file cannot be loaded, or is not a text model; or ``mmproj`` cannot be loaded.
    """

    blind = "mmproj=PATH names the projector (mmproj*.gguf) of a vision model"

    def __init__(
        self,
        path: str,
        context_window: int | None = None,
        threads: int | None = None,
        gpu_layers: int = -1,
        prefix_cache: int | None = None,
        tool_format: str | None = None,
        max_running_tokens: int | None = None,
        mmproj: str | None = None,
        fetch_image: Fetch | None = None,
    ) -> None:
        library = llama_library()
        stored = resolve(path)
        file = path if stored is None else str(stored.path)
        if not Path(file).is_file():
            raise ModelError(f"the file {file!r} does not exist", hint="gguf:/path/to/model.gguf")
        self._weights = Weights(library, file, gpu_layers)
        trained = int(library.llama_model_n_ctx_train(self._weights.model))
        window = int(context_window or min(trained or DEFAULT_WINDOW, DEFAULT_WINDOW))
        self.capacity = max(window, max_running_tokens or 0)
        self._shared: LlamaContext | None = None
        self._batches: bool | None = None
        self._threads = threads or max(1, _processors() // 2)
        self.fetch_image = fetch_image
        found = (None if stored is None else stored.projector) or projector_beside(Path(file))
        self._projector = self._load_projector(mmproj, found, gpu_layers)
        self.sees = self._projector is not None
        vocabulary = _vocabulary(self._weights)
        source = (library.llama_model_chat_template(self._weights.model, None) or b"").decode("utf-8", "replace")
        if not source and stored is not None:
            source = family_template(stored.ollama_template) or ""
        bos, eos = self._weights.text(self._weights.bos), self._weights.text(self._weights.eos)
        self._template = ChatTemplate.of(source, vocabulary.special, bos=bos, eos=eos)
        super().__init__(
            path,
            vocabulary,
            window,
            prefix_cache=max(PREFIX_BYTES, self._weights.cache_bytes(window)) if prefix_cache is None else prefix_cache,
            tool_format=tool_format,
            chat_template=source,
            takes_thinking=True,
        )

    def _load_projector(self, mmproj: str | None, found: Path | None, gpu_layers: int) -> Projector | None:
        """Return the projector that the user named (``mmproj``; empty: none), else the one that was found. If that
        cannot be loaded, return None, and set `blind`, the reason why the model sees no images."""
        if mmproj and not Path(mmproj).is_file():
            raise ModelError(f"the file {mmproj!r} does not exist", hint="mmproj=PATH of the projector, mmproj*.gguf")
        path = str(found or "") if mmproj is None else str(mmproj)
        try:
            return Projector(self._weights, path, self._threads, gpu_layers != 0) if path else None
        except ModelError as error:
            if mmproj:
                raise
            self.blind = f"it would, but {error.message}"
            return None

    def encode(self, text: str) -> list[int]:
        """Return the token ids of ``text`` in the middle of a text; names of control tokens are read as text."""
        return encode_inside(lambda piece: self._open().tokenize(piece, special=False), self.vocabulary, text)

    def prompt_ids(
        self, messages: Sequence[Message], tools: Sequence[Mapping[str, Any]], tool_prompt: str, thinking: bool | None
    ) -> list[int]:
        """Return the token ids of a conversation, by the chat template in the file if there is one."""
        weights = self._open()
        bos = weights.bos if weights.adds_bos else None
        if not messages:
            return [] if bos is None else [bos]
        images: dict[str, list[int]] = {}
        if self._projector is not None and any(message.images for message in messages):
            opened = opened_images(messages, self.fetch_image)
            messages, marks = marked(messages, opened, (tools, tool_prompt))
            images = {mark: self._projector.image_ids(image) for mark, image in marks.items()}
        encode = with_images(self.encode, images)
        if self._template is None:
            ids = plain_prompt(messages, tool_prompt, self.vocabulary, encode, bos)
        else:
            pieces = self._template.render_prompt(messages, tools, tool_prompt, thinking)
            tokenize = with_images(lambda text: weights.tokenize(text, special=True), images)
            ids = template_ids(pieces, encode, tokenize, self.vocabulary)
            ids = ids if bos is None or ids[:1] == [bos] else [bos, *ids]
        if count_placeholders(ids) != sum(map(count_placeholders, images.values())):
            raise ModelError("the model's chat template leaves out images", hint="send text")
        return ids

    def new_session(self) -> GGUFSession:
        """Return an empty sequence, with the capacity of the whole context window.

        Raises:
            ModelError: there is not enough memory, or the model is closed.
        """
        window = self.context_window
        context = LlamaContext(
            self._open(), window, cells=window, threads=self._threads, sequences=1, projector=self._projector
        )
        return self._session(context, self.new_session)

    def can_batch(self) -> bool:
        """Return True if sequences of this model can share forward passes; the first call allocates their cache.

        Raises:
            ModelError: the model is closed.
        """
        weights = self._open()
        if self._batches is None:
            try:
                if not weights.is_recurrent:
                    self._shared = LlamaContext(
                        weights, self.context_window, self.capacity, self._threads, projector=self._projector
                    )
            except ModelError:
                pass
            self._batches = self._shared is not None
        return self._batches

    def _new_shared(self) -> GGUFSession:
        """Return an empty sequence of the shared context."""
        self._sessions.check()
        assert self._shared is not None
        return self._session(self._shared, self._new_shared)

    def _session(self, context: LlamaContext, make: Callable[[], GGUFSession]) -> GGUFSession:
        session = GGUFSession(context, make)
        self._sessions.add(session)
        return session

    def _extend_rows(self, rows: Sequence[tuple[KeptSession, Sequence[int]]]) -> list[npt.NDArray[np.float32]]:
        own: list[Any] = list(rows)
        return extend_rows(own)

    def close(self) -> None:
        """Free the model and all its sessions; closing twice is allowed."""
        super().close()
        if self._shared is not None:
            self._shared.close()
        if self._projector is not None:
            self._projector.close()
        self._weights.close()

    def _open(self) -> Weights:
        self._sessions.check()
        return self._weights


def _processors() -> int:
    """Return the number of processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class GGUFSession(EngineSession):
    """One sequence in a llama.cpp context; implements `Session`. Not for several threads at once.

    A stored sequence can `rest`: its context is freed, and a copy of its state is kept. A model whose state cannot be
    truncated (a recurrent one) reads the whole sequence again after a crop, which is slower, but exact.

    Args:
        context: the context of the sequence.
        make: makes an empty session of the same kind.
    """

    def __init__(self, context: LlamaContext, make: Callable[[], GGUFSession]) -> None:
        super().__init__(context.window, context.weights.size)
        self._shared = context if context.is_shared else None
        self._slot: Slot | None = None
        self._state: Any = None  # a copy of the state, while there is no slot
        self._weights = context.weights
        self._make = make
        self._set_slot(context.slot())

    def extend(self, token_ids: Sequence[int]) -> npt.NDArray[np.float32]:
        """Append tokens; return the logits after the last. An error changes nothing.

        Raises:
            ContextOverflowError: they do not fit in the context window.
            ModelError: no token is given, one is out of range, the session is closed, or llama.cpp fails.
        """
        return extend_rows([(self, token_ids)])[0]

    @property
    def nbytes(self) -> int:
        """Size in bytes: that of a whole window, in a shared context that of its tokens, or of the copy of the state
        after `rest`; with the images."""
        pieces: dict[int, Piece] = {id(each.images): each.images for each in self._ids if type(each) is ImageToken}
        images = sum(piece.nbytes for piece in pieces.values())
        if self._state is not None:
            return len(self._state) + images
        slot = self._slot
        if slot is None or slot.is_closed:
            return 0
        return self._weights.cache_bytes(slot.window if self._shared is None else slot.length) + images

    def forget(self) -> None:
        """Remove all tokens from llama.cpp; the next `extend` reads the sequence again."""
        self._open().clear()
        self._cached = 0

    def _can_shorten(self, length: int) -> bool:
        return not self._weights.is_recurrent and not size_of_begun_piece(self._ids, length)

    def _shorten(self, length: int) -> bool:
        last = self._ids[length - 1]
        positions_of_last = last.images.positions if isinstance(last, ImageToken) else 1
        return self._open().crop(length, positions(self._ids, length), positions_of_last)

    def rest(self) -> None:
        """Free the context to save memory; keep a copy of its state, from which the next use restores it.

        Raises:
            ModelError: llama.cpp cannot copy the state, or the session is closed; nothing has changed.
        """
        if self._state is None:
            slot = self._open()
            self._state = slot.state()
            slot.close()
            self._slot = None

    def fork(self, length: int) -> GGUFSession:
        """Return an independent session with the first ``length`` tokens."""
        twin = self._with_state(self._open().state() if self._state is None else self._state)
        twin._ids = list(self._ids)
        twin._cached = self._cached
        twin.crop(length)
        return twin

    def _with_state(self, state: Any) -> GGUFSession:
        """Return a new session in whose slot a copy of the state of this one is restored."""
        twin = self._make()
        try:
            twin._open().restore(state, self._cached, positions(self._ids, self._cached))
        except BaseException:
            twin.close()
            raise
        return twin

    def close(self) -> None:
        """Free the context; closing twice is allowed."""
        self._is_closed = True
        if self._slot is not None:
            self._slot.close()
        self._slot = self._state = None
        self._ids, self._cached = [], 0

    def _set_slot(self, slot: Slot) -> None:
        self._slot = slot
        if self._shared is not None:
            slot.set_aside = self.rest

    def _open(self) -> Slot:
        """Return the session's slot; the state of a session that rests is first restored into a new one, completely or
        not at all. Raise an error if the session was closed."""
        if self._state is not None:
            twin = self._with_state(self._state)
            slot, twin._slot, self._state = twin._slot, None, None
            assert slot is not None
            self._set_slot(slot)
        if self._slot is None or self._slot.is_closed:
            raise closed_error("session")
        return self._slot


def extend_rows(rows: Sequence[tuple[GGUFSession, Sequence[int]]]) -> list[npt.NDArray[np.float32]]:
    """Append tokens to several sequences, in one forward pass if they share a context; return the logits after the last
    token of each, or 0 while an image is not complete. An error changes nothing."""
    sessions = [session for session, _ in rows]
    contexts = {id(session._shared): session._shared for session in sessions}
    context = sessions[0]._shared if len(rows) > 1 and len(contexts) == 1 else None
    with nullcontext() if context is None else context.together():
        slots = []
        for session in sessions:
            slots.append(session._open())
            if context is not None:  # the next one may need room, for which this one must not be put aside
                context.pin(slots[-1])
        wanted = [session.checked(ids) for session, ids in rows]
        # The beginning of an image waits for the whole image.
        ends = [len(ids) - size_of_begun_piece(ids, len(ids)) for ids in wanted]
        try:
            pairs = [
                (slot, ids[session._cached : end])
                for session, slot, ids, end in zip(sessions, slots, wanted, ends, strict=True)
            ]
            logits = [slot.decode(ids) for slot, ids in pairs] if context is None else context.decode(pairs)
        except BaseException:
            for session in sessions:
                session.shorten(session._cached)
            raise
        for session, ids, end in zip(sessions, wanted, ends, strict=True):
            session._ids, session._cached = ids, end
        return logits


def _vocabulary(weights: Weights) -> Vocabulary:
    """Return the vocabulary of a file: text tokens with the bytes of llama.cpp, all others as control tokens."""
    library = weights.library
    control = library.LLAMA_TOKEN_ATTR_CONTROL | library.LLAMA_TOKEN_ATTR_UNKNOWN
    tokens: list[bytes | None] = []
    special: dict[str, int] = {}
    eos: set[int] = set()
    for token_id in range(weights.size):
        kind = int(library.llama_vocab_get_attr(weights.vocabulary, token_id))
        if library.llama_vocab_is_eog(weights.vocabulary, token_id):
            eos.add(token_id)
        if kind & control or token_id in eos:
            name = weights.text(token_id)
            if name:
                special.setdefault(name, token_id)
            tokens.append(None)
        else:
            tokens.append(None if kind & library.LLAMA_TOKEN_ATTR_UNUSED else weights.piece(token_id))
    return Vocabulary(tokens, eos=eos, special=special)
