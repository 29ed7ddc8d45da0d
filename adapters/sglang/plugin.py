"""Registration in SGLang's processes: which version this is made for, and the name of the backend."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version
from typing import Any

from toolgrammar.core.basics import logger_of
from toolgrammar.core.errors import MissingDependencyError, ModelError

_LOG = logger_of("sglang")

#: The name of the backend: ``--grammar-backend toolgrammar``.
NAME = "toolgrammar"

#: The versions of SGLang whose interface was read and run: from the first, below the second.
SUPPORTED = ((0, 5, 23), (0, 6, 0))


def register() -> None:
    """Register the backend in this process; done once, however often it is called.

    SGLang calls it in every process, before its command line is read.

    Raises:
        MissingDependencyError: SGLang is not installed.
        ModelError: its version is not one of `SUPPORTED`.
    """
    require_supported(_installed_version())
    from sglang.srt.arg_groups import choices
    from sglang.srt.constrained.base_grammar_backend import register_grammar_backend

    if NAME not in choices.GRAMMAR_BACKEND_CHOICES:
        choices.add_grammar_backend_choices([NAME])
    register_grammar_backend(NAME, _create)
    _LOG.info("toolgrammar is registered as a grammar backend of SGLang")


def _create(server_args: Any, tokenizer: Any, vocab_size: int, eos_token_ids: Any) -> Any:
    """Return the backend of a scheduler; called by SGLang."""
    from .backend import create_backend

    return create_backend(server_args, tokenizer, vocab_size, eos_token_ids)


def _installed_version() -> str:
    """Return the version of SGLang that is installed.

    Raises:
        MissingDependencyError: none is.
    """
    try:
        return version("sglang")
    except PackageNotFoundError:
        raise MissingDependencyError("SGLang is not installed", hint="pip install sglang") from None


def require_supported(found: str) -> None:
    """Check a version of SGLang.

    Raises:
        ModelError: it is not one of `SUPPORTED`.
    """
    numbers = tuple(int(part) if part.isdigit() else 0 for part in found.split("+")[0].split(".")[:3])
    least, below = SUPPORTED
    if not least <= numbers < below:
        first, last = (".".join(map(str, bound)) for bound in SUPPORTED)
        raise ModelError(
            f"this toolgrammar supports SGLang >={first},<{last}; found {found}",
            hint="install one of these, or another toolgrammar; SGLANG_PLUGINS= disables this plug-in",
        )
