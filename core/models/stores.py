"""Models that other programs keep on this machine: those of Ollama, LM Studio and the cache of Hugging Face.

Only files of these programs are read; nothing is written, fetched or asked of a server. Ollama keeps a manifest for
each model (``manifests/HOST/NAMESPACE/NAME/TAG``, JSON) and the files that it names in ``blobs/``, by their SHA-256.
LM Studio keeps GGUF files as ``models/PUBLISHER/REPOSITORY/FILE.gguf``.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from difflib import get_close_matches
from os.path import isdir, isfile  # unlike those of `Path`, they are False for what must not be read
from pathlib import Path

from ..errors import ModelError
from .published import PUBLISHED

_HOST = "registry.ollama.ai"
_MODEL = "application/vnd.ollama.image.model"
_TEMPLATE = "application/vnd.ollama.image.template"
_PROJECTOR = "application/vnd.ollama.image.projector"

#: Folders in which Ollama's service keeps models.
_SERVICES = (Path("/usr/share/ollama/.ollama/models"), Path("/var/lib/ollama"))

#: Maximum size of a manifest or template, in bytes.
_MAX_TEXT = 1 << 20

_DIGEST = re.compile(r"sha256[:-]([0-9a-f]{64})")

#: File names of a model in several files: only the first one is loaded.
_PART = re.compile(r"-(\d{5})-of-\d{5}\.gguf$", re.IGNORECASE)


@dataclass(frozen=True)
class StoredModel:
    """A model in a store of this machine.

    Attributes:
        address: its address, for `load_model`.
        path: its file, or its folder.
        size: size of the file in bytes; of a folder, the sum of its files'.
        ollama_template: the template of its conversations in Ollama's notation (Go's ``text/template``); empty if there
            is none.
        projector: the file by which it reads images, in Ollama's store; None: there is none.
    """

    address: str
    path: Path
    size: int
    ollama_template: str = ""
    projector: Path | None = None


def stored_models() -> list[StoredModel]:
    """Return the models on this machine that an address of ours loads, store by store. Unreadable ones are left out."""
    return [*_published(), *_hugging_face(), *_of_ollama(), *_of_lm_studio()]


def resolve(address: str) -> StoredModel | None:
    """Return the model of ``ollama/NAME[:TAG]`` or ``lmstudio/NAME``; None for any other address.

    ``NAME`` of Ollama is as in its commands: ``qwen3``, ``qwen3:0.6b``, ``user/model``, ``hf.co/user/model:Q4_K_M``.
    That of LM Studio is ``PUBLISHER/REPOSITORY/FILE.gguf``, or any end or part of that path which names one file.

    Raises:
        ModelError: there is no such model, several, or it is no GGUF file.
    """
    store, _, name = address.partition("/")
    if store not in _STORES or Path(address).is_file():
        return None
    return _STORES[store](name)


# -- Ollama --------------------------------------------------------------------------------------------------------


def _ollama_roots() -> list[Path]:
    """Return the folders in which Ollama may keep models: ``OLLAMA_MODELS``, or the user's and its service's."""
    told = os.environ.get("OLLAMA_MODELS")
    return [Path(told)] if told else [Path("~/.ollama/models").expanduser(), *_SERVICES]


def _ollama(name: str) -> StoredModel:
    """Return a model of Ollama by its name, ``NAME[:TAG]`` as Ollama shows it. Raise ModelError, with similar names, if
    it is not on this machine. The parts of the name are checked, so that it leads to no file outside of the store."""
    roots = [root for root in _ollama_roots() if isdir(root / "manifests")]
    if not roots:
        raise ModelError(
            f"Ollama has no models in {' or '.join(str(root) for root in _ollama_roots())}",
            hint="set OLLAMA_MODELS to its folder of models, or fetch one by 'ollama pull'",
        )
    path, _, tag = name.partition(":")
    parts = path.split("/")
    if not all(re.fullmatch(r"[\w.-]+", part) and part.strip(".") for part in (*parts, tag or "latest")):
        raise ModelError(f"{name!r} is no name of a model of Ollama", hint="gguf:ollama/NAME or gguf:ollama/NAME:TAG")
    if len(parts) == 1:
        parts = ["library", *parts]
    if len(parts) == 2:
        parts = [_HOST, *parts]
    for root in roots:
        manifest = root.joinpath("manifests", *parts, tag or "latest")
        if isfile(manifest):
            return _of_manifest(root, manifest)
    known = [stored.address.partition("/")[2] for stored in _of_ollama()]
    raise ModelError(f"Ollama has no model {name!r} on this machine", hint=_hint(name, known, f"ollama pull {name}"))


def _of_manifest(root: Path, manifest: Path) -> StoredModel:
    """Return the model of one of Ollama's manifests. Raise ModelError if its weights are missing or no GGUF file."""
    address = _ollama_address(root, manifest)
    layers = _layers(manifest)
    name = address.partition("/")[2]
    if not layers or _MODEL not in layers:
        raise ModelError(
            f"Ollama's model {name!r} has no GGUF file: it runs elsewhere, or in another form",
            hint="choose a model that Ollama runs from a GGUF file",
        )
    path = _blob(root, layers[_MODEL])
    if path is None:
        raise ModelError(f"the file of Ollama's model {name!r} is missing", hint=f"ollama pull {name}")
    with open(path, "rb") as file:
        if file.read(4) != b"GGUF":
            raise ModelError(f"Ollama's model {name!r} is no GGUF file", hint="choose one in that form")
    template = _blob(root, layers.get(_TEMPLATE, ""))
    text = "" if template is None else _text(template)
    projector = _blob(root, layers.get(_PROJECTOR, ""))
    return StoredModel(address, path, path.stat().st_size, text or "", projector)


def _layers(manifest: Path) -> dict[str, str] | None:
    """Return the digests of a manifest's files by their media types; None if it cannot be read."""
    try:
        layers = json.loads(_text(manifest) or "")["layers"]
        # Of several files of one type the first.
        return {str(layer["mediaType"]): str(layer["digest"]) for layer in reversed(layers)}
    except (ValueError, LookupError, TypeError, RecursionError):
        return None


def _blob(root: Path, digest: str) -> Path | None:
    """Return the file of a digest; None if there is none. The digest is checked, so that it leads nowhere else."""
    found = _DIGEST.fullmatch(digest)
    if found is None:
        return None
    for name in (f"sha256-{found[1]}", f"sha256:{found[1]}"):
        if isfile(root / "blobs" / name):
            return root / "blobs" / name
    return None


def _ollama_address(root: Path, manifest: Path) -> str:
    """Return the address of the model of a manifest, as short as Ollama shows it."""
    *parts, tag = manifest.relative_to(root / "manifests").parts
    if parts[0] == _HOST:
        parts = parts[2:] if parts[1] == "library" else parts[1:]
    return f"gguf:ollama/{'/'.join(parts)}:{tag}"


def _of_ollama() -> Iterator[StoredModel]:
    for root in _ollama_roots():
        for manifest in _files(root / "manifests", "*/*/*/*"):
            try:
                yield _of_manifest(root, manifest)
            except (ModelError, OSError):
                continue


# -- LM Studio -----------------------------------------------------------------------------------------------------


def _lm_studio_roots() -> list[Path]:
    """Return the folders in which LM Studio may keep models: that of its home, which can be moved, and older ones."""
    pointer = _text(Path("~/.lmstudio-home-pointer").expanduser())
    homes = [pointer.strip()] if pointer and pointer.strip() else []
    homes += ["~/.lmstudio", "~/.cache/lm-studio"]
    return list(dict.fromkeys(Path(home).expanduser() / "models" for home in homes))


def _lm_studio(name: str) -> StoredModel:
    """Return a model of LM Studio by its name: the last parts of its address, with or without ``.gguf``; if no model
    has this name, any part of the address. Raise ModelError if several fit, or none.

    ``"qwen-q4"`` is ``lmstudio/acme/qwen/qwen-q4.gguf``, and so is ``"acme"`` if this is the only model with it.
    """
    known = list(_of_lm_studio())
    if not known:
        raise ModelError(
            f"LM Studio has no models in {' or '.join(str(root) for root in _lm_studio_roots())}",
            hint="fetch one there, or give its file as gguf:PATH",
        )
    wanted = name.lower().strip("/")
    paths = [(stored, stored.address.partition("/")[2].lower()) for stored in known]
    named = [stored for stored, path in paths if f"/{path}".endswith((f"/{wanted}", f"/{wanted}.gguf"))]
    found = named or [stored for stored, path in paths if wanted and wanted in path]
    if len(found) == 1:
        return found[0]
    if found:
        some = ", ".join(stored.address for stored in found[:5])
        raise ModelError(f"{name!r} names {len(found)} models of LM Studio", hint=f"one of {some}")
    raise ModelError(
        f"LM Studio has no model {name!r} on this machine",
        hint=_hint(name, [stored.address.partition("/")[2] for stored in known], "fetch it in LM Studio"),
    )


def _of_lm_studio() -> Iterator[StoredModel]:
    """Yield the models of LM Studio; of a model in several files only the first, and no files of image encoders
    (``mmproj``)."""
    for root in _lm_studio_roots():
        for path in _files(root, "*/*/*.gguf"):
            part = _PART.search(path.name)
            if path.name.lower().startswith("mmproj") or (part is not None and int(part[1]) != 1):
                continue
            yield StoredModel(f"gguf:lmstudio/{path.relative_to(root).as_posix()}", path, path.stat().st_size)


# -- the other stores ----------------------------------------------------------------------------------------------


def _published() -> Iterator[StoredModel]:
    for name, model in PUBLISHED.items():
        path = model.find()
        if path is not None:
            yield StoredModel(name, path, model.size)


def _hugging_face() -> Iterator[StoredModel]:
    """Yield the models of the Hugging Face cache: folders of ONNX GenAI, and repositories with a ``config.json``."""
    home = Path(os.environ.get("HF_HOME") or Path("~/.cache/huggingface").expanduser())
    hub = Path(os.environ.get("HF_HUB_CACHE") or home / "hub")
    for path in sorted(hub.glob("models--*--*")):
        name = path.name.removeprefix("models--").replace("--", "/", 1)
        for file in _files(path, "snapshots/*/**/genai_config.json"):
            yield StoredModel(
                f"onnx:{file.parent}", file.parent, sum(each.stat().st_size for each in _files(file.parent, "*"))
            )
        configs = _files(path, "snapshots/*/config.json")
        if configs:
            # Weights that mlx-lm has quantised; transformers does not read them.
            scheme = "mlx" if '"quantization":' in (_text(configs[0]) or "") else "hf"
            yield StoredModel(f"{scheme}:{name}", path, sum(file.stat().st_size for file in _files(path, "blobs/*")))


# -- files ---------------------------------------------------------------------------------------------------------


def _hint(name: str, known: list[str], how_to_fetch: str) -> str:
    """Return the hint for a name that is not known: similar names, and how to get the model."""
    near = get_close_matches(name.lower(), known, 3, 0.4) or known[:3]
    return f"known ones: {', '.join(near)}; or: {how_to_fetch}" if near else how_to_fetch


def _files(folder: Path, pattern: str) -> list[Path]:
    """Return the files of a folder that match a pattern; none if it cannot be read."""
    try:
        return sorted(path for path in folder.glob(pattern) if path.is_file())
    except OSError:
        return []


def _text(path: Path) -> str | None:
    """Return the text of a small file; None if it is not there, too large or not readable."""
    try:
        if path.stat().st_size > _MAX_TEXT:
            return None
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None


#: By a control token that the template of a family writes: that family's template in Jinja, without tools (they are
#: described in the system turn). For files without a template of their own.
_FAMILIES = {
    "<|start_header_id|>": "{{ bos_token }}{% for message in messages %}<|start_header_id|>{{ message.role }}"
    "<|end_header_id|>\n\n{{ message.content }}<|eot_id|>{% endfor %}<|start_header_id|>assistant<|end_header_id|>\n\n",
    "<start_of_turn>": "{{ bos_token }}{% for message in messages %}<start_of_turn>"
    "{{ 'model' if message.role == 'assistant' else 'user' }}\n{{ message.content }}<end_of_turn>\n{% endfor %}"
    "<start_of_turn>model\n",
    "<|im_start|>": "{% for message in messages %}<|im_start|>{{ message.role }}\n{{ message.content }}<|im_end|>\n"
    "{% endfor %}<|im_start|>assistant\n",
    "<|end|>": "{% for message in messages %}<|{{ message.role }}|>\n{{ message.content }}<|end|>\n{% endfor %}"
    "<|assistant|>\n",
    "[INST]": "{{ bos_token }}{% for message in messages %}{% if message.role == 'assistant' %} {{ message.content }}"
    "{{ eos_token }}{% else %}[INST] {{ message.content }} [/INST]{% endif %}{% endfor %}",
}


def family_template(ollama_template: str) -> str | None:
    """Return a chat template in Jinja for a model whose file has none, by the control tokens of Ollama's; None if its
    family is not known."""
    return next((template for mark, template in _FAMILIES.items() if mark in ollama_template), None)


_STORES: dict[str, Callable[[str], StoredModel]] = {"ollama": _ollama, "lmstudio": _lm_studio}
