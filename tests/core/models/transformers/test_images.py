"""Vision models of transformers: the same tokens as their own ``generate``, and valid answers whatever the image."""

from __future__ import annotations

import io
import json
import runpy
import struct
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest

from toolgrammar import Grammar, Message, ToolCall, load_model
from toolgrammar.core import GenerateParams, ImagePart, ModelError, TextPart
from toolgrammar.core.generation.sampler import Sampler
from toolgrammar.core.models import ConstrainedLogitsProcessor, images
from toolgrammar.core.models.images import images_after_results, opened_images

from ..tiny_vision import FAMILIES, png, says_size, write_vision

torch = pytest.importorskip("torch", reason="torch is not installed")
transformers = pytest.importorskip("transformers", reason="transformers is not installed")
Image = pytest.importorskip("PIL.Image", reason="Pillow is not installed")
if not hasattr(transformers, "LlavaImageProcessorPil"):
    pytest.skip("this transformers has no processors without torchvision", allow_module_level=True)

PICTURES = (png(140, 90), png(60, 200, 1), png(80, 80, 2))
#: Families whose recurrent layers read one sequence at a time.
APART = ("qwen3_5",)
#: Families whose caches cannot be cropped: recurrent layers, and a window that has slid.
KEEPS_WHOLE = ("qwen3_5", "gemma3")
Load = Callable[..., Any]


@pytest.fixture(scope="module", autouse=True)
def one_thread() -> Iterator[None]:
    """Tiny tensors: threads would wait for each other."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def load(tmp_path_factory: pytest.TempPathFactory) -> Load:
    """Load a family's model, once in each precision."""
    folder = cache(lambda family: write_vision(tmp_path_factory.mktemp("vision"), family))
    return cache(lambda family, dtype="auto": load_model(f"hf:{folder(family)}", dtype=dtype))


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
        if alone.keeps(len(ids)) and alone._can_shorten(len(ids)):
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


@pytest.mark.parametrize("family", FAMILIES)
def test_answers_are_those_of_generate_under_the_same_mask(family: str, load: Load) -> None:
    """Answers under a grammar have the tokens of ``generate`` with the same mask, greedy and drawn by the same seed,
    for 0 to 3 images: alone, in a batch of 4, and from a kept prefix. The prompt has as many tokens as it is counted.

    In double precision, another order of additions changes no draw.
    """
    model = load(family, "float64")
    backend = model.backend
    shares_passes(family, backend)
    grammar = Grammar.from_regex("[a-f]{2}-[a-z]{2,6}")
    prompts = [asked(count, f"Say {count}.") for count in range(4)]
    for temperature in (0.0, 1.0):
        params = [
            GenerateParams(grammar=grammar, max_tokens=30, temperature=temperature, seed=seed) for seed in range(4)
        ]
        wanted = [generated(backend, count, f"Say {count}.", one) for count, one in enumerate(params)]
        alone = [model.generate(prompt, one) for prompt, one in zip(prompts, params, strict=True)]
        together = model.generate_batch(prompts, params)
        for answers in (alone, together):
            assert [[*answer.token_ids] for answer in answers] == wanted
        for prompt, answer in zip(prompts, alone, strict=True):
            assert answer.usage.prompt_tokens == model.count_tokens(prompt)
        kept = [answer.usage.cached_tokens > 0 for answer in together]
        assert all(kept) or family in KEEPS_WHOLE


@pytest.mark.parametrize("family", ["qwen2_5_vl", "idefics3"])
def test_texts_are_scored_beside_images(family: str, load: Load) -> None:
    """The probabilities of texts after images, which are read as a tree, are those of each text read by itself."""
    model = load(family, "float64")
    texts = ["red", "green", "grey"]
    chosen = model.choose(asked(2), texts)
    ids = model.backend.encode_prompt(asked(2))
    for text in texts:
        logprobs = []
        for place, token in enumerate(model.encode(text)):
            logits = model.backend.new_session().extend([*ids, *model.encode(text)[:place]]).astype(np.float64)
            logprobs.append(logits[token] - np.logaddexp.reduce(logits))
        assert np.allclose(chosen.scores[text].logprobs, logprobs, atol=1e-5)


def generated(backend: Any, count: int, text: str, params: GenerateParams) -> list[int]:
    """The tokens of transformers' own ``generate``, masked by a grammar and drawn by our sampler."""
    inputs = inputs_of(backend, count, text)
    inputs = {name: each.to(torch.float64) if each.is_floating_point() else each for name, each in inputs.items()}
    assert params.grammar is not None
    mask = ConstrainedLogitsProcessor([params.grammar.bind(backend.vocabulary).matcher()])
    sampler = Sampler(params)

    def drawn(ids: Any, scores: Any) -> Any:
        allowed = np.flatnonzero(np.isfinite(scores[0].numpy()))
        token = sampler.choose(scores[0].numpy(), allowed) if len(allowed) > 1 else allowed[0]
        return torch.full_like(scores, -np.inf).index_fill(1, torch.tensor([token]), 0.0)

    size = inputs["input_ids"].shape[1]
    with torch.inference_mode():
        whole = backend._model.generate(**inputs, max_new_tokens=30, do_sample=False, logits_processor=[mask, drawn])
    ids: list[int] = whole[0, size:].tolist()
    return ids[: next((place for place, one in enumerate(ids) if one in backend.vocabulary.eos), len(ids))]


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


def moving(form: str) -> bytes:
    """An animation of two frames."""
    file = io.BytesIO()
    frames = [Image.new("RGB", (40, 30), colour) for colour in ("red", "blue")]
    frames[0].save(file, form, save_all=True, append_images=frames[1:])
    return file.getvalue()


def deep() -> bytes:
    """A grey picture of 16 bits a pixel."""
    file = io.BytesIO()
    Image.fromarray(np.full((20, 20), 0x8040, np.uint16)).save(file, "PNG")
    return file.getvalue()


def turned() -> bytes:
    """A photograph whose EXIF data say that it lies on its side."""
    exif = Image.Exif()
    exif[0x0112] = 6
    return png(20, 10, form="JPEG", exif=exif)


#: Pictures of any kind, and what their error says if they have one.
ANY: dict[str, tuple[bytes, str | None]] = {
    "one pixel": (png(1, 1), None),
    "a line": (png(1_500, 10), None),
    "a thread": (png(8_000, 10), "refused by the model's processor"),
    "CMYK": (png(30, 30, mode="CMYK", form="JPEG"), None),
    "palette": (png(30, 30, mode="P", form="GIF"), None),
    "transparent": (png(30, 30, mode="RGBA"), None),
    "black and white": (png(30, 30, mode="1"), None),
    "16 bits": (deep(), None),
    "floats": (png(30, 30, mode="F", form="TIFF"), "its pixels are floats"),
    "moving GIF": (moving("GIF"), None),
    "moving PNG": (moving("PNG"), None),
    "on its side": (turned(), None),
    "much": (png(900, 700), None),
    "cut": (png(90, 70)[:9_000], "cannot be read"),
    "cut JPEG": (png(90, 70, form="JPEG")[:900], "cannot be read"),
    "noise without a head": (PICTURES[0][8:], "its format is not known"),
    "nothing": (b"", "it is empty"),
    "a program": (b"%!PS-Adobe-3.0 EPSF-3.0\n", "its format is not known"),
    "large": (says_size(7_100, 7_100), "more than 50,000,000 pixels"),
    "a bomb": (says_size(40_000, 40_000), "more than 50,000,000 pixels"),
    "larger than numbers": (says_size(2**31 - 1, 2**31 - 1), "more than 50,000,000 pixels"),
}


@pytest.mark.parametrize("family", ["qwen2_5_vl", "llava", "idefics3"])
def test_answers_are_valid_whatever_the_picture(family: str, load: Load) -> None:
    """A picture of any kind is read, and the answer is of its schema; or it is refused with an error of ours that
    names its message."""
    model = load(family)
    read = 0
    for name, (data, reason) in ANY.items():
        shown = [Message("system", "Look."), Message("user", (TextPart("Which?"), ImagePart(data)))]
        try:
            answer = model.generate(shown, output_type={"enum": [1, 22]}, max_tokens=10)
        except ModelError as error:
            assert reason is not None and reason in error.message, name
            assert error.message.startswith("the image in message 1 (of the user)"), name
        else:
            assert reason is None or name == "a thread", name  # some processors read it
            assert json.loads(answer.text) in (1, 22)
            read += 1
    assert read >= 11


def test_calls_are_valid_whatever_the_picture(load: Load) -> None:
    """Calls of requests with pictures of any kind are valid, in a batch that shares passes, in whose pieces an image
    is cut; and a conversation may have a hundred images."""
    model = load("qwen2_5_vl")

    def rate(kind: Literal["receipt", "form"], total: int) -> str:
        """Rate it."""
        return kind

    files = [data for data, reason in ANY.values() if reason is None]
    requests = [[Message("user", (TextPart("Rate "), ImagePart(file)))] for file in files]
    for answer in model.generate_batch(requests, tools=[rate], tool_choice="required", max_tokens=100):
        for call in answer.tool_calls:
            assert call.error is None and call.arguments["kind"] in ("receipt", "form")
    many = [Message("user", (*(ImagePart(png(9, 9, seed)) for seed in range(100)), TextPart("Count.")))]
    assert json.loads(model.generate(many, output_type={"enum": [1, 22]}, max_tokens=10).text) in (1, 22)


def test_a_model_without_a_template_is_read_as_text(tmp_path: Path) -> None:
    """Only a chat template has places for images: without one, an image is an error, and not left out."""
    folder = write_vision(tmp_path, "llava")
    (folder / "chat_template.jinja").unlink()
    model = load_model(f"hf:{folder}")
    assert not model.capabilities.images and model.generate("Hi", max_tokens=3).usage.completion_tokens == 3
    with pytest.raises(ModelError, match=r"cannot see the image .* no chat template"):
        model.generate(asked(1))


def with_image(message: Message, data: bytes) -> Message:
    """A message with one image."""
    return replace(message, content=(ImagePart(data),))


def test_images_of_results_follow_in_a_turn_of_the_user(load: Load) -> None:
    """A template has no image in a result: the model sees it in the user's turn behind the results; errors count the
    messages as the caller does."""
    shown = [
        Message("user", "Look."),
        Message("assistant", "", tool_calls=(ToolCall("a", "shoot", {}),)),
        Message("tool", (TextPart("done"), ImagePart(PICTURES[0])), tool_call_id="a", name="shoot"),
    ]
    told = images_after_results(shown)
    assert (told[2].content, told[3].role) == ("done", "user")
    assert images_after_results([*shown, Message("user", "And?")])[3].text == "The image of shoot:And?"

    bad = [*shown, Message("assistant", "I see."), Message("user", (ImagePart(b"x"),))]
    for messages, place in ((bad, "message 4 .of the user"), ([*shown[:2], with_image(shown[2], b"x")], "message 2 ")):
        with pytest.raises(ModelError, match=f"the image in {place}"):
            load("llava").generate(messages)

    def shoot() -> str:
        """Take a picture."""
        return ""

    answer = load("llava").generate(shown, tools=[shoot], max_tokens=20)
    assert answer.usage.prompt_tokens > 4


def test_the_images_of_a_conversation_have_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond a number of pixels of all of them together, or of bytes of a file, an error names the message."""
    several = [Message("user", (ImagePart(png(9, 9)),)) for _ in range(4)]
    monkeypatch.setattr(images, "MOST_OF_ALL", 3 * 81)
    assert len(opened_images(several[:3])) == 3
    with pytest.raises(ModelError, match=r"with the image in message 3 .* more than 243 pixels together"):
        opened_images(several)
    monkeypatch.setattr(images, "LARGEST_FILE", 80)
    with pytest.raises(ModelError, match=r"the image in message 0 .* bytes"):
        opened_images(several)


@pytest.mark.skipif(sys.platform != "linux", reason="needs a limit of memory")
def test_no_file_takes_more_memory_than_its_pixels(tmp_path: Path) -> None:
    """Files that say a small size and have a large one, or the other way round, are read or refused in 300 MB."""
    inner = io.BytesIO()
    Image.new("1", (9_000, 9_000)).save(inner, "PNG")
    icon = struct.pack("<HHH", 0, 1, 1) + struct.pack("<BBBBHHII", 16, 16, 0, 0, 1, 32, len(inner.getvalue()), 22)
    (tmp_path / "icon").write_bytes(icon + inner.getvalue())
    for number, (data, _) in enumerate(ANY.values()):
        (tmp_path / str(number)).write_bytes(data)
    program = """
import resource, sys
from pathlib import Path
from toolgrammar.core import ImagePart, Message, ModelError
from toolgrammar.core.models import images
from toolgrammar.core.models.images import opened_images
opened_images([Message("user", (ImagePart(Path(sys.argv[1], "0").read_bytes()),))])
held = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (held + 300 * 2**20,) * 2)
for path in sorted(Path(sys.argv[1]).iterdir()):
    try:
        opened_images([Message("user", (ImagePart(path.read_bytes()),))])
    except ModelError as error:
        print(path.name, error.message)
"""
    run = subprocess.run([sys.executable, "-c", program, str(tmp_path)], capture_output=True, text=True, check=True)
    refused = run.stdout.splitlines()
    assert len(refused) == 1 + sum(reason is not None for name, (_, reason) in ANY.items() if name != "a thread")
    assert "icon the image in message 0 (of the user) cannot be read: its format is not known" in refused


def test_nothing_is_fetched_unless_the_caller_does() -> None:
    """An address is refused; with a function of the caller's, the image is what it returns."""
    far = [Message("user", (ImagePart(url="http://127.0.0.1:9/a.png"),))]
    with pytest.raises(ModelError, match=r"message 0 .* addresses are not fetched"):
        opened_images(far)
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
    """EXIF's orientation is applied, what is transparent is white, and 16 bits a pixel become 8."""
    assert opened_images([Message("user", (ImagePart(deep()),))])[0].picture.getpixel((0, 0)) == (128,) * 3
    assert opened_images([Message("user", (ImagePart(turned()),))])[0].picture.size == (10, 20)
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
    for bad in (b"no PDF", 3):
        with pytest.raises(ModelError, match="the PDF cannot be read"):
            ImagePart.pages(bad)
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
