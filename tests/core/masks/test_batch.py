"""Masks of many texts at once, and putting them on logits: each row is what a matcher alone would give."""

from __future__ import annotations

import importlib.machinery
import importlib.util
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from toolgrammar.core import DecodingError, Grammar, Matcher, Vocabulary
from toolgrammar.core.masks import COMPILED, batch, mask_logits
from toolgrammar.core.masks.batch import EVERYTHING, NOTHING, MaskTable, apply_mask, fill_masks
from toolgrammar.core.masks.matcher import fill_known

from ...devices import DEVICE

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


@pytest.fixture(params=["compiled", "numpy", "interpreted"])
def form(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """How masks are applied: the compiled loops, NumPy, and the loops as plain Python."""
    if request.param == "compiled":
        if not mask_logits.COMPILED:
            pytest.skip("the loops are not compiled here")
    elif request.param == "numpy":
        monkeypatch.setattr(mask_logits, "COMPILED", False)
    else:
        source = Path(batch.__file__).with_name("mask_logits.py")
        loader = importlib.machinery.SourceFileLoader("toolgrammar.core.masks.mask_logits_interpreted", str(source))
        spec = importlib.util.spec_from_loader(loader.name, loader)
        assert spec is not None
        module = importlib.util.module_from_spec(spec)
        loader.exec_module(module)
        assert module.COMPILED is False
        monkeypatch.setattr(module, "COMPILED", True)
        monkeypatch.setattr(batch, "mask_logits", module)
    return str(request.param)


@pytest.mark.usefixtures("form")
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


@pytest.mark.usefixtures("form")
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
@pytest.mark.parametrize("extra", [-9, 0, 70])
@pytest.mark.parametrize("layout", ["contiguous", "strided"])
def test_torch_logits(matchers: list[Matcher], vocabulary: Vocabulary, dtype: str, extra: int, layout: str) -> None:
    """A torch tensor is masked in place, whatever its layout, as NumPy is; masks may be tensors too."""
    torch = pytest.importorskip("torch", reason="torch is not installed")
    masks = filled(matchers)
    size = vocabulary.size + extra
    storage = torch.randn((len(masks), size * 2), device=DEVICE).to(getattr(torch, dtype))
    logits = storage[:, ::2] if layout == "strided" else storage[:, :size].contiguous()
    allowed = torch.from_numpy(bits(np.pad(masks, [(0, 0), (0, 4)]), size)).to(DEVICE)
    expected = torch.where(allowed, logits, float("-inf"))
    for given in (masks, torch.from_numpy(masks.view(np.int32)).to(DEVICE)):
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


def test_known_masks_are_written_by_one_call(matchers: list[Matcher], vocabulary: Vocabulary) -> None:
    """What `fill_known` writes is each text's mask, wider rows are cleared, and rows of no text are left alone; what it
    does not know it leaves to the caller."""
    expected = filled(matchers)
    out = np.full((len(matchers) + 1, expected.shape[1] + 2), 7, np.uint32)
    rest = fill_known([*matchers[:3], None, *matchers[4:]], out)
    assert rest == [] if COMPILED else rest == [number for number in range(len(matchers)) if number != 3]
    for number in set(range(len(matchers))) - {3, *rest}:
        np.testing.assert_array_equal(out[number, :-2], expected[number])
        assert not out[number, -2:].any()
    assert (out[[3, -1]] == 7).all()
    fresh = Grammar.from_json_schema({"type": "string", "maxLength": 77}).bind(vocabulary).matcher()
    assert fill_known([fresh], out) == [0]


def test_table_gives_each_text_its_mask(matchers: list[Matcher], vocabulary: Vocabulary) -> None:
    """The rows of a table are the masks; texts in equal states share one, and no mask is written twice."""
    table = MaskTable(vocabulary.size, capacity=16)
    for _ in range(3):
        rows = table.rows(matchers)
        np.testing.assert_array_equal(table.words[rows], filled(matchers))
        assert rows[1] == rows[2] == rows[6] and len(set(rows.tolist())) == 5
    assert table.filled == 5
    logits = np.zeros((2, vocabulary.size), np.float32)
    table.forbid(logits, np.array([NOTHING, EVERYTHING], np.int32))
    assert np.isneginf(logits[0]).all() and not logits[1].any()


@pytest.mark.parametrize("capacity", [1, 3, 7, 500])
def test_table_of_any_size_follows_a_batch(vocabulary: Vocabulary, capacity: int) -> None:
    """Texts that are written at random, with names that depend on what is before, always get their own masks."""
    grammars = [
        Grammar.json(),
        Grammar.from_json_schema(SCHEMA),
        Grammar.from_json_schema({"type": "array", "items": {"enum": ["a", "b", "c"]}, "uniqueItems": True}),
        Grammar.from_json_schema({"type": "object", "additionalProperties": {"type": "integer"}}),
    ]
    constraints = [grammar.bind(vocabulary) for grammar in grammars]
    random = np.random.default_rng(0)
    texts = [constraints[number % len(constraints)].matcher() for number in range(9)]
    table = MaskTable(vocabulary.size, capacity)
    for _ in range(60):
        rows = table.rows(texts)
        np.testing.assert_array_equal(table.words[rows], filled(texts))
        for number, text in enumerate(texts):
            allowed = text.allowed_tokens()
            if not allowed or random.random() < 0.05:
                texts[number] = constraints[number % len(constraints)].matcher()
            else:
                assert text.accept(int(random.choice(allowed)))


@pytest.mark.usefixtures("form")
@pytest.mark.parametrize("device", dict.fromkeys([None, "cpu", DEVICE]))
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_table_masks_logits(matchers: list[Matcher], vocabulary: Vocabulary, device: str | None, dtype: str) -> None:
    """One call masks all rows, on the host and by way of a device; the same as masks of one's own."""
    torch = pytest.importorskip("torch", reason="torch is not installed")
    table = MaskTable(vocabulary.size, capacity=6, device=device)
    for order in (matchers, matchers[::-1], matchers[2:5]):
        logits = torch.randn((len(order), vocabulary.size + 40), device=device or "cpu").to(getattr(torch, dtype))
        expected = logits.clone()
        apply_mask(expected, filled(order))
        table.apply(logits, order)
        assert torch.equal(logits, expected)
    array = np.zeros((len(matchers), vocabulary.size), np.float32)
    table.apply(array, matchers)
    np.testing.assert_array_equal(np.isfinite(array), bits(filled(matchers), vocabulary.size))


def test_device_is_never_waited_for(matchers: list[Matcher], vocabulary: Vocabulary) -> None:
    """On a device nothing is read back: the same calls run on torch's "meta" device, which has no data to give."""
    torch = pytest.importorskip("torch", reason="torch is not installed")
    table = MaskTable(vocabulary.size, device="meta")
    logits = torch.empty((len(matchers), vocabulary.size + 3), dtype=torch.bfloat16, device="meta")
    for _ in range(2):
        table.apply(logits, matchers)
        apply_mask(logits, filled(matchers))
    assert table.filled == 5
    with pytest.raises(DecodingError, match="a table on meta"):
        table.apply(torch.zeros((len(matchers), vocabulary.size)), matchers)


def test_wrong_use_of_a_table_is_a_clear_error(matchers: list[Matcher], vocabulary: Vocabulary) -> None:
    """Shapes, vocabularies and sizes that do not fit are named."""
    with pytest.raises(DecodingError, match="table of 0 masks"):
        MaskTable(10, 0)
    with pytest.raises(DecodingError, match="in a table for 10"):
        MaskTable(10).rows(matchers)
    table = MaskTable(vocabulary.size)
    for shape in ((2, vocabulary.size), (len(matchers), vocabulary.size - 1), (vocabulary.size,)):
        with pytest.raises(DecodingError, match="do not fit"):
            table.apply(np.zeros(shape, np.float32), matchers)
    with pytest.raises(DecodingError, match="NumPy array or a torch tensor"):
        apply_mask(memoryview(np.zeros((1, 32), np.float32)), np.zeros((1, 1), np.uint32))


@pytest.mark.parametrize("rows", [[0, 1], [0, -1], [0]])
def test_every_row_of_logits_has_one_of_masks(rows: list[int]) -> None:
    """A row of the masks that is not there, or not said, is an error: nothing beyond them is read."""
    logits = np.zeros((2, 64), np.uint32)
    with pytest.raises(IndexError):
        mask_logits.forbid(logits, np.zeros((1, 2), np.uint32), np.array(rows, np.int32), 1)
    assert not logits.any()
