"""Grammars as text beside their own engines: verdicts on texts, and the time of masks.

    python -m benchmarks masks/text_grammars verdicts [--cache FOLDER] [--model MODEL.gguf] [--grammars N] [--texts N]
    python -m benchmarks masks/text_grammars masks [--texts N]

``verdicts`` compares `Grammar.from_gbnf` with llama.cpp's sampler, xgrammar and llguidance (by its converter of GBNF),
and `Grammar.from_lark` with llguidance, on llama.cpp's ``grammars/`` folder and test of grammars, on llguidance's test
grammars, and on random grammars: the texts that these tests accept and refuse, random texts of the grammar, and changes
of both. llguidance takes the longest terminal, so it may accept less. ``masks`` writes random texts of
three grammars (a subset of C, SQL, JSON with comments) token by token in the Tekken vocabulary, and times one mask and
one accept of each engine in turn.
"""

from __future__ import annotations

import random
import re
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np

from benchmarks.masks.maskbench import written
from benchmarks.shared import engines
from benchmarks.shared.grammar_oracles import Judge, LlamaCpp, compared, llguidance_peer, mutated, xgrammar_peer
from benchmarks.shared.peer_grammars import PeerGrammar, of_llama_cpp, of_llguidance
from benchmarks.shared.peers import tekken
from benchmarks.shared.sources import CACHE
from benchmarks.shared.tables import show
from toolgrammar.core import Grammar, ToolGrammarError
from toolgrammar.core.grammar.sampling import random_text
from toolgrammar.core.models.published import PUBLISHED

#: The grammars of the masks (`grammars/`), in the syntax that GBNF and EBNF share.
MASKED = ("C subset", "SQL", "JSON with comments")


def random_grammar(draw: random.Random) -> str:
    """Return a random grammar that GBNF and EBNF read alike, without left recursion."""
    names = ["root", *"xyz"[: draw.randrange(4)]]

    def item(index: int, depth: int, is_first: bool) -> str:
        kind = draw.choice(["text", "class", "name", "group", "text"])
        if kind == "name":
            others = names[index + 1 :] if is_first else names
            return draw.choice(others) if others else '"a"'
        if kind == "class":
            return draw.choice(["[ab]", "[^a]", "[a-c0-2]", "[^\\n]", "[é-ü]", "[\\x41-\\x43]"])
        if kind == "group" and depth < 3:
            return f"({body(index, depth + 1, is_first)}){draw.choice(['', '?', '*', '+', '{2}', '{1,3}'])}"
        return f'"{draw.choice(["a", "b", "ab", "abc", "(", "é", "-"])}"{draw.choice(["", "", "?", "*", "{0,2}"])}'

    def body(index: int, depth: int, is_first: bool) -> str:
        # Recursion only after a character, in one of several alternatives, so that every rule ends.
        ways = []
        for number in range(draw.randrange(1, 4)):
            more = [item(index, depth, number == 0) for _ in range(draw.randrange(3))]
            lead = [f'"{draw.choice("abc")}"'] if any(part in names for part in more) or not more else []
            ways.append(" ".join([*lead, *more]))
        return " | ".join(ways)

    return "\n".join(f'{name} ::= "{draw.choice("abc")}" | {body(index, 0, True)}' for index, name in enumerate(names))


def _judges(model: str) -> dict[str, tuple[str, Callable[[str], Judge]]]:
    """Return the notation and the judge of each peer; llguidance reads GBNF by its own converter."""
    from llguidance.gbnf_to_lark import gbnf_to_lark

    lark = llguidance_peer()
    return {
        "llama.cpp": ("gbnf", LlamaCpp(model or str(PUBLISHED["smollm2"].pull())).judge),
        "xgrammar": ("gbnf", xgrammar_peer().judge),
        "llguidance, GBNF": ("gbnf", lambda text: lark.judge(gbnf_to_lark(text))),
        "llguidance, Lark": ("lark", lark.judge),
    }


def _stated(case: PeerGrammar, grammar: Grammar, outcome: Counter[str], notes: list[list[str]]) -> None:
    """Count the texts about which a peer's test says something."""
    for kind, texts, verdict in (
        ("accepted", case.accepted, True),
        ("refused", case.refused, False),
        ("begun", case.begun, True),
    ):
        for text in texts:
            ours = grammar.begins(text) if kind == "begun" else grammar.matches(text)
            outcome["stated"] += 1
            if ours != verdict and not grammar.specials:  # a test writes control tokens as text
                outcome["stated otherwise"] += 1
                notes.append([case.name, f"its test says {kind}", text[:100]])


def _counted(notes: Iterable[Sequence[str]]) -> list[list[Any]]:
    """Return each note once, and how often it was made."""
    return [[*note, count] for note, count in Counter(map(tuple, notes)).items()]


def _print(notes: Iterable[Sequence[str]]) -> None:
    for note in notes:
        print(*note, sep=" | ", file=sys.stderr)


def _reason(error: Exception) -> str:
    """Return the first line of an error, without the time and the source file that xgrammar begins with."""
    return re.sub(r"^\[[^\]]*\] \S+: ", "", str(error).strip().partition("\n")[0])[:120]


def verdicts(cache: Path, model: str, drawn: int, each: int) -> dict[str, Any]:
    """Compare verdicts; return the counts, and print what differs."""
    judges = _judges(model)
    draw = random.Random(19)
    cases = {
        "llama.cpp's own": list(of_llama_cpp(cache)),
        "llguidance's own": list(of_llguidance(cache)),
        "random": [PeerGrammar(f"random {n}", "gbnf", random_grammar(draw)) for n in range(drawn)],
    }
    found: dict[str, Any] = {}
    notes: list[list[str]] = []
    for source, grammars in cases.items():
        counts: dict[str, Counter[str]] = {name: Counter() for name in judges}
        stated: Counter[str] = Counter(grammars=len(grammars))
        for case in grammars:
            grammar, texts = None, []
            try:
                grammar = getattr(Grammar, f"from_{case.notation}")(case.text)
                samples = [random_text(grammar, draw, draw.choice([10, 40, 120])) for _ in range(each)]
                texts = [*samples, *case.accepted, *case.refused]
                texts = list(dict.fromkeys([*texts, *(mutated(draw, text) for text in texts for _ in range(3))]))
                _stated(case, grammar, stated, notes)
            except ToolGrammarError as error:
                stated["refused"] += 1
                if not case.is_error:
                    notes.append([case.name, "we refuse it", error.message.partition("\n")[0]])
            if case.is_error and grammar is not None:
                notes.append([case.name, "its test refuses it", case.text.strip()[:100]])
            for peer, (notation, judge_of) in judges.items():
                if notation != case.notation or (grammar is not None and grammar.specials):
                    continue
                count = counts[peer]
                try:
                    judge = judge_of(case.text)
                except Exception as error:
                    count["refused by both" if grammar is None else "read by us alone"] += 1
                    if grammar is not None and source != "random":
                        notes.append([case.name, f"{peer} refuses it", _reason(error)])
                    continue
                if grammar is None:
                    count["read by the peer alone"] += 1
                    continue
                count["read by both"] += 1
                for text, ours in compared(grammar, judge, texts, count, seconds=10):
                    count["accepted by us alone" if ours else "accepted by the peer alone"] += 1
                    which = f"we accept, not {peer}" if ours else f"{peer} accepts, not we"
                    notes.append([case.name, which, text[:100]])
        found[source] = {"own": stated, **{peer: count for peer, count in counts.items() if count}}
    _print(notes)
    different = _counted(note if note[1].endswith(" it") else note[:2] for note in notes)
    return {"sources": found, "differences": different}


def _engines(vocabulary: Any, encode: Any) -> list[Any]:
    from llguidance.gbnf_to_lark import gbnf_to_lark

    class Ours(engines.Ours):
        def compile(self, text: str) -> Any:
            return Grammar.from_gbnf(text).bind(self.vocabulary)

    class Lark(engines.LLGuidance):
        def compile(self, text: str) -> Any:
            return self.load(self.matcher.grammar_from_lark(gbnf_to_lark(text)))

    class Ebnf(engines.XGrammar):
        def compile(self, text: str) -> Any:
            return self.compiler.compile_grammar(text)

    return [kind(vocabulary, encode) for kind in (Ours, Lark, Ebnf)]


def masks(each: int) -> dict[str, Any]:
    """Time masks, engine by engine in turns; return p50, p99 and mean."""
    vocabulary, encode = tekken()
    peers = _engines(vocabulary, encode)
    found: dict[str, Any] = {}
    for name in MASKED:
        text = (
            Path(__file__).with_name("grammars").joinpath(f"{name.replace(' ', '_')}.gbnf").read_text(encoding="utf-8")
        )
        draw = random.Random(5)
        grammar = Grammar.from_gbnf(text)
        texts = []
        while len(texts) < each:
            text_of = random_text(grammar, draw, draw.choice([100, 400]))
            texts += [text_of] if len(text_of) >= 60 else []
        compiled = {}
        for engine in peers:
            begin = time.perf_counter()
            compiled[engine.name] = engine.compile(text)
            found.setdefault(name, {})[engine.name] = {"compile_ms": round((time.perf_counter() - begin) * 1e3, 2)}
        times: dict[str, list[float]] = {engine.name: [] for engine in peers}
        refused: Counter[str] = Counter()
        for sample in texts:
            tokens = encode(sample)
            for engine in draw.sample(peers, len(peers)):
                accepted, _ = written(engine, compiled[engine.name], tokens, times[engine.name], time.perf_counter)
                refused[engine.name] += not accepted
        for engine in peers:
            every = np.array(times[engine.name])
            row = found[name][engine.name]
            row |= {"tokens": len(every), "refused": refused[engine.name], "mean_us": round(float(every.mean()), 1)}
            row |= {f"p{share}_us": round(float(np.percentile(every, share)), 1) for share in (50, 99)}
    return {"masks": found}


def main(
    what: Literal["verdicts", "masks"],
    cache: Path = CACHE,
    model: str = "",
    grammars: int = 200,
    texts: int = 0,
    keep: bool = False,
) -> None:
    """Compare or time, and show the table.

    Args:
        what: texts, or the time of masks
        cache: a folder for source distributions of the peers
        model: a GGUF file with a byte-level vocabulary; without it, smollm2
        grammars: number of random grammars
        texts: number of random texts of a grammar; 10 and 30 without it
    """
    if what == "masks":
        name, report = "text_grammars", masks(texts or 30)
    else:
        name, report = "text_grammar_verdicts", verdicts(cache, model, grammars, texts or 10)
    show(name, report, keep=keep)
