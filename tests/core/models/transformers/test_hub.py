"""A name on the hub, where the hub cannot be reached."""

from __future__ import annotations

import socket
import urllib.request
from pathlib import Path

import pytest

from toolgrammar.core import ModelError, load_model

hub = pytest.importorskip("huggingface_hub", reason="huggingface-hub is not installed")
pytest.importorskip("transformers", reason="transformers is not installed")


@pytest.fixture(autouse=True)
def no_hub(monkeypatch: pytest.MonkeyPatch) -> None:
    """The hub is at a port of this machine where nothing listens."""
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        monkeypatch.setenv("HF_ENDPOINT", f"http://127.0.0.1:{closed.getsockname()[1]}")
    monkeypatch.setattr(hub.constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr("toolgrammar.core.models.transformers.hub.getproxies", dict)


def test_an_unreachable_hub_is_told_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """One connection is tried, and transformers is not asked, which would try for minutes."""
    import transformers

    for kind in (transformers.AutoConfig, transformers.AutoTokenizer):
        monkeypatch.setattr(kind, "from_pretrained", lambda *_, **__: pytest.fail("it was asked"))
    with pytest.raises(ModelError, match=r"is not on this machine, and 127\.0\.0\.1 cannot be reached") as caught:
        load_model("hf:nobody/no-such-model")
    assert "hf:PATH" in str(caught.value.hint)


def test_a_model_of_the_cache_is_loaded_without_the_hub(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the model in the hub's cache, transformers is told to stay on this machine."""
    import transformers

    asked = []

    def from_pretrained(name: str, **options: object) -> None:
        asked.append(options)
        raise OSError("not in this test")

    monkeypatch.setattr(hub, "try_to_load_from_cache", lambda *_, **__: "/somewhere/config.json")
    monkeypatch.setattr(transformers.AutoConfig, "from_pretrained", from_pretrained)
    with pytest.raises(ModelError, match="not in this test"):
        load_model("hf:nobody/no-such-model")
    assert asked == [{"trust_remote_code": False, "local_files_only": True}]


@pytest.mark.parametrize("case", ["folder", "offline", "proxy", "listens"])
def test_the_hub_is_asked_only_where_it_matters(case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder, offline mode, a proxy and a hub that answers leave the loading to transformers."""
    from toolgrammar.core.models.transformers.hub import is_offline

    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        if case == "offline":
            monkeypatch.setattr(hub.constants, "HF_HUB_OFFLINE", True)
        elif case == "proxy":
            monkeypatch.setenv("https_proxy", "http://127.0.0.1:9")
            monkeypatch.setattr("toolgrammar.core.models.transformers.hub.getproxies", urllib.request.getproxies)
        elif case == "listens":
            monkeypatch.setenv("HF_ENDPOINT", f"http://127.0.0.1:{listening.getsockname()[1]}")
        assert is_offline(str(tmp_path) if case == "folder" else "nobody/no-such-model") is False
