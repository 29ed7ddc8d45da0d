"""Grammars as text beside their own engines: verdicts on sampled and mutated texts, and the time of masks.

    python benchmarks/text_grammars.py verdicts MODEL.gguf [FOLDER] [--grammars N] [--texts N] [--seconds S]
    python benchmarks/text_grammars.py masks [--texts N] [--json FILE]

``verdicts`` compares `Grammar.from_gbnf` with llama.cpp's sampler, xgrammar and llguidance (by its converter of GBNF)
on the ``.gbnf`` files of a folder, llama.cpp's own ``grammars/`` say, and on random grammars. llguidance takes the
longest terminal, so it may accept less. ``masks`` writes random texts of three grammars (a subset of C, SQL, JSON with
comments) token by token in the Tekken vocabulary, and times one mask and one accept of each engine in turn.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
from results_io import machine

from toolgrammar.core import Grammar, ToolGrammarError
from toolgrammar.core.sampling import random_text

#: The grammars of the masks, in the syntax that GBNF and EBNF share.
MASKED = {
    "C subset": r"""
root ::= function+
function ::= type " " name "(" (type " " name (", " type " " name)*)? ") {\n" statement* "}\n"
type ::= "int" | "float" | "char" | "void"
statement ::= "  "? (declaration | assignment | return | while | if | call ";\n" | comment)
declaration ::= type " " name " = " expression ";\n"
assignment ::= name " = " expression ";\n"
return ::= "return " expression ";\n"
while ::= "while (" condition ") {\n" statement* "}\n"
if ::= "if (" condition ") {\n" statement* "}\n" ("else {\n" statement* "}\n")?
condition ::= expression " " ("<" | "<=" | "==" | "!=" | ">" | ">=") " " expression
expression ::= term (" " [-+] " " term)*
term ::= factor (" " [*/] " " factor)*
factor ::= name | number | "-" factor | call | "(" expression ")"
call ::= name "(" (expression (", " expression)*)? ")"
name ::= [a-zA-Z_] [a-zA-Z_0-9]*
number ::= [0-9]+
comment ::= "// " [^\n]* "\n"
""",
    "SQL": r"""
root ::= select ";"
select ::= "SELECT " ("*" | column (", " column)*) " FROM " name join* where? group? order? limit?
join ::= (" LEFT" | " INNER")? " JOIN " name " ON " column " = " column
where ::= " WHERE " condition
condition ::= test ((" AND " | " OR ") test)*
test ::= column (compared | " IN (" (select | value (", " value)*) ")" | " IS " "NOT "? "NULL") | "(" condition ")"
compared ::= " " ("=" | "<>" | "<" | "<=" | ">" | ">=") " " value
group ::= " GROUP BY " column (", " column)*
order ::= " ORDER BY " column (" ASC" | " DESC")? (", " column (" ASC" | " DESC")?)*
limit ::= " LIMIT " [0-9]{1,9}
column ::= name ("." name)? | ("COUNT" | "SUM" | "MAX") "(" name ")"
name ::= [a-z] [a-z0-9_]*
value ::= "-"? [0-9]{1,15} ("." [0-9]{1,15})? | "'" ([^'\n] | "''")* "'"
""",
    "JSON with comments": r"""
root ::= ws value ws
value ::= object | array | string | number | "true" | "false" | "null"
object ::= "{" ws (member (ws "," ws member)* ws ("," ws)?)? "}"
member ::= string ws ":" ws value
array ::= "[" ws (value (ws "," ws value)* ws ("," ws)?)? "]"
string ::= "\"" ([^"\\\x00-\x1F] | "\\" (["\\/bfnrt] | "u" [0-9a-fA-F]{4}))* "\""
number ::= "-"? ("0" | [1-9] [0-9]*) ("." [0-9]+)? ([eE] [-+]? [0-9]+)?
ws ::= ([ \t\n] | "//" [^\n]* "\n")*
""",
}


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


def mutated(draw: random.Random, text: str) -> str:
    """Return a text with one change."""
    at = draw.randrange(len(text) + 1)
    piece = draw.choice(["", "a", "b", "0", "(", ")", ",", " ", "é", "-", '"', "\n", text[:3]])
    return text[:at] + piece + text[at + draw.randrange(2) :]


def verdicts(arguments: argparse.Namespace) -> None:
    """Compare verdicts, and print the counts."""
    from grammar_oracles import LlamaCpp, LLGuidance, XGrammar
    from llguidance.gbnf_to_lark import gbnf_to_lark

    lark = LLGuidance()
    peers: dict[str, Any] = {
        "llama.cpp": LlamaCpp(arguments.model).judge,
        "xgrammar": XGrammar().judge,
        "llguidance": lambda text: lark.judge(gbnf_to_lark(text)),
    }
    draw = random.Random(19)
    files = sorted(Path(arguments.folder).glob("*.gbnf")) if arguments.folder else []
    grammars = [(path.stem, path.read_text(encoding="utf-8")) for path in files]
    grammars += [(f"random {number}", random_grammar(draw)) for number in range(arguments.grammars)]
    counts: dict[str, Counter[str]] = {name: Counter() for name in peers}
    start = time.perf_counter()
    for name, text in grammars:
        if time.perf_counter() - start > arguments.seconds:
            print("stopped before", name)
            break
        grammar = Grammar.from_gbnf(text)
        samples = [random_text(grammar, draw, draw.choice([10, 40, 120])) for _ in range(arguments.texts)]
        texts = list(dict.fromkeys([*samples, *(mutated(draw, sample) for sample in samples for _ in range(3))]))
        for peer, judge_of in peers.items():
            count = counts[peer]
            try:
                judge = judge_of(text)
            except Exception as error:
                count["refused grammars"] += 1
                if not name.startswith("random"):
                    print(peer, "refuses", name, str(error)[:100])
                continue
            count["grammars"] += 1
            for candidate in texts:
                try:
                    ours, theirs = grammar.matches(candidate), judge(candidate)
                except ValueError:
                    count["not judged"] += 1
                    continue
                count["texts"] += 1
                count["valid"] += ours
                if ours != theirs:
                    kind = "only ours" if ours else "only theirs"
                    count[kind] += 1
                    if count[kind] <= 5:
                        print(peer, kind, repr(candidate)[:120], text[:400], file=sys.stderr)
    for peer, count in counts.items():
        print(peer, dict(count))


class _Ours:
    name = "toolgrammar"

    def __init__(self, vocabulary: Any, encode: Any) -> None:
        self._vocabulary = vocabulary
        self._mask = np.zeros((vocabulary.size + 31) // 32, dtype=np.uint32)

    def compile(self, text: str) -> Any:
        return Grammar.from_gbnf(text).bind(self._vocabulary)

    def start(self, compiled: Any) -> Any:
        return compiled.matcher()

    def step(self, matcher: Any, token: int) -> bool:
        matcher.fill_mask(self._mask)
        return bool(matcher.accept(token))


def _engines(vocabulary: Any, encode: Any) -> list[Any]:
    from llguidance.gbnf_to_lark import gbnf_to_lark

    from toolgrammar.adapters.cli.engines import LLGuidance, XGrammar

    class Lark(LLGuidance):
        def compile(self, text: str) -> Any:
            matcher = self.matcher(self.tokenizer, self.matcher.grammar_from_lark(gbnf_to_lark(text)), log_level=0)
            if matcher.is_error():
                raise ToolGrammarError(matcher.get_error()[:100])
            return matcher

    class Ebnf(XGrammar):
        def compile(self, text: str) -> Any:
            return self.compiler.compile_grammar(text)

    return [_Ours(vocabulary, encode), Lark(vocabulary, encode), Ebnf(vocabulary, encode)]


def masks(arguments: argparse.Namespace) -> None:
    """Time masks, engine by engine in turns, and print p50, p99 and mean."""
    from peers import tekken

    vocabulary, encode = tekken()
    engines = _engines(vocabulary, encode)
    found: dict[str, Any] = {}
    for name, text in MASKED.items():
        draw = random.Random(5)
        grammar = Grammar.from_gbnf(text)
        texts = []
        while len(texts) < arguments.texts:
            text_of = random_text(grammar, draw, draw.choice([100, 400]))
            texts += [text_of] if len(text_of) >= 60 else []
        compiled = {}
        for engine in engines:
            begin = time.perf_counter()
            compiled[engine.name] = engine.compile(text)
            found.setdefault(name, {})[engine.name] = {"compile_ms": round((time.perf_counter() - begin) * 1e3, 2)}
        times: dict[str, list[float]] = {engine.name: [] for engine in engines}
        refused: Counter[str] = Counter()
        for sample in texts:
            tokens = encode(sample)
            for engine in draw.sample(engines, len(engines)):
                matcher = engine.start(compiled[engine.name])
                for token in tokens:
                    begin = time.perf_counter()
                    accepted = engine.step(matcher, token)
                    times[engine.name].append((time.perf_counter() - begin) * 1e6)
                    if not accepted:
                        refused[engine.name] += 1
                        break
        for engine in engines:
            every = np.array(times[engine.name])
            row = found[name][engine.name]
            row |= {"tokens": len(every), "refused": refused[engine.name], "mean_us": round(float(every.mean()), 1)}
            row |= {f"p{share}_us": round(float(np.percentile(every, share)), 1) for share in (50, 99)}
            print(name, engine.name, row)
    if arguments.json:
        arguments.json.write_text(json.dumps({"machine": machine(), "masks": found}, indent=1) + "\n")


def main() -> None:
    """Read the arguments, and run one of the two."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    commands = parser.add_subparsers(required=True)
    one = commands.add_parser("verdicts")
    one.add_argument("model")
    one.add_argument("folder", nargs="?")
    one.add_argument("--grammars", type=int, default=200)
    one.add_argument("--texts", type=int, default=10)
    one.add_argument("--seconds", type=float, default=3_600)
    one.set_defaults(run=verdicts)
    two = commands.add_parser("masks")
    two.add_argument("--texts", type=int, default=30)
    two.add_argument("--json", type=Path)
    two.set_defaults(run=masks)
    arguments = parser.parse_args()
    arguments.run(arguments)


if __name__ == "__main__":
    main()
