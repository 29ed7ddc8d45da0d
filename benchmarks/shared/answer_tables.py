"""Tables of what models, engines and readers answer: verdicts, valid calls, and what went wrong."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from typing import Any

from benchmarks.shared.results_io import Result, figures, interval, share, shows, table, where

SPELLINGS = ("single", "compact", "indent", "ascii", "slashes", "floats")


@shows("over_constraint", whole=True)
def over_constraint(result: Result) -> str:
    """Valid texts that masks forbid: texts refused, and prefixes forbidden."""
    engines: Mapping[str, Any] = result["engines"]
    texts = next(iter(engines.values()))["spellings"]
    rows = []
    for name, found in engines.items():
        shares = [found["own_single"], *(found["spellings"][spelling] for spelling in SPELLINGS)]
        cells = [f"{each['refused']:.1%} / {each['prefixes_forbidden']:.1%}" for each in shares]
        rows.append((name, found["schemas_compiled"], *cells))
    columns = ["texts refused / prefixes forbidden", "schemas compiled", "single, of these"]
    shown = table([*columns, *(f"{name} ({texts[name]['texts']:,} texts)" for name in SPELLINGS)], rows)
    head = f"{result['schemas']:,} schemas with valid instances, shares of the {result['common']:,} that all compile"
    return f"{head}; {where(result)}.\n\n{shown}"


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
        [
            f"`{backend}:`",
            f"{passed} of {passed + len(result['failed'][backend])}",
            ", ".join(result["failed"][backend]),
        ]
        for backend, passed in result["passed"].items()
    ]
    return table(["models", "templates that pass", "fail"], rows)


@shows("vllm_parsers", "sglang_parsers")
def vllm_parsers_table(result: Result) -> str:
    """The tests that vLLM or SGLang has for its tool parsers, by file or class."""
    rows = [[name, counts["passed"], counts["failed"], counts["skipped"]] for name, counts in result["files"].items()]
    total = [sum(row[column] for row in rows) for column in (1, 2, 3)]
    causes = sorted(result["causes"], key=lambda each: (each["whose"], -each["tests"]))
    why = table(["whose", "cause of failures", "tests"], [[c["whose"], c["cause"], c["tests"]] for c in causes])
    return table(["tests of", "pass", "fail", "no format"], [*rows, ["all", *total]]) + "\n\n" + why


@shows("llama_cpp_cases")
def llama_cpp_table(result: Result) -> str:
    """llama.cpp's cases, by template."""
    kinds = ["same calls", "other calls", "no format", "depends on the cut"]
    rows = [[name, *(counts.get(kind, 0) for kind in kinds)] for name, counts in result["templates"].items()]
    return table(["template", *kinds], [*rows, ["all", *(sum(row[1 + at] for row in rows) for at in range(4))]])


@shows("text_grammar_verdicts")
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


@shows("verdicts")
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


@shows("proven_errors")
def proven_errors_table(result: Result) -> str:
    """Schemas with an error of the masks, by engine."""
    kinds = {"compiled": "compiled", "over": "over-constrained", "under": "under-constrained", "stuck": "dead end"}
    kinds |= {"clean": "no error found", "refused": "refused"}
    rows = [[name, found["version"], *(found[key] for key in kinds)] for name, found in result["engines"].items()]
    return table(["engine", "version", *kinds.values()], rows)


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
        exact = "" if name == "whole labels" else count["exact right"]
        other = "" if name == "whole labels" else count["other"]
        rows.append([name, count["questions"], other, count["right"], exact, *families])
    head = ["method", "questions", "another label than the exact choice", "right", "right by the exact choice"]
    return table([*head, *FAMILIES], rows)


@shows("matrix", whole=True)
def matrix(result: Result) -> str:
    """The recorded environments: versions, tests and days."""
    pythons = sorted({row["python"] for row in result["rows"].values()})
    rows = [
        (f"`{name}`", row["package"], row["passed"], row["failed"], row["skipped"], row["date"])
        for name, row in result["rows"].items()
    ]
    shown = table(["row", "version", "tests passed", "failed", "skipped", "date"], rows)
    return f"Python {', '.join(pythons)}.\n\n{shown}"


@shows("mask_verifier", whole=True)
def mask_verifier(result: Result) -> str:
    """What the verifier of masks has compared."""
    counts = ("cases", "finite cases", "masks", "tokens in masks", "texts judged", "differences")
    versions = ", ".join(f"{name} {version}" for name, version in result["versions"].items())
    return f"{versions}.\n\n{table(counts, [[result['counts'][name] for name in counts]])}"


@shows("text_grammar_tokens")
def tokens_table(result: Result) -> str:
    """Masks of peers beside ours, and why they differ."""
    kinds = list(dict.fromkeys(kind for counts in result["counts"].values() for kind in counts))
    rows = [[kind, *(counts.get(kind, 0) for counts in result["counts"].values())] for kind in kinds]
    return table(["", *result["counts"]], rows)


#: Notations of exports, and who reads them.
NOTATIONS = {"gbnf": "GBNF, llama.cpp", "ebnf": "EBNF, xgrammar", "lark": "Lark, llguidance", "regex": "regex, `re`"}


@shows("exports")
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
            share = f"{first.get('valid', 0) / ended:.1%}" if ended else ""
            counts = [sum(first.get(kind, 0) for kind in each) for each in kinds.values()]
            valid = found["passed"].get("valid", 0)
            forms = ", ".join(form for form in found["forms"] if form != "none")
            row = [label, name, forms, total, first.get("valid", 0), share, *counts, valid]
            rows.append([*row, found["requests"], found["tokens"]])
    columns = (
        "server",
        "client",
        "form",
        "requests",
        "valid at first",
        "of those neither cut nor refused",
        *kinds,
        "valid in the end",
    )
    return table((*columns, "sent", "tokens"), rows)


@shows("repair", whole=True)
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


@shows("engine_steps")
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


def versus(way: str, counts: Mapping[str, Any], base: str = "grammar") -> tuple[str, str]:
    """Return how a way compares with another one on the same requests, and how likely that is by chance."""
    return ("", "") if way == base else (f"{counts['more']} / {counts['less']}", f"{counts['chance']:.2f}")


@shows("bfcl_v4")
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


@shows("bfcl_calls")
def bfcl_calls(report: Result) -> str:
    """Return a table for each model: valid and right calls by way, where one call is asked for."""
    tables = []
    beside = ("more / less right than `grammar`", "by chance")
    columns = ("requests", "valid", "cut", "right function", "all right", *beside, "tokens", "passes")
    for model, found in report["models"].items():
        rows = []
        for way, counts in found["ways"].items():
            asked = max(1, counts["requests"])
            valid, function = (f"{counts[name] / asked:.0%}" for name in ("valid", "function"))
            rows.append([way, counts["requests"], valid, counts["cut"], function, share(counts), *versus(way, counts),
                         counts["tokens"], counts["passes"]])  # fmt: skip
        if rows:
            tables.append(table((model, *columns), rows))
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
    said = {"free": "any text or number", "seen": "`Seen` in results and calls, or in a message of the user"}
    rows = []
    for way in report["ways"]:
        shares = [interval(way[name], way["asked"]) for name in ("invented", "right")]
        rows.append([said[way["way"]], way["asked"], way["asked"] - way["offered"], *shares])
    columns = ("calls", "not offered", "with an id that does not exist", "all ids right")
    return table((report["model"], *columns), rows)


@shows("bfcl_multi_turn")
def bfcl_multi_turn(report: Result) -> str:
    """Turns of BFCL's conversations, by its own checker."""
    rows = []
    for way, counts in report["ways"].items():
        ended = interval(counts["ended"], counts["requests"])
        numbers = [counts[name] for name in ("silent", "no_call", "calls", "repeated")]
        beside = versus(way, counts, "free text, parsed")
        rows.append([way, counts["requests"], share(counts), *beside, ended, *numbers])
    compared = ("more / less right than free text", "by chance")
    columns = ("turns", "right", *compared, "ended", "in silence", "without a call", "calls", "repeated calls")
    return table((report["model"], *columns), rows)


@shows("on_repeat")
def on_repeat(report: Result) -> str:
    """Turns of BFCL's conversations in which a model repeated its calls, by what is done then."""
    tables = []
    for found in report["models"]:
        rows = []
        for way, counts in found["ways"].items():
            beside = versus(way, counts, "no further call")
            rows.append([way, counts["requests"], share(counts), *beside, counts["calls"]])
        columns = ("turns", "right", "more / less right than no further call", "by chance", "calls")
        tables.append(table((found["model"], *columns), rows))
    return "\n\n".join(tables)


@shows("tools_in_prompt")
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


@shows("vllm_faults")
def vllm_faults(result: Result) -> str:
    """vLLM's engine under random combinations of features, by engine."""
    outcomes = ("valid", "closed", "cut", "no room", "reasoning only", "stopped", "plain", "aborted")
    counted = ("preemptions", "drafts", "wrong drafts", "invalid", "lost")
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


@shows("sglang_engine")
def sglang_engine(result: Result) -> str:
    """SGLang's whole engine on a CPU."""
    columns = ("requests", "valid", "cut", "refused", "invalid", "tokens", "seconds")
    rows = [[name, *(found[column] for column in columns)] for name, found in result["backends"].items()]
    return table(("backend", *columns), rows)


@shows("fuzz_peers")
def fuzz_peers(result: Result) -> str:
    """Faults of a service that ways of drawing calls find."""
    ways = ("ours", "hypothesis-jsonschema", "chance")
    rows = [[fault, *found.values()] for fault, found in result["faults"].items()]
    rows.append(["all", *(sum(each[way] for each in result["faults"].values()) for way in ways)])
    said = f"{result['calls']} calls; times found of {result['seeds']}; hypothesis-jsonschema {result['theirs']}."
    return f"{said}\n\n{table(['fault', *ways], rows)}"


@shows("contracts")
def contracts(result: Result) -> str:
    """Pairs of schemas with one change, by the kind of the change."""
    rows = []
    for kind, found in (*result["kinds"].items(), ("all", result["all"])):
        asked = found["pairs"] - found["refused"]
        judged, theirs = found["judged"], found["theirs"]
        rows.append(
            [
                kind,
                asked,
                f"{found['decided']:,} ({found['decided'] / max(1, asked):.1%})",
                found["compatible"],
                found["broken"],
                judged.get("wrong", 0),
                f"{theirs.get('yes', 0) + theirs.get('no', 0):,}",
                f"{figures(found['p50_ms'])} / {figures(found['p99_ms'])}",
            ]
        )
    every, judged = result["all"], result["all"]["judged"]
    said = table(
        ["change", "pairs", "decided", "compatible", "breaks", "wrong", "decided by jsonschema-rs", "p50 / p99 (ms)"],
        rows,
    )
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
