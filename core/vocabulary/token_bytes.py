"""Reader of the exact bytes of every token from other libraries' tokenizers.

A tokenizer's vocabulary uses a notation: GPT-2's alphabet of printable characters, SentencePiece's ``▁`` and
``<0xHH>``, or WordPiece's ``##``. The notation is derived from the tokenizer's components (mainly its decoder), not
guessed from names or tokens; components that do not determine the bytes of a token are an error. The resulting table is
checked against the tokenizer's own decoder on a few texts, so that an unusual tokenizer is refused instead of misread.

The bytes of a token are what it writes *in the middle of a text*. Tokenizers that mark the start of a word (``▁the``,
WordPiece) drop one space at the very beginning of a text: there, and only there, their own decoding is one byte
shorter.

This module imports no tokenizer library.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ..errors import VocabularyError

# A step of a decoder, which changes the text of a token, or converts it to bytes, which later steps leave unchanged.
_Step = Callable[[str], str | bytes]

_BYTE_TOKEN = re.compile(r"<0x[0-9A-Fa-f]{2}>")
_HINT = "build the vocabulary yourself: Vocabulary(tokens, eos=..., special=...) with the exact bytes of each token"
# Texts on which a table is checked: words, spaces, lines, JSON, code, non-ASCII letters, an emoji of several code
# points.
_PROBES = (
    "Hello world, this is a test.",
    'a b  c\n\n\td {"name": "get_weather", "arguments": {"x": [1, -2.5e3, true, null]}}',
    "caf\u00e9 na\u00efve \u4f60\u597d \u0441\u043f\u0430\u0441\u0438\u0431\u043e \U0001f469\u200d\U0001f52c",
    "def f(x):\n    return x + 1  # 100%\n",
)


@dataclass
class TokenTable:
    """The tokens of a tokenizer.

    Attributes:
        tokens: bytes by id; missing ids are not text.
        special: control tokens, from name to id.
        eos: ids that end the text.
    """

    tokens: dict[int, bytes] = field(default_factory=dict)
    special: dict[str, int] = field(default_factory=dict)
    eos: set[int] = field(default_factory=set)


def byte_alphabet() -> dict[str, int]:
    """Return the byte of each character of GPT-2's notation: a printable byte is written as itself, the others as
    characters from U+0100: ``{"A": 0x41, ..., "Ġ": 0x20}``.

    Source: ``bytes_to_unicode`` in openai/gpt-2, ``src/encoder.py``.
    """
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = sorted({*range(256)}.difference(printable))
    return {chr(byte): byte for byte in printable} | {chr(256 + rank): byte for rank, byte in enumerate(others)}


def read_transformers(tokenizer: Any) -> TokenTable:
    """Read a tokenizer of ``transformers`` (fast or slow), or a bare ``tokenizers.Tokenizer``.

    Raises:
        VocabularyError: its components do not determine the bytes of each token.
    """
    if hasattr(tokenizer, "tokenizer") and hasattr(tokenizer.tokenizer, "instruct_tokenizer"):
        return read_mistral(tokenizer.tokenizer)
    backend = tokenizer if hasattr(tokenizer, "to_str") else getattr(tokenizer, "backend_tokenizer", None)
    if backend is not None and hasattr(backend, "to_str"):
        table = _read_fast(json.loads(backend.to_str()))
        _mark_special(table, tokenizer)
        _check(table, lambda text: list(backend.encode(text, add_special_tokens=False).ids), backend.decode)
        return table
    if not hasattr(tokenizer, "convert_ids_to_tokens"):
        raise VocabularyError(f"{type(tokenizer).__name__} is not a transformers tokenizer", hint=_HINT)
    table = _read_slow(tokenizer)
    _mark_special(table, tokenizer)
    _check(
        table,
        lambda text: list(tokenizer.encode(text, add_special_tokens=False)),
        lambda ids: str(tokenizer.decode(ids, clean_up_tokenization_spaces=False)),
    )
    return table


def read_mistral(tokenizer: Any) -> TokenTable:
    """Read a tokenizer of ``mistral-common``: Tekken or SentencePiece, bare or inside a ``MistralTokenizer``.

    Raises:
        VocabularyError: it is neither.
    """
    inner = getattr(tokenizer, "instruct_tokenizer", tokenizer)
    inner = getattr(inner, "tokenizer", inner)
    table = TokenTable()
    if hasattr(inner, "id_to_byte_piece"):  # Tekken: special tokens first, then tiktoken's ranks
        special_count = inner.num_special_tokens
        table.special = {inner.id_to_piece(token_id): token_id for token_id in range(special_count)}
        table.tokens = {i: inner.id_to_byte_piece(i) for i in range(special_count, inner.n_words)}
    elif hasattr(getattr(inner, "_model", None), "IsByte"):
        model = inner._model
        for token_id in range(model.get_piece_size()):
            _add_sentencepiece(table, model, token_id, token_id)
    else:
        raise VocabularyError(
            f"{type(inner).__name__} is neither a Tekken nor a SentencePiece tokenizer of mistral-common", hint=_HINT
        )
    table.eos = {inner.eos_id}
    return table


def read_tiktoken(encoding: Any) -> TokenTable:
    """Read a ``tiktoken.Encoding``: its ranks are the tokens' bytes."""
    table = TokenTable(special={name: encoding.encode_single_token(name) for name in encoding.special_tokens_set})
    control = set(table.special.values())
    for token_id in range(encoding.n_vocab):
        try:
            data = encoding.decode_single_token_bytes(token_id)
        except KeyError:  # an unused id
            continue
        if token_id not in control:
            table.tokens[token_id] = data
    if "<|endoftext|>" in table.special:
        table.eos = {table.special["<|endoftext|>"]}
    return table


def _read_fast(parts: Mapping[str, Any]) -> TokenTable:
    """Read the serialised form of a ``tokenizers.Tokenizer``."""
    model = parts["model"]
    if model.get("end_of_word_suffix"):
        raise VocabularyError(
            f"tokens end words with {model['end_of_word_suffix']!r}, which is a space or not as the next token decides",
            hint=_HINT,
        )
    vocab: dict[str, int] = (
        {piece[0]: token_id for token_id, piece in enumerate(model["vocab"])}
        if isinstance(model["vocab"], list)  # Unigram: [piece, score] by id
        else model["vocab"]
    )
    unknown = model.get("unk_token")
    if model.get("unk_id") is not None:
        unknown = model["vocab"][model["unk_id"]][0]
    steps = _steps(parts)
    table = TokenTable()
    for token, token_id in vocab.items():
        if token == unknown:  # stands for any text without a token, and has no bytes
            table.special[token] = token_id
        else:
            table.tokens[token_id] = _bytes_of(steps, token)
    for added in parts.get("added_tokens", ()):
        if added["special"]:
            table.special[added["content"]] = added["id"]
        elif vocab.get(added["content"]) != added["id"]:
            # Split from the text before the model's notation applies, so it is literal text. (One that
            # the model also has, such as Gemma's runs of ▁, is written in the model's notation and was read above.)
            table.tokens[added["id"]] = added["content"].encode()
    return table


def _steps(parts: Mapping[str, Any]) -> list[_Step]:
    """Return the steps of the tokenizer's decoder for one token in the middle of a text."""
    decoder = parts.get("decoder")
    if decoder is not None:
        flat = _flatten(decoder, "decoders")
        steps = []
        fused = False
        for part in flat:
            step = _decoder_step(part, fused)
            if step is not None:
                steps.append(step)
            fused = fused or part["type"] in ("Fuse", "ByteLevel")
        return steps
    # Without a decoder, the notation is that of the pre-tokenizer.
    for part in _flatten(parts.get("pre_tokenizer"), "pretokenizers"):
        if part["type"] in ("ByteLevel", "Metaspace"):
            step = _decoder_step(part, False)
            return [step] if step is not None else []
    raise VocabularyError(
        "the tokenizer has no decoder, so the text between two tokens is unknown",
        hint="set tokenizer.backend_tokenizer.decoder, or build Vocabulary(tokens, eos=...) yourself",
    )


def _flatten(part: Mapping[str, Any] | None, key: str) -> list[Mapping[str, Any]]:
    """Return the parts of a (nested) Sequence in order."""
    if part is None:
        return []
    if part["type"] == "Sequence":
        return [inner for item in part[key] for inner in _flatten(item, key)]
    return [part]


def _decoder_step(part: Mapping[str, Any], fused: bool) -> _Step | None:
    """Return a decoder part as a function of one token; None if it has no effect in the middle of a text.

    Args:
        part: the serialised part.
        fused: an earlier part has joined the tokens, so this one applies to the whole text.
    """
    kind = part["type"]
    if kind == "Fuse":
        return None
    if kind == "ByteLevel" and not fused:
        alphabet = byte_alphabet()
        return lambda text: _from_alphabet(text, alphabet)
    if kind == "ByteFallback" and not fused:
        return _from_byte_token
    if kind == "Metaspace" and not fused:
        replacement = part["replacement"]
        return lambda text: text.replace(replacement, " ")
    if kind == "Replace":
        old, new = part["pattern"].get("String"), part["content"]
        # On the whole text, only a single character is safe: a longer pattern might span two tokens.
        if old is not None and (not fused or len(old) == 1):
            return lambda text: text.replace(old, new)
    if kind == "Strip":
        content, start, stop = part["content"], part["start"], part["stop"]
        if fused and stop == 0:
            return None  # only at the beginning of a text
        if not fused:
            return lambda text: _strip(text, content, start, stop)
    if kind == "WordPiece" and not fused:
        prefix, cleanup = part["prefix"], part["cleanup"]
        return lambda text: _from_word_piece(text, prefix, cleanup)
    raise VocabularyError(
        f"the tokenizer's decoder has the part {kind!r}{' after joining the tokens' if fused else ''}, "
        "with which the bytes of a token depend on its neighbours",
        hint=_HINT,
    )


def _bytes_of(steps: Iterable[_Step], token: str) -> bytes:
    """Return the bytes of a token after all steps of a decoder."""
    for step in steps:
        changed = step(token)
        if isinstance(changed, bytes):
            return changed
        token = changed
    return token.encode("utf-8", "surrogatepass")


def _from_alphabet(text: str, alphabet: Mapping[str, int]) -> bytes:
    try:
        return bytes([alphabet[character] for character in text])
    except KeyError:  # not in this notation (an added token): the decoder leaves it unchanged
        return text.encode()


def _from_byte_token(text: str) -> str | bytes:
    """Return the byte of a token such as ``<0x0A>``; another token unchanged."""
    return bytes([int(text[3:5], 16)]) if _BYTE_TOKEN.fullmatch(text) else text


def _strip(text: str, content: str, start: int, stop: int) -> str:
    """Return a text without ``content``, one character, at most ``start`` times at its beginning and ``stop`` at its
    end."""
    for _ in range(start):
        text = text.removeprefix(content)
    for _ in range(stop):
        text = text.removesuffix(content)
    return text


# Replacements of the WordPiece decoder's cleanup, in order. Source: huggingface/tokenizers, src/decoders/wordpiece.rs.
_CLEANUP = (
    (" .", "."), (" ?", "?"), (" !", "!"), (" ,", ","), (" ' ", "'"), (" n't", "n't"), (" 'm", "'m"),
    (" do not", " don't"), (" 's", "'s"), (" 've", "'ve"), (" 're", "'re"),
)  # fmt: skip


def _from_word_piece(text: str, prefix: str, cleanup: bool) -> str:
    """Return the text of a WordPiece token in the middle of a text: ``##ing`` -> ``ing``, ``the`` -> `` the``."""
    text = text[len(prefix) :] if text.startswith(prefix) else " " + text
    for old, new in _CLEANUP if cleanup else ():
        text = text.replace(old, new)
    return text


def _read_slow(tokenizer: Any) -> TokenTable:
    """Read a tokenizer written in Python, from the component that implements it."""
    table = TokenTable()
    added = tokenizer.added_tokens_decoder
    model = getattr(tokenizer, "sp_model", None)
    alphabet = getattr(tokenizer, "byte_decoder", None)
    is_bytes = getattr(tokenizer, "_utf_vocab_size", None) == 256  # ByT5 and Perceiver: one token per byte
    if model is None and alphabet is None and not is_bytes:
        raise VocabularyError(
            f"{type(tokenizer).__name__} is a tokenizer written in Python, without access to the bytes of its tokens",
            hint="use the fast version of the tokenizer, or build Vocabulary(tokens, eos=...) yourself",
        )
    for token_id in range(len(tokenizer)):
        if token_id in added:
            table.tokens[token_id] = added[token_id].content.encode()
            continue
        token = tokenizer.convert_ids_to_tokens(token_id)
        if token is None:
            continue
        if model is not None:
            # Via the piece, because some tokenizers number the pieces differently.
            piece_id = model.piece_to_id(token)
            if model.id_to_piece(piece_id) == token:
                _add_sentencepiece(table, model, piece_id, token_id)
        elif alphabet is not None:
            table.tokens[token_id] = _from_alphabet(token, alphabet)
        elif len(token) == 1 and ord(token) < 256:
            table.tokens[token_id] = bytes([ord(token)])
    return table


def _add_sentencepiece(table: TokenTable, model: Any, piece_id: int, token_id: int) -> None:
    """Add one piece of a ``SentencePieceProcessor``, by its type."""
    piece = model.id_to_piece(piece_id)
    if model.IsControl(piece_id) or model.IsUnknown(piece_id):
        table.special[piece] = token_id
    elif model.IsByte(piece_id):
        table.tokens[token_id] = bytes([int(piece[3:5], 16)])
    elif not model.IsUnused(piece_id):
        table.tokens[token_id] = piece.replace("\u2581", " ").encode()


def _mark_special(table: TokenTable, tokenizer: Any) -> None:
    """Mark the tokens that a transformers tokenizer declares special, besides those of its components, and its end of
    text."""
    for token_id, token in getattr(tokenizer, "added_tokens_decoder", {}).items():
        if token.special:
            table.special[token.content] = token_id
    names, ids = getattr(tokenizer, "all_special_tokens", ()), getattr(tokenizer, "all_special_ids", ())
    table.special.update(zip(map(str, names), ids, strict=True))
    for token_id in table.special.values():
        table.tokens.pop(token_id, None)
    if getattr(tokenizer, "eos_token_id", None) is not None:
        table.eos = {tokenizer.eos_token_id}


def _check(table: TokenTable, encode: Callable[[str], list[int]], decode: Callable[[list[int]], str]) -> None:
    """Check the table against the tokenizer's own decoder.

    Raises:
        VocabularyError: they differ on some text, by more than one space at its beginning or spaces at its ends.
    """
    for probe in _PROBES:
        ids = encode(probe)
        if not all(token_id in table.tokens for token_id in ids):
            continue  # has unknown tokens
        read = b"".join(table.tokens[token_id] for token_id in ids).decode("utf-8", "replace")
        if read.strip(" ") != decode(ids).strip(" "):
            raise VocabularyError(
                f"the tokenizer decodes its tokens for {probe!r} as {decode(ids)!r}, but its parts say {read!r}",
                hint=_HINT,
            )
