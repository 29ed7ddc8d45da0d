"""Masks of many texts at once, and putting them on logits: each row is what a matcher alone would give."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from toolgrammar.core import DecodingError, Grammar, Matcher, Vocabulary
from toolgrammar.core.automaton.batch import apply_mask, fill_masks

SCHEMA = {"type": "object", "properties": {"a": {"type": "string"}, "b": {"enum": [1, 23, None]}}, "required": ["b"]}


@pytest.fixture(scope="module")
def vocabulary() -> Vocabulary:
    """Bytes and pairs of bytes; the number of tokens is no multiple of 32."""
    pairs = [bytes(pair) for pair in zip(b'{"a": "x}', b'"a": "x"}')]
    return Vocabulary([*(bytes((byte,)) for byte in range(256)), *pairs, None], eos=[265])


@pytest.fixture(scope="module")
def matchers(vocabulary: Vocabulary) -> list[Matcher]:
    """Texts of two grammars, some of them in the same state, one over."""
    constraint = Grammar.from_json_schema(SCHEMA).bind(vocabulary)
    found = []
    for text in (b"", b'{"a": "x', b'{"a": "x', b'{"b": 2', b'{"b": 23}'):
        matcher = constraint.matcher()
        assert matcher.accept_bytes(text)
        found.append(matcher)
    assert found[-1].accept(265)
    return [*found, Grammar.from_regex("[a-c]+").bind(vocabulary).matcher(), found[1].fork()]


def bits(masks: np.ndarray, size: int) -> np.ndarray:
    """Masks as booleans, one token at a time."""
    return np.array([[bool(row[token // 32] >> (token % 32) & 1) for token in range(size)] for row in masks])


def filled(matchers: list[Matcher]) -> np.ndarray:
    """Each matcher's own mask."""
    masks = np.zeros((len(matchers), matchers[0].constraint.words), np.uint32)
    for matcher, row in zip(matchers, masks):
        matcher.fill_mask(row)
    return masks


def test_rows_are_the_masks_of_each(matchers: list[Matcher]) -> None:
    """All rows at once are the rows one by one, cold and warm; further rows and words are left and cleared."""
    out = np.full((len(matchers) + 2, matchers[0].constraint.words + 1), 0xFFFFFFFF, np.uint32)
    for _ in range(2):
        fill_masks(matchers, out)
        np.testing.assert_array_equal(out[: len(matchers), :-1], filled(matchers))
        assert not out[: len(matchers), -1].any() and (out[len(matchers) :] == 0xFFFFFFFF).all()
    with pytest.raises(DecodingError, match="do not fit"):
        fill_masks(matchers, out[:2])


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("extra", [-9, 0, 70])
def test_numpy_logits(matchers: list[Matcher], vocabulary: Vocabulary, dtype: Any, extra: int) -> None:
    """Allowed logits stay, all others are minus infinity, whether there are as many logits as bits or not."""
    masks = filled(matchers)
    logits = np.random.default_rng(0).standard_normal((len(masks), vocabulary.size + extra)).astype(dtype)
    allowed = bits(np.pad(masks, [(0, 0), (0, 4)]), logits.shape[1])
    expected = np.where(allowed, logits, -np.inf)
    apply_mask(logits, masks)
    np.testing.assert_array_equal(logits, expected)
    one = np.zeros(vocabulary.size, dtype)
    apply_mask(one, masks[1])
    np.testing.assert_array_equal(np.isfinite(one), bits(masks[1:2], vocabulary.size)[0])


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
@pytest.mark.parametrize("extra", [-9, 0, 70])
@pytest.mark.parametrize("layout", ["contiguous", "strided"])
def test_torch_logits(matchers: list[Matcher], vocabulary: Vocabulary, dtype: str, extra: int, layout: str) -> None:
    """A torch tensor is masked in place, whatever its layout, as NumPy is; masks may be tensors too."""
    torch = pytest.importorskip("torch", reason="torch is not installed")
    masks = filled(matchers)
    size = vocabulary.size + extra
    storage = torch.randn((len(masks), size * 2), dtype=torch.float32).to(getattr(torch, dtype))
    logits = storage[:, ::2] if layout == "strided" else storage[:, :size].contiguous()
    allowed = torch.from_numpy(bits(np.pad(masks, [(0, 0), (0, 4)]), size))
    expected = torch.where(allowed, logits, float("-inf"))
    for given in (masks, torch.from_numpy(masks.view(np.int32))):
        trial = logits.clone() if layout == "contiguous" else logits
        apply_mask(trial, given)
        assert torch.equal(trial, expected)


def test_shapes_and_types_are_checked() -> None:
    """Rows that do not fit, integers and other things are refused before anything is written."""
    masks = np.zeros((2, 1), np.uint32)
    with pytest.raises(DecodingError, match="do not fit"):
        apply_mask(np.zeros((3, 32), np.float32), masks)
    with pytest.raises(DecodingError, match="not int64"):
        apply_mask(np.zeros((2, 32), np.int64), masks)
