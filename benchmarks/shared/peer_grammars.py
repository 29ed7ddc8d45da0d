"""Grammars of peers' own tests, with the texts that these tests accept and refuse; fetched when they are needed.

llama.cpp's come from the source distribution of llama-cpp-python (``grammars/*.gbnf`` and the cases of
``test-grammar-integration.cpp``), llguidance's from its own (``parser/tests/*.rs`` and ``sample_parser/data``). Only
literals are taken out of the sources, and nothing of them is run or kept.
"""

from __future__ import annotations

import json
import re
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.shared.sources import fetch

LLAMA_CPP = ("llama-cpp-python", "0.3.36")
LLGUIDANCE = ("llguidance", "1.9.1")

_RAW = re.compile(r'r(#*)"(.*?)"\1|R"(\w*|"*)\((.*?)\)\3"', re.DOTALL)
_QUOTED = re.compile(r'"((?:[^"\\]|\\.)*)"', re.DOTALL)
_SPACE = re.compile(r"(?:\s|//[^\n]*\n|/\*.*?\*/|&(?=[\"r\[]))*", re.DOTALL)
#: What a test of llguidance writes between and around tokens.
_REFUSED_TOKEN = re.compile("✖[^‧]*‧")


@dataclass
class PeerGrammar:
    """A grammar of a peer's tests.

    Attributes:
        name: file, and number or name of the case.
        notation: ``gbnf`` or ``lark``.
        text: the grammar.
        accepted: texts that the test accepts.
        begun: texts that the test accepts as beginnings.
        refused: texts that the test refuses; some of them only at their end.
        is_error: the test refuses the grammar.
    """

    name: str
    notation: str
    text: str
    accepted: list[str] = field(default_factory=list)
    begun: list[str] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    is_error: bool = False


def _files(package: tuple[str, str], cache: Path, wanted: str) -> Iterator[tuple[str, str]]:
    with tarfile.open(fetch(*package, cache)) as archive:
        for member in archive:
            if re.search(wanted, member.name):
                file = archive.extractfile(member)
                assert file is not None
                yield Path(member.name).name, file.read().decode()


class _Arguments:
    """The literals among the arguments of a call in Rust or C++."""

    def __init__(self, source: str, position: int) -> None:
        self._source = source
        self._at = position

    def _skip(self, *closing: str) -> bool:
        """Advance past white space, and past a comma or a closing bracket; return True at a bracket."""
        match = _SPACE.match(self._source, self._at)
        self._at = match.end() if match else self._at
        return self._source[self._at] in closing

    def text(self) -> str | None:
        """Return the string that comes next; None if it is no literal. Adjacent literals are one."""
        found, parts = False, ""
        while True:
            self._skip()
            if match := _RAW.match(self._source, self._at):
                parts += match[2] if match[2] is not None else match[4]
            elif match := _QUOTED.match(self._source, self._at):
                try:
                    parts += json.loads(f'"{_as_json(match[1])}"')
                except json.JSONDecodeError:
                    return None
            else:
                return parts if found else None
            found, self._at = True, match.end()

    def comma(self) -> bool:
        """Advance past a comma; return whether there was one."""
        self._skip()
        if self._source[self._at] == ",":
            self._at += 1
            return True
        return False

    def texts(self, opening: str, closing: str) -> list[str]:
        """Return the literals of a list; other items are left out."""
        self._skip()
        if self._source[self._at] != opening:
            return []
        self._at += 1
        items = []
        while not self._skip(closing):
            item = self.text()
            if item is not None and self._source[self._at] in (",", closing):  # `text` skipped what follows it
                items.append(item)
            else:
                depth = 0
                while depth or self._source[self._at] not in (",", closing):
                    if quoted := _RAW.match(self._source, self._at) or _QUOTED.match(self._source, self._at):
                        self._at = quoted.end()
                        continue
                    depth += {"(": 1, "[": 1, "{": 1, ")": -1, "]": -1, "}": -1}.get(self._source[self._at], 0)
                    self._at += 1
            self.comma()
        self._at += 1
        return items


def _as_json(text: str) -> str:
    text = re.sub(r"\\u\{([0-9a-fA-F]+)\}", lambda code: json.dumps(chr(int(code[1], 16)))[1:-1], text)
    text = re.sub(r"\\x([0-9a-fA-F]{2})", r"\\u00\1", text).replace("\\'", "'").replace("\\0", "\\u0000")
    return re.sub(r"\\\n\s*", "", text).replace("\n", "\\n").replace("\t", "\\t")


def _calls(source: str, name: str) -> Iterator[_Arguments]:
    for match in re.finditer(rf"(?<![\w!]){name}\((?!\s*(?:lark|const|grammar):?\s)", source):
        yield _Arguments(source, match.end())


def of_llama_cpp(cache: Path) -> Iterator[PeerGrammar]:
    """Yield llama.cpp's ``grammars/`` folder, and the cases of its test of grammars."""
    for name, text in _files(LLAMA_CPP, cache, r"vendor/llama\.cpp/grammars/\w+\.gbnf$"):
        yield PeerGrammar(name, "gbnf", text)
    for name, source in _files(LLAMA_CPP, cache, r"tests/test-grammar-integration\.cpp$"):
        for number, call in enumerate(_calls(source, "test_grammar")):
            call.text()
            grammar = call.text() if call.comma() else None
            if grammar is not None and call.comma():
                accepted = call.texts("{", "}")
                refused = call.texts("{", "}") if call.comma() else []
                yield PeerGrammar(f"{name} {number}", "gbnf", grammar, accepted=accepted, refused=refused)
        for call in _calls(source, "test_build_grammar_fails"):
            if (grammar := call.text()) is not None:
                yield PeerGrammar(f"{name} refused", "gbnf", grammar, is_error=True)


def of_llguidance(cache: Path) -> Iterator[PeerGrammar]:
    """Yield the grammars of llguidance's tests of its parser, and its examples."""
    for name, text in _files(LLGUIDANCE, cache, r"sample_parser/data/.*\.(?:lark|gbnf)$"):
        yield PeerGrammar(name, name.rpartition(".")[2], text)
    for name, source in _files(LLGUIDANCE, cache, r"parser/tests/test_\w+\.rs$"):
        for kind in ("lark_ok", "lark_err_test", "lark_str_test", "lark_str_test_many", "lark_str_test_many_quiet",
                     "check_lark_grammar", "check_lark_grammar_prompt"):  # fmt: skip
            for number, call in enumerate(_calls(source, kind)):
                grammar = call.text()
                if grammar is None:
                    continue
                case = PeerGrammar(f"{name} {kind} {number}", "lark", grammar, is_error=kind == "lark_err_test")
                if kind == "lark_str_test" and call.comma():
                    match = re.compile(r"\s*(true|false),").match(source, call._at)
                    if match is not None:
                        call._at = match.end()
                        text = call.text()
                        (case.accepted if match[1] == "true" else case.refused).extend([text] if text else [])
                elif kind.startswith("lark_str_test_many") and call.comma():
                    case.accepted = call.texts("[", "]")
                    case.refused = [
                        text.removeprefix("FINAL_REJECT:") for text in (call.texts("[", "]") if call.comma() else [])
                    ]
                elif kind == "check_lark_grammar" and call.comma():
                    whole = "".join(call.texts("[", "]"))
                    if "↶" not in whole and whole:
                        whole = _REFUSED_TOKEN.sub("", whole).replace("‧", "")
                        text, ended, _ = whole.partition("≺EOS≻")
                        (case.accepted if ended else case.begun).append(text)
                yield case
