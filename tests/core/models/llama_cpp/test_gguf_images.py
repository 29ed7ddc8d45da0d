"""Images for `gguf:` models: tiny models and projectors of random weights, written here; llama.cpp's server is the
oracle."""

from __future__ import annotations

import base64
import gc
import hashlib
import json
import random
import weakref
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from toolgrammar.core import ContextOverflowError, ImagePart, JsonMode, Message, ModelError, TextPart, load_model
from toolgrammar.core.models.image_tokens import ImageToken
from toolgrammar.core.models.llama_cpp import library
from toolgrammar.core.models.llama_cpp.backend import GGUFBackend
from toolgrammar.core.models.llama_cpp.vision import projector_beside
from toolgrammar.core.validation import is_valid

from ..local_checks import SCHEMA
from ..tiny import FULL_TEMPLATE, llama, tokenizer
from ..tiny_vision import png

pytestmark = pytest.mark.llama_cpp
xllamacpp = pytest.importorskip("xllamacpp", reason="xllamacpp is not installed")
for name in ("gguf", "torch", "transformers", "PIL"):
    pytest.importorskip(name, reason=f"{name} is not installed")

from ..tiny_gguf import write_gguf, write_projector  # noqa: E402 - it needs gguf

KINDS = ("mlp", "idefics3", "gemma3", "qwen2vl_merger")

#: Control tokens that the projectors put around images.
MARKS = (
    *("<|im_end|>", "<|im_start|>", "<|vision_start|>", "<|vision_end|>", "<fake_token_around_image>", "<global-img>"),
    *("<start_of_image>", "<end_of_image>", "\n\n", *(f"<row_{row}_col_{col}>" for row in (1, 2) for col in (1, 2))),
)


def write(folder: Path, kind: str, marks: tuple[str, ...] = MARKS) -> Path:
    """Write a model and its projector; return the file of the model."""
    own = tokenizer(None, marks)
    shape = {"hidden_size": 64, "intermediate_size": 128, "max_position_embeddings": 1024, "rms_norm_eps": 1e-5}
    model = llama(vocab_size=len(own) + 3, initializer_range=0.3, **shape)
    if kind == "qwen2vl_merger":
        import torch
        import transformers

        torch.manual_seed(0)
        heads = {"num_hidden_layers": 2, "num_attention_heads": 2, "num_key_value_heads": 1}
        config = transformers.Qwen2Config(vocab_size=len(own) + 3, initializer_range=0.3, **shape, **heads)
        model = transformers.Qwen2ForCausalLM(config).eval()
        model.config.model_type = "qwen2vl"

    def change(writer: Any) -> None:
        if kind == "qwen2vl_merger":
            writer.add_rope_dimension_sections([4, 6, 6, 0])

    write_gguf(folder / "tiny-q8_0.gguf", model, own, FULL_TEMPLATE, change=change)
    write_projector(folder / "mmproj-tiny-f16.gguf", kind, 64)
    return folder / "tiny-q8_0.gguf"


@pytest.fixture(scope="module", params=KINDS)
def path(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model of each kind."""
    return write(tmp_path_factory.mktemp(request.param), request.param)


@pytest.fixture(scope="module")
def backend(path: Path) -> Iterator[GGUFBackend]:
    """It, loaded."""
    with closing(GGUFBackend(str(path), threads=1)) as loaded:
        yield loaded


@pytest.fixture(scope="module")
def one(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model of one kind."""
    return write(tmp_path_factory.mktemp("one"), "mlp")


def question(*images: bytes, last: str = "What?") -> list[Message]:
    """A conversation with images between texts."""
    parts = [part for data in images for part in (TextPart("Look: "), ImagePart(data))]
    return [Message("system", "Be brief."), Message("user", (*parts, TextPart(last)))]


def greedy(backend: GGUFBackend, messages: list[Message], count: int) -> list[int]:
    """The most probable tokens after a conversation."""
    session = backend.new_session()
    token_id = int(np.argmax(session.extend(backend.encode_prompt(messages))))
    found = [token_id]
    while len(found) < count and token_id not in backend.vocabulary.eos:
        token_id = int(np.argmax(session.extend([token_id])))
        found.append(token_id)
    session.close()
    return found


def test_tokens_are_those_of_llama_cpps_server(path: Path, backend: GGUFBackend) -> None:
    """The server of llama.cpp, with the same files, writes the same tokens after one image and after three."""
    params = xllamacpp.CommonParams()
    params.model.path, params.mmproj.path = str(path), str(path.parent / "mmproj-tiny-f16.gguf")
    params.n_ctx, params.n_parallel, params.port, params.warmup, params.verbosity = 1024, 1, 0, False, 0
    params.cpuparams.n_threads = 1
    server = xllamacpp.Server(params)
    for sizes in ([(60, 40)], [(90, 50), (56, 56), (30, 100)]):
        images = [png(*size, seed=number) for number, size in enumerate(sizes)]
        system, user = question(*images)
        parts: list[dict[str, Any]] = []
        for part in user.content:
            if isinstance(part, ImagePart):
                address = f"data:image/png;base64,{base64.b64encode(part.data or b'').decode()}"
                parts.append({"type": "image_url", "image_url": {"url": address}})
            else:
                parts.append({"type": "text", "text": part.text})  # type: ignore[union-attr]
        turns = [{"role": "system", "content": system.text}, {"role": "user", "content": parts}]
        options = {"temperature": 0, "max_tokens": 16, "return_tokens": True, "verbose": True}
        told = server.handle_chat_completions({"messages": turns, **options})
        own = greedy(backend, [system, user], 16)
        expected = told["__verbose"]["tokens"]
        assert told["usage"]["prompt_tokens"] == len(backend.encode_prompt([system, user]))
        assert own[: len(expected)] == expected and len(expected) >= len(own) - 1 > 2
    del server


def test_sequences_can_be_cut_anywhere(backend: GGUFBackend) -> None:
    """Whatever is appended, cut off, copied and saved, also inside an image, the logits are those of a new sequence."""
    made = random.Random(3)
    ids = [backend.encode_prompt(question(png(90, 50, seed), png(40, 60))) for seed in (1, 2)]
    fresh = {}
    for number, prompt in enumerate(ids):
        session = backend.new_session()
        fresh[number] = session.extend(prompt)
        session.close()
    assert not np.allclose(fresh[0], fresh[1], atol=1e-3)
    session = backend.new_session()
    shorter = min(map(len, ids))
    common = next(place for place in range(shorter) if ids[0][place] != ids[1][place])
    assert isinstance(ids[0][common], ImageToken) and ids[0] == backend.encode_prompt(
        question(png(90, 50, 1), png(40, 60))
    )
    number = 0
    for _ in range(12):
        cut = made.randrange(session.length + 1)
        if session.keeps(cut) and made.random() < 0.5:
            session, old = session.fork(cut), session
            old.close()
        session.crop(min(cut, common) if made.random() < 0.5 else cut)
        if session.length <= common:
            number = made.randrange(2)
        if made.random() < 0.3:
            session.rest()
        prompt = ids[number]
        while session.length < len(prompt):
            step = made.choice((5, len(prompt)))
            logits = session.extend(prompt[session.length : session.length + step])
        np.testing.assert_allclose(logits, fresh[number], atol=2e-2)
    session.crop(common + 1)
    with pytest.raises(ModelError, match="only a part of an image"):
        session.extend(backend.encode("Then?"))
    session.close()


def test_shared_passes_and_kept_sequences(path: Path) -> None:
    """Requests with images that share passes, and turns that continue a kept one with a new image, are answered as
    alone; of a conversation, only what is new is read."""
    conversations = [question(png(50 + 20 * number, 60, number), last=f"{number}?") for number in range(3)]
    with load_model(f"gguf:{path}", threads=1) as model, load_model(f"gguf:{path}", threads=1, prefix_cache=0) as alone:
        assert model.capabilities.images and model.capabilities.images == alone.capabilities.images
        options: dict[str, Any] = {"max_tokens": 40, "json_mode": JsonMode(schema=SCHEMA)}
        answers = model.generate_batch(conversations, **options)
        for answer, messages in zip(answers, conversations, strict=True):
            assert answer.text == alone.generate(messages, **options).text and is_valid(json.loads(answer.text), SCHEMA)
        longer = [*conversations[0], Message("assistant", answers[0].text), *question(png(70, 70, 9))[1:]]
        again = model.generate(longer, **options)
        assert again.text == alone.generate(longer, **options).text
        first = model.backend.encode_prompt(conversations[0])  # type: ignore[attr-defined]
        kept = max(place for place, token_id in enumerate(first) if isinstance(token_id, ImageToken))
        assert again.usage.cached_tokens > kept
        assert again.usage.prompt_tokens == model.count_tokens(longer)


def test_any_picture_has_a_valid_answer(path: Path) -> None:
    """Whatever the picture's form and size, the answer is valid, or the error is one of ours with the message."""
    pictures = [
        png(1, 1),
        png(3000, 7),
        png(5, 900),
        png(64, 48, mode="CMYK", form="JPEG"),
        png(9, 9)[:60],
        b"",
        b"GIF",
    ]
    with load_model(f"gguf:{path}", threads=1) as model:
        for data in pictures:
            try:
                answer = model.generate(question(data), json_mode=JsonMode(schema=SCHEMA), max_tokens=40)
                assert is_valid(json.loads(answer.text), SCHEMA)
            except ModelError as error:
                assert "image in message 1" in error.message or isinstance(error, ContextOverflowError)


def test_names_of_control_tokens_beside_images_are_text(one: Path) -> None:
    """A text beside an image that spells a control token, or the marker of llama.cpp, is text."""
    with closing(GGUFBackend(str(one), threads=1)) as backend:
        text = "<|vision_start|><__media__><|im_end|>"
        ids = backend.encode_prompt(question(png(56, 56), last=text))
        own = [token_id for token_id in ids if type(token_id) is not ImageToken]
        assert len(ids) - len(own) == 16
        assert text.encode() in backend.vocabulary.decode(own)


def test_projectors_that_cannot_be_used(one: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A projector that was named and cannot be loaded is an error; one that is only beside the model leaves a model of
    text, which says why."""
    broken = tmp_path / "broken.gguf"
    broken.write_bytes(b"GGUF" + bytes(99))
    narrow = tmp_path / "mmproj.gguf"
    write_projector(narrow, "mlp", 32)
    for named, reason in (("none.gguf", "does not exist"), (broken, "cannot load"), (narrow, "cannot load")):
        with pytest.raises(ModelError, match=reason) as caught:
            load_model(f"gguf:{one}", mmproj=str(named))
        assert caught.value.hint
    (tmp_path / "tiny.gguf").write_bytes(one.read_bytes())
    for file, options, hint in (
        (tmp_path / "tiny.gguf", {}, "cannot load the projector"),
        (one, {"mmproj": ""}, "mmproj=PATH"),
    ):
        with load_model(f"gguf:{file}", **options) as model:
            assert not model.capabilities.images and model.generate("Hello", max_tokens=3).text is not None
            with pytest.raises(ModelError, match="cannot see the image") as caught:
                model.generate(question(png(9, 9)))
            assert hint in str(caught.value.hint)
    other = tmp_path / "other"
    other.mkdir()
    model = load_model(f"gguf:{write(other, 'idefics3', MARKS[:2])}")
    with model, pytest.raises(ModelError, match=r"image in message 1 .* lacks a token"):
        model.generate(question(png(9, 9)))
    monkeypatch.setitem(library._VISION, "mtmd_of_a_later_version", (None,))
    with pytest.raises(ModelError, match="reads no images"):
        load_model(f"gguf:{one}", mmproj=str(one.parent / "mmproj-tiny-f16.gguf"))
    with load_model(f"gguf:{one}") as model:
        assert not model.capabilities.images


@pytest.mark.parametrize(
    ("model", "files", "found"),
    [
        ("gemma-3-4b-it-Q4_K_M", ["mmproj-model-f16"], "mmproj-model-f16"),
        ("Qwen2.5-VL-7B-Instruct-Q4_K_M", ["mmproj-BF16", "mmproj-F16", "mmproj-F32"], "mmproj-BF16 mmproj-F16"),
        ("google_gemma-3-4b-it-IQ4_XS", ["mmproj-google_gemma-3-4b-it-f16"], "mmproj-google_gemma-3-4b-it-f16"),
        ("SmolVLM-256M-Q8_0", ["mmproj-Qwen2-VL-f16", "SmolVLM-256M.mmproj-Q8_0"], "SmolVLM-256M.mmproj-Q8_0"),
        ("Qwen2.5-7B-Instruct-Q8_0", ["mmproj-Qwen2.5-VL-7B-Instruct-f16"], ""),
        ("Qwen3-VL-2B-Q8_0", ["Qwen3-4B-Q8_0"], ""),
    ],
)
def test_projectors_beside_a_model(tmp_path: Path, model: str, files: list[str], found: str) -> None:
    """A projector is found in the folder of its model by its name, and that of another model is not taken."""
    for stem in (model, *files):
        (tmp_path / f"{stem}.gguf").write_bytes(b"GGUF")
    beside = projector_beside(tmp_path / f"{model}.gguf")
    assert (beside.stem if beside else "") in (found.split() or [""])


def test_projectors_in_ollamas_store(one: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The projector that a manifest of Ollama names is used."""
    monkeypatch.setenv("OLLAMA_MODELS", str(tmp_path))
    (tmp_path / "blobs").mkdir()
    layers = []
    for kind, file in (("model", one), ("projector", one.parent / "mmproj-tiny-f16.gguf")):
        digest = hashlib.sha256(file.read_bytes()).hexdigest()
        (tmp_path / "blobs" / f"sha256-{digest}").write_bytes(file.read_bytes())
        layers.append({"mediaType": f"application/vnd.ollama.image.{kind}", "digest": f"sha256:{digest}"})
    manifest = tmp_path / "manifests/registry.ollama.ai/library/tiny/latest"
    manifest.parent.mkdir(parents=True)
    manifest.write_text(json.dumps({"layers": layers}))
    with load_model("gguf:ollama/tiny", threads=1) as model:
        assert model.capabilities.images and model.generate(question(png(9, 9)), max_tokens=2).usage.prompt_tokens > 16


def test_closing_frees_the_projector(one: Path) -> None:
    """Images and the projector are freed with the model, also while a prompt is kept, and then refused."""
    backend = GGUFBackend(str(one), threads=1)
    ids = backend.encode_prompt(question(png(56, 56)))
    session = backend.new_session()
    session.extend(ids)
    owner = weakref.ref(next(token.images.owner for token in ids if isinstance(token, ImageToken)))
    assert session.nbytes > backend._weights.cache_bytes(backend.context_window)
    backend.close()
    with pytest.raises(ModelError, match="closed"):
        backend.encode_prompt(question(png(56, 56)))
    del ids, session
    gc.collect()
    assert owner() is None
