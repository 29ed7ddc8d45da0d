"""`ConstrainedLogitsProcessor` under the real ``generate`` of transformers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from toolgrammar.core import Constraint, DecodingError, Grammar, ModelError, Vocabulary
from toolgrammar.core.models import ConstrainedLogitsProcessor

from ...devices import DEVICE
from .tiny import TEMPLATE, llama, tokenizer

torch = pytest.importorskip("torch", reason="torch is not installed")
transformers = pytest.importorskip("transformers", reason="transformers is not installed")

CITY = {
    "type": "object",
    "properties": {"city": {"type": "string", "maxLength": 4}, "days": {"enum": [1, 23]}},
    "required": ["city", "days"],
    "additionalProperties": False,
}
EOS = 256


@pytest.fixture(scope="module")
def vocabulary() -> Vocabulary:
    """A token for each byte, and an end of text."""
    return Vocabulary([*(bytes((byte,)) for byte in range(256)), None], eos=[EOS])


@pytest.fixture(scope="module")
def model() -> Any:
    """A Llama of random weights with a few logits more than tokens."""
    return llama(
        vocab_size=260,
        num_hidden_layers=1,
        initializer_range=0.5,
        bos_token_id=EOS,
        eos_token_id=EOS,
        pad_token_id=EOS,
    )


@pytest.fixture(scope="module")
def city(vocabulary: Vocabulary) -> Constraint:
    """JSON about a city."""
    return Grammar.from_json_schema(CITY).bind(vocabulary)


def prompts(*texts: bytes) -> dict[str, Any]:
    """Left-padded input."""
    width = max(map(len, texts))
    ids = torch.tensor([[EOS] * (width - len(text)) + list(text) for text in texts], device=DEVICE)
    mask = torch.tensor([[0] * (width - len(text)) + [1] * len(text) for text in texts], device=DEVICE)
    return {"input_ids": ids, "attention_mask": mask}


def text_of(row: Any, start: int) -> str:
    """What a row has written after the prompt."""
    return bytes(token for token in row[start:].tolist() if token < 256).decode()


@pytest.mark.parametrize("sampling", [{}, {"do_sample": True, "temperature": 1.5, "top_k": 5}])
def test_each_row_obeys_its_own_grammar(
    model: Any, vocabulary: Vocabulary, city: Constraint, sampling: dict[str, Any]
) -> None:
    """Rows of a batch with different grammars and lengths are all valid and whole, greedy or sampled."""
    torch.manual_seed(1)
    number = Grammar.from_json_schema({"type": "integer", "minimum": 100, "maximum": 99_999}).bind(vocabulary)
    batch = prompts(b"city?", b"a longer prompt", b"n")
    processor = ConstrainedLogitsProcessor([city.matcher(), city.matcher(), number.matcher()])
    output = model.generate(**batch, logits_processor=[processor], max_new_tokens=120, **sampling)
    start = batch["input_ids"].shape[1]
    assert processor.complete(output) == [True, True, True]
    for row in output[:2]:
        value = json.loads(text_of(row, start))
        assert set(value) == {"city", "days"} and len(value["city"]) <= 4 and value["days"] in (1, 23)
    assert 100 <= int(text_of(output[2], start)) <= 99_999


def test_greedy_text_is_that_of_masked_argmax(model: Any, vocabulary: Vocabulary, city: Constraint) -> None:
    """The text is the one that a loop of our own writes: run, mask, take the best."""
    batch = prompts(b"hello")
    matcher, ids = city.matcher(), batch["input_ids"]
    mask = np.zeros(city.words, np.uint32)
    with torch.inference_mode():
        while not matcher.is_finished:
            matcher.fill_mask(mask)
            logits = model(input_ids=ids).logits[0, -1].cpu().numpy().copy()
            allowed = np.unpackbits(mask.view(np.uint8), bitorder="little")[: vocabulary.size].astype(bool)
            logits[: vocabulary.size][~allowed] = -np.inf
            logits[vocabulary.size :] = -np.inf
            token_id = int(logits.argmax())
            assert matcher.accept(token_id)
            ids = torch.cat([ids, torch.tensor([[token_id]], device=DEVICE)], dim=1)
    processor = ConstrainedLogitsProcessor([city.matcher()])
    output = model.generate(**batch, logits_processor=[processor], max_new_tokens=120, do_sample=False)
    assert text_of(output[0], 5) == text_of(ids[0], 5)


def test_text_cut_by_max_new_tokens_is_told(model: Any, city: Constraint) -> None:
    """``generate`` cuts in the middle; `complete` says which rows are not whole."""
    processor = ConstrainedLogitsProcessor([city.matcher(), city.matcher()])
    output = model.generate(**prompts(b"a", b"b"), logits_processor=[processor], max_new_tokens=6)
    assert processor.complete(output) == [False, False]


def test_beam_search_is_refused(model: Any, city: Constraint) -> None:
    """Beams are refused at the first step: one could be chosen that holds forbidden tokens."""
    with pytest.raises(ModelError, match="3 rows for 1 matchers") as caught:
        model.generate(
            **prompts(b"a"),
            logits_processor=[ConstrainedLogitsProcessor([city.matcher()])],
            num_beams=3,
            max_new_tokens=9,
        )
    assert "no beams" in str(caught.value)


def test_rows_that_are_reordered_or_chosen_elsewhere_are_refused(city: Constraint) -> None:
    """Beams with a matcher each, skipped steps and forbidden tokens are errors, not invalid output."""
    scores = torch.zeros((2, 257))
    processor = ConstrainedLogitsProcessor([city.matcher(), city.matcher()])
    processor(torch.tensor([[1], [2]]), scores)
    with pytest.raises(ModelError, match="did not grow by one token"):
        processor(torch.tensor([[2, 123], [1, 123]]), scores)
    with pytest.raises(ModelError, match="did not grow by one token"):
        processor(torch.tensor([[1, 123, 34], [2, 123, 34]]), scores)
    with pytest.raises(DecodingError, match="row 1 got token 65"):
        processor(torch.tensor([[1, 123], [2, 65]]), scores)


def test_rows_that_are_over_are_padded(vocabulary: Vocabulary) -> None:
    """A row that is over takes whatever transformers pads it with, and only the end of text is allowed there."""
    short, long = (Grammar.from_regex(pattern).bind(vocabulary) for pattern in ("a", "aaaa"))
    processor = ConstrainedLogitsProcessor([short.matcher(), long.matcher()])
    ids = torch.tensor([[1], [1]])
    for tokens, allowed in (
        ((), ([97], [97])),
        ((97, 97), ([EOS], [97])),
        ((EOS, 97), ([EOS], [97])),
        ((0, 97), ([EOS], [97])),
    ):
        if tokens:
            ids = torch.cat([ids, torch.tensor(tokens)[:, None]], dim=1)
        scores = torch.randn((2, 300))
        masked = processor(ids, scores)
        assert [torch.isfinite(row).nonzero()[:, 0].tolist() for row in masked] == list(allowed)
        assert torch.isfinite(scores).all()


def test_wrong_use_is_a_clear_error(city: Constraint) -> None:
    """Shared matchers, none, and a model with fewer logits than tokens are named."""
    matcher = city.matcher()
    with pytest.raises(ModelError, match="needs its own matcher"):
        ConstrainedLogitsProcessor([matcher, matcher])
    with pytest.raises(ModelError, match="needs its own matcher"):
        ConstrainedLogitsProcessor([])
    with pytest.raises(ModelError, match="100 scores for 257 tokens"):
        ConstrainedLogitsProcessor([matcher])(torch.tensor([[1]]), torch.zeros((1, 100)))


def test_vocabulary_without_an_end_is_a_clear_error() -> None:
    """Where nothing could tell ``generate`` that the text is over, that is said."""
    endless = Grammar.from_regex("a").bind(Vocabulary([b"a"], eos=[]))
    processor = ConstrainedLogitsProcessor([endless.matcher()])
    processor(torch.tensor([[0]]), torch.zeros((1, 1)))
    with pytest.raises(DecodingError, match="extra_eos"):
        processor(torch.tensor([[0, 0]]), torch.zeros((1, 1)))


@pytest.mark.llama_cpp
def test_llama_cpp_python(tmp_path: Path) -> None:
    """llama-cpp-python's own completion, over a tiny model of noise: valid texts, and a new processor for each."""
    llama_cpp = pytest.importorskip("llama_cpp", reason="llama-cpp-python is not installed")
    pytest.importorskip("gguf", reason="the gguf package is not installed")
    from toolgrammar.core.models.llama_cpp.backend import GGUFBackend

    from .tiny_gguf import write_gguf

    tokens = tokenizer(None, ("<|im_end|>", "<|im_start|>"))
    write_gguf(tmp_path / "tiny.gguf", llama(vocab_size=len(tokens), hidden_size=64), tokens, TEMPLATE)
    city = Grammar.from_json_schema(CITY).bind(GGUFBackend(str(tmp_path / "tiny.gguf"), threads=1).vocabulary)
    engine = llama_cpp.Llama(str(tmp_path / "tiny.gguf"), n_ctx=256, n_threads=1, verbose=False)
    for seed in range(4):
        processors = llama_cpp.LogitsProcessorList([ConstrainedLogitsProcessor([city.matcher()])])
        answer = engine.create_completion(
            "the weather in Rome", max_tokens=200, seed=seed, temperature=1.5, logits_processor=processors
        )
        value = json.loads(answer["choices"][0]["text"])
        assert set(value) == {"city", "days"} and len(value["city"]) <= 4 and value["days"] in (1, 23)
