"""Memory of callers into which masks are written: that of other libraries too, and errors of ours for the rest."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from toolgrammar.core import DecodingError, Grammar, Matcher, Vocabulary, apply_mask, fill_masks

VOCABULARY = Vocabulary([*(bytes((byte,)) for byte in range(256)), b"ab", b'{"', None], eos=[258])
WORDS = (VOCABULARY.size + 31) // 32
GRAMMARS = [Grammar.from_json_schema({"type": "object"}), Grammar.from_regex("a(b|ab)*")]


@pytest.fixture
def matchers() -> list[Matcher]:
    """Texts of two grammars; the last one is over."""
    found = [grammar.bind(VOCABULARY).matcher() for grammar in GRAMMARS]
    over = GRAMMARS[1].bind(VOCABULARY).matcher()
    assert over.accept(ord("a")) and over.accept(258)
    return [*found, over]


def expected(matchers: list[Matcher]) -> np.ndarray:
    """The masks of texts, by their allowed tokens."""
    masks = np.zeros((len(matchers), WORDS), np.uint32)
    for row, matcher in zip(masks, matchers):
        for token in matcher.allowed_tokens():
            row[token // 32] |= np.uint32(1 << token % 32)
    return masks


def torch_of(kind: str) -> Callable[[tuple[int, ...]], Any]:
    """Make tensors of a type, full of ones."""

    def make(shape: tuple[int, ...]) -> Any:
        torch = pytest.importorskip("torch")
        return torch.full(shape, -1, dtype=torch.int32).view(getattr(torch, kind))

    return make


def allocated(library: str) -> Callable[[tuple[int, ...]], Any]:
    """Allocate masks by the function of another library."""

    def make(shape: tuple[int, ...]) -> Any:
        module = pytest.importorskip(library)
        masks = module.allocate_token_bitmask(shape[0] if len(shape) > 1 else 1, VOCABULARY.size)
        return masks if len(shape) > 1 else masks[0]

    return make


MEMORY: dict[str, Callable[[tuple[int, ...]], Any]] = {
    "uint32": lambda shape: np.full(shape, 0xFFFFFFFF, np.uint32),
    "int32": lambda shape: np.full(shape, -1, np.int32),
    "subclass": lambda shape: np.full(shape, -1, np.int32).view(type("Own", (np.ndarray,), {})),
    "part": lambda shape: np.full((5, *shape), -1, np.int32)[3],
    "torch-int32": torch_of("int32"),
    "torch-uint32": torch_of("uint32"),
    "xgrammar": allocated("xgrammar"),
    "llguidance-torch": allocated("llguidance.torch"),
    "llguidance-numpy": allocated("llguidance.numpy"),
}


@pytest.mark.parametrize("kind", MEMORY)
def test_masks_are_written_into_every_memory(kind: str, matchers: list[Matcher]) -> None:
    """The words of a mask are the same in each memory and shape, twice, and logits are masked by them."""
    wanted = expected(matchers)
    for _ in range(2):
        for matcher, row in zip(matchers, wanted):
            for shape in ((WORDS,), (1, WORDS)):
                out = MEMORY[kind](shape)
                for _ in range(2):
                    matcher.fill_mask(out)
                    assert np.asarray(out).view(np.uint32).reshape(-1).tolist() == row.tolist()
                    matcher.fill_mask(np.zeros(WORDS, np.uint32))
        out = MEMORY[kind]((len(matchers) + 1, WORDS))
        fill_masks(matchers, out)
        words = np.asarray(out).view(np.uint32)
        assert words[:-1].tolist() == wanted.tolist() and (words[-1] == 0xFFFFFFFF).all()
        logits = np.zeros((len(matchers) + 1, VOCABULARY.size), np.float32)
        apply_mask(logits, out)
        for matcher, row in zip(matchers, logits):
            assert np.flatnonzero(row == 0).tolist() == matcher.allowed_tokens()
    one = MEMORY[kind]((WORDS,))
    fill_masks(matchers[:1], one)
    assert np.asarray(one).view(np.uint32).tolist() == wanted[0].tolist()


def frozen(shape: tuple[int, ...]) -> np.ndarray:
    """Words that cannot be written."""
    array = np.zeros(shape, np.uint32)
    array.setflags(write=False)
    return array


def torch_array(make: Callable[[Any], Any]) -> Callable[[tuple[int, ...]], Any]:
    """Make a tensor, given torch."""
    return lambda shape: make(pytest.importorskip("torch")).expand(*shape)


REFUSED: dict[str, tuple[Callable[[tuple[int, ...]], Any], str]] = {
    "none": (lambda _: None, "a NumPy array or a tensor of torch, not NoneType"),
    "list": (lambda shape: np.zeros(shape).tolist(), "a NumPy array or a tensor of torch, not list"),
    "bytes": (lambda shape: bytearray(4 * shape[-1]), "a NumPy array or a tensor of torch, not bytearray"),
    "wide": (lambda shape: np.zeros(shape, np.int64), "words of uint32 or int32, not of int64"),
    "narrow": (lambda shape: np.zeros(shape, np.uint8), "words of uint32 or int32, not of uint8"),
    "floats": (lambda shape: np.zeros(shape, np.float32), "words of uint32 or int32, not of float32"),
    "bools": (lambda shape: np.zeros(shape, bool), "words of uint32 or int32, not of bool"),
    "objects": (lambda shape: np.zeros(shape, object), "words of uint32 or int32, not of object"),
    "order": (lambda shape: np.zeros(shape, ">u4"), "words of uint32 or int32, not of >u4"),
    "frozen": (frozen, "read-only memory"),
    "steps": (lambda shape: np.zeros((*shape[:-1], 2 * shape[-1]), np.uint32)[..., ::2], "not contiguous"),
    "unaligned": (
        lambda shape: np.frombuffer(bytearray(4 * int(np.prod(shape)) + 1), np.uint8)[1:].view("u4").reshape(shape),
        "not contiguous in memory, or not aligned",
    ),
    "short": (lambda shape: np.zeros((*shape[:-1], shape[-1] - 1), np.int32), f"takes {WORDS} words of 32 bits, not 8"),
    "empty": (lambda shape: np.zeros((*shape[:-1], 0), np.int32), f"takes {WORDS} words of 32 bits, not 0"),
    "number": (lambda _: np.array(5, np.uint32), "shape []"),
    "deep": (lambda shape: np.zeros((2, 2, *shape), np.uint32), "shape [2, 2, "),
    "torch-wide": (torch_array(lambda torch: torch.zeros(1, dtype=torch.int64)), "not of torch.int64"),
    "torch-half": (torch_array(lambda torch: torch.zeros(1, dtype=torch.bfloat16)), "not of torch.bfloat16"),
    "torch-meta": (torch_array(lambda torch: torch.zeros(1, dtype=torch.int32, device="meta")), "tensor is on meta"),
    "torch-steps": (torch_array(lambda torch: torch.zeros(1, dtype=torch.int32)), "not contiguous"),
    "torch-sparse": (
        lambda shape: pytest.importorskip("torch").zeros(shape, dtype=pytest.importorskip("torch").int32).to_sparse(),
        "cannot be written into this tensor",
    ),
}


@pytest.mark.parametrize("kind", REFUSED)
def test_other_memory_is_refused_in_our_words(kind: str, matchers: list[Matcher]) -> None:
    """What is no memory of a mask is an error of ours with a hint, at every state of a text, alone and in a batch."""
    make, said = REFUSED[kind]
    for call in (
        *(lambda each=each: each.fill_mask(make((WORDS,))) for each in matchers),
        *(lambda each=each: each.fill_mask(make((1, WORDS))) for each in matchers),
        lambda: fill_masks(matchers, make((3, WORDS))),
    ):
        with pytest.raises(DecodingError) as caught:
            call()
        assert said in caught.value.message and caught.value.hint
        assert matchers[0].allowed_tokens()


def test_rows_are_counted(matchers: list[Matcher]) -> None:
    """Two rows are no place for one mask, nor for three."""
    with pytest.raises(DecodingError, match=r"\[words\] or \[1, words\]"):
        matchers[0].fill_mask(np.zeros((2, WORDS), np.uint32))
    for shape in ((2, WORDS), (WORDS,)):
        with pytest.raises(DecodingError, match="3 masks do not fit"):
            fill_masks(matchers, np.zeros(shape, np.int32))


def test_torch_is_not_imported() -> None:
    """Masks are written into arrays, and other objects refused, in a process that never imports torch."""
    program = """
import sys, numpy as np
from toolgrammar.core import DecodingError, Grammar, Vocabulary, fill_masks
matcher = Grammar.from_regex("a").bind(Vocabulary([b"a", None], eos=[1])).matcher()
out = np.zeros((1, 1), np.int32)
matcher.fill_mask(out)
fill_masks([matcher], out)
assert out.tolist() == [[1]]
try:
    matcher.fill_mask([0])
except DecodingError:
    print("torch" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=100, check=True)
    assert done.stdout == "False\n"
