"""Tables and pictures of what the library costs: time and memory, beside other engines."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks.shared.figure import Bars, Line, Panel, bars, chart
from benchmarks.shared.results_io import SHARES, Result, figures, ratio, shares, shows, table, where

IMAGES = Path(__file__).resolve().parents[2] / "docs" / "images"
PICTURE = IMAGES / "growth.svg"
COSTS = IMAGES / "costs.svg"
MB = 2**20
CLOCKS = {"cpu": "processor time of the thread", "wall": "wall time"}
COMPILE_CLOCKS = {"process": " (compiling: of the whole process)"}


@shows("maskbench", "maskbench_order", "maskbench_all", "maskbench_all_order", "maskbench_peers", whole=True)
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


@shows("batch", whole=True)
def batch(result: Result) -> str:
    """Many texts at once."""
    rows = [(engine, what, float(value)) for engine, what, value in result["micros_a_row"]]
    return f"{result['rows']} texts; {where(result)}.\n\n" + table(("engine", "what", "µs a row (median)"), rows)


@shows("gpu_steps", whole=True)
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


@shows("text_grammars", whole=True)
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


@shows("serving", whole=True)
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


@shows("serving_http")
def serving_http(result: Result) -> str:
    """Servers over HTTP with the same model."""
    rows = [
        [
            *(row["engine"], row["what"], row["at_once"], row["tokens"], row["invalid"]),
            *(figures(row["tokens"] / row[kind]) for kind in ("seconds", "wall_seconds")),
        ]
        for row in result["measures"]
    ]
    engines = ", ".join(f"{name} {version}" for name, version in result["engines"].items())
    columns = ["server", "what", "requests at once", "tokens", "invalid", "tokens a second of processor time"]
    return f"{result['requests']} requests; {engines}.\n\n{table([*columns, 'tokens a second'], rows)}"


@shows("server_attack")
def server_attack(result: Result) -> str:
    """A server beside hostile clients."""
    names = {"alone": "alone", "same": "beside clients that send the same", "hostile": "beside hostile clients"}
    rows = []
    for key, name in names.items():
        small, health = result["small_s"][key], result["health_ms"][key]
        row = [name, result["small_per_second"][key], result["small_per_processor_second"][key]]
        row += [sum(result["small_not_answered"][key].values())]
        row += [small.get("p50", ""), small.get("p99", "")]
        rows.append([*row, *(health.get(part, "") for part in ("p50", "p99", "worst"))])
    columns = ["small clients", "answers/s", "answers/s of the server's processor time", "not answered", "p50, s"]
    columns += ["p99, s", "`/health` p50, ms", "p99, ms", "worst, ms"]
    kept, end = result["share_kept"], result["sigterm_s"]
    return (
        f"{result['clients']['small']} small clients and {result['clients']['hostile']} others, "
        f"{result['hostile_seconds']:.0f} s of hostile load; load average of the machine {result['load_average']}.\n\n"
        f"{table(columns, rows)}\n\n"
        f"Beside hostile clients, {kept['of_alone']:.0%} of the answers alone are kept, and {kept['of_same']:.0%} of "
        f"those beside clients that send the same. No request runs {max(result['freed_s'])} s after all have left "
        f"(the longest of {len(result['freed_s'])} times). "
        f"SIGTERM under attack: {'it did not end' if end is None else f'{end} s to the end'}; "
        f"{result['peak_memory_mb']:,} MB at most."
    )


@shows("server_memory")
def server_memory(result: Result) -> str:
    """The resident memory of a server under ever-new schemas."""
    curve = result["peak_mb_by_twentieths"]
    columns = ["start, MB", "peak, MB", "mean of the last half, MB", "slope of the last half, MB a minute", "after, MB"]
    keys = ("start_mb", "peak_mb", "last_half_mean_mb", "last_half_mb_a_minute", "after_mb")
    return (
        f"4 clients, {result['seconds'] / 60:.0f} minutes, {sum(result['requests'].values()):,} requests.\n\n"
        f"{table(columns, [[result[key] for key in keys]])}\n\n"
        f"Peaks of the twentieths of the time, in MB: {', '.join(map(str, curve))}."
    )


@shows("decoding", whole=True)
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


@shows("tool_sets", whole=True)
def tool_sets(result: Result) -> str:
    """Changing tool sets."""
    rows = []
    for name, found in result["engines"].items():
        both = [found.get(key, {}) for key in ("compile_and_first_mask_us", "second_mask_us")]
        times = [each.get(share, "-") for each in both for share in ("p50", "p99")]
        rows.append((name, found["requests"], found["refused"], found["first_pass_seconds"], *times))
    columns = ("engine", "requests", "refused", "all tools once, s", "compile + first mask, us: p50", "p99")
    return f"{where(result)}.\n\n" + table((*columns, "mask at the names, us: p50", "p99"), rows)


@shows("memory", whole=True)
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


@shows("vocabulary_cost", whole=True)
def vocabulary(result: Result) -> str:
    """What it takes to prepare a vocabulary."""
    rows = []
    for name in ("computed, kept nowhere", "computed and written", "read"):
        clock, cpu, hashed = (result[name][key] for key in ("clock_ms", "processor_ms", "of_that_hash_ms"))
        middle = len(clock) // 2
        rows.append((name, clock[0], clock[middle], cpu[middle], hashed[middle]))
    columns = ("", "best, ms", "median, ms", "median of processor time, ms", "of that the content hash, ms")
    return f"{where(result)}.\n\n" + table(columns, rows)


@shows("numpy_model", whole=True)
def numpy_model(result: Result) -> str:
    """What a model costs that NumPy runs."""
    loading = f"loaded in {result['load_seconds']:.1f} s, at most {result['peak_mb']:.0f} MB of memory in all"
    columns = ("kernel", f"reading {result['prompt']} tokens, tokens/s", "writing after them, tokens/s")
    speeds = ("read_per_second", "written_per_second")
    rows = [(way, *(f"{row[speed]:.0f}" for speed in speeds)) for way, row in result["ways"].items()]
    return f"{result['model']}, one thread, {loading}; processor time; {where(result)}.\n\n{table(columns, rows)}"


AXES = {
    "vocabulary": "tokens of the vocabulary",
    "properties": "properties of the schema",
    "depth": "depth of nesting",
    "tools": "tools of the set",
}


@shows("growth", whole=True)
def growth(result: Result) -> str:
    """Growth, as a table (a point that an engine refuses says so); the picture is on the page of performance."""
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
    made = max(map(int, result["sweeps"]["tools"])) - result["tools_of_bfcl"] if "tools" in result["sweeps"] else 0
    tools = f"{result['tools_of_bfcl']:,} tools are of the BFCL sample, {made:,} are made"
    head = f"Microseconds, {CLOCKS[result['clock']]}; {tools}; {where(result)}."
    return f"{head}\n\n{table(columns, rows)}"


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


@shows("engine_rows")
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


@shows("summary", whole=True)
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
    model, answers = next(iter(results["bfcl_calls"]["models"].items()))
    shown = {
        "grammar": "toolgrammar",
        "xgrammar's masks": "xgrammar's masks",
        "llguidance's masks": "llguidance's masks",
        "free text, parsed": "free text, parsed",
    }
    calls = [
        [name, counts["requests"], f"{counts['valid'] / counts['requests']:.1%}", counts["cut"],
         f"{counts['right'] / counts['requests']:.0%}", f"{counts['passes'] / counts['requests']:.0f}"]
        for way, name in shown.items()
        for counts in (answers["ways"][way],)
    ]  # fmt: skip
    return "\n\n".join(
        (
            f"![Median cost of a mask and of a new schema, by engine](images/{COSTS.name})",
            table(("", *(f"{name} {each['version']}" for name, each in found.items())), rows),
            f"Requests of BFCL to {model}, one call each:",
            table(("", "requests", "valid calls", "cut by the budget", "all right", "forward passes of a call"), calls),
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
