"""What the pages show of each result: a function for each, registered by `shows`; most are rows of the same fields.
`show` prints one result, and keeps it."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Union

from benchmarks.shared.figure import bars
from benchmarks.shared.results_io import (
    RESULTS,
    SHARES,
    TABLES,
    Result,
    figures,
    interval,
    machine,
    ratio,
    share,
    shares,
    shows,
    table,
    where,
)

COSTS = Path(__file__).resolve().parents[2] / "docs" / "images" / "costs.svg"
MB = 2**20
CLOCKS = {"cpu": "processor time of the thread", "wall": "wall time"}
COMPILE_CLOCKS = {"process": " (compiling: of the whole process)"}

#: What is in a column: the value of a key, or what a function makes of the record.
Column = Union[str, Callable[[Any], object]]


def records(found: Mapping[Any, Result] | Iterable[Result], columns: Mapping[str, Column], head: str = "") -> str:
    """Return a table with a row for each record.

    Args:
        found: the records, by what the first column shows; or without a first column.
        columns: headings, and what is below them. A record without a key has 0.
        head: heading of the first column.
    """
    named = list(found.items()) if isinstance(found, Mapping) else [(None, record) for record in found]
    rows = []
    for name, record in named:
        cells = [each(record) if callable(each) else record.get(each, 0) for each in columns.values()]
        rows.append(cells if name is None else [name, *cells])
    return table([*columns] if not isinstance(found, Mapping) else [head, *columns], rows)


def plain(*names: str) -> dict[str, Column]:
    """Return columns whose headings are their keys."""
    return {name: name for name in names}


def totals(rows: Sequence[Sequence[Any]]) -> list[Any]:
    """Return the row of the sums of the columns but the first."""
    return ["all", *(sum(column) for column in list(zip(*rows, strict=True))[1:])]


def notable(head: str, kinds: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """Return a table of counts by kind; the rows that have the first kind alone are one row, and the sums the last."""
    same = [row for row in rows if not any(row[2:])]
    shown = [row for row in rows if any(row[2:])]
    if same:
        shown.append([f"{len(same)} others", *totals(same)[1:]])
    return table([head, *kinds], [*shown, totals(rows)])


def beside(ways: Mapping[str, Any], base: str, heading: str = "") -> dict[str, Column]:
    """Return columns that compare each way with one of them on the same requests; those of this one are empty."""

    def shown(cell: Callable[[Any], str]) -> Column:
        return lambda counts: "" if counts is ways.get(base) else cell(counts)

    return {
        f"more / less right than {heading or base}": shown(lambda counts: f"{counts['more']} / {counts['less']}"),
        "by chance": shown(lambda counts: f"{counts['chance']:.2f}"),
    }


def machine_first(result: Result, shown: str, head: str) -> str:
    """Return a table below a line with the machine, which begins with what else is to be said."""
    return f"{head}{where(result, shown)}.\n\n{shown}"


# -- masks ---------------------------------------------------------------------------------------------------------


#: What `maskbench` times, by its key in the results.
TIMED = {"mask_and_accept_us": "mask + accept", "compile_and_first_mask_us": "compile + first mask"}


def times_of_masks(measured: Mapping[str, Mapping[str, Any]], names: Mapping[str, str], *, multiples: bool) -> str:
    """Return the distributions of the times of engines.

    Args:
        measured: the distributions of each engine, by the keys of `TIMED`.
        names: of the engines, with versions.
        multiples: below each kind of times come ours divided by those of each other engine.
    """
    rows = []
    for key, what in TIMED.items():
        rows += [[f"{what}: {names[engine]}", *shares(found[key])] for engine, found in measured.items() if found[key]]
        for engine, found in measured.items() if multiples else ():
            if engine != "toolgrammar":
                ratios = [ratio(measured["toolgrammar"][key][share] / found[key][share]) for share in SHARES]
                rows.append([f"*toolgrammar's, as a multiple of {engine}'s*", *ratios])
    for engine, found in measured.items():
        if found.get("warm_us"):
            rows.append([f"{TIMED['mask_and_accept_us']}, the same texts again: {names[engine]}",
                         *shares(found["warm_us"])])  # fmt: skip
    return table(("", *SHARES), rows)


def settings_of_masks(result: Result) -> str:
    """Return the line above the tables of `maskbench`: what was measured, and how."""
    order = "any order" if result["order"] == "any" else "the schema's order"
    block = result.get("block", 1)
    at_work = f"each engine gets {block:,} schemas at a time" if block > 1 else "one process wake-up for each schema"
    clock = CLOCKS[result["clock"]] + COMPILE_CLOCKS.get(result.get("compile_clock"), "")
    reading = ", without the time to read the clock" if result.get("without_clock") else ""
    words = f" {result['vocabulary']:,} tokens;" if "vocabulary" in result else ""
    spacing = ' whitespace "single";' if result.get("whitespace") == "single" else ""
    return (
        f"{result['schemas']:,} schemas, properties in {order}; {at_work}; microseconds, {clock}{reading};"
        f" {'compiled' if result['compiled'] else 'interpreted'} kernel;{words}{spacing} {where(result)}."
    )


#: Results of `maskbench`: of its sample, of all its schemas, of all peers, and of the schemas of packages.
MASKBENCH = ("maskbench", "maskbench_all", "maskbench_peers", "maskbench_packages")


@shows(*MASKBENCH, *(f"{name}_order" for name in MASKBENCH), "maskbench_32k", "maskbench_262k", "xgrammar", whole=True)
def masks(result: Result) -> str:
    """MaskBench: times of all engines, the same on the schemas that all of them take, and verdicts."""
    engines: Mapping[str, Any] = result["engines"]
    names = {name: f"{name} {found['version']}" for name, found in engines.items()}
    parts = [settings_of_masks(result), times_of_masks(engines, names, multiples=False)]
    common = {name: found.get("common") or {} for name, found in engines.items()}
    common = {name: found for name, found in common.items() if found.get("mask_and_accept_us")}
    if len(common) > 1 and "toolgrammar" in common:
        count = common["toolgrammar"]["schemas"]
        parts += [
            f"The same on the {count:,} schemas that all engines compile:",
            times_of_masks(common, names, multiples=True),
        ]
    verdicts: dict[str, Column] = {
        "compiled": "schemas_compiled",
        "all their instances judged right": "schemas_right",
        "invalid accepted": lambda found: found["instances"]["too_lax"],
        "valid refused": lambda found: found["instances"]["too_strict"],
        "schemas refused": lambda found: found.get("schemas_refused", sum(found["refused"].values())),
        "peak memory of the process, MB": "peak_memory_mb",
    }
    parts.append(records({names[name]: found for name, found in engines.items()}, verdicts))
    for name, found in engines.items():
        if found.get("mask_differs"):
            parts.append(f"{name} has masks that contradict its own verdicts in {found['mask_differs']:,} instances.")
        if name == "toolgrammar" or any(reason.startswith("no answer") for reason in found["refused"]):
            reasons = ", ".join(f"{count} {reason}" for reason, count in found["refused"].items())
            parts.append(f"Refused by {name}: {reasons or 'none'}.")
    return "\n\n".join(parts)


#: Verdicts about a schema, as `verdicts.py` counts them.
VERDICTS = {"right": "right", "too_strict": "valid refused", "too_lax": "invalid accepted", "refused": "refused"}


@shows("verdicts")
def verdicts_by_family(result: Result) -> str:
    """Which schemas engines judge right: all of them by verdict, and the right ones by family."""
    engines: Mapping[str, Any] = result["engines"]
    columns: dict[str, Column] = {"version": "version"}
    for key, name in VERDICTS.items():
        columns[name] = lambda found, key=key: sum(counts.get(key, 0) for counts in found["families"].values())
    whole = records(engines, columns, "engine")
    families = next(iter(engines.values()))["families"]
    rows = [
        (family, counts["schemas"], *(found["families"][family].get("right", 0) for found in engines.values()))
        for family, counts in families.items()
    ]

    def reasons(found: Result) -> str:
        listed = list(found["refused"].items())[:5]
        return "; ".join(f"{reason.replace('|', ' ')} ({count:,})" for reason, count in listed)

    refused = records(engines, {"most frequent reasons of refusals": reasons}, "engine")
    return "\n\n".join((whole, table(["right, by source", "schemas", *engines], rows), refused))


@shows("proven_errors")
def proven_errors_table(result: Result) -> str:
    """Schemas with an error of the masks, by engine."""
    columns = {**plain("version", "compiled"), "over-constrained": "over", "under-constrained": "under"}
    columns |= {"dead end": "stuck", "no error found": "clean", "refused": "refused"}
    return records(result["engines"], columns, "engine")


@shows("mask_verifier", whole=True)
def mask_verifier(result: Result) -> str:
    """What the verifier of masks has compared."""
    columns = plain("cases", "finite cases", "masks", "tokens in masks", "texts judged", "differences")
    versions = ", ".join(f"{name} {version}" for name, version in result["versions"].items())
    return f"{versions}.\n\n{records([result['counts']], columns)}"


@shows("batch", whole=True)
def batch(result: Result) -> str:
    """Many texts at once."""
    rows = [(engine, what, float(value)) for engine, what, value in result["micros_a_row"]]
    return machine_first(result, table(("engine", "what", "µs a row (median)"), rows), f"{result['rows']} texts; ")


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
    head = f"{result['device']}, {result['context']:,} tokens in each row's cache, {result['steps']} steps; "
    columns = ("rows", "masks of", "a step, ms: median", "95th percentile", "more than free")
    return machine_first(result, table(columns, rows), head)


@shows("tool_sets")
def tool_sets(result: Result) -> str:
    """Changing tool sets."""
    rows = []
    for name, found in result["engines"].items():
        both = [found.get(key, {}) for key in ("compile_and_first_mask_us", "second_mask_us")]
        times = [each.get(share, "-") for each in both for share in ("p50", "p99")]
        rows.append((name, found["requests"], found["refused"], found["first_pass_seconds"], *times))
    columns = ("engine", "requests", "refused", "all tools once, s", "compile + first mask, us: p50", "p99")
    return table((*columns, "mask at the names, us: p50", "p99"), rows)


# -- grammars as text, and exports ---------------------------------------------------------------------------------


@shows("text_grammars")
def text_grammars(result: Result) -> str:
    """Masks of grammars that are written as text."""
    columns = {"p50, µs": "p50_us", "p99, µs": "p99_us", "mean, µs": "mean_us", "compile, ms": "compile_ms"}
    rows = [
        {"grammar": grammar, "engine": engine, **row}
        for grammar, engines in result["masks"].items()
        for engine, row in engines.items()
    ]
    return records(rows, {**plain("grammar", "engine", "tokens"), **columns})


@shows("text_grammar_verdicts")
def verdicts_table(result: Result) -> str:
    """What peers and we say of texts of grammars, by where the grammars come from."""
    rows = [
        {"grammars": source, "peer": peer, **counts}
        for source, peers in result["sources"].items()
        for peer, counts in peers.items()
        if peer != "own"
    ]
    both = ("read by both", "refused by both", "read by us alone", "read by the peer alone")
    texts = ("texts", "valid", "accepted by us alone", "accepted by the peer alone")
    return records(rows, plain("grammars", "peer", *both, *texts))


#: Notations of exports, and who reads them.
NOTATIONS = {"gbnf": "GBNF, llama.cpp", "ebnf": "EBNF, xgrammar", "lark": "Lark, llguidance", "regex": "regex, `re`"}


@shows("exports")
def exports_table(result: Result) -> str:
    """What targets made of exported schemas, by notation."""

    def named(found: Mapping[str, Any]) -> dict[str, Any]:
        return {NOTATIONS[name]: each for name, each in found.items()}

    loaded = ("exported", "exact", "not exported", "not loaded", "timed out", "crashed")
    judged = ("texts", "valid", "not judged", "refused, ours", "accepted, unnamed", "accepted, named")
    parts = [
        f"{result['schemas']:,} of {result['of']:,} schemas. "
        f'"Timed out" is {result["deadline"]} seconds of processor time.',
        records(named(result["counts"]), plain(*loaded, *judged)),
        "Sizes in characters:",
        records(named(result["characters"]), plain("p50", "p90", "p99", "worst")),
    ]
    reasons: dict[str, dict[str, int]] = {}
    for name, found in named(result["reasons"]).items():
        for why, number in found.items():
            reasons.setdefault(why, {})[name] = number
    if reasons:
        ordered = dict(sorted(reasons.items(), key=lambda item: (-max(item[1].values()), item[0])))
        parts += ["Refusals by reason:", records(ordered, plain(*NOTATIONS.values()), "schemas")]
    return "\n\n".join(parts)


# -- formats and templates -----------------------------------------------------------------------------------------


@shows("templates")
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


@shows("turns")
def turns_table(result: Result) -> str:
    """Templates with which models of random weights talk for three turns, by backend."""
    rows = [
        [f"`{backend}:`", f"{passed} of {passed + len(failed)}", ", ".join(failed)]
        for backend, passed in result["passed"].items()
        for failed in (result["failed"][backend],)
    ]
    return table(["models", "templates that pass", "fail"], rows)


@shows("vllm_parsers", "sglang_parsers")
def vllm_parsers_table(result: Result) -> str:
    """The tests that vLLM or SGLang has for its tool parsers, by file or class."""
    rows = [[name, counts["passed"], counts["failed"], counts["skipped"]] for name, counts in result["files"].items()]
    tests = notable("tests of", ("pass", "fail", "no format"), rows)
    causes = sorted(result["causes"], key=lambda each: (each["whose"], -each["tests"]))
    why = records(causes, {"whose": "whose", "cause of failures": "cause", "tests": "tests"})
    return f"{tests}\n\n{why}"


@shows("llama_cpp_cases")
def llama_cpp_table(result: Result) -> str:
    """llama.cpp's cases, by template."""
    kinds = ["same calls", "other calls", "no format", "depends on the cut"]
    rows = [[name, *(counts.get(kind, 0) for kind in kinds)] for name, counts in result["templates"].items()]
    return notable("template", kinds, rows)


# -- answers of models ---------------------------------------------------------------------------------------------

#: Kinds of questions of `decisions.py`.
FAMILIES = ("intents", "prices", "addresses")


@shows("decisions")
def decisions_table(result: Result) -> str:
    """How often other scores than those of the whole labels choose another label, and which are right."""
    rows: list[list[object]] = []
    for name, count in result["methods"].items():
        families = [
            f"{count.get(f'right: {family}', 0)} of {count.get(f'questions: {family}', 0)}" for family in FAMILIES
        ]
        other, exact = ("", "") if name == "whole labels" else (count["other"], count["exact right"])
        rows.append([name, count["questions"], other, count["right"], exact, *families])
    head = ["method", "questions", "another label than the exact choice", "right", "right by the exact choice"]
    return table([*head, *FAMILIES], rows)


@shows("repair")
def repair(result: Result) -> str:
    """Damaged calls, by damage."""
    damages = {name: counts for name, counts in result.items() if name != "machine"}
    peers = [name.removesuffix(" valid") for name in result["all but cut"] if name.endswith(" valid")]
    columns = ["damage", "cases", "valid", "equal", "invented", "ms: p50", "p99"]
    columns += [head for peer in peers for head in (f"{peer}: valid", "equal")]
    rows = []
    for damage, counts in damages.items():
        parts = [f"{of}{name}" for of in ("", *(f"{peer} " for peer in peers)) for name in ("valid", "equal")]
        found = [f"{counts.get(part, 0) / counts['cases']:.1%}" for part in parts]
        times = [figures(counts[f"{each}_ms"]) for each in ("p50", "p99")]
        rows.append([damage, counts["cases"], *found[:2], counts.get("invented", 0), *times, *found[2:]])
    return table(columns, rows)


@shows("bfcl_v4")
def bfcl_v4(report: Result) -> str:
    """Right answers on BFCL v4, by its own checker: a table for each model, by category."""
    tables = []
    for model, found in report["models"].items():
        if found["categories"]:
            ways = list(next(iter(found["categories"].values())))
            columns: dict[str, Column] = {"requests": lambda counts, way=ways[0]: counts[way]["requests"]}
            columns |= {way: lambda counts, way=way: share(counts[way]) for way in ways}
            tables.append(records({f"`{name}`": each for name, each in found["categories"].items()}, columns, model))
    return "\n\n".join(tables)


@shows("bfcl_calls")
def bfcl_calls(report: Result) -> str:
    """Return a table for each model: valid and right calls by way, where one call is asked for."""

    def part(name: str) -> Column:
        return lambda counts: f"{counts[name] / max(1, counts['requests']):.0%}"

    tables = []
    for model, ways in ((model, found["ways"]) for model, found in report["models"].items() if found["ways"]):
        columns = {"requests": "requests", "valid": part("valid"), "cut": "cut", "right function": part("function")}
        columns |= {"all right": share, **beside(ways, "grammar", "`grammar`"), **plain("tokens", "passes")}
        tables.append(records(ways, columns, model))
    return "\n\n".join(tables)


@shows("sureness")
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


@shows("seen_ids")
def seen_ids(report: Result) -> str:
    """Calls with ids that do not exist in BFCL's simulators, and calls with the right ids."""
    said = {
        "free": "any text or number",
        "seen": "`Seen` in results and calls, or in a message of the user",
        "grounded": "types of ids, under `Policy.grounded`",
    }
    columns: dict[str, Column] = {
        "calls": "requests",
        "not offered": lambda counts: counts["requests"] - counts["offered"],
        "with an id that does not exist": lambda counts: interval(counts["invented"], counts["requests"]),
        "all ids right": share,
    }
    return records({said[way]: counts for way, counts in report["ways"].items()}, columns, report["model"])


@shows("agentdojo")
def agentdojo(report: Result) -> str:
    """AgentDojo's tasks and injections under the policies of its suites."""
    columns: dict[str, Column] = {
        "tasks of the user writable": lambda row: f"{row['writable']} of {row['tasks']}",
        "of these, a person confirms": "with_a_person",
        "injections with a sink impossible": lambda row: f"{row['impossible']} of {row['sinks']}",
        "attacks": "attacks",
        "succeed without a policy": "free",
        "succeed with it": lambda row: sum(row["succeeded"].values()),
        "a person is asked": "asked",
    }
    rows = {row["suite"]: row for row in report["suites"]}
    names = ("writable", "with_a_person", "tasks", "impossible", "sinks", "attacks", "free", "asked")
    whole: dict[str, Any] = {name: sum(row[name] for row in rows.values()) for name in names}
    whole["succeeded"] = {name: sum(row["succeeded"].values()) for name, row in rows.items()}
    return records({**rows, "all": whole}, columns, "suite")


@shows("bfcl_multi_turn")
def bfcl_multi_turn(report: Result) -> str:
    """Turns of BFCL's conversations, by its own checker."""
    columns: dict[str, Column] = {"turns": "requests", "right": share}
    columns |= beside(report["ways"], "free text, parsed", "free text")
    columns["ended"] = lambda counts: interval(counts["ended"], counts["requests"])
    columns |= {"in silence": "silent", "without a call": "no_call", "calls": "calls", "repeated calls": "repeated"}
    return records(report["ways"], columns, report["model"])


@shows("on_repeat")
def on_repeat(report: Result) -> str:
    """Turns of BFCL's conversations in which a model repeated its calls, by what is done then."""
    tables = []
    for found in report["models"]:
        columns: dict[str, Column] = {"turns": "requests", "right": share}
        columns |= {**beside(found["ways"], "no further call"), "calls": "calls"}
        tables.append(records(found["ways"], columns, found["model"]))
    return "\n\n".join(tables)


@shows("programs")
def programs(report: Result) -> str:
    """Tasks of dependent calls, by the way of writing the calls, for each model; and the right ones by source."""
    parts = []
    for found in report["models"]:
        ways = found["ways"]
        columns: dict[str, Column] = {"right": share, **beside(ways, "single calls")}
        columns |= {"ended well": "ran", **plain("calls", "passes")}
        played = next(iter(ways.values()))["requests"]
        parts.append(records(ways, columns, f"{found['model']}, {played} of {found['tasks']} tasks"))
        columns = {"tasks": "requests", **{way: lambda one, way=way: one["right"][way] for way in ways}}
        parts.append(records(found["sources"], columns, "right, by source"))
    return "\n\n".join(parts)


@shows("tools_in_prompt")
def tools_in_prompt(report: Result) -> str:
    """Prompt tokens, times and right calls, by the number of tools and by what the prompt has of them."""
    columns = ("tools", "in the prompt", "prompt tokens", "first token, s", "whole call, s", "right function")
    rows = []
    for row in report["cells"]:
        tools = "own" if row["tools"] == 0 else f"own and {row['tools']:,}"
        if "overflow" in row:
            rows.append([tools, row["way"], row["overflow"], "does not fit", "", "", ""])
            continue
        found = [interval(row[name], row["asked"]) for name in ("function", "right")]
        rows.append([tools, row["way"], row["prompt"], row["first"], row["seconds"], *found])
    return table((*columns, "all right"), rows)


@shows("fuzz_peers", "fuzz_servers")
def fuzz_peers(result: Result) -> str:
    """Faults of servers that ways of drawing calls find."""
    ways = ("ours", "hypothesis-jsonschema", "chance")
    rows = [[fault, *found.values()] for fault, found in result["faults"].items()]
    said = f"{result['calls']} calls; times found of {result['seeds']}; hypothesis-jsonschema {result['theirs']}."
    return f"{said}\n\n{table(['fault', *ways], [*rows, totals(rows)])}"


@shows("contracts")
def contracts(result: Result) -> str:
    """Pairs of schemas with one change, by the kind of the change."""

    def asked(found: Result) -> int:
        return int(found["pairs"] - found["refused"])

    every, judged = result["all"], result["all"]["judged"]
    columns: dict[str, Column] = {
        "pairs": asked,
        "decided": lambda found: f"{found['decided']:,} ({found['decided'] / max(1, asked(found)):.1%})",
        "compatible": "compatible",
        "breaks": "broken",
        "wrong": lambda found: found["judged"].get("wrong", 0),
        "decided by jsonschema-rs": lambda found: f"{sum(found['theirs'].get(said, 0) for said in ('yes', 'no')):,}",
        "p50 / p99 (ms)": lambda found: f"{figures(found['p50_ms'])} / {figures(found['p99_ms'])}",
    }
    said = records({**result["kinds"], "all": every}, columns, "change")
    reasons: Counter[str] = Counter()
    for reason, count in result["undecided"].items():
        reasons[re.sub(r"^in the (first|second): |, only without .*| \(at .*", "", reason)] += count
    undecided = "".join(f"- {count:,} times: {reason}\n" for reason, count in reasons.most_common())
    return (
        f"{said}\n\nBoth validators confirmed {judged.get('confirmed', 0):,} witnesses of both directions; "
        f"they differ from each other on {judged.get('unclear', 0):,}. "
        f"{judged.get('attacks', 0):,} valid values attacked {judged.get('proved', 0):,} inclusions, "
        f"{judged.get('attacks', 0) / max(1, judged.get('proved', 0)):,.0f} on average "
        f"and at most {result['draws']:,} each: 20 drawn texts, valid instances of MaskBench, and edits of these that "
        "are still valid. "
        f"Of the pairs with two answers, {every['contradict']:,} contradict jsonschema-rs. "
        f"{every['refused']:,} pairs have a schema that is refused by itself.\n\nUndecided, by the first reason:\n\n"
        f"{undecided}"
    )


# -- engines and servers -------------------------------------------------------------------------------------------


@shows("matrix", whole=True)
def matrix(result: Result) -> str:
    """The recorded environments: versions, tests and days."""
    pythons = sorted({row["python"] for row in result["rows"].values()})
    columns: dict[str, Column] = {"version": "package", "tests passed": "passed", **plain("failed", "skipped", "date")}
    shown = records({f"`{name}`": row for name, row in result["rows"].items()}, columns, "row")
    return f"Python {', '.join(pythons)}.\n\n{shown}"


@shows("remote_servers")
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
        for name, found in sorted(clients.items()):
            first, total = found["first"], sum(found["first"].values())
            ended = total - sum(first.get(kind, 0) for kind in ("cut", "refused", "refused schema"))
            row = {"server": label, "client": name, "valid at first": first.get("valid", 0), "requests": total}
            row["form"] = ", ".join(form for form in found["forms"] if form != "none")
            row["of those neither cut nor refused"] = f"{first.get('valid', 0) / ended:.1%}" if ended else ""
            row |= {kind: sum(first.get(each, 0) for each in of) for kind, of in kinds.items()}
            row |= {"valid in the end": found["passed"].get("valid", 0), "sent": found["requests"]}
            rows.append({**row, "tokens": found["tokens"]})
    head = ("server", "client", "form", "requests", "valid at first", "of those neither cut nor refused")
    return records(rows, plain(*head, *kinds, "valid in the end", "sent", "tokens"))


@shows("engine_steps")
def engine_steps(report: Result) -> str:
    """vLLM's engine: drafts, and masks in a step, those that were measured."""
    parts = []
    if (found := report.get("drafts")) is not None:
        columns: dict[str, Column] = {
            "calls": lambda _: found["calls"],
            "tokens": "tokens",
            "accepted drafts": "accepted",
            "steps of a call": "steps_per_call",
            "same tokens": "same_tokens",
            "same texts": "same_texts",
            "choices of the model": "chosen",
            "not its first": "otherwise",
            "steps of the engine": "steps",
        }
        parts.append(records({name: run for name, run in found.items() if name != "calls"}, columns, "drafts"))
    if (found := report.get("share")) is not None:
        columns = {"texts": "answers", **plain("valid", "tokens"), "step, ms": "step_ms", "masks, ms": "masks_ms"}
        columns |= {"accepting, ms": "accept_ms", "share": lambda one: f"{one['share']:.2%}"}
        both = {f"{backend}, {attempt}": one for backend, both in found.items() for attempt, one in both.items()}
        parts.append(records(both, columns, "masks"))
    return "\n\n".join(parts)


@shows("vllm_faults")
def vllm_faults(result: Result) -> str:
    """vLLM's engine under random combinations of features, by engine."""
    outcomes = ("valid", "closed", "cut", "no room", "reasoning only", "stopped", "plain", "aborted")
    counted = ("preemptions", "drafts", "wrong drafts", "invalid", "lost")
    rows = [
        [name, sum(found["outcomes"].values()),
         *(found["outcomes"].get(each, 0) for each in outcomes), *(found["counts"].get(each, 0) for each in counted)]
        for name, found in result["settings"].items()
    ]  # fmt: skip
    return table(("engine", "requests", *outcomes, *counted), [*rows, totals(rows)])


@shows("sglang_engine")
def sglang_engine(result: Result) -> str:
    """SGLang's whole engine on a CPU."""
    columns = plain("requests", "valid", "cut", "refused", "invalid", "tokens", "seconds")
    return records(result["backends"], columns, "backend")


def _engines(result: Result) -> str:
    return ", ".join(f"{name} {version}" for name, version in result["engines"].items())


@shows("serving_http")
def serving_http(result: Result) -> str:
    """Servers over HTTP with the same model."""
    columns: dict[str, Column] = {"server": "engine", "what": "what", "requests at once": "at_once"}
    columns |= plain("tokens", "invalid")
    columns["tokens a second of processor time"] = lambda row: figures(row["tokens"] / row["seconds"])
    columns["tokens a second"] = lambda row: figures(row["tokens"] / row["wall_seconds"])
    return f"{result['requests']} requests; {_engines(result)}.\n\n{records(result['measures'], columns)}"


@shows("server_attack")
def server_attack(result: Result) -> str:
    """A server beside hostile clients."""
    names = {"alone": "alone", "same": "beside clients that send the same", "hostile": "beside hostile clients"}

    def of(key: str, part: str) -> Column:
        return lambda name: result[key][name].get(part, "")

    columns: dict[str, Column] = {
        "small clients": lambda name: names[name],
        "answers/s": lambda name: result["small_per_second"][name],
        "answers/s of the server's processor time": lambda name: result["small_per_processor_second"][name],
        "not answered": lambda name: sum(result["small_not_answered"][name].values()),
        "p50, s": of("small_s", "p50"),
        "p99, s": of("small_s", "p99"),
        "`/health` p50, ms": of("health_ms", "p50"),
        "p99, ms": of("health_ms", "p99"),
        "worst, ms": of("health_ms", "worst"),
    }
    kept, end = result["share_kept"], result["sigterm_s"]
    rows = [[each(name) for each in columns.values() if callable(each)] for name in names]
    return (
        f"{result['clients']['small']} small clients and {result['clients']['hostile']} others, "
        f"{result['hostile_seconds']:.0f} s of hostile load; load average of the machine {result['load_average']}.\n\n"
        f"{table([*columns], rows)}\n\n"
        f"Beside hostile clients, {kept['of_alone']:.0%} of the answers alone are kept, and {kept['of_same']:.0%} of "
        f"those beside clients that send the same. No request runs {max(result['freed_s'])} s after all have left "
        f"(the longest of {len(result['freed_s'])} times). "
        f"SIGTERM under attack: {'it did not end' if end is None else f'{end} s to the end'}; "
        f"{result['peak_memory_mb']:,} MB at most."
    )


# -- growth --------------------------------------------------------------------------------------------------------


@shows("memory")
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
    return table(("", "counted, MiB", "resident, MiB", "bound, MiB", "kept"), rows)


@shows("vocabulary_cost")
def vocabulary(result: Result) -> str:
    """What it takes to prepare a vocabulary."""

    def middle(key: str) -> Column:
        return lambda found: found[key][len(found["clock_ms"]) // 2]

    columns: dict[str, Column] = {
        "best, ms": lambda found: found["clock_ms"][0],
        "median, ms": middle("clock_ms"),
        "median of processor time, ms": middle("processor_ms"),
        "of that the content hash, ms": middle("of_that_hash_ms"),
    }
    ways = {name: result[name] for name in ("computed, kept nowhere", "computed and written", "read")}
    return records(ways, columns)


@shows("growth", whole=True)
def growth(result: Result) -> str:
    """Growth; a point that an engine refuses says so."""
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
    return machine_first(result, table(columns, rows), f"Microseconds, {CLOCKS[result['clock']]}; {tools}; ")


@shows("summary", whole=True)
def summary(results: Result) -> str:
    """What a token, a schema and a call cost, beside others: the picture, and two short tables."""
    found: Mapping[str, Any] = results["maskbench"]["engines"]

    def times(key: str, share: str) -> list[str]:
        return [f"{figures(each['common'][key][share])} µs" for each in found.values()]

    mask, of = "mask_and_accept_us", f"{results['maskbench']['schemas']:,}"
    rows = [
        ["a mask and its token, median", *times(mask, "p50")],
        ["the same, mean", *times(mask, "mean")],
        ["the same, 99th percentile", *times(mask, "p99")],
        ["a new schema up to its first mask, median", *times("compile_and_first_mask_us", "p50")],
        [f"schemas compiled, of {of}", *(each["schemas_compiled"] for each in found.values())],
        ["invalid texts accepted", *(each["instances"]["too_lax"] for each in found.values())],
        ["valid texts refused", *(each["instances"]["too_strict"] for each in found.values())],
        ["memory of the process", *(f"{each['peak_memory_mb']:,} MB" for each in found.values())],
    ]
    model, answers = next(iter(results["bfcl_calls"]["models"].items()))
    calls = [
        ["toolgrammar" if way == "grammar" else way, counts["requests"],
         f"{counts['valid'] / counts['requests']:.1%}", counts["cut"],
         f"{counts['right'] / counts['requests']:.0%}", f"{counts['passes'] / counts['requests']:.0f}"]
        for way in ("grammar", "xgrammar's masks", "llguidance's masks", "free text, parsed")
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
    panels = {
        title: {name: found["common"][key]["p50"] for name, found in result["engines"].items()}
        for title, key in (
            ("A mask and its token", "mask_and_accept_us"),
            ("A new schema, up to its first mask", "compile_and_first_mask_us"),
        )
    }
    return bars("Median cost of a mask and of a new schema, by engine", panels, "toolgrammar")


def show(name: str, report: Mapping[str, Any], *, keep: bool, table: str | None = None) -> None:
    """Print what the pages show of a result; with ``keep``, also write ``results/NAME.json``.

    Args:
        name: of the result.
        report: plain data.
        keep: write the file.
        table: the name in `TABLES`, if it is another.
    """
    text = json.dumps({"machine": machine(), **report}, indent=2) + "\n"
    if keep:
        (RESULTS / f"{name}.json").write_text(text, encoding="utf-8")
    print(TABLES[table or name](json.loads(text)))
