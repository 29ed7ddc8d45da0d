"""Conversations of three turns with random weights and real chat templates: what the model wrote is in its next prompt.

    python -m benchmarks formats/turns [--cache FOLDER] [--mistral CHECKOUT] [--only NAME] [--backends hf,gguf] [--keep]

For each template of ``templates.py`` a tiny Llama of random weights is saved with a byte-level tokenizer that has the
markers of the template as control tokens, as a folder of transformers (``hf:``) and as a GGUF file (``gguf:``). The
loaded model writes two turns of required calls and one of text, through the ordinary decoding loop. A template passes
if nothing raises, every call is valid, and each prompt holds the names, the arguments and the results of the turns
before it. ``--keep`` writes ``results/turns.json``.
"""

from __future__ import annotations

import re
import tempfile
from importlib import import_module
from pathlib import Path
from typing import Any

from benchmarks.formats.templates import CASES, Renderer, leaves, templates, written
from benchmarks.shared.sources import CACHE
from benchmarks.shared.tables import show
from toolgrammar.core import GenerateParams, Message, ToolGrammarError, load_model
from toolgrammar.tools import Tool, ToolSet
from toolgrammar.tools.formats import choose_format

_CONTROL = re.compile(
    r"<[|｜][^<>\s\"']+[|｜]>|<\|[^<>\s\"']+>|<[^<>\s\"'|/]+\|>|\[/?[A-Z_]{4,}\]|</?(?:tool_calls?|arg_)[^<>\s]*>"
)


def _object(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(properties)}


TOOLS = ToolSet(
    [
        Tool("get_weather", "Weather.", _object(city={"enum": ["Paris", "Bari"]}, days={"enum": [3, 17]})),
        Tool("get_time", "Time.", _object(zones={"type": "array", "items": {"enum": ["UTC", "CET"]}, "maxItems": 2})),
        Tool("ping", "Look whether it is there.", {"type": "object", "properties": {}}),
    ]
)


def control_tokens(source: str) -> list[str]:
    """Return the markers of a template: those of its format, and what looks like a control token in what it writes."""
    found = set(getattr(choose_format(None, source), "special", ()))
    try:
        render = Renderer(source)
        for case in CASES[:2]:
            found.update(_CONTROL.findall(written(render, case)[0]))
        found.update(_CONTROL.findall(render([{"role": "user", "content": "x"}], prompt=True)))
    except Exception:  # a template may raise anything; its model is tried all the same
        pass
    return sorted(found)


def save(folder: Path, source: str, special: list[str]) -> None:
    """Save a tiny Llama with a template, as ``folder/hf`` and ``folder/model.gguf``."""
    tiny = import_module("tests.core.models.tiny")  # their folders are no packages, and have relative imports
    write_gguf = import_module("tests.core.models.tiny_gguf").write_gguf

    names = list(dict.fromkeys(["<|endoftext|>", "<|im_start|>", *special]))
    tokens = tiny.tokenizer(source, names)
    model = tiny.llama(
        vocab_size=len(tokens),
        hidden_size=64,
        intermediate_size=128,
        num_hidden_layers=1,
        max_position_embeddings=65_536,
        eos_token_id=tokens.eos_token_id,
    )
    tokens.save_pretrained(folder / "hf")
    model.save_pretrained(folder / "hf")
    write_gguf(folder / "model.gguf", model, tokens, source)


def converse(model: Any, seed: int) -> str:
    """Return what is wrong with three turns; empty: nothing."""
    messages = [Message("user", "What is new?")]
    expected: list[str] = []
    spelled = {number: name for name, number in model.vocabulary.special.items()}
    try:
        for turn in range(3):
            params = GenerateParams(
                tools=TOOLS,
                tool_choice="required" if turn < 2 else "none",
                max_tokens=400 if turn < 2 else 40,
                temperature=1.0,
                seed=seed + turn,
            )
            ids = model._encode_prompt(messages, params, model._wire(params))
            prompt = b"".join(spelled[i].encode() if i in spelled else model.vocabulary.tokens[i] or b"" for i in ids)
            text = prompt.decode("utf-8", "replace")
            shown = text[text.rfind("What is new?") :]
            if missing := [each for each in expected if each not in shown]:
                return f"turn {turn + 1}: {missing} not in {shown[-400:]!r}"
            message = model.generate(messages, params).message
            if turn < 2 and (not message.tool_calls or any(call.error for call in message.tool_calls)):
                return f"turn {turn + 1}: {message}"
            messages.append(message)
            for number, call in enumerate(message.tool_calls):
                result = f"result{turn}{number}of7"
                expected += [call.name, result, *(str(each) for each in leaves(dict(call.arguments)))]
                messages.append(Message("tool", result, tool_call_id=call.id))
    except ToolGrammarError as error:
        return f"turn {turn + 1}: {error}"
    return ""


def main(
    cache: Path = CACHE, mistral: Path | None = None, only: str = "", backends: str = "hf,gguf", keep: bool = False
) -> None:
    """Run all templates, and print what failed.

    Args:
        cache: a folder for source distributions
        mistral: a checkout of mistral-common's repository
        only: a pattern of the templates' names
        backends: of hf and gguf
    """
    failed: dict[str, dict[str, str]] = {backend: {} for backend in backends.split(",")}
    passed = dict.fromkeys(failed, 0)
    for number, (name, source) in enumerate(templates(cache, mistral, keep=keep, only=only)):
        with tempfile.TemporaryDirectory() as folder:
            save(Path(folder), source, control_tokens(source))
            for backend in failed:
                where = Path(folder) / ("hf" if backend == "hf" else "model.gguf")
                wrong = converse(load_model(f"{backend}:{where}"), number)
                if wrong:
                    failed[backend][name] = wrong[:600]
                    print(backend, name, wrong[:600], flush=True)
                else:
                    passed[backend] += 1
    result = {"passed": passed, "failed": failed}
    show("turns", result, keep=keep)
