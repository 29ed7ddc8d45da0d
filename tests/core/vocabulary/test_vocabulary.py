"""Vocabularies: what one is, and that tokens read from real tokenizers write exactly the bytes of the text."""

from __future__ import annotations

import copy
import json
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toolgrammar.core.errors import VocabularyError
from toolgrammar.core.vocabulary import Vocabulary
from toolgrammar.core.vocabulary.token_bytes import byte_alphabet

TEXTS = [
    "Hello, world! This is a test.",
    "  two spaces, a tab\tand\n\n\nthree lines  ",
    "\x00\x01\x1b[0m\x7f\u0085\u200b\ufeff",
    "caf\u00e9 na\u00efve cafe\u0301 \u00e5ngstr\u00f6m",
    "\u4f60\u597d\uff0c\u4e16\u754c \u0645\u0631\u062d\u0628\u0627 \u043f\u0440\u0438\u0432\u0435\u0442",
    "\U0001f469\u200d\U0001f52c \U0001f1eb\U0001f1f7 \ud7ff\uffff\U0010ffff",
    '{"name": "get_weather", "arguments": {"city": "Paris", "days": [1, -2.5e3, true, null]}}',
    "def f(x):\r\n    if x >= 1:\r\n\t\treturn x ** 2  # \u03c0\r\n",
    "https://example.org/a?b=c&d=%20#e <0x41> <s> </s> [INST] <|im_end|>",
]
CORPUS = [
    *TEXTS,
    "the quick brown fox jumps over the lazy dog",
    "hello world hello there",
    "tests of testing tested",
] * 3


def assert_exact(vocabulary: Vocabulary, encode: Callable[[str], list[int]], lead: bytes = b"") -> None:
    """Each text's tokens write its bytes, after ``lead``."""
    for text in TEXTS:
        assert vocabulary.decode(encode(text)) == lead + text.encode(), text


# --- the class ------------------------------------------------------------------------------------------------------


def test_holds_what_it_was_given() -> None:
    """Tokens, end-of-text ids and special tokens can be read back."""
    vocabulary = Vocabulary([b"a", b"\xff", None, None], eos=[2], special={"<eos>": 2, "<pad>": 3})
    assert vocabulary.tokens == (b"a", b"\xff", None, None)
    assert vocabulary.eos == frozenset({2})
    assert dict(vocabulary.special) == {"<eos>": 2, "<pad>": 3}
    assert vocabulary.size == len(vocabulary) == 4
    assert vocabulary.decode([0, 2, 1, 0]) == b"a\xffa"


def test_control_tokens_are_never_text() -> None:
    """A token that ends the text or is special loses the bytes that it was given with."""
    vocabulary = Vocabulary([b"a", b"</s>", b"<pad>"], eos=[1], special={"<pad>": 2})
    assert vocabulary.tokens == (b"a", None, None)


@pytest.mark.parametrize(
    ("tokens", "options", "message"),
    [
        ([], {"eos": []}, "at least one token"),
        (["a"], {"eos": []}, "token 0 is of type str"),
        ([b"a", bytearray(b"b")], {"eos": []}, "token 1 is of type bytearray"),
        ([b"a"], {"eos": [1]}, "id 1, which is not one of 0..0"),
        ([b"a"], {"eos": [-1]}, "id -1"),
        ([b"a", b"b"], {"eos": [True]}, "id True"),
        ([b"a"], {"eos": [0.0]}, "id 0.0"),
        ([b"a"], {"eos": [], "special": {"<x>": 7}}, "'<x>' has the id 7"),
        ([b"a"], {"eos": [], "special": {"": 0}}, "non-empty string"),
    ],
)
def test_bad_input_is_an_error(tokens: Any, options: Any, message: str) -> None:
    """What is not a vocabulary raises VocabularyError and says which token is wrong."""
    with pytest.raises(VocabularyError, match=message):
        Vocabulary(tokens, **options)


def test_decode_refuses_ids_out_of_range() -> None:
    """Decoding an id that does not exist, a negative one above all, is an error and not another token."""
    vocabulary = Vocabulary([b"a", b"b"], eos=[])
    for wrong in (-1, 2):
        with pytest.raises(VocabularyError):
            vocabulary.decode([0, wrong])


def test_is_immutable_and_equal_only_to_itself() -> None:
    """A vocabulary cannot be changed through its attributes, hashes by identity, and is not copied."""
    vocabulary = Vocabulary([b"a", None], eos=[1], special={"<eos>": 1})
    with pytest.raises(AttributeError):
        vocabulary.tokens = ()  # type: ignore[misc]
    with pytest.raises(TypeError):
        vocabulary.special["<x>"] = 0  # type: ignore[index]
    assert vocabulary != Vocabulary([b"a", None], eos=[1], special={"<eos>": 1})
    assert copy.deepcopy(vocabulary) is vocabulary is copy.copy(vocabulary)
    assert {vocabulary: 1}[vocabulary] == 1


def test_pickle_keeps_the_content() -> None:
    """A pickled vocabulary comes back with the same content, and what was derived from it is derived again."""
    vocabulary = Vocabulary([b"a", b"", None], eos=[2], special={"<eos>": 2})
    made: list[Vocabulary] = []

    def size(each: Vocabulary) -> int:
        made.append(each)
        return each.size

    assert vocabulary.derived(size) == vocabulary.derived(size) == vocabulary.size and made == [vocabulary]
    back = pickle.loads(pickle.dumps(vocabulary))
    assert (back.tokens, back.eos, back.special) == (vocabulary.tokens, vocabulary.eos, vocabulary.special)
    assert back.content_hash == vocabulary.content_hash
    assert back.derived(size) == vocabulary.size and made == [vocabulary, back]


def test_content_hash_tells_contents_apart() -> None:
    """Vocabularies with different content have different hashes, however their bytes run together."""
    variants = [
        Vocabulary([b"ab", b"c"], eos=[]),
        Vocabulary([b"a", b"bc"], eos=[]),
        Vocabulary([b"", b"abc"], eos=[]),
        Vocabulary([None, b"abc"], eos=[]),
        Vocabulary([None, b"abc"], eos=[0]),
        Vocabulary([None, b"abc"], eos=[0], special={"<e>": 0}),
        Vocabulary([b"-\n", b"abc"], eos=[]),
    ]
    assert len({vocabulary.content_hash for vocabulary in variants}) == len(variants)
    assert Vocabulary([b"ab", b"c"], eos=[]).content_hash == variants[0].content_hash


# --- real vocabularies: mistral-common ------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def mistral_data() -> Path:
    """Where mistral-common keeps the vocabularies that it ships."""
    package = pytest.importorskip("mistral_common")
    return Path(package.__file__).parent / "data"


@pytest.fixture(scope="module")
def tekken(mistral_data: Path) -> Any:
    """The real Tekken tokenizer with 131,072 tokens."""
    from mistral_common.tokens.tokenizers.tekken import Tekkenizer

    return Tekkenizer.from_file(mistral_data / "tekken_240911.json")


@pytest.fixture(scope="module")
def sentencepiece_path(mistral_data: Path) -> str:
    """A real SentencePiece model with 32,768 pieces and byte fallback."""
    pytest.importorskip("sentencepiece")
    return str(mistral_data / "mistral_instruct_tokenizer_241114.model.v7")


@pytest.fixture(scope="module")
def tekken_vocabulary(tekken: Any) -> Vocabulary:
    """The vocabulary read from Tekken."""
    return Vocabulary.from_mistral(tekken)


def test_tekken_is_exact(tekken: Any, tekken_vocabulary: Vocabulary) -> None:
    """Tekken's 131,072 tokens write exactly the text that they encode, and its control tokens write nothing."""
    assert tekken_vocabulary.size == 131_072
    assert tekken_vocabulary.eos == {2}
    assert tekken_vocabulary.special["[TOOL_CALLS]"] == tekken.get_special_token("[TOOL_CALLS]")
    assert tekken_vocabulary.tokens[:1000] == (None,) * 1000
    assert None not in tekken_vocabulary.tokens[1000:]
    assert_exact(tekken_vocabulary, lambda text: tekken.encode(text, False, False))


@settings(max_examples=60, deadline=None)
@given(text=st.text())
def test_tekken_is_exact_on_any_text(tekken: Any, tekken_vocabulary: Vocabulary, text: str) -> None:
    """The law decode(encode(text)) == text holds for arbitrary Unicode."""
    assert tekken_vocabulary.decode(tekken.encode(text, False, False)) == text.encode()


def test_mistral_sentencepiece_is_exact(sentencepiece_path: str) -> None:
    """A real SentencePiece model's tokens write the text after the space that it puts in front."""
    from mistral_common.tokens.tokenizers.sentencepiece import SentencePieceTokenizer

    tokenizer = SentencePieceTokenizer(sentencepiece_path)
    vocabulary = Vocabulary.from_mistral(tokenizer)
    assert vocabulary.size == 32_768
    assert vocabulary.tokens[771:1027] == tuple(bytes([byte]) for byte in range(256))
    assert vocabulary.special["<unk>"] == 0
    assert_exact(vocabulary, lambda text: tokenizer.encode(text, False, False), lead=b" ")


def test_mistral_backend_of_transformers(sentencepiece_path: str, tekken: Any) -> None:
    """transformers' mistral-common backend, and mistral-common's own wrapper, give the inner tokenizer's vocabulary."""
    transformers = pytest.importorskip("transformers")
    backend = transformers.MistralCommonBackend(sentencepiece_path)
    expected = Vocabulary.from_mistral(backend.tokenizer.instruct_tokenizer.tokenizer)
    assert Vocabulary.from_transformers(backend).content_hash == expected.content_hash
    assert Vocabulary.from_mistral(backend.tokenizer).content_hash == expected.content_hash


def test_foreign_object_is_an_error() -> None:
    """An object that is no tokenizer raises VocabularyError, with a way out."""
    for read in (Vocabulary.from_mistral, Vocabulary.from_transformers):
        with pytest.raises(VocabularyError, match="object is") as caught:
            read(object())
        assert caught.value.hint


# --- transformers: fast tokenizers ----------------------------------------------------------------------------------


def test_llama_tokenizer_is_exact(sentencepiece_path: str) -> None:
    """A LlamaTokenizer (metaspace, byte fallback) made from the real SentencePiece model is exact."""
    transformers = pytest.importorskip("transformers")
    from transformers.tokenization_utils_sentencepiece import SentencePieceExtractor

    ids, _, merges = SentencePieceExtractor(sentencepiece_path).extract(True)
    tokenizer = transformers.LlamaTokenizer(vocab=ids, merges=merges)
    vocabulary = Vocabulary.from_transformers(tokenizer)
    assert vocabulary.eos == {tokenizer.eos_token_id}
    assert vocabulary.tokens[ids["<0x0A>"]] == b"\n"
    assert vocabulary.tokens[ids["\u2581the"]] == b" the"
    plain = [text for text in TEXTS if "<s>" not in text]  # the tokenizer reads the text "<s>" as a control token
    for text in plain:
        assert vocabulary.decode(tokenizer.encode(text, add_special_tokens=False)).removeprefix(b" ") == (
            text.encode().removeprefix(b" ")
        )


def test_tekken_in_transformers_is_exact(mistral_data: Path, tmp_path: Path) -> None:
    """Tekken converted by transformers to byte-level BPE has the same bytes as in mistral-common."""
    pytest.importorskip("transformers")
    mistral = pytest.importorskip("transformers.integrations.mistral")
    from mistral_common.tokens.tokenizers.tekken import Tekkenizer

    content = json.loads((mistral_data / "tekken_240911.json").read_text(encoding="utf-8"))
    content["config"]["default_vocab_size"] = 9000  # the first 8,000 ranks: a smaller tokenizer of the same family
    content["vocab"] = content["vocab"][:8000]
    path = tmp_path / "tekken.json"
    path.write_text(json.dumps(content), encoding="utf-8")
    fast = mistral.convert_tekken_tokenizer(str(path))
    vocabulary = Vocabulary.from_transformers(fast)
    assert vocabulary.tokens == Vocabulary.from_mistral(Tekkenizer.from_file(path)).tokens
    plain = [text for text in TEXTS if "<s>" not in text]
    for text in plain:
        assert vocabulary.decode(fast.encode(text, add_special_tokens=False)) == text.encode()


def byte_level(**options: Any) -> Any:
    """A byte-level BPE tokenizer of transformers, trained on the spot."""
    tokenizers = pytest.importorskip("tokenizers")
    transformers = pytest.importorskip("transformers")
    tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE())
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = tokenizers.decoders.ByteLevel()
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=400, initial_alphabet=tokenizers.pre_tokenizers.ByteLevel.alphabet(), show_progress=False
    )
    tokenizer.train_from_iterator(CORPUS, trainer)
    return transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer, **options)


def test_byte_level_with_added_tokens() -> None:
    """Special added tokens are control tokens; ordinary ones are the text they show, not read in GPT-2's alphabet."""
    from tokenizers import AddedToken

    tokenizer = byte_level(eos_token="<|im_end|>", pad_token="<|endoftext|>")
    tokenizer.add_tokens([AddedToken("<tool_call>"), AddedToken("\u00e9t\u00e9"), AddedToken("a b")])
    vocabulary = Vocabulary.from_transformers(tokenizer)
    number = tokenizer.convert_tokens_to_ids
    assert dict(vocabulary.special) == {"<|im_end|>": number("<|im_end|>"), "<|endoftext|>": number("<|endoftext|>")}
    assert vocabulary.eos == {number("<|im_end|>")}
    assert vocabulary.tokens[number("<|im_end|>")] is None
    assert vocabulary.tokens[number("<tool_call>")] == b"<tool_call>"
    assert vocabulary.tokens[number("\u00e9t\u00e9")] == "\u00e9t\u00e9".encode()
    text = "<tool_call> \u00e9t\u00e9 a b"
    assert vocabulary.decode(tokenizer.encode(text)) == text.encode()
    assert sorted(token for token in vocabulary.tokens[:256] if token is not None) == sorted(
        bytes([byte]) for byte in range(256)
    )


def test_byte_level_is_exact_without_a_decoder() -> None:
    """A tokenizer that was saved without its decoder is read by the step that cut the text."""
    tokenizer = byte_level()
    expected = Vocabulary.from_transformers(tokenizer)
    parts = json.loads(tokenizer.backend_tokenizer.to_str())
    parts["decoder"] = None
    from toolgrammar.core.vocabulary.token_bytes import _read_fast

    assert _read_fast(parts).tokens == {i: token for i, token in enumerate(expected.tokens) if token is not None}
    assert_exact(expected, tokenizer.encode)


def test_size_pads_and_cuts() -> None:
    """Ids beyond the tokenizer's are padding without bytes; tokens that the model has no logits for are left out."""
    tokenizer = byte_level(eos_token="<|im_end|>")
    own = Vocabulary.from_transformers(tokenizer)
    padded = Vocabulary.from_transformers(tokenizer, size=own.size + 3, extra_eos=[5])
    assert padded.size == own.size + 3
    assert padded.tokens[own.size :] == (None, None, None)
    assert padded.eos == own.eos | {5}
    assert padded.tokens[5] is None
    cut = Vocabulary.from_transformers(tokenizer, size=300)
    assert (cut.size, cut.eos, dict(cut.special)) == (300, frozenset(), {})
    with pytest.raises(VocabularyError):
        Vocabulary.from_transformers(tokenizer, extra_eos=[own.size])


def unigram(*, byte_fallback: bool) -> Any:
    """A Unigram tokenizer with metaspace, its pieces trained on the spot."""
    tokenizers = pytest.importorskip("tokenizers")
    trained = tokenizers.Tokenizer(tokenizers.models.Unigram())
    trained.pre_tokenizer = tokenizers.pre_tokenizers.Metaspace()
    trainer = tokenizers.trainers.UnigramTrainer(vocab_size=150, unk_token="<unk>", show_progress=False)
    trained.train_from_iterator(["the quick brown fox jumps over the lazy dog, hello world"] * 5, trainer)
    pieces = [tuple(piece) for piece in json.loads(trained.to_str())["model"]["vocab"] if piece[0] != "<unk>"]
    byte_pieces = [(f"<0x{byte:02X}>", -20.0) for byte in range(256)] if byte_fallback else []
    model = tokenizers.models.Unigram([("<unk>", 0.0), *byte_pieces, *pieces], unk_id=0, byte_fallback=byte_fallback)
    tokenizer = tokenizers.Tokenizer(model)
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Metaspace()
    metaspace = tokenizers.decoders.Metaspace()
    tokenizer.decoder = (
        tokenizers.decoders.Sequence([tokenizers.decoders.ByteFallback(), metaspace]) if byte_fallback else metaspace
    )
    return tokenizer


def test_unigram_with_byte_fallback_is_exact() -> None:
    """Unigram pieces and byte pieces write the text after the space of the first word; the unknown token is no text."""
    tokenizer = unigram(byte_fallback=True)
    vocabulary = Vocabulary.from_transformers(tokenizer)
    assert vocabulary.tokens[:2] == (None, b"\x00")
    assert dict(vocabulary.special) == {"<unk>": 0}
    for text in TEXTS:
        text = text.replace("<0x41>", "")  # this encoder takes the spelling for the byte: its loss, not the table's
        written = vocabulary.decode(tokenizer.encode(text).ids)
        assert written.removeprefix(b" ") == text.encode().removeprefix(b" ")


def test_unigram_without_byte_fallback_has_exact_tokens() -> None:
    """Without byte fallback a byte piece is ordinary text, and known text is still written exactly."""
    vocabulary = Vocabulary.from_transformers(tokenizer := unigram(byte_fallback=False))
    assert vocabulary.decode(tokenizer.encode("the lazy fox").ids) == b" the lazy fox"
    assert b"\x00" not in vocabulary.tokens


def test_model_tokens_that_are_also_added_keep_the_model_notation() -> None:
    """A run of metaspaces that is both a piece and an added token (as in Gemma) writes spaces."""
    tokenizers = pytest.importorskip("tokenizers")
    vocab = {"a": 0, "\u2581": 1, "\u2581\u2581": 2}
    tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE(vocab, [("\u2581", "\u2581")]))
    tokenizer.normalizer = tokenizers.normalizers.Replace(" ", "\u2581")
    tokenizer.decoder = tokenizers.decoders.Sequence(
        [tokenizers.decoders.Replace("\u2581", " "), tokenizers.decoders.ByteFallback(), tokenizers.decoders.Fuse()]
    )
    tokenizer.add_tokens([tokenizers.AddedToken("\u2581\u2581", normalized=False)])
    vocabulary = Vocabulary.from_transformers(tokenizer)
    assert vocabulary.tokens == (b"a", b" ", b"  ")
    assert vocabulary.decode(tokenizer.encode("a  a").ids) == b"a  a"


def test_word_piece_tokens_are_what_its_decoder_writes() -> None:
    """A word piece writes a space and the word, a continuation writes no space, punctuation is pulled to the word."""
    tokenizers = pytest.importorskip("tokenizers")
    vocab = {"[UNK]": 0, "hello": 1, "##ing": 2, "test": 3, ",": 4}
    tokenizer = tokenizers.Tokenizer(tokenizers.models.WordPiece(vocab, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = tokenizers.decoders.WordPiece()
    vocabulary = Vocabulary.from_transformers(tokenizer)
    assert vocabulary.tokens == (None, b" hello", b"ing", b" test", b",")
    assert vocabulary.decode(tokenizer.encode("hello, testing").ids) == b" hello, testing"


@pytest.mark.parametrize(
    ("decoder", "message"),
    [
        ("none", "no decoder"),
        ("bpe", "'BPEDecoder'"),
        ("regex", "'Replace'"),
        ("after_fuse", "after joining"),
        ("word_end", "end words with '</w>'"),
    ],
)
def test_decoders_that_look_at_neighbours_are_refused(decoder: str, message: str) -> None:
    """A tokenizer whose tokens write different bytes beside different tokens is an error, not an approximation."""
    tokenizers = pytest.importorskip("tokenizers")
    decoders = tokenizers.decoders
    options = {"end_of_word_suffix": "</w>"} if decoder == "word_end" else {}
    tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE({"a": 0, "b": 1}, [], **options))
    if decoder == "bpe":
        tokenizer.decoder = decoders.BPEDecoder()
    elif decoder == "regex":
        tokenizer.decoder = decoders.Replace(tokenizers.Regex("a+"), "b")
    elif decoder == "after_fuse":
        tokenizer.decoder = decoders.Sequence([decoders.Fuse(), decoders.Replace("ab", "c")])
    elif decoder == "word_end":
        tokenizer.decoder = decoders.ByteLevel()
    with pytest.raises(VocabularyError, match=message):
        Vocabulary.from_transformers(tokenizer)


# --- transformers: slow tokenizers ----------------------------------------------------------------------------------


def test_slow_sentencepiece_tokenizer(sentencepiece_path: str) -> None:
    """A SentencePiece tokenizer written in Python is read by the types of its pieces."""
    transformers = pytest.importorskip("transformers")
    tokenizer = transformers.GPTSw3Tokenizer(vocab_file=sentencepiece_path, name_or_path="test")
    vocabulary = Vocabulary.from_transformers(tokenizer)
    assert vocabulary.eos == {tokenizer.eos_token_id}
    assert vocabulary.special["[INST]"] == 3
    text = 'x = {"a": [1, 2]}\n\tcaf\u00e9 \U0001f52c'
    assert vocabulary.decode(tokenizer.encode(text, add_special_tokens=False)) == b" " + text.encode()


def test_slow_tokenizer_whose_decoder_disagrees_is_refused(sentencepiece_path: str) -> None:
    """A tokenizer that decodes otherwise than its parts say (here: byte pieces left as they look) is not misread."""
    transformers = pytest.importorskip("transformers")
    with pytest.raises(VocabularyError, match="but its parts say"):
        Vocabulary.from_transformers(transformers.BertGenerationTokenizer(vocab_file=sentencepiece_path))


def test_slow_byte_level_tokenizer(tmp_path: Path) -> None:
    """A byte-level tokenizer written in Python is read through its own map from characters to bytes."""
    transformers = pytest.importorskip("transformers")
    characters = sorted(byte_alphabet(), key=byte_alphabet().__getitem__)
    tokens = [*characters, "he", "<|endoftext|>", "[UNK]"]
    (tmp_path / "vocab.json").write_text(json.dumps({token: i for i, token in enumerate(tokens)}), encoding="utf-8")
    (tmp_path / "merges.txt").write_text("#version: 0.2\nh e\n", encoding="utf-8")
    built = transformers.ClvpTokenizer(str(tmp_path / "vocab.json"), str(tmp_path / "merges.txt"))
    vocabulary = Vocabulary.from_transformers(built)
    assert vocabulary.tokens[:257] == (*(bytes([byte]) for byte in range(256)), b"he")
    assert vocabulary.eos == {built.eos_token_id}


def test_slow_byte_tokenizer_is_exact() -> None:
    """ByT5 has one token per byte, after its control tokens."""
    transformers = pytest.importorskip("transformers")
    tokenizer = transformers.ByT5Tokenizer()
    vocabulary = Vocabulary.from_transformers(tokenizer)
    assert vocabulary.tokens[3:259] == tuple(bytes([byte]) for byte in range(256))
    assert vocabulary.decode(tokenizer.encode("h\u00e9\n", add_special_tokens=False)) == "h\u00e9\n".encode()


def test_other_slow_tokenizers_are_refused(tmp_path: Path) -> None:
    """A tokenizer written in Python without readable parts is refused, and the hint names the fast version."""
    transformers = pytest.importorskip("transformers")
    path = tmp_path / "vocab.json"
    path.write_text(json.dumps({"a": 0, "b": 1, "<pad>": 2, "<unk>": 3, "|": 4}))
    with pytest.raises(VocabularyError, match="Wav2Vec2CTCTokenizer") as caught:
        Vocabulary.from_transformers(transformers.Wav2Vec2CTCTokenizer(str(path)))
    assert "fast" in (caught.value.hint or "")


# --- tiktoken -------------------------------------------------------------------------------------------------------


def test_tiktoken_is_exact() -> None:
    """A tiktoken encoding's ranks are its bytes, holes in the numbering are None, special tokens are control tokens."""
    tiktoken = pytest.importorskip("tiktoken")
    ranks = {bytes([byte]): byte for byte in range(256)} | {
        b"he": 256,
        b"ll": 257,
        b"hell": 258,
        b" w": 259,
        b"or": 260,
    }
    encoding = tiktoken.Encoding(
        "small",
        pat_str=r"\s?\w+|\s|[^\w\s]+",
        mergeable_ranks=ranks,
        special_tokens={"<|endoftext|>": 270, "<|end|>": 271},
    )
    vocabulary = Vocabulary.from_tiktoken(encoding, extra_eos=[271], size=280)
    assert vocabulary.size == 280
    assert vocabulary.tokens[256:] == (b"he", b"ll", b"hell", b" w", b"or") + (None,) * 19
    assert vocabulary.eos == {270, 271}
    assert dict(vocabulary.special) == {"<|endoftext|>": 270, "<|end|>": 271}
    assert_exact(vocabulary, encoding.encode_ordinary)
