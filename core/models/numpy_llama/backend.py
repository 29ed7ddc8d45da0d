"""Models in GGUF files, run by NumPy: a Llama with its byte-level BPE tokenizer and its chat template."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from ...conversation.messages import Message
from ...errors import ModelError
from ...generation.backend import closed_error
from ...vocabulary.token_bytes import byte_alphabet
from ...vocabulary.vocabulary import Vocabulary
from ..chat_template import ChatTemplate
from ..local_backend import SharedPasses
from ..prefix_cache import PREFIX_BYTES, KeptSession
from ..prompts import plain_prompt, spelled_history, template_ids
from .bpe import SPLITTERS, ByteBPE, splitter
from .gguf_file import GGUFFile
from .matrices import BlockMatrix, Floats
from .metadata import Metadata
from .network import DecoderConfig, DecoderSession, Network, extend_rows

#: Types of tokens in a GGUF file (``tokenizer.ggml.token_type``).
_UNKNOWN, _CONTROL, _USER_DEFINED, _UNUSED = 2, 3, 4, 5

#: Control tokens that end a turn or a text, in addition to the end token of the file; as in llama.cpp.
_ENDS = ("<|endoftext|>", "<|im_end|>", "<|end_of_text|>", "<|eot_id|>", "<|eom_id|>")

_HINT_LLAMA_CPP = "`gguf:PATH` runs every architecture, by llama.cpp"

#: The names in a GGUF file of the arrays of a block, by those of `Network`: ``blk.N.attn_q.weight`` is the query.
_NAMES_IN_BLOCK = {
    "attention_norm": "attn_norm",
    "query": "attn_q",
    "key": "attn_k",
    "value": "attn_v",
    "output": "attn_output",
    "mlp_norm": "ffn_norm",
    "gate": "ffn_gate",
    "up": "ffn_up",
    "down": "ffn_down",
}


#: Architectures of GGUF files that run here. Qwen2 is Llama with biases, and rotary pairs in halves.
ARCHITECTURES = ("llama", "qwen2")


class DecoderBackend(SharedPasses):
    """The common part of the backends with a `Network`, whose sequences share forward passes.

    Attributes:
        network: the weights; None after the model is closed.
    """

    network: Network | None = None
    yields = True

    def new_session(self) -> DecoderSession:
        """Return an empty sequence.

        Raises:
            ModelError: the model is closed.
        """
        if self.network is None:
            raise closed_error("model")
        return DecoderSession(self.network, self._sessions)

    def can_batch(self) -> bool:
        """Return True: sequences of different lengths share a pass."""
        return True

    def _extend_rows(self, rows: Sequence[tuple[KeptSession, Sequence[int]]]) -> list[Floats]:
        if self.network is None:
            raise closed_error("model")
        own: list[Any] = list(rows)
        return extend_rows(self.network, own)

    def close(self) -> None:
        """Free the weights and all sequences; closing twice is allowed."""
        super().close()
        self.network = None


class NumpyBackend(DecoderBackend):
    """A Llama or Qwen2 in a GGUF file, computed by NumPy and a compiled kernel; implements `Backend`.

    Quantised weights take 1.25 bytes each if the library was installed with a C compiler; otherwise they are unpacked
    to four bytes each.

    Args:
        path: the file.
        name: the model's name; by default the path.
        context_window: maximum number of tokens of a sequence; by default that of the training.
        prefix_cache: maximum size of the prefix cache, in bytes; 0: no cache.
        threads: maximum number of threads of a forward pass; None: the number of processors. Several threads read long
            prompts faster, but only on an idle machine.
        tool_format: the wire format of the model's tool calls; None: detect it from the chat template. If the template
            does not support calls, they are written in the Hermes format, and results in plain language.

    Raises:
        ModelError: the file cannot be read, or has an unknown architecture, tokenizer or tensor type.
    """

    def __init__(
        self,
        path: str | Path,
        name: str | None = None,
        context_window: int | None = None,
        prefix_cache: int = PREFIX_BYTES,
        threads: int | None = 1,
        tool_format: str | None = None,
    ) -> None:
        with GGUFFile(path) as file:
            metadata = Metadata(path, file.metadata)
            architecture = _architecture(file, metadata)
            self._tokenizer = _tokenizer(file, metadata)
            vocabulary = self._tokenizer.vocabulary
            config = _config(file, metadata, architecture, vocabulary.size)
            window = metadata.integer(f"{architecture}.context_length")
            window = context_window or window
            self.network = Network(config, _weights(file, metadata, architecture, config), window, threads)
            bos, eos = (_token_id(metadata, token, vocabulary.size) for token in ("bos", "eos"))
            self._bos = bos if metadata.flag("tokenizer.ggml.add_bos_token") else None
            source = metadata.text("tokenizer.chat_template", "")
            # Such a template shows no calls of earlier turns: they become text.
            self._spells_calls = tool_format is None and "tool_calls" not in source
            names = metadata.texts("tokenizer.ggml.tokens")
            self._template = ChatTemplate.of(
                source,
                vocabulary.special,
                bos="" if bos is None else names[bos],
                eos="" if eos is None else names[eos],
            )
        super().__init__(
            str(path) if name is None else name,
            vocabulary,
            window,
            prefix_cache=prefix_cache,
            tool_format=tool_format,
            chat_template=None if self._spells_calls else source,
            takes_thinking=True,
        )

    def encode(self, text: str) -> list[int]:
        """Return the token ids of ``text``; names of control tokens are read as text."""
        return self._tokenizer.encode(text)

    def prompt_ids(
        self, messages: Sequence[Message], tools: Sequence[Mapping[str, Any]], tool_prompt: str, thinking: bool | None
    ) -> list[int]:
        """Return the token ids of a conversation, by the chat template in the file if there is one."""
        if not messages:
            return [] if self._bos is None else [self._bos]
        if self._spells_calls:
            messages = spelled_history(messages)
        if self._template is None:
            return plain_prompt(messages, tool_prompt, self.vocabulary, self.encode, self._bos)
        pieces = self._template.render_prompt(messages, tools, tool_prompt, thinking)
        ids = template_ids(pieces, self.encode, partial(self._tokenizer.encode, controls=True), self.vocabulary)
        return ids if self._bos is None or ids[:1] == [self._bos] else [self._bos, *ids]


def _architecture(file: GGUFFile, metadata: Metadata) -> str:
    """Return the architecture of the network in a file, which begins the keys of its metadata.

    Raises:
        ModelError: it is none of `ARCHITECTURES`, or a variant that is not known here.
    """
    architecture = metadata.text("general.architecture")
    if architecture not in ARCHITECTURES:
        known = " and ".join(map(repr, ARCHITECTURES))
        raise ModelError(
            f"{str(file.path)!r} is of the architecture {architecture!r}; only {known} run in NumPy",
            hint=_HINT_LLAMA_CPP,
        )
    scaling = metadata.text(f"{architecture}.rope.scaling.type", "none")
    biases = ("attn_q.bias", "attn_k.bias", "attn_v.bias") if architecture == "qwen2" else ()
    # Variants have these tensors in addition, which `Network` would leave out without a word.
    unknown = [
        name for name in file.names if (name.endswith(".bias") and not name.endswith(biases)) or "_exps." in name
    ]
    if scaling not in ("none", "linear"):
        what = f"rotary positions scaled by {scaling!r}"
    elif metadata.integer(f"{architecture}.expert_count", 0, least=0):
        what = "a mixture of experts"
    elif metadata.integer("split.count", 1, least=0) > 1:
        what = "only one part of its weights"
    elif unknown:
        what = f"the tensor {unknown[0]!r}"
    else:
        return architecture
    raise ModelError(f"{str(file.path)!r} has {what}, which NumPy does not run here", hint=_HINT_LLAMA_CPP)


def _config(file: GGUFFile, metadata: Metadata, architecture: str, vocabulary: int) -> DecoderConfig:
    """Return the shape of the network in a file."""
    prefix = f"{architecture}."
    heads = metadata.integer(f"{prefix}attention.head_count")
    config = DecoderConfig(
        vocabulary=vocabulary,
        dim=metadata.integer(f"{prefix}embedding_length"),
        layers=metadata.integer(f"{prefix}block_count", most=len(file.names)),
        heads=heads,
        kv_heads=metadata.integer(f"{prefix}attention.head_count_kv", heads),
        hidden=metadata.integer(f"{prefix}feed_forward_length"),
        rope_base=metadata.number(f"{prefix}rope.freq_base", 10_000.0),
        epsilon=metadata.number(f"{prefix}attention.layer_norm_rms_epsilon"),
    )
    width = config.head_dim
    widths = [
        metadata.integer(prefix + key, width, least=0)
        for key in ("rope.dimension_count", "attention.key_length", "attention.value_length")
    ]
    if any(each != width for each in widths):
        raise ModelError(f"{str(file.path)!r} has heads of another width than {width}", hint=_HINT_LLAMA_CPP)
    return config


def _weights(file: GGUFFile, metadata: Metadata, architecture: str, config: DecoderConfig) -> dict[str, Any]:
    """Return the arrays of a file with the names and shapes of `Network`. Shapes are checked before memory is taken."""
    config.check()
    biases = config.biases() if architecture == "qwen2" else {}
    shapes = config.shapes() | biases

    def tensor(name: str, name_in_file: str) -> Any:
        """Return the array of a name as the file has it: a matrix, but for the embedding, is the transpose of that of
        `Network`."""
        expected = shapes[name] if name == "embedding" else shapes[name][::-1]
        if file.shape(name_in_file) != expected:
            raise ModelError(
                f"the array {name!r} has the shape {file.shape(name_in_file)} in {str(file.path)!r}, not {expected}",
                hint="convert the model again",
            )
        array = file.tensor(name_in_file)
        if len(expected) == 1 and not isinstance(array, np.ndarray):
            raise ModelError(f"the tensor {name_in_file!r} is quantised", hint=_HINT_LLAMA_CPP)
        return array

    weights: dict[str, Any] = {
        "embedding": tensor("embedding", "token_embd.weight"),
        "norm": tensor("norm", "output_norm.weight"),
    }
    if "output.weight" in file.names:
        shapes["head"] = (config.dim, config.vocabulary)
        weights["head"] = tensor("head", "output.weight").T
    factors = np.ones(config.head_dim // 2, np.float32)
    if "rope_freqs.weight" in file.names:
        shapes["rope_factors"] = factors.shape
        factors = np.asarray(tensor("rope_factors", "rope_freqs.weight"))
    weights["rope_factors"] = factors * np.float32(metadata.number(f"{architecture}.rope.scaling.factor", 1.0))
    for layer in range(config.layers):
        for name, name_in_block in _NAMES_IN_BLOCK.items():
            array = tensor(f"layers.{layer}.{name}", f"blk.{layer}.{name_in_block}.weight")
            if name in ("query", "key") and architecture == "llama":
                array = _in_halves(array, config.heads if name == "query" else config.kv_heads)
            weights[f"layers.{layer}.{name}"] = array.T
            if (bias := f"layers.{layer}.{name}_bias") in biases:
                weights[bias] = tensor(bias, f"blk.{layer}.{name_in_block}.bias")
    return weights


def _in_halves(rows: Any, heads: int) -> Any:
    """Return a query or key projection, with rotary pairs reordered to the two halves of a head: ``a0 b0 a1 b1`` ->
    ``a0 a1 b0 b1``.

    In GGUF files of Llama the two numbers of a pair are adjacent, as in Meta's own code; in others they are in halves.
    """
    count = rows.shape[0]
    if count % (2 * heads):
        raise ModelError(f"{count} rows are not {heads} heads of even width", hint="convert the model again")
    order = np.arange(count).reshape(heads, -1, 2).swapaxes(1, 2).ravel()
    if isinstance(rows, BlockMatrix):
        return BlockMatrix(rows.q[order], rows.scales[order], rows.offsets[order])
    return rows[order]


def _token_id(metadata: Metadata, name: str, size: int) -> int | None:
    """Return the id of a token that the metadata name; None if they do not."""
    key = f"tokenizer.ggml.{name}_token_id"
    return metadata.integer(key, least=0, most=size - 1) if key in metadata else None


def _tokenizer(file: GGUFFile, metadata: Metadata) -> ByteBPE:
    """Return the tokenizer of a file.

    Raises:
        ModelError: it is not a byte-level BPE with a known pre-tokenizer.
        VocabularyError: its tokens are invalid.
    """
    kind, pre_tokenizer = metadata.text("tokenizer.ggml.model"), metadata.text("tokenizer.ggml.pre", "default")
    if kind != "gpt2" or pre_tokenizer not in SPLITTERS:
        raise ModelError(
            f"{str(file.path)!r} has a tokenizer of the kind {kind!r}, {pre_tokenizer!r}; NumPy models take 'gpt2' "
            f"with {', '.join(map(repr, SPLITTERS))}",
            hint=_HINT_LLAMA_CPP,
        )
    names = metadata.texts("tokenizer.ggml.tokens")
    types = metadata.integers("tokenizer.ggml.token_type", len(names))
    alphabet = byte_alphabet()

    def bytes_of(name: str) -> bytes:
        return bytes([alphabet[character] for character in name])

    try:
        merges: dict[tuple[bytes, bytes], int] = {}
        for rank, line in enumerate(metadata.texts("tokenizer.ggml.merges")):
            if line.count(" ") != 1:
                raise ValueError(f"the merge {line!r} is not a pair")
            left, right = line.split(" ")
            merges[bytes_of(left), bytes_of(right)] = rank
        tokens: list[bytes | None] = []
        special: dict[str, int] = {}
        markers: dict[str, int] = {}
        for token_id, (name, token_type) in enumerate(zip(names, types, strict=True)):
            if token_type in (_CONTROL, _UNKNOWN):
                special.setdefault(name, token_id)
                tokens.append(None)
            elif token_type == _USER_DEFINED:
                markers[name] = token_id
                tokens.append(name.encode())
            else:
                tokens.append(None if token_type == _UNUSED else bytes_of(name))
    except (KeyError, ValueError) as error:  # a character without a byte, a merge that is no pair
        raise ModelError(
            f"the tokenizer in {str(file.path)!r} is broken: {error}", hint="convert the model again"
        ) from error
    ends = {special[name] for name in _ENDS if name in special}
    if (named := _token_id(metadata, "eos", len(names))) is not None:
        ends.add(named)
    vocabulary = Vocabulary(tokens, eos=ends, special=special)
    split, whole_pieces = splitter(pre_tokenizer), pre_tokenizer == "llama-bpe"
    return ByteBPE(vocabulary, merges, split, markers=markers, whole_pieces=whole_pieces)
