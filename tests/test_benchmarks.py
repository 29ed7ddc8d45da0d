"""The benchmarks' own parts: cases that are what they say, results that are kept, and the page made of them."""

from __future__ import annotations

import ast
import asyncio
import copy
import gzip
import io
import json
import random
import re
import runpy
import sys
import tarfile
import time
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Literal
from xml.etree import ElementTree

import jsonschema
import numpy as np
import pytest

from benchmarks import __main__ as runner
from toolgrammar.core import Vocabulary
from toolgrammar.tools import Tool
from toolgrammar.tools.closed_schema import close_objects

from .vocabularies import BYTES

ROOT = Path(__file__).resolve().parent.parent
PAGES = [*(ROOT / "docs").glob("*.md"), *(ROOT / "benchmarks").rglob("README.md")]
SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture
def bench() -> Any:
    """Import a module of the folder ``benchmarks`` by its name, as its runner does."""
    return runner.module


#: A vocabulary in which each byte is a token.


def times(scale: float) -> dict[str, float]:
    """A distribution, as MaskBench has it."""
    return {"p50": scale, "p90": 2 * scale, "p99": 3 * scale, "p99.9": 4 * scale, "worst": 5 * scale, "mean": scale}


def masks_of(engines: dict[str, float]) -> dict[str, Any]:
    """A result of MaskBench with engines of so many microseconds."""
    found = {
        name: {
            "version": "1.2",
            "schemas_compiled": 9,
            "schemas_right": 8,
            "instances": {"right": 30, "too_strict": 1, "too_lax": 0},
            "refused": {"UnsupportedSchemaError format": 1},
            "compile_and_first_mask_us": times(1_000 * scale),
            "mask_and_accept_us": times(scale),
            "warm_us": times(0.5) if name == "toolgrammar" else {},
            "tokens": 100,
            "worst": "o1",
            "peak_memory_mb": 200,
            "common": {
                "schemas": 7,
                "tokens": 90,
                "compile_and_first_mask_us": times(500 * scale),
                "mask_and_accept_us": times(scale / 2),
            },
        }
        for name, scale in engines.items()
    }
    general = {"schemas": 10, "python": "3.11.7", "machine": "x86_64", "compiled": True, "clock": "cpu", "order": "any"}
    return {**general, "engines": found}


def test_page_is_what_the_results_say(bench: Any) -> None:
    """The pages with tables, and the picture, are what ``benchmarks/report.py`` makes of the kept results."""
    report = bench("report")
    for path in report.PAGES:
        page = path.read_text(encoding="utf-8")
        assert report.written(page) == page
    assert report.COSTS.read_text(encoding="utf-8") == report.costs_picture(report.kept("maskbench"))


def test_every_kept_result_is_shown(bench: Any) -> None:
    """Each result in ``benchmarks/results`` has a table on a page, which names the versions it was found with."""
    report = bench("report")
    pages = "".join(path.read_text(encoding="utf-8") for path in report.PAGES)
    names = {path.stem for path in report.RESULTS.glob("*.json")}
    assert names <= set(report.TABLES)
    shown = {match[2]: match[3] for match in report.BLOCK.finditer(pages)}
    assert {name for name in names if "ython 3." not in shown[name] or "| --" in shown[name]} == set()


def test_every_row_of_the_matrix_has_a_result(bench: Any) -> None:
    """A recorded environment that has never run is not shown as tested, and no row is shown that is gone."""
    tables = runpy.run_path(str(ROOT / "tests" / "environments.py"), run_name="environments")
    assert set(bench("report").kept("matrix")["rows"]) == set(tables["MATRIX"])


def test_environments_have_their_tests() -> None:
    """Each pattern of files of an environment matches one."""
    tables = runpy.run_path(str(ROOT / "tests" / "environments.py"), run_name="environments")
    for row in tables["ENVIRONMENTS"].values():
        assert tables["files_of"](row.tests)


def test_results_name_no_place_of_the_machine(bench: Any) -> None:
    """No result has a path. A JSON pointer in an error's text follows "at"."""
    report = bench("report")
    kept = {path.name: path.read_text(encoding="utf-8") for path in report.RESULTS.iterdir()}
    assert [name for name, text in kept.items() if re.search(r"(?:^|(?<!\bat)[\s\"'=])(?:/|~/|[A-Z]:\\)\w", text)] == []


def test_a_changed_result_makes_the_page_stale(bench: Any) -> None:
    """A result with another number, or of another machine, gives another page."""
    report, memory = bench("report"), bench("tables").memory
    page = report.PAGES[0].read_text(encoding="utf-8")
    changed = copy.deepcopy(report.kept("memory"))
    changed["10"]["counted_bytes"] += 2**20
    anew = report.written(page, lambda name: changed if name == "memory" else None)
    assert anew != page
    assert anew.replace(memory(changed), "") == page.replace(memory(report.kept("memory")), "")


@pytest.mark.parametrize(
    ("page", "message"),
    [
        ("<!-- lore: written by benchmarks/report.py -->\n<!-- end of lore -->\n", "nobody writes"),
        ("<!-- memory: written by benchmarks/report.py -->\n<!-- end of batch -->\n", "no last one"),
    ],
)
def test_a_page_with_wrong_comments_is_an_error(bench: Any, page: str, message: str) -> None:
    """Unknown tables and halves of comments are named."""
    with pytest.raises(ValueError, match=message):
        bench("report").written(page)


def test_masks_of_all_engines_and_of_the_schemas_that_all_take(bench: Any) -> None:
    """MaskBench's table has a row for each engine and kind; the second one, common schemas, also the ratios."""
    text = bench("tables").masks(masks_of({"toolgrammar": 10.0, "llguidance": 40.0}))
    assert "| mask + accept: toolgrammar 1.2 | 10.0 | 20.0 | 30.0 | 40.0 | 50.0 | 10.0 |" in text
    assert "| compile + first mask: llguidance 1.2 | 40,000 | 80,000 | 120,000 | 160,000 | 200,000 | 40,000 |" in text
    assert "| mask + accept, the same texts again: toolgrammar 1.2 | 0.5 |" in text
    first, second = text.split("The same on the 7 schemas that all engines compile:")
    assert "multiple" not in first
    assert "| mask + accept: llguidance 1.2 | 20.0 |" in second
    assert second.count("| *toolgrammar's, as a multiple of llguidance's* | 0.25 |") == 2
    assert "| toolgrammar 1.2 | 9 | 8 | 0 | 1 | 1 | 200 |" in second
    assert "Refused by toolgrammar: 1 UnsupportedSchemaError format." in second


@pytest.mark.parametrize(
    ("value", "shown"),
    [(1234.5, "1,234"), (12.4, "12"), (1.236, "1.24"), (0.1, "0.10"), (0.0123, "0.01"), (3e-4, "0.0003")],
)
def test_a_multiple_has_digits_that_say_something(bench: Any, value: float, shown: str) -> None:
    """Small ratios are not rounded to nothing, and large ones have no fractions."""
    assert bench("results_io").ratio(value) == shown


def test_masks_of_an_engine_alone(bench: Any) -> None:
    """Without a peer, or without what is common, there is no second table."""
    report = bench("tables")
    assert "all engines" not in report.masks(masks_of({"toolgrammar": 10.0}))
    both = masks_of({"toolgrammar": 10.0, "llguidance": 40.0})
    for found in both["engines"].values():
        del found["common"]
    assert "all engines" not in report.masks(both)


def test_what_maskbench_writes_is_what_the_report_reads(
    bench: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """``maskbench.py --keep`` on a small file writes a result, and prints what the report shows of it."""
    pytest.importorskip("mistral_common")
    rows = [
        {
            "id": "a",
            "schema": {"type": "integer"},
            "tests": [{"data": 12, "valid": True}, {"data": "x", "valid": False}],
        },
        {"id": "b", "schema": {"enum": ["red", 3]}, "tests": [{"data": "red", "valid": True}]},
        {"id": "c", "schema": {"format": "uri-template"}, "tests": [{"data": 1, "valid": True}]},
    ]
    data = tmp_path / "rows.jsonl.gz"
    with gzip.open(data, "wt") as file:
        file.write("\n".join(map(json.dumps, rows)))
    monkeypatch.setattr(bench("tables"), "RESULTS", tmp_path)
    assert bench("maskbench").main(peers="", clock="cpu", data=data, keep="masks") == 0
    found = json.loads((tmp_path / "masks.json").read_text(encoding="utf-8"))
    assert found["engines"]["toolgrammar"]["peak_memory_mb"] > 0
    text = bench("tables").masks(found)
    assert text in capsys.readouterr().out
    assert text.startswith(
        "3 schemas, properties in any order; one process wake-up for each schema; microseconds, processor time of the thread (comp"
    )
    verdict = next(line for line in text.splitlines() if line.startswith("| toolgrammar "))
    assert re.fullmatch(r"\| toolgrammar \S+ \| (\d) \| \1 \| 0 \| 0 \| (\d) \| \d+ \|", verdict)


def test_an_engine_without_an_answer_is_stopped_and_begins_anew(bench: Any) -> None:
    """A schema that takes longer than the deadline counts as refused; the next one finds a new process."""
    pytest.importorskip("mistral_common")
    worker = bench("workers").Worker("toolgrammar", ("benchmarks.masks.maskbench", "run"))
    first = worker.process.pid
    worker.deadline = 0
    slow, quick = ({"type": "integer"}, [(True, [0])] * 100_000, "cpu"), ({"type": "integer"}, [], "cpu")
    found = worker.run([slow, quick])
    assert next(found) == {"refused": "no answer in 0 s"}
    worker.deadline = 60
    assert [sheet["compile"] > 0 for sheet in found] == [True]
    assert worker.process.pid != first
    worker.process.kill()
    worker.process.wait()
    found = worker.run([quick, quick])
    assert next(found) == {"refused": "crash"}
    assert [sheet["compile"] > 0 for sheet in found] == [True]
    worker.end()
    assert worker.process.returncode == 0


class _Scripted:
    """An engine's process that answers at once, and keeps what it is asked."""

    version = "1"

    def __init__(self, name: str) -> None:
        self.name = name
        self.asked: list[Any] = []

    def run(self, block: list[Any]) -> Iterator[dict[str, Any]]:
        for arguments in block:
            self.asked.append(arguments)
            yield {"compile": 1.0, "of": list(arguments)}


def test_workers_take_turns_by_blocks(bench: Any) -> None:
    """Each worker is given a block of rows, and the other one goes first with the next block."""
    order: list[tuple[str, str]] = []

    class Noted(_Scripted):
        def run(self, block: list[Any]) -> Iterator[dict[str, Any]]:
            for sheet in super().run(block):
                order.append((self.name, sheet["of"][0]))
                yield sheet

    workers, rows = [Noted("one"), Noted("two")], [{"id": name} for name in "abc"]
    found = list(bench("workers").sheets(workers, rows, lambda row: (row["id"],), {}, block=2))
    assert [at for at, _ in found] == ["a", "b", "c"]
    assert found[1][1]["two"]["of"] == ["b"]
    assert order == [("one", "a"), ("one", "b"), ("two", "a"), ("two", "b"), ("two", "c"), ("one", "c")]


def test_a_run_that_was_stopped_goes_on(bench: Any, tmp_path: Path) -> None:
    """Sheets of the file are not measured again, half a line of it is, and the file of other settings is an error."""
    sheets = bench("workers").sheets
    path = tmp_path / "sheets.jsonl"
    rows = [{"id": name} for name in "abc"]

    def run(workers: list[_Scripted], settings: dict[str, Any], most: int = 3) -> list[Any]:
        answers = sheets(workers, rows[:most], lambda row: (row["id"],), settings, path)
        return list(answers)

    first = [_Scripted("one"), _Scripted("two")]
    whole = run(first, {"clock": "cpu"}, 2)
    assert [each.asked for each in first] == [[("a",), ("b",)]] * 2
    path.write_text(path.read_text() + '["c", "one", {"comp')
    again = [_Scripted("one"), _Scripted("two")]
    assert run(again, {"clock": "cpu"})[:2] == whole
    assert [each.asked for each in again] == [[("c",)]] * 2
    third = [_Scripted("one"), _Scripted("two")]
    assert len(run(third, {"clock": "cpu"})) == 3 and not third[0].asked + third[1].asked
    with pytest.raises(SystemExit, match="other settings"):
        run(third, {"clock": "wall"})


class _Letters:
    """An engine that allows one word of bytes, with empty masks if it lies."""

    name = "letters"

    def __init__(self, word: bytes, *, lies: bool = False) -> None:
        self.word, self.lies = word, lies
        self.bits = np.zeros(8, dtype=np.int32)

    def compile(self, schema: Any) -> None:
        if schema == "no":
            raise ValueError("grammar error: #/a/b: no such thing")

    def start(self, compiled: Any) -> list[int]:
        return []

    def step(self, state: list[int], token: int) -> bool:
        self.bits[:] = 0
        if len(state) == len(self.word):
            return False
        right = self.word[len(state)]
        self.bits[right >> 5] = 0 if self.lies else 1 << (right & 31)
        state.append(token)
        return token == right

    def accepts(self, state: list[int]) -> bool:
        return state == list(self.word)


def test_verdicts_and_masks_are_counted(bench: Any) -> None:
    """Wrong accepts, wrong refusals and masks that differ from accept are counted; a refusal's reason has no place."""
    run = bench("maskbench").run
    tests = [(True, list(b"cat")), (True, list(b"car")), (False, list(b"cat")), (False, list(b"ca"))]
    found = run(_Letters(b"cat"), {}, tests, "cpu")
    assert [found[key] for key in ("right", "too_strict", "too_lax", "mask_differs")] == [2, 1, 1, 0]
    assert [len(times) for times in found["token"]] == [3, 3, 3, 2]
    assert run(_Letters(b"cat", lies=True), {}, tests, "cpu")["mask_differs"] == 4
    assert run(_Letters(b"cat"), "no", tests, "cpu") == {"refused": "no such thing"}


@pytest.mark.parametrize("name", ["llguidance", "xgrammar", "glrmask"])
def test_peers_are_used_as_their_authors_mean(bench: Any, name: str) -> None:
    """A peer's mask says what it accepts, and it takes what is valid and refuses what is not."""
    pytest.importorskip("mistral_common")
    pytest.importorskip(name)
    vocabulary, encode = bench("peers").tekken()
    engine = bench("workers").engines()[name](vocabulary, encode)
    members = {"name": {"type": "string", "maxLength": 5}, "size": {"enum": [1, "two"]}}
    schema = {"type": "object", "properties": members, "required": ["name"], "additionalProperties": False}
    texts = {
        '{"name": "abc", "size": "two"}': True,
        '{"name": "naïve"}': True,
        '{"name": "abcdef"}': False,
        '{"size": 1}': False,
        '{"name": "a", "other": 1}': False,
        '{"name": "a"': False,
    }
    found = bench("maskbench").run(engine, schema, [(valid, encode(text)) for text, valid in texts.items()], "cpu")
    assert (found["right"], found["mask_differs"]) == (6, 0)


def test_vocabulary_of_peers(bench: Any) -> None:
    """Each byte that is a token is found."""
    assert bench("engines").single_bytes(Vocabulary([b"a", b"bc", None], eos=[2])) == {97: 0}


def test_cases_are_valid_and_as_large_as_they_say(bench: Any) -> None:
    """Instances are valid by ``jsonschema``; schemas have so many properties, and are so deep."""
    growth = bench("growth")
    for sweep, at in (("properties", 1), ("properties", 30), ("depth", 1), ("depth", 8), ("vocabulary", 32_768)):
        given = growth.cases(sweep, at, [])
        assert len({json.dumps(schema) for schema, _ in given}) == len(given) == growth.TEXTS
        for schema, (text,) in given:
            jsonschema.Draft202012Validator(schema).validate(json.loads(text))
            if sweep != "depth":
                assert len(schema["properties"]) == (at if sweep == "properties" else 20)
            else:
                assert text.count("{") == at


def test_sets_of_tools_are_disjoint_and_their_calls_valid(bench: Any) -> None:
    """Made tools: no set shares a tool with another, and each text calls a tool of its set with valid arguments."""
    growth = bench("growth")
    pool, sampled = growth.tool_pool(ROOT / "nowhere.jsonl.gz", 60)
    assert (len(pool), sampled) == (60, 0)
    given = growth.cases("tools", 10, pool)
    assert sum(len(texts) for _, texts in given) >= growth.TEXTS
    names = [tool.name for chosen, _ in given for tool in chosen]
    assert len(set(names)) == len(names)
    for chosen, texts in given:
        by_name: dict[str, Tool] = {tool.name: tool for tool in chosen}
        for text in texts:
            written = json.loads(text.removeprefix("<tool_call>\n").removesuffix("\n</tool_call>"))
            schema = close_objects(by_name[written["name"]].parameters)
            jsonschema.Draft202012Validator(schema).validate(written["arguments"])


def test_every_token_of_a_text_is_measured_once(bench: Any) -> None:
    """A point counts its tokens, writes each text to its end, and gives times above zero."""
    growth = bench("growth")
    engine = growth.Ours(BYTES)
    given = [growth.properties(3, random.Random(seed)) for seed in (1, 2)]
    texts = [json.dumps(instance, ensure_ascii=False) for _, instance in given]
    pairs = [(schema, [text]) for (schema, _), text in zip(given, texts, strict=True)]
    found = growth.measure(engine, pairs, lambda text: list(text.encode()), time.perf_counter_ns)
    assert found["tokens"] == sum(len(text.encode()) for text in texts)
    assert found["grammars"] == 2
    assert 0 < found["first_us"]["p50"] <= found["first_us"]["p99"] <= found["first_us"]["worst"]
    assert found["again_us"]["mean"] > 0


@pytest.mark.parametrize(
    ("text", "reason"), [('{"a": 1}', "a valid text"), ('{"a": "b"', "the end of a valid text")], ids=["middle", "end"]
)
def test_a_text_that_is_not_accepted_has_no_times(bench: Any, text: str, reason: str) -> None:
    """A point at which an engine does not accept a text says so instead of giving times."""
    growth = bench("growth")
    schema = {"type": "object", "properties": {"a": {"type": "string"}}, "additionalProperties": False}
    given = [(schema, [text])]
    found = growth.measure(growth.Ours(BYTES), given, lambda each: list(each.encode()), time.perf_counter_ns)
    assert found == {"refused": reason}


def write(engine: Any, compiled: Any, text: str) -> int:
    """Write a text to its end, with a mask for each token; how many tokens it has."""
    matcher = engine.start(compiled)
    assert all(engine.step(matcher, byte) for byte in text.encode())
    assert engine.accepts(matcher)
    return len(text.encode())


@pytest.mark.parametrize(
    ("sweep", "at"),
    [("properties", 20), ("properties", 320), ("depth", 4), ("depth", 64), ("tools", 10), ("tools", 200)],
)
def test_a_text_written_again_derives_nothing(bench: Any, sweep: str, at: int) -> None:
    """Whatever grows: the second time, no state, row, mask or table is made, and no token of the vocabulary visited."""
    growth = bench("growth")
    pool, _ = growth.tool_pool(ROOT / "nowhere.jsonl.gz", 200)
    subject, texts = growth.cases(sweep, at, pool)[0]
    engine = growth.Ours(BYTES)
    compiled = engine.compile(subject)
    for text in texts[:4]:
        write(engine, compiled, text)
    before = compiled.counters()
    for text in texts[:4]:
        write(engine, compiled, text)
    assert compiled.counters() == before
    assert before["states"] > 0


@pytest.mark.parametrize(("sweep", "sizes"), [("properties", (20, 80, 320)), ("depth", (4, 16, 64))])
def test_what_a_token_derives_does_not_grow(bench: Any, sweep: str, sizes: tuple[int, ...]) -> None:
    """The first time, a token makes about a state, and a fault in a quarter of the cases, however large the schema."""
    growth = bench("growth")
    for at in sizes:
        schema, (text,) = growth.cases(sweep, at, [])[0]
        engine = growth.Ours(BYTES)
        compiled = engine.compile(schema)
        tokens = write(engine, compiled, text)
        counters = compiled.counters()
        assert tokens > 10 * at
        assert counters["states"] <= tokens
        assert counters["faults"] <= tokens / 4


def test_what_a_call_derives_grows_by_its_tools_alone(bench: Any) -> None:
    """A call out of 200 tools makes a few states for each tool (its name's beginning), beside those of the text."""
    growth = bench("growth")
    pool, _ = growth.tool_pool(ROOT / "nowhere.jsonl.gz", 200)
    for at in (10, 50, 200):
        chosen, texts = growth.cases("tools", at, pool)[0]
        engine = growth.Ours(BYTES)
        compiled = engine.compile(chosen)
        before = compiled.counters()["states"]  # sets of tools share a store, other tests' among them
        tokens = write(engine, compiled, texts[0])
        after = compiled.counters()["states"]
        assert after > 0 and tokens > 0
        assert 0 <= after - before <= tokens + 5 * at


def test_doubled_vocabulary_has_every_token_twice(bench: Any) -> None:
    """The largest vocabulary is Tekken, and Tekken with a marker behind each token; a text has the same tokens."""
    pytest.importorskip("mistral_common")
    growth = bench("growth")
    whole, encode = growth.vocabulary_of(131_072)
    doubled, encode_doubled = growth.vocabulary_of(262_144)
    assert doubled.tokens[:131_072] == whole.tokens
    pairs = zip(whole.tokens, doubled.tokens[131_072:], strict=True)
    assert all(more == (None if token is None else token + growth.MARKER) for token, more in pairs)
    text = '{"naïve": ["東京", 12.5, "a window seat"]}'
    _, reference = bench("peers").tekken()
    assert reference(text) == encode(text) == encode_doubled(text)
    assert whole.decode(encode(text)) == text.encode()
    small, encode_small = growth.vocabulary_of(32_768)
    assert small.decode(encode_small(text)) == text.encode()
    rare = " Verantwortungsbewusstsein"
    assert small.decode(encode_small(rare)) == whole.decode(encode(rare)) == rare.encode()
    assert len(encode_small(rare)) > len(encode(rare))


def test_picture_is_well_formed_and_shows_every_value(bench: Any) -> None:
    """Each value is a bar inside the picture, with its name and its time."""
    values = {"one": 3.0, "two <&>": 40_000.0}
    root = ElementTree.fromstring(bench("figure").bars("a title", {"masks": values, "schemas": values}, "one"))
    width, height = float(root.attrib["width"]), float(root.attrib["height"])
    drawn = root.findall(f"{SVG}rect")[1:]
    assert len(drawn) == 4
    assert all(0 < float(bar.attrib["x"]) + float(bar.attrib["width"]) < width for bar in drawn)
    assert all(0 < float(bar.attrib["y"]) < height - float(bar.attrib["height"]) for bar in drawn)
    words = [each.text for each in root.findall(f"{SVG}text")]
    assert {"one", "two <&>", "3 µs", "40 ms", "masks (median, logarithmic)"} <= set(words)


def test_readme_names_every_program() -> None:
    """``benchmarks/README.md`` speaks of every program that the runner lists, and of none that is gone."""
    page = (ROOT / "benchmarks" / "README.md").read_text(encoding="utf-8")
    named = set(re.findall(rf"`((?:{'|'.join(runner.SUBJECTS)})/\w+)`", page))
    assert named >= set(runner.programs()) - {"report"}
    assert all((ROOT / "benchmarks" / f"{name}.py").is_file() for name in named)
    commands = re.findall(r"python -m benchmarks ([\w/]+)", "".join(path.read_text("utf-8") for path in PAGES))
    assert {name for name in commands if "/" in name} <= set(runner.programs())


def test_what_programs_import_of_each_other_is_there() -> None:
    """Each name that a benchmark imports of another one is defined there, also where a function imports it."""
    folder, missing = ROOT / "benchmarks", []
    names: dict[str, set[str]] = {}
    trees = {path: ast.parse(path.read_text(encoding="utf-8")) for path in folder.rglob("*.py")}
    for path, tree in trees.items():
        module = ".".join(path.relative_to(ROOT).with_suffix("").parts)
        names[module] = {alias.asname or alias.name for node in tree.body for alias in getattr(node, "names", ())}
        names[module] |= {node.name for node in tree.body if hasattr(node, "name")}
        stored = [node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)]
        names[module] |= set(stored)
        names.setdefault(module.rpartition(".")[0], set()).add(path.stem)
    for path, tree in trees.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("benchmarks"):
                there = names.get(str(node.module), set())
                missing += [f"{path.name}: {node.module}.{each.name}" for each in node.names if each.name not in there]
    assert missing == []


def test_options_are_the_parameters_of_main() -> None:
    """Parameters without a default are required, by position or by name; types and "Args" say the rest."""

    def main(
        data: Path,
        *,
        sheets: Path,
        clock: Literal["cpu", "wall"] = "cpu",
        most_rows: Sequence[int] = (1, 2),
        limit: float = 0.5,
        beside: Path | None = None,
        keep: bool = False,
    ) -> None:
        """Run.

        Args:
            limit: 5% of all
        """

    parser = runner.parser_of(main, "what it does", "x")
    given = vars(parser.parse_args(["a", "--sheets", "b", "--most-rows", "3", "4", "--clock", "wall", "--keep"]))
    assert given == {
        "data": Path("a"), "sheets": Path("b"), "clock": "wall", "most_rows": [3, 4], "limit": 0.5, "beside": None,
        "keep": True,
    }  # fmt: skip
    assert "5% of all" in parser.format_help() and "stopped" in parser.format_help()
    for wrong in ([], ["a"], ["a", "--sheets", "b", "--clock", "sun"], ["a", "--sheets", "b", "--limit", "x"]):
        with pytest.raises(SystemExit):
            parser.parse_args(wrong)


@pytest.mark.parametrize("name", sorted(runner.programs()))
def test_every_program_has_a_page_of_help(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The runner imports a program by its name alone, and ``--help`` ends it; its line in the list is a sentence, and
    the pages and its docstring show no option that it lacks."""
    pytest.importorskip("mistral_common")
    assert re.fullmatch(r"[A-Z\w].{20,140}[.?]", runner.programs()[name])
    monkeypatch.setattr(sys, "argv", ["benchmarks", name.rpartition("/")[2], "--help"])
    try:
        with pytest.raises(SystemExit) as ended:
            runner.main()
    except ImportError as error:
        pytest.skip(f"{error.name} is not installed")
    assert ended.value.code in (0, None)
    shown = [path.read_text(encoding="utf-8") for path in PAGES] + [runner.module(name).__doc__ or ""]
    commands = re.findall(rf"python -m benchmarks {name}\b([^`|]*?)(?=`|\||\n(?! *\[))", "\n".join(shown))
    assert set(re.findall(r"(?<!\w)--[a-z-]+", " ".join(commands))) <= set(
        re.findall(r"--[a-z-]+", capsys.readouterr().out)
    )


def test_the_runner_lists_what_there_is(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Without a name the programs are listed and all is well; a name that is none is an error with the list."""
    monkeypatch.setattr(sys, "argv", ["benchmarks"])
    assert runner.main() == 0
    assert re.search(r"^  masks/maskbench +Masks and compilation", capsys.readouterr().out, re.MULTILINE)
    monkeypatch.setattr(sys, "argv", ["benchmarks", "masks/nothing"])
    assert runner.main() == 2
    assert "no program is called 'masks/nothing'" in capsys.readouterr().err


def test_questions_of_decisions_have_one_right_answer(bench: Any) -> None:
    """All differ, have four labels of which some share a beginning, and the right one among them."""
    cases = list(bench("decisions").cases(320))
    assert len(set(cases)) == 320 and {case.family for case in cases} == {"intents", "prices", "addresses"}
    for case in cases:
        assert len(set(case.labels)) == 4 and case.right in case.labels
        assert any(one[:1] == other[:1] for one in case.labels for other in case.labels if one != other)


def test_choices_of_decisions_are_those_of_decide(bench: Any) -> None:
    """What the benchmark makes of the scores of four prompts is what the options of `decide` choose."""
    from toolgrammar.core.models import OneOf, load_model

    module, model = bench("decisions"), load_model("embedded")
    for case in module.cases(3):
        scored = {prompt: module.asked(model, case, *prompt) for prompt in module.PROMPTS}
        made = module.choices(case, scored)
        question = {"q": OneOf(case.question, case.labels)}
        for name, options in (
            ("whole labels", {}),
            ("two orders", {"orders": 2}),
            ("prior", {"prior": True}),
            ("two orders and prior", {"orders": 2, "prior": True}),
        ):
            assert made[name] == model.decide(case.state, question, **options)["q"].value
        sheet = {(0, *prompt): one for prompt, one in scored.items()}
        counts = module.counted([case], sheet)
        assert counts["first tokens"]["other"] == (made["first tokens"] != made["whole labels"])
        assert bench("tables").decisions_table({"methods": counts}).count("\n") >= 6


def test_decisions_open_every_kind_of_model(bench: Any) -> None:
    """The embedded model, which takes no number of threads, is scored as any other."""
    module = bench("decisions")
    key = (0, *module.PROMPTS[0])
    found, logs = module.scored("embedded", next(iter(module.cases(1))), key)
    assert found == key and len(logs["whole"]) == len(logs["first"]) == 4


def test_one_request_is_a_cell_of_the_table(bench: Any) -> None:
    """The times of a cell are those of the requests after the first, or of the only one."""
    module = bench("tools_in_prompt")
    sheet = {"function": True, "right": False, "valid": True, "prompt": 9, "first": 1.0, "seconds": 2.0}
    later = {**sheet, "first": 3.0}
    assert [module.summary(0, "schemas", answers)["first"] for answers in ([sheet], [sheet, later])] == [1.0, 3.0]
    assert module.summary(0, "schemas", [sheet])["seconds"] == 2.0


def test_masks_are_those_of_the_verifier(bench: Any) -> None:
    """`mask_verifier.py` agrees with the masks of random schemas, and reports each change of a mask or a witness."""
    verifier = bench("mask_verifier")
    left_out: Counter[str] = Counter()
    head, *cases = bench("mask_cases").lines(range(40), left_out)
    assert len(cases) > 24 and set(left_out) == {"UnsatisfiableSchemaError", "ValueError"}
    counts, problems = verifier.verify(iter([head, *cases]))
    assert problems == [] and counts["masks"] > 120 and 10 < counts["finite cases"] < len(cases)

    def found(change: Callable[[dict[str, Any], dict[str, Any]], Any], finite: bool) -> list[str]:
        """The problems after a change of each case whose first mask has several tokens."""
        changed = []
        for case in map(json.loads, cases):
            step = case["steps"][0]
            if case["finite"] == finite and len(step["mask"]) > 1:
                change(case, step)
                changed.append(json.dumps(case))
        reported = [verifier.verify(iter([head, each]))[1] for each in changed[:3]]
        assert len(reported) == 3
        assert all(reported)
        return [problem for problems in reported for problem in problems]

    def add(case: dict[str, Any], step: dict[str, Any]) -> None:
        step["mask"].append(ord("}"))
        step["witnesses"].append([ord("}")])

    def spoil(case: dict[str, Any], step: dict[str, Any]) -> None:
        step["witnesses"][0].append(ord("}"))

    assert any("missing" in each for each in found(lambda case, step: step["mask"].clear(), finite=True))
    assert any("cannot be completed" in each for each in found(add, finite=True))
    assert any("is not valid" in each for each in found(add, finite=False))
    assert any("is not valid" in each for each in found(spoil, finite=False))
    assert any("no witness" in each for each in found(lambda case, step: step["witnesses"].pop(), finite=False))


def test_the_harness_of_bowtie_answers_its_commands(bench: Any) -> None:
    """Verdicts of a case, with references to its registry; what a grammar leaves out or refuses is skipped."""
    connection = bench("bowtie_harness").toolgrammar()()

    def ask(message: dict[str, Any]) -> Any:
        return asyncio.run(connection.request(message))

    started = ask({"cmd": "start", "version": 1})
    dialects = started["implementation"]["dialects"]
    assert started["version"] == 1 and len(dialects) == 5
    assert ask({"cmd": "dialect", "dialect": dialects[2]}) == {"ok": True}

    def run(schema: Any, *instances: Any, **case: Any) -> Any:
        tests = [{"description": "", "instance": instance} for instance in instances]
        return ask({"cmd": "run", "seq": 7, "case": {"description": "", "schema": schema, "tests": tests, **case}})

    assert run({"items": [{"type": "null"}]}, [None], [1]) == {"seq": 7, "results": [{"valid": True}, {"valid": False}]}
    registry = {"http://example.com/a": {"type": "string"}}
    assert run({"$ref": "http://example.com/a"}, "x", 1, registry=registry)["results"][1] == {"valid": False}
    assert run(False, 1)["results"] == [{"valid": False}]
    assert run({"$ref": "http://example.com/absent"}, 1)["skipped"]
    assert ask({"cmd": "stop"}) == {}


def test_the_checker_of_bfcl_judges_our_calls(bench: Any) -> None:
    """The leaderboard's checker runs without its table of models; its requests become tools."""
    pytest.importorskip("bfcl_eval", reason="needs bfcl-eval: pip install --no-deps bfcl-eval")
    bfcl = bench("bfcl_v4")
    check, data = bfcl.checker()
    row, possible, tools = next(bfcl.requests(data, "simple_python"))
    name = tools.names[0]
    right = {key: values[0] for key, values in possible[0][name].items() if values[0] != ""}
    assert check(row["function"], [{name: right}], possible, "simple_python")
    assert not check(row["function"], [{name: {}}], possible, "simple_python")
    assert bench("results_io").interval(5, 10) == "50% (24% to 76%)"


#: Schemas with an instance: an object that its schema leaves open, and a number that it bars.
OPEN = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
BARRED = {"type": "object", "properties": {"a": {"type": "integer", "not": {"const": 7}}}, "required": ["a"]}


@pytest.mark.parametrize(
    ("name", "options", "schema", "kinds"),
    [
        ("xgrammar", {"strict_mode": True}, OPEN, {"over"}),
        ("xgrammar", {"strict_mode": False}, OPEN, set()),
        ("xgrammar", {"strict_mode": False}, BARRED, {"under"}),
        ("llguidance", {}, OPEN, set()),
        ("toolgrammar", {"whitespace": "flexible", "property_order": "any"}, BARRED, set()),
    ],
)
def test_errors_of_masks_are_proven(bench: Any, name: str, options: Any, schema: Any, kinds: set[str]) -> None:
    """A valid value that a peer forbids and an invalid one that it allows are found by texts beside an instance, both
    validators judge each so, and there is nothing against masks that have none of these errors."""
    pytest.importorskip("jsonschema_rs")
    pytest.importorskip(name)
    proven = bench("proven_errors")
    engine = bench("workers").engines()[name](*bench("peers").single_bytes(), **options)
    found = proven.judge(engine, schema, [(True, '{"a": 12}'), *([(False, '{"a": 7}')] if schema is BARRED else [])])
    assert set(found["errors"]) == kinds and found["ours"] == {} and found["texts"] > 0
    judges = proven.Judges(schema)
    for kind, text in found["errors"].items():
        assert judges.verdict(text.encode()) is (kind == "over")


def test_only_texts_on_which_validators_agree_are_proofs(bench: Any) -> None:
    """A text that is no JSON is invalid; one with a repeated name, an unknown reference or a format that is an
    annotation to one of them proves nothing."""
    pytest.importorskip("jsonschema_rs")
    judges = bench("proven_errors").Judges
    assert judges(OPEN).verdict(b'{"a": 1') is False
    assert judges(OPEN).verdict(b'{"a": 1, "a": 1}') is None
    assert judges({"$ref": "https://example.com/other"}).verdict(b"1") is None
    assert judges({"format": "date"}).verdict(b'"x"') is None
    assert judges({"format": "date"}).verdict(b'"2024-02-29"') is True
    ordinary = bench("proven_errors").ordinary
    assert ordinary(b'{"a":1e1,"b":[2.50]}') == b'{"a": 10, "b": [2.5]}' and ordinary(b"1e300") is None


def test_schemas_of_packages(bench: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Schemas and operations of packages are found, those with a reference to another file are not, and a schema that
    comes again is written once; each instance has the verdict of `jsonschema`."""
    schema = {"type": "object", "properties": {"n": {"type": "integer", "minimum": 3}}, "required": ["n"]}
    elsewhere = {**schema, "$schema": "https://json-schema.org/draft/2020-12/schema", "$ref": "other.json#/a"}
    body = {"content": {"application/json": {"schema": schema}}}
    operation = {"operationId": "post", "requestBody": body, "responses": {}}
    document = {"openapi": "3.1.0", "info": {}, "paths": {"/a": {"post": operation}}}
    files = {"one": schema, "again": schema, "elsewhere": elsewhere, "api": document, "data": [1]}
    with zipfile.ZipFile(tmp_path / "a_wheel-1.0-py3-none-any.whl", "w") as wheel:
        for name, value in files.items():
            wheel.writestr(f"a/{name}.json", json.dumps(value))
        wheel.writestr("a/code.py", "")
    with tarfile.open(tmp_path / "scope-name-2.0.tgz", "w:gz") as tar:
        content = json.dumps({**schema, "title": "t"}).encode()
        member = tarfile.TarInfo("package/t.json")
        member.size = len(content)
        tar.addfile(member, io.BytesIO(content))
    listed = tmp_path / "list.txt"
    listed.write_text("# two packages\npypi a-wheel==1.0\nnpm @scope/name==2.0\n")
    digests = []
    for out in ("one.jsonl.gz", "two.jsonl.gz"):
        bench("masks.package_schemas").main(tmp_path / out, listed, tmp_path)
        said = capsys.readouterr().out
        assert "a-wheel: 2 of 2" in said and "@scope/name: 1 of 1" in said
        digests.append(said.split()[-1])
    assert digests[0] == digests[1]
    with gzip.open(tmp_path / "one.jsonl.gz", "rt") as file:
        made = [json.loads(line) for line in file]
    assert [one["id"] for one in made] == [
        "a-wheel/a/again.json",
        "a-wheel/a/api.json#post",
        "@scope/name/package/t.json",
    ]
    for one in made:
        assert {test["valid"] for test in one["tests"]} == {True, False}
        assert all(
            jsonschema.Draft202012Validator(one["schema"]).is_valid(test["data"]) == test["valid"]
            for test in one["tests"]
        )


def test_kept_programs_are_well_typed_and_do_what_is_asked(bench: Any) -> None:
    """The program of each own task is right, nothing done is wrong, and the grammar of programs has it."""
    from toolgrammar.core import Message
    from toolgrammar.tools import ToolSet, program_tool

    tasks, free = bench("program_tasks"), bench("free_programs")
    for number, task in enumerate(task for world in tasks.own() for task in world):
        world = task.begin()
        value = free.Interpreter(world.call, task.parameters).run(world.program)
        assert world.is_right(free.shown(value)) and not task.begin().is_right("")
        if number % 6 < 2:
            tools = ToolSet([program_tool(task.tools)]).in_conversation([Message("user", task.request)])
            assert tools.grammar("program").matches(f"```python\n{world.program.strip()}\n```"), world.program


@pytest.mark.parametrize(
    "text",
    [
        "import os",
        "while True: pass",
        "''.__class__",
        "open('x')",
        "f(1).__class__",
        "x = f",
        "f(**{'a': 1})",
        "(lambda: f(1))()",
        "for x in [1, 2, 3, 4]: f(x)",
        "[a + b for a in range(9)]",
        "'a' * 1000000000",
        "f'{1:999999999}'",
        "1 +",
    ],
)
def test_the_interpreter_of_programs_has_its_language_alone(bench: Any, text: str) -> None:
    """What is not in the language, and what fails or is without end, is the one error of programs."""
    free = bench("free_programs")
    with pytest.raises(free.ProgramError):
        free.Interpreter(lambda name, arguments: arguments["a"], {"f": ["a"]}, most_calls=3).run(text)


def test_the_interpreter_of_programs_reads_what_models_write(bench: Any) -> None:
    """Loops, conditions, comprehensions, formatted texts and printing have Python's meaning."""
    text = "t = 0\nfor x in f(1):\n    if x['n'] > 1 and x.n != 3:\n        t += x.n\n"
    text += "print(f'{t:.1f}', max(x.n for x in f(1)), [x.n for x in f(a=1) if x.n < 3][-1])"
    run = bench("free_programs").Interpreter(lambda *_: [{"n": n} for n in (1, 2, 3, 4)], {"f": ["a"]}).run
    assert run(text) == "6.0 4 2" and run("return f(1)[0].n") == 1 and run("f(1)\nf(1)[1].n") == 2


@pytest.mark.parametrize(
    ("answer", "wanted", "is_said"),
    [
        ("It is 240.", 240.0, True),
        ("240.0", 240.0, True),
        ("1240", 240.0, False),
        ("240.5", 240.0, False),
        ("Eva Brandt leads it", "eva brandt", True),
        ('[{"total": 240.0}]', 240.0, False),
        ("", "x", False),
    ],
)
def test_an_answer_says_a_value_as_a_word(bench: Any, answer: str, wanted: Any, is_said: bool) -> None:
    """An answer of a task is a text that has the value as a word; a whole object is none."""
    assert bench("program_tasks").says(answer, wanted) == is_said


def test_calls_and_programs_are_judged_alike(bench: Any) -> None:
    """The right calls are right in the loop and in a program; what was not played in all ways is not counted."""
    from toolgrammar.core import Message, ToolCall
    from toolgrammar.core.testing import ScriptedModel

    module = bench("programs")
    task = next(iter(bench("program_tasks").own()))[1]  # cancel the first order of a customer
    calls = [("find_customer", {"name": "Mia Lund"}), ("orders_of", {"customer": "C-902"})]
    calls += [("cancel_order", {"order": "O-5701"})]
    turns: list[Any] = [Message("assistant", tool_calls=(ToolCall("c", *call),)) for call in calls]
    single = module.WAYS[module.SINGLE](ScriptedModel([*turns, "Done."]), task)
    program = module.judged(task, "c = find_customer(name='Mia Lund')\ncancel_order(orders_of(c.id)[0].id)\n")
    wrong = module.judged(task, "cancel_order('O-5512')")
    failed = module.judged(task, "cancel_order('O-1')")
    assert [(one["right"], one["ran"], one["calls"]) for one in (single, program, wrong, failed)] == [
        (1, 1, 3), (1, 1, 3), (0, 1, 1), (0, 0, 0)
    ]  # fmt: skip
    sheets = {("m", way, task.name): program for way in module.WAYS}
    sheets |= {("m", module.SINGLE, task.name): single, ("m", "free Python", task.name): wrong}
    sheets["m", module.SINGLE, "other"] = single
    (found,) = module.summary(sheets, {task.name: "own", "other": "own"})
    assert found["sources"]["own"] == {"requests": 1, "right": dict.fromkeys(module.WAYS, 1) | {"free Python": 0}}
    free = found["ways"]["free Python"]
    assert (found["tasks"], free["requests"], free["more"], free["less"]) == (2, 1, 0, 1)
    assert bench("tables").programs({"models": [found]}).count("\n") >= 10
