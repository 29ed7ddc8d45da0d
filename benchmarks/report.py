"""Writes the tables of the documentation from the results that are kept beside this file, and draws the picture.

    python benchmarks/report.py [--check]

A table stands between two comments, ``<!-- NAME: written by benchmarks/report.py -->`` and ``<!-- end of NAME -->``,
and shows ``benchmarks/results/NAME.json``. What is between them is written anew; the prose around it is by hand. A
table whose result is not kept stays as it is. With ``--check`` nothing is written: the exit status says whether
something would be.
"""

from __future__ import annotations

import argparse
import json
import math
import re
import sys
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from figure import Bars, Line, Panel, bars, chart
from results_io import table

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "results"
DOCS = HERE.parent / "docs"
#: The pages with tables: each result is shown on one of them.
_PAGES = ("performance", "evidence", "adapters", "decisions", "decoding", "formats", "repair", "text-grammars", "tools")
PAGES = tuple(DOCS / f"{name}.md" for name in _PAGES)
PICTURE = DOCS / "images" / "growth.svg"
COSTS = DOCS / "images" / "costs.svg"
BLOCK = re.compile(r"(<!-- ([\w-]+): written by benchmarks/report\.py -->\n)(.*?)(<!-- end of \2 -->\n)", re.DOTALL)
SHARES = ("p50", "p90", "p99", "p99.9", "worst", "mean")
MB = 2**20
Result = Mapping[str, Any]


def figures(value: float | None) -> str:
    """A time: a digit after the point where it says something, none above a hundred."""
    if value is None:
        return ""
    return f"{value:.1f}" if value < 99.95 else f"{value:,.0f}"


def ratio(value: float) -> str:
    """A multiple: two digits that say something."""
    return f"{value:,.0f}" if value >= 9.95 else f"{value:.2f}" if value >= 0.095 else f"{value:.1g}"


def where(result: Result) -> str:
    """The machine and the versions, in a line."""
    machine = result["machine"]
    listed = result.get("versions") or (machine.get("versions") if isinstance(machine, Mapping) else None) or {}
    versions = ", ".join(f"{name} {version}" for name, version in listed.items())
    if not isinstance(machine, Mapping):  # the benchmarks that write one file where they are told
        return ", ".join(filter(None, (str(machine), f"Python {result['python']}", versions)))
    return f"{machine['cpu']}, {machine['cores']} cores, {machine['system']}; {versions}"


CLOCKS = {"cpu": "processor time of the thread", "wall": "wall time"}
COMPILE_CLOCKS = {"process": " (compiling: of the whole process)"}


def masks(result: Result) -> str:
    """MaskBench: times of all engines, the same on the schemas that all of them take, and verdicts."""
    engines: Mapping[str, Any] = result["engines"]
    names = {name: f"{name} {found['version']}" for name, found in engines.items()}
    kinds = (("mask_and_accept_us", "mask + accept"), ("compile_and_first_mask_us", "compile + first mask"))
    rows: list[list[str]] = []
    for key, what in kinds:
        rows += [[f"{what}: {names[name]}", *shares(found[key])] for name, found in engines.items() if found[key]]
    for name, found in engines.items():
        if found["warm_us"]:
            rows.append([f"mask + accept, the same texts again: {names[name]}", *shares(found["warm_us"])])
    kernel = "compiled kernel" if result["compiled"] else "interpreted kernel"
    order = "any order" if result["order"] == "any" else "the schema's order"
    spacing = ' whitespace "single";' if result.get("whitespace") == "single" else ""
    reading = ", without the time to read the clock" if result.get("without_clock") else ""
    block = result.get("block", 1)
    at_work = f"each engine gets {block:,} schemas at a time" if block > 1 else "one process wake-up for each schema"
    parts = [
        f"{result['schemas']:,} schemas, properties in {order}; {at_work}; microseconds,"
        f" {CLOCKS[result['clock']]}{COMPILE_CLOCKS.get(result.get('compile_clock'), '')}{reading}; {kernel};"
        f"{spacing} {where(result)}.",
        table(("", *SHARES), rows),
    ]
    common = {name: each for name, found in engines.items() if (each := found.get("common")) and each[kinds[0][0]]}
    if len(common) > 1 and "toolgrammar" in common:
        taken = {each["schemas"] for each in common.values() if "schemas" in each}
        count = f"the {taken.pop():,} schemas" if len(taken) == 1 else "the schemas"
        rows = []
        for key, what in kinds:
            rows += [[f"{what}: {names[name]}", *shares(each[key])] for name, each in common.items()]
            ours = common["toolgrammar"][key]
            for name, each in common.items():
                if name != "toolgrammar":
                    ratios = [ratio(ours[share] / each[key][share]) for share in SHARES]
                    rows.append([f"*toolgrammar's, as a multiple of {name}'s*", *ratios])
        parts += [f"The same on {count} that all engines compile:", table(("", *SHARES), rows)]
    verdicts = [
        [
            names[name],
            found["schemas_compiled"],
            found["schemas_right"],
            found["instances"]["too_lax"],
            found["instances"]["too_strict"],
            found.get("schemas_refused", sum(found["refused"].values())),
            found["peak_memory_mb"],
        ]
        for name, found in engines.items()
    ]
    columns = ("compiled", "all their instances judged right", "invalid accepted", "valid refused", "schemas refused")
    parts.append(table(("", *columns, "peak memory of the process, MB"), verdicts))
    for name, found in engines.items():
        if found.get("mask_differs"):
            parts.append(f"{name} has masks that contradict its own verdicts in {found['mask_differs']:,} instances.")
        if name == "toolgrammar" or any(reason.startswith("no answer") for reason in found["refused"]):
            reasons = ", ".join(f"{count} {reason}" for reason, count in found["refused"].items())
            parts.append(f"Refused by {name}: {reasons or 'none'}.")
    return "\n\n".join(parts)


def shares(found: Mapping[str, float]) -> list[str]:
    """The cells of one distribution."""
    return [figures(found.get(share)) for share in SHARES]


SPELLINGS = ("single", "compact", "indent", "ascii", "slashes", "floats")


def over_constraint_table(result: Result) -> str:
    """Return the shares of ``over_constraint.py``: texts refused, and prefixes forbidden."""
    engines: Mapping[str, Any] = result["engines"]
    texts = next(iter(engines.values()))["spellings"]
    rows = []
    for name, found in engines.items():
        shares = [found["own_single"], *(found["spellings"][spelling] for spelling in SPELLINGS)]
        cells = [f"{each['refused']:.1%} / {each['prefixes_forbidden']:.1%}" for each in shares]
        rows.append((name, found["schemas_compiled"], *cells))
    columns = ["texts refused / prefixes forbidden", "schemas compiled", "single, of these"]
    return table([*columns, *(f"{name} ({texts[name]['texts']:,} texts)" for name in SPELLINGS)], rows)


def over_constraint(result: Result) -> str:
    """Valid texts that masks forbid."""
    head = f"{result['schemas']:,} schemas with valid instances, shares of the {result['common']:,} that all compile"
    return f"{head}; {where(result)}.\n\n{over_constraint_table(result)}"


def batch(result: Result) -> str:
    """Many texts at once."""
    rows = [(engine, what, float(value)) for engine, what, value in result["micros_a_row"]]
    return f"{result['rows']} texts; {where(result)}.\n\n" + table(("engine", "what", "µs a row (median)"), rows)


def gpu_steps(result: Result) -> str:
    """What masks add to a step of a GPU."""
    rows = []
    for count, found in result.items():
        if count.isdigit():
            free = found["median_ms"]["free"]
            for name, median in found["median_ms"].items():
                more = "" if name == "free" else f"{100 * (median / free - 1):+.1f}%"
                rows.append((count, name, median, found["p95_ms"][name], more))
    head = f"{result['device']}, {result['context']:,} tokens in each row's cache, {result['steps']} steps"
    columns = ("rows", "masks of", "a step, ms: median", "95th percentile", "more than free")
    return f"{head}; {where(result)}.\n\n{table(columns, rows)}"


def text_grammars(result: Result) -> str:
    """Masks of grammars that are written as text."""
    rows = []
    for grammar, engines in result["masks"].items():
        for engine, row in engines.items():
            rows.append(
                [grammar, engine, row["tokens"], row["p50_us"], row["p99_us"], row["mean_us"], row["compile_ms"]]
            )
    columns = ("grammar", "engine", "tokens", "p50, µs", "p99, µs", "mean, µs", "compile, ms")
    return f"{where(result)}.\n\n{table(columns, rows)}"


def serving(result: Result) -> str:
    """Requests at the same time."""
    rows = []
    for row in result["measures"]:
        speed = row["tokens"] / row["seconds"]
        rows.append([row["engine"], row["what"], row["at_once"], figures(speed), row.get("passes", "")])
    engines = ", ".join(f"{name} {version}" for name, version in result["engines"].items())
    head = (
        f"{result['requests']} requests, {result['parameters'] / 1e6:.0f} million weights; {where(result)}, {engines}."
    )
    columns = ("engine", "what", "requests at once", "tokens a second of processor time", "forward passes")
    return f"{head}\n\n{table(columns, rows)}"


def decoding(result: Result) -> str:
    """Whole generations: forward passes, time, and the engine's share of it."""
    rows = []
    for row in result["rows"]:
        tokens, passes, seconds = row["tokens"], row["passes"], row["seconds"]
        own = row["forward"] > 0
        parts = (seconds - row["forward"] - row["sampler"], row["sampler"]) if own else ()
        rows.append(
            (
                row["model"],
                row["name"],
                "" if row["name"].endswith("free") else row["calls"],
                tokens,
                passes,
                tokens / max(1, passes),
                f"{seconds / max(1, tokens) * 1e3:.1f}",
                *([f"{part / seconds:.1%}" for part in parts] or ("", "")),
            )
        )
    columns = ("model", "way", "calls", "tokens", "forward passes", "tokens per pass", "ms per token")
    refused = f"\n\nRefused: {'; '.join(result['refused'])}." if result["refused"] else ""
    head = f"{result['parameters'] / 1e6:.1f} million parameters; {where(result)}."
    return f"{head}\n\n{table((*columns, 'engine', 'sampler'), rows)}{refused}"


def tool_sets(result: Result) -> str:
    """Changing tool sets."""
    rows = []
    for name, found in result["engines"].items():
        first, second = found["compile_and_first_mask_us"], found["second_mask_us"]
        times = (first["p50"], first["p99"], second["p50"], second["p99"])
        rows.append((name, found["requests"], found["refused"], found["first_pass_seconds"], *times))
    columns = ("engine", "requests", "refused", "all tools once, s", "compile + first mask, us: p50", "p99")
    return f"{where(result)}.\n\n" + table((*columns, "mask at the names, us: p50", "p99"), rows)


def memory(result: Result) -> str:
    """What constraints take."""
    schemas = result["schemas"]["entries"] + result["schemas"]["evictions"]
    names = {
        "10": (f"union of 10 tools, {result['calls']:,} calls", 20),
        "100": (f"union of 100 tools, {result['calls']:,} calls", 100),
        "schemas": (f"{schemas:,} distinct schemas through a cache", 256),
    }
    rows = []
    for part, (name, bound) in names.items():
        counted, held = result[part]["counted_bytes"] / MB, result[part]["resident_bytes"] / MB
        rows.append((name, counted, held, float(bound), "yes" if max(counted, held) <= bound else "NO"))
    return f"{where(result)}.\n\n" + table(("", "counted, MiB", "resident, MiB", "bound, MiB", "kept"), rows)


def vocabulary(result: Result) -> str:
    """What it takes to prepare a vocabulary."""
    rows = []
    for name in ("computed, kept nowhere", "computed and written", "read"):
        clock, cpu, hashed = (result[name][key] for key in ("clock_ms", "processor_ms", "of_that_hash_ms"))
        middle = len(clock) // 2
        rows.append((name, clock[0], clock[middle], cpu[middle], hashed[middle]))
    columns = ("", "best, ms", "median, ms", "median of processor time, ms", "of that the content hash, ms")
    return f"{where(result)}.\n\n" + table(columns, rows)


def interval(count: int, of: int) -> str:
    """Return a share, and its 95% interval (Wilson): what other samples of the same size may well show."""
    share, z = count / of, 1.96
    middle, width = share + z * z / (2 * of), z * math.sqrt(share * (1 - share) / of + z * z / (4 * of * of))
    low, high = ((middle + side * width) / (1 + z * z / of) for side in (-1, 1))
    return f"{share:.0%} ({max(low, 0):.0%} to {min(high, 1):.0%})"


def worth_table(result: Result) -> str:
    """Return the table of ``real_model.py``: what came of the requests, and what it cost, by way."""
    columns = ("way", "calls", "valid", "cut", "right function", "all right", "tokens", "forward passes", "seconds")
    rows = [
        [way, row["called"], row["valid"], row["cut"], interval(row["function"], row["asked"]),
         interval(row["right"], row["asked"]), row["tokens"], row["passes"], f"{row['seconds']:,.0f}"]
        for way, row in result["ways"].items()
    ]  # fmt: skip
    return table(columns, rows)


def real_model(result: Result) -> str:
    """What the guarantee is worth with a real model."""
    head = f"{result['model']}, {result['requests']} requests; {where(result)}."
    errors = [f"{way} ({row['errors']})" for way, row in result["ways"].items() if row["errors"]]
    ended = f"\n\nEnded with an error: {', '.join(errors)}." if errors else ""
    return f"{head}\n\n{worth_table(result)}{ended}"


def numpy_model_table(result: Result) -> str:
    """Return the table of ``numpy_model.py``."""
    columns = ("kernel", f"reading {result['prompt']} tokens, tokens/s", "writing after them, tokens/s")
    return table(
        columns,
        [(way, f"{row['read_per_second']:.0f}", f"{row['written_per_second']:.0f}")
         for way, row in result["ways"].items()],
    )  # fmt: skip


def numpy_model(result: Result) -> str:
    """What a model costs that NumPy runs."""
    loading = f"loaded in {result['load_seconds']:.1f} s, at most {result['peak_mb']:.0f} MB of memory in all"
    return f"{result['model']}, one thread, {loading}; processor time; {where(result)}.\n\n{numpy_model_table(result)}"


AXES = {
    "vocabulary": "tokens of the vocabulary",
    "properties": "properties of the schema",
    "depth": "depth of nesting",
    "tools": "tools of the set",
}


def growth_table(result: Result) -> str:
    """The table of ``growth.py``; a point that an engine refuses says so."""
    points = [each for sweep in result["sweeps"].values() for each in sweep.values()]
    engines = list(dict.fromkeys(name for each in points for name in each))
    columns = ["", ""]
    for name in engines:
        columns += [f"{name}: first, mean", "p50", "worst", "again, mean", "compile + first mask"]
    rows = []
    for sweep, sizes in result["sweeps"].items():
        for at, found in sizes.items():
            row = [sweep, f"{int(at):,}"]
            for name in engines:
                each = found.get(name, {"refused": ""})
                if "refused" in each:
                    row += ["refused", "", "", "", ""]
                    continue
                first = each["first_us"]
                times = (first["mean"], first["p50"], first["worst"], each["again_us"]["mean"])
                row += [figures(time) for time in (*times, each["compile_and_first_mask_us"]["p50"])]
            rows.append(row)
    return table(columns, rows)


def growth(result: Result) -> str:
    """Growth: the picture, and the table."""
    picture = f"![Cost of a token and of compiling, by size](images/{PICTURE.name})"
    made = max(map(int, result["sweeps"]["tools"])) - result["tools_of_bfcl"] if "tools" in result["sweeps"] else 0
    tools = f"{result['tools_of_bfcl']:,} tools are of the BFCL sample, {made:,} are made"
    head = f"Microseconds, {CLOCKS[result['clock']]}; {tools}; {where(result)}."
    return "\n\n".join((picture, head, growth_table(result)))


LINES = (
    Line("toolgrammar, first time", "#1a5fb4"),
    Line("toolgrammar, again", "#62a0ea", "5 4"),
    Line("llguidance, first time", "#c64600"),
    Line("llguidance, again", "#ffa348", "5 4"),
)


def growth_picture(result: Result) -> str:
    """The picture of ``growth.py``, as SVG."""

    def line(sweep: str, engine: str, *keys: str) -> list[tuple[float, float | None]]:
        points: list[tuple[float, float | None]] = []
        for at, found in result["sweeps"][sweep].items():
            if engine in found:
                value: Any = found[engine]
                for key in keys:
                    value = None if value is None else value.get(key)
                points.append((float(at), value))
        return points

    engines = ("toolgrammar", "llguidance")
    token, compiling = [], []
    for sweep in result["sweeps"]:
        lines = {}
        for engine in engines:
            lines[f"{engine}, first time"] = line(sweep, engine, "first_us", "mean")
            lines[f"{engine}, again"] = line(sweep, engine, "again_us", "mean")
        token.append(Panel(AXES[sweep], lines))
        whole = {f"{engine}, first time": line(sweep, engine, "compile_and_first_mask_us", "p50") for engine in engines}
        compiling.append(Panel(AXES[sweep], whole))
    rows = (("One mask and one accept, mean", token), ("Compile and first mask, median", compiling))
    return chart("Cost of a token and of compiling, as vocabulary, schema, depth and tool set grow", LINES, rows)


def draw_growth(result: Result) -> None:
    """Write the picture."""
    PICTURE.parent.mkdir(exist_ok=True)
    PICTURE.write_text(growth_picture(result), encoding="utf-8")


def below_machine(body: Callable[[Result], str]) -> Callable[[Result], str]:
    """The machine, and a table."""
    return lambda result: f"{where(result)}.\n\n{body(result)}"


def templates_table(result: Result) -> str:
    """Real chat templates that do not pass all cases, and what fails."""
    outcomes = result["templates"]
    rows = []
    for name, outcome in outcomes.items():
        if outcome["failed"]:
            counts = Counter(kind for kinds in outcome["failed"].values() for kind in dict.fromkeys(kinds))
            failed = ", ".join(f"{kind} {count}" for kind, count in counts.items())
            rows.append([name, outcome["format"] or outcome["source"], failed])
    head = f"{len(outcomes) - len(rows)} of {len(outcomes)} templates pass all cases.\n\n"
    return head + table(["template", "format", "fails"], rows)


def turns_table(result: Result) -> str:
    """Templates with which models of random weights talk for three turns, by backend."""
    rows = [
        [
            f"`{backend}:`",
            f"{passed} of {passed + len(result['failed'][backend])}",
            ", ".join(result["failed"][backend]),
        ]
        for backend, passed in result["passed"].items()
    ]
    return table(["models", "templates that pass", "fail"], rows)


def vllm_parsers_table(result: Result) -> str:
    """The tests that vLLM or SGLang has for its tool parsers, by file or class."""
    rows = [[name, counts["passed"], counts["failed"], counts["skipped"]] for name, counts in result["files"].items()]
    total = [sum(row[column] for row in rows) for column in (1, 2, 3)]
    causes = sorted(result["causes"], key=lambda each: (each["whose"], -each["tests"]))
    why = table(["whose", "cause of failures", "tests"], [[c["whose"], c["cause"], c["tests"]] for c in causes])
    return table(["tests of", "pass", "fail", "no format"], [*rows, ["all", *total]]) + "\n\n" + why


def llama_cpp_table(result: Result) -> str:
    """llama.cpp's cases, by template."""
    kinds = ["same calls", "other calls", "no format", "depends on the cut"]
    rows = [[name, *(counts.get(kind, 0) for kind in kinds)] for name, counts in result["templates"].items()]
    return table(["template", *kinds], [*rows, ["all", *(sum(row[1 + at] for row in rows) for at in range(4))]])


def verdicts_table(result: Result) -> str:
    """What peers and we say of texts of grammars, by where the grammars come from."""
    kinds = [
        "read by both",
        "refused by both",
        "read by us alone",
        "read by the peer alone",
        "texts",
        "valid",
        "accepted by us alone",
        "accepted by the peer alone",
    ]
    rows = [
        [source, peer, *(counts.get(kind, 0) for kind in kinds)]
        for source, peers in result["sources"].items()
        for peer, counts in peers.items()
        if peer != "own"
    ]
    return table(["grammars", "peer", *kinds], rows)


#: Verdicts about a schema, as `verdicts.py` counts them.
VERDICTS = {"right": "right", "too_strict": "valid refused", "too_lax": "invalid accepted", "refused": "refused"}


def verdicts_by_family(result: Result) -> str:
    """Which schemas engines judge right: all of them by verdict, and the right ones by family."""
    engines: Mapping[str, Any] = result["engines"]
    total = {
        name: {key: sum(counts.get(key, 0) for counts in found["families"].values()) for key in VERDICTS}
        for name, found in engines.items()
    }
    whole = table(
        ["engine", "version", *VERDICTS.values()],
        [(name, found["version"], *(total[name][key] for key in VERDICTS)) for name, found in engines.items()],
    )
    families = next(iter(engines.values()))["families"]
    rows = [
        (family, counts["schemas"], *(found["families"][family].get("right", 0) for found in engines.values()))
        for family, counts in families.items()
    ]
    by_family = table(["right, by source", "schemas", *engines], rows)
    reasons = [
        (
            name,
            "; ".join(
                f"{reason.replace('|', ' ')} ({count:,})" for reason, count in list(found["refused"].items())[:5]
            ),
        )
        for name, found in engines.items()
    ]
    return f"{whole}\n\n{by_family}\n\n{table(['engine', 'most frequent reasons of refusals'], reasons)}"


#: Kinds of questions of `decisions.py`.
FAMILIES = ("intents", "prices", "addresses")


def decisions_table(result: Result) -> str:
    """How often other scores than those of the whole labels choose another label, and which are right."""
    rows: list[list[object]] = []
    for name, count in result["methods"].items():
        families = [
            f"{count.get(f'right: {family}', 0)} of {count.get(f'questions: {family}', 0)}" for family in FAMILIES
        ]
        exact = "" if name == "whole labels" else count["exact right"]
        other = "" if name == "whole labels" else count["other"]
        rows.append([name, count["questions"], other, count["right"], exact, *families])
    head = ["method", "questions", "another label than the exact choice", "right", "right by the exact choice"]
    return table([*head, *FAMILIES], rows)


def matrix(result: Result) -> str:
    """The rows of `.ci/matrix`: versions, tests and days."""
    pythons = sorted({row["python"] for row in result["rows"].values()})
    rows = [
        (f"`{name}`", row["package"], row["passed"], row["failed"], row["skipped"], row["date"])
        for name, row in result["rows"].items()
    ]
    shown = table(["row", "version", "tests passed", "failed", "skipped", "date"], rows)
    return f"Python {', '.join(pythons)}.\n\n{shown}"


def mask_verifier(result: Result) -> str:
    """What the verifier of masks has compared."""
    counts = ("cases", "finite cases", "masks", "tokens in masks", "texts judged", "differences")
    versions = ", ".join(f"{name} {version}" for name, version in result["versions"].items())
    return f"{versions}.\n\n{table(counts, [[result['counts'][name] for name in counts]])}"


def tokens_table(result: Result) -> str:
    """Masks of peers beside ours, and why they differ."""
    kinds = list(dict.fromkeys(kind for counts in result["counts"].values() for kind in counts))
    rows = [[kind, *(counts.get(kind, 0) for counts in result["counts"].values())] for kind in kinds]
    return table(["", *result["counts"]], rows)


#: Notations of exports, and who reads them.
NOTATIONS = {"gbnf": "GBNF, llama.cpp", "ebnf": "EBNF, xgrammar", "lark": "Lark, llguidance", "regex": "regex, `re`"}


def exports_table(result: Result) -> str:
    """What targets made of exported schemas, by notation."""
    kinds = [
        "exported",
        "exact",
        "not exported",
        "not loaded",
        "timed out",
        "crashed",
        "texts",
        "valid",
        "not judged",
        "refused, ours",
        "accepted, unnamed",
        "accepted, named",
    ]
    rows = [[NOTATIONS[name], *(counts.get(kind, 0) for kind in kinds)] for name, counts in result["counts"].items()]
    of = f" of {result['of']:,}" if "of" in result else ""
    late = f'"Timed out" is {result["deadline"]} seconds of processor time.' if "deadline" in result else ""
    parts = [f"{result['schemas']:,}{of} schemas. {late}".rstrip(), table(["", *kinds], rows)]
    sizes = result.get("characters", {})
    columns = list(dict.fromkeys(share for found in sizes.values() for share in found))
    if sizes:
        lines = [[NOTATIONS[name], *found.values()] for name, found in sizes.items()]
        parts += ["Sizes in characters:", table(["", *columns], lines)]
    reasons = [
        [NOTATIONS[name], why, number]
        for name, found in result.get("reasons", {}).items()
        for why, number in sorted(found.items(), key=lambda item: (-item[1], item[0]))
    ]
    if reasons:
        parts += ["Refusals by reason:", table(["", "reason", "schemas"], reasons)]
    return "\n\n".join(parts)


def servers_table(result: Result) -> str:
    """First answers of servers to a plain client and to the library."""
    kinds = {
        "cut": ("cut",),
        "no call": ("no call",),
        "invalid": ("invalid", "wrong arguments", "invented name", "broken JSON"),
        "refused": ("refused", "refused schema"),
    }
    rows = []
    for label, clients in result["servers"].items():
        for name, found in clients.items():
            first, total = found["first"], sum(found["first"].values())
            ended = total - first.get("cut", 0) - first.get("refused schema", 0)
            share = f"{first.get('valid', 0) / ended:.1%}" if ended else ""
            counts = [sum(first.get(kind, 0) for kind in each) for each in kinds.values()]
            valid = found["passed"].get("valid", 0)
            forms = ", ".join(form for form in found["forms"] if form != "none")
            row = [label, name, forms, total, first.get("valid", 0), share, *counts, valid]
            rows.append([*row, found["requests"], found["tokens"]])
    columns = ("server", "client", "form", "requests", "valid at first", "of those not cut", *kinds, "valid in the end")
    return table((*columns, "sent", "tokens"), rows)


def repair(result: Result) -> str:
    """The machine, and the table of damaged calls."""
    rows = []
    whole = result["all but cut"]
    peers = [name.removesuffix(" valid") for name in whole if name.endswith(" valid")]
    for damage, counts in result.items():
        if damage == "machine":
            continue
        total = counts["cases"]
        shares = [f"{counts.get(name, 0) / total:.1%}" for name in ("valid", "equal")]
        theirs = [f"{counts.get(f'{peer} {name}', 0) / total:.1%}" for peer in peers for name in ("valid", "equal")]
        times = [figures(counts[f"{share}_ms"]) for share in ("p50", "p99")]
        rows.append([damage, total, *shares, counts.get("invented", 0), *times, *theirs])
    columns = ["damage", "cases", "valid", "equal", "invented", "ms: p50", "p99"]
    columns += [head for peer in peers for head in (f"{peer}: valid", "equal")]
    return f"{where(result)}.\n\n{table(columns, rows)}"


def engines(result: Result) -> str:
    """Calls of a running vLLM server: by client, by choice, and what the first request of a tool set pays."""
    kinds = ("valid", "text", "closed", "cut", "refused", "invalid", "lost", "error")
    clients = [(label, one) for label, server in result["servers"].items() for one in server["clients"]]
    rows = [
        [label, one["client"], one["requests"], *(one[kind] for kind in kinds), one["tokens"], int(one["steps"])]
        for label, one in clients
    ]
    by_choice = [
        [label, one["client"], choice, *(found.get(kind, 0) for kind in kinds)]
        for label, one in clients
        for choice, found in one["by_choice"].items()
    ]
    first = [[label, *server["first"].values()] for label, server in result["servers"].items() if "first" in server]
    columns = ("server", "tool sets", "refused", "first request, ms", "again, ms", "difference, ms", "longest, ms")
    return "\n\n".join(
        (
            table(("server", "client", "requests", *kinds, "tokens", "steps"), rows),
            table(("server", "client", "choice", *kinds), by_choice),
            table(columns, first),
        )
    )


def engine_steps(report: Result) -> str:
    """vLLM's engine: drafts, masks in a step, budgets and reasoning, those that were measured."""
    parts = []
    if (found := report.get("drafts")) is not None:
        names = ("tokens", "accepted", "steps_per_call", "same_tokens", "same_texts", "chosen", "otherwise", "steps")
        rows = [[name, found["calls"], *(run[of] for of in names)] for name, run in found.items() if name != "calls"]
        columns = (
            *("drafts", "calls", "tokens", "accepted drafts", "steps of a call", "same tokens", "same texts"),
            *("choices of the model", "not its first", "steps of the engine"),
        )
        parts.append(table(columns, rows))
    if (found := report.get("share")) is not None:
        columns = ("masks", "texts", "valid", "tokens", "step, ms", "masks, ms", "accepting, ms", "share")
        rows = [
            [
                f"{backend}, {attempt}",
                one["answers"],
                one["valid"],
                one["tokens"],
                *(one[name] for name in ("step_ms", "masks_ms", "accept_ms")),
                f"{one['share']:.2%}",
            ]
            for backend, both in found.items()
            for attempt, one in both.items()
        ]
        parts.append(table(columns, rows))
    if (found := report.get("budgets")) is not None:
        columns = ("answers", "valid", "closed", "invalid")
        parts.append(table(columns, [[found[name] for name in columns]]))
    if (found := report.get("thinking")) is not None:
        names = ("answers", "valid", "reasoning_only", "too_little_left", "invalid")
        rows = [[most, *(one[name] for name in names)] for most, one in found.items()]
        columns = ("max_tokens", "answers", "valid", "reasoning only", "too little left", "invalid")
        parts.append(table(columns, rows))
    return "\n\n".join(parts)


def engine_rows(report: Result) -> str:
    """Masks of rows under budgets, as the plug-ins fill them."""
    names = ("median", "mean", "longest")
    times = ("first texts, µs a row: median", *names[1:], "again: median", *names[1:])
    rows = []
    for name, found in report["batches"].items():
        first, again = found["first"], found["again"]
        invalid = first["invalid"] + again["invalid"]
        spent = [one[each] for one in (first, again) for each in names]
        rows.append([name, first["texts"] + again["texts"], invalid, *spent])
    return table(("batch", "texts", "invalid", *times), rows)


def share(counts: Mapping[str, Any]) -> str:
    """Return the share of right answers, with its interval."""
    low, high = counts["interval"]
    return f"{counts['right'] / max(1, counts['requests']):.0%} ({low:.0%} to {high:.0%})"


def versus(way: str, counts: Mapping[str, Any]) -> tuple[str, str]:
    """Return how a way compares with ``grammar`` on the same requests, and how likely that is by chance."""
    return ("", "") if way == "grammar" else (f"{counts['more']} / {counts['less']}", f"{counts['chance']:.2f}")


def bfcl_v4(report: Result) -> str:
    """Right answers on BFCL v4, by its own checker: a table for each model, by category."""
    tables = []
    for model, found in report["models"].items():
        if not found["categories"]:
            continue
        ways = list(next(iter(found["categories"].values())))
        rows = [
            [f"`{category}`", counts[ways[0]]["requests"], *(share(counts[way]) for way in ways)]
            for category, counts in found["categories"].items()
        ]
        tables.append(table((model, "requests", *ways), rows))
    return "\n\n".join(tables)


def bfcl_calls(report: Result) -> str:
    """Return a table for each model: valid and right calls by way, where one call is asked for."""
    tables = []
    columns = ("requests", "valid", "right", "more / less right than `grammar`", "by chance", "tokens", "passes")
    for model, found in report["models"].items():
        rows = []
        for way, counts in found["ways"].items():
            beside = versus(way, counts)
            valid = f"{counts['valid'] / max(1, counts['requests']):.0%}"
            rows.append([way, counts["requests"], valid, share(counts), *beside, counts["tokens"], counts["passes"]])
        if rows:
            tables.append(table((model, *columns), rows))
    return "\n\n".join(tables)


def needle_suites(report: Result) -> str:
    """Needle's acceptance suites, by its engine and by this library."""
    columns = ("way", "requests", "right", "no call wanted: right", "more / less right than `grammar`", "by chance")
    rows = []
    for way, counts in report["ways"].items():
        beside = versus(way, counts)
        none = f"{counts['none_right']} of {counts['none_wanted']}"
        rows.append([way, counts["requests"], share(counts), none, *beside])
    return table(columns, rows)


def sureness(report: Result) -> str:
    """How often a choice is right, by its probability."""
    rows = []
    for kind in ("tools", "values"):
        found = report[kind]
        for each in found["bins"]:
            span = f"{each['from']:g} to {each['to']:g}"
            rows.append([kind, span, each["count"], f"{each['mean']:.2f}", f"{each['right']:.0%}"])
        rows.append([kind, "all: calibration error", found["count"], f"{found['error']:.2f}", ""])
    return table((report["model"], "probability", "choices", "mean probability", "right"), rows)


def seen_ids(report: Result) -> str:
    """Calls with ids that do not exist in BFCL's simulators, and calls with the right ids."""
    said = {"free": "any text or number", "seen": "`Seen` in results, or in a message of the user"}
    rows = []
    for way in report["ways"]:
        shares = [interval(way[name], way["asked"]) for name in ("invented", "right")]
        rows.append([said[way["way"]], way["asked"], way["asked"] - way["offered"], *shares])
    columns = ("calls", "not offered", "with an id that does not exist", "all ids right")
    return table((report["model"], *columns), rows)


def tools_in_prompt(report: Result) -> str:
    """Prompt tokens, times and right calls, by the number of tools and by what the prompt has of them."""
    columns = (
        "tools",
        "in the prompt",
        "prompt tokens",
        "first token, s",
        "whole call, s",
        "right function",
        "all right",
    )
    rows = []
    for row in report["cells"]:
        tools = "own" if row["tools"] == 0 else f"own and {row['tools']:,}"
        if "overflow" in row:
            rows.append([tools, row["way"], row["overflow"], "does not fit", "", "", ""])
            continue
        shares = [interval(row[name], row["asked"]) for name in ("function", "right")]
        rows.append([tools, row["way"], row["prompt"], row["first"], row["seconds"], *shares])
    return table(columns, rows)


def vllm_faults(result: Result) -> str:
    """vLLM's engine under random combinations of features, by engine."""
    outcomes = ("valid", "closed", "cut", "no room", "reasoning only", "stopped", "plain", "aborted")
    counted = ("preemptions", "drafts", "invalid", "lost")
    rows = [
        [
            name,
            sum(found["outcomes"].values()),
            *(found["outcomes"].get(each, 0) for each in outcomes),
            *(found["counts"].get(each, 0) for each in counted),
        ]
        for name, found in result["settings"].items()
    ]
    rows.append(["all", *(sum(column) for column in list(zip(*rows, strict=True))[1:])])
    return table(("engine", "requests", *outcomes, *counted), rows)


def sglang_engine(result: Result) -> str:
    """SGLang's whole engine on a CPU."""
    columns = ("requests", "valid", "cut", "refused", "invalid", "tokens", "seconds")
    rows = [[name, *(found[column] for column in columns)] for name, found in result["backends"].items()]
    return table(("backend", *columns), rows)


#: The results that the summary is made of.
SUMMARISED = ("maskbench", "real_model")


def summary(results: Result) -> str:
    """What a token, a schema and a call cost, beside others: the picture, and two short tables."""
    found: Mapping[str, Any] = results["maskbench"]["engines"]
    mask, first = "mask_and_accept_us", "compile_and_first_mask_us"
    of = f"{results['maskbench']['schemas']:,}"
    rows = [
        ["a mask and its token, median", *(f"{figures(each['common'][mask]['p50'])} µs" for each in found.values())],
        ["the same, mean", *(f"{figures(each['common'][mask]['mean'])} µs" for each in found.values())],
        ["the same, 99th percentile", *(f"{figures(each['common'][mask]['p99'])} µs" for each in found.values())],
        ["a new schema up to its first mask, median",
         *(f"{figures(each['common'][first]['p50'])} µs" for each in found.values())],
        [f"schemas compiled, of {of}", *(each["schemas_compiled"] for each in found.values())],
        ["invalid texts accepted", *(each["instances"]["too_lax"] for each in found.values())],
        ["valid texts refused", *(each["instances"]["too_strict"] for each in found.values())],
        ["memory of the process", *(f"{each['peak_memory_mb']:,} MB" for each in found.values())],
    ]  # fmt: skip
    ways: Mapping[str, Any] = results["real_model"]["ways"]
    shown = ("grammar", "xgrammar's masks", "llguidance's masks", "free text, parsed")
    calls = [
        ["toolgrammar" if way == "grammar" else way, ways[way]["valid"], ways[way]["cut"], ways[way]["passes"],
         f"{ways[way]['seconds']:,.0f} s"]
        for way in shown
    ]  # fmt: skip
    asked = results["real_model"]["requests"]
    return "\n\n".join(
        (
            f"![Median cost of a mask and of a new schema, by engine](images/{COSTS.name})",
            table(("", *(f"{name} {each['version']}" for name, each in found.items())), rows),
            f"{asked} requests to `{results['real_model']['model']}`, one call each:",
            table(("", "valid calls", "cut by the budget", "forward passes", "time"), calls),
        )
    )


def costs_picture(result: Result) -> str:
    """The picture of the summary, as SVG."""
    engines = result["engines"]

    def panel(title: str, key: str) -> Bars:
        return Bars(title, {name: found["common"][key]["p50"] for name, found in engines.items()})

    both = (panel("A mask and its token", "mask_and_accept_us"),
            panel("A new schema, up to its first mask", "compile_and_first_mask_us"))  # fmt: skip
    return bars("Median cost of a mask and of a new schema, by engine", both, "toolgrammar")


TABLES: dict[str, Callable[[Result], str]] = {
    "summary": summary,
    "maskbench": masks,
    "maskbench_order": masks,
    "maskbench_all": masks,
    "maskbench_all_order": masks,
    "maskbench_peers": masks,
    "gpu_steps": gpu_steps,
    "over_constraint": over_constraint,
    "verdicts": below_machine(verdicts_by_family),
    "matrix": matrix,
    "mask_verifier": mask_verifier,
    "decisions": below_machine(decisions_table),
    "text_grammars": text_grammars,
    "growth": growth,
    "batch": batch,
    "serving": serving,
    "decoding": decoding,
    "tool_sets": tool_sets,
    "memory": memory,
    "engines": below_machine(engines),
    "engine_rows": below_machine(engine_rows),
    "sureness": below_machine(sureness),
    "seen_ids": below_machine(seen_ids),
    "tools_in_prompt": below_machine(tools_in_prompt),
    "bfcl_v4": below_machine(bfcl_v4),
    "bfcl_calls": below_machine(bfcl_calls),
    "needle_suites": below_machine(needle_suites),
    "engine_steps": below_machine(engine_steps),
    "sglang_engine": below_machine(sglang_engine),
    "vllm_faults": below_machine(vllm_faults),
    "vocabulary_cost": vocabulary,
    "real_model": real_model,
    "real_model_choice": real_model,
    "numpy_model": numpy_model,
    "templates": below_machine(templates_table),
    "turns": below_machine(turns_table),
    "vllm_parsers": below_machine(vllm_parsers_table),
    "sglang_parsers": below_machine(vllm_parsers_table),
    "llama_cpp_cases": below_machine(llama_cpp_table),
    "exports": below_machine(exports_table),
    "remote_servers": below_machine(servers_table),
    "text_grammar_tokens": below_machine(tokens_table),
    "text_grammar_verdicts": below_machine(verdicts_table),
    "repair": repair,
}


def kept(name: str) -> Result | None:
    """A result, if it is kept; that of the summary is several."""
    if name == "summary":
        results = {each: kept(each) for each in SUMMARISED}
        return None if None in results.values() else results
    path = RESULTS / f"{name}.json"
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else None


def written(page: str, results: Callable[[str], Result | None] = kept) -> str:
    """A page with its tables as the results have them.

    Raises:
        ValueError: a table that nobody writes, a comment without its other half.
    """
    found = [match[2] for match in BLOCK.finditer(page)]
    if unknown := set(found) - set(TABLES):
        raise ValueError(f"nobody writes the table {sorted(unknown)[0]}; there are {', '.join(TABLES)}")
    if page.count(": written by benchmarks/report.py -->") != len(found):
        raise ValueError("a table's first comment has no last one")

    def anew(match: re.Match[str]) -> str:
        result = results(match[2])
        return match[0] if result is None else f"{match[1]}{TABLES[match[2]](result)}\n{match[4]}"

    return BLOCK.sub(anew, page)


def main() -> int:
    """Write the page and the picture, or say whether they are as the results are."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing; exit with 1 if something would change")
    options = parser.parse_args()
    texts = {page: written(page.read_text(encoding="utf-8")) for page in PAGES}
    if (result := kept("growth")) is not None:
        texts[PICTURE] = growth_picture(result)
    if (result := kept("maskbench")) is not None:
        texts[COSTS] = costs_picture(result)
    stale = [path for path, text in texts.items() if not path.is_file() or path.read_text(encoding="utf-8") != text]
    for path in stale:
        if not options.check:
            path.parent.mkdir(exist_ok=True)
            path.write_text(texts[path], encoding="utf-8")
        print(f"{'stale' if options.check else 'written'}: {path.relative_to(HERE.parent)}")
    return 1 if stale and options.check else 0


if __name__ == "__main__":
    sys.exit(main())
