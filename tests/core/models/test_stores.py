"""Stores of other programs: Ollama's manifests and LM Studio's folders, written here as these programs write them."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

from toolgrammar.core import ModelError
from toolgrammar.core.models import published, stores
from toolgrammar.core.models.stores import family_template, resolve, stored_models

GGUF = b"GGUF" + bytes(60)
GO = "{{ range .Messages }}<|start_header_id|>{{ .Role }}<|end_header_id|>{{ .Content }}<|eot_id|>{{ end }}"


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty home folder, with no store."""
    for name in ("HF_HOME", "HF_HUB_CACHE", "OLLAMA_MODELS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    monkeypatch.setattr(published.PublishedModel, "find", lambda model: None)
    monkeypatch.setattr(stores, "_SERVICES", ())
    return tmp_path


def put(root: Path, name: str, model: bytes | None = GGUF, template: str = "") -> Path:
    """Write a model into Ollama's store under its whole name; return the file of the model."""
    layers = []
    blobs = root / "blobs"
    blobs.mkdir(parents=True, exist_ok=True)
    for kind, data in (("model", model), ("template", template.encode())):
        if data:
            digest = hashlib.sha256(data).hexdigest()
            (blobs / f"sha256-{digest}").write_bytes(data)
            layers.append({"mediaType": f"application/vnd.ollama.image.{kind}", "digest": f"sha256:{digest}"})
    manifest = root / "manifests" / name
    manifest.parent.mkdir(parents=True, exist_ok=True)
    manifest.write_text(json.dumps({"schemaVersion": 2, "config": {}, "layers": layers}))
    return blobs / f"sha256-{hashlib.sha256(model or b'').hexdigest()}"


@pytest.mark.parametrize(
    ("stored", "name"),
    [
        ("registry.ollama.ai/library/qwen3/latest", "qwen3"),
        ("registry.ollama.ai/library/qwen3/0.6b", "qwen3:0.6b"),
        ("registry.ollama.ai/somebody/model/q4", "somebody/model:q4"),
        ("hf.co/somebody/Model-GGUF/Q4_K_M", "hf.co/somebody/Model-GGUF:Q4_K_M"),
    ],
)
def test_names_of_ollama(home: Path, stored: str, name: str) -> None:
    """A model is found under the name that Ollama's own commands take, and listed under its address."""
    file = put(home / ".ollama" / "models", stored, template=GO)
    found = resolve(f"ollama/{name}")
    assert found is not None and found.path == file and found.size == len(GGUF) and found.ollama_template == GO
    address = f"gguf:ollama/{name if ':' in name else name + ':latest'}"
    assert [(each.address, each.path) for each in stored_models()] == [(address, file)]


def test_a_folder_that_ollama_is_told(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """OLLAMA_MODELS is the folder, as for Ollama."""
    put(home / ".ollama" / "models", "registry.ollama.ai/library/other/latest")
    file = put(home / "elsewhere", "registry.ollama.ai/library/qwen3/latest")
    monkeypatch.setenv("OLLAMA_MODELS", str(home / "elsewhere"))
    found = resolve("ollama/qwen3")
    assert found is not None and found.path == file
    with pytest.raises(ModelError, match="no model 'other'"):
        resolve("ollama/other")


@pytest.mark.parametrize("name", ["", "..", "../../x", "a/../b", "a:b/c", "/etc/passwd", "a b", "x:..", "a/b/c/d/e"])
def test_names_that_lead_nowhere_else(home: Path, name: str) -> None:
    """A name never leaves the folder of manifests."""
    put(home / ".ollama" / "models", "registry.ollama.ai/library/qwen3/latest")
    with pytest.raises(ModelError):
        resolve(f"ollama/{name}")


def test_a_digest_leads_nowhere_else(home: Path) -> None:
    """The digest of a manifest is 64 hexadecimal digits, or the model has no file."""
    root = home / ".ollama" / "models"
    put(root, "registry.ollama.ai/library/qwen3/latest")
    layer = {"mediaType": "application/vnd.ollama.image.model", "digest": "sha256:../../secret"}
    (root / "secret").write_bytes(GGUF)
    (root / "manifests/registry.ollama.ai/library/qwen3/latest").write_text(json.dumps({"layers": [layer]}))
    with pytest.raises(ModelError, match="missing"):
        resolve("ollama/qwen3")
    assert stored_models() == []


@pytest.mark.parametrize("text", ["", "[]", "{}", "[" * 100_000, '{"layers": 3}', '{"layers": [{"digest": 1}]}'])
def test_manifests_that_say_nothing(home: Path, text: str) -> None:
    """A broken manifest, and that of a model that runs elsewhere, is an error of ours, and is not listed."""
    root = home / ".ollama" / "models"
    put(root, "registry.ollama.ai/library/qwen3/latest")
    (root / "manifests/registry.ollama.ai/library/qwen3/latest").write_text(text)
    with pytest.raises(ModelError, match="no GGUF file"):
        resolve("ollama/qwen3")
    assert stored_models() == []


def test_other_forms_are_refused(home: Path) -> None:
    """A file that is not GGUF is named as that."""
    put(home / ".ollama" / "models", "registry.ollama.ai/library/mlx/latest", model=b"safetensors")
    with pytest.raises(ModelError, match="no GGUF file"):
        resolve("ollama/mlx")


def test_errors_name_the_way_out(home: Path) -> None:
    """Without a store, the folder is named; with one, near names are."""
    with pytest.raises(ModelError, match="no models in") as none:
        resolve("ollama/qwen3")
    assert "OLLAMA_MODELS" in str(none.value)
    put(home / ".ollama" / "models", "registry.ollama.ai/library/qwen3/0.6b")
    with pytest.raises(ModelError) as near:
        resolve("ollama/qwen3")
    assert "qwen3:0.6b" in str(near.value) and "ollama pull qwen3" in str(near.value)
    with pytest.raises(ModelError, match="LM Studio has no models"):
        resolve("lmstudio/x")


def test_models_of_lm_studio(home: Path) -> None:
    """A file is found by its path, its end or a part that only it has; projectors and later parts are no models."""
    folder = home / ".lmstudio" / "models" / "publisher"
    for name in (
        "Qwen3-0.6B-GGUF/Qwen3-0.6B-Q4.gguf",
        "Qwen3-0.6B-GGUF/Qwen3-0.6B-Q8.gguf",
        "Big/B-00001-of-00002.gguf",
    ):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(GGUF)
    (folder / "Big/B-00002-of-00002.gguf").write_bytes(GGUF)
    (folder / "Big/mmproj-B.gguf").write_bytes(GGUF)
    listed = [each.address for each in stored_models()]
    assert listed == [
        "gguf:lmstudio/publisher/Big/B-00001-of-00002.gguf",
        "gguf:lmstudio/publisher/Qwen3-0.6B-GGUF/Qwen3-0.6B-Q4.gguf",
        "gguf:lmstudio/publisher/Qwen3-0.6B-GGUF/Qwen3-0.6B-Q8.gguf",
    ]
    for name in ("publisher/Qwen3-0.6B-GGUF/Qwen3-0.6B-Q4.gguf", "Qwen3-0.6B-Q4.gguf", "qwen3-0.6b-q4", "q4"):
        found = resolve(f"lmstudio/{name}")
        assert found is not None and found.path == folder / "Qwen3-0.6B-GGUF/Qwen3-0.6B-Q4.gguf"
    with pytest.raises(ModelError, match="names 2 models"):
        resolve("lmstudio/qwen3")
    with pytest.raises(ModelError, match="no model 'gemma'"):
        resolve("lmstudio/gemma")


def test_lm_studio_in_another_home(home: Path) -> None:
    """The file that names LM Studio's home is followed."""
    (home / ".lmstudio-home-pointer").write_text(str(home / "moved") + "\n")
    file = home / "moved" / "models" / "p" / "r" / "m.gguf"
    file.parent.mkdir(parents=True)
    file.write_bytes(GGUF)
    found = resolve("lmstudio/m")
    assert found is not None and found.path == file


def test_a_file_of_that_path_comes_first(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An address that is the path of a file is that file; other paths are no addresses of a store."""
    monkeypatch.chdir(home)
    (home / "ollama").mkdir()
    (home / "ollama" / "m.gguf").write_bytes(GGUF)
    assert resolve("ollama/m.gguf") is None and resolve("./model.gguf") is None and resolve("") is None


def test_templates_of_families() -> None:
    """The control tokens of Ollama's template name the family."""
    assert "<|eot_id|>" in (family_template(GO) or "")
    assert "<|im_end|>" in (family_template("<|im_start|>{{ .Role }}") or "")
    assert family_template("{{ .Prompt }}") is None


def test_folders_of_onnxruntime_genai(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The folders in a repository of the hub are models of their own, by their paths."""
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    folder = tmp_path / "models--microsoft--Phi-4-mini-instruct-onnx" / "snapshots" / "0f" / "cpu" / "int4"
    folder.mkdir(parents=True)
    (folder / "genai_config.json").write_text("{}", encoding="utf-8")
    (folder / "model.onnx").write_bytes(b"12345678")
    found = [each for each in stored_models() if each.address.startswith(("onnx:", "hf:"))]
    assert [(each.address, each.path, each.size) for each in found] == [(f"onnx:{folder}", folder, 10)]


def test_models_of_mlx(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Weights that mlx-lm has quantised are listed for mlx-lm, all others for transformers."""
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    for name, config in (("a--small-4bit", {"quantization": {"bits": 4}}), ("b--small", {"model_type": "llama"})):
        folder = tmp_path / f"models--{name}" / "snapshots" / "0f"
        folder.mkdir(parents=True)
        (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    found = [each.address for each in stored_models() if each.address.startswith(("mlx:", "hf:"))]
    assert found == ["mlx:a/small-4bit", "hf:b/small"]
