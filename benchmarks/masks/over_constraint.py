"""Valid texts that a mask forbids: for each policy of this library, beside the peers' defaults.

    python -m benchmarks masks/over_constraint [--limit N] [--peers llguidance,glrmask] [--sheets FILE] [--keep]

A model that means a valid value may still want to spell it in a way that an engine does not allow: then the mask pushes
it off its text. The valid instances of MaskBench are written in spellings that are ordinary somewhere:

- ``single``: ``json.dumps``, one space after ``,`` and ``:``; keys in the order of the instance, as in all of them;
- ``compact``: no whitespace (JavaScript's ``JSON.stringify``); ``indent``: two spaces on each level;
- ``ascii``: other characters as ``\\u00e9`` (Python's default); ``slashes``: ``/`` as ``\\/`` (PHP's default);
- ``floats``: whole numbers as ``3.0`` (not under Draft 4, where these are no integers).

The last three count only where the text has such a character or number. Each text is written by the vocabulary's own
tokenizer, and each mask is asked for the next token: behind the first one that is forbidden, everything is. Counted are
the texts that are refused somewhere, and the share of their prefixes (each beginning up to a token, and the whole with
its end, each text as much as another) that an engine forbids. Shares are of the schemas that all engines compile;
those of ``single`` also of all that the engine itself compiles, where its own hard schemas count.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.masks.maskbench import reason
from benchmarks.shared.data import MASKBENCH, rows, spread
from benchmarks.shared.peers import tekken
from benchmarks.shared.results_io import show
from benchmarks.shared.tables import SPELLINGS
from benchmarks.shared.workers import Sheet, Worker, gathered, installed
from toolgrammar.core import UnsatisfiableSchemaError

#: Policies of this library, by what differs from the default: one space, the schema's order.
POLICIES: dict[str, dict[str, Any]] = {
    "toolgrammar": {},
    "toolgrammar, any order": {"property_order": "any"},
    "toolgrammar, compact": {"whitespace": "compact"},
    "toolgrammar, flexible": {"whitespace": "flexible"},
    "toolgrammar, flexible, any order": {"whitespace": "flexible", "property_order": "any"},
    "toolgrammar, flexible, any order, plain integers": {
        "whitespace": "flexible",
        "property_order": "any",
        "plain_integers": True,
    },
}
#: The peers with their defaults.
PEERS: dict[str, dict[str, Any]] = {"llguidance": {}, "glrmask": {}, "xgrammar": {"strict_mode": True}}


def floats(value: Any) -> Any:
    """Return the value with each integer as a float, if that is the same number."""
    if isinstance(value, dict):
        return {name: floats(member) for name, member in value.items()}
    if isinstance(value, list):
        return [floats(item) for item in value]
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) < 10**15:
        return float(value)
    return value


def spelled(value: Any, *, draft4: bool = False) -> dict[str, str]:
    """Return the texts of a value, by spelling; without those that are like ``single`` because nothing differs."""
    single = json.dumps(value, ensure_ascii=False)
    found = {
        "single": single,
        "compact": json.dumps(value, ensure_ascii=False, separators=(",", ":")),
        "indent": json.dumps(value, ensure_ascii=False, indent=2),
        "ascii": json.dumps(value),
        "slashes": single.replace("/", "\\/"),
        "floats": single if draft4 else json.dumps(floats(value), ensure_ascii=False),
    }
    always = ("single", "compact", "indent")
    return {name: text for name, text in found.items() if name in always or text != single}


def judge(engine: Any, schema: Any, texts: Sequence[tuple[str, Sequence[int]]]) -> Sheet:
    """Return, for each text, its spelling, the prefixes that are allowed, and their count; or why there is none."""
    try:
        compiled = engine.compile(schema)
        found = []
        for spelling, tokens in texts:
            state, bits, allowed = engine.start(compiled), engine.bits, 0
            for token in tokens:
                accepted = engine.step(state, token)
                if not bits[token >> 5] >> (token & 31) & 1 or not accepted:
                    break
                allowed += 1
            else:
                allowed += engine.accepts(state)
            found.append((spelling, int(allowed), len(tokens) + 1))
    except UnsatisfiableSchemaError:
        return {"texts": [(spelling, 0, len(tokens) + 1) for spelling, tokens in texts]}
    except Exception as error:  # a peer may raise anything; a refusal is a result
        return {"refused": reason(error)}
    return {"texts": found}


def summary(found: Mapping[str, Sheet], common: Sequence[str]) -> dict[str, Any]:
    """Return the shares of each spelling in the schemas that all engines compile, and of ``single`` in its own."""

    def shares(schemas: Sequence[str], spelling: str) -> dict[str, float]:
        texts = [(allowed, of) for at in schemas for name, allowed, of in found[at]["texts"] if name == spelling]
        count = max(1, len(texts))
        return {
            "texts": len(texts),
            "refused": sum(allowed < of for allowed, of in texts) / count,
            "prefixes_forbidden": sum(1 - allowed / of for allowed, of in texts) / count,
        }

    compiled = [at for at, sheet in found.items() if "texts" in sheet]
    return {
        "schemas_compiled": len(compiled),
        "own_single": shares(compiled, "single"),
        "spellings": {spelling: shares(common, spelling) for spelling in SPELLINGS},
    }


def texts_of(row: Mapping[str, Any]) -> tuple[Any, list[tuple[str, list[int]]]]:
    """Return the schema of a row, and the spellings of its valid instances in tokens."""
    schema, (_, encode) = row["schema"], tekken()
    draft4 = isinstance(schema, dict) and "draft-04" in str(schema.get("$schema"))
    values = [test["data"] for test in row["tests"] if test["valid"]]
    return schema, [(name, encode(text)) for each in values for name, text in spelled(each, draft4=draft4).items()]


def main(
    limit: int = 0,
    peers: str = "llguidance,glrmask,xgrammar",
    deadline: float = 60,
    sheets: Path | None = None,
    data: Path = MASKBENCH,
    keep: bool = False,
) -> None:
    """Run the benchmark."""
    chosen = [row for row in rows(data) if any(test["valid"] for test in row["tests"])]
    chosen, job = spread(chosen, limit), (__name__, "judge")
    workers = [
        Worker(name, job, engine="toolgrammar", options=own, deadline=deadline) for name, own in POLICIES.items()
    ]
    workers += [Worker(name, job, options=PEERS[name], deadline=deadline) for name in installed(peers)]
    settings = {"benchmark": "over_constraint", "schemas": len(chosen), "deadline_s": deadline}
    found = gathered(workers, chosen, texts_of, settings, sheets)
    common = [row["id"] for row in chosen if all("texts" in each[row["id"]] for each in found.values())]
    engines = {worker.name: {"version": worker.version, **summary(found[worker.name], common)} for worker in workers}
    report = {"schemas": len(chosen), "common": len(common), "deadline_s": deadline, "engines": engines}
    show("over_constraint", report, keep=keep)
