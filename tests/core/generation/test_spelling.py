"""What is forced is spelled as the tokenizer spells it, whatever follows: with real tokenizers of every usual kind."""

from __future__ import annotations

import io
import json
import random
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from toolgrammar.core import GenerateParams, Grammar, JsonMode, Model, Vocabulary
from toolgrammar.core.models.numpy_llama.bpe import ByteBPE
from toolgrammar.core.models.numpy_llama.embedded import TOKENIZER
from toolgrammar.tools import ToolSet

#: The pre-tokenizers of Qwen 2.5, Llama 3 and o200k, from their ``tokenizer.json`` and tiktoken.
QWEN = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
LLAMA = QWEN.replace(r"\p{N}|", r"\p{N}{1,3}|")
O200K = (
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
    r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
    r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)

STRINGS = [
    "Oslo", "Bergen", "/etc/passwd", "//", "", " a", "  two", "'tis", "we're", "I'll", "42", "3.14", "-1", "né", "中文", "😀", "“quoted”", "#tag",
    "C:\\x", "a\nb", "\ttab", "true", "{}", '["x"]', "<b>", "$5", "(x)", "...", "https://x.org/a?b=c", "ABC", "Abc", "snake_case", "100000", "١٢",
]  # fmt: skip


def values(draw: random.Random) -> dict[str, Any]:
    """An object with all kinds of values behind all kinds of keys."""
    return {
        "city": draw.choice(STRINGS),
        "ok": draw.choice([True, False, None, 3, -14, 0.5, 1234567, "x", [], ["a"], {}, {"a": 1}]),
        "days": draw.choice([0, 7, 42, 123, 1234, 99999, -5]),
        "unit": draw.choice(["celsius", "celtic", "C", "fahrenheit", "f"]),
        "tags": [draw.choice(STRINGS) for _ in range(draw.choice([0, 1, 2, 3]))],
        "items": [
            {"größe": draw.choice([1, 12, 123]), "n": draw.choice([None, "x"])} for _ in range(draw.choice([0, 1, 2]))
        ],
        **({"extra": draw.choice([True, "/x", 1])} if draw.random() < 0.5 else {}),
    }


SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "city": {"type": "string"},
        "ok": {},
        "days": {"type": "integer"},
        "unit": {"enum": ["celsius", "celtic", "C", "fahrenheit", "f"]},
        "tags": {"type": "array", "items": {"type": "string"}},
        "items": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {"größe": {"type": "integer", "minimum": 0}, "n": {"enum": [None, "x"]}},
                "required": ["größe", "n"],
                "additionalProperties": False,
            },
        },
        "extra": {"type": ["boolean", "string", "integer"]},
    },
    "required": ["city", "ok", "days", "unit", "tags", "items"],
    "additionalProperties": False,
}


def one_of(*words: str) -> Grammar:
    """One of some words."""
    return Grammar.choice(*map(Grammar.literal, words))


#: Grammars that are no JSON, and texts of each: white space, digits and contractions at the edges of what is forced.
OTHERS: list[tuple[Grammar, list[str]]] = [
    (Grammar.literal("a   ") + one_of("b", " b", "\n", "7", "  ", ".", "'s"), ["a   b", "a    b", "a   \n", "a   7", "a     ", "a   .", "a   's"]),
    (Grammar.literal("x\n\n  ") + Grammar.from_regex("[a-z{ \n]{1,3}"), ["x\n\n  a", "x\n\n   ", "x\n\n  \n\n", "x\n\n  {a"]),
    (Grammar.literal("year 20") + Grammar.from_regex("[0-9]{0,6}( end)?"), ["year 20", "year 201", "year 2025", "year 2025123 end", "year 20 end"]),
    (Grammar.literal("we'") + one_of("re", "ve got", "", "x", " a"), ["we're", "we've got", "we'", "we'x", "we' a"]),
    (Grammar.literal("[") + one_of("]", "1]", '"a"]', "[]]", "'b']"), ["[]", "[1]", '["a"]', "[[]]", "['b']"]),
    (Grammar.literal("Answer: ") + Grammar.from_regex(r"[\s\S]{1,30}"), ["Answer: the answer", "Answer:  two", "Answer: \n", "Answer: 42", "Answer: ünder", 'Answer: "q"']),
]  # fmt: skip


def corpus() -> list[str]:
    """What small tokenizers are trained on, so that they have the tokens that large ones have."""
    draw = random.Random(7)
    lines = [json.dumps(values(draw), ensure_ascii=False) for _ in range(300)]
    lines += [json.dumps(values(draw), ensure_ascii=False, indent=2) for _ in range(60)]
    lines += ["the answer is we're here, I'll go: they've won 1234 of 56789 (see /etc/x)."] * 40
    lines += [f'<tool_call>\n{{"name": "look", "arguments": {line}}}\n</tool_call>' for line in lines[:60]]
    return lines + [text for _, texts in OTHERS for text in texts] * 4


def byte_level(pattern: str | None) -> tuple[Vocabulary, Callable[[str], list[int]]]:
    """A byte-level BPE with a pre-tokenizer; None is that of GPT-2."""
    tokenizers = pytest.importorskip("tokenizers", reason="tokenizers is not installed")
    pieces = tokenizers.pre_tokenizers
    raw = tokenizers.Tokenizer(tokenizers.models.BPE())
    raw.decoder = tokenizers.decoders.ByteLevel()
    if pattern is None:
        raw.pre_tokenizer = pieces.ByteLevel(add_prefix_space=False)
    else:
        split = pieces.Split(tokenizers.Regex(pattern), "isolated")
        raw.pre_tokenizer = pieces.Sequence([split, pieces.ByteLevel(add_prefix_space=False, use_regex=False)])
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=900, special_tokens=["<|end|>"], initial_alphabet=pieces.ByteLevel.alphabet(), show_progress=False
    )
    raw.train_from_iterator(corpus(), trainer)
    raw.add_tokens(["<tool_call>", "</tool_call>"])
    vocabulary = Vocabulary.from_transformers(raw, extra_eos=[raw.token_to_id("<|end|>")])
    return vocabulary, lambda text: list(raw.encode(text, add_special_tokens=False).ids)


def sentencepiece(kind: str) -> tuple[Vocabulary, Callable[[str], list[int]]]:
    """A SentencePiece model as Llama 2's: a dummy prefix, byte fallback, nothing normalised."""
    library = pytest.importorskip("sentencepiece", reason="sentencepiece is not installed")
    transformers = pytest.importorskip("transformers", reason="transformers is not installed")
    from toolgrammar.core.models.prompts import encode_inside

    model = io.BytesIO()
    library.SentencePieceTrainer.train(
        sentence_iterator=iter(corpus()), model_writer=model, vocab_size=700, model_type=kind, byte_fallback=True,
        normalization_rule_name="identity", remove_extra_whitespaces=False, split_digits=True, character_coverage=0.98,
        max_sentence_length=9999, user_defined_symbols=["\n"], allow_whitespace_only_pieces=True, minloglevel=2, hard_vocab_limit=False,
    )  # fmt: skip
    processor = library.SentencePieceProcessor(model_proto=model.getvalue())
    tokens: list[bytes | None] = []
    for token_id in range(processor.get_piece_size()):
        piece = processor.id_to_piece(token_id)
        if processor.is_control(token_id) or processor.is_unknown(token_id):
            tokens.append(None)
        elif processor.is_byte(token_id):
            tokens.append(bytes((int(piece[3:5], 16),)))
        else:
            tokens.append(piece.replace("▁", " ").encode())
    vocabulary = Vocabulary(tokens, eos=[processor.eos_id()])
    assert transformers
    return vocabulary, lambda text: encode_inside(lambda each: list(processor.encode(each)), vocabulary, text)


def tekken() -> tuple[Vocabulary, Callable[[str], list[int]]]:
    """Mistral's Tekken, 131,072 tokens."""
    mistral = pytest.importorskip("mistral_common", reason="mistral-common is not installed")
    from mistral_common.tokens.tokenizers.tekken import Tekkenizer

    tokenizer = Tekkenizer.from_file(Path(mistral.__file__).parent / "data" / "tekken_240911.json")
    return Vocabulary.from_mistral(tokenizer), lambda text: list(tokenizer.encode(text, bos=False, eos=False))


def embedded() -> tuple[Vocabulary, Callable[[str], list[int]]]:
    """The tokenizer of the embedded model."""
    tokenizer = ByteBPE.load(TOKENIZER)
    return tokenizer.vocabulary, tokenizer.encode


TOKENIZERS: dict[str, Callable[[], tuple[Vocabulary, Callable[[str], list[int]]]]] = {
    "GPT-2": lambda: byte_level(None),
    "Qwen 2.5": lambda: byte_level(QWEN),
    "Llama 3": lambda: byte_level(LLAMA),
    "o200k": lambda: byte_level(O200K),
    "SentencePiece BPE": lambda: sentencepiece("bpe"),
    "SentencePiece Unigram": lambda: sentencepiece("unigram"),
    "Tekken": tekken,
    "embedded": embedded,
}


@cache
def tokenizer(name: str) -> tuple[Vocabulary, Callable[[str], list[int]]]:
    """One of them, made once."""
    return TOKENIZERS[name]()


class Canonical:
    """A model that knows one text, and only as its tokenizer spells it: after any other spelling it writes noise.

    Attributes:
        wanted: the text.
        strays: sequences at which it was asked and that its tokenizer does not begin the text with.
    """

    name = "canonical"
    tool_format = "hermes"
    chat_template = None
    takes_thinking = False
    context_window = 4000

    def __init__(self, name: str) -> None:
        self.vocabulary, self.encode = tokenizer(name)
        self.noise = np.random.default_rng(0).normal(size=self.vocabulary.size + 997).astype(np.float32)
        self.wanted = ""
        self.strays: list[list[int]] = []

    def encode_prompt(self, messages: Sequence[Any], tools: Any = (), tool_prompt: str = "") -> list[int]:
        """One control token."""
        return [min(self.vocabulary.eos)]

    def start(self) -> Any:
        """A fresh sequence."""
        backend = self
        target = backend.encode(backend.wanted)
        end = min(backend.vocabulary.eos)

        class Session:
            cached_tokens = 0

            def __init__(self) -> None:
                self.ids: list[int] = []

            def extend(self, ids: Sequence[int]) -> Any:
                assert ids, "a forward pass over no tokens, which no model takes"
                self.ids += ids
                written = self.ids[1:]
                shift = sum(written) % 997
                logits = backend.noise[shift : shift + backend.vocabulary.size].copy()
                if written == target[: len(written)]:
                    logits[(*target, end)[len(written)]] = 50.0
                else:
                    backend.strays.append(written)
                return logits

            def close(self) -> None:
                pass

        return Session()


class Rows(Canonical):
    """The same for batches: each row knows a text of its own.

    Attributes:
        texts: one for each row; the prompt's last token is the number of the text.
    """

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.texts: list[str] = []

    def encode_prompt(self, messages: Sequence[Any], tools: Any = (), tool_prompt: str = "") -> list[int]:
        """A beginning that rows share, and the number of the row's text."""
        return [min(self.vocabulary.eos)] * 40 + [int(messages[-1].content)]

    def can_batch(self) -> bool:
        """It can."""
        return True

    def begin(self, prompt: Sequence[int]) -> Any:
        """A sequence, which is its tokens."""
        return SimpleNamespace(ids=[], length=0, cached_tokens=0, close=lambda: None)

    def extend_many(self, rows: Sequence[tuple[Any, Sequence[int]]]) -> list[Any]:
        """Append tokens; the logits are those of each row's own text."""
        for session, ids in rows:
            session.ids += ids
            session.length = len(session.ids)
        ids = [session.ids for session, _ in rows]
        return [self._next(one[40], one[41:]) if len(one) > 40 else np.zeros(self.vocabulary.size) for one in ids]

    def _next(self, number: int, written: list[int]) -> Any:
        target = self.encode(self.texts[number])
        shift = sum(written) % 997
        logits = self.noise[shift : shift + self.vocabulary.size].copy()
        if written == target[: len(written)]:
            logits[(*target, min(self.vocabulary.eos))[len(written)]] = 50.0
        elif written:
            self.strays.append(written)
        return logits


def check(model: Model, text: str, prefix: str = "", **request: Any) -> tuple[int, int]:
    """The law: with jumps and without, the same text and tokens, and at each choice those with which the tokenizer
    begins the text. Returns the forward passes with and without."""
    backend: Any = model.backend
    backend.wanted = text
    passes = []
    for jump in (True, False):
        backend.strays.clear()
        generation = model.generate("x", GenerateParams(prefix=prefix, max_tokens=3000, jump_forward=jump, **request))
        assert not backend.strays, (text, [[backend.vocabulary.tokens[each] for each in ids] for ids in backend.strays])
        assert generation.raw == text[len(prefix) :]
        if not prefix:
            assert list(generation.token_ids) == backend.encode(text)
        assert generation.finish_reason != "length"
        passes.append(generation.usage.forward_passes)
    return passes[0], passes[1]


@pytest.mark.parametrize("name", TOKENIZERS)
def test_jumps_change_nothing_but_the_passes(name: str) -> None:
    """JSON of every kind of value: the same text in the same tokens as the model alone writes."""
    model = Model(Canonical(name))
    draw = random.Random(1)
    passes = [check(model, json.dumps(values(draw), ensure_ascii=False), json_mode=JsonMode(SCHEMA)) for _ in range(12)]
    assert sum(jumping for jumping, _ in passes) < 0.9 * sum(plain for _, plain in passes)


@pytest.mark.parametrize("name", TOKENIZERS)
def test_calls_are_spelled_as_the_model_spells_them(name: str) -> None:
    """Calls in their markers, with names that begin alike."""

    def look(city: str, ok: bool, days: int, unit: str = "C") -> str:
        """Look."""
        return city

    def look_up(path: str, tags: list[str]) -> str:
        """Look up."""
        return path

    model = Model(Canonical(name))
    tools = ToolSet.from_any([look, look_up])
    draw = random.Random(2)
    for _ in range(8):
        one = draw.random() < 0.5
        drawn = values(draw)
        arguments = (
            {"city": drawn["city"], "ok": True, "days": drawn["days"]} if one else {"path": "/x", "tags": drawn["tags"]}
        )
        text = json.dumps({"name": "look" if one else "look_up", "arguments": arguments}, ensure_ascii=False)
        check(
            model, f"<tool_call>\n{text}\n</tool_call>", tools=tools, tool_choice="required", parallel_tool_calls=False
        )


@pytest.mark.parametrize("name", TOKENIZERS)
def test_white_space_digits_and_contractions(name: str) -> None:
    """Where pre-tokenizers look ahead or group, what is forced is not written before that is known."""
    model = Model(Canonical(name))
    for grammar, texts in OTHERS:
        for text in texts:
            check(model, text, grammar=grammar)


@pytest.mark.parametrize("name", TOKENIZERS)
def test_prefixes_are_healed_by_the_same_law(name: str) -> None:
    """A prompt that ends anywhere in the text is written again as the tokenizer writes the whole."""
    model = Model(Canonical(name))
    draw = random.Random(3)
    for _ in range(2):
        text = json.dumps(values(draw), ensure_ascii=False)
        grammar = Grammar.from_json_schema(SCHEMA)
        for end in range(1, 40, 3):
            prefix = text[:end]
            if prefix.endswith("\\"):
                continue
            rest = Grammar.from_regex(r"[\s\S]*") if end % 2 else Grammar.literal(text[end:])
            check(model, text, prefix, grammar=rest)
        assert grammar.matches(text)


@pytest.mark.parametrize("name", TOKENIZERS)
def test_rows_of_a_batch_are_spelled_by_the_same_law(name: str) -> None:
    """Different grammars and texts in one batch, with jumps in every other row: each writes its own text in the tokens
    of the tokenizer, also where a row waits for others, leaves, or is taken back."""
    pytest.importorskip("torch", reason="torch is not installed")
    pytest.importorskip("transformers", reason="transformers is not installed")
    backend = Rows(name)
    model = Model(backend)
    draw = random.Random(4)
    rows: list[tuple[str, dict[str, Any]]] = [
        (json.dumps(values(draw), ensure_ascii=False), {"json_mode": JsonMode(SCHEMA)}) for _ in range(5)
    ]
    rows += [(draw.choice(texts), {"grammar": grammar}) for grammar, texts in OTHERS]
    draw.shuffle(rows)
    backend.texts = [text for text, _ in rows]
    passes = []
    for jumps in (lambda number: True, lambda number: number % 2 == 0, lambda number: False):
        params = [
            GenerateParams(max_tokens=3000, jump_forward=jumps(number), **each) for number, (_, each) in enumerate(rows)
        ]
        found = model.generate_batch([str(number) for number in range(len(rows))], params, max_rows=6)
        passes.append(sum(each.usage.forward_passes for each in found))  # of each row: when rows join is by chance
        assert not backend.strays
        assert [each.raw for each in found] == backend.texts
        assert [list(each.token_ids) for each in found] == [backend.encode(text) for text in backend.texts]
    assert passes[0] < 0.9 * passes[2]


@pytest.mark.parametrize("name", TOKENIZERS)
def test_a_logits_processor_lets_a_model_spell_as_its_tokenizer_does(name: str) -> None:
    """Nothing is forced there; so the law is that no token with which the tokenizer spells a valid text is masked."""
    torch = pytest.importorskip("torch", reason="torch is not installed")
    from toolgrammar.core.models import ConstrainedLogitsProcessor

    vocabulary, encode = tokenizer(name)
    draw = random.Random(5)
    rows = [(json.dumps(values(draw), ensure_ascii=False), Grammar.from_json_schema(SCHEMA)) for _ in range(4)]
    rows += [(text, grammar) for grammar, texts in OTHERS for text in texts[:2]]
    end = min(vocabulary.eos)
    targets = [[*encode(text), end] for text, _ in rows]
    processor = ConstrainedLogitsProcessor([grammar.bind(vocabulary).matcher() for _, grammar in rows])
    ids = torch.full((len(rows), 1), end)
    flat = torch.zeros(len(rows), vocabulary.size)
    for step in range(max(map(len, targets))):
        wanted = [target[step] if step < len(target) else end for target in targets]
        masked = processor(ids, flat)
        assert all(masked[row, token_id] == 0 for row, token_id in enumerate(wanted))
        ids = torch.cat([ids, torch.tensor(wanted)[:, None]], dim=1)
    assert all(processor.complete(ids))
