"""SGLang's whole engine on a CPU, writing under our backend: is every answer valid, or ended by its token budget?

    python -m benchmarks engines/sglang_engine DATA --model FOLDER [--backends toolgrammar xgrammar]
        [--requests 24] [--max-tokens 200] [--keep]

SGLang has no build for a CPU. Two of its packages cannot be imported without CUDA: ``sgl_kernel``, of which a Llama on
the CPU calls nothing but a copy of key/value rows, and ``torchvision``. Stand-ins for the two are put on the path;
scheduler, grammar manager, batches, masks and sampling are SGLang's own. The model is one of `engine_models.py`.

Asked are JSON of the arguments of functions, at temperature 1, and a pattern, an EBNF grammar, a structural tag and a
schema that nobody can meet, all in one batch.
"""

from __future__ import annotations

import importlib.util
import json
import os
import re
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.shared import data, results_io

TAG = {
    "type": "structural_tag",
    "format": {
        "type": "tag",
        "begin": "<call>",
        "content": {"type": "json_schema", "json_schema": {"type": "object", "properties": {"n": {"type": "integer"}}}},
        "end": "</call>",
    },
}
EBNF = 'root ::= "(" root ")" | "x"'
UNIQUE = {"type": "array", "items": {"enum": ["a", "b", "c"]}, "uniqueItems": True, "minItems": 2}

STAND_IN = """
import importlib.abc, importlib.machinery, sys, types

__version__ = "0"


def _attribute(name):
    if name.startswith("__"):
        raise AttributeError(name)

    class StandIn:
        def __init__(self, *arguments, **options):
            if __name__ == "sgl_kernel":
                raise NotImplementedError(f"sgl_kernel.{name} on a CPU")

        def __class_getitem__(cls, item):
            return cls

    for member in ("BICUBIC", "BILINEAR", "NEAREST", "NEAREST_EXACT", "LANCZOS", "HAMMING", "BOX", "RGB", "GRAY"):
        setattr(StandIn, member, member)
    return StandIn


class _Loader(importlib.abc.Loader):
    def create_module(self, spec):
        module = types.ModuleType(spec.name)
        module.__path__ = []
        module.__getattr__ = _attribute
        return module

    def exec_module(self, module):
        pass


class _Finder(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.startswith(__name__ + ".") and not name.endswith(".scalar_type"):
            return importlib.machinery.ModuleSpec(name, _Loader(), is_package=True)


sys.meta_path.append(_Finder())


def copy_all_layer_kv_cache_cpu(keys, values, target, source):
    for rows in (*keys, *values):
        rows[target] = rows[source].clone()


def __getattr__(name):
    return _attribute(name)
"""


def write_stand_ins(folder: Path) -> None:
    """Write the packages that need CUDA, those that are not installed."""
    for name in ("torchvision", "sgl_kernel"):
        if importlib.util.find_spec(name) is None:
            (folder / name).mkdir()
            (folder / name / "__init__.py").write_text(STAND_IN, encoding="utf-8")


def put_stand_ins(folder: Path) -> None:
    """Let this process and its children import the packages that need CUDA."""
    write_stand_ins(folder)
    sys.path.insert(0, str(folder))
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (str(folder), os.environ.get("PYTHONPATH"))))
    os.environ["SGLANG_USE_CPU_ENGINE"] = "1"


def asked(path: Path, count: int) -> list[dict[str, Any]]:
    """Constraints, as SGLang's sampling parameters have them."""
    schemas = data.schemas_of(path)
    found = [{"json_schema": json.dumps(schema)} for schema in schemas[:count]]
    found += [{"json_schema": json.dumps(UNIQUE)}] * 4
    return [*found, {"regex": "[a-f]{3}-[0-9]{2}"}, {"ebnf": EBNF}, {"structural_tag": json.dumps(TAG)}]


def is_valid(constraint: dict[str, Any], text: str) -> bool:
    """Return True if a text is what the constraint says, by somebody else's reading."""
    ((kind, rule),) = constraint.items()
    if kind == "regex":
        return re.fullmatch(rule, text) is not None
    if kind == "ebnf":
        return re.fullmatch(r"\(*x\)*", text) is not None and text.count("(") == text.count(")")
    if kind == "structural_tag":
        inner = re.fullmatch(r"<call>(.*)</call>", text, re.DOTALL)
        return inner is not None and isinstance(json.loads(inner[1]), dict)
    return data.is_valid(json.loads(rule), text)


def measure(backend: str, model: str, path: Path, requests: int, most: int) -> dict[str, Any]:
    """Ask everything of an engine with a backend; return the counts."""
    import sglang

    engine = sglang.Engine(
        model_path=model,
        device="cpu",
        grammar_backend=backend,
        attention_backend="torch_native",
        dtype="float32",
        mem_fraction_static=0.2,
        max_total_tokens=16_384,
        context_length=1_024,
        disable_cuda_graph=True,
        disable_overlap_schedule=True,
        max_running_requests=16,
    )
    counts: Counter[str] = Counter()
    examples, tokens = [], 0
    constraints = asked(path, requests)
    sampling = {"temperature": 1.0, "max_new_tokens": most}
    begin = time.monotonic()
    outputs = engine.generate(["Go: "] * len(constraints), [{**sampling, **one} for one in constraints])
    seconds = time.monotonic() - begin
    for constraint, output in zip(constraints, outputs, strict=True):
        reason = output["meta_info"]["finish_reason"]
        tokens += len(output.get("output_ids", ()))
        if reason["type"] == "abort":
            kind = "refused"
        elif is_valid(constraint, output["text"]):
            kind = "valid"
        else:
            kind = "cut" if reason["type"] == "length" else "invalid"
        if kind in ("refused", "invalid"):
            examples.append(f"{kind} {str(constraint)[:200]}: {reason} {output['text'][:200]!r}")
        counts[kind] += 1
    impossible = {**sampling, "json_schema": '{"type": "colour"}'}
    try:
        engine.generate(["Go: "], [impossible])
        refused = ""
    except ValueError as error:  # an engine without a server raises what a server answers
        refused = str(error)
    after = engine.generate(["Go: "], [{**sampling, "regex": "[0-9]{3}"}])
    engine.shutdown()
    return {
        "requests": len(constraints),
        **{kind: counts[kind] for kind in ("valid", "cut", "refused", "invalid")},
        "tokens": tokens,
        "seconds": round(seconds, 1),
        "impossible": refused,
        "after": after[0]["text"],
        "examples": examples,
    }


def main(
    data: Path,
    *,
    model: str,
    backends: Sequence[str] = ("toolgrammar", "xgrammar"),
    requests: int = 24,
    max_tokens: int = 200,
    keep: bool = False,
) -> int:
    """Measure each backend, print, and fail if ours wrote an invalid answer.

    Args:
        model: a folder of `engine_models.py`
    """
    with tempfile.TemporaryDirectory() as folder:
        put_stand_ins(Path(folder))
        results = {}
        for backend in backends:
            results[backend] = measure(backend, model, data, requests, max_tokens)
            print(json.dumps(results[backend], indent=1), flush=True)
    report = {"backends": results}
    results_io.show("sglang_engine", report, keep=keep)
    return int(bool(results.get("toolgrammar", {}).get("invalid")))
