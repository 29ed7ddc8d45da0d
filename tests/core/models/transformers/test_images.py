"""Vision models of transformers: the same tokens as their own ``generate``, and valid answers whatever the image."""

from __future__ import annotations

import io
import json
import runpy
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest

from toolgrammar import Message, ToolCall, load_model
from toolgrammar.core import ImagePart, ModelError, TextPart
from toolgrammar.core.models.images import images_after_results, opened_images

from ..tiny_vision import FAMILIES, png, write_vision

torch = pytest.importorskip("torch", reason="torch is not installed")
transformers = pytest.importorskip("transformers", reason="transformers is not installed")
Image = pytest.importorskip("PIL.Image", reason="Pillow is not installed")
if not hasattr(transformers, "LlavaImageProcessorPil"):
    pytest.skip("this transformers has no processors without torchvision", allow_module_level=True)

PICTURES = (png(140, 90), png(60, 200, 1), png(80, 80, 2))
#: Families whose recurrent layers read one sequence at a time.
APART = ("qwen3_5",)
Load = Callable[[str], Any]


@pytest.fixture(scope="module")
def load(tmp_path_factory: pytest.TempPathFactory) -> Load:
    """Load a family's model, once."""
    return cache(lambda family: load_model(f"hf:{write_vision(tmp_path_factory.mktemp('vision'), family)}"))


def asked(count: int, text: str = "What is it?") -> list[Message]:
    """A question about some images."""
    return [Message("user", (*(ImagePart(picture) for picture in PICTURES[:count]), TextPart(text)))]


def inputs_of(backend: Any, count: int, text: str = "What is it?", **more: Any) -> Any:
    """The same question as the processor itself reads it."""
    parts = [{"type": "image", "image": Image.open(io.BytesIO(picture))} for picture in PICTURES[:count]]
    turn = {"role": "user", "content": [*parts, {"type": "text", "text": text}]}
    return backend._vision._processor.apply_chat_template(
        [turn], tokenize=True, return_dict=True, return_tensors="pt", add_generation_prompt=True, **more
    )


@pytest.mark.parametrize("family", FAMILIES)
def test_the_tokens_are_those_of_generate(family: str, load: Load) -> None:
    """Greedy tokens equal those of transformers' own ``generate`` for 1 and 3 images, also from a cached prefix, a
    copy, and a sequence that is read again; and logits of shared passes equal those of single ones."""
    model = load(family)
    backend = model.backend
    assert model.capabilities.images
    for count in (1, 3):
        ids, inputs = backend.encode_prompt(asked(count)), inputs_of(backend, count)
        assert [int(token) for token in ids] == inputs["input_ids"][0].tolist()
        with torch.inference_mode():
            whole = backend._model.generate(**inputs, max_new_tokens=8, min_new_tokens=8, do_sample=False)
        wanted = whole[0, len(ids) :].tolist()

        def greedy(session: Any, logits: Any, wanted: list[int] = wanted) -> list[int]:
            chosen = []
            for _ in wanted:
                logits = logits.copy()
                logits[backend._tokenizer.eos_token_id] = -np.inf  # generate bars it too
                chosen.append(int(logits.argmax()))
                logits = session.extend([chosen[-1]])
            return chosen

        session = backend.start()
        assert greedy(session, session.extend(ids)) == wanted
        session.close()
        again = backend.start()
        assert greedy(again, again.extend(ids)) == wanted
        assert again.cached_tokens in (0, len(ids) - 1)  # recurrent layers keep no part of a sequence
        alone = backend.new_session()
        logits = alone.extend(ids)
        if alone.keeps(len(ids)) and alone._trims(len(ids)):
            assert greedy(alone.fork(len(ids)), logits) == wanted
        alone.forget()
        assert np.allclose(alone.extend(wanted[:1]), again_after(backend, ids, wanted[:1]), atol=1e-4)
        if shares_passes(family, backend):
            one, other = backend.begin(ids), backend.begin(backend.encode_prompt([Message("user", "No image.")]))
            first, second = backend.extend_many([(one, ids[one.length :]), (other, [5, 6, 7])])
            assert np.allclose(first, logits, atol=1e-4)
            together = backend.extend_many([(other, [8]), (one, wanted[:1])])
            assert np.allclose(together[1], again_after(backend, ids, wanted[:1]), atol=1e-4)
            assert second.shape == first.shape
            one.close(), other.close()


def shares_passes(family: str, backend: Any) -> bool:
    """True if requests to a family share passes; a warning names the reason once if not."""
    if family not in APART:
        assert backend.can_batch()
        return True
    if backend._traits.packs is None:
        with pytest.warns(RuntimeWarning, match="share no forward pass"):
            assert not backend.can_batch()
    return False


def again_after(backend: Any, ids: list[int], more: list[int]) -> Any:
    """The logits after a prompt and some tokens, in two passes of a sequence of their own."""
    session = backend.new_session()
    session.extend(ids)
    return session.extend(more)


@pytest.mark.parametrize("family", ["qwen2_5_vl", "llava"])
def test_a_prefix_is_reused_only_with_its_images(family: str, load: Load) -> None:
    """The same question about another image of the same size shares no token from the image on; the next turn of a
    conversation about an image does."""
    backend = load(family).backend
    one, other = ([Message("user", (ImagePart(png(56, 56, seed)), TextPart("What is it? " * 4)))] for seed in (5, 6))
    first, second = backend.encode_prompt(one), backend.encode_prompt(other)
    assert list(map(int, first)) == list(map(int, second)) and first != second
    session = backend.start()
    session.extend(first)
    session.close()
    session = backend.start()
    logits = session.extend(second)
    assert session.cached_tokens < next(place for place, token in enumerate(first) if type(token) is not int)
    fresh = backend.new_session()
    assert np.allclose(logits, fresh.extend(second), atol=1e-4)
    session.close()
    later = backend.encode_prompt([*other, Message("assistant", "Noise."), Message("user", "Sure?")])
    session = backend.start()
    logits = session.extend(later)
    assert session.cached_tokens >= len(second) - 24
    assert np.allclose(logits, backend.new_session().extend(later), atol=1e-4)


def test_answers_and_calls_are_valid_whatever_the_image(load: Load) -> None:
    """Noise of any size, mode and format: structured answers and calls of a request are valid, alone and in a batch
    that shares passes, in whose pieces an image is cut."""
    model = load("qwen2_5_vl")
    files = [
        png(1, 1), png(1_500, 10), png(30, 30, mode="CMYK", form="JPEG"), png(30, 30, mode="P", form="GIF"),
        png(30, 30, mode="RGBA"), png(30, 30, mode="1"), png(64, 64, mode="L", form="TIFF"), png(900, 700),
    ]  # fmt: skip

    def rate(kind: Literal["receipt", "form"], total: int) -> str:
        """Rate it."""
        return kind

    requests = [[Message("user", (TextPart("Rate "), ImagePart(file)))] for file in files]
    for answer in model.generate_batch(requests, tools=[rate], tool_choice="required", max_tokens=100):
        for call in answer.tool_calls:
            assert call.error is None and call.arguments["kind"] in ("receipt", "form")
    schema = {
        "type": "object",
        "properties": {"n": {"enum": [1, 22]}},
        "required": ["n"],
        "additionalProperties": False,
    }
    many = [Message("user", (*(ImagePart(png(9, 9, seed)) for seed in range(100)), TextPart("Count.")))]
    for messages in (requests[0], many):
        assert json.loads(model.generate(messages, output_type=schema, max_tokens=30).text)["n"] in (1, 22)


def test_images_of_results_follow_in_a_turn_of_the_user(load: Load) -> None:
    """A template has no image in a result: the model sees it in the user's turn behind the results."""
    shown = [
        Message("user", "Look."),
        Message("assistant", "", tool_calls=(ToolCall("a", "shoot", {}),)),
        Message("tool", (TextPart("done"), ImagePart(PICTURES[0])), tool_call_id="a", name="shoot"),
    ]
    told = images_after_results(shown)
    assert (told[2].content, told[3].role) == ("done", "user")
    assert images_after_results([*shown, Message("user", "And?")])[3].text == "The image of shoot:And?"

    def shoot() -> str:
        """Take a picture."""
        return ""

    answer = load("llava").generate(shown, tools=[shoot], max_tokens=20)
    assert answer.usage.prompt_tokens > 4


def test_a_bad_image_is_an_error_of_its_message(load: Load) -> None:
    """Broken, empty, unknown, huge and absent files are refused before they are decoded; nothing is fetched unless the
    caller gives a function."""
    bomb = io.BytesIO()
    Image.new("1", (40_000, 40_000)).save(bomb, "PNG")
    bad = {
        b"": "is empty",
        b"%!PS-Adobe-3.0 EPSF-3.0\n": "format is not known",
        PICTURES[0][:200]: "cannot be read",
        bomb.getvalue(): "more than 50,000,000 pixels",
    }
    model = load("llava")
    for data, reason in bad.items():
        with pytest.raises(ModelError, match=reason) as caught:
            model.generate([Message("user", "Hi"), Message("user", (ImagePart(data),))])
        assert "message 1 (of the user)" in str(caught.value)
    far = [Message("user", (ImagePart(url="http://127.0.0.1:9/a.png"),))]
    with pytest.raises(ModelError, match="addresses are not fetched"):
        model.generate(far)
    asked_for: list[str] = []

    def fetch(url: str) -> bytes:
        asked_for.append(url)
        return PICTURES[0]

    assert opened_images(far, fetch)[0].picture.size == (140, 90) and asked_for == ["http://127.0.0.1:9/a.png"]


@pytest.mark.parametrize("family", FAMILIES)
def test_text_is_never_a_control_token(family: str, load: Load) -> None:
    """The names of placeholders and control tokens in a user's text are text beside images too: the prompt has the
    same control tokens and images as that of another text, and the text is in it, also if two parts have a half each.
    """
    backend = load(family).backend
    special = backend.vocabulary.special
    names = {*special, *backend._tokenizer.all_special_tokens}
    assert len(names) > 3

    def read(*texts: str) -> tuple[list[int], str]:
        """The control tokens and images of a prompt, and its text."""
        ids = backend.encode_prompt([Message("user", (ImagePart(PICTURES[0]), *map(TextPart, texts)))])
        control = [token for token in ids if type(token) is not int or token in special.values()]
        return control, backend.vocabulary.decode(map(int, ids)).decode()

    expected, _ = read("a b")
    assert sum(type(token) is not int for token in expected) > 3
    for name in names:
        for texts in ((f"a {name}{name} b",), (name[:2], name[2:])):
            control, text = read(*texts)
            assert control == expected and "".join(texts) in text, name


def test_a_picture_is_upright_and_on_white() -> None:
    """EXIF's orientation is applied, and what is transparent is white."""
    exif = Image.Exif()
    exif[0x0112] = 6
    turned = opened_images([Message("user", (ImagePart(png(20, 10, form="JPEG", exif=exif)),))])[0].picture
    assert turned.size == (10, 20)
    clear = io.BytesIO()
    Image.new("RGBA", (2, 2), (0, 0, 0, 0)).save(clear, "PNG")
    assert opened_images([Message("user", (ImagePart(clear.getvalue()),))])[0].picture.getpixel((0, 0)) == (255,) * 3


def test_images_come_from_files_and_pages(tmp_path: Any) -> None:
    """A path, bytes, an image of Pillow, transformers' own block and the pages of a PDF."""
    (tmp_path / "a.png").write_bytes(PICTURES[0])
    picture = Image.open(tmp_path / "a.png")
    assert ImagePart.of(tmp_path / "a.png").data == ImagePart.of(PICTURES[0]).data == PICTURES[0]
    pages = [Image.new("RGB", (200, 100), "white")] * 2
    pytest.importorskip("pypdfium2", reason="pypdfium2 is not installed")
    pages[0].save(tmp_path / "b.pdf", save_all=True, append_images=pages[1:])
    made = ImagePart.pages(tmp_path / "b.pdf", dpi=72)
    parts = (ImagePart.of(picture), *made)
    assert [one.picture.size for one in opened_images([Message("user", parts)])] == [(140, 90), (200, 100), (200, 100)]
    with pytest.raises(ModelError, match="the PDF cannot be read"):
        ImagePart.pages(b"no PDF")
    with pytest.raises(ModelError, match="an image is 3"):
        ImagePart.of(3)


def test_the_example_reads_a_receipt(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """``examples/receipt.py`` ends well with a vision model, and prints a receipt of its schema."""
    example = Path(__file__).parents[4] / "examples" / "receipt.py"
    monkeypatch.setattr(sys, "argv", [str(example), f"hf:{write_vision(tmp_path, 'llava')}"])
    runpy.run_path(str(example), run_name="__main__")
    *items, total, sum_of = capsys.readouterr().out.splitlines()
    assert 1 <= len(items) <= 6 and sum_of in ("adds up: True", "adds up: False")
    assert total.split()[1] in ("EUR,", "GBP,", "USD,")
