"""Registration: which versions of vLLM are taken, and what is said of others."""

from __future__ import annotations

from importlib.metadata import entry_points

import pytest

from toolgrammar.adapters.vllm.plugin import SUPPORTED, require_supported
from toolgrammar.core.errors import ModelError


@pytest.mark.parametrize("version", ["0.32.0", "0.32.1+cpu", "0.33.0", "0.33.0rc1"])
def test_versions_that_are_taken(version: str) -> None:
    """Those whose interfaces were read and run."""
    require_supported(version)


@pytest.mark.parametrize("version", ["0.31.9", "0.34.0", "1.0.0", "dev"])
def test_other_versions_are_refused_by_name(version: str) -> None:
    """The message names the range, what was found, and the way out."""
    with pytest.raises(ModelError, match=r">=0\.32,<0\.34") as caught:
        require_supported(version)
    assert version in str(caught.value) and "VLLM_PLUGINS" in str(caught.value)
    assert SUPPORTED[0] < SUPPORTED[1]


def test_the_entry_point_is_the_function() -> None:
    """vLLM finds the plug-in by its entry point."""
    found = [point for point in entry_points(group="vllm.general_plugins") if point.name == "toolgrammar"]
    if not found:
        pytest.skip("this environment's metadata of toolgrammar is older than the entry point")
    assert found[0].value == "toolgrammar.adapters.vllm:register"
